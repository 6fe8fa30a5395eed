//! Errors of machines; each message names the object and the next step.

use std::io;
use std::path::PathBuf;

/// An error of a machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VmError {
    /// A program of the host is missing or failed.
    #[error("{program}: {why}\n  next step: {next}")]
    Program {
        /// Name of the program.
        program: String,
        /// Message of the program.
        why: String,
        /// The next step.
        next: String,
    },
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An invalid or incomplete kernel.
    #[error("{}: {why}", path.display())]
    Kernel {
        /// The given path.
        path: PathBuf,
        /// The fault and the next step.
        why: String,
    },
    /// The guest's kernel died.
    #[error("the guest panicked: {text}\n  next step: read {}", log.display())]
    Panic {
        /// Lines of the guest's console.
        text: String,
        /// Log of the whole console.
        log: PathBuf,
    },
    /// The guest did not get as far as expected.
    #[error("the guest did not say `{expected}` within {seconds} s; its last words: {text}\n  next step: read {}", log.display())]
    Silent {
        /// The expected output.
        expected: String,
        /// The waiting time.
        seconds: u64,
        /// Last lines of the guest's console.
        text: String,
        /// Log of the whole console.
        log: PathBuf,
    },
    /// The guest executes nothing any more, or none of its task.
    #[error("for {seconds} s the guest took no frame: it hangs, or its interface is down; its last words: {text}\n  next step: read {}", log.display())]
    Hangs {
        /// The waiting time.
        seconds: u64,
        /// Last lines of the guest's console.
        text: String,
        /// Log of the whole console.
        log: PathBuf,
    },
    /// KVM can't execute the guest's code.
    #[error(
        "KVM can't go on with this guest: {text}\n  next step: write accel = \"tcg\", or boot it \
         on a machine with hardware virtualisation"
    )]
    GivenUp {
        /// QEMU's message.
        text: String,
    },
    /// QEMU ended.
    #[error("QEMU has ended ({status}): {text}")]
    Ended {
        /// Exit status.
        status: String,
        /// Last words of QEMU and of the guest.
        text: String,
    },
    /// The guest drops all packets.
    #[error(
        "counts: the guest forwards nothing: none of the first packets came out\n  next step: see \
         what the change does to forwarding"
    )]
    ForwardsNothing,
    /// Too few answers of flows came out of the guest.
    #[error(
        "counts: the guest let {passed} of {sent} answers through\n  next step: see that it forwards \
         from the receiver to the sender"
    )]
    Unanswered {
        /// Number of answers that came out.
        passed: usize,
        /// Number of answers sent.
        sent: usize,
    },
    /// The counts are invalid.
    #[error("counts: {0}")]
    Counts(String),
}

impl VmError {
    /// Creates the error for a file that can't be read or written.
    pub(crate) fn file(path: impl Into<PathBuf>, source: io::Error) -> VmError {
        VmError::File { path: path.into(), source }
    }
}
