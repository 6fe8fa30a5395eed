//! A BPF array map as memory: counters are read without a system call and without disturbing the
//! CPU that writes them.

use crate::NetioError;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::ptr;

/// `len` values of `T`, shared with a BPF program (`BPF_F_MMAPABLE`).
#[derive(Debug)]
pub(crate) struct Mapped<T> {
    base: *mut T,
    len: usize,
    bytes: usize,
    kind: PhantomData<T>,
}

// SAFETY: the pointer is to a shared kernel mapping that outlives every use
// (unmapped on drop only); all access is by volatile reads and writes of plain
// integers, which any thread may do.
unsafe impl<T: Send> Send for Mapped<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Mapped<T> {}

impl<T: Copy> Mapped<T> {
    /// Maps an array of `len` values. The map must have been created with
    /// values of `T`'s size (a multiple of 8, so that the kernel adds no gaps).
    ///
    /// # Errors
    /// If the kernel refuses the mapping.
    pub(crate) fn new(map: impl AsFd, len: usize) -> Result<Mapped<T>, NetioError> {
        assert!(size_of::<T>().is_multiple_of(8));
        let page = rustix::param::page_size();
        let bytes = (size_of::<T>() * len).next_multiple_of(page);
        // SAFETY: a new mapping at an address that the kernel chooses; it
        // replaces nothing.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map,
                0,
            )
        }
        .map_err(|e| NetioError::system("mapping a BPF array (mmap)", e))?;
        Ok(Mapped { base: base.cast(), len, bytes, kind: PhantomData })
    }

    /// Returns a pointer to value `index`, for volatile access to its fields.
    pub(crate) fn at(&self, index: usize) -> *mut T {
        assert!(index < self.len);
        self.base.wrapping_add(index)
    }

    /// Returns a copy of value `index`; fields may be from slightly different moments.
    pub(crate) fn read(&self, index: usize) -> T {
        // SAFETY: `at` gives a pointer inside the mapping, aligned because the
        // mapping is page-aligned and T's size is a multiple of its alignment;
        // every bit pattern is a valid T (plain integers).
        unsafe { self.at(index).read_volatile() }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `new` mapped; no reference to it is
        // ever handed out, only raw pointers used within methods of the owner.
        let _ = unsafe { munmap(self.base.cast(), self.bytes) };
    }
}
