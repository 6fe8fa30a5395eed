//! Profiles as tables for a terminal.

use super::compare::{Change, Changes};
use super::functions::{By, Function, Neighbours};
use super::subsystems::Subsystem;
use super::summary::{Divided, Summary};
use crate::format::{grouped, percent};
use crate::text::{self, Line, Tone, wrap};

/// What was read, how it divides, and every remark.
pub fn summary(summary: &Summary, name: &str, width: usize) -> Vec<Line> {
    let said = format!(
        "{name}: {}, {} {}: work {}, idle {}, harness {}",
        summary.format,
        count(summary.total),
        summary.unit,
        percent(summary.work_share, 1),
        percent(summary.idle_share, 1),
        percent(summary.harness_share, 1),
    );
    let mut lines = wrapped(&said, Tone::Heading, width);
    for note in summary.notes() {
        lines.extend(wrapped(&format!("note: {note}"), Tone::Doubt, width));
    }
    lines
}

/// The costliest functions; shares are of what was kept.
pub fn functions(divided: &Divided, by: By, top: usize, width: usize) -> Vec<Line> {
    let whole = divided.kept.total();
    let functions = divided.kept.functions(by);
    let rows = functions
        .iter()
        .take(top)
        .map(|Function { name, own, total }| (*own, *total, name.as_str()));
    table("function", rows.collect(), functions.len(), whole, width)
}

/// Every subsystem; shares are of what was kept.
pub fn subsystems(list: &[Subsystem], whole: f64, top: usize, width: usize) -> Vec<Line> {
    let rows = list.iter().take(top).map(|subsystem| {
        (subsystem.own as f64, Some(subsystem.total as f64), subsystem.name.as_str())
    });
    table("subsystem", rows.collect(), list.len(), whole, width)
}

fn table(
    what: &str,
    rows: Vec<(f64, Option<f64>, &str)>,
    all: usize,
    whole: f64,
    width: usize,
) -> Vec<Line> {
    let mut lines = vec![heading(format!(
        "{:>8} {:>8} {:>12} {:>12}  {what}",
        "own %", "total %", "own", "total"
    ))];
    let shown = rows.len();
    for (own, total, name) in rows {
        let total_share = total.map_or("-".to_owned(), |total| share(total, whole));
        let total = total.map_or("-".to_owned(), count);
        let numbers =
            format!("{:>8} {total_share:>8} {:>12} {total:>12}", share(own, whole), count(own));
        lines.push(plain(cut(&format!("{numbers}  {name}"), width)));
    }
    if all > shown {
        lines.push(plain(format!("{} more; --top shows them", all - shown)));
    }
    lines
}

/// A function between its callers and callees, as gprof prints it.
pub fn neighbours(around: &Neighbours, top: usize, width: usize) -> Vec<Line> {
    let Function { name, own, total } = &around.function;
    let whole = total.unwrap_or(*own);
    let mut lines =
        vec![heading(format!("{:>8} {:>12}  callers, function, callees", "share", "count"))];
    let row = |figure: f64, name: &str| {
        plain(cut(&format!("{:>8} {:>12}      {name}", share(figure, whole), count(figure)), width))
    };
    for caller in around.callers.iter().take(top) {
        let name = if caller.name.is_empty() { "(no caller: a root)" } else { &caller.name };
        lines.push(row(caller.count, name));
    }
    let here = format!("{:>8} {:>12}  {name}", share(whole, whole), count(whole));
    lines.push(heading(cut(&here, width)));
    lines.push(row(*own, "(itself)"));
    lines.extend(around.callees.iter().take(top).map(|callee| row(callee.count, &callee.name)));
    lines
}

/// Differences, the largest first; `unit` says what the figures are.
pub fn changes(changes: &Changes, unit: &str, what: &str, top: usize, width: usize) -> Vec<Line> {
    let mut lines = wrapped(&format!("figures are {unit}"), Tone::Plain, width);
    for remark in &changes.remarks {
        lines.extend(wrapped(&format!("note: {remark}"), Tone::Doubt, width));
    }
    lines.push(plain(String::new()));
    lines.push(heading(format!(
        "{:>10} {:>10} {:>11}  {what}",
        "baseline", "candidate", "difference"
    )));
    lines.push(change(&changes.whole, Tone::Heading, width));
    for part in changes.parts.iter().filter(|part| part.difference != 0.0).take(top) {
        // Cheaper is better.
        let sure = part.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        let tone = match part.difference > 0.0 {
            _ if !sure => Tone::Plain,
            true => Tone::Worse,
            false => Tone::Better,
        };
        lines.push(change(part, tone, width));
    }
    lines
}

fn change(change: &Change, tone: Tone, width: usize) -> Line {
    let interval = change
        .interval
        .map_or(String::new(), |(low, high)| format!("  [{}, {}]", signed(low), signed(high)));
    let text = format!(
        "{:>10} {:>10} {:>11}  {}{interval}",
        figure(change.baseline),
        figure(change.candidate),
        signed(change.difference),
        change.name
    );
    Line { text: cut(&text, width), tone }
}

fn wrapped(text: &str, tone: Tone, width: usize) -> Vec<Line> {
    wrap(text, width, "  ").into_iter().map(|text| Line { text, tone }).collect()
}

fn plain(text: String) -> Line {
    Line { text, tone: Tone::Plain }
}

fn heading(text: String) -> Line {
    Line { text, tone: Tone::Heading }
}

/// A line of a table ends at the edge; names may be long.
fn cut(text: &str, width: usize) -> String {
    // Narrower than this there is no room for numbers and a name.
    text::cut(text, width.max(60))
}

fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { percent(part / whole, 1) } else { "-".to_owned() }
}

fn count(value: f64) -> String {
    grouped(value.round() as i128)
}

/// Four digits, whatever the size.
fn figure(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e6).contains(&size) {
        let before = if size >= 1.0 { size.log10().floor() as usize + 1 } else { 1 };
        format!("{value:.*}", 4_usize.saturating_sub(before))
    } else {
        format!("{value:.2e}")
    }
}

fn signed(value: f64) -> String {
    let text = figure(value);
    if value > 0.0 { format!("+{text}") } else { text }
}
