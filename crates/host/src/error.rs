//! Errors of executing a plan.

use fwdlab_netio::NetioError;
use std::time::Duration;

/// An error of the laboratory. The message names the object, the place and the next step.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The machine lacks something.
    #[error("{what}\n  next step: {next}")]
    Environment {
        /// The missing thing.
        what: String,
        /// Next step for the user.
        next: String,
    },
    /// The experiment requires something impossible.
    #[error("{0}")]
    Refused(String),
    /// A program failed.
    #[error("{command} on {host} failed: {why}")]
    Program {
        /// Executed command line.
        command: String,
        /// Host.
        host: String,
        /// Last output of the program.
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
        /// The setting and the system's error.
        why: String,
        /// Alternative remedy with its introductory words; may be empty.
        instead: &'static str,
        /// File or directory with the original values.
        journal: String,
    },
    /// Another controller holds a host of the laboratory.
    #[error(
        "{what}\n  next step: wait until it is free (`fwdlab run --wait 60min` does): two runs \
         would disturb each other; `fwdlab lab leases` lists the holders"
    )]
    Held {
        /// Holder and expiry of each host's lease.
        what: String,
        /// Time after which the host may be free unless the holder renews its lease; `None` if
        /// unknown.
        left: Option<Duration>,
    },
    /// A variant cannot be measured now; others can.
    #[error("variant {variant} is given up for now: {why}")]
    GivenUp {
        /// Index of the variant in the plan.
        variant: usize,
        /// Reason of the second failure.
        why: String,
    },
    /// Sockets, BPF, namespaces.
    #[error(transparent)]
    Port(#[from] NetioError),
    /// The user requested a stop.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// Error for something missing, with the next step.
    pub fn environment(what: impl Into<String>, next: impl Into<String>) -> BenchError {
        BenchError::Environment { what: what.into(), next: next.into() }
    }
}
