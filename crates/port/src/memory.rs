//! What the kernel is told about big tables.

use rustix::mm::{Advice, madvise};
use std::ffi::c_void;

/// Below this the kernel has no huge page to give.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks for huge pages under `table` (madvise(2), `MADV_HUGEPAGE`): a table of
/// 64 MB that is read at random otherwise costs a walk of the page tables with
/// nearly every read. Best asked before the table is first written.
///
/// It is a wish: a kernel without huge pages, or without any free, changes
/// nothing, and small tables aren't mentioned to it at all.
pub fn prefer_huge_pages<T>(table: &[T]) {
    let bytes = size_of_val(table);
    if bytes < 2 * HUGE_PAGE_BYTES {
        return;
    }
    let start = table.as_ptr() as usize;
    let first = start.next_multiple_of(HUGE_PAGE_BYTES);
    let last = (start + bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    // SAFETY: the range lies within `table`, which is borrowed, so mapped; this
    // advice changes what the memory is made of, never what is in it.
    let _ = unsafe { madvise(first as *mut c_void, last - first, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_what_is_in_them() {
        for length in [0, 1, HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES] {
            let table: Vec<u32> = (0..length as u32).collect();
            prefer_huge_pages(&table);
            assert!(table.iter().enumerate().all(|(at, &value)| at == value as usize));
        }
    }
}
