//! Detects windows whose rate changed from beginning to end.

use fwdlab_model::record::Sample;

/// Returns the ratio of the median rate in the last third of the window to that in the first, if it
/// is off by more than 10 % and by more than four times the samples' scatter (the standard error of
/// a median, from the median absolute deviation). Both conditions are necessary: rates on shared
/// machines scatter by several percent without a trend.
pub(super) fn unsteady(samples: &[Sample]) -> Option<f64> {
    let rate = |s: &Sample| s.forwarded as f64 / s.duration_ns.max(1) as f64;
    let third = samples.len() / 3;
    if third < 3 {
        return None;
    }
    let part = |range: &[Sample]| -> (f64, f64) {
        let rates: Vec<f64> = range.iter().map(rate).collect();
        let middle = median(rates.clone());
        let spread = 1.4826 * median(rates.iter().map(|r| (r - middle).abs()).collect());
        (middle, 1.2533 * spread / (range.len() as f64).sqrt())
    };
    let (first, first_error) = part(&samples[..third]);
    let (last, last_error) = part(&samples[samples.len() - third..]);
    if first <= 0.0 {
        return (last > 0.0).then_some(f64::MAX);
    }
    let error = first_error.hypot(last_error);
    ((last - first).abs() > (0.1 * first).max(4.0 * error)).then_some(last / first)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
