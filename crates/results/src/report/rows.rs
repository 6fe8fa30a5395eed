//! One row a comparison, as benchstat has it: for terminals and mails.

use super::analysis::{Analysis, Answer, Compared, Outcome};
use crate::document::table::{Cell, Digits, Table};
use crate::document::{Block, Remark};
use crate::format::percent;
use crate::stats::{Layout, Verdict, summary};
use crate::text::Tone;

/// Columns that a title may have in any case: there is room for them.
const WIDE: usize = 12;

/// The median rates that are compared, of the baseline and of the candidate, packets per second.
pub(crate) type Rates<'r> = &'r dyn Fn(&Compared) -> [Option<f64>; 2];

/// The rate of a variant in a comparison: what was found for its goal, where that is not what
/// stands for a run anyway.
pub(crate) fn median(analysis: &Analysis, compared: &Compared, variant: usize) -> Option<f64> {
    let Some(goal) = &compared.goal else {
        let own = compared.sides.iter().find(|side| side.contains(&variant))?;
        let of = |variant: &usize| Some(analysis.variants.get(*variant)?.values.iter().copied());
        return summary::median(&own.iter().filter_map(of).flatten().collect::<Vec<f64>>());
    };
    let method = analysis.method.as_ref()?;
    let mut searched = method.search().unwrap_or(method).searched.iter();
    let found = searched.find(|row| row.variant == variant && row.goal == *goal)?;
    Some(found.throughput?.median)
}

/// The rows, what they mean, and what must be read with some of them.
pub(crate) fn rows(comparisons: &[Compared], rates: Rates<'_>) -> Vec<Block> {
    if comparisons.is_empty() {
        return Vec::new();
    }
    let all = comparisons.iter().flat_map(rates).flatten();
    let (unit, scale) = scale(all.fold(0.0, f64::max));
    let rated = |pps: Option<f64>| Cell::number(pps.map(|pps| pps / scale), Digits::Significant);
    let of = |get: &dyn Fn(&Answer) -> Cell, compared: &Compared| {
        answer(compared).map_or(Cell::None, get)
    };
    let table = Table::of(comparisons)
        .words(title(comparisons), |compared| Cell::text(compared.candidate()))
        .numbers(format!("old {unit}"), |compared| rated(rates(compared)[0]))
        .numbers("new", |compared| rated(rates(compared)[1]))
        .numbers("effect %", |compared| {
            of(
                &|a| {
                    let text = format!("{} {}", a.shown.effect, a.shown.interval);
                    Cell::text(text.replace(" %", ""))
                },
                compared,
            )
        })
        .numbers("p", |compared| of(&|a| Cell::text(p(a.comparison.p_adjusted)), compared))
        .spare()
        .numbers("n", |compared| of(&|a| Cell::text(n(a)), compared))
        .spare()
        .words("verdict", |compared| Cell::text(word(compared)))
        .set(|table| {
            for (row, compared) in table.rows.iter_mut().zip(comparisons) {
                row.tone = tone(compared);
            }
        });
    let mut blocks = vec![table.block()];
    blocks.extend(no_answer(comparisons));
    blocks.extend(comparisons.iter().filter_map(note));
    blocks.extend(terms(comparisons).map(Block::text));
    blocks
}

fn answer(compared: &Compared) -> Option<&Answer> {
    match &compared.outcome {
        Outcome::Compared(answer) => Some(answer),
        Outcome::Counted(_) | Outcome::Unanswerable { .. } => None,
    }
}

/// Unit that suits the largest rate, and how many packets a second it is.
pub(crate) fn scale(most: f64) -> (&'static str, f64) {
    match most {
        pps if pps >= 1e6 => ("Mpps", 1e6),
        pps if pps >= 1e3 => ("kpps", 1e3),
        _ => ("pps", 1.0),
    }
}

fn p(p: f64) -> String {
    if p < 0.001 { "<.001".to_owned() } else { format!("{p:.3}") }
}

fn n(answer: &Answer) -> String {
    match (answer.comparison.n_a, answer.comparison.n_b) {
        (a, b) if a == b => a.to_string(),
        (a, b) => format!("{a}+{b}"),
    }
}

fn word(compared: &Compared) -> String {
    answer(compared).map_or("no answer".to_owned(), |answer| answer.verdict.to_string())
}

fn tone(compared: &Compared) -> Tone {
    match answer(compared).map(|answer| answer.verdict) {
        Some(Verdict::Better) => Tone::Better,
        Some(Verdict::Worse) => Tone::Worse,
        Some(Verdict::Equivalent) => Tone::Plain,
        Some(Verdict::Inconclusive | Verdict::NotJudged) | None => Tone::Doubt,
    }
}

/// What stands above the variants: what they are held against, where that is one and makes the
/// column no wider.
fn title(comparisons: &[Compared]) -> String {
    let longest = comparisons.iter().map(|compared| compared.candidate().chars().count()).max();
    baseline(comparisons)
        .map(|baseline| format!("against {baseline}"))
        .filter(|title| Some(title.chars().count()) <= longest.max(Some(WIDE)))
        .unwrap_or_else(|| "variant".to_owned())
}

/// The one baseline of all comparisons.
fn baseline(comparisons: &[Compared]) -> Option<&str> {
    let first = comparisons.first()?.baseline_label.as_str();
    comparisons.iter().all(|compared| compared.baseline_label == first).then_some(first)
}

/// Why there is no answer: each reason once, with those that it keeps from one.
pub(crate) fn reasons(comparisons: &[Compared]) -> Vec<(String, Vec<String>)> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for compared in comparisons {
        let Outcome::Unanswerable { reason } = &compared.outcome else { continue };
        let (reason, label) = (reason.to_string(), compared.candidate());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, labels)) => labels.push(label),
            None => reasons.push((reason, vec![label])),
        }
    }
    reasons
}

/// Why there is no answer, as notes.
fn no_answer(comparisons: &[Compared]) -> Vec<Block> {
    let said = |(reason, labels): (String, Vec<String>)| {
        let who = match labels.len() {
            n if n == comparisons.len() && n > 1 => "all".to_owned(),
            _ => labels.join(", "),
        };
        Block::remark(Remark::Note, format!("{who}: no answer: {reason}"))
    };
    reasons(comparisons).into_iter().map(said).collect()
}

/// What must be read with a row: what qualifies its answer, and what would have been found where
/// nothing was.
fn note(compared: &Compared) -> Option<Block> {
    let label = compared.candidate();
    let answer = answer(compared)?;
    let is_usual = answer.comparison.is_beyond_margin() && answer.comparison.doubtful.is_none();
    let found = matches!(answer.verdict, Verdict::Better | Verdict::Worse);
    // The row says as much.
    if found && (is_usual || answer.shown.verdict == answer.verdict.to_string()) {
        return None;
    }
    let mut said = format!("{label}: {}", answer.shown.verdict);
    if !found {
        said += &format!("; nine of ten such experiments find {}", answer.shown.mde);
    }
    Some(Block::text(said))
}

/// What the columns mean, and what could have been found.
fn terms(comparisons: &[Compared]) -> Option<String> {
    let answers: Vec<&Answer> = comparisons.iter().filter_map(answer).collect();
    let first = &answers.first()?.comparison;
    let (confidence, margin) = (first.confidence, percent(first.margin, 1));
    let together = match first.family {
        0 | 1 => "intervals".to_owned(),
        n => format!("intervals and p ({}) of all {n} comparisons together", first.adjustment),
    };
    let runs = match first.layout {
        Layout::Streams | Layout::Pairs => "slices",
        Layout::Blocks | Layout::Unblocked => "runs",
    };
    // A mail may leave the column out.
    let sizes = |pick: fn(usize, usize) -> usize, start: usize| {
        answers.iter().flat_map(|a| [a.comparison.n_a, a.comparison.n_b]).fold(start, pick)
    };
    let n = match (sizes(usize::min, usize::MAX), sizes(usize::max, 0)) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    let mde = |pick: fn(f64, f64) -> f64, start: f64| {
        answers.iter().map(|answer| answer.comparison.mde).fold(start, pick)
    };
    let (least, most) = (mde(f64::min, f64::INFINITY), mde(f64::max, 0.0));
    let mde = match percent(least, 1) == percent(most, 1) {
        true => percent(most, 1),
        false => format!("{} to {}", percent(least, 1), percent(most, 1)),
    };
    let against = match baseline(comparisons) {
        Some(baseline) if title(comparisons) == "variant" => format!("Against {baseline}. "),
        _ => String::new(),
    };
    Some(format!(
        "{against}Medians; {confidence} % {together}; margin of equivalence {margin}; {n} {runs} of each. Nine \
         of ten such experiments find {mde}."
    ))
}
