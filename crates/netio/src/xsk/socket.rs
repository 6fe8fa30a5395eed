//! What all AF_XDP sockets here do alike.

use super::ring::{Consumer, Producer, RING};
use super::umem::Umem;
use crate::xdp::interface_index;
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

/// Descriptors that one system call takes at most in copy mode (the kernel's
/// TX_BATCH_SIZE).
pub(super) const KICK: usize = 32;

/// Wraps a failed call with what was tried.
pub(super) fn failed(what: &'static str) -> impl Fn(Errno) -> NetioError {
    move |error| NetioError::system(what, error)
}

/// A socket that is not bound yet, with its memory and all rings sized but that for
/// receiving.
///
/// # Errors
/// When the kernel has no AF_XDP, or refuses memory or rings.
pub(super) fn open() -> Result<(OwnedFd, Umem), NetioError> {
    let socket =
        socket(AddressFamily::XDP, SocketType::RAW, None).map_err(failed("an AF_XDP socket"))?;
    let umem = Umem::register(&socket)?;
    set_xdp_umem_fill_ring_size(&socket, RING).map_err(failed("an AF_XDP fill ring"))?;
    set_xdp_umem_completion_ring_size(&socket, RING)
        .map_err(failed("an AF_XDP completion ring"))?;
    set_xdp_tx_ring_size(&socket, RING).map_err(failed("an AF_XDP transmit ring"))?;
    Ok((socket, umem))
}

/// Where the rings are in memory.
pub(super) fn offsets(socket: &OwnedFd) -> Result<XdpMmapOffsets, NetioError> {
    xdp_mmap_offsets(socket).map_err(failed("AF_XDP ring offsets"))
}

/// Binds to one queue of an interface; the kernel releases a queue some time after its
/// last socket was closed, so a busy one is asked again for a second.
///
/// # Errors
/// When interface or queue are missing or used, or can't do what `flags` ask for.
pub(super) fn bind_patiently(
    socket: &OwnedFd,
    interface: &str,
    queue: u32,
    flags: SocketAddrXdpFlags,
) -> Result<(), NetioError> {
    let address = SocketAddrXdp::new(flags, interface_index(interface)?, queue);
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
    /// Frames that are not the kernel's.
    pub(super) free: Vec<u64>,
    /// Frames to be sent.
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

    /// Asks the kernel to look at the transmit ring.
    ///
    /// # Errors
    /// When it never will again.
    pub(super) fn kick(&self, socket: &OwnedFd) -> Result<Kick, NetioError> {
        match send(socket, &[], SendFlags::DONTWAIT) {
            Ok(_) => Ok(Kick::Heard),
            // More to send than one call does: no obstacle.
            Err(Errno::AGAIN | Errno::INTR) => Ok(Kick::Heard),
            Err(Errno::BUSY | Errno::NOBUFS) => Ok(Kick::Busy),
            Err(Errno::NETDOWN) => Ok(Kick::Down),
            Err(e) => Err(NetioError::system("sending through AF_XDP", e)),
        }
    }
}

/// What the kernel says when it is asked to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kick {
    /// Some frames were sent.
    Heard,
    /// The device has no room now.
    Busy,
    /// The interface is down.
    Down,
}
