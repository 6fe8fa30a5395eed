//! Duration of loss after an overload, or around a reset.

use super::seconds;
use crate::document::table::Cell;
use crate::document::{Block, Table};
use crate::report::analysis::InterruptionSummary;

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
        .said(move |row, line| line.words.push(sentence(row)))
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
