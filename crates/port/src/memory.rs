//! Huge pages for large tables.
//!
//! A table that is read at random, in pages of 4 kB, costs a walk of the page
//! tables with nearly every read; in a virtual machine two of them.

use rustix::mm::{Advice, madvise};
use std::ffi::c_void;

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

#[cfg(test)]
mod tests {
    use super::*;

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
