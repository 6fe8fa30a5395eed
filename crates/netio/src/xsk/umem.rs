//! Memory for frames that is shared with the kernel (UMEM).

use crate::NetioError;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::sockopt::set_xdp_umem_reg;
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};
use std::os::fd::OwnedFd;
use std::ptr::null_mut;

/// Frames of an UMEM.
pub(super) const FRAMES: u32 = 4096;
/// Bytes of each frame. The kernel keeps the first 256 free in received frames.
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
    /// For example, if the memory exceeds the limit for locked memory (`ulimit -l`).
    pub(super) fn register(socket: &OwnedFd) -> Result<Umem, NetioError> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping at an address that the kernel chooses.
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

    /// Returns the addresses of the frames with numbers in `first..last`.
    pub(super) fn addresses(first: u32, last: u32) -> impl Iterator<Item = u64> {
        (first..last.min(FRAMES)).map(|number| u64::from(number) * u64::from(FRAME_BYTES))
    }

    /// Returns the beginning of the frame that contains an address.
    #[inline]
    pub(super) fn begin(address: u64) -> u64 {
        address - address % u64::from(FRAME_BYTES)
    }

    /// Returns `length` bytes from `address` on; `None` if they are not all inside the memory.
    ///
    /// # Safety
    /// The kernel must not own the frame: it was popped from the receive ring and not yet pushed
    /// into the fill ring.
    #[inline]
    pub(super) unsafe fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let begin = Umem::inside(address, length)?;
        // SAFETY: inside the mapping, and the caller guarantees that no one writes to it.
        Some(unsafe { std::slice::from_raw_parts(self.base.add(begin), length) })
    }

    /// Like [`Umem::bytes`], for writing.
    ///
    /// # Safety
    /// The kernel must not own the frame: never handed over, or returned through the completion
    /// ring.
    #[inline]
    pub(super) unsafe fn bytes_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let begin = Umem::inside(address, length)?;
        // SAFETY: inside the mapping; the caller guarantees exclusive access, and `&mut self`
        // prevents a second reference.
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
        // SAFETY: the range that `register` mapped. The kernel holds its own references to pages
        // while frames are in flight.
        let _ = unsafe { munmap(self.base.cast(), Umem::BYTES) };
    }
}
