//! The tests of RFC 2544 side by side.

use super::super::quality::frame_size;
use super::search::of_line;
use super::seconds;
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::{Suite, SuiteRow};
use fwdlab_model::units::{format_bps, format_pps};

/// Returns the results by variant, and the deviations from the RFC.
pub(super) fn blocks(suite: &Suite) -> Vec<Block> {
    let line = match suite.rows.iter().any(|row| row.of_line.is_some()) {
        true => "Shares are of the links' line rate, and",
        false => "No line rate is known, as virtual links have none: shares are",
    };
    vec![
        Block::text(format!(
            "Medians over the runs. L1 has preamble and gap, L2 the frame with FCS. {line} of the \
             maximum offered load (RFC 2285, 3.5.3), at which the loss stands beside it."
        )),
        table(&suite.rows),
        Block::section("Deviations from RFC 2544", vec![Block::list(suite.deviations.clone())]),
    ]
}

/// Returns a table with one row per variant.
pub(super) fn table(rows: &[SuiteRow]) -> Block {
    let bits = |bps: Option<f64>| {
        bps.map_or(Cell::None, |bps| Cell::Values(format_bps(bps).into(), vec![bps.into()]))
    };
    let table = Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("frame", |row| frame_size(row.frame_size))
        .numbers("throughput", |row| Cell::rate(row.throughput))
        .numbers("L1", move |row| bits(row.bits.map(|(l1, _)| l1)))
        .numbers("L2", move |row| bits(row.bits.map(|(_, l2)| l2)));
    let table = match rows.iter().any(|row| row.of_line.is_some()) {
        true => table.numbers("of line rate", |row| Cell::number(row.of_line, Digits::Percent(2))),
        false => table,
    };
    table
        .numbers("of maximum", |row| Cell::number(row.of_maximum, Digits::Percent(1)))
        .numbers("maximum offered", |row| Cell::rate(row.maximum))
        .numbers("lost there", |row| Cell::number(row.loss, Digits::Percent(2)))
        .numbers("latency", |row| seconds(row.latency_s))
        .numbers("back-to-back", |row| Cell::number(row.burst, Digits::Decimals(0)))
        .numbers("buffer", |row| seconds(row.buffer_s))
        .numbers("recovery", |row| seconds(row.recovery_s))
        .numbers("reset", |row| seconds(row.reset_s))
        .said(|row, line| line.words.push(sentence(row)))
        .set(|table| table.name = Some("rfc2544"))
        .block()
}

/// States the results of a variant's tests, without its name.
pub(super) fn sentence(row: &SuiteRow) -> String {
    let throughput = match row.throughput {
        Some(pps) if row.at_line > 0 => {
            format!("throughput {}, the line rate in {} runs", format_pps(pps), row.at_line)
        }
        Some(pps) => format!("throughput {}", format_pps(pps)),
        None => match row.at_least {
            Some(pps) => {
                format!("throughput at least {}, the greatest load tried", format_pps(pps))
            }
            None => "no throughput found".to_owned(),
        },
    };
    let bits =
        row.bits.map_or(String::new(), |(l1, _)| format!(" ({} on the link)", format_bps(l1)));
    let burst = row.burst.map_or(String::new(), |frames| format!(", bursts of {frames:.0} frames"));
    let line = of_line(row.of_line);
    // If nothing else is varied, the variant's name is the size.
    let size = match row.frame_size.to_string() == format!("{} bytes", row.label) {
        true => String::new(),
        false => format!("{}: ", row.frame_size),
    };
    format!("{size}{throughput}{bits}{line}{burst}")
}
