//! Results of one direction of bidirectional traffic.

use crate::stats::summary::median;
use fwdlab_model::record::Counts;

/// Names of the directions; true for the reverse one.
pub(in crate::report) const DIRECTIONS: [(&str, bool); 2] =
    [("sender to receiver", false), ("receiver to sender", true)];

/// Results of one direction over several windows.
pub(in crate::report) struct DirectionSummary {
    /// Median offered rate, packets per second.
    pub(in crate::report) offered_pps: Option<f64>,
    /// Median forwarded rate.
    pub(in crate::report) forwarded_pps: Option<f64>,
    /// Ratio of lost to offered packets over all windows; `None` if none were offered.
    pub(in crate::report) loss_ratio: Option<f64>,
}

/// Summarises one direction from its counts in windows and their lengths in seconds.
pub(in crate::report) fn summarise(windows: &[(Counts, f64)]) -> DirectionSummary {
    let mut sum = Counts::default();
    for (window, _) in windows {
        sum.offered = sum.offered.saturating_add(window.offered);
        sum.forwarded = sum.forwarded.saturating_add(window.forwarded);
    }
    let rate = |of: fn(&Counts) -> u64| {
        let valid = windows.iter().filter(|(_, seconds)| *seconds > 0.0);
        let rates: Vec<f64> = valid.map(|(window, seconds)| of(window) as f64 / seconds).collect();
        median(&rates)
    };
    DirectionSummary {
        offered_pps: rate(|window| window.offered),
        forwarded_pps: rate(|window| window.forwarded),
        loss_ratio: (sum.offered > 0).then(|| sum.loss_ratio()),
    }
}
