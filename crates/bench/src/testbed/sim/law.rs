//! The law by which the simulated device's capacity varies from run to run.
//!
//! It has no packets and no clock, so that thousands of runs can be drawn from it: the self-test of
//! the statistics and whole simulated experiments use the same law.
//!
//! A run's factor is `exp(noise x (sqrt(1-d) e + sqrt(d) a))`: `e` is standard normal, fresh for
//! every run; `a` is a stationary AR(1) series with lag-1 correlation `phi` along the order of
//! runs: a neighbour on the machine, a thermal drift. A degraded run, chosen at random, loses an
//! additional share: a bad start, such as an unlucky memory layout, which lasts until the next
//! start.

use fwdlab_model::settings::SimSettings;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Streams of deviates: runs count from 0 within each, and never reach the next.
const FRESH: u64 = 0;
const JITTER: u64 = 1 << 32;
const DEGRADED: u64 = 2 << 32;
const DRIFT: u64 = u64::MAX;

/// Factors on the capacity of consecutive runs.
///
/// The same settings and seed give the same factors. Contamination uses separate deviates: with and
/// without it, the runs that are not degraded are the same.
#[derive(Clone, Debug)]
pub struct RunLaw {
    noise: f64,
    drift: f64,
    phi: f64,
    contamination: f64,
    contamination_depth: f64,
    seed: u64,
    /// Index of the next run.
    index: u32,
    /// Drift of the next run, and the generator for later ones.
    drifted: f64,
    series: Xoshiro256StarStar,
}

impl RunLaw {
    /// Returns the law of `sim` from its first run on; `seed` is the seed of the plan's design.
    pub fn new(sim: &SimSettings, seed: u64) -> RunLaw {
        let mut series = generator(seed, DRIFT);
        RunLaw {
            noise: sim.noise,
            drift: sim.drift,
            phi: sim.phi,
            contamination: sim.contamination,
            contamination_depth: sim.contamination_depth,
            seed,
            index: 0,
            drifted: normal(&mut series),
            series,
        }
    }

    /// Returns the law of the same settings from run `index` on: continues from the current state,
    /// or starts again if `index` is behind it.
    pub(super) fn at(self, sim: &SimSettings, seed: u64, index: u32) -> RunLaw {
        let fresh = RunLaw::new(sim, seed);
        let is_same = self.index <= index
            && self.seed == seed
            && [self.noise, self.drift, self.phi] == [sim.noise, sim.drift, sim.phi]
            && self.contamination == sim.contamination
            && self.contamination_depth == sim.contamination_depth;
        let mut law = if is_same { self } else { fresh };
        law.skip(index - law.index);
        law
    }

    /// Draws the factor on the capacity of the next run (1 is the truth).
    pub fn factor(&mut self) -> f64 {
        let run = u64::from(self.index);
        let fresh = normal(&mut generator(self.seed, FRESH + run));
        let drift = self.drift;
        let deviate = (1.0 - drift).max(0.0).sqrt() * fresh + drift.sqrt() * self.drifted;
        let degraded = uniform(&mut generator(self.seed, DEGRADED + run)) < self.contamination;
        let lacking = if degraded { self.contamination_depth } else { 0.0 };
        self.skip(1);
        (self.noise * deviate).exp() * (1.0 - lacking)
    }

    /// Skips the next `runs` runs: a resumed experiment continues as if it had never stopped.
    pub fn skip(&mut self, runs: u32) {
        let innovation = (1.0 - self.phi * self.phi).max(0.0).sqrt();
        for _ in 0..runs {
            self.drifted = self.phi * self.drifted + innovation * normal(&mut self.series);
        }
        self.index = self.index.wrapping_add(runs);
    }
}

/// Returns the generator of the jitter within a run.
pub(super) fn jitter(seed: u64, run: u32) -> Xoshiro256StarStar {
    generator(seed, JITTER + u64::from(run))
}

/// Returns an independent generator for every (seed, stream): a run's deviates do not depend on the
/// number of deviates drawn before.
fn generator(seed: u64, stream: u64) -> Xoshiro256StarStar {
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Xoshiro256StarStar::seed_from_u64(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95))
}

/// Draws a uniform deviate between 0 and 1, both exclusive.
fn uniform(random: &mut Xoshiro256StarStar) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Draws a standard normal deviate (Box and Muller 1958).
pub(super) fn normal(random: &mut Xoshiro256StarStar) -> f64 {
    let (u, v) = (uniform(random), uniform(random));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: usize = 20_000;

    fn law(noise: f64, drift: f64, phi: f64, seed: u64) -> RunLaw {
        RunLaw::new(&SimSettings { noise, drift, phi, ..SimSettings::default() }, seed)
    }

    fn factors(mut law: RunLaw, runs: usize) -> Vec<f64> {
        (0..runs).map(|_| law.factor()).collect()
    }

    #[test]
    fn continued_law_equals_a_new_law_at_the_same_index() {
        let sim = SimSettings { drift: 0.5, contamination: 0.2, ..SimSettings::default() };
        let mut law = RunLaw::new(&sim, 7);
        for index in [0, 1, 5, 2, 2, 9] {
            let mut fresh = RunLaw::new(&sim, 7);
            fresh.skip(index);
            law = law.at(&sim, 7, index);
            assert_eq!(law.factor(), fresh.factor(), "run {index}");
        }
        assert_ne!(law.at(&sim, 8, 3).factor(), RunLaw::new(&sim, 7).at(&sim, 7, 3).factor());
    }

    #[test]
    fn deviates_are_standard_normal() {
        let mut random = Xoshiro256StarStar::seed_from_u64(7);
        let values: Vec<f64> = (0..20_000).map(|_| normal(&mut random)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn factors_of_a_seed_are_stable_across_versions() {
        let expected = [
            1.0634996174004305,
            0.9501113777080337,
            0.9841448557953755,
            1.0480069593317745,
            1.100932444563894,
        ];
        for (got, expected) in factors(law(0.05, 0.5, 0.8, 7), 5).into_iter().zip(expected) {
            assert!((got - expected).abs() < 1e-12, "{got} is not {expected}");
        }
    }

    #[test]
    fn skipped_runs_do_not_change_later_runs() {
        let all = factors(law(0.05, 0.5, 0.8, 7), 50);
        for (index, &factor) in all.iter().enumerate() {
            let mut resumed = law(0.05, 0.5, 0.8, 7);
            resumed.skip(index as u32);
            assert_eq!(resumed.factor(), factor, "run {index}");
        }
    }

    /// Correlation of the law at a lag: the share that drifts, times the correlation of the drift.
    fn correlation(drift: f64, phi: f64, lag: i32) -> f64 {
        if lag == 0 { 1.0 } else { drift * phi.powi(lag.abs()) }
    }

    /// Large-sample variance of the correlation estimated at `lag` (Bartlett 1946).
    fn bartlett(drift: f64, phi: f64, lag: i32) -> f64 {
        let rho = |lag| correlation(drift, phi, lag);
        let term = |k| rho(k + lag) + rho(k - lag) - 2.0 * rho(lag) * rho(k);
        (1..5_000).map(|k| term(k).powi(2)).sum::<f64>() / RUNS as f64
    }

    /// Variance, share and correlation of the drift agree with theory, each within four standard
    /// errors.
    #[test]
    fn noise_and_drift_follow_the_law() {
        for seed in [1, 20] {
            for drift in [0.0, 0.25, 0.5, 1.0] {
                for phi in [0.0, 0.5, 0.9] {
                    let factors = factors(law(0.02, drift, phi, seed), RUNS);
                    let deviates: Vec<f64> = factors.iter().map(|f| f.ln() / 0.02).collect();
                    let n = RUNS as f64;
                    // The law's mean is known to be 0.
                    let at = |lag: usize| {
                        let products = deviates.iter().zip(&deviates[lag..]).map(|(a, b)| a * b);
                        products.sum::<f64>() / n
                    };
                    let label = format!("drift {drift}, phi {phi}, seed {seed}");
                    let squares = (-5_000..5_000).map(|k| correlation(drift, phi, k).powi(2));
                    let error = (2.0 * squares.sum::<f64>() / n).sqrt();
                    let variance = at(0);
                    assert!((variance - 1.0).abs() < 4.0 * error, "{label}: variance {variance}");
                    for lag in 1..=3 {
                        let got = at(lag) / variance;
                        let expected = correlation(drift, phi, lag as i32);
                        let error = bartlett(drift, phi, lag as i32).sqrt();
                        assert!(
                            (got - expected).abs() < 4.0 * error,
                            "{label}: {got} at lag {lag}, not {expected} by {error}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn degraded_runs_match_the_law_in_share_and_depth() {
        for (contamination, seed) in [(0.0, 1), (0.04, 2), (0.25, 3), (0.5, 4)] {
            let clean = SimSettings { noise: 0.02, drift: 0.5, ..SimSettings::default() };
            let dirty = SimSettings { contamination, contamination_depth: 0.3, ..clean.clone() };
            let pairs: Vec<(f64, f64)> = factors(RunLaw::new(&clean, seed), RUNS)
                .into_iter()
                .zip(factors(RunLaw::new(&dirty, seed), RUNS))
                .collect();
            let degraded: Vec<bool> = pairs.iter().map(|(clean, dirty)| clean != dirty).collect();
            for (clean, dirty) in pairs.iter().filter(|(clean, dirty)| clean != dirty) {
                assert!((dirty / clean - 0.7).abs() < 1e-12, "{clean} {dirty}");
            }
            let n = RUNS as f64;
            let share = degraded.iter().filter(|&&bad| bad).count() as f64 / n;
            let error = (contamination * (1.0 - contamination) / n).sqrt();
            assert!((share - contamination).abs() <= 4.0 * error, "{share} of {contamination}");
            // Bad starts are independent of each other.
            let twice = degraded.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / n;
            let expected = contamination * contamination;
            let error = (expected * (1.0 - expected) / n).sqrt() * 2.0;
            assert!((twice - expected).abs() <= 4.0 * error, "{twice} of {expected}");
        }
    }
}
