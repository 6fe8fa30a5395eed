//! Sending by XDP live frames and receiving by an XDP program.
//!
//! `bpf/sender.bpf.c` and `bpf/receiver.bpf.c` are compiled by `cargo xtask bpf`;
//! the objects are committed, so that building needs no C compiler.
//!
//! Trap: live frames redirected into a veth vanish without an error unless the peer polls (NAPI):
//! the peer needs GRO or a native XDP program.

pub mod layout;
mod mapped;
mod receiver;
mod sender;

pub(crate) use mapped::Mapped;
pub use receiver::{XdpMode, XdpReceiver};
pub use sender::XdpSender;
pub(crate) use sender::interface_index;

use crate::NetioError;
use aya::Ebpf;
use aya::maps::{Map, MapData};
use aya::programs::Xdp;

pub(crate) fn array_of<'a>(
    object: &'a Ebpf,
    name: &'static str,
) -> Result<&'a MapData, NetioError> {
    match object.map(name) {
        Some(Map::Array(data)) => Ok(data),
        _ => Err(NetioError::Bpf { what: "reading a BPF object", why: format!("no map {name}") }),
    }
}

/// XDP program of an object.
pub(crate) fn program<'a>(object: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, NetioError> {
    object
        .program_mut(name)
        .ok_or(NetioError::Bpf { what: "reading a BPF object", why: "no program".into() })?
        .try_into()
        .map_err(|e: aya::programs::ProgramError| NetioError::bpf("reading a BPF object", &e))
}
