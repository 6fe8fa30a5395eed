//! Integration tests: searches on devices with known behaviour.

mod bisections;
mod classification;
mod searches;
