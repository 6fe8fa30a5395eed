//! Rates of events that happen or not, with exact intervals.

use super::summary::Interval;
use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF};

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// How often it happened.
    pub hits: u64,
    /// Of how many times.
    pub of: u64,
}

impl Rate {
    /// The rate, 0 to 1; NaN of nothing.
    pub fn share(self) -> f64 {
        self.hits as f64 / self.of as f64
    }

    /// Interval of the true rate at `confidence` percent (Clopper and Pearson,
    /// 1934, Biometrika 26): covers at least that often. 0 to 1 of nothing.
    pub fn interval(self, confidence: f64) -> Interval {
        let tail = (1.0 - confidence / 100.0) / 2.0;
        let (hits, misses) = (self.hits as f64, self.of.saturating_sub(self.hits) as f64);
        let quantile = |a: f64, b: f64, p: f64| Beta::new(a, b).map(|beta| beta.inverse_cdf(p));
        // At the ends one parameter is 0, and the end is the end.
        Interval {
            low: quantile(hits, misses + 1.0, tail).unwrap_or(0.0),
            high: quantile(hits + 1.0, misses, 1.0 - tail).unwrap_or(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
