//! The memory of a circuit: a header, three indices, slots.

use super::SLOTS_MAX;
use crate::NetioError;
use crate::frame::{BATCH, Frame};
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// First word of a circuit; changes with the layout.
const MAGIC: u32 = 0xf1ab_0001;

/// Selects the slot counter of one end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Index {
    /// The generator's.
    Fed,
    /// The router's.
    Passed,
    /// The sink's.
    Drained,
}

/// A counter on separate cache lines: processors fetch lines in pairs.
#[repr(C, align(128))]
struct Count(AtomicU32);

#[repr(C)]
struct Header {
    magic: AtomicU32,
    slots: AtomicU32,
    counts: [Count; 3],
}

#[repr(C)]
struct Slot {
    count: u32,
    frames: [Frame; BATCH],
}

/// The mapping of a circuit.
#[derive(Debug)]
pub(super) struct Memory {
    file: File,
    base: *mut u8,
    bytes: usize,
    slots: u32,
}

// SAFETY: the mapping lives as long as the value. Its contents are accessed by atomics, and by
// `slot`, whose callers (the three ends, each in one thread) never own the same slot at the same
// time.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

fn bytes_of(slots: u32) -> usize {
    size_of::<Header>() + slots as usize * size_of::<Slot>()
}

impl Memory {
    pub(super) fn new(slots: u32) -> Result<Memory, NetioError> {
        let failed = |e: rustix::io::Errno| NetioError::system("memory for a circuit", e);
        let file = memfd_create("fwdlab-circuit", MemfdFlags::CLOEXEC).map_err(failed)?;
        ftruncate(&file, bytes_of(slots) as u64).map_err(failed)?;
        let memory = Memory::map(file.into(), slots)?;
        memory.header().slots.store(slots, Ordering::Relaxed);
        memory.header().magic.store(MAGIC, Ordering::Release);
        Ok(memory)
    }

    pub(super) fn open(path: &Path) -> Result<Memory, NetioError> {
        let failed = |e: io::Error| NetioError::system(format!("opening {}", path.display()), e);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let length = fstat(&file).map_err(|e| failed(e.into()))?.st_size as usize;
        // The header contains the number of slots, but the file's length decides which memory may
        // be accessed.
        let slots = length.saturating_sub(size_of::<Header>()) / size_of::<Slot>();
        let no_circuit = || failed(io::Error::other("this is no circuit of fwdlab"));
        let slots = u32::try_from(slots).ok().filter(|slots| (1..=SLOTS_MAX).contains(slots));
        let slots = slots.filter(|&slots| bytes_of(slots) == length).ok_or_else(no_circuit)?;
        let memory = Memory::map(file, slots)?;
        let header = memory.header();
        let is_valid = header.magic.load(Ordering::Acquire) == MAGIC
            && header.slots.load(Ordering::Relaxed) == slots;
        if is_valid { Ok(memory) } else { Err(no_circuit()) }
    }

    fn map(file: File, slots: u32) -> Result<Memory, NetioError> {
        let bytes = bytes_of(slots);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses; the file has this length.
        let base = unsafe {
            mmap(null_mut(), bytes, access, MapFlags::SHARED | MapFlags::POPULATE, &file, 0)
        }
        .map_err(|e| NetioError::system("mapping a circuit", e))?;
        Ok(Memory { file, base: base.cast(), bytes, slots })
    }

    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header, page-aligned, of atomics only: any bytes are
        // valid, and others may change them.
        unsafe { &*self.base.cast::<Header>() }
    }

    #[inline]
    pub(super) fn index(&self, index: Index) -> u32 {
        self.header().counts[index as usize].0.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn set_index(&self, index: Index, value: u32) {
        self.header().counts[index as usize].0.store(value, Ordering::Release);
    }

    /// Returns the count and the frames of the slot at counter `at`.
    ///
    /// Only for the end that owns the slot.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(super) fn slot(&self, at: u32) -> (&mut u32, &mut [Frame; BATCH]) {
        let offset = size_of::<Header>() + (at % self.slots) as usize * size_of::<Slot>();
        // SAFETY: the slot is inside the mapping (reduced to `slots`, from which `map` computed the
        // length) and is aligned (the sizes of the header and of a slot are multiples of a frame's
        // alignment). Any bytes are a valid count and valid frames. The caller owns the slot
        // exclusively: the previous end released it with Release, and the caller observed that with
        // Acquire.
        let slot = unsafe { &mut *self.base.add(offset).cast::<Slot>() };
        (&mut slot.count, &mut slot.frames)
    }
}

const _: () = assert!(size_of::<Header>().is_multiple_of(align_of::<Slot>()));

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the range that `map` mapped, on drop of its only owner.
        let _ = unsafe { munmap(self.base.cast(), self.bytes) };
    }
}
