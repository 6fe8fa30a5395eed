//! Stability of a variant at one load.

use super::{MethodPoint, MethodRun};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::percent;
use crate::stats::binomial::{Rate, interval_over_groups};
use fwdlab_model::units::format_pps;
use serde::Serialize;
use serde_json::Value;

/// Stability of a variant at one load, over all trials of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct SoakOutcome {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// The load, packets per second.
    pub load: u64,
    /// Number of valid trials.
    pub trials: usize,
    /// Number of trials with loss that the device certainly caused.
    pub lossy: usize,
    /// Minimum number of packets that the device lost.
    pub lost: u64,
    /// Further packets lost while other programs used the device's CPU: the cause is unknown.
    pub in_doubt: u64,
    /// Packets offered.
    pub offered: u64,
    /// Ends of the 95 % interval of the lost share, over the trials; `None` for a single trial, or
    /// if all trials lost the same share.
    pub interval: Option<(f64, f64)>,
    /// The largest share lost in one trial.
    pub worst: f64,
    /// Number of invalid trials.
    pub invalid: usize,
}

/// Summarises a variant over all trials of its runs; `None` without trials.
pub(super) fn soaked((variant, label): (usize, &str), runs: &[MethodRun]) -> Option<SoakOutcome> {
    let points = || runs.iter().filter(|run| run.variant == variant).flat_map(|run| &run.points);
    let valid: Vec<(&MethodPoint, f64)> =
        points().filter_map(|p| Some((p, p.loss_ratio?))).collect();
    let offered = valid.iter().map(|(point, _)| point.offered).sum();
    let all: u64 = valid.iter().map(|(point, _)| point.offered - point.forwarded).sum();
    let surely = |(point, loss): &(&MethodPoint, f64)| match point.loss_at_most {
        Some(most) if most > *loss => (loss * point.offered as f64).floor() as u64,
        _ => point.offered - point.forwarded,
    };
    let lost: u64 = valid.iter().map(surely).sum();
    let trials: Vec<Rate> =
        valid.iter().map(|found| Rate { hits: surely(found), of: found.0.offered }).collect();
    let interval = interval_over_groups(&trials, 95.0).map(|found| (found.low, found.high));
    Some(SoakOutcome {
        variant,
        label: label.to_owned(),
        load: points().next()?.load,
        trials: valid.len(),
        lossy: valid.iter().filter(|(_, loss)| *loss > 0.0).count(),
        lost,
        in_doubt: all - lost,
        offered,
        interval,
        worst: valid.iter().map(|(_, loss)| *loss).fold(0.0, f64::max),
        invalid: points().count() - valid.len(),
    })
}

/// Returns a table with one row per variant.
pub(super) fn table(rows: &[SoakOutcome]) -> Block {
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("load", |row| Cell::rate(row.load as f64))
        .numbers("trials", |row| Cell::count(row.trials as u64))
        .numbers("with loss", |row| Cell::count(row.lossy as u64))
        .numbers("lost", |row| Cell::count(row.lost))
        .numbers("in doubt", |row| Cell::count(row.in_doubt))
        .numbers("of", |row| Cell::count(row.offered))
        .words("loss", |row| {
            let ratio = row.lost as f64 / row.offered.max(1) as f64;
            let shown = percent(ratio, 4);
            let (text, low, high) = match row.interval {
                Some((low, high)) => {
                    let text = format!("{shown} [{}, {}]", percent(low, 4), percent(high, 4));
                    (text, low.into(), high.into())
                }
                None => (shown, Value::Null, Value::Null),
            };
            Cell::Values(text.into(), vec![ratio.into(), low, high])
        })
        .keys(&["loss_ratio", "low", "high"])
        .numbers("worst trial", |row| Cell::number(row.worst, Digits::Percent(4)))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .with_words(|row, line| {
            line.words.push(sentence(row));
        })
        .set(|table| table.name = Some("soak"))
        .block()
}

/// States the stability at a load, without the variant's name.
pub(super) fn sentence(row: &SoakOutcome) -> String {
    // "None" would overstate the result if losses are in doubt.
    let doubt = match row.in_doubt {
        0 => String::new(),
        packets => format!(" for sure ({packets} packets lost while others had its CPU)"),
    };
    let load = format_pps(row.load as f64);
    format!("{} of {} trials lost something{doubt} at {load}", row.lossy, row.trials)
}
