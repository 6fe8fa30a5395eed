//! Capture files: read as incoming frames of a port, written with its outgoing ones.
//!
//! Reads pcap in both byte orders and time resolutions and pcapng, writes pcap with
//! nanoseconds (draft-ietf-opsawg-pcap). Frames come as fast as they are asked for: the
//! times in a file are not looked at. Ethernet only.

mod port;
mod read;
mod write;

pub use port::PcapPort;
pub use write::PcapWriter;
