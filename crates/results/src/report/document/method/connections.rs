//! Connection establishment rate, teardown rate and table capacity of a stateful device.

use super::{search, seconds};
use crate::document::table::Cell;
use crate::document::{Block, Table};
use crate::report::analysis::{SearchOutcome, TableCapacity, TeardownRate};
use fwdlab_model::units::format_pps;

/// Returns a table of the establishment rates, with one row per variant and goal.
pub(super) fn established(rows: &[SearchOutcome]) -> Block {
    search::rates(rows, "set up a second")
        .numbers("forwarding rate", |row| Cell::rate(row.frmol))
        .words("regular", search::regular)
        .keys(&["regular", "runs"])
        .numbers("trials", |row| search::mean(row.trials))
        .numbers("invalid", |row| search::mean(row.invalid))
        .said(|row, line| {
            line.name = format!("{}, {}", row.label, row.goal);
            line.words.push(established_sentence(row));
        })
        .set(|table| table.name = Some("establishment-rate"))
        .block()
}

/// States the establishment rate, without the variant's name.
pub(super) fn established_sentence(row: &SearchOutcome) -> String {
    match row.regular.1 {
        0 => "no connections were opened".to_owned(),
        _ => match &row.throughput {
            Some(found) => format!(
                "{} connections a second are set up, {} (n = {}, {} to {})",
                per_second(found.median),
                row.goal,
                found.n,
                per_second(found.min),
                per_second(found.max)
            ),
            None => search::sentence(row),
        },
    }
}

/// Returns a table of the teardown rates, with one row per variant.
pub(super) fn torn_down(rows: &[TeardownRate]) -> Block {
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("connections", |row| row.connections.map_or(Cell::None, Cell::count))
        .numbers("times", |row| Cell::count(row.rate.map_or(0, |found| found.n) as u64))
        .numbers("removed a second", |row| Cell::rate(row.rate.map(|found| found.median)))
        .numbers("minimum", |row| Cell::rate(row.rate.map(|found| found.min)))
        .numbers("maximum", |row| Cell::rate(row.rate.map(|found| found.max)))
        .numbers("with asking", |row| Cell::rate(row.at_least))
        .numbers("empty table", |row| seconds(row.empty_s))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .said(|row, line| line.words.push(torn_down_sentence(row)))
        .set(|table| table.name = Some("tear-down-rate"))
        .block()
}

/// States the teardown rate, without the variant's name.
pub(super) fn torn_down_sentence(row: &TeardownRate) -> String {
    let Some((rate, connections)) = row.rate.zip(row.connections) else {
        return match row.at_least {
            Some(rate) => format!(
                "at least {} connections a second are removed: a full table takes hardly longer \
                 than an empty one",
                per_second(rate)
            ),
            None => "no removal of a full table could be timed".to_owned(),
        };
    };
    format!(
        "{} connections a second are removed, of a table of {connections} (median of {})",
        per_second(rate.median),
        rate.n
    )
}

/// Formats a rate without its unit.
pub(super) fn per_second(rate: f64) -> String {
    format_pps(rate).replace("pps", "").trim_end().to_owned()
}

/// Returns a table of the capacities, with one row per variant.
pub(super) fn held(rows: &[TableCapacity]) -> Block {
    let count = |value: Option<f64>| value.map_or(Cell::None, |n| Cell::count(n as u64));
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("searches", |row| Cell::count(row.connections.map_or(0, |found| found.n) as u64))
        .numbers("held", move |row| count(row.connections.map(|found| found.median)))
        .numbers("minimum", move |row| count(row.connections.map(|found| found.min)))
        .numbers("maximum", move |row| count(row.connections.map(|found| found.max)))
        .numbers("at least", |row| Cell::count(row.at_least as u64))
        .numbers("most states", |row| row.most_states.map_or(Cell::None, Cell::count))
        .numbers("opened at", |row| Cell::rate(row.rate.map(|rate| rate as f64)))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .said(|row, line| line.words.push(held_sentence(row)))
        .set(|table| table.name = Some("table-capacity"))
        .block()
}

/// States the capacity, without the variant's name.
pub(super) fn held_sentence(row: &TableCapacity) -> String {
    match &row.connections {
        Some(found) => {
            let least = if row.at_least > 0 { "at least " } else { "" };
            format!("the table holds {least}{:.0} connections", found.median)
        }
        None => "no search for the table's capacity came to its end".to_owned(),
    }
}
