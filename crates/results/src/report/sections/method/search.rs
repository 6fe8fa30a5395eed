//! Results of a search by goal, over the runs of a variant.

use super::{Method, MethodRun};
use crate::document::measure::THROUGHPUT;
use crate::document::table::{Cell, Digits, Rows};
use crate::document::{Block, Table};
use crate::format::percent;
use crate::report::analysis::SummaryResult;
use crate::report::sections::cells::bits;
use crate::stats::summary::median;
use fwdlab_model::spec::format_ns;
use fwdlab_model::units::{FrameSize, format_pps};
use fwdlab_search::Goal;
use serde::Serialize;

/// Result of a run for a goal.
#[derive(Clone, Debug, Serialize)]
pub struct GoalFound {
    /// Name of the goal.
    pub goal: String,
    /// Relevant lower bound, packets per second.
    pub lower: Option<u64>,
    /// Relevant upper bound, packets per second.
    pub upper: Option<u64>,
    /// Conditional throughput, packets per second.
    pub throughput: Option<f64>,
    /// Reason for an irregular result; `None` for a regular one.
    pub irregular: Option<String>,
    /// True if the line rate is a lower bound: the throughput is the link's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_at_line: bool,
    /// True if the highest load tried is a lower bound: the throughput may be higher.
    #[serde(skip)]
    pub is_at_greatest: bool,
}

impl GoalFound {
    /// Returns true if the throughput is the device's: the result is regular, or the link limits
    /// it.
    pub fn has_rate(&self) -> bool {
        self.irregular.is_none() || self.is_at_line
    }
}

/// Results of a variant for a goal, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct SearchOutcome {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Name of the goal.
    pub goal: String,
    /// Conditional throughput of the runs with a regular result or at line rate.
    pub throughput: Option<SummaryResult>,
    /// The median in bits per second on the link, with preamble and gap (L1) and without (L2);
    /// `None` if the frame size is unknown.
    pub bits: Option<(f64, f64)>,
    /// Ratio of the median to the line rate; `None` if the line rate is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_line: Option<f64>,
    /// Median of their lower bounds.
    pub lower: Option<f64>,
    /// Median of their upper bounds.
    pub upper: Option<f64>,
    /// Median of the same runs' forwarding rates at the maximum offered load.
    pub frmol: Option<f64>,
    /// The same rates, with minimum and maximum.
    #[serde(skip)]
    pub(crate) frmol_of_runs: Option<SummaryResult>,
    /// Number of runs with a regular result, and number of all runs.
    pub regular: (usize, usize),
    /// Number of runs at line rate: the device is at least as fast as its link.
    #[serde(skip_serializing_if = "is_none")]
    pub at_line: usize,
    /// Lower bound if no run has a throughput: the forwarding rate at the highest load tried, which
    /// met the goal, packets per second; median of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Mean number of valid trials in a run.
    pub trials: f64,
    /// Mean number of invalid trials in a run.
    pub invalid: f64,
    /// Distinct reasons of irregular results.
    pub irregular: Vec<String>,
}

pub(super) fn is_none(runs: &usize) -> bool {
    *runs == 0
}

/// Frame size and line rate in frames per second, if known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OnLink {
    pub(super) frame: Option<FrameSize>,
    pub(super) line_pps: Option<f64>,
}

/// Returns a row for each goal of a variant; `frmol` returns a run's forwarding rate at the maximum
/// offered load.
pub(super) fn searched<'a>(
    goals: &'a [Goal],
    (variant, label): (usize, &'a str),
    runs: &'a [MethodRun],
    on_link: OnLink,
    frmol: impl Fn(u32) -> Option<f64> + Copy + 'a,
) -> impl Iterator<Item = SearchOutcome> + 'a {
    goals.iter().enumerate().map(move |(number, goal)| {
        let variant_runs: Vec<&MethodRun> =
            runs.iter().filter(|run| run.variant == variant).collect();
        let (regular, irregular): (Vec<&MethodRun>, Vec<&MethodRun>) =
            variant_runs.iter().partition(|run| run.found[number].has_rate());
        let at_line = regular.iter().filter(|run| run.found[number].is_at_line).count();
        let at_greatest = irregular.iter().map(|run| &run.found[number]);
        let at_greatest = at_greatest.filter(|found| found.is_at_greatest);
        let at_least: Vec<f64> = at_greatest.filter_map(|found| found.throughput).collect();
        let of = |get: fn(&GoalFound) -> Option<f64>| -> Vec<f64> {
            regular.iter().filter_map(|run| get(&run.found[number])).collect()
        };
        let mut reasons: Vec<String> =
            irregular.iter().filter_map(|run| run.found[number].irregular.clone()).collect();
        reasons.sort();
        reasons.dedup();
        let rates: Vec<f64> = regular.iter().filter_map(|run| frmol(run.run)).collect();
        let mean = |is_invalid: bool| {
            let trials = variant_runs.iter().flat_map(|run| &run.points);
            let trials = trials.filter(|trial| trial.invalid.is_some() == is_invalid).count();
            trials as f64 / variant_runs.len().max(1) as f64
        };
        let throughput = SummaryResult::of(&of(|found| found.throughput));
        let bits = throughput.zip(on_link.frame).map(|(found, frame)| {
            (frame.l1_bits_per_second(found.median), frame.l2_bits_per_second(found.median))
        });
        SearchOutcome {
            variant,
            label: label.to_owned(),
            goal: goal.name.clone(),
            throughput,
            bits,
            of_line: throughput.zip(on_link.line_pps).map(|(found, line)| found.median / line),
            lower: median(&of(|found| found.lower.map(|pps| pps as f64))),
            upper: median(&of(|found| found.upper.map(|pps| pps as f64))),
            frmol: median(&rates),
            frmol_of_runs: SummaryResult::of(&rates),
            regular: (regular.len() - at_line, variant_runs.len()),
            at_line,
            at_least: median(&at_least).filter(|_| throughput.is_none()),
            trials: mean(false),
            invalid: mean(true),
            irregular: reasons,
        }
    })
}

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
        .with_words(|row, line| {
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
