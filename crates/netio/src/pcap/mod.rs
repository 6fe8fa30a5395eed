//! Capture files: read as the incoming frames of a port, and written with its outgoing frames.
//!
//! Reads pcap in both byte orders and time resolutions and pcapng, writes pcap with nanoseconds
//! (draft-ietf-opsawg-pcap), or pcapng with comments (draft-ietf-opsawg-pcapng). Reading ignores the times in a file and returns frames immediately.
//! Ethernet only. What is left out of a file is counted by kind ([`CaptureCounts`]).

mod counts;
mod pcapng;
mod port;
mod read;
mod write;

pub use counts::CaptureCounts;
pub use pcapng::PcapngWriter;
pub use port::PcapPort;
pub use write::PcapWriter;
