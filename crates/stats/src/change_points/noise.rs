//! Noise of a series: estimates from the differences of neighbours, of which a level change affects
//! only one.

use crate::summary::{mean, median};

/// Median of the absolute value of a standard normal number.
const NORMAL_MAD: f64 = 0.674_489_750_196_081_7;
/// Mean of the absolute value of a standard normal number, sqrt(2 / pi).
const NORMAL_MEAN: f64 = 0.797_884_560_802_865_4;
/// Share of the squared differences, the largest ones, that is excluded from the noise: one in this
/// number.
const TRIMMED: usize = 20;
/// Mean of a squared standard normal number without its largest twentieth.
const TRIMMED_SHARE: f64 = 0.758_953_8;
/// Minimum number of differences for which a mean square is more informative than a median.
const FEW_KEPT: usize = 8;
/// Scatter that grows or shrinks counts if its trend exceeds this many standard errors: more would
/// miss growth, and less would raise the noise of series without it.
const TREND: f64 = 1.5;
/// Minimum number of differences that show a trend.
const FEW_OF_TREND: usize = 11;
/// Smallest difference, as a share of the median, in the logarithms of the trend: a difference of
/// almost zero would outweigh all others.
const LEAST_DIFFERENCE: f64 = 0.1;

/// Model of the noise of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of each point.
    pub points: Vec<f64>,
    /// Standard deviation of the step of a wandering level from one point to the next; 0 for levels
    /// that are constant between changes.
    pub walk: f64,
}

impl Noise {
    /// Creates the noise of `n` points that scatter alike around constant levels.
    pub fn constant(n: usize, spread: f64) -> Noise {
        Noise { points: vec![spread; n], walk: 0.0 }
    }

    /// Returns the noise multiplied by `factor`.
    pub(super) fn times(&self, factor: f64) -> Noise {
        let points = self.points.iter().map(|spread| factor * spread).collect();
        Noise { points, walk: factor * self.walk }
    }
}

/// Returns the standard deviation of the noise between points, from the median size of the
/// differences of neighbours, or from the mean size if more than half of them are 0.
pub(super) fn of_neighbours(logs: &[f64]) -> f64 {
    let steps: Vec<f64> = logs.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    // A straight line has no noise: all its steps are of one size, up to rounding.
    let slope = (logs[logs.len() - 1] - logs[0]) / steps.len() as f64;
    let rounding = 1e-12 * logs.iter().fold(1.0, |max: f64, value| max.max(value.abs()));
    if logs.windows(2).all(|w| (w[1] - w[0] - slope).abs() <= rounding) {
        return 0.0;
    }
    let typical = median(&steps).unwrap_or_default() / NORMAL_MAD;
    let typical = if typical > rounding { typical } else { mean(&steps) / NORMAL_MEAN };
    typical / std::f64::consts::SQRT_2
}

/// Returns the standard deviation of the noise from the mean square of the differences of
/// neighbours, without the largest twentieth, which may be level changes. It exceeds
/// [`of_neighbours`] if most neighbours are alike and many others are not: points of two modes, or
/// with a tail on one side.
pub(super) fn of_modes(values: &[f64]) -> f64 {
    let mut squares: Vec<f64> = values.windows(2).map(|w| (w[1] - w[0]).powi(2)).collect();
    squares.sort_by(f64::total_cmp);
    let kept = squares.len() - squares.len().div_ceil(TRIMMED);
    if kept < FEW_KEPT {
        return 0.0;
    }
    (mean(&squares[..kept]) / TRIMMED_SHARE / 2.0).sqrt()
}

/// Returns the scatter of each point relative to the typical one, at least 1: more where the
/// differences of neighbours grow or shrink along the series. The quieter part keeps the typical
/// scatter, so a trend can only hide a change.
pub(super) fn profile(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let constant = vec![1.0; n];
    let sizes: Vec<f64> = values.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    let typical = median(&sizes).unwrap_or_default();
    if sizes.len() < FEW_OF_TREND || typical <= 0.0 {
        return constant;
    }
    let logs: Vec<f64> =
        sizes.iter().map(|size| (size / typical).max(LEAST_DIFFERENCE).ln()).collect();
    let count = logs.len() as f64;
    let (centre, mean) = ((count - 1.0) / 2.0, mean(&logs));
    let off = |i: usize| i as f64 - centre;
    let along: f64 = (0..logs.len()).map(|i| off(i).powi(2)).sum();
    let slope = logs.iter().enumerate().map(|(i, log)| off(i) * (log - mean)).sum::<f64>() / along;
    let rest =
        logs.iter().enumerate().map(|(i, log)| (log - mean - slope * off(i)).powi(2)).sum::<f64>();
    let error = (rest / (count - 2.0) / along).sqrt();
    if slope.abs() <= TREND * error {
        return constant;
    }
    let middle = (n as f64 - 1.0) / 2.0;
    (0..n).map(|i| (slope * (i as f64 - middle)).exp().max(1.0)).collect()
}
