//! Exact least-cost division of a series with known noise.

use super::MIN_SEGMENT;
use super::noise::Noise;

/// Level of a segment, from its points so far (Kalman filter of a local level): the most likely
/// level of the last point. Without a walk it is the mean, weighted by the points' noise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    mean: f64,
    /// Squared error of the mean; infinite without points.
    pub(super) variance: f64,
    /// Sum of the squared prediction errors, in units of their variance.
    pub(super) cost: f64,
}

/// Prediction error of a point, and its variance.
pub(super) type Innovation = (f64, f64);

impl Level {
    pub(super) const UNKNOWN: Level = Level { mean: 0.0, variance: f64::INFINITY, cost: 0.0 };

    /// Adds a point with noise `spread`; returns its prediction error, `None` for the first point.
    pub(super) fn add(&mut self, value: f64, spread: f64, walk: f64) -> Option<Innovation> {
        let own = spread * spread;
        if self.variance.is_infinite() {
            (self.mean, self.variance) = (value, own);
            return None;
        }
        let before = self.variance + walk * walk;
        let (error, variance) = (value - self.mean, before + own);
        self.cost += error * error / variance;
        self.mean += error * before / variance;
        self.variance = before * own / variance;
        Some((error, variance))
    }
}

/// Returns the prediction errors of all segments.
pub(super) fn innovations(
    values: &[f64],
    noise: &Noise,
    change_points: &[usize],
) -> Vec<Innovation> {
    let mut level = Level::UNKNOWN;
    let error = |i: usize| {
        if change_points.contains(&i) {
            level = Level::UNKNOWN;
        }
        level.add(values[i], noise.points[i], noise.walk)
    };
    (0..values.len()).filter_map(error).collect()
}

/// Returns the least-cost division, and its cost without the first segment's penalty. Among
/// divisions of equal cost it is the one with the longest last segments.
pub(super) fn divide(values: &[f64], noise: &Noise, penalty: f64) -> (Vec<usize>, f64) {
    let n = values.len();
    // Cost of the best division of the first `t` values, and the start of its last segment.
    let mut best = vec![f64::INFINITY; n + 1];
    let mut last = vec![0; n + 1];
    best[0] = -penalty;
    let mut candidates: Vec<Candidate> = Vec::new();
    for end in MIN_SEGMENT..=n {
        let start = end - MIN_SEGMENT;
        candidates.retain(|candidate| end < candidate.until);
        for candidate in &mut candidates {
            candidate.level.add(values[end - 1], noise.points[end - 1], noise.walk);
        }
        if best[start].is_finite() {
            let mut level = Level::UNKNOWN;
            (start..end).for_each(|i| {
                level.add(values[i], noise.points[i], noise.walk);
            });
            candidates.push(Candidate { start, until: usize::MAX, level });
        }
        for candidate in &candidates {
            let cost = best[candidate.start] + candidate.level.cost;
            if cost + penalty < best[end] {
                best[end] = cost + penalty;
                last[end] = candidate.start;
            }
        }
        // A last segment that begins at `start` cannot win once beginning it at `end` is no worse.
        // A segment that begins at `end` is long enough from `end + MIN_SEGMENT` on.
        for candidate in &mut candidates {
            let cost = best[candidate.start] + candidate.level.cost;
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

/// A possible start of the last segment, the level of the points from there on, and the first end
/// for which the start need not be considered any more.
struct Candidate {
    start: usize,
    until: usize,
    level: Level,
}
