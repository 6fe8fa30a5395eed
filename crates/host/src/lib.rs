//! Hosts: where programs run and files are read and written.
//!
//! Commands are argument vectors, never shell strings; one function, [`quote()`], quotes
//! them for the login shell of another machine.

pub mod connected;
pub mod error;
mod facts;
mod fake;
mod local;
mod namespace;
mod output;
mod program;
mod quote;
pub mod schedstat;
mod ssh;

pub use facts::{Facts, facts};
pub use fake::FakeHost;
pub use local::LocalHost;
pub use namespace::NamespaceHost;
pub use program::{Ended, FakeProgram, Program, Running};
pub use quote::{QuoteError, quote};
pub use ssh::{SshHost, SshSettings};

use crate::error::BenchError;
use std::path::Path;

/// A machine or namespace.
pub trait Host {
    /// Name for messages.
    fn name(&self) -> &str;

    /// Runs a program to completion with `stdin` as its input; returns its output.
    ///
    /// # Errors
    /// Fails if the program is missing or exits with a non-zero status.
    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError>;

    /// Runs a program to completion with a file of this machine as its input; returns its output.
    /// The default implementation reads the file as text.
    ///
    /// # Errors
    /// The errors of [`Host::run`]; fails if the file cannot be read.
    fn feed(&self, argv: &[&str], file: &Path) -> Result<String, BenchError> {
        let text = std::fs::read_to_string(file).map_err(|source| BenchError::File {
            path: file.display().to_string(),
            host: "this machine".into(),
            source,
        })?;
        self.run(argv, &text)
    }

    /// Starts a program with pipes to its input and output.
    ///
    /// # Errors
    /// Fails if the program is missing.
    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError>;

    /// Writes an existing file (a sysctl, an attribute in sysfs).
    ///
    /// # Errors
    /// Fails if the file is missing or rejects the value.
    fn put(&self, path: &str, text: &str) -> Result<(), BenchError>;

    /// Reads a file; surrounding white space is removed.
    ///
    /// # Errors
    /// Fails if the file is missing or unreadable.
    fn get(&self, path: &str) -> Result<String, BenchError>;

    /// Copies a file of this machine to the host, atomically. The directory must exist.
    ///
    /// # Errors
    /// Fails if the file cannot be read here or written there.
    fn send_file(&self, from: &Path, to: &str) -> Result<(), BenchError>;
}
