//! The longest bursts without loss.

use super::seconds;
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::Bursts;

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
        .said(|row, line| line.words.push(sentence(row)))
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
