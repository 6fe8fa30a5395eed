//! What goes wrong with machines; each message names the thing and the next step.

use std::io;
use std::path::PathBuf;

/// Why a machine can't be had, or was lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VmError {
    /// A program of the host is missing or failed.
    #[error("{program}: {why}\n  next step: {next}")]
    Program {
        /// Its name.
        program: String,
        /// What it said.
        why: String,
        /// What to do.
        next: String,
    },
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A kernel that is none, or lacks something.
    #[error("{}: {why}", path.display())]
    Kernel {
        /// What was given as a kernel.
        path: PathBuf,
        /// What is wrong, with the next step.
        why: String,
    },
    /// The guest's kernel died.
    #[error("the guest panicked: {text}\n  next step: read {}", log.display())]
    Panic {
        /// Lines of its console.
        text: String,
        /// The whole console.
        log: PathBuf,
    },
    /// The guest did not get as far as expected.
    #[error("the guest did not say `{expected}` within {seconds} s; its last words: {text}\n  next step: read {}", log.display())]
    Silent {
        /// What was waited for.
        expected: String,
        /// For how long.
        seconds: u64,
        /// Last lines of its console.
        text: String,
        /// The whole console.
        log: PathBuf,
    },
    /// The guest executes nothing any more, or nothing of what it should.
    #[error("for {seconds} s the guest took no frame: it hangs, or its interface is down; its last words: {text}\n  next step: read {}", log.display())]
    Hangs {
        /// For how long.
        seconds: u64,
        /// Last lines of its console.
        text: String,
        /// The whole console.
        log: PathBuf,
    },
    /// KVM can't execute what the guest does.
    #[error(
        "KVM can't go on with this guest: {text}\n  next step: write accel = \"tcg\", or boot it on \
         a machine whose CPU virtualises by itself"
    )]
    GivenUp {
        /// What QEMU says of it.
        text: String,
    },
    /// QEMU ended.
    #[error("QEMU has ended ({status}): {text}")]
    Ended {
        /// How.
        status: String,
        /// Its last words and the guest's.
        text: String,
    },
    /// The counts are not what they should be.
    #[error("counts: {0}")]
    Counts(String),
}

impl VmError {
    /// A file that can't be read or written.
    pub(crate) fn file(path: impl Into<PathBuf>, source: io::Error) -> VmError {
        VmError::File { path: path.into(), source }
    }
}
