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
//! points on either side, unless more than one point in ten is isolated: a second mode of the
//! noise. If the residuals within the segments resemble their neighbours, the noise
//! is increased as much as the mean of such points scatters more, and the series is divided again.
//!
//! A bed may become noisier, and its level may wander. If the differences grow or shrink along the
//! series, the louder part has more noise. Found changes compete with a level that wanders (local
//! level model; Romano, Rigaill, Runge and Fearnhead, 2022, JASA 117, 2147-2162, treat the same
//! combination): if this explains the series clearly better, the series is divided around a
//! wandering level, from which only abrupt changes stand out. The self-test counts the remaining
//! false alarms on flat series, for each kind of noise.
//!
//! A series with a wide scatter cannot show a small step: `detectable` returns the required size.
//!
//! A change point only indicates a place to examine. A comparison of new runs must determine its
//! size and whether it is real: the error probability of a change point is not controlled, because
//! its place was chosen from the data.

mod division;
mod noise;
#[cfg(test)]
mod tests;

pub use noise::Noise;

use crate::summary::median;
use division::{Level, divide, innovations};

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
/// Isolated points are exceptions up to one point in this number; more of them are a mode of the
/// noise.
const MODE: usize = 10;
/// Divisions after the first, each with the noise that the previous one showed.
const AGAIN: usize = 4;
/// Maximum correlation of neighbours that is allowed for: beyond it nothing would be detected.
const PHI_MAX: f64 = 0.95;
/// A step detected nine times out of ten is larger by this value over the number of points.
const FEW_UNSURE: f64 = 8.0;
/// Normal quantile of 90 %.
const NINE_IN_TEN: f64 = 1.281_551_565_544_6;
/// Variances of a wandering level's step that are tried, as shares of the variance of a point.
const WALKS: [f64; 8] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0];
/// Minimum number of points for which a level may wander.
const FEW_WANDERING: usize = 12;
/// A step detected nine times out of ten is larger by this factor where levels may wander.
const CONTESTED: f64 = 1.05;

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
    /// The same for each point, and the wander of the level.
    pub noise: Noise,
    /// Isolated points, ascending.
    pub lone: Vec<usize>,
    /// The series with isolated points replaced: the input of the division.
    pub values: Vec<f64>,
}

/// Reason why a series cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum DivisionError {
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
pub fn change_points(logs: &[f64]) -> Result<Division, DivisionError> {
    check(logs)?;
    let (typical, penalty) = (noise::of_neighbours(logs), penalty(logs.len()));
    let mut isolated = without_lone(logs, typical);
    if isolated.1.len() > (logs.len() / MODE).max(1) {
        // Replaced, only those would remain that happen to follow one another: false levels.
        isolated = (logs.to_vec(), Vec::new());
    }
    let (values, lone) = isolated;
    // A straight line has no noise, although its neighbours differ.
    let scale = if typical > 0.0 { typical.max(noise::of_modes(&values)) } else { 0.0 };
    let fit = Fit::of(&values, scale, penalty);
    Ok(Division {
        change_points: fit.change_points,
        scale,
        penalty,
        correlation: fit.correlation,
        spread: fit.factor * scale,
        noise: fit.noise.times(fit.factor),
        lone,
        values,
    })
}

/// A division with the noise that explains it.
struct Fit {
    change_points: Vec<usize>,
    /// Correlation of neighbours that was allowed for; 0 if negligible.
    correlation: f64,
    /// Increase of the noise because of it.
    factor: f64,
    /// The noise without this increase.
    noise: Noise,
    /// Minus twice the logarithm of the likelihood, up to a constant, and a penalty for each change
    /// point.
    cost: f64,
}

impl Fit {
    /// Divides around constant levels, or around a wandering one that is clearly more likely.
    fn of(values: &[f64], scale: f64, penalty: f64) -> Fit {
        if scale <= 0.0 {
            let noise = Noise::constant(values.len(), scale);
            let change_points = Vec::new();
            return Fit { change_points, correlation: 0.0, factor: 1.0, noise, cost: 0.0 };
        }
        let profile = noise::profile(values);
        let fit = |walk: f64| {
            // The differences of neighbours, from which `scale` was derived, contain one step.
            let spread = scale / (1.0 + walk / 2.0).sqrt();
            let points = profile.iter().map(|times| spread * times).collect();
            Fit::with(values, Noise { points, walk: walk.sqrt() * spread }, scale, penalty)
        };
        let constant = fit(0.0);
        if constant.change_points.is_empty() || values.len() < FEW_WANDERING {
            return constant;
        }
        // A level that wanders costs as much as a change point.
        let limit = constant.cost - penalty;
        let best = WALKS.into_iter().map(fit).min_by(|a, b| a.cost.total_cmp(&b.cost));
        best.filter(|fit| fit.cost < limit).unwrap_or(constant)
    }

    /// Divides values with a noise, which is increased as much as the correlation of neighbours
    /// requires.
    fn with(values: &[f64], noise: Noise, scale: f64, penalty: f64) -> Fit {
        let (change_points, _) = divide(values, &noise, penalty);
        let mut fit = Fit { change_points, correlation: 0.0, factor: 1.0, noise, cost: 0.0 };
        for _ in 0..AGAIN {
            let phi = correlation(values, &fit.noise, &fit.change_points);
            if phi <= 1.0 / (values.len() as f64).sqrt() {
                break;
            }
            // Means of points that resemble their neighbours scatter by (1 + phi) / (1 - phi) more,
            // in squares. Differences of such neighbours, from which the noise was derived, scatter
            // by 1 - phi less than for independent points.
            let factor = (1.0 + phi).sqrt() / (1.0 - phi);
            if factor <= fit.factor {
                break;
            }
            (fit.correlation, fit.factor) = (phi, factor);
            (fit.change_points, _) = divide(values, &fit.noise.times(factor), penalty);
        }
        let price = penalty * fit.change_points.len() as f64;
        fit.cost = unlikelihood(values, &fit.noise, &fit.change_points, scale) + price;
        fit
    }
}

/// Returns the change points of values with a noise, at a level that holds for `series` series
/// together: the false alarms per series must fall by their number, which requires a penalty that
/// is larger by twice its logarithm.
///
/// # Errors
/// Same as [`change_points`].
pub fn change_points_among(
    logs: &[f64],
    noise: &Noise,
    series: usize,
) -> Result<Vec<usize>, DivisionError> {
    check(logs)?;
    let penalty = penalty(logs.len()) + 2.0 * (series.max(1) as f64).ln();
    let is_noisy = noise.points.iter().all(|spread| *spread > 0.0);
    Ok(if is_noisy { divide(logs, noise, penalty).0 } else { Vec::new() })
}

impl Division {
    /// Returns the smallest step, on the scale of the logarithms, that such a series would show
    /// nine times out of ten halfway between the first and the last point. Nearer to an end it must
    /// be larger.
    pub fn detectable(&self) -> f64 {
        if self.spread <= 0.0 {
            return 0.0;
        }
        let n = self.values.len();
        // Squared error of a step between two levels, relative to constant levels and scatter.
        let add = |mut level: Level, i: usize| {
            level.add(0.0, self.noise.points[i], self.noise.walk);
            level
        };
        let before = (0..n / 2).fold(Level::UNKNOWN, add).variance;
        let after = (n / 2..n).rev().fold(Level::UNKNOWN, add).variance;
        let even = self.spread.powi(2) * (1.0 / (n / 2) as f64 + 1.0 / n.div_ceil(2) as f64);
        let excess = (before + after + self.noise.walk.powi(2)) / even;
        detectable(n, self.spread) * excess.sqrt()
    }
}

/// Returns the smallest step that `points` points of one level with noise `spread` would show nine
/// times out of ten halfway.
fn detectable(points: usize, spread: f64) -> f64 {
    let n = points as f64;
    // The step of a series without luck or noise of its own, plus the excess needed if noise and
    // level are themselves estimated from few points (by simulation, for 4 to 100 points that are
    // independent, heavy-tailed or from the archive).
    let step = spread * (penalty(points).sqrt() + NINE_IN_TEN) / (n / 4.0).sqrt();
    // A step must also be more likely than a wandering level.
    let contested = if points < FEW_WANDERING { 1.0 } else { CONTESTED };
    step * (1.0 + FEW_UNSURE / n) * contested
}

/// Returns the exact least-cost division of the unchanged values, without allowance for isolated
/// points or similar neighbours.
///
/// # Errors
/// Same as [`change_points`].
pub fn least_cost(logs: &[f64]) -> Result<(Vec<usize>, f64, f64), DivisionError> {
    check(logs)?;
    let (scale, penalty) = (noise::of_neighbours(logs), penalty(logs.len()));
    let divided = || divide(logs, &Noise::constant(logs.len(), scale), penalty).0;
    let found = if scale > 0.0 { divided() } else { Vec::new() };
    Ok((found, scale, penalty))
}

fn check(logs: &[f64]) -> Result<(), DivisionError> {
    if let Some(index) = logs.iter().position(|value| !value.is_finite()) {
        return Err(DivisionError::NotFinite { index });
    }
    let n = logs.len();
    if n < MIN_POINTS {
        return Err(DivisionError::TooShort { have: n });
    }
    Ok(())
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

/// Returns the correlation of neighbours' residuals within the segments, in units of their noise,
/// corrected for the loss from fitting a level to each segment; 0 around a wandering level, which
/// explains it.
fn correlation(values: &[f64], noise: &Noise, change_points: &[usize]) -> f64 {
    if noise.walk > 0.0 {
        return 0.0;
    }
    let n = values.len();
    let starts = std::iter::once(0).chain(change_points.iter().copied());
    let ends = change_points.iter().copied().chain([n]);
    let (mut together, mut squares) = (0.0, 0.0);
    for (start, end) in starts.zip(ends) {
        let (part, spreads) = (&values[start..end], &noise.points[start..end]);
        let weights: f64 = spreads.iter().map(|spread| spread.powi(-2)).sum();
        let sum: f64 = part.iter().zip(spreads).map(|(value, s)| value * s.powi(-2)).sum();
        let residual = |(value, spread): (&f64, &f64)| (value - sum / weights) / spread;
        let residuals: Vec<f64> = part.iter().zip(spreads).map(residual).collect();
        squares += residuals.iter().map(|residual| residual.powi(2)).sum::<f64>();
        together += residuals.windows(2).map(|w| w[0] * w[1]).sum::<f64>();
    }
    // Rounding errors are not correlation.
    if squares <= 1e-12 {
        return 0.0;
    }
    let segments = change_points.len() + 1;
    (together / squares + (1 + segments) as f64 / n as f64).min(PHI_MAX)
}

/// Returns minus twice the logarithm of the likelihood of a division, up to a constant: for the
/// likeliest size of the noise, and for neighbours that are correlated as observed. Values are in
/// units of `scale`: each change point takes one prediction error, whose density depends on them.
fn unlikelihood(values: &[f64], noise: &Noise, change_points: &[usize], scale: f64) -> f64 {
    let errors = innovations(values, noise, change_points);
    let count = errors.len() as f64;
    let squares: f64 = errors.iter().map(|(error, variance)| error * error / variance).sum();
    let variances: f64 = errors.iter().map(|(_, variance)| (variance / scale.powi(2)).ln()).sum();
    let phi = correlation(values, noise, change_points).max(0.0);
    let size = (squares / count).max(f64::MIN_POSITIVE);
    count * size.ln() + variances + values.len() as f64 * (1.0 - phi * phi).ln()
}

/// Returns the cost of a change point of `n` points, in units of the squared noise: 3 ln n, and
/// more for few points.
pub fn penalty(n: usize) -> f64 {
    let n = n as f64;
    PENALTY * n.ln() * (1.0 + (FEW / n).powf(1.5))
}
