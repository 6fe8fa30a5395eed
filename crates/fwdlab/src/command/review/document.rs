//! Document of a review.

use super::steps::{ChangedFunction, Outcome, Review, Step, all_changed};
use crate::command::counted_guest::exact;
use fwdlab_results::counts::{Exact, NOT_TIME};
use fwdlab_results::document::judgement::Judgement;
use fwdlab_results::document::table::Cell;
use fwdlab_results::document::{Block, Document, Remark, Table};
use fwdlab_results::report::analysis::Compared;
use fwdlab_results::report::counted;

/// Functions shown per build and profile.
const FUNCTIONS: usize = 12;

/// The document: a row per build, then each build that differs.
pub(super) fn document(review: &Review) -> Document<'_> {
    let mut blocks = vec![Block::remark(Remark::Caption, NOT_TIME), builds(review)];
    blocks.extend(review.steps.iter().filter_map(|step| details(review, step)));
    if review.steps.len() > 1 && !review.ends.is_empty() {
        let verdicts = counted::verdicts(review.ends.iter().flatten());
        blocks.push(Block::section("Last and first", vec![verdicts]));
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

/// A row per build after the first. A build with equal code is a passed test; comparisons by counts
/// are tests of their own.
fn builds(review: &Review) -> Block {
    let has_subjects = review.builds.iter().any(|build| build.subject.is_some());
    let mut table = Table::of(&review.steps)
        .words("build", |step: &Step| Cell::text(review.builds[step.build].name.as_str()))
        .words("subject", |step| {
            review.builds[step.build].subject.as_deref().map_or(Cell::None, Cell::text)
        })
        .when(has_subjects)
        .words("code", |step| Cell::text(result(step)))
        .numbers("changed", |step| match &step.outcome {
            Outcome::Changed { functions, .. } => Cell::count(functions.len()),
            _ => Cell::None,
        })
        .keys(&["changed_functions"])
        .about("functions whose machine code differs");
    for (at, profile) in review.profiles.iter().enumerate() {
        table = table.numbers(profile.clone(), move |step| {
            let counted = step.counted().get(at).and_then(|one| exact(one.as_ref()?));
            counted.map_or(Cell::None, |exact| signed(exact.difference))
        });
    }
    table
        .with_words(|step, row| {
            row.name = review.builds[step.build].name.clone();
            row.judgement = match &step.outcome {
                Outcome::Equal { failure: None, .. } => Some(Judgement::Pass),
                Outcome::Changed { failure: None, .. } => None,
                _ => Some(Judgement::Skip(result(step).to_owned())),
            };
        })
        .set(|table| table.name = Some("builds"))
        .block()
}

fn result(step: &Step) -> &'static str {
    match &step.outcome {
        Outcome::NotBuilt { .. } => "not built",
        Outcome::Equal { failure: Some(_), .. } | Outcome::Changed { failure: Some(_), .. } => {
            "not counted"
        }
        Outcome::Equal { moved: 0, .. } => "equal",
        Outcome::Equal { .. } => "equal, moved",
        Outcome::Changed { .. } => "changed",
    }
}

fn signed(value: f64) -> Cell {
    Cell::Values(format!("{value:+.1}").into(), vec![value.into()])
}

/// A build that differs, or that failed; `None` for others.
fn details(review: &Review, step: &Step) -> Option<Block> {
    let mut blocks = Vec::new();
    let not_counted =
        |why: &String| Block::remark(Remark::Warning, format!("It was not counted: {why}"));
    match &step.outcome {
        Outcome::Equal { counted, failure, .. } => {
            blocks.extend(failure.as_ref().map(not_counted));
            if counted.iter().flatten().filter_map(exact).any(differs) {
                let text = "The code is equal, but the counts differ: by data that other code \
                            writes, or because counts repeat less well than usual.";
                blocks.push(Block::remark(Remark::Warning, text));
                blocks.extend(by_function(counted));
            }
        }
        Outcome::NotBuilt { why } => blocks.push(Block::remark(Remark::Warning, why.as_str())),
        Outcome::Changed { functions, counted, failure } => {
            blocks.extend(failure.as_ref().map(not_counted));
            if counted.iter().any(Option::is_some) {
                blocks.push(counted::verdicts(counted.iter().flatten()));
            }
            blocks.extend(by_function(counted));
            blocks.push(code(review, functions));
        }
    }
    let (build, before) = (&review.builds[step.build], &review.builds[step.before]);
    let subject = build.subject.as_ref().map_or(String::new(), |subject| format!(" ({subject})"));
    let title = format!("{}{subject}, compared with {}", build.name, before.name);
    (!blocks.is_empty()).then(|| Block::section(title, blocks))
}

/// True if a function differs.
fn differs(exact: &Exact) -> bool {
    exact.functions.as_ref().is_some_and(|found| !found.differing.is_empty())
}

/// Functions whose counts differ, for each profile.
fn by_function(counted: &[Option<Compared>]) -> impl Iterator<Item = Block> {
    let differing = counted.iter().flatten().filter(|one| exact(one).is_some_and(differs));
    differing.filter_map(|one| counted::functions_that_differ(one, FUNCTIONS)).flatten()
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
        "Packets ({}) execute {} functions. Their code is equal in {equal} of {} builds",
        review.profiles.join(", "),
        review.functions,
        review.steps.len(),
    );
    match changed {
        0 => text += ".",
        _ => {
            let functions = all_changed(&review.steps).len();
            text += &format!(", and differs in {changed} ({functions} functions).");
        }
    }
    if failed > 0 {
        text += &format!(" {failed} could not be built.");
    }
    for compared in review.ends.iter().flatten() {
        if let Some(exact) = exact(compared) {
            text += &format!(
                " {} against {}: {:+.1} instructions per packet ({:+.2} %).",
                compared.label,
                compared.baseline_label,
                exact.difference,
                100.0 * exact.change
            );
        }
    }
    text
}
