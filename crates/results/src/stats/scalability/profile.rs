//! Intervals from the profile of the sum of squares: all values of one quantity
//! for which the closest curve is still close enough (Bates and Watts, 1988,
//! *Nonlinear Regression Analysis*, section 6.1). They respect bounds and may
//! be open, which t intervals can't.

use super::Peak;
use super::fit::{Data, Held, Solution};
use crate::stats::summary::{Interval, t_quantile};

/// Levels beyond this multiple of the largest are as good as none.
const FAR: f64 = 1e4;
/// kappa beyond this is no forwarding device.
const MAX_KAPPA: f64 = 1e3;
/// Halvings of the bracket around an end.
const HALVINGS: usize = 50;

/// Interval of sigma that is held at `bound` (0 or 1), one-sided.
pub(super) fn sigma(data: &Data, best: &Solution, bound: f64, confidence: f64) -> Interval {
    let limit = limit(best, one_sided(confidence));
    let close = |sigma: f64| {
        let sigma = Some(sigma);
        let held = [Held { sigma, kappa: None }, Held { sigma, kappa: Some(0.0) }];
        data.closest(&held).is_some_and(|solution| solution.sse <= limit)
    };
    let other = 1.0 - bound;
    let end = if close(other) { other } else { boundary(bound, other, close) };
    Interval { low: bound.min(end), high: bound.max(end) }
}

/// Interval of kappa that is held at 0, one-sided.
pub(super) fn kappa(data: &Data, best: &Solution, confidence: f64) -> Interval {
    let limit = limit(best, one_sided(confidence));
    let close = |kappa: f64| {
        let kappa = Some(kappa);
        let held = [None, Some(0.0), Some(1.0)].map(|sigma| Held { sigma, kappa });
        data.closest(&held).is_some_and(|solution| solution.sse <= limit)
    };
    let mut far = 1.0 / data.largest().powi(2);
    while close(far) && far < MAX_KAPPA {
        far *= 2.0;
    }
    Interval { low: 0.0, high: boundary(0.0, far, close) }
}

/// The peak with its interval: one-sided where the rate never falls.
pub(super) fn peak(data: &Data, best: &Solution, confidence: f64) -> Peak {
    let level = best.peak();
    let limit = limit(best, if level.is_some() { confidence } else { one_sided(confidence) });
    let close = |level: f64| data.sse_with_peak(level) <= limit;
    let far = FAR * data.largest();
    // Never falling is a peak at infinity.
    let inner = level.unwrap_or(far).clamp(1e-3, far);
    let rising = Held::FACES.map(|held| Held { kappa: Some(0.0), ..held });
    let open = data.closest(&rising).is_some_and(|solution| solution.sse <= limit);
    let high = (!open).then(|| outwards(inner, 1.25, far, close)).filter(|&high| high < far);
    Peak { level, low: outwards(inner, 0.8, 1e-3, close), high }
}

/// The end of an interval from `inner`, growing by `factor` up to `last`.
fn outwards(inner: f64, factor: f64, last: f64, close: impl Fn(f64) -> bool) -> f64 {
    let mut outer = inner * factor;
    let mut inside = inner;
    while close(outer) {
        if (factor > 1.0) == (outer >= last) {
            return if factor > 1.0 { last } else { 0.0 };
        }
        (inside, outer) = (outer, outer * factor);
    }
    boundary(inside, outer, close)
}

/// Where `close` ends between a value for which it holds and one for which it
/// does not.
fn boundary(mut inside: f64, mut outside: f64, close: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = 0.5 * (inside + outside);
        *(if close(middle) { &mut inside } else { &mut outside }) = middle;
    }
    inside
}

/// Largest sum of squares that is close enough.
fn limit(best: &Solution, confidence: f64) -> f64 {
    let df = best.df as f64;
    let t = t_quantile(confidence, df).unwrap_or(f64::NAN);
    best.sse * (1.0 + t * t / df)
}

/// The confidence whose two-sided quantile is the one-sided one asked for.
fn one_sided(confidence: f64) -> f64 {
    2.0 * confidence - 100.0
}
