//! Where a series changes its level: exact least-cost division into segments.
//!
//! The series are natural logarithms of figures, one per point of a history, so
//! that a change is a ratio. A division costs, for each segment, the sum of the
//! squared distances from the segment's mean, in units of the noise, and for
//! each change point a penalty; the division that costs least is found by PELT
//! (Killick, Fearnhead and Eckley, 2012, JASA 107, 1590-1598), which tries
//! every division and leaves out only those that can't win.
//!
//! The noise is measured by the differences of neighbours, of which a change of
//! level touches one only: their median size, over sqrt(2) times 0.6745, is the
//! standard deviation of normal noise however many changes there are.
//!
//! Real points are neither normal nor independent, and each of the two makes levels where
//! there are none. So a point that lies alone is replaced first, by the nearer one of the
//! medians of the three points on either side; and where the residuals within the segments
//! resemble their neighbours, the noise is taken for as much larger as the mean of such
//! points scatters more, and the series divided again. How often flat series alarm all the
//! same is counted by the self-test, for every such noise.
//!
//! A series that scatters widely can't show a small step: [`detectable`] says how large one
//! must be.
//!
//! A change point found here says where to look. How large it is, and whether
//! it is there, is for a comparison of new runs: its probability was not kept,
//! because the place was chosen after looking.

use crate::summary::median;

#[cfg(test)]
mod tests;

/// Fewest points of a segment: one point alone is an outlier, not a level.
pub const MIN_SEGMENT: usize = 2;
/// Fewest points that can be divided.
pub const MIN_POINTS: usize = 2 * MIN_SEGMENT;
/// Penalty of a change point as a multiple of ln n: on a hundred points without
/// a change some two series in a hundred alarm.
const PENALTY: f64 = 3.0;
/// The noise of few points is itself uncertain. Up to this many the penalty at
/// least doubles, which keeps the alarms of short series at about one in twenty.
const FEW: f64 = 9.0;
/// A point further than this many standard deviations from both medians beside it is alone.
const LONE: f64 = 3.0;
/// Points of those medians.
const BESIDE: usize = 3;
/// Variance of the difference between a point and a median of three: the median of normal
/// numbers has pi / 2 times the variance of their mean.
const LONE_VARIANCE: f64 = 1.0 + 1.57 / BESIDE as f64;
/// Divisions after the first, each with the noise that the one before it showed.
const AGAIN: usize = 4;
/// Largest correlation of neighbours that is allowed for: beyond it nothing would be found.
const PHI_MAX: f64 = 0.95;
/// A step that is found nine times in ten is larger by this over the number of points.
const FEW_UNSURE: f64 = 8.0;
/// Normal quantile of 90 %.
const NINE_IN_TEN: f64 = 1.281_551_565_544_6;
/// One in so many of the squared differences, the largest ones, is left out of the noise.
const TRIMMED: usize = 20;
/// Mean of a squared standard normal number without its largest twentieth.
const TRIMMED_SHARE: f64 = 0.758_953_8;
/// Fewest differences that a mean square says more of than a median.
const FEW_KEPT: usize = 8;
/// Median of the absolute value of a standard normal number.
const NORMAL_MAD: f64 = 0.674_489_750_196_081_7;
/// Mean of the absolute value of a standard normal number, sqrt(2 / pi).
const NORMAL_MEAN: f64 = 0.797_884_560_802_865_4;

/// A series divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// Index of the first point of each segment but the first, rising.
    pub change_points: Vec<usize>,
    /// Noise between points (standard deviation of the logarithms) as its
    /// differences show it; 0 for points that don't scatter.
    pub scale: f64,
    /// What each change point costs, in units of the squared noise.
    pub penalty: f64,
    /// Correlation of neighbours that was allowed for; 0 where there was none to speak of.
    pub correlation: f64,
    /// Noise by which the series was divided: `scale`, larger where neighbours are alike.
    pub spread: f64,
    /// Points that lie alone, rising.
    pub lone: Vec<usize>,
    /// The series with those replaced: what was divided.
    pub values: Vec<f64>,
}

/// Why a series can't be divided.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Indivisible {
    /// Too few points.
    #[error("{have} points, and fewer than {MIN_POINTS} can't be divided")]
    TooShort {
        /// How many there are.
        have: usize,
    },
    /// A value that is no number.
    #[error("value {index} is no finite number")]
    NotFinite {
        /// Its index.
        index: usize,
    },
}

/// Divides a series of natural logarithms where its level changes. Points of
/// one value, or on a straight line, have no change points.
///
/// # Errors
/// Fewer than [`MIN_POINTS`] points, or one that isn't finite.
pub fn change_points(logs: &[f64]) -> Result<Division, Indivisible> {
    check(logs)?;
    let (typical, penalty) = (noise(logs), penalty(logs.len()));
    let (values, lone) = without_lone(logs, typical);
    // A straight line has no noise, though its neighbours differ.
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
            // Means of points that resemble their neighbours scatter by (1 + phi) / (1 - phi)
            // more, in squares; and differences of such neighbours by 1 - phi less than two
            // points would, which `scale` was taken from.
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

/// Change points of values whose noise is `spread`, at a level that holds for `series` series
/// together: chance divides a series less often by their number, which takes a penalty that is
/// larger by twice its logarithm.
///
/// # Errors
/// As [`change_points`].
pub fn change_points_among(
    logs: &[f64],
    spread: f64,
    series: usize,
) -> Result<Vec<usize>, Indivisible> {
    check(logs)?;
    let penalty = penalty(logs.len()) + 2.0 * (series.max(1) as f64).ln();
    Ok(if spread > 0.0 { scaled(logs, spread, penalty) } else { Vec::new() })
}

/// The smallest step, on the scale of the logarithms, that `points` points of one level
/// with noise `spread` would show nine times in ten, were it halfway between the first and
/// the last. Nearer to an end it must be larger.
pub fn detectable(points: usize, spread: f64) -> f64 {
    let n = points as f64;
    // The step of a series without luck or noise of its own, and what it takes more where
    // noise and level are themselves estimated from few points (by simulation, for 4 to 100
    // points that are independent, heavy-tailed or the archive's).
    let step = spread * (penalty(points).sqrt() + NINE_IN_TEN) / (n / 4.0).sqrt();
    step * (1.0 + FEW_UNSURE / n)
}

/// The exact division of least cost of values as they are, without allowance for lone
/// points or alike neighbours.
///
/// # Errors
/// As [`change_points`].
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

/// Divides values whose noise is `scale`.
fn scaled(values: &[f64], scale: f64, penalty: f64) -> Vec<usize> {
    // Centred, so that sums of squares keep their digits.
    let centre = median(values).unwrap_or_default();
    let scaled: Vec<f64> = values.iter().map(|value| (value - centre) / scale).collect();
    divide(&scaled, penalty).0
}

/// The values with those that lie alone replaced, and which these are. At an end, where
/// one side has no points, the neighbour alone stands for that side: two points there may
/// be a new level.
fn without_lone(logs: &[f64], scale: f64) -> (Vec<f64>, Vec<usize>) {
    let limit = LONE * scale * LONE_VARIANCE.sqrt();
    let n = logs.len();
    let (mut values, mut lone) = (logs.to_vec(), Vec::new());
    for (i, &value) in logs.iter().enumerate() {
        let before = if i == 0 { &logs[1..2] } else { &logs[i.saturating_sub(BESIDE)..i] };
        let after =
            if i + 1 == n { &logs[n - 2..n - 1] } else { &logs[i + 1..n.min(i + 1 + BESIDE)] };
        let sides = [median(before), median(after)].into_iter().flatten();
        let nearer = sides.min_by(|a, b| (a - value).abs().total_cmp(&(b - value).abs()));
        let is_far = |other: f64| (other - value).abs() > limit;
        // In the middle of three points of one level both medians are others'.
        let between = i > 0 && i + 1 < n && !is_far(logs[i - 1]) && !is_far(logs[i + 1]);
        if let Some(nearer) = nearer.filter(|&near| is_far(near) && scale > 0.0 && !between) {
            values[i] = nearer;
            lone.push(i);
        }
    }
    (values, lone)
}

/// Correlation of neighbours' residuals within the segments, less what fitting a level to
/// each takes from it.
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
    // Rounding is not alike.
    if squares <= 1e-12 * scale * scale {
        return 0.0;
    }
    let segments = change_points.len() + 1;
    (together / squares + (1 + segments) as f64 / n as f64).min(PHI_MAX)
}

/// What a change point of `n` points costs, in units of the squared noise:
/// 3 ln n, and more for few points.
pub fn penalty(n: usize) -> f64 {
    let n = n as f64;
    PENALTY * n.ln() * (1.0 + (FEW / n).powf(1.5))
}

/// Standard deviation of the noise between points, from the median size of the
/// differences of neighbours; where more than half of them are 0, from the mean
/// size.
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

/// Standard deviation of the noise from the mean square of the differences of neighbours, without
/// the largest twentieth of them, which may be changes of level. It exceeds [`noise`] where most
/// neighbours are alike and many others are not: points of two modes, or with a tail to one side.
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

/// The division that costs least, and its cost without the first segment's
/// penalty. Of divisions that cost the same the one whose last segments are
/// longest.
fn divide(values: &[f64], penalty: f64) -> (Vec<usize>, f64) {
    let costs = Costs::of(values);
    let n = values.len();
    // Cost of the best division of the first `t` values, and where its last
    // segment begins.
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
        // A last segment that begins at `start` can't win once beginning it at
        // `end` is no worse; and a segment that begins at `end` is long enough
        // from `end + MIN_SEGMENT` on.
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

/// Where the last segment may begin, and the first end for which it need not be
/// tried any more.
struct Candidate {
    start: usize,
    until: usize,
}

/// Sums over the first values, from which a segment's cost follows at once.
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

    /// Sum of the squared distances from the mean of the values from `start` up
    /// to, not including, `end`.
    fn of_segment(&self, start: usize, end: usize) -> f64 {
        let sum = self.sums[end] - self.sums[start];
        let squares = self.squares[end] - self.squares[start];
        (squares - sum * sum / (end - start) as f64).max(0.0)
    }
}
