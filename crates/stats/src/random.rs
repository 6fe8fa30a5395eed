//! Random numbers for resampling and simulation: identical on every machine, from a stated seed.

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

    /// Returns a uniform number below `bound`, which is above 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Returns a uniform number in `0..1`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a standard normal number: the sum of twelve uniforms, close enough for tests.
    #[cfg(test)]
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Shuffles `values` (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for i in (1..values.len()).rev() {
            values.swap(i, self.below(i + 1));
        }
    }
}

/// Standard normal numbers (Box and Muller, 1958).
#[derive(Clone, Debug)]
pub(crate) struct NormalNumbers {
    random: SplitMix64,
    /// The unused second number of a pair.
    spare: Option<f64>,
}

impl NormalNumbers {
    pub(crate) fn seeded(seed: u64) -> NormalNumbers {
        NormalNumbers { random: SplitMix64::new(seed), spare: None }
    }

    pub(crate) fn next(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        // Above 0: the radius requires its logarithm.
        let radius = (-2.0 * (1.0 - self.random.unit()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.random.unit()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_matches_the_reference_implementation() {
        // The reference implementation in C (Vigna, 2015), seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn values_below_the_bound_are_equally_likely() {
        let mut random = SplitMix64::new(1);
        let mut counts = [0_u32; 6];
        (0..60_000).for_each(|_| counts[random.below(6)] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
    }

    #[test]
    fn shuffle_keeps_the_values() {
        let mut values: Vec<u32> = (0..50).collect();
        SplitMix64::new(1).shuffle(&mut values);
        assert_ne!(values[..3], [0, 1, 2]);
        values.sort_unstable();
        assert!(values.into_iter().eq(0..50));
    }

    #[test]
    fn normal_numbers_have_normal_moments() {
        let mut numbers = NormalNumbers::seeded(1);
        let n = 100_000;
        let mut sums = [0.0; 4];
        for _ in 0..n {
            let value = numbers.next();
            for (power, sum) in (1..).zip(&mut sums) {
                *sum += value.powi(power) / f64::from(n);
            }
        }
        // Five standard errors: of the k-th moment sqrt(E x^2k - (E x^k)^2) / sqrt(n).
        for (moment, (expected, error)) in
            sums.into_iter().zip([(0.0, 0.016), (1.0, 0.023), (0.0, 0.062), (3.0, 0.155)])
        {
            assert!((moment - expected).abs() < error, "{moment} is not {expected}");
        }
    }
}
