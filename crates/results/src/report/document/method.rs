//! The trials beside the runs' own ones: rates that were searched for, loss against load, how
//! one load was held.

use crate::document::table::{Cell, Digits};
use crate::document::{Block, Document, Figure, Table};
use crate::format::percent;
use crate::report::analysis::{Method, Searched, Soaked};
use fwdlab_model::design::MethodKind;
use fwdlab_model::spec::format_ns;
use fwdlab_model::units::{format_bps, format_pps};

/// Searches on their own, as a document.
pub fn searches<'a>(title: &str, method: &'a Method) -> Document<'a> {
    Document {
        title: title.to_owned(),
        conclusion: Vec::new(),
        blocks: vec![section(method, &method.pictures())],
        data: method,
        version: super::VERSION,
    }
}

/// The section of a report.
pub(super) fn section(method: &Method, pictures: &[(String, String)]) -> Block {
    let mut blocks: Vec<Block> = match method.kind {
        MethodKind::Mlrsearch => vec![Block::text(
            "Conditional throughput (RFC 9971) is the rate that the device forwards at the greatest \
             load at which a goal is held; the relevant bounds enclose that load. Medians over the \
             runs with a regular result. Beside them the same runs' forwarding rate at the maximum \
             offered load (FRMOL, RFC 2285), which is no throughput: packets were lost there.",
        )],
        MethodKind::LossCurve => vec![Block::text(
            "Packets lost at falling loads (RFC 2544, 26.3), until two trials in a row lost nothing.",
        )],
        _ => Vec::new(),
    };
    blocks.extend(table(method));
    blocks.extend(goals(method));
    blocks.extend(doubts(method));
    let (what, title): (&str, &str) = match method.kind {
        MethodKind::Mlrsearch => ("search", "How loads were found"),
        MethodKind::LossCurve => ("curve", "Loss against load"),
        _ => ("soak", "Loss over time"),
    };
    let own = pictures.iter().filter(|(name, _)| name.starts_with(&format!("{what}-")));
    blocks.extend(own.map(|(name, svg)| {
        Block::Figure(Figure { title: title.into(), file: Some(name.clone()), svg: svg.clone() })
    }));
    let heading = match method.kind {
        MethodKind::Mlrsearch => "Throughput",
        MethodKind::LossCurve => "Frame loss rate",
        _ => "Soak",
    };
    Block::section(heading, blocks)
}

/// What was found, a row each; none for a curve, which is a picture.
pub(super) fn table(method: &Method) -> Option<Block> {
    match method.kind {
        MethodKind::Mlrsearch => Some(searched(&method.searched)),
        MethodKind::Soak => Some(soaked(&method.soaked)),
        _ => None,
    }
}

fn searched(rows: &[Searched]) -> Block {
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .words("goal", |row| Cell::text(&row.goal))
        .numbers("throughput", |row| Cell::rate(row.throughput.map(|found| found.median)))
        .numbers("minimum", |row| Cell::rate(row.throughput.map(|found| found.min)))
        .numbers("maximum", |row| Cell::rate(row.throughput.map(|found| found.max)))
        .numbers("CV", |row| {
            Cell::number(row.throughput.and_then(|found| found.cv), Digits::Percent(2))
        })
        .numbers("lower bound", |row| Cell::rate(row.lower))
        .numbers("upper bound", |row| Cell::rate(row.upper))
        .numbers("L1", |row| bits(row.bits.map(|(l1, _)| l1)))
        .numbers("L2", |row| bits(row.bits.map(|(_, l2)| l2)))
        .numbers("FRMOL", |row| Cell::rate(row.frmol))
        .words("regular", |row| {
            let (regular, all) = row.regular;
            Cell::Values(format!("{regular} of {all}").into(), vec![regular.into(), all.into()])
        })
        .keys(&["regular", "runs"])
        .numbers("trials", |row| Cell::number(row.trials, Digits::Decimals(1)))
        .said(|row, line| {
            line.name = format!("{}, {}", row.label, row.goal);
            line.words.push(match &row.throughput {
                Some(found) => format!(
                    "{} (n = {}, {} to {})",
                    format_pps(found.median),
                    found.n,
                    format_pps(found.min),
                    format_pps(found.max)
                ),
                None => format!("no regular result: {}", row.irregular.join("; ")),
            });
        })
        .set(|table| table.name = Some("throughput"))
        .block()
}

fn bits(bps: Option<f64>) -> Cell {
    bps.map_or(Cell::None, |bps| Cell::Values(format_bps(bps).into(), vec![bps.into()]))
}

fn soaked(rows: &[Soaked]) -> Block {
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("load", |row| Cell::rate(row.load as f64))
        .numbers("trials", |row| Cell::count(row.trials as u64))
        .numbers("with loss", |row| Cell::count(row.lossy as u64))
        .numbers("lost", |row| Cell::count(row.lost))
        .numbers("of", |row| Cell::count(row.offered))
        .words("loss", |row| {
            let (low, high) = row.interval;
            let ratio = row.lost as f64 / row.offered.max(1) as f64;
            let text = format!("{} [{}, {}]", percent(ratio, 4), percent(low, 4), percent(high, 4));
            Cell::Values(text.into(), vec![ratio.into(), low.into(), high.into()])
        })
        .keys(&["loss_ratio", "low", "high"])
        .numbers("worst trial", |row| Cell::number(row.worst, Digits::Percent(4)))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .said(|row, line| {
            line.words.push(format!(
                "{} of {} trials lost something at {}",
                row.lossy,
                row.trials,
                format_pps(row.load as f64)
            ));
        })
        .set(|table| table.name = Some("soak"))
        .block()
}

/// What a load had to hold, since every attribute of a goal must be reported.
fn goals(method: &Method) -> Option<Block> {
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
    (!method.goals.is_empty())
        .then(|| Block::section("Goals", vec![Block::text(GOALS), table.block()]))
}

const GOALS: &str = "Loads are packets per second into the device, in one direction. A trial that \
                     the instrument spoiled (its sender fell short, its receiver dropped) is \
                     invalid, is listed, and is measured again.";

/// Irregular results, drifting devices and trials that say nothing, each run by its number.
fn doubts(method: &Method) -> Option<Block> {
    let mut lines = Vec::new();
    for run in &method.runs {
        for found in &run.found {
            lines.extend(found.irregular.as_ref().map(|why| {
                format!("run {} ({}), {}: irregular, {why}", run.run, run.label, found.goal)
            }));
        }
        lines.extend(run.drift.map(|change| {
            format!(
                "run {} ({}): the device's rate changed by {} during the search, so that its \
                 bounds hold for no one moment",
                run.run,
                run.label,
                crate::format::signed_percent(change, 1)
            )
        }));
        let invalid: Vec<&str> =
            run.points.iter().filter_map(|point| point.invalid.as_deref()).collect();
        if let Some(first) = invalid.first() {
            let count = invalid.len();
            let (run, label) = (run.run, &run.label);
            lines.push(format!("run {run} ({label}): {count} invalid trials, e.g. {first}"));
        }
    }
    (!lines.is_empty()).then(|| Block::list(lines))
}
