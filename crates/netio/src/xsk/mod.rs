//! AF_XDP (Linux's `Documentation/networking/af_xdp.rst`): frames in memory shared by the kernel
//! and this program, handed over in rings.
//!
//! The sender works with any interface. It loads no program and therefore needs no right to load
//! BPF. A port also receives, so it needs an [`XskProgram`] on its interface, one for all queues.
//! Each socket has its own memory: queues share nothing, and a frame that goes from one port to
//! another is copied once.
//!
//! Not supported: frames over several buffers, and checksum offload. Packets that a local program
//! sends through a veth arrive with a partial checksum unless offload is off (`ethtool -K NAME tx
//! off`).

mod flows;
mod port;
mod program;
mod reserve;
mod ring;
mod sender;
mod socket;
mod umem;

pub use flows::{FlowCount, FlowKey, FlowLink, FlowTable, PortCount};
pub use port::{Bind, XskConfig, XskPort};
pub use program::XskProgram;
pub use reserve::XskReserve;
pub use sender::sender;
