//! Rates of binary events, with exact intervals for independent events and intervals over runs for
//! events that occur in groups.

use crate::summary::{Interval, t_quantile};
use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF, Gamma, Normal};

/// Number of events among a number of trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Number of events.
    pub hits: u64,
    /// Number of trials.
    pub of: u64,
}

impl Rate {
    /// Returns the rate, 0 to 1; NaN without trials.
    pub fn share(self) -> f64 {
        self.hits as f64 / self.of as f64
    }

    /// Returns the interval of the true rate at `confidence` percent (Clopper and Pearson, 1934,
    /// Biometrika 26), which covers at least that often. 0 to 1 without trials.
    ///
    /// Beyond 50,000 trials, where the library's quantile does not always terminate, the interval
    /// uses its limits: Poisson's for rare events (wider by at most a fiftieth), otherwise the
    /// normal's with continuity correction (Wilson; equal to four digits of the width).
    pub fn interval(self, confidence: f64) -> Interval {
        let tail = (1.0 - confidence / 100.0) / 2.0;
        if self.of > MANY {
            return self.interval_of_many(tail);
        }
        let (hits, misses) = (self.hits as f64, self.of.saturating_sub(self.hits) as f64);
        let quantile = |a: f64, b: f64, p: f64| Beta::new(a, b).map(|beta| beta.inverse_cdf(p));
        // At the ends one parameter is 0, and the bound is the end.
        Interval {
            low: quantile(hits, misses + 1.0, tail).unwrap_or(0.0),
            high: quantile(hits + 1.0, misses, 1.0 - tail).unwrap_or(1.0),
        }
    }
}

/// Returns the interval at `confidence` percent of the rate of events that come in groups, such as
/// lost packets in runs: from the scatter between the groups, with Student's t and the linearised
/// variance of a ratio (Cochran, *Sampling Techniques*, section 6.3). Packets of one run are lost
/// together, so they are not replicates: the scatter of real trials is two thousand times the
/// scatter of independent packets.
///
/// `None` with fewer than two groups, and if no group scatters: nothing is known then.
pub fn interval_over_groups(groups: &[Rate], confidence: f64) -> Option<Interval> {
    let n = groups.len() as f64;
    let sum = |of: fn(&Rate) -> u64| groups.iter().map(of).sum::<u64>() as f64;
    let (hits, of) = (sum(|group| group.hits), sum(|group| group.of));
    if groups.len() < 2 || of == 0.0 {
        return None;
    }
    let share = hits / of;
    let residuals = groups.iter().map(|group| group.hits as f64 - share * group.of as f64);
    let squares: f64 = residuals.map(|residual| residual * residual).sum();
    let error = (squares / (n - 1.0) * n).sqrt() / of;
    let half = t_quantile(confidence, n - 1.0)? * error;
    (half > 0.0).then(|| Interval { low: (share - half).max(0.0), high: (share + half).min(1.0) })
}

/// Number of trials from which on limits replace the exact interval.
const MANY: u64 = 50_000;
/// Number of events that counts as rare among so many trials.
const RARE: u64 = 2000;

impl Rate {
    fn interval_of_many(self, tail: f64) -> Interval {
        let misses = self.of.saturating_sub(self.hits);
        if misses < self.hits {
            let Interval { low, high } = Rate { hits: misses, of: self.of }.interval_of_many(tail);
            return Interval { low: 1.0 - high, high: 1.0 - low };
        }
        let (n, hits) = (self.of as f64, self.hits as f64);
        if self.hits <= RARE {
            let events = |shape: f64, p: f64| {
                Gamma::new(shape, 1.0).map_or(f64::NAN, |gamma| gamma.inverse_cdf(p))
            };
            let low = if self.hits == 0 { 0.0 } else { events(hits, tail) / n };
            return Interval { low, high: (events(hits + 1.0, 1.0 - tail) / n).min(1.0) };
        }
        let z = Normal::standard().inverse_cdf(1.0 - tail);
        let bound = |sign: f64| {
            // Newcombe, 1998, Statistics in Medicine 17, method 4.
            let p = hits / n;
            let inner = z * z + 2.0 * sign - 1.0 / n + 4.0 * p * (n * (1.0 - p) - sign);
            (2.0 * n * p + z * z + sign * (1.0 + z * inner.max(0.0).sqrt())) / (2.0 * (n + z * z))
        };
        Interval { low: bound(-1.0).max(0.0), high: bound(1.0).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_over_runs_reflects_their_scatter() {
        let runs = |hits: &[u64]| -> Vec<Rate> {
            hits.iter().map(|&hits| Rate { hits, of: 10_000 }).collect()
        };
        // 1, 2 and 3 %: mean 2 %, standard error 0.577 %, t with two degrees of freedom 4.303.
        let found = interval_over_groups(&runs(&[100, 200, 300]), 95.0).expect("an interval");
        assert!(
            (found.low - 0.0).abs() < 1e-12 && (found.high - 0.04484).abs() < 1e-4,
            "{found:?}"
        );
        // A hundred times as wide as for independent packets.
        let few = interval_over_groups(&runs(&[100; 2]), 95.0);
        assert_eq!((few, interval_over_groups(&runs(&[100]), 95.0)), (None, None));
        let unequal = [Rate { hits: 10, of: 1000 }, Rate { hits: 100, of: 10_000 }];
        assert_eq!(interval_over_groups(&unequal, 95.0), None);
    }

    #[test]
    fn many_trials_have_a_fast_and_nearly_exact_interval() {
        // The library's own interval, where it terminates.
        let exact = |hits: f64, of: f64, tail: f64| {
            let low = Beta::new(hits, of - hits + 1.0).unwrap().inverse_cdf(tail);
            (low, Beta::new(hits + 1.0, of - hits).unwrap().inverse_cdf(1.0 - tail))
        };
        for (hits, of) in [(3, 60_000), (500, 60_000), (2500, 60_000), (20_000, 60_000)] {
            let Interval { low, high } = Rate { hits, of }.interval(95.0);
            let (exact_low, exact_high) = exact(hits as f64, of as f64, 0.025);
            let width = exact_high - exact_low;
            let off = (low - exact_low).abs().max((high - exact_high).abs());
            assert!(off < 0.02 * width, "{hits} of {of}: {low} {high}, {exact_low} {exact_high}");
            let mirrored = Rate { hits: of - hits, of }.interval(95.0);
            assert!((mirrored.low - (1.0 - high)).abs() < 1e-12);
        }
        for hits in [0, 1, 1_000_000, 41_300_000, 60_000_000] {
            let rate = Rate { hits, of: 60_000_000 };
            let Interval { low, high } = rate.interval(95.0);
            assert!(low <= rate.share() && rate.share() <= high && high - low < 3e-4, "{hits}");
        }
    }

    #[test]
    fn intervals_agree_with_scipy() {
        // scipy 1.17.1: binomtest(hits, of).proportion_ci(.95, 'exact').
        for (hits, of, low, high) in [
            (5, 100, 0.016431879181728278, 0.11283491110546288),
            (0, 20, 0.0, 0.16843347098308548),
            (20, 20, 0.8315665290169145, 1.0),
            (1000, 20_000, 0.04702009046424111, 0.05311156794171554),
        ] {
            let Interval { low: ours_low, high: ours_high } = Rate { hits, of }.interval(95.0);
            assert!((ours_low - low).abs() < 1e-8, "{hits} of {of}: {ours_low} is not {low}");
            assert!((ours_high - high).abs() < 1e-8, "{hits} of {of}: {ours_high} is not {high}");
        }
        let nothing = Rate::default().interval(95.0);
        assert_eq!((nothing.low, nothing.high), (0.0, 1.0));
    }
}
