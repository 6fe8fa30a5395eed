//! Asking for memory before it is needed.
//!
//! A table of megabytes is not in the caches. Whoever knows the places of many
//! lookups asks for all of them first, and waits for them together.

/// Asks for the cache line at this address: reads nothing, waits for nothing, and is
/// harmless whatever the address. It does nothing but on x86-64.
#[inline(always)]
pub fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint: no access that could fault, so any address will do; SSE
        // is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address as *const i8) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_will_do() {
        [0, 1, 4096, usize::MAX].into_iter().for_each(prefetch);
        let lines = [[7u8; 64]; 4];
        prefetch(lines.as_ptr() as usize);
        assert_eq!(lines[0][0], 7);
    }
}
