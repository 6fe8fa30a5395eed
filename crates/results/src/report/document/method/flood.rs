//! Effect of a flood of new flows on the traffic, as a table.

use super::connections::per_second;
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::percent;
use crate::report::analysis::{FloodOutcome, FloodSummary};
use fwdlab_model::units::format_pps;

/// Returns a table with one row per variant and flood.
pub(super) fn table(rows: &[FloodOutcome]) -> Block {
    let lost = |value: Option<f64>| Cell::number(value, Digits::Percent(2));
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("flood", |row| Cell::rate(row.flood as f64))
        .numbers("flood offered", |row| Cell::rate(row.offered))
        .numbers("flood forwarded", |row| Cell::number(row.passed, Digits::Percent(1)))
        .numbers("states", |row| row.states.map_or(Cell::None, |n| Cell::count(n as u64)))
        .numbers("traffic", |row| Cell::rate(row.load as f64))
        .numbers("lost", move |row| lost(row.loss.map(|found| found.median)))
        .numbers("minimum", move |row| lost(row.loss.map(|found| found.min)))
        .numbers("maximum", move |row| lost(row.loss.map(|found| found.max)))
        .numbers("lost at most", move |row| lost(row.loss_at_most))
        .numbers("runs", |row| Cell::count(row.loss.map_or(0, |found| found.n) as u64))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .said(|row, line| {
            line.name = format!("{}, flood {}", row.label, format_pps(row.flood as f64));
            line.words.push(match &row.loss {
                Some(found) => format!("{} of the traffic lost", percent(found.median, 2)),
                None => "no trial says anything of the device".to_owned(),
            });
        })
        .set(|table| table.name = Some("flood"))
        .block()
}

/// States the effect of floods on a variant's traffic, without the variant's name.
pub(super) fn sentence(row: &FloodSummary) -> String {
    let Some((greatest, loss)) = &row.greatest else {
        return "no trial beside a flood says anything of the device".to_owned();
    };
    let per_second = |flows: u64| format!("{} new flows a second", per_second(flows as f64));
    let traffic = format_pps(row.load as f64);
    let without = match row.without {
        Some(0.0) => "nothing".to_owned(),
        Some(loss) => format!("no more than the {} that it loses anyway", percent(loss, 2)),
        None => return format!("it is not known what traffic at {traffic} loses without a flood"),
    };
    let harm = match (row.harmless, row.harmful) {
        (Some(flows), _) => {
            format!("traffic at {traffic} loses {without} beside up to {}", per_second(flows))
        }
        (None, harmful) => format!(
            "traffic at {traffic} loses more beside any flood, from {} on",
            per_second(harmful.unwrap_or(*greatest))
        ),
    };
    let most = format!(
        "{} ({} to {}, n = {}) beside {}",
        percent(loss.median, 1),
        percent(loss.min, 1),
        percent(loss.max, 1),
        loss.n,
        per_second(*greatest)
    );
    let passed = row
        .passed
        .map_or(String::new(), |passed| format!(", of which {} get through", percent(passed, 1)));
    match row.harmful {
        Some(_) => format!("{harm}, and {most}{passed}"),
        None => format!("{harm}{passed}"),
    }
}
