//! Rings shared with the kernel: one side produces, the other consumes.

use crate::NetioError;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// Descriptors of every ring: the rings' memory depends on it, and 2048 of them hold half a
/// millisecond of 4 million frames a second.
pub(super) const RING: u32 = 2048;

const _: () = assert!(RING.is_power_of_two());

/// A ring in the kernel's layout.
#[derive(Debug)]
struct Mapping<T> {
    base: *mut u8,
    bytes: usize,
    offsets: XdpRingOffset,
    kind: PhantomData<T>,
}

// SAFETY: the mapping belongs to this value alone and has no ties to a thread; the kernel and the
// methods access it by atomic indices.
unsafe impl<T: Send> Send for Mapping<T> {}

impl<T: Copy> Mapping<T> {
    fn new(socket: &OwnedFd, offsets: XdpRingOffset, at: u64) -> Result<Mapping<T>, NetioError> {
        let bytes = offsets.desc as usize + RING as usize * size_of::<T>();
        let (access, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address that the kernel chooses, of the size that the
        // kernel's own offsets give for RING descriptors.
        let base = unsafe { mmap(null_mut(), bytes, access, flags, socket, at) }
            .map_err(|e| NetioError::system("mapping an AF_XDP ring", e))?;
        Ok(Mapping { base: base.cast(), bytes, offsets, kind: PhantomData })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: only called with the kernel's offsets of 4-byte aligned u32 inside the
        // mapping, which lives as long as `self`; both sides access them atomically.
        unsafe { &*self.base.add(offset as usize).cast() }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offsets.consumer)
    }

    fn slot(&self, index: u32) -> *mut T {
        let at = self.offsets.desc as usize + (index % RING) as usize * size_of::<T>();
        // SAFETY: index is reduced to the ring, so the slot is inside the mapping.
        unsafe { self.base.add(at).cast() }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: the range that `new` mapped, on drop of its only owner.
        let _ = unsafe { munmap(self.base.cast(), self.bytes) };
    }
}

/// A ring that this program fills: the transmit or the fill ring.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Mapping<T>,
    /// Number of descriptors pushed so far, modulo 2^32; those after the ring's own index are not
    /// published yet.
    head: u32,
    /// Number of descriptors consumed by the kernel at the last check.
    tail: u32,
}

impl<T: Copy> Producer<T> {
    /// Maps the ring at file offset `at`.
    pub(super) fn map(
        socket: &OwnedFd,
        offsets: XdpRingOffset,
        at: u64,
    ) -> Result<Producer<T>, NetioError> {
        let ring = Mapping::new(socket, offsets, at)?;
        let (head, tail) =
            (ring.producer().load(Ordering::Relaxed), ring.consumer().load(Ordering::Relaxed));
        Ok(Producer { ring, head, tail })
    }

    /// Writes a descriptor, which the kernel sees after [`Producer::publish`]; false if the ring is
    /// full.
    #[inline]
    pub(super) fn push(&mut self, descriptor: T) -> bool {
        if self.head.wrapping_sub(self.tail) >= RING {
            self.tail = self.ring.consumer().load(Ordering::Acquire);
            if self.head.wrapping_sub(self.tail) >= RING {
                return false;
            }
        }
        // SAFETY: the kernel has consumed the previous descriptor in this slot, and reads the slot
        // again only after it is published.
        unsafe { self.ring.slot(self.head).write_volatile(descriptor) };
        self.head = self.head.wrapping_add(1);
        true
    }

    /// Publishes pushed descriptors to the kernel.
    #[inline]
    pub(super) fn publish(&mut self) {
        self.ring.producer().store(self.head, Ordering::Release);
    }

    /// Returns the number of published descriptors that the kernel has not consumed yet.
    #[inline]
    pub(super) fn pending(&mut self) -> u32 {
        self.tail = self.ring.consumer().load(Ordering::Acquire);
        self.head.wrapping_sub(self.tail)
    }

    /// True if the kernel reads the ring only after a system call: always in copy mode, otherwise
    /// while the device sleeps.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        let Some(offset) = self.ring.offsets.flags else { return true };
        let flags = self.ring.word(offset).load(Ordering::Relaxed);
        flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }
}

/// A ring that the kernel fills: the receive or the completion ring.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Mapping<T>,
    /// Number of descriptors popped so far, modulo 2^32.
    tail: u32,
    /// Number of descriptors produced by the kernel at the last check.
    head: u32,
}

impl<T: Copy> Consumer<T> {
    /// Maps the ring at file offset `at`.
    pub(super) fn map(
        socket: &OwnedFd,
        offsets: XdpRingOffset,
        at: u64,
    ) -> Result<Consumer<T>, NetioError> {
        let ring = Mapping::new(socket, offsets, at)?;
        let tail = ring.consumer().load(Ordering::Relaxed);
        Ok(Consumer { ring, tail, head: tail })
    }

    /// Reads a descriptor; `None` if the ring is empty.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the kernel has filled this slot and does not write it until it is released.
        let descriptor = unsafe { self.ring.slot(self.tail).read_volatile() };
        self.tail = self.tail.wrapping_add(1);
        Some(descriptor)
    }

    /// True if there is nothing to pop.
    #[inline]
    pub(super) fn is_empty(&mut self) -> bool {
        if self.head == self.tail {
            self.head = self.ring.producer().load(Ordering::Acquire);
        }
        self.head == self.tail
    }

    /// Returns the slots of popped descriptors to the kernel.
    #[inline]
    pub(super) fn release(&mut self) {
        self.ring.consumer().store(self.tail, Ordering::Release);
    }
}
