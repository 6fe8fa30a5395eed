//! Level changes of a series: exact least-cost division into segments.
//!
//! The series are natural logarithms of figures, one per point of a history, so a change is a
//! ratio. A division costs, for each segment, the sum of the squared distances from the segment's
//! mean, in units of the noise, and for each change point a penalty. PELT (Killick, Fearnhead and
//! Eckley, 2012, JASA 107, 1590-1598) finds the division with the least cost: it considers every
//! division and prunes only those that cannot win.
//!
//! The noise is estimated from the differences of neighbours, of which a level change affects only
//! one: their median size, over sqrt(2) times 0.6745, is the standard deviation of normal noise for
//! any number of changes.
//!
//! Real points are neither normal nor independent, and both properties create false levels.
//! Therefore an isolated point is first replaced by the nearer one of the medians of the three
//! points on either side. If the residuals within the segments resemble their neighbours, the noise
//! is increased as much as the mean of such points scatters more, and the series is divided again.
//! The self-test counts the remaining false alarms on flat series, for each kind of noise.
//!
//! A series with a wide scatter cannot show a small step: [`detectable`] returns the required size.
//!
//! A change point only indicates a place to examine. A comparison of new runs must determine its
//! size and whether it is real: the error probability of a change point is not controlled, because
//! its place was chosen from the data.

use crate::summary::median;

#[cfg(test)]
mod tests;

/// Minimum number of points of a segment: a single point is an outlier, not a level.
pub const MIN_SEGMENT: usize = 2;
/// Minimum number of points of a series.
pub const MIN_POINTS: usize = 2 * MIN_SEGMENT;
/// Penalty of a change point as a multiple of ln n: about two in a hundred series of a hundred
/// points without a change cause an alarm.
const PENALTY: f64 = 3.0;
/// The noise of few points is itself uncertain. Up to this number the penalty at least doubles,
/// which keeps the false alarms of short series at about one in twenty.
const FEW: f64 = 9.0;
/// A point further than this many standard deviations from both adjacent medians is isolated.
const LONE: f64 = 3.0;
/// Number of points of those medians.
const NEIGHBOURS: usize = 3;
/// Variance of the difference between a point and a median of three: the median of normal
/// numbers has pi / 2 times the variance of their mean.
const LONE_VARIANCE: f64 = 1.0 + 1.57 / NEIGHBOURS as f64;
/// Divisions after the first, each with the noise that the previous one showed.
const AGAIN: usize = 4;
/// Maximum correlation of neighbours that is allowed for: beyond it nothing would be detected.
const PHI_MAX: f64 = 0.95;
/// A step detected nine times out of ten is larger by this value over the number of points.
const FEW_UNSURE: f64 = 8.0;
/// Normal quantile of 90 %.
const NINE_IN_TEN: f64 = 1.281_551_565_544_6;
/// Share of the squared differences, the largest ones, that is excluded from the noise: one in this
/// number.
const TRIMMED: usize = 20;
/// Mean of a squared standard normal number without its largest twentieth.
const TRIMMED_SHARE: f64 = 0.758_953_8;
/// Minimum number of differences for which a mean square is more informative than a median.
const FEW_KEPT: usize = 8;
/// Median of the absolute value of a standard normal number.
const NORMAL_MAD: f64 = 0.674_489_750_196_081_7;
/// Mean of the absolute value of a standard normal number, sqrt(2 / pi).
const NORMAL_MEAN: f64 = 0.797_884_560_802_865_4;

/// Division of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// Index of the first point of each segment except the first, ascending.
    pub change_points: Vec<usize>,
    /// Noise between points (standard deviation of the logarithms) from their differences; 0 for
    /// points without scatter.
    pub scale: f64,
    /// Cost of each change point, in units of the squared noise.
    pub penalty: f64,
    /// Correlation of neighbours that was allowed for; 0 if negligible.
    pub correlation: f64,
    /// Noise used for the division: `scale`, or more if neighbours are alike.
    pub spread: f64,
    /// Isolated points, ascending.
    pub lone: Vec<usize>,
    /// The series with isolated points replaced: the input of the division.
    pub values: Vec<f64>,
}

/// Reason why a series cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Indivisible {
    /// Too few points.
    #[error("{have} points, and fewer than {MIN_POINTS} can't be divided")]
    TooShort {
        /// Number of points.
        have: usize,
    },
    /// A value that is not a finite number.
    #[error("value {index} is no finite number")]
    NotFinite {
        /// Index of the value.
        index: usize,
    },
}

/// Divides a series of natural logarithms where its level changes. Points of one value, or on a
/// straight line, have no change points.
///
/// # Errors
/// Fewer than [`MIN_POINTS`] points, or one that isn't finite.
pub fn change_points(logs: &[f64]) -> Result<Division, Indivisible> {
    check(logs)?;
    let (typical, penalty) = (noise(logs), penalty(logs.len()));
    let (values, lone) = without_lone(logs, typical);
    // A straight line has no noise, although its neighbours differ.
    let scale = if typical > 0.0 { typical.max(noise_of_modes(&values)) } else { 0.0 };
    let mut division = Division {
        change_points: Vec::new(),
        scale,
        penalty,
        correlation: 0.0,
        spread: scale,
        lone,
        values,
    };
    if scale > 0.0 {
        division.change_points = scaled(&division.values, scale, penalty);
        for _ in 0..AGAIN {
            let phi = correlation(&division.values, &division.change_points, scale);
            if phi <= 1.0 / (logs.len() as f64).sqrt() {
                break;
            }
            // Means of points that resemble their neighbours scatter by (1 + phi) / (1 - phi) more,
            // in squares. Differences of such neighbours, from which `scale` was derived, scatter
            // by 1 - phi less than for independent points.
            let spread = scale * (1.0 + phi).sqrt() / (1.0 - phi);
            if spread <= division.spread {
                break;
            }
            (division.correlation, division.spread) = (phi, spread);
            division.change_points = scaled(&division.values, spread, penalty);
        }
    }
    Ok(division)
}

/// Returns the change points of values with noise `spread`, at a level that holds for `series`
/// series together: the false alarms per series must fall by their number, which requires a penalty
/// that is larger by twice its logarithm.
///
/// # Errors
/// Same as [`change_points`].
pub fn change_points_among(
    logs: &[f64],
    spread: f64,
    series: usize,
) -> Result<Vec<usize>, Indivisible> {
    check(logs)?;
    let penalty = penalty(logs.len()) + 2.0 * (series.max(1) as f64).ln();
    Ok(if spread > 0.0 { scaled(logs, spread, penalty) } else { Vec::new() })
}

/// Returns the smallest step, on the scale of the logarithms, that `points` points of one level
/// with noise `spread` would show nine times out of ten halfway between the first and the last
/// point. Nearer to an end it must be larger.
pub fn detectable(points: usize, spread: f64) -> f64 {
    let n = points as f64;
    // The step of a series without luck or noise of its own, plus the excess needed if noise and
    // level are themselves estimated from few points (by simulation, for 4 to 100 points that are
    // independent, heavy-tailed or from the archive).
    let step = spread * (penalty(points).sqrt() + NINE_IN_TEN) / (n / 4.0).sqrt();
    step * (1.0 + FEW_UNSURE / n)
}

/// Returns the exact least-cost division of the unchanged values, without allowance for isolated
/// points or similar neighbours.
///
/// # Errors
/// Same as [`change_points`].
pub fn least_cost(logs: &[f64]) -> Result<(Vec<usize>, f64, f64), Indivisible> {
    check(logs)?;
    let (scale, penalty) = (noise(logs), penalty(logs.len()));
    let found = if scale > 0.0 { scaled(logs, scale, penalty) } else { Vec::new() };
    Ok((found, scale, penalty))
}

fn check(logs: &[f64]) -> Result<(), Indivisible> {
    if let Some(index) = logs.iter().position(|value| !value.is_finite()) {
        return Err(Indivisible::NotFinite { index });
    }
    let n = logs.len();
    if n < MIN_POINTS {
        return Err(Indivisible::TooShort { have: n });
    }
    Ok(())
}

/// Divides values with noise `scale`.
fn scaled(values: &[f64], scale: f64, penalty: f64) -> Vec<usize> {
    // Centred, so that sums of squares keep their digits.
    let centre = median(values).unwrap_or_default();
    let scaled: Vec<f64> = values.iter().map(|value| (value - centre) / scale).collect();
    divide(&scaled, penalty).0
}

/// Returns the values with isolated ones replaced, and the indices of those. At an end, where one
/// side has no points, the neighbour alone represents that side: two points there may be a new
/// level.
fn without_lone(logs: &[f64], scale: f64) -> (Vec<f64>, Vec<usize>) {
    let limit = LONE * scale * LONE_VARIANCE.sqrt();
    let n = logs.len();
    let (mut values, mut lone) = (logs.to_vec(), Vec::new());
    for (i, &value) in logs.iter().enumerate() {
        let before = if i == 0 { &logs[1..2] } else { &logs[i.saturating_sub(NEIGHBOURS)..i] };
        let after =
            if i + 1 == n { &logs[n - 2..n - 1] } else { &logs[i + 1..n.min(i + 1 + NEIGHBOURS)] };
        let sides = [median(before), median(after)].into_iter().flatten();
        let nearer = sides.min_by(|a, b| (a - value).abs().total_cmp(&(b - value).abs()));
        let is_far = |other: f64| (other - value).abs() > limit;
        // In the middle of three points of one level, both medians belong to other levels.
        let between = i > 0 && i + 1 < n && !is_far(logs[i - 1]) && !is_far(logs[i + 1]);
        if let Some(nearer) = nearer.filter(|&near| is_far(near) && scale > 0.0 && !between) {
            values[i] = nearer;
            lone.push(i);
        }
    }
    (values, lone)
}

/// Returns the correlation of neighbours' residuals within the segments, corrected for the loss
/// from fitting a level to each segment.
fn correlation(values: &[f64], change_points: &[usize], scale: f64) -> f64 {
    let n = values.len();
    let starts = std::iter::once(0).chain(change_points.iter().copied());
    let ends = change_points.iter().copied().chain([n]);
    let (mut together, mut squares) = (0.0, 0.0);
    for (start, end) in starts.zip(ends) {
        let part = &values[start..end];
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        squares += part.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        together += part.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
    }
    // Rounding errors are not correlation.
    if squares <= 1e-12 * scale * scale {
        return 0.0;
    }
    let segments = change_points.len() + 1;
    (together / squares + (1 + segments) as f64 / n as f64).min(PHI_MAX)
}

/// Returns the cost of a change point of `n` points, in units of the squared noise: 3 ln n, and
/// more for few points.
pub fn penalty(n: usize) -> f64 {
    let n = n as f64;
    PENALTY * n.ln() * (1.0 + (FEW / n).powf(1.5))
}

/// Returns the standard deviation of the noise between points, from the median size of the
/// differences of neighbours, or from the mean size if more than half of them are 0.
fn noise(logs: &[f64]) -> f64 {
    let steps: Vec<f64> = logs.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    // A straight line has no noise: all its steps are of one size, up to rounding.
    let slope = (logs[logs.len() - 1] - logs[0]) / steps.len() as f64;
    let rounding = 1e-12 * logs.iter().fold(1.0, |max: f64, value| max.max(value.abs()));
    if logs.windows(2).all(|w| (w[1] - w[0] - slope).abs() <= rounding) {
        return 0.0;
    }
    let typical = median(&steps).unwrap_or_default() / NORMAL_MAD;
    let typical = if typical > rounding {
        typical
    } else {
        steps.iter().sum::<f64>() / steps.len() as f64 / NORMAL_MEAN
    };
    typical / std::f64::consts::SQRT_2
}

/// Returns the standard deviation of the noise from the mean square of the differences of
/// neighbours, without the largest twentieth, which may be level changes. It exceeds [`noise`] if
/// most neighbours are alike and many others are not: points of two modes, or with a tail on one
/// side.
fn noise_of_modes(values: &[f64]) -> f64 {
    let mut squares: Vec<f64> = values.windows(2).map(|w| (w[1] - w[0]).powi(2)).collect();
    squares.sort_by(f64::total_cmp);
    let kept = squares.len() - squares.len().div_ceil(TRIMMED);
    if kept < FEW_KEPT {
        return 0.0;
    }
    let mean = squares[..kept].iter().sum::<f64>() / kept as f64;
    (mean / TRIMMED_SHARE / 2.0).sqrt()
}

/// Returns the least-cost division, and its cost without the first segment's penalty. Among
/// divisions of equal cost it is the one with the longest last segments.
fn divide(values: &[f64], penalty: f64) -> (Vec<usize>, f64) {
    let costs = Costs::of(values);
    let n = values.len();
    // Cost of the best division of the first `t` values, and the start of its last segment.
    let mut best = vec![f64::INFINITY; n + 1];
    let mut last = vec![0; n + 1];
    best[0] = -penalty;
    let mut candidates: Vec<Candidate> = Vec::new();
    for end in MIN_SEGMENT..=n {
        let start = end - MIN_SEGMENT;
        if best[start].is_finite() {
            candidates.push(Candidate { start, until: usize::MAX });
        }
        candidates.retain(|candidate| end < candidate.until);
        for candidate in &mut candidates {
            let cost = best[candidate.start] + costs.of_segment(candidate.start, end);
            if cost + penalty < best[end] {
                best[end] = cost + penalty;
                last[end] = candidate.start;
            }
        }
        // A last segment that begins at `start` cannot win once beginning it at `end` is no worse.
        // A segment that begins at `end` is long enough from `end + MIN_SEGMENT` on.
        for candidate in &mut candidates {
            let cost = best[candidate.start] + costs.of_segment(candidate.start, end);
            if cost > best[end] {
                candidate.until = candidate.until.min(end + MIN_SEGMENT);
            }
        }
    }
    let mut change_points = Vec::new();
    let mut end = n;
    while last[end] > 0 {
        end = last[end];
        change_points.push(end);
    }
    change_points.reverse();
    (change_points, best[n])
}

/// A possible start of the last segment, and the first end for which it need not be considered any
/// more.
struct Candidate {
    start: usize,
    until: usize,
}

/// Prefix sums, from which a segment's cost follows in constant time.
struct Costs {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Costs {
    fn of(values: &[f64]) -> Costs {
        let running = |of: fn(f64) -> f64| -> Vec<f64> {
            let mut sum = 0.0;
            let sums = values.iter().map(|&value| {
                sum += of(value);
                sum
            });
            std::iter::once(0.0).chain(sums).collect()
        };
        Costs { sums: running(|value| value), squares: running(|value| value * value) }
    }

    /// Returns the sum of the squared distances from the mean of the values in `start..end`.
    fn of_segment(&self, start: usize, end: usize) -> f64 {
        let sum = self.sums[end] - self.sums[start];
        let squares = self.squares[end] - self.squares[start];
        (squares - sum * sum / (end - start) as f64).max(0.0)
    }
}
