//! Stability at one load.

use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::percent;
use crate::report::analysis::SoakOutcome;
use fwdlab_model::units::format_pps;
use serde_json::Value;

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
        .said(|row, line| {
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
