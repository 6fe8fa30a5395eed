//! Random numbers for resampling: the same on every machine, from a stated seed.

/// Steele, Lea and Flood's SplitMix64 (2014, *Fast splittable pseudorandom
/// number generators*): a counter and a mixing function, enough for resampling.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `bound`, which is above 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The reference implementation in C (Vigna, 2015), seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn every_value_below_the_bound_is_as_likely() {
        let mut random = SplitMix64::new(1);
        let mut counts = [0_u32; 6];
        (0..60_000).for_each(|_| counts[random.below(6)] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
    }
}
