//! Loads at which a loss curve is free of loss.

use super::{MethodPoint, MethodRun};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::percent;
use crate::stats::summary::median;
use fwdlab_model::units::format_pps;
use serde::Serialize;

/// Loss against load of a variant, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct LossCurveOutcome {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Highest offered load at or below which no trial of a run has a loss that the device
    /// certainly caused, packets per second: median of the runs that have one; `lossless_runs`
    /// contains their number.
    pub lossless: Option<f64>,
    /// Number of runs with such a load, and number of all runs.
    pub lossless_runs: (usize, usize),
    /// The same load for no loss of any cause, packets per second.
    pub nothing_lost: Option<f64>,
    /// The highest offered load, packets per second: median of the runs.
    pub greatest: f64,
    /// Minimum share that the device lost at it, median of the runs.
    pub loss: Option<f64>,
}

/// Summarises a variant over its runs; `None` without trials.
pub(super) fn curved(
    (variant, label): (usize, &str),
    runs: &[MethodRun],
) -> Option<LossCurveOutcome> {
    let variant_runs: Vec<&MethodRun> =
        runs.iter().filter(|run| run.variant == variant && !run.points.is_empty()).collect();
    let up_to = |loss: fn(&MethodPoint) -> Option<f64>| -> Vec<f64> {
        let each = variant_runs.iter().filter_map(|run| lossless(&run.points, loss));
        each.map(|point| point.offered_pps).collect()
    };
    let lossless = up_to(|point| point.loss_ratio);
    // The first trial has the highest load; an invalid one shows no loss.
    let valid = |run: &&MethodRun| run.points.iter().position(|point| point.invalid.is_none());
    let greatest: Vec<&MethodPoint> =
        variant_runs.iter().map(|run| &run.points[valid(run).unwrap_or(0)]).collect();
    let loads: Vec<f64> = greatest.iter().map(|point| point.offered_pps).collect();
    let losses: Vec<f64> = greatest.iter().filter_map(|point| point.loss_ratio).collect();
    Some(LossCurveOutcome {
        variant,
        label: label.to_owned(),
        lossless: median(&lossless),
        lossless_runs: (lossless.len(), variant_runs.len()),
        nothing_lost: median(&up_to(|point| point.loss_at_most)),
        greatest: median(&loads)?,
        loss: median(&losses),
    })
}

/// Returns the trial with the highest load among the lossless trials at the end of a curve, without
/// invalid trials; `loss` selects the measure of loss.
pub(super) fn lossless(
    points: &[MethodPoint],
    loss: fn(&MethodPoint) -> Option<f64>,
) -> Option<MethodPoint> {
    let valid = points.iter().rev().filter(|point| point.invalid.is_none());
    let trials = valid.take_while(|point| loss(point) == Some(0.0));
    trials.max_by(|a, b| a.offered_pps.total_cmp(&b.offered_pps)).cloned()
}

/// Returns a table with one row per variant.
pub(super) fn table(rows: &[LossCurveOutcome]) -> Block {
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("lossless up to", |row| Cell::rate(row.lossless))
        .words("in runs", |row| {
            let (some, all) = row.lossless_runs;
            Cell::Values(format!("{some} of {all}").into(), vec![some.into(), all.into()])
        })
        .keys(&["lossless_runs", "runs"])
        .numbers("nothing at all lost", |row| Cell::rate(row.nothing_lost))
        .numbers("greatest load", |row| Cell::rate(row.greatest))
        .numbers("lost there", |row| Cell::number(row.loss, Digits::Percent(2)))
        .with_words(|row, line| line.words.push(sentence(row)))
        .set(|table| table.name = Some("loss"))
        .block()
}

/// States the result of a curve, without the variant's name.
pub(super) fn sentence(row: &LossCurveOutcome) -> String {
    let lossless = match row.lossless {
        Some(pps) => format!("no loss of its own up to {}", format_pps(pps)),
        None if row.loss.is_none() => return "no valid trial".to_owned(),
        None => "losses at every load that was tried".to_owned(),
    };
    let most = row.loss.map_or(String::new(), |loss| {
        format!(", {} at {}", percent(loss, 1), format_pps(row.greatest))
    });
    format!("{lossless}{most}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sections::method::point;
    use fwdlab_model::record::MethodTrial;

    /// A run with trials at falling loads: the forwarded packets of 1000 offered; `None` for an
    /// invalid trial.
    fn run(trials: &[(u64, Option<u64>)]) -> MethodRun {
        let points = trials.iter().map(|&(load, forwarded)| {
            let trial = MethodTrial {
                load,
                duration_ns: 1_000_000_000,
                window_ns: 1_000_000_000 * 1000 / load,
                offered: 1000,
                forwarded: forwarded.unwrap_or(1000),
                ..MethodTrial::default()
            };
            let point = point(&trial, &[]);
            match forwarded {
                Some(_) => point,
                None => MethodPoint {
                    loss_ratio: None,
                    loss_at_most: None,
                    invalid: Some("unsent".to_owned()),
                    ..point
                },
            }
        });
        MethodRun { points: points.collect(), ..MethodRun::of((0, "x"), 0) }
    }

    #[test]
    fn invalid_trial_shows_no_loss() {
        let curve = |trials| curved((0, "x"), &[run(trials)]).unwrap();
        let found = curve(&[(4000, Some(900)), (2000, Some(1000)), (1000, None)]);
        assert_eq!((found.lossless, found.lossless_runs), (Some(2000.0), (1, 1)));
        let first = curve(&[(4000, None), (2000, Some(900))]);
        assert_eq!((first.greatest, first.loss), (2000.0, Some(0.1)));
        assert_eq!(sentence(&first), "losses at every load that was tried, 10.0 % at 2.00 kpps");
        assert_eq!(sentence(&curve(&[(4000, None), (2000, None)])), "no valid trial");
    }
}
