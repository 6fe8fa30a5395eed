//! Document of a review.

use super::steps::{ChangedFunction, Outcome, Review, Step, all_changed};
use crate::command::counted_guest::exact;
use fwdlab_results::counts::{Exact, FunctionDifference, NOT_TIME};
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, Document, Remark, Table};
use fwdlab_results::report::analysis::Compared;

/// Functions shown per build.
const FUNCTIONS: usize = 12;

/// The document: a row per build, then each build that differs.
pub(super) fn document(review: &Review) -> Document<'_> {
    let mut blocks = vec![Block::remark(Remark::Caption, NOT_TIME), builds(review)];
    blocks.extend(review.steps.iter().filter_map(|step| details(review, step)));
    if review.steps.len() > 1 && !review.ends.is_empty() {
        blocks.push(Block::section("First and last", vec![comparisons(&review.ends)]));
    }
    blocks.extend(review.gaps.iter().map(|(profile, sum, difference)| {
        let text = format!(
            "{profile}: the builds add up to {sum:+.1} instructions, but the last differs from the \
             first by {difference:+.1}"
        );
        Block::remark(Remark::Warning, text)
    }));
    Document {
        title: "Review of builds by what packets execute".to_owned(),
        conclusion: vec![Block::text(conclusion(review))],
        blocks,
        data: review,
        version: 1,
    }
}

/// A row per build after the first.
fn builds(review: &Review) -> Block {
    let mut table = Table::of(&review.steps)
        .words("build", |step: &Step| Cell::text(review.builds[step.build].as_str()))
        .words("result", |step| Cell::text(result(step)))
        .numbers("changed functions", |step| match &step.outcome {
            Outcome::Changed { functions, .. } => Cell::count(functions.len()),
            Outcome::Equal { .. } => Cell::count(0_usize),
            Outcome::NotBuilt { .. } => Cell::None,
        });
    for (at, profile) in review.profiles.iter().enumerate() {
        table = table.numbers(profile.clone(), move |step| {
            step.counted()
                .get(at)
                .and_then(|one| exact(one.as_ref()?))
                .map_or(Cell::text("-"), |exact| signed(exact.difference))
        });
    }
    table.set(|table| table.name = Some("builds")).block()
}

fn result(step: &Step) -> &'static str {
    match &step.outcome {
        Outcome::Equal { failure: Some(_), .. } => "not counted",
        Outcome::Equal { moved: 0, .. } => "equal code",
        Outcome::Equal { .. } => "equal code at other addresses",
        Outcome::Changed { failure: Some(_), .. } => "not counted",
        Outcome::Changed { .. } => "counted",
        Outcome::NotBuilt { .. } => "not built",
    }
}

fn signed(value: f64) -> Cell {
    Cell::Values(format!("{value:+.1}").into(), vec![value.into()])
}

/// A build that differs, or that failed.
fn details(review: &Review, step: &Step) -> Option<Block> {
    let mut blocks = Vec::new();
    match &step.outcome {
        Outcome::Equal { counted, failure, .. } => {
            if let Some(why) = failure {
                blocks.push(Block::remark(Remark::Warning, format!("It was not counted: {why}")));
            }
            // Only of interest if the counts contradict.
            let differs = |exact: &Exact| {
                exact.functions.as_ref().is_some_and(|found| !found.differing.is_empty())
            };
            if !counted.iter().flatten().filter_map(exact).any(differs) {
                return failure.is_some().then(|| section(review, step, blocks));
            }
            let text = "The code is equal, but the counts differ: by what code outside of these \
                        functions writes, or because counts repeat less well than usual.";
            blocks.push(Block::remark(Remark::Warning, text));
            blocks.extend(by_function(counted));
        }
        Outcome::NotBuilt { why } => blocks.push(Block::remark(Remark::Warning, why.as_str())),
        Outcome::Changed { functions, counted, failure } => {
            if let Some(why) = failure {
                blocks.push(Block::remark(Remark::Warning, format!("It was not counted: {why}")));
            }
            if !counted.is_empty() {
                blocks.push(comparisons(counted));
            }
            blocks.extend(by_function(counted));
            blocks.push(code(review, functions));
        }
    }
    Some(section(review, step, blocks))
}

fn section(review: &Review, step: &Step, blocks: Vec<Block>) -> Block {
    let (build, before) = (&review.builds[step.build], &review.builds[step.before]);
    Block::section(format!("{build}, compared with {before}"), blocks)
}

/// Comparisons by counts.
fn comparisons(counted: &[Option<Compared>]) -> Block {
    let rows: Vec<(&Compared, &Exact)> =
        counted.iter().flatten().filter_map(|one| Some((one, exact(one)?))).collect();
    Table::of(&rows)
        .words("packets", |(compared, _)| Cell::text(compared.label.as_str()))
        .words("verdict", |(_, exact)| {
            Cell::Verdict(exact.verdict.name().into(), exact.shown.clone())
        })
        .numbers("instructions", |(_, exact)| signed(exact.difference))
        .numbers("change", |(_, exact)| Cell::number(exact.change, Digits::Signed(2)))
        .block()
}

/// Functions whose counts differ, for each profile.
fn by_function(counted: &[Option<Compared>]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for compared in counted.iter().flatten() {
        let Some(found) = exact(compared).and_then(|exact| exact.functions.as_ref()) else {
            continue;
        };
        if found.differing.is_empty() {
            continue;
        }
        let shown = &found.differing[..found.differing.len().min(FUNCTIONS)];
        let number = |value: f64| Cell::number(value, Digits::Decimals(1));
        let table = Table::of(shown)
            .words("function", |f: &FunctionDifference| Cell::text(f.name.as_str()))
            .words("subsystem", |f| Cell::text(f.subsystem.as_str()))
            .numbers("before", move |f| number(f.before))
            .numbers("after", move |f| number(f.after))
            .numbers("difference", |f| signed(f.difference))
            .block();
        blocks.push(Block::section(compared.label.clone(), vec![table]));
    }
    blocks
}

/// Functions whose machine code differs, with the first difference.
fn code(review: &Review, functions: &[ChangedFunction]) -> Block {
    let is_single = review.profiles.len() == 1;
    let line = |function: &ChangedFunction| {
        let profiles: Vec<&str> =
            function.profiles.iter().map(|at| review.profiles[*at].as_str()).collect();
        match is_single || profiles.len() == review.profiles.len() {
            true => format!("{}: {}", function.name, function.reason),
            false => format!("{} ({}): {}", function.name, profiles.join(", "), function.reason),
        }
    };
    let list = Block::list(functions.iter().map(line));
    Block::section("Functions whose code differs", vec![list]).folded()
}

/// The result in a few sentences.
fn conclusion(review: &Review) -> String {
    let count = |is: fn(&Outcome) -> bool| review.steps.iter().filter(|s| is(&s.outcome)).count();
    let equal = count(|outcome| matches!(outcome, Outcome::Equal { .. }));
    let changed = count(|outcome| matches!(outcome, Outcome::Changed { .. }));
    let failed = review.steps.len() - equal - changed;
    let mut text = format!(
        "Packets execute {} functions ({}). In {equal} of {} builds none of them changed",
        review.functions,
        review.profiles.join(", "),
        review.steps.len(),
    );
    match changed {
        0 => text += ".",
        _ => {
            text += &format!(
                "; {changed} changed {} functions and were counted.",
                all_changed(&review.steps).len()
            );
        }
    }
    if failed > 0 {
        text += &format!(" {failed} could not be built.");
    }
    for compared in review.ends.iter().flatten() {
        if let Some(exact) = exact(compared) {
            text += &format!(
                " {}: {:+.1} instructions per packet ({:+.2} %).",
                compared.label,
                exact.difference,
                100.0 * exact.change
            );
        }
    }
    text
}
