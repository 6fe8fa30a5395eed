//! Huge pages for large tables.
//!
//! A random read from a large table in pages of 4 kB nearly always costs a page table walk; in a
//! virtual machine, two.

use rustix::mm::{Advice, madvise};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// Size of a huge page on most machines; others ignore advice about parts of their pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// `MADV_COLLAPSE` of Linux 6.1, which not every C library defines.
const MADV_COLLAPSE: libc::c_int = 25;

/// Requests huge pages for `table` when it is first written (madvise(2), `MADV_HUGEPAGE`): for
/// tables that may stay largely untouched.
///
/// Best effort: without free huge pages the kernel changes nothing.
pub fn prefer_huge_pages<T>(table: &[T]) {
    let bytes = size_of_val(table);
    let start = table.as_ptr() as usize;
    let first = start.next_multiple_of(HUGE_PAGE_BYTES);
    let last = (start + bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if first < last {
        // SAFETY: the range is within `table`, which is borrowed and therefore mapped; this advice
        // changes the kind of its pages, never their contents.
        let _ = unsafe { madvise(first as *mut c_void, last - first, Advice::LinuxHugepage) };
    }
}

/// Moves `table` into huge pages now (madvise(2), `MADV_COLLAPSE`): for tables that have been
/// written, wherever the allocator has put them. Takes some 0.2 ms per huge page. Small tables stay
/// in small pages.
///
/// Best effort; ignored before Linux 6.1.
pub fn move_to_huge_pages<T>(table: &[T]) {
    let bytes = size_of_val(table);
    if bytes < HUGE_PAGE_BYTES / 4 {
        return;
    }
    let start = table.as_ptr() as usize;
    let first = start / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    for page in (first..start + bytes).step_by(HUGE_PAGE_BYTES) {
        // One by one, because the first and the last may reach beyond the table into memory that
        // doesn't exist, which the kernel refuses.
        // SAFETY: this advice changes the kind of pages, never their contents, so other data in the
        // same huge page is not affected.
        let _ = unsafe { libc::madvise(page as *mut c_void, HUGE_PAGE_BYTES, MADV_COLLAPSE) };
    }
}

/// A fixed number of equal-sized values, in huge pages as far as possible. A block of at least one
/// huge page is aligned to one: at an allocator's address about half of a table of two megabytes
/// gets no huge page.
///
/// Best effort, too.
pub struct Block<T: Copy> {
    values: NonNull<T>,
    count: usize,
}

// SAFETY: it owns its values, as a boxed slice does.
unsafe impl<T: Copy + Send> Send for Block<T> {}
// SAFETY: shared, it only hands out shared references.
unsafe impl<T: Copy + Sync> Sync for Block<T> {}

impl<T: Copy> Block<T> {
    /// Creates a block of `count` copies of `value`.
    ///
    /// # Panics
    /// If the size is zero or exceeds the limits of an allocation.
    pub fn filled(value: T, count: usize) -> Block<T> {
        let layout = Block::<T>::layout(count);
        // SAFETY: the layout's size isn't 0.
        let values = unsafe { alloc(layout) }.cast::<T>();
        let Some(values) = NonNull::new(values) else { handle_alloc_error(layout) };
        if layout.align() == HUGE_PAGE_BYTES {
            let whole = layout.size() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
            // SAFETY: the range belongs to this block; the advice changes the kind of its pages.
            let _ = unsafe { madvise(values.as_ptr().cast(), whole, Advice::LinuxHugepage) };
        }
        for at in 0..count {
            // SAFETY: within the block, which is aligned for such values.
            unsafe { values.add(at).write(value) };
        }
        let block = Block { values, count };
        if layout.align() < HUGE_PAGE_BYTES {
            // Many small blocks share a huge page.
            move_to_huge_pages(&block);
        }
        block
    }

    fn layout(count: usize) -> Layout {
        let layout = Layout::array::<T>(count).ok().filter(|layout| layout.size() > 0);
        let layout = layout.expect("some values, of some size, that fit into memory");
        match layout.size() >= HUGE_PAGE_BYTES {
            true => layout.align_to(HUGE_PAGE_BYTES).expect("a power of two"),
            false => layout,
        }
    }
}

impl<T: Copy> Drop for Block<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and `Copy` values need no drop.
        unsafe { dealloc(self.values.as_ptr().cast(), Block::<T>::layout(self.count)) };
    }
}

impl<T: Copy> Deref for Block<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: all values are written, and borrowed with the block.
        unsafe { slice::from_raw_parts(self.values.as_ptr(), self.count) }
    }
}

impl<T: Copy> DerefMut for Block<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, exclusively.
        unsafe { slice::from_raw_parts_mut(self.values.as_ptr(), self.count) }
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Block<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_block_is_aligned_to_huge_page() {
        let pages = HUGE_PAGE_BYTES / 64;
        for (count, aligned) in [(1, false), (pages, true), (3 * pages + 1, true)] {
            let mut block = Block::filled([7u64; 8], count);
            assert_eq!(block.len(), count);
            let begin = block.as_ptr() as usize;
            assert!(!aligned || begin.is_multiple_of(HUGE_PAGE_BYTES), "{begin:x}");
            block[count - 1][3] = 8;
            let sum: u64 = block.iter().flatten().sum();
            assert_eq!(sum, 7 * 8 * count as u64 + 1);
        }
    }

    #[test]
    fn huge_pages_keep_table_contents() {
        for length in [0, 1, HUGE_PAGE_BYTES / 8, 3 * HUGE_PAGE_BYTES] {
            let table: Vec<u32> = (0..length as u32).collect();
            prefer_huge_pages(&table);
            move_to_huge_pages(&table);
            assert!(table.iter().enumerate().all(|(at, &value)| at == value as usize));
        }
    }
}
