//! One-way delays.

use super::seconds;
use crate::document::measure::{LATENCY, LATENCY_P99};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::{duration, percent, signed_percent};
use crate::report::analysis::{DelayEffect, LatencyResult, LatencyStatistic};

/// Returns a table with one row per variant and share.
pub(super) fn table(rows: &[LatencyResult]) -> Block {
    let figure = |name: &'static str| {
        move |row: &LatencyResult| seconds(row.figure(name).and_then(|found| found.seconds))
    };
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("share", |row| Cell::number(row.share, Digits::Percent(0)))
        .numbers("load", |row| Cell::rate(row.load))
        .numbers("minimum", figure("minimum"))
        .numbers("p50", figure("p50"))
        .numbers("p90", figure("p90"))
        .numbers("p99", figure("p99"))
        .numbers("p99.9", figure("p99.9"))
        .numbers("p99.99", figure("p99.99"))
        .numbers("maximum", figure("maximum"))
        .numbers("mean", figure("mean"))
        .numbers("PDV", figure("PDV"))
        .numbers("IPDV p50", figure("IPDV p50"))
        .numbers("IPDV p99", figure("IPDV p99"))
        .numbers("lost", |row| Cell::number(row.loss, Digits::Percent(3)))
        .numbers("taken", |row| Cell::number(row.taken, Digits::Percent(1)))
        .numbers("packets", |row| Cell::count(row.packets))
        .numbers("runs", |row| Cell::count(row.runs as u64))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .said(|row, line| {
            line.name = format!("{}, {}", row.label, percent(row.share, 0));
            line.words.push(sentence(row));
        })
        .set(|table| {
            table.name = Some("latency");
            table.measures = &[LATENCY, LATENCY_P99];
        })
        .block()
}

/// Returns every statistic with its interval, next to the instrument's alone.
pub(super) fn intervals(rows: &[LatencyResult], confidence: f64) -> Option<Block> {
    let all: Vec<(&LatencyResult, &LatencyStatistic)> =
        rows.iter().flat_map(|row| row.figures.iter().map(move |figure| (row, figure))).collect();
    let interval = |figure: &LatencyStatistic| match figure.interval {
        Some((low, high)) => Cell::Values(
            format!("{} to {}", duration(low), duration(high)).into(),
            vec![low.into(), high.into()],
        ),
        None => Cell::Values("".into(), vec![serde_json::Value::Null, serde_json::Value::Null]),
    };
    let table = Table::of(&all)
        .words("variant", |(row, _)| Cell::text(&row.label))
        .numbers("share", |(row, _)| Cell::number(row.share, Digits::Percent(0)))
        .words("figure", |(_, figure)| Cell::text(figure.name))
        .numbers("delay", |(_, figure)| seconds(figure.seconds))
        .numbers("interval", move |(_, figure)| interval(figure))
        .keys(&["low", "high"])
        .numbers("instrument alone", |(_, figure)| seconds(figure.floor))
        .set(|table| table.name = Some("latency-intervals"));
    let text = format!(
        "Geometric means over the runs with {confidence} % intervals (Student's t on logarithms; \
         none for fewer than three). Instrument alone: the same sender straight into the same receiver at the \
         same load, once a run and all runs together, where the two can be joined; it is part of \
         each delay and is not subtracted."
    );
    (!all.is_empty())
        .then(|| Block::section("Delays with intervals", vec![Block::text(text), table.block()]))
}

/// Returns the comparisons of each variant with its baseline.
pub(super) fn effects(rows: &[DelayEffect], confidence: f64) -> Option<Block> {
    let table = Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .words("against", |row| Cell::text(&row.baseline_label))
        .numbers("share", |row| Cell::number(row.share, Digits::Percent(0)))
        .words("figure", |row| Cell::text(row.name))
        .numbers("difference", |row| {
            Cell::Values(signed_percent(row.effect, 1).into(), vec![row.effect.into()])
        })
        .numbers("interval", |row| {
            let (low, high) = row.interval;
            let text = format!("{} to {}", signed_percent(low, 1), signed_percent(high, 1));
            Cell::Values(text.into(), vec![low.into(), high.into()])
        })
        .keys(&["low", "high"])
        .set(|table| table.name = Some("latency-effects"));
    let text = format!(
        "Delay of a variant relative to its baseline in the same blocks, at the same share of the \
         rate of each, so not at the same load; {confidence} % intervals, not joint. An interval \
         that contains 0 shows no difference."
    );
    (!rows.is_empty())
        .then(|| Block::section("Delays compared", vec![Block::text(text), table.block()]))
}

/// States the delays at a share, without the variant's name.
pub(super) fn sentence(row: &LatencyResult) -> String {
    let of = |name: &str| row.figure(name).and_then(|figure| figure.seconds);
    let share = percent(row.share, 0);
    let Some(p50) = of("p50") else {
        return format!("at {share} of the rate found no packet told its delay");
    };
    let tail = ["p99.9", "p99"].into_iter().find_map(|name| Some((name, of(name)?)));
    let tail = tail.map_or(String::new(), |(name, delay)| format!(", {name} {}", duration(delay)));
    let floor = row.figure("p50").and_then(|figure| figure.floor);
    let floor = floor
        .map_or(String::new(), |floor| format!(" (the instrument alone: p50 {})", duration(floor)));
    format!("at {share} of the rate found, p50 {}{tail}{floor}", duration(p50))
}
