//! Memory for frames that is shared with the kernel (UMEM).

use crate::NetioError;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::sockopt::set_xdp_umem_reg;
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};
use std::os::fd::OwnedFd;
use std::ptr::null_mut;

/// Frames of an UMEM.
pub(super) const FRAMES: u32 = 4096;
/// Bytes for each. The kernel keeps the first 256 of a received frame's free.
pub(super) const FRAME_BYTES: u32 = 2048;

/// The memory of one socket, registered with it.
#[derive(Debug)]
pub(super) struct Umem {
    base: *mut u8,
}

// SAFETY: the mapping belongs to this value alone and has no ties to a thread.
unsafe impl Send for Umem {}

impl Umem {
    const BYTES: usize = (FRAMES * FRAME_BYTES) as usize;

    /// Allocates the memory and registers it with the socket.
    ///
    /// # Errors
    /// Among others when it is more than the user may lock (`ulimit -l`).
    pub(super) fn register(socket: &OwnedFd) -> Result<Umem, NetioError> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping where the kernel chooses.
        let base = unsafe { mmap_anonymous(null_mut(), Umem::BYTES, access, flags) }
            .map_err(|e| NetioError::system("memory for AF_XDP frames", e))?;
        let umem = Umem { base: base.cast() };
        let region = XdpUmemReg {
            addr: umem.base as u64,
            len: Umem::BYTES as u64,
            chunk_size: FRAME_BYTES,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        set_xdp_umem_reg(socket, region)
            .map_err(|e| NetioError::system("registering AF_XDP memory (ulimit -l?)", e))?;
        Ok(umem)
    }

    /// Addresses of frames number `first` to before `last`.
    pub(super) fn addresses(first: u32, last: u32) -> impl Iterator<Item = u64> {
        (first..last.min(FRAMES)).map(|number| u64::from(number) * u64::from(FRAME_BYTES))
    }

    /// Where the frame begins of which an address points to some byte.
    #[inline]
    pub(super) fn begin(address: u64) -> u64 {
        address - address % u64::from(FRAME_BYTES)
    }

    /// `length` bytes from `address` on; none when they are not all in the memory.
    ///
    /// # Safety
    /// The frame must not be the kernel's: popped from the receive ring and not yet
    /// pushed into the fill ring.
    #[inline]
    pub(super) unsafe fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let begin = Umem::inside(address, length)?;
        // SAFETY: inside the mapping, and by the caller's promise nobody writes to it.
        Some(unsafe { std::slice::from_raw_parts(self.base.add(begin), length) })
    }

    /// As [`Umem::bytes`], to be written to.
    ///
    /// # Safety
    /// The frame must not be the kernel's: never handed over, or come back through the
    /// completion ring.
    #[inline]
    pub(super) unsafe fn bytes_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let begin = Umem::inside(address, length)?;
        // SAFETY: inside the mapping; nobody else accesses it by the caller's promise,
        // and `&mut self` keeps a second reference away.
        Some(unsafe { std::slice::from_raw_parts_mut(self.base.add(begin), length) })
    }

    #[inline]
    fn inside(address: u64, length: usize) -> Option<usize> {
        let begin = usize::try_from(address).ok()?;
        (begin.checked_add(length)? <= Umem::BYTES).then_some(begin)
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: what `register` mapped. The kernel holds pages of its own reference
        // while frames are in flight.
        let _ = unsafe { munmap(self.base.cast(), Umem::BYTES) };
    }
}
