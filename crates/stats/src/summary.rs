//! Summary statistics of one list of figures.

use crate::student;
use serde::Serialize;

/// Summary of a list of figures, in their unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of figures.
    pub n: usize,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Median; the mean of the two middle ones when `n` is even.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (n - 1), in two passes; `None` for one figure.
    pub sd: Option<f64>,
}

/// A closed interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Summary {
    /// Summarises `values`; `None` if there are none or one isn't finite.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let sorted = sorted_finite(values)?;
        let n = sorted.len();
        let mean = mean(values);
        Some(Summary {
            n,
            min: sorted[0],
            max: sorted[n - 1],
            median: median_of_sorted(&sorted),
            mean,
            sd: (n > 1).then(|| variance(values, mean).sqrt()),
        })
    }

    /// Returns the coefficient of variation (0.01 = 1 %); `None` for one figure or a mean of 0.
    pub fn cv(&self) -> Option<f64> {
        self.sd.filter(|_| self.mean != 0.0).map(|sd| sd / self.mean.abs())
    }

    /// Returns Student's t interval of the mean at `confidence` percent; `None` for one figure.
    pub fn mean_interval(&self, confidence: f64) -> Option<Interval> {
        let half = t_quantile(confidence, self.n as f64 - 1.0)? * self.sd? / (self.n as f64).sqrt();
        Some(Interval { low: self.mean - half, high: self.mean + half })
    }
}

/// Minimum number of values: with fewer, an interval by Student's t would span decades.
const LEAST_VALUES: usize = 3;

/// Returns the geometric mean, and its interval at `confidence` percent by Student's t on
/// logarithms, if there are at least three values. `None` if there are no values, or one isn't
/// positive.
pub fn geometric_mean(values: &[f64], confidence: f64) -> Option<(f64, Option<Interval>)> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let summary = Summary::of(&logs)?;
    let enough = Some(summary).filter(|summary| summary.n >= LEAST_VALUES);
    let interval = enough.and_then(|summary| summary.mean_interval(confidence));
    let interval =
        interval.map(|Interval { low, high }| Interval { low: low.exp(), high: high.exp() });
    Some((summary.mean.exp(), interval))
}

/// Returns the median (mean of the two middle values for an even number); `None` if there are none
/// or one isn't finite.
pub fn median(values: &[f64]) -> Option<f64> {
    sorted_finite(values).map(|sorted| median_of_sorted(&sorted))
}

/// Returns the quantile at `p` (0 to 1) by linear interpolation: type 7 of Hyndman and Fan (1996),
/// the default of R and numpy. `None` if there are no values or one isn't finite.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let sorted = sorted_finite(values)?;
    let position = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    Some(sorted[below] + (position - below as f64) * (sorted[above] - sorted[below]))
}

/// Returns the distribution-free interval of the median at `confidence` percent: the pair of order
/// statistics with the smallest sufficient coverage under the binomial(n, 1/2) (David and Nagaraja,
/// *Order Statistics*, section 7.1). `None` if even the extremes don't cover: six values are needed
/// at 95 %.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let sorted = sorted_finite(values)?;
    let n = sorted.len();
    let tail = (1.0 - confidence / 100.0) / 2.0;
    // P(fewer than k values are below the median), summed in logarithms so that large n doesn't
    // underflow.
    let mut log_choose = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut k = 0;
    loop {
        below += log_choose.exp();
        // At 75 %, one of eight is the tail, despite the rounding of logarithms.
        if below > tail + 1e-12 {
            break;
        }
        k += 1;
        log_choose += ((n - k + 1) as f64 / k as f64).ln();
    }
    (k > 0).then(|| Interval { low: sorted[k - 1], high: sorted[n - k] })
}

/// Returns the two-sided quantile of Student's t for `confidence` percent; `None` for invalid
/// degrees of freedom or confidence.
pub fn t_quantile(confidence: f64, df: f64) -> Option<f64> {
    let tail = (100.0 - confidence) / 200.0;
    (df > 0.0 && tail > 0.0 && tail < 0.5).then(|| student::upper_quantile(tail, df))
}

/// Returns the arithmetic mean; NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let rough = values.iter().sum::<f64>() / n;
    // The rounding error of the long sum is small, and so are these differences.
    rough + values.iter().map(|v| v - rough).sum::<f64>() / n
}

/// Returns the sample variance around a known `mean`; NaN for one value.
pub fn variance(values: &[f64], mean: f64) -> f64 {
    sum_of_squares(values, mean) / (values.len() as f64 - 1.0)
}

/// Returns the sum of squared distances from `mean`. A mean is rounded (near 1e15 to 0.125); the
/// second sum corrects for it.
pub fn sum_of_squares(values: &[f64], mean: f64) -> f64 {
    let (squares, rest) = values.iter().fold((0.0, 0.0), |(squares, rest), v| {
        let distance = v - mean;
        (squares + distance * distance, rest + distance)
    });
    squares - rest * rest / values.len() as f64
}

pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    if n % 2 == 1 { sorted[n / 2] } else { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 }
}

fn sorted_finite(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f64; 8] = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn agrees_with_numpy() {
        // numpy 2.4.6: mean, std(ddof=1), median, quantile.
        let summary = Summary::of(&VALUES).unwrap();
        assert_eq!((summary.n, summary.min, summary.max), (8, 1.0, 9.0));
        close(summary.median, 3.5);
        close(summary.mean, 3.875);
        close(summary.sd.unwrap(), 2.748376143938713);
        for (p, q) in [(0.0, 1.0), (0.1, 1.0), (0.25, 1.75), (0.75, 5.25), (0.9, 6.9), (1.0, 9.0)] {
            close(quantile(&VALUES, p).unwrap(), q);
        }
    }

    #[test]
    fn intervals_agree_with_scipy() {
        // scipy 1.17.1: ttest_1samp(x, 0).confidence_interval(.95).
        let interval = Summary::of(&VALUES).unwrap().mean_interval(95.0).unwrap();
        close(interval.low, 1.5773000431592457);
        close(interval.high, 6.172699956840754);
        // scipy 1.17.1: quantile_test(x, p=.5).confidence_interval(.95).
        let interval = median_interval(&VALUES, 95.0).unwrap();
        assert_eq!(interval, Interval { low: 1.0, high: 9.0 });
        let fifteen: Vec<f64> = (1..=15).map(f64::from).collect();
        let interval = median_interval(&fifteen, 95.0).unwrap();
        assert_eq!(interval, Interval { low: 4.0, high: 12.0 });
        // Three values cover exactly 75 %.
        let interval = median_interval(&[1.0, 2.0, 3.0], 75.0).unwrap();
        assert_eq!(interval, Interval { low: 1.0, high: 3.0 });
    }

    #[test]
    fn too_few_values_return_none_not_nan() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        let one = Summary::of(&[7.0]).unwrap();
        assert_eq!((one.sd, one.cv(), one.mean_interval(95.0)), (None, None, None));
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 95.0), None);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn large_offsets_keep_the_variance() {
        let summary = Summary::of(&[1e15, 1e15 + 1.0, 1e15 + 2.0]).unwrap();
        close(summary.sd.unwrap(), 1.0);
    }
}
