//! Errors of executing a plan.

use fwdlab_netio::NetioError;
use std::time::Duration;

/// An error of the laboratory. Its message names the object, the place and the next step.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The machine lacks something.
    #[error("{what}\n  next step: {next}")]
    Environment {
        /// What is missing.
        what: String,
        /// What to do about it.
        next: String,
    },
    /// The experiment asks for something impossible.
    #[error("{0}")]
    Refused(String),
    /// A program failed.
    #[error("{command} on {host} failed: {why}")]
    Program {
        /// Command line as it was run.
        command: String,
        /// Host.
        host: String,
        /// Its last output.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{path} on {host}: {source}")]
    File {
        /// Path.
        path: String,
        /// Host.
        host: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A changed setting could not be restored; the others were.
    #[error(
        "not put back on {host}: {why}\n  next step: set it by hand{instead}; {journal} on \
         {host} keeps what was there before, and every start tries again"
    )]
    NotPutBack {
        /// Host.
        host: String,
        /// The setting, and the system's error.
        why: String,
        /// What else helps, with what introduces it; or nothing.
        instead: &'static str,
        /// File or directory with the original values.
        journal: String,
    },
    /// Another controller has a host of the laboratory.
    #[error(
        "{what}\n  next step: wait until it is free (`fwdlab run --wait 60min` does): two would \
         measure each other; `fwdlab lab leases` says who has which host"
    )]
    Held {
        /// Who has which host, until when.
        what: String,
        /// Time after which it may be free, unless its holder goes on; none where nobody knows.
        left: Option<Duration>,
    },
    /// A variant can't be measured now; others can.
    #[error("variant {variant} is given up for now: {why}")]
    GivenUp {
        /// Its index in the plan.
        variant: usize,
        /// The reason of the second failure.
        why: String,
    },
    /// Sockets, BPF, namespaces.
    #[error(transparent)]
    Port(#[from] NetioError),
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
