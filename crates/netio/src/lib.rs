//! Operating system interfaces: namespaces, CPU placement, clocks, and all means of sending,
//! receiving and counting frames.
//!
//! The only crate of the workspace with `unsafe`; every block states why it is sound. The crate
//! knows nothing of experiments, plans or reports.

pub mod affinity;
pub mod bell;
pub mod circuit;
pub mod clock;
pub mod files;
pub mod flood;
pub mod frame;
pub mod host;
pub mod landlock;
pub mod memory;
pub mod netlink;
pub mod netns;
mod pacing;
pub mod packet_socket;
pub mod pcap;
pub mod poll;
pub mod popcount;
pub mod port;
pub mod prefetch;
pub mod process;
pub mod rights;
pub mod ring;
pub mod seccomp;
pub mod sender;
pub mod spread;
pub mod tap;
pub mod tun;
pub mod tx_backlog;
mod user_sender;
pub mod userns;
pub mod vlan;
pub mod xdp;
pub mod xsk;

pub use bell::Bell;
pub use flood::Flood;
pub use frame::{Batch, Frame};
pub use netns::NetNs;
pub use port::Port;
pub use sender::{Received, Receiver, Sender, SenderConfig, Watch};
pub use user_sender::UserSender;

use std::io;

/// An error of an operating system interface.
#[derive(Debug, thiserror::Error)]
pub enum NetioError {
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The attempted operation.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Loading, attaching or running a BPF program failed.
    #[error("{what}: {why}")]
    Bpf {
        /// The attempted operation.
        what: &'static str,
        /// The messages of the loader and the kernel.
        why: String,
    },
    /// A capture file is malformed or truncated.
    #[error("{path}: at byte {offset}: {why}")]
    Capture {
        /// The file.
        path: String,
        /// Offset of the first unreadable byte.
        offset: u64,
        /// The fault.
        why: String,
    },
}

impl NetioError {
    /// Adds the attempted operation to the error of a call.
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> NetioError {
        NetioError::System { what: what.into(), source: source.into() }
    }

    /// Returns the kernel's error number (errno(3)) if a system call failed.
    pub fn errno(&self) -> Option<i32> {
        match self {
            NetioError::System { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    pub(crate) fn bpf(what: &'static str, error: &dyn std::error::Error) -> NetioError {
        let mut why = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            let inner_text = inner.to_string();
            // Some errors already end with their source's text.
            if !why.ends_with(&inner_text) {
                why = format!("{why}: {inner_text}");
            }
            source = inner.source();
        }
        NetioError::Bpf { what, why }
    }
}
