//! Duration of loss after an overload (RFC 2544, 26.5) or around a reset (RFC 6201).

use super::MethodRun;
use crate::document::table::Cell;
use crate::document::{Block, Table};
use crate::report::analysis::SummaryResult;
use crate::report::sections::cells::seconds;
use fwdlab_model::record::MethodRecord;
use serde::Serialize;

/// Result of one overload or reset.
#[derive(Clone, Debug, Serialize)]
pub struct Interruption {
    /// Load before the window, packets per second; `None` if it was the same.
    pub before: Option<u64>,
    /// Load of the window, packets per second.
    pub load: u64,
    /// Packets lost in the window; after a reset, only those lost around it.
    pub lost: u64,
    /// Duration of loss, seconds. After an overload: the time until the last lost packet was sent,
    /// to the resolution of a sample. Around a reset: the number of lost packets over the load (RFC
    /// 6201, frame-loss method).
    pub seconds: Option<f64>,
    /// Method of the reset, and the time that its command took, seconds.
    pub reset: Option<(String, f64)>,
    /// True if loss continued until the window closed: the interruption may be longer.
    pub is_open: bool,
    /// Reason why the trial is invalid.
    pub invalid: Option<String>,
}

/// Interruptions of a variant, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct InterruptionSummary {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Load before and in the window of the first run, packets per second.
    pub loads: (Option<u64>, u64),
    /// Seconds over the valid interruptions; RFC 2544 reports the mean.
    pub seconds: Option<SummaryResult>,
    /// Number of interruptions that had not ended when the window closed.
    pub open: usize,
    /// Method of the reset; `None` if the device was not reset or can't be.
    pub how: Option<String>,
    /// Number of invalid interruptions.
    pub invalid: usize,
}

/// Returns every interruption in a run's trials, in order.
pub(super) fn each(record: &MethodRecord) -> Vec<Interruption> {
    let of = |trial: &fwdlab_model::record::MethodTrial| {
        let lost = match &trial.reset {
            Some(reset) => reset.lost,
            None => trial.offered.saturating_sub(trial.forwarded),
        };
        let seconds = |ns: u64| ns as f64 / 1e9;
        let last = trial.last_loss_ns.map_or(0.0, seconds);
        // Without an overload or a reset there is no interruption.
        let time = match &trial.reset {
            Some(reset) => Some(reset.lost as f64 / trial.load.max(1) as f64),
            None => trial.before.map(|_| last),
        };
        let is_open = trial.last_loss_ns.is_some_and(|ns| ns >= trial.window_ns);
        let invalid = trial.loss_bounds().err();
        let reset = trial.reset.as_ref();
        Interruption {
            before: trial.before,
            load: trial.load,
            lost,
            seconds: time.filter(|_| invalid.is_none()),
            reset: reset.map(|reset| (reset.how.clone(), seconds(reset.took_ns))),
            is_open,
            invalid,
        }
    };
    record.trials.iter().map(of).collect()
}

/// Summarises a variant over its runs; `None` without trials.
pub(super) fn interrupted(
    (variant, label): (usize, &str),
    runs: &[MethodRun],
) -> Option<InterruptionSummary> {
    let interruptions = runs.iter().filter(|run| run.variant == variant);
    let interruptions: Vec<&Interruption> =
        interruptions.flat_map(|run| &run.interruptions).collect();
    let first = interruptions.first()?;
    let times: Vec<f64> = interruptions.iter().filter_map(|one| one.seconds).collect();
    Some(InterruptionSummary {
        variant,
        label: label.to_owned(),
        loads: (first.before, first.load),
        seconds: SummaryResult::of(&times),
        open: interruptions.iter().filter(|one| one.is_open).count(),
        how: interruptions.iter().find_map(|one| Some(one.reset.as_ref()?.0.clone())),
        invalid: interruptions.iter().filter(|one| one.invalid.is_some()).count(),
    })
}

/// Returns a table with one row per variant.
pub(super) fn table(rows: &[InterruptionSummary], name: &'static str) -> Block {
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("times", |row| Cell::count(row.seconds.map_or(0, |found| found.n) as u64))
        .numbers("load before", |row| Cell::rate(row.loads.0.map(|pps| pps as f64)))
        .numbers("load", |row| Cell::rate(row.loads.1 as f64))
        .numbers("mean", |row| seconds(row.seconds.map(|found| found.mean)))
        .numbers("median", |row| seconds(row.seconds.map(|found| found.median)))
        .numbers("minimum", |row| seconds(row.seconds.map(|found| found.min)))
        .numbers("maximum", |row| seconds(row.seconds.map(|found| found.max)))
        .numbers("not ended", |row| Cell::count(row.open as u64))
        .words("what was done", |row| Cell::text(row.how.as_deref().unwrap_or("")))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .with_words(move |row, line| line.words.push(sentence(row)))
        .set(|table| table.name = Some(name))
        .block()
}

/// States the result for interruptions, without the variant's name.
pub(super) fn sentence(row: &InterruptionSummary) -> String {
    let cause = match (&row.how, row.loads.0) {
        (Some(_), _) => "around a reset packets were lost for",
        (None, Some(_)) => "after an overload packets were lost for",
        (None, None) => return "the device was not reset: this kind can't be under traffic".into(),
    };
    let Some(found) = row.seconds else {
        return "no time of losses could be measured".to_owned();
    };
    let least = if row.open > 0 { "at least " } else { "" };
    let [median, mean] = [found.median, found.mean].map(crate::format::duration);
    format!("{cause} {least}{median} (median of {}, mean {mean})", found.n)
}
