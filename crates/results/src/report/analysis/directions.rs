//! The directions of traffic that goes both ways at once (RFC 2544, section 14), each by
//! itself: results are the sums.

use super::quality::groups;
use crate::stats::summary::median;
use crate::store::Contents;
use fwdlab_model::record::{Counts, RunRecord};
use serde::Serialize;

/// One direction in the runs of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionRate {
    /// The variant's label.
    pub label: String,
    /// From which end to which.
    pub direction: String,
    /// Median rate that was offered in the windows, over runs, packets per second.
    pub offered_pps: Option<f64>,
    /// Median rate that was forwarded.
    pub forwarded_pps: Option<f64>,
    /// Packets of all windows that were lost, over those offered; none if none were.
    pub loss_ratio: Option<f64>,
    /// Packets of all runs that arrived damaged.
    pub damaged: u64,
    /// Packets that arrived a second time.
    pub duplicates: u64,
}

/// Both directions of every variant, or set of variants that share streams, that has two.
pub(super) fn directions(contents: &Contents) -> Vec<DirectionRate> {
    let all = groups(contents).into_iter().flat_map(|(label, runs)| {
        let both: Vec<&RunRecord> =
            runs.into_iter().filter(|run| run.trial.arrivals.reverse.is_some()).collect();
        let ways: &[(&str, bool)] = match both.is_empty() {
            true => &[],
            false => &[("sender to receiver", false), ("receiver to sender", true)],
        };
        ways.iter().map(move |&(name, is_back)| rate(&label, name, is_back, &both))
    });
    all.collect()
}

/// Counts of the window, damaged packets and duplicates of one direction of a run.
fn counts(run: &RunRecord, is_back: bool) -> (Counts, u64, u64) {
    let (trial, all) = (&run.trial, &run.trial.arrivals);
    let reverse = all.reverse.as_deref().cloned().unwrap_or_default();
    let back = &reverse.arrivals;
    match is_back {
        true => (reverse.window, back.damaged, back.duplicates),
        false => (
            trial.window.without(reverse.window),
            all.damaged.saturating_sub(back.damaged),
            all.duplicates.saturating_sub(back.duplicates),
        ),
    }
}

fn rate(label: &str, direction: &str, is_back: bool, runs: &[&RunRecord]) -> DirectionRate {
    let mut found = DirectionRate {
        label: label.to_owned(),
        direction: direction.to_owned(),
        offered_pps: None,
        forwarded_pps: None,
        loss_ratio: None,
        damaged: 0,
        duplicates: 0,
    };
    let (mut sum, mut offered, mut forwarded) = (Counts::default(), Vec::new(), Vec::new());
    for run in runs {
        let (window, damaged, duplicates) = counts(run, is_back);
        sum.offered = sum.offered.saturating_add(window.offered);
        sum.forwarded = sum.forwarded.saturating_add(window.forwarded);
        found.damaged = found.damaged.saturating_add(damaged);
        found.duplicates = found.duplicates.saturating_add(duplicates);
        if run.trial.window_ns > 0 {
            let seconds = run.trial.window_ns as f64 / 1e9;
            offered.push(window.offered as f64 / seconds);
            forwarded.push(window.forwarded as f64 / seconds);
        }
    }
    (found.offered_pps, found.forwarded_pps) = (median(&offered), median(&forwarded));
    found.loss_ratio = (sum.offered > 0).then(|| sum.loss_ratio());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::{Arrivals, Reverse, TrialRecord};

    #[test]
    fn each_direction_is_told_by_itself_and_both_are_the_whole() {
        let run = |lost: u64| {
            let window = Counts { offered: 1000, forwarded: 1000 - lost };
            let arrivals = Arrivals { damaged: 3, duplicates: 1, ..Arrivals::default() };
            let reverse = Reverse { window, total: window, arrivals };
            let arrivals = Arrivals {
                damaged: 5,
                duplicates: 1,
                reverse: Some(Box::new(reverse)),
                ..Arrivals::default()
            };
            let all = Counts { offered: 3000, forwarded: 3000 - lost };
            let trial = TrialRecord {
                window_ns: 500_000_000,
                window: all,
                total: all,
                arrivals,
                ..TrialRecord::default()
            };
            RunRecord { trial, ..RunRecord::default() }
        };
        let runs = [run(0), run(100), run(500)];
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let [forth, back] = [false, true].map(|is_back| rate("a", "way", is_back, &runs));
        assert_eq!((forth.offered_pps, forth.forwarded_pps), (Some(4000.0), Some(4000.0)));
        assert_eq!((back.offered_pps, back.forwarded_pps), (Some(2000.0), Some(1800.0)));
        assert_eq!((forth.loss_ratio, back.loss_ratio), (Some(0.0), Some(0.2)));
        assert_eq!((forth.damaged, back.damaged), (6, 9));
        assert_eq!((forth.duplicates, back.duplicates), (0, 3));
    }
}
