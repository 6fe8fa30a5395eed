//! Steady state within one run: its start, and whether it is reached.
//!
//! Two steps. MSER proposes the end of a warm-up: the truncation at which the mean of the rest has
//! the smallest standard error (White, 1997, Simulation 69; Franklin and White, 2008, Winter
//! Simulation Conference). It is applied to single intervals, smoothed by a running median of
//! three, not to batches of five: runs have tens of intervals, not thousands. A single bad interval
//! at any place is not a warm-up: isolated outliers are smoothed first.
//!
//! MSER also proposes a truncation for pure noise, so the proposal counts only if the head differs
//! from the rest by more than a tolerance and by more than the noise can. Likewise the rest is
//! steady unless its halves, or one of its quarters and the others, differ by more than both. Noise
//! within a run is correlated: its long-run variance is the larger of two estimates from
//! differences of neighbours, in which slow drifts leave little trace: one from the AR(1) model
//! that fits them, one from means of batches.
//!
//! Out of scope: streams whose settings are switched while they run. Their slices are short, and
//! each has its own settling time, which is not counted.

use crate::summary::{mean, median, variance};
use serde::Serialize;

/// Minimum number of intervals for a result.
const MIN_INTERVALS: usize = 20;
/// Maximum share of a run that a warm-up may take. A run whose larger part is not steady has no
/// steady state.
const LONGEST_WARM_UP: f64 = 0.4;
/// Standard errors by which parts must differ. Much more than the 2 of a single comparison, because
/// the truncation maximises the difference and there are several quarters; calibrated on simulated
/// noise (see the tests).
const HEAD_ERRORS: f64 = 5.0;
const HALVES_ERRORS: f64 = 3.5;
const QUARTERS_ERRORS: f64 = 4.0;
/// The errors themselves are estimates: this number of intervals doubles them.
const UNCERTAIN_INTERVALS: f64 = 15.0;
/// Relative distance from the median of its neighbourhood, in units of the usual one, at which a
/// rate is a glitch: about six standard deviations of normal noise (a third of all rates equal that
/// median, so the usual distance is small).
const GLITCH: f64 = 25.0;
/// Maximum correlation of neighbours in the model: beyond it, tens of intervals are not enough, and
/// batches decide.
const MAX_PHI: f64 = 0.6;

/// Options for judging a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyOptions {
    /// Differences up to this share of the rate don't matter.
    pub tolerance: f64,
    /// True if the last interval is shorter than the others and is ignored.
    pub ignore_last: bool,
}

impl Default for SteadyOptions {
    fn default() -> Self {
        SteadyOptions { tolerance: 0.01, ignore_last: false }
    }
}

/// Steady state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Steady {
    /// First interval after the warm-up; 0 without a warm-up.
    pub from: usize,
    /// True if the run is steady from there on.
    pub reached: bool,
    /// Mean rate before over the mean rate from there on; 1 without a warm-up.
    pub head_ratio: f64,
    /// Difference of the two halves of the steady part that would have counted, as a ratio: the
    /// tolerance, or more if the noise hides more.
    pub tolerance: f64,
}

/// Judges a run by the rates of its intervals (all of one length, in any unit, at least 0). `None`
/// for fewer than 20 intervals, for rates that aren't finite or are below 0, and if nothing was
/// forwarded.
pub fn steady(rates: &[f64], options: SteadyOptions) -> Option<Steady> {
    let rates = &rates[..rates.len().saturating_sub(usize::from(options.ignore_last))];
    let usable = rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0);
    if rates.len() < MIN_INTERVALS || !usable || mean(rates) <= 0.0 {
        return None;
    }
    let smooth = running_median(rates);
    let values = without_glitches(rates, &smooth);
    let proposed = truncation(&smooth);
    let noise = Noise::of(&values, proposed);
    let is_steady = |from: usize| noise.is_steady(&values[from..], options.tolerance);
    let is_whole = !noise.is_head(&values, proposed, options.tolerance) && is_steady(0);
    let from = if is_whole { 0 } else { earliest(&values, proposed, options.tolerance, is_steady) };
    let (head, rest) = rates.split_at(from);
    let level = mean(rest);
    if level <= 0.0 {
        // The run came to a standstill: there is nothing to compare its beginning with.
        let tolerance = options.tolerance;
        return Some(Steady { from: 0, reached: false, head_ratio: 1.0, tolerance });
    }
    Some(Steady {
        from,
        reached: is_steady(from),
        head_ratio: if from == 0 { 1.0 } else { mean(head) / level },
        tolerance: noise.halves(rest.len(), level, options.tolerance) / level,
    })
}

/// Replaces each value by the median of itself and its neighbours.
fn running_median(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    (0..n)
        .map(|i| {
            let start = i.saturating_sub(1).min(n - 3);
            let (a, b, c) = (values[start], values[start + 1], values[start + 2]);
            a.max(b).min(a.min(b).max(c))
        })
        .collect()
}

/// Replaces every isolated outlier by its running median (Davies and Gather, 1993, Journal of the
/// American Statistical Association 88: the Hampel identifier).
fn without_glitches(rates: &[f64], medians: &[f64]) -> Vec<f64> {
    let off: Vec<f64> = rates.iter().zip(medians).map(|(rate, m)| (rate - m).abs()).collect();
    let usual = median(&off).unwrap_or(0.0);
    let clean = |i: usize| if off[i] > GLITCH * usual { medians[i] } else { rates[i] };
    (0..rates.len()).map(clean).collect()
}

/// MSER truncates too much if hardly anything varies: returns to the first interval from which all
/// are at the level of the rest, as long as the longer part is also steady.
fn earliest(
    values: &[f64],
    proposed: usize,
    tolerance: f64,
    is_steady: impl Fn(usize) -> bool,
) -> usize {
    let level = mean(&values[proposed..]);
    let before = values[..proposed].iter().rev();
    let same = before.take_while(|value| (*value - level).abs() <= tolerance * level).count();
    let from = proposed - same;
    if from > 0 && is_steady(from) { from } else { proposed }
}

/// Returns MSER's truncation: the number of values to drop so that the sum of squares of the rest
/// over the square of its length is smallest.
fn truncation(values: &[f64]) -> usize {
    let n = values.len();
    let longest = (LONGEST_WARM_UP * n as f64) as usize;
    let mut best = (f64::INFINITY, 0);
    for from in 0..=longest {
        let rest = &values[from..];
        let (count, centre) = (rest.len() as f64, mean(rest));
        let statistic = variance(rest, centre) * (count - 1.0) / (count * count);
        if statistic < best.0 {
            best = (statistic, from);
        }
    }
    best.1
}

/// The noise of a run's intervals.
struct Noise {
    /// Variance of the mean of n intervals, times n, for large n.
    long_run: f64,
    /// Factor by which errors are widened because they are estimates.
    widened: f64,
}

impl Noise {
    /// Returns the noise after removing the shape of a run. Two shapes are tried, a warm-up that
    /// ends at `proposed` and one step anywhere: each inflates the noise where it doesn't fit.
    fn of(rates: &[f64], proposed: usize) -> Noise {
        let n = rates.len();
        let rest = &rates[proposed..];
        let (before, after) = rates.split_at(step(rates));
        let (low, high) = (mean(before), mean(after));
        let level: Vec<f64> =
            before.iter().map(|r| r - low).chain(after.iter().map(|r| r - high)).collect();
        Noise {
            long_run: long_run_variance(rest).min(long_run_variance(&level)),
            widened: 1.0 + UNCERTAIN_INTERVALS / n as f64,
        }
    }

    /// Returns the standard error of the difference of two means over these numbers of intervals.
    fn error(&self, a: usize, b: usize) -> f64 {
        self.widened * (self.long_run / a as f64 + self.long_run / b as f64).sqrt()
    }

    fn is_head(&self, values: &[f64], from: usize, tolerance: f64) -> bool {
        let (head, rest) = values.split_at(from);
        let bound = HEAD_ERRORS * self.error(from, rest.len());
        from > 0 && (mean(head) - mean(rest)).abs() > bound.max(tolerance * mean(rest))
    }

    /// Returns the minimum difference of the halves of `n` intervals at `level` that counts.
    fn halves(&self, n: usize, level: f64, tolerance: f64) -> f64 {
        (HALVES_ERRORS * self.error(n / 2, n - n / 2)).max(tolerance * level)
    }

    fn is_steady(&self, values: &[f64], tolerance: f64) -> bool {
        let (n, level) = (values.len(), mean(values));
        let (first, second) = values.split_at(n / 2);
        if (mean(first) - mean(second)).abs() > self.halves(n, level, tolerance) {
            return false;
        }
        (0..4).all(|quarter| {
            let (from, to) = (quarter * n / 4, (quarter + 1) * n / 4);
            let others = [&values[..from], &values[to..]].concat();
            let bound = QUARTERS_ERRORS * self.error(to - from, others.len());
            (mean(&values[from..to]) - mean(&others)).abs() <= bound.max(tolerance * level)
        })
    }
}

/// Returns the best place of one step (least squares), at least two intervals from either end.
fn step(values: &[f64]) -> usize {
    let (n, sum) = (values.len(), values.iter().sum::<f64>());
    let (mut before, mut best) = (0.0, (f64::NEG_INFINITY, n / 2));
    for (i, value) in values.iter().enumerate() {
        if (2..=n - 2).contains(&i) {
            let (a, b) = (i as f64, (n - i) as f64);
            let gain = (before / a - (sum - before) / b).powi(2) * a * b;
            if gain > best.0 {
                best = (gain, i);
            }
        }
        before += value;
    }
    best.1
}

/// Returns the long-run variance: the variance of one interval, times the effect of correlation.
fn long_run_variance(values: &[f64]) -> f64 {
    let differences = differences_of(values);
    let scatter: f64 = differences.iter().map(|d| d * d).sum();
    if scatter <= 0.0 {
        return 0.0;
    }
    // Differences of an AR(1) process have the lag-1 correlation -(1 - phi) / 2.
    let lagged: f64 = differences.windows(2).map(|w| w[0] * w[1]).sum();
    let phi = (1.0 + 2.0 * lagged / scatter).clamp(0.0, MAX_PHI);
    let one = scatter / (differences.len() as f64 - 1.0);
    let by_model = one * (1.0 + phi) / (2.0 * (1.0 - phi).powi(2));
    // Ten batches: longer stretches show what the model misses.
    let size = (values.len() / 10).max(2);
    let batches: Vec<f64> = values.chunks_exact(size).map(mean).collect();
    let between = differences_of(&batches);
    let squares: f64 = between.iter().map(|d| d * d).sum();
    let by_batches = squares / (between.len() as f64 - 1.0) / 2.0 * size as f64;
    by_model.max(by_batches)
}

/// Returns the differences of neighbours minus their mean: a straight drift leaves none.
fn differences_of(values: &[f64]) -> Vec<f64> {
    let steps: Vec<f64> = values.windows(2).map(|w| w[1] - w[0]).collect();
    let drift = mean(&steps);
    steps.into_iter().map(|step| step - drift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// Returns noise of mean 1 with standard deviation `sd` and correlation `phi`.
    fn noise(n: usize, phi: f64, sd: f64, seed: u64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        let mut state = random.normal();
        (0..n)
            .map(|_| {
                state = phi * state + (1.0 - phi * phi).sqrt() * random.normal();
                1.0 + sd * state
            })
            .collect()
    }

    fn judged(rates: &[f64]) -> Steady {
        steady(rates, SteadyOptions::default()).unwrap()
    }

    /// Returns the share of 200 runs of `n` intervals with this shape over time (0 to 1) and noise
    /// that are judged as `what`.
    fn share(n: usize, sd: f64, shape: fn(f64) -> f64, what: fn(usize, Steady) -> bool) -> f64 {
        let hits = (0..200).filter(|&seed| {
            let mut rates = noise(n, 0.3, sd, seed);
            for (i, rate) in rates.iter_mut().enumerate() {
                *rate *= shape(i as f64 / n as f64);
            }
            what(n, judged(&rates))
        });
        hits.count() as f64 / 200.0
    }

    fn slow_third(t: f64) -> f64 {
        if t < 1.0 / 3.0 { 0.95 } else { 1.0 }
    }
    fn exponential(t: f64) -> f64 {
        1.0 - 0.2 * (-12.0 * t).exp()
    }
    fn step_in_the_middle(t: f64) -> f64 {
        if t < 0.5 { 1.0 } else { 0.95 }
    }
    fn drift(t: f64) -> f64 {
        1.0 + 0.1 * t
    }

    #[test]
    fn correlated_noise_is_steady() {
        for n in [20, 40, 100] {
            for phi in [0.0, 0.3, 0.6] {
                let alarms = (0..500).filter(|&seed| {
                    let found = judged(&noise(n, phi, 0.03, seed));
                    found.from > 0 || !found.reached
                });
                let alarms = alarms.count();
                assert!(alarms < 10, "{alarms} of 500 runs of {n} intervals, phi {phi}");
            }
        }
    }

    #[test]
    fn warm_up_is_detected_with_its_end() {
        let found = |n, sd, shape| share(n, sd, shape, |_, s| s.from > 0 && s.reached);
        assert!(found(30, 0.005, slow_third) > 0.85);
        assert!(found(100, 0.005, slow_third) > 0.99);
        assert!(found(100, 0.02, slow_third) > 0.85);
        assert!(found(100, 0.02, exponential) > 0.9);
        let right = |n: usize, s: Steady| s.from.abs_diff(n / 3) <= n / 12;
        assert!(share(100, 0.005, slow_third, right) > 0.95);
        let ratio = |_, s: Steady| (s.head_ratio - 0.95).abs() < 0.01;
        assert!(share(100, 0.005, slow_third, ratio) > 0.95);
    }

    #[test]
    fn unsettled_runs_are_not_steady() {
        let never = |n, sd, shape| share(n, sd, shape, |_, s| !s.reached);
        assert!(never(40, 0.005, step_in_the_middle) > 0.8);
        assert!(never(100, 0.005, step_in_the_middle) > 0.99);
        assert!(never(40, 0.005, drift) > 0.7);
        assert!(never(100, 0.005, drift) > 0.95);
        // Without noise nothing is hidden.
        assert!(never(20, 0.0, step_in_the_middle) == 1.0 && never(20, 0.0, drift) == 1.0);
    }

    #[test]
    fn single_slow_interval_is_not_a_warm_up() {
        for slow in [0, 1, 10, 39] {
            let mut rates = noise(40, 0.3, 0.01, 5);
            rates[slow] *= 0.3;
            let found = judged(&rates);
            assert_eq!((found.from, found.reached, found.head_ratio), (0, true, 1.0), "{slow}");
        }
    }

    #[test]
    fn small_and_hidden_differences_are_distinguished() {
        let quiet = judged(&noise(100, 0.0, 0.001, 1));
        assert_eq!(quiet.tolerance, 0.01);
        assert!(judged(&noise(100, 0.6, 0.1, 1)).tolerance > 0.05);
        let within: Vec<f64> = (0..100).map(|i| if i < 30 { 0.995 } else { 1.0 }).collect();
        assert_eq!(judged(&within).from, 0);
        let strict = SteadyOptions { tolerance: 0.001, ignore_last: false };
        assert_eq!(steady(&within, strict).unwrap().from, 30);
    }

    #[test]
    fn partial_last_interval_can_be_ignored() {
        let mut rates = vec![1e6; 25];
        rates.extend([0.4e6, 0.4e6]);
        let options = SteadyOptions { ignore_last: true, ..SteadyOptions::default() };
        assert!(steady(&rates[..26], options).unwrap().reached);
        assert!(!steady(&rates, SteadyOptions::default()).unwrap().reached);
        assert_eq!(steady(&rates[..20], options), None, "nineteen are too few");
    }

    #[test]
    fn invalid_rates_are_not_judged() {
        let judged = |rates: &[f64]| steady(rates, SteadyOptions::default());
        assert_eq!(judged(&[]), None);
        assert_eq!(judged(&[0.0; 50]), None);
        assert_eq!(judged(&[f64::NAN; 50]), None);
        assert_eq!(judged(&[-1.0; 50]), None);
        let mut stopped = vec![1.0; 20];
        stopped.extend([0.0; 30]);
        let stopped = judged(&stopped).unwrap();
        assert_eq!((stopped.from, stopped.reached, stopped.head_ratio), (0, false, 1.0));
    }
}
