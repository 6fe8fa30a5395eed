//! Loss against load, as a table.

use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::percent;
use crate::report::analysis::LossCurveOutcome;
use fwdlab_model::units::format_pps;

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
        .said(|row, line| line.words.push(sentence(row)))
        .set(|table| table.name = Some("loss"))
        .block()
}

/// States the result of a curve, without the variant's name.
pub(super) fn sentence(row: &LossCurveOutcome) -> String {
    let lossless = match row.lossless {
        Some(pps) => format!("no loss of its own up to {}", format_pps(pps)),
        None => "losses at every load that was tried".to_owned(),
    };
    let most = row.loss.map_or(String::new(), |loss| {
        format!(", {} at {}", percent(loss, 1), format_pps(row.greatest))
    });
    format!("{lossless}{most}")
}
