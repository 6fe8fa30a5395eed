//! Huge pages for large tables.
//!
//! A table that is read at random, in pages of 4 kB, costs a walk of the page
//! tables with nearly every read; in a virtual machine two of them.

use rustix::mm::{Advice, madvise};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// Size of a huge page on most machines; others ignore advice about parts of their pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// `MADV_COLLAPSE` of Linux 6.1, which not every C library names.
const MADV_COLLAPSE: libc::c_int = 25;

/// Asks for huge pages under `table` when it is first written (madvise(2),
/// `MADV_HUGEPAGE`): for tables of which much may stay untouched.
///
/// Best effort: a kernel without free huge pages changes nothing.
pub fn prefer_huge_pages<T>(table: &[T]) {
    let bytes = size_of_val(table);
    let start = table.as_ptr() as usize;
    let first = start.next_multiple_of(HUGE_PAGE_BYTES);
    let last = (start + bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if first < last {
        // SAFETY: the range lies within `table`, which is borrowed, so mapped; this
        // advice changes what the memory is made of, never what is in it.
        let _ = unsafe { madvise(first as *mut c_void, last - first, Advice::LinuxHugepage) };
    }
}

/// Moves `table` into huge pages now, as it is (madvise(2), `MADV_COLLAPSE`): for
/// tables that have been written, wherever the allocator had put them. Takes some
/// 0.2 ms for each of them. Tables that fit small pages well stay there.
///
/// Best effort too; ignored before Linux 6.1.
pub fn move_to_huge_pages<T>(table: &[T]) {
    let bytes = size_of_val(table);
    if bytes < HUGE_PAGE_BYTES / 4 {
        return;
    }
    let start = table.as_ptr() as usize;
    let first = start / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    for page in (first..start + bytes).step_by(HUGE_PAGE_BYTES) {
        // One by one, because the first and the last may reach over the table into
        // memory that doesn't exist, which the kernel refuses.
        // SAFETY: this advice changes what memory is made of, never what is in it, so
        // it doesn't matter whose memory lies in the same huge page.
        let _ = unsafe { libc::madvise(page as *mut c_void, HUGE_PAGE_BYTES, MADV_COLLAPSE) };
    }
}

/// As many values of a kind, in huge pages as far as possible. One that fills a huge page begins
/// where one does: where an allocator puts it, about half of a table of two megabytes finds none.
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
    /// `count` times the same.
    ///
    /// # Panics
    /// When that is nothing, or more than there can be.
    pub fn filled(value: T, count: usize) -> Block<T> {
        let layout = Block::<T>::layout(count);
        // SAFETY: the layout's size isn't 0.
        let values = unsafe { alloc(layout) }.cast::<T>();
        let Some(values) = NonNull::new(values) else { handle_alloc_error(layout) };
        if layout.align() == HUGE_PAGE_BYTES {
            let whole = layout.size() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
            // SAFETY: the range is this block's; the advice changes what its memory is made of.
            let _ = unsafe { madvise(values.as_ptr().cast(), whole, Advice::LinuxHugepage) };
        }
        for at in 0..count {
            // SAFETY: within the block, which is aligned for such values.
            unsafe { values.add(at).write(value) };
        }
        let block = Block { values, count };
        if layout.align() < HUGE_PAGE_BYTES {
            // Many of them lie beside each other.
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
        // SAFETY: allocated with this layout, and values that are copied need no end.
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
        // SAFETY: as above, by nobody else.
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
    fn a_block_begins_where_a_huge_page_does_if_it_fills_one() {
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
    fn tables_keep_what_is_in_them() {
        for length in [0, 1, HUGE_PAGE_BYTES / 8, 3 * HUGE_PAGE_BYTES] {
            let table: Vec<u32> = (0..length as u32).collect();
            prefer_huge_pages(&table);
            move_to_huge_pages(&table);
            assert!(table.iter().enumerate().all(|(at, &value)| at == value as usize));
        }
    }
}
