//! Intervals from the profile of the sum of squares: all values of one quantity for which the
//! closest curve is still close enough (Bates and Watts, 1988, *Nonlinear Regression Analysis*,
//! section 6.1). They respect bounds and may be open, unlike t intervals.

use super::Peak;
use super::fit::{Data, FixedParameters, Solution};
use crate::summary::{Interval, t_quantile};

/// Multiple of the largest level beyond which levels are equivalent to infinity.
const FAR: f64 = 1e4;
/// Maximum kappa of any forwarding device.
const MAX_KAPPA: f64 = 1e3;
/// Maximum number of steps towards an end; ten are usual.
const MAX_STEPS: usize = 60;

/// Returns the one-sided interval of sigma if it is fixed at `bound` (0 or 1).
pub(super) fn sigma(data: &Data, best: &Solution, bound: f64, confidence: f64) -> Interval {
    let limit = limit(best, one_sided(confidence));
    let excess = |sigma: f64| {
        let sigma = Some(sigma);
        let held =
            [FixedParameters { sigma, kappa: None }, FixedParameters { sigma, kappa: Some(0.0) }];
        data.closest(&held).map_or(f64::INFINITY, |solution| solution.sse) - limit
    };
    let other = 1.0 - bound;
    let end = if excess(other) <= 0.0 { other } else { boundary(bound, other, excess) };
    Interval { low: bound.min(end), high: bound.max(end) }
}

/// Returns the one-sided interval of kappa if it is fixed at 0.
pub(super) fn kappa(data: &Data, best: &Solution, confidence: f64) -> Interval {
    let limit = limit(best, one_sided(confidence));
    let excess = |kappa: f64| {
        let kappa = Some(kappa);
        let held = [None, Some(0.0), Some(1.0)].map(|sigma| FixedParameters { sigma, kappa });
        data.closest(&held).map_or(f64::INFINITY, |solution| solution.sse) - limit
    };
    let first = data.largest().powi(-2);
    Interval { low: 0.0, high: outwards(0.0, first, 2.0, MAX_KAPPA, excess).unwrap_or(MAX_KAPPA) }
}

/// Returns the peak with its interval: one-sided if the rate never falls.
pub(super) fn peak(data: &Data, best: &Solution, confidence: f64) -> Peak {
    let level = best.peak();
    let limit = limit(best, if level.is_some() { confidence } else { one_sided(confidence) });
    let excess = |level: f64| data.sse_with_peak(level) - limit;
    let (near, far) = (1e-3, FAR * data.largest());
    // A rate that never falls has its peak at infinity.
    let inner = level.unwrap_or(far).clamp(near, far);
    let rising = FixedParameters::FACES.map(|held| FixedParameters { kappa: Some(0.0), ..held });
    let open = data.closest(&rising).is_some_and(|solution| solution.sse <= limit);
    let high = if open { None } else { outwards(inner, 1.25 * inner, 1.25, far, excess) };
    let low = outwards(inner, 0.8 * inner, 0.8, near, excess).unwrap_or(0.0);
    Peak { level, low, high }
}

/// Returns the end of an interval that contains `inside`, sought from `outer` on in steps of
/// `factor`; `None` if it also contains `last`.
fn outwards(
    mut inside: f64,
    mut outer: f64,
    factor: f64,
    last: f64,
    excess: impl Fn(f64) -> f64,
) -> Option<f64> {
    while excess(outer) <= 0.0 {
        if (factor > 1.0) == (outer >= last) {
            return None;
        }
        (inside, outer) = (outer, outer * factor);
    }
    Some(boundary(inside, outer, excess))
}

/// Returns the zero of `excess` between a value for which it is negative and one for which it is
/// positive: regula falsi as in [`crate::power`], the middle if one of them is infinite.
fn boundary(mut inside: f64, mut outside: f64, excess: impl Fn(f64) -> f64) -> f64 {
    let (mut below, mut above) = (excess(inside), excess(outside));
    for _ in 0..MAX_STEPS {
        if (outside - inside).abs() <= 1e-10 * outside.abs() || below == 0.0 {
            break;
        }
        let share = if above.is_finite() && below < 0.0 { below / (below - above) } else { 0.5 };
        let middle = inside + share * (outside - inside);
        let excess = excess(middle);
        if excess.abs() <= 1e-12 * (above - below).abs() {
            return middle;
        }
        if excess <= 0.0 {
            (inside, below, above) = (middle, excess, 0.5 * above);
        } else {
            (outside, above, below) = (middle, excess, 0.5 * below);
        }
    }
    inside
}

/// Returns the largest sum of squares that is close enough.
fn limit(best: &Solution, confidence: f64) -> f64 {
    let df = best.df as f64;
    let t = t_quantile(confidence, df).unwrap_or(f64::NAN);
    best.sse * (1.0 + t * t / df)
}

/// Returns the confidence whose two-sided quantile equals the requested one-sided one.
fn one_sided(confidence: f64) -> f64 {
    2.0 * confidence - 100.0
}
