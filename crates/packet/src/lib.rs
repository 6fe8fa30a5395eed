//! Packets as bytes: address plan, frame layout, checksums, the hash that spreads flows over
//! queues, and the stamp that identifies a packet.
//!
//! This crate does not access the operating system. The programs that send and receive (crate
//! `port`, and its BPF objects) follow these layouts; their tests compare received packets with
//! [`Template::frame`].
#![forbid(unsafe_code)]

pub mod address;
mod answer;
pub mod arrivals;
pub mod checksum;
pub mod forwarding;
pub mod injection;
pub mod named;
pub mod prepared;
pub mod rss;
pub mod segments;
pub mod size;
pub mod stamp;
pub mod stream;
pub mod template;
pub mod writer;

pub use address::{Family, Flows, Side};
pub use answer::answer;
pub use prepared::PreparedFlows;
pub use size::FrameSize;
pub use stamp::{Phase, Stamp};
pub use stream::{Endpoints, Stream};
pub use template::Template;
pub use writer::{FrameWriter, Turns};

#[doc(hidden)]
pub use serde;
