//! How often chance alone does as much: p-values by seeded simulation.

/// Simulations at most: the smallest p-value is one over this and one more.
const SIMULATIONS: u32 = 1999;
/// Simulations that reach the observed value before the rest is spared.
const ENOUGH: u32 = 20;
/// Seed of every simulation: the same figures give the same p-value.
const SEED: u64 = 1985;

/// Splitmix64 (Steele, Lea and Flood, 2014, "Fast splittable pseudorandom
/// number generators").
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform from 0 up to, not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts `values` into a random order (Fisher and Yates).
    pub(crate) fn shuffle(&mut self, values: &mut [f64]) {
        for i in (1..values.len()).rev() {
            values.swap(i, (self.unit() * (i + 1) as f64) as usize);
        }
    }

    /// Standard normal: the sum of twelve uniforms, near enough for tests.
    #[cfg(test)]
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// p-value of `observed` where `simulate` draws from the null hypothesis: the
/// share of draws that reach it, the observed one among them. Stops early once
/// it is clear that p is not small (Besag and Clifford, 1991, Biometrika 78),
/// so that only what is remarkable costs all simulations.
pub(super) fn p_by_simulation(observed: f64, mut simulate: impl FnMut(&mut Random) -> f64) -> f64 {
    let mut random = Random(SEED);
    // A tie that rounding broke is a tie.
    let reached = observed - 1e-12 * observed.abs();
    let mut as_much = 0;
    for drawn in 1..=SIMULATIONS {
        if simulate(&mut random) >= reached {
            as_much += 1;
        }
        if as_much == ENOUGH {
            return f64::from(ENOUGH) / f64::from(drawn);
        }
    }
    f64::from(as_much + 1) / f64::from(SIMULATIONS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_the_share_of_draws() {
        for share in [0.3, 0.05, 0.01] {
            let p = p_by_simulation(1.0 - share, Random::unit);
            assert!((0.6..1.6).contains(&(p / share)), "{p} for {share}");
        }
        assert_eq!(p_by_simulation(2.0, Random::unit), 1.0 / 2000.0);
        assert_eq!(p_by_simulation(0.0, |_| 0.0), 1.0, "a tie counts");
    }

    #[test]
    fn shuffling_keeps_the_values() {
        let mut values: Vec<f64> = (0..50).map(f64::from).collect();
        Random(1).shuffle(&mut values);
        assert_ne!(values[..3], [0.0, 1.0, 2.0]);
        values.sort_by(f64::total_cmp);
        assert!(values.iter().zip(0..).all(|(v, i)| *v == f64::from(i)));
    }
}
