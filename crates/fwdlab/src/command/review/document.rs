//! Document of a review.

use super::steps::{BuildName, ChangedFunction, Outcome, Review, Step, all_changed};
use crate::command::counted_guest::exact;
use fwdlab_results::counts::{Exact, NOT_TIME};
use fwdlab_results::document::judgement::Judgement;
use fwdlab_results::document::table::Cell;
use fwdlab_results::document::{Block, Document, Remark, Table};
use fwdlab_results::report::analysis::Compared;
use fwdlab_results::report::counted;

/// Functions shown per build and profile.
const FUNCTIONS: usize = 12;

/// Callers of a function that are listed by name.
const CALLERS: usize = 4;

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
    blocks.extend(absent(review));
    blocks.extend(review.losses.iter().map(|loss| {
        let text = format!(
            "{}, {}: {} of {} packets did not come out: counts are per packet that did.",
            review.builds[loss.build].name, review.profiles[loss.profile], loss.lost, loss.sent
        );
        Block::remark(Remark::Warning, text)
    }));
    Document {
        title: "Review of builds: machine code that packets execute".to_owned(),
        conclusion: vec![Block::text(conclusion(review))],
        blocks,
        data: review,
        version: 1,
    }
}

/// Profiles that builds lack, with the reason for the first of them.
fn absent(review: &Review) -> impl Iterator<Item = Block> {
    let line = |(at, profile): (usize, &String)| {
        let lacking: Vec<_> = review.absent.iter().filter(|one| one.profile == at).collect();
        let first = lacking.first()?;
        let names = lacking.iter().map(|one| review.builds[one.build].name.as_str());
        let text = format!(
            "{profile}: code that only its packets execute was not compared: {} without it ({}): {}",
            match lacking.len() {
                1 => "1 build is".to_owned(),
                number => format!("{number} counted builds are"),
            },
            names.collect::<Vec<_>>().join(", "),
            first.why
        );
        Some(Block::remark(Remark::Warning, text))
    };
    review.profiles.iter().enumerate().filter_map(line)
}

/// A row per build after the first. A build with equal code is a passed test; each comparison by counts
/// is another test.
fn builds(review: &Review) -> Block {
    let mut table = Table::of(&review.steps)
        .words("build", |step: &Step| {
            let BuildName { name, subject, .. } = &review.builds[step.build];
            let subject = subject.as_deref().unwrap_or_default();
            let text = format!("{name} {subject}");
            Cell::Values(text.trim_end().into(), vec![name.as_str().into(), subject.into()])
        })
        .keys(&["build", "subject"])
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
        .numbers("in changed code", |step| {
            let counted = step.counted().first().and_then(|one| exact(one.as_ref()?));
            counted.map_or(Cell::None, |exact| signed(of_changed_code(step, exact)))
        })
        .when(review.profiles.len() == 1)
        .keys(&["in_changed_functions"])
        .about("difference in functions whose machine code differs")
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
            if counted.iter().flatten().any(|compared| !compared.outcome.is_answered()) {
                blocks.push(counted::verdicts(counted.iter().flatten()));
            }
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
            blocks.extend(counted.iter().flatten().filter_map(|one| parts(step, one)));
            blocks.push(code(review, functions));
        }
    }
    let (build, before) = (&review.builds[step.build], &review.builds[step.before]);
    let subject = build.subject.as_ref().map_or(String::new(), |subject| format!(" ({subject})"));
    let title = match step.before == step.build {
        true => format!("{}{subject}", build.name),
        false => format!("{}{subject}, compared with {}", build.name, before.name),
    };
    (!blocks.is_empty()).then(|| Block::section(title, blocks))
}

/// Difference in the functions whose machine code differs.
fn of_changed_code(step: &Step, exact: &Exact) -> f64 {
    let Outcome::Changed { functions, .. } = &step.outcome else { return 0.0 };
    let differing = exact.functions.iter().flat_map(|found| &found.differing);
    let is_changed = |name: &str| functions.iter().any(|function| function.name == name);
    // The sum of no numbers would be -0.
    differing.filter(|one| is_changed(&one.name)).fold(0.0, |sum, one| sum + one.difference)
}

/// The difference, divided by whether the code of the functions differs; `None` if no other function
/// differs.
fn parts(step: &Step, compared: &Compared) -> Option<Block> {
    let exact = exact(compared)?;
    let changed = of_changed_code(step, exact);
    let equal = exact.difference - changed;
    let text = format!(
        "{}: {changed:+.1} in functions whose code differs, {equal:+.1} in functions with equal \
         code: they are called more or less often, or depend on the state after boot, such as the \
         length of hash chains.",
        compared.label
    );
    let has_equal = exact.functions.as_ref().is_some_and(|found| {
        let Outcome::Changed { functions, .. } = &step.outcome else { return false };
        found.differing.iter().any(|one| functions.iter().all(|known| known.name != one.name))
    });
    has_equal.then(|| Block::text(text))
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
        let mut line = match is_single || profiles.len() == review.profiles.len() {
            true => format!("{}: {}", function.name, function.reason),
            false => format!("{} ({}): {}", function.name, profiles.join(", "), function.reason),
        };
        if let [first, others @ ..] = function.callers.as_slice() {
            line += &match others.len() {
                0..CALLERS => format!("; called by {}", function.callers.join(", ")),
                more => format!("; called by {first} and {more} others"),
            };
        }
        line
    };
    let list = Block::list(functions.iter().map(line));
    Block::section("Functions whose code differs", vec![list]).folded()
}

/// The result in a few sentences.
fn conclusion(review: &Review) -> String {
    if review.steps.is_empty() {
        return "No new builds.".to_owned();
    }
    let count = |is: fn(&Outcome) -> bool| review.steps.iter().filter(|s| is(&s.outcome)).count();
    let equal = count(|outcome| matches!(outcome, Outcome::Equal { .. }));
    let changed = count(|outcome| matches!(outcome, Outcome::Changed { .. }));
    let failed = review.steps.len() - equal - changed;
    let profiles = review.profiles.iter().enumerate();
    let known = profiles.filter(|(at, _)| !review.lacks_from_the_start(*at));
    let mut text = format!(
        "Packets ({}) execute {} functions. Their code is equal in {equal} of {} builds",
        known.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", "),
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
