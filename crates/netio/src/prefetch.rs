//! Memory prefetching.
//!
//! Large tables are not in the caches. Code that knows the addresses of many lookups prefetches all
//! of them first, so that the accesses overlap.

/// Prefetches the cache line at this address. Does not block, is harmless for any address, and does
/// nothing on architectures other than x86-64.
#[inline(always)]
pub fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint: it makes no access that could fault, so any address is valid; SSE is part
        // of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address as *const i8) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetch_accepts_any_address() {
        [0, 1, 4096, usize::MAX].into_iter().for_each(prefetch);
        let lines = [[7u8; 64]; 4];
        prefetch(lines.as_ptr() as usize);
        assert_eq!(lines[0][0], 7);
    }
}
