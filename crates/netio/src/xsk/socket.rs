//! Functions shared by all AF_XDP sockets.

use super::ring::{Consumer, Producer, RING};
use super::umem::Umem;
use crate::{NetioError, clock};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size, set_xdp_umem_fill_ring_size,
    xdp_mmap_offsets,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XdpDesc,
    XdpMmapOffsets,
};
use rustix::net::{AddressFamily, SendFlags, SocketType, bind, send, socket};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Maximum number of descriptors consumed by one system call in copy mode (the kernel's
/// TX_BATCH_SIZE).
pub(super) const KICK: usize = 32;

/// Adds the attempted operation to a failed call.
pub(super) fn failed(what: &'static str) -> impl Fn(Errno) -> NetioError {
    move |error| NetioError::system(what, error)
}

/// Opens an unbound socket with its memory and all rings except the receive ring.
///
/// # Errors
/// If the kernel has no AF_XDP, or refuses memory or rings.
pub(super) fn open() -> Result<(OwnedFd, Umem), NetioError> {
    let socket = bare()?;
    let umem = prepare(&socket)?;
    Ok((socket, umem))
}

/// Opens a socket without memory and rings.
///
/// # Errors
/// Without CAP_NET_RAW, or if the kernel has no AF_XDP.
pub(super) fn bare() -> Result<OwnedFd, NetioError> {
    socket(AddressFamily::XDP, SocketType::RAW, None).map_err(failed("an AF_XDP socket"))
}

/// Gives a bare socket its memory and all rings except the receive ring.
///
/// # Errors
/// If the kernel refuses memory or rings.
pub(super) fn prepare(socket: &OwnedFd) -> Result<Umem, NetioError> {
    let umem = Umem::register(socket)?;
    set_xdp_umem_fill_ring_size(socket, RING).map_err(failed("an AF_XDP fill ring"))?;
    set_xdp_umem_completion_ring_size(socket, RING).map_err(failed("an AF_XDP completion ring"))?;
    set_xdp_tx_ring_size(socket, RING).map_err(failed("an AF_XDP transmit ring"))?;
    Ok(umem)
}

/// Returns the offsets of the rings in memory.
pub(super) fn offsets(socket: &OwnedFd) -> Result<XdpMmapOffsets, NetioError> {
    xdp_mmap_offsets(socket).map_err(failed("AF_XDP ring offsets"))
}

/// Binds to one queue of an interface. The kernel releases a queue some time after its last socket
/// is closed, so a busy queue is retried for one second.
///
/// # Errors
/// If the interface or queue is missing or in use, or does not support `flags`.
pub(super) fn bind_patiently(
    socket: &OwnedFd,
    (interface, index): (&str, u32),
    queue: u32,
    flags: SocketAddrXdpFlags,
) -> Result<(), NetioError> {
    let address = SocketAddrXdp::new(flags, index, queue);
    let deadline = clock::monotonic_ns() + 1_000_000_000;
    loop {
        match bind(socket, &address) {
            Ok(()) => return Ok(()),
            Err(Errno::BUSY) if clock::monotonic_ns() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(e) => {
                let what = format!("binding an AF_XDP socket to queue {queue} of {interface}");
                return Err(NetioError::system(what, e));
            }
        }
    }
}

/// The transmit side of a socket: free frames and rings.
#[derive(Debug)]
pub(super) struct Outlet {
    /// Frames not owned by the kernel.
    pub(super) free: Vec<u64>,
    /// Frames to send.
    pub(super) tx: Producer<XdpDesc>,
    completion: Consumer<u64>,
}

impl Outlet {
    /// Maps the rings. The frames must not be in use elsewhere.
    pub(super) fn new(
        socket: &OwnedFd,
        offsets: &XdpMmapOffsets,
        frames: impl Iterator<Item = u64>,
    ) -> Result<Outlet, NetioError> {
        let tx = Producer::map(socket, offsets.tx, XDP_PGOFF_TX_RING)?;
        let completion = Consumer::map(socket, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING)?;
        Ok(Outlet { free: frames.collect(), tx, completion })
    }

    /// Takes back the frames that the kernel has sent.
    #[inline]
    pub(super) fn reap(&mut self) {
        while let Some(address) = self.completion.pop() {
            self.free.push(address);
        }
        self.completion.release();
    }

    /// Notifies the kernel of frames in the transmit ring.
    ///
    /// # Errors
    /// If the kernel will never send again.
    pub(super) fn kick(&self, socket: &OwnedFd) -> Result<Kick, NetioError> {
        match send(socket, &[], SendFlags::DONTWAIT) {
            Ok(_) => Ok(Kick::Heard),
            // More frames than one call sends: not an error.
            Err(Errno::AGAIN | Errno::INTR) => Ok(Kick::Heard),
            Err(Errno::BUSY | Errno::NOBUFS) => Ok(Kick::Busy),
            Err(Errno::NETDOWN) => Ok(Kick::Down),
            Err(e) => Err(NetioError::system("sending through AF_XDP", e)),
        }
    }
}

/// Result of notifying the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kick {
    /// Some frames were sent.
    Heard,
    /// The device has no room now.
    Busy,
    /// The interface is down.
    Down,
}
