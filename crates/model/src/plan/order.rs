//! Random order of runs: own draws from a specified generator, so that a seed gives the same order
//! in every version.

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Consecutive shuffles from a seed.
pub(super) struct Order(Xoshiro256StarStar);

impl Order {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256StarStar::seed_from_u64(seed))
    }

    /// Creates the order of one cycle of an alternation: every cycle of every run has its own.
    pub(super) fn of_cycle(seed: u64, run: u32, cycle: u32) -> Self {
        // Odd multipliers keep different pairs apart; the generator's own seeding mixes.
        let pair = u64::from(run) << 32 | u64::from(cycle);
        Self::new(seed ^ pair.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns a random permutation of 0 .. n (Fisher and Yates; Knuth, volume 2, algorithm P).
    pub(super) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut out: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            out.swap(i, self.below(i as u64 + 1) as usize);
        }
        out
    }

    /// Returns a uniform draw from 0 .. n without the bias of a remainder: draws from the
    /// incomplete last round are repeated.
    fn below(&mut self, n: u64) -> u64 {
        let rest = (u64::MAX % n + 1) % n;
        loop {
            let draw = self.0.next_u64();
            if draw <= u64::MAX - rest {
                return draw % n;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_stable_between_versions() {
        let mut order = Order::new(1);
        let got: Vec<Vec<usize>> = (0..4).map(|_| order.permutation(6)).collect();
        let expected =
            [[3, 5, 4, 0, 2, 1], [2, 0, 3, 5, 1, 4], [4, 3, 2, 5, 0, 1], [4, 2, 5, 3, 0, 1]];
        assert_eq!(got, expected);
    }

    #[test]
    fn every_permutation_is_equally_likely() {
        let mut order = Order::new(7);
        let mut counts = std::collections::BTreeMap::new();
        let draws = 24_000;
        for _ in 0..draws {
            *counts.entry(order.permutation(4)).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        // Chi squared with 23 degrees of freedom exceeds 49.7 once in a thousand seeds.
        let expected = f64::from(draws) / 24.0;
        let chi2: f64 =
            counts.values().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        assert!(chi2 < 49.7, "{chi2}");
    }
}
