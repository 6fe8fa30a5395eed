//! Results per direction for simultaneous bidirectional traffic (RFC 2544, section 14); the main
//! results are sums.

use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::groups::groups;
use crate::report::analysis::one_direction::{DIRECTIONS, DirectionSummary, summarise};
use crate::store::Contents;
use fwdlab_model::record::{Counts, RunRecord};
use serde::Serialize;

/// Results of one direction in the runs of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionRate {
    /// The variant's label.
    pub label: String,
    /// Sending and receiving end.
    pub direction: String,
    /// Median offered rate in the windows, over the runs, packets per second.
    pub offered_pps: Option<f64>,
    /// Median forwarded rate.
    pub forwarded_pps: Option<f64>,
    /// Ratio of lost to offered packets over all windows; `None` if none were offered.
    pub loss_ratio: Option<f64>,
    /// Damaged packets over all runs.
    pub damaged: u64,
    /// Duplicate packets over all runs.
    pub duplicates: u64,
}

/// Returns both directions of every variant, or set of variants that share streams, with
/// bidirectional traffic.
pub(super) fn directions(contents: &Contents) -> Vec<DirectionRate> {
    let all = groups(contents).into_iter().flat_map(|(label, runs)| {
        let bidirectional: Vec<&RunRecord> =
            runs.into_iter().filter(|run| run.trial.arrivals.reverse.is_some()).collect();
        let directions: &[(&str, bool)] = if bidirectional.is_empty() { &[] } else { &DIRECTIONS };
        directions.iter().map(move |&(name, is_back)| rate(&label, name, is_back, &bidirectional))
    });
    all.collect()
}

/// Returns the counts of the window, damaged packets and duplicates of one direction of a run.
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
    let all: Vec<(Counts, u64, u64)> = runs.iter().map(|run| counts(run, is_back)).collect();
    let windows: Vec<(Counts, f64)> = all
        .iter()
        .zip(runs)
        .map(|(&(window, ..), run)| (window, run.trial.window_ns as f64 / 1e9))
        .collect();
    let DirectionSummary { offered_pps, forwarded_pps, loss_ratio } = summarise(&windows);
    let sum = |of: fn(&(Counts, u64, u64)) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    DirectionRate {
        label: label.to_owned(),
        direction: direction.to_owned(),
        offered_pps,
        forwarded_pps,
        loss_ratio,
        damaged: sum(|counts| counts.1),
        duplicates: sum(|counts| counts.2),
    }
}

/// Returns the results per direction of bidirectional traffic.
pub(super) fn table(rows: &[DirectionRate]) -> Vec<Block> {
    if rows.is_empty() {
        return Vec::new();
    }
    let text = "Traffic is bidirectional (RFC 2544, section 14): every rate and loss elsewhere is \
                for both directions together. Each direction (medians over runs; loss and faults \
                of all runs):";
    let table = Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .words("direction", |row| Cell::text(&row.direction))
        .numbers("offered", |row| Cell::rate(row.offered_pps))
        .numbers("forwarded", |row| Cell::rate(row.forwarded_pps))
        .numbers("loss", |row| Cell::number(row.loss_ratio, Digits::Percent(2)))
        .numbers("damaged", |row| Cell::count(row.damaged))
        .numbers("duplicates", |row| Cell::count(row.duplicates))
        .set(|table| table.name = Some("directions"));
    vec![Block::text(text), table.block()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::{Arrivals, Reverse, TrialRecord};

    #[test]
    fn directions_are_reported_separately_and_sum_to_the_whole() {
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
