//! Bit counting with dedicated CPU instructions.
//!
//! Programs are compiled for every CPU of their architecture. The first x86-64 CPUs had no
//! `popcnt`, so `u64::count_ones` becomes a dozen instructions in loops that do little else;
//! `leading_zeros` becomes several.

/// Calls `work`, compiled a second time for CPUs with `popcnt`, `lzcnt` and the shifts of BMI2
/// (Intel since 2013, AMD since 2015), and uses that version if the CPU supports them. The choice
/// costs some loads and a branch: wrap a batch, not a bit.
///
/// `work` gains nothing unless it is inlined: mark the functions it calls `#[inline(always)]`.
#[inline]
pub fn with_popcount<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as detected;
        if detected!("popcnt") && detected!("lzcnt") && detected!("bmi2") {
            // SAFETY: the CPU has these features, as just detected.
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
    fn with_popcount_calls_work_once() {
        let mut calls = 0;
        let ones = with_popcount(|| {
            calls += 1;
            0xf0f0_u64.count_ones()
        });
        assert_eq!((ones, calls), (8, 1));
    }
}
