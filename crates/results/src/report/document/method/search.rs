//! Results of searches, and the goals.

use crate::document::measure::THROUGHPUT;
use crate::document::table::{Cell, Digits, Rows};
use crate::document::{Block, Table};
use crate::format::percent;
use crate::report::analysis::{Method, SearchOutcome};
use fwdlab_model::spec::format_ns;
use fwdlab_model::units::{format_bps, format_pps};

/// Starts a table with one row per variant and goal.
pub(super) fn rates<'r>(rows: &'r [SearchOutcome], what: &'static str) -> Rows<'r, SearchOutcome> {
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .words("goal", |row| Cell::text(&row.goal))
        .numbers(what, |row| Cell::rate(row.throughput.map(|found| found.median)))
        .numbers("minimum", |row| Cell::rate(row.throughput.map(|found| found.min)))
        .numbers("maximum", |row| Cell::rate(row.throughput.map(|found| found.max)))
        .numbers("CV", |row| {
            Cell::number(row.throughput.and_then(|found| found.cv), Digits::Percent(2))
        })
        .numbers("lower bound", |row| Cell::rate(row.lower))
        .numbers("upper bound", |row| Cell::rate(row.upper))
}

/// Formats a mean number of trials, without decimals if it is whole.
pub(super) fn mean(trials: f64) -> Cell {
    Cell::number(trials, Digits::Decimals(usize::from(trials.fract() != 0.0)))
}

/// Formats the number of runs with a regular result, and of all runs.
pub(super) fn regular(row: &SearchOutcome) -> Cell {
    let (regular, all) = row.regular;
    let line = match row.at_line {
        0 => String::new(),
        runs => format!(", {runs} at line rate"),
    };
    Cell::Values(format!("{regular} of {all}{line}").into(), vec![regular.into(), all.into()])
}

/// Returns a table with one row per variant and goal.
pub(super) fn table(rows: &[SearchOutcome]) -> Block {
    let table = rates(rows, "throughput")
        .numbers("L1", |row| bits(row.bits.map(|(l1, _)| l1)))
        .numbers("L2", |row| bits(row.bits.map(|(_, l2)| l2)));
    let table = match rows.iter().any(|row| row.of_line.is_some()) {
        true => table.numbers("of line rate", |row| Cell::number(row.of_line, Digits::Percent(2))),
        false => table,
    };
    table
        .numbers("FRMOL", |row| Cell::rate(row.frmol))
        .words("regular", regular)
        .keys(&["regular", "runs"])
        .numbers("trials", |row| mean(row.trials))
        .numbers("invalid", |row| mean(row.invalid))
        .said(|row, line| {
            line.name = format!("{}, {}", row.label, row.goal);
            line.words.push(found(row));
        })
        .set(|table| {
            table.name = Some("throughput");
            table.measures = &[THROUGHPUT];
        })
        .block()
}

/// States the result for a goal.
fn found(row: &SearchOutcome) -> String {
    match &row.throughput {
        Some(found) => format!(
            "{} (n = {}, {} to {}){}{}",
            format_pps(found.median),
            found.n,
            format_pps(found.min),
            format_pps(found.max),
            of_line(row.of_line),
            at_line(row.at_line, found.n)
        ),
        None => {
            let least = row.at_least.map(|pps| format!("at least {}; ", format_pps(pps)));
            let least = least.unwrap_or_default();
            format!("{least}no regular result: {}", row.irregular.join("; "))
        }
    }
}

/// Formats a share of the line rate; empty if the line rate is unknown.
pub(super) fn of_line(share: Option<f64>) -> String {
    share.map_or(String::new(), |share| format!(", {} of line rate", percent(share, 1)))
}

/// States how many of `all` runs were at line rate; empty if none were.
pub(super) fn at_line(runs: usize, all: usize) -> String {
    match runs {
        0 => String::new(),
        _ if runs == all => ": the device is as fast as its link, or faster".to_owned(),
        _ => format!(", which {runs} of the runs held"),
    }
}

/// States the result of a search for a goal, without the variant's name.
pub(super) fn sentence(row: &SearchOutcome) -> String {
    format!("{} {}", row.goal, found(row))
}

fn bits(bps: Option<f64>) -> Cell {
    bps.map_or(Cell::None, |bps| Cell::Values(format_bps(bps).into(), vec![bps.into()]))
}

/// Returns the goals with all their attributes, since every attribute must be reported.
pub(super) fn goals(method: &Method) -> Option<Block> {
    let ratio = |value: f64| Cell::number(value, Digits::Percent(2));
    let time = |ns: u64| Cell::text(format_ns(ns));
    let table = Table::of(&method.goals)
        .words("goal", |goal| Cell::text(&goal.name))
        .numbers("loss ratio", move |goal| ratio(goal.loss_ratio))
        .numbers("exceed ratio", move |goal| ratio(goal.exceed_ratio))
        .numbers("initial trial", move |goal| time(goal.initial_ns))
        .numbers("final trial", move |goal| time(goal.final_ns))
        .numbers("duration sum", move |goal| time(goal.sum_ns))
        .numbers("width", move |goal| ratio(goal.width));
    let directions = match method.directions.is_empty() {
        true => "in one direction",
        false => "of both directions together where packets go both ways",
    };
    let text = format!("Loads are packets per second into the device, {directions}. {GOALS}");
    (!method.goals.is_empty())
        .then(|| Block::section("Goals", vec![Block::text(text), table.block()]))
}

const GOALS: &str = "A trial that the instrument spoiled (its sender fell short, its receiver dropped) is \
                     invalid, is listed, and is measured again.";
