//! Bit counting with the CPU's instructions for it.
//!
//! Programs are compiled for every CPU of their architecture. On x86-64 the
//! first of these had no `popcnt`, so `u64::count_ones` becomes a dozen
//! instructions, in a loop that does little else; `leading_zeros` becomes several.

/// Calls `work`, compiled once more for CPUs with `popcnt`, `lzcnt` and the shifts
/// of BMI2 (Intel since 2013, AMD since 2015), and uses that version where the CPU
/// has them. Choosing costs some loads and a branch: wrap a batch, not a bit.
///
/// `work` gains nothing unless it is inlined: mark what it calls
/// `#[inline(always)]`.
#[inline]
pub fn with_popcount<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as detected;
        if detected!("popcnt") && detected!("lzcnt") && detected!("bmi2") {
            // SAFETY: the CPU has these features, as was just found.
            return unsafe { x86_64(work) };
        }
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,lzcnt,bmi2")]
fn x86_64<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_done_once_and_its_result_handed_back() {
        let mut calls = 0;
        let ones = with_popcount(|| {
            calls += 1;
            0xf0f0_u64.count_ones()
        });
        assert_eq!((ones, calls), (8, 1));
    }
}
