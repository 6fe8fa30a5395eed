//! Integration tests of the crate: archives in, stores and reproduced results out.

mod archive_writer;
mod config;
mod import;
mod patch;
mod published;
mod seeds;
