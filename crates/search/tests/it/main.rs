//! Tests of the crate from outside: searches against devices whose truth is known.

mod bisections;
mod classification;
mod searches;
