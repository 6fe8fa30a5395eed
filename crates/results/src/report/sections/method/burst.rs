//! The longest bursts without loss, and the buffer time of the device (RFC 9004).

use super::MethodRun;
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::SummaryResult;
use crate::report::sections::cells::seconds;
use crate::stats::summary::median;
use fwdlab_model::record::MethodRecord;
use fwdlab_search::{Burst, Longest};
use serde::Serialize;

/// The longest bursts of a variant without loss, over all searches of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Bursts {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Their lengths in frames, whose mean is the back-to-back frame value of RFC 9004; `None` if
    /// no search finished.
    pub frames: Option<SummaryResult>,
    /// Number of searches in which the longest allowed burst had no loss: the true value may be
    /// larger.
    pub at_least: usize,
    /// Frame rate of the bursts: the sender's rate at the maximum offered load.
    pub burst_pps: Option<f64>,
    /// Frame rate that the device forwarded at that load.
    pub forwarded_pps: Option<f64>,
    /// Duration of the mean burst at that rate, seconds (RFC 9004, implied buffer time).
    pub implied_s: Option<f64>,
    /// Buffer time without the frames forwarded during the burst, seconds (RFC 9004, corrected
    /// buffer time).
    pub corrected_s: Option<f64>,
    /// Number of invalid bursts.
    pub invalid: usize,
}

/// Returns the longest burst, or the most connections, of each search in a run's trials.
pub(super) fn longest(record: &MethodRecord) -> Vec<Burst> {
    let (mut found, mut search): (Vec<Burst>, Option<Longest>) = (Vec::new(), None);
    for trial in &record.trials {
        let opened = trial.connections.as_ref().map(|opened| opened.wanted);
        let (Some(frames), Ok(is_whole)) = (trial.burst.or(opened), trial.is_whole()) else {
            continue;
        };
        // The first burst after a finished search begins the next one.
        let current = search.get_or_insert_with(|| Longest::new(frames, record.max_load));
        current.record(frames, is_whole);
        if let Some(burst) = current.found() {
            found.push(burst);
            search = None;
        }
    }
    found
}

/// Summarises a variant over its runs; `None` without runs.
pub(super) fn bursts((variant, label): (usize, &str), runs: &[MethodRun]) -> Option<Bursts> {
    let variant_runs: Vec<&MethodRun> = runs.iter().filter(|run| run.variant == variant).collect();
    let found: Vec<Burst> =
        variant_runs.iter().flat_map(|run| run.bursts.iter().copied()).collect();
    let lengths: Vec<f64> = found.iter().map(|burst| burst.frames as f64).collect();
    let of = |get: fn((f64, f64)) -> f64| -> Vec<f64> {
        variant_runs.iter().filter_map(|run| run.own.map(get)).collect()
    };
    let burst_pps = median(&of(|rates| rates.0));
    let forwarded_pps = median(&of(|rates| rates.1));
    let frames = SummaryResult::of(&lengths);
    let implied_s = frames.zip(burst_pps).map(|(frames, pps)| frames.mean / pps);
    let corrected = |implied: f64| Some(implied * (1.0 - forwarded_pps? / burst_pps?).max(0.0));
    variant_runs.first()?;
    Some(Bursts {
        variant,
        label: label.to_owned(),
        frames,
        at_least: found.iter().filter(|burst| burst.is_most).count(),
        burst_pps,
        forwarded_pps,
        implied_s,
        corrected_s: implied_s.and_then(corrected),
        invalid: variant_runs
            .iter()
            .flat_map(|run| &run.points)
            .filter(|p| p.invalid.is_some())
            .count(),
    })
}

/// Returns a table with one row per variant.
pub(super) fn table(rows: &[Bursts]) -> Block {
    let whole = |value: Option<f64>| Cell::number(value, Digits::Decimals(0));
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("searches", |row| Cell::count(row.frames.map_or(0, |found| found.n) as u64))
        .numbers("back-to-back", |row| {
            Cell::number(row.frames.map(|found| found.mean), Digits::Decimals(1))
        })
        .numbers("minimum", move |row| whole(row.frames.map(|found| found.min)))
        .numbers("maximum", move |row| whole(row.frames.map(|found| found.max)))
        .numbers("CV", |row| {
            Cell::number(row.frames.and_then(|found| found.cv), Digits::Percent(1))
        })
        .numbers("at least", |row| Cell::count(row.at_least as u64))
        .numbers("burst rate", |row| Cell::rate(row.burst_pps))
        .numbers("forwarded", |row| Cell::rate(row.forwarded_pps))
        .numbers("implied buffer", |row| seconds(row.implied_s))
        .numbers("corrected buffer", |row| seconds(row.corrected_s))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .with_words(|row, line| line.words.push(sentence(row)))
        .set(|table| table.name = Some("back-to-back"))
        .block()
}

/// States the result for bursts, without the variant's name.
pub(super) fn sentence(row: &Bursts) -> String {
    let Some(found) = row.frames else {
        return "no search for the longest burst came to its end".to_owned();
    };
    let least = if row.at_least > 0 { "at least " } else { "" };
    let time = row.corrected_s.map_or(String::new(), |s| {
        format!(", a buffer of {} (RFC 9004, corrected)", crate::format::duration(s))
    });
    format!("bursts of {least}{:.0} frames lose nothing{time}", found.mean)
}
