//! AF_XDP (Linux's `Documentation/networking/af_xdp.rst`): frames in memory that the
//! kernel and this program share, handed over in rings.
//!
//! The sender works with any interface and, because it loads no program, also without
//! the right to load BPF. A port receives too, so it needs an [`XskProgram`] on its
//! interface, one for all queues. Each socket has memory of its own: nothing is shared
//! between queues, and a frame that goes from one port to another is copied once.
//!
//! Frames over several buffers are left out, so are the kernel's helps with checksums:
//! what a local program sends through a veth arrives with a partial checksum unless
//! that is switched off (`ethtool -K NAME tx off`).

mod port;
mod program;
mod ring;
mod sender;
mod socket;
mod umem;

pub use port::{Bind, XskConfig, XskPort};
pub use program::XskProgram;
pub use sender::sender;
