//! What can go wrong while carrying out a plan.

use fwdlab_port::PortError;

/// An error of the laboratory. Its text names the thing, the place and the next step.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The machine lacks something.
    #[error("{what}\n  next step: {next}")]
    Environment {
        /// What is lacking.
        what: String,
        /// What to do about it.
        next: String,
    },
    /// The experiment asks for what can't be.
    #[error("{0}")]
    Refused(String),
    /// A program failed.
    #[error("{command} on {host} failed: {why}")]
    Program {
        /// Command line as it was run.
        command: String,
        /// Host.
        host: String,
        /// Its last words.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{path} on {host}: {source}")]
    File {
        /// Path.
        path: String,
        /// Host.
        host: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A variant can't be measured now; others can.
    #[error("variant {variant} is given up for now: {why}")]
    GivenUp {
        /// Its index in the plan.
        variant: usize,
        /// What happened, twice.
        why: String,
    },
    /// Sockets, BPF, namespaces.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// Something lacking, and what to do about it.
    pub fn environment(what: impl Into<String>, next: impl Into<String>) -> BenchError {
        BenchError::Environment { what: what.into(), next: next.into() }
    }
}
