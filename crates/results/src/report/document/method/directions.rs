//! Results per direction for simultaneous bidirectional traffic.

use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::Method;

/// Returns a table with one row per direction and load of a result; `None` for unidirectional
/// traffic.
pub(super) fn section(method: &Method) -> Option<Block> {
    let table = Table::of(&method.directions)
        .words("variant", |row| Cell::text(&row.label))
        .words("at", |row| Cell::text(&row.at))
        .words("direction", |row| Cell::text(&row.direction))
        .numbers("trials", |row| Cell::count(row.trials))
        .numbers("offered", |row| Cell::rate(row.offered_pps))
        .numbers("forwarded", |row| Cell::rate(row.forwarded_pps))
        .numbers("loss", |row| Cell::number(row.loss_ratio, Digits::Percent(4)))
        .set(|table| table.name = Some("trial-directions"));
    let blocks = vec![Block::text(TEXT), table.block()];
    (!method.directions.is_empty()).then(|| Block::section("Each direction", blocks))
}

const TEXT: &str = "Packets went in both directions at once (RFC 2544, section 14): loads, rates and \
                    losses elsewhere are those of both together. Each by itself in the trials of \
                    the loads that were found: medians over the trials; loss of all of them \
                    as it was counted, whoever's it was.";
