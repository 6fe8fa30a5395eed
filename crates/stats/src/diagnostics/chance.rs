//! Probabilities by chance: p-values from seeded simulation.

use crate::random::SplitMix64;

/// Maximum number of simulations: the smallest p-value is one over this number plus one.
const SIMULATIONS: u32 = 1999;
/// Number of simulations that reach the observed value before the rest is skipped.
const ENOUGH: u32 = 20;
/// Seed of every simulation: equal figures give equal p-values.
const SEED: u64 = 1985;

/// Returns the p-value of `observed`, with `simulate` drawing from the null hypothesis: the share
/// of draws that reach it, including the observed one. Stops early once p is clearly not small
/// (Besag and Clifford, 1991, Biometrika 78), so only remarkable values cost all simulations.
pub(super) fn p_by_simulation(
    observed: f64,
    mut simulate: impl FnMut(&mut SplitMix64) -> f64,
) -> f64 {
    let mut random = SplitMix64::new(SEED);
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
            let p = p_by_simulation(1.0 - share, SplitMix64::unit);
            assert!((0.6..1.6).contains(&(p / share)), "{p} for {share}");
        }
        assert_eq!(p_by_simulation(2.0, SplitMix64::unit), 1.0 / 2000.0);
        assert_eq!(p_by_simulation(0.0, |_| 0.0), 1.0, "a tie counts");
    }
}
