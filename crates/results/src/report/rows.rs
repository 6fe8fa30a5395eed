//! One row per comparison, in the layout of benchstat, for terminals and mails.

use super::analysis::{Answer, Compared, Outcome};
use crate::document::table::{Cell, Digits, Table};
use crate::document::{Block, DetailLevel, Remark};
use crate::format::percent;
use crate::quantity::Quantity;
use crate::stats::{Layout, Verdict};
use crate::text::Tone;

/// Maximum number of names in a note.
const NAMES: usize = 6;
/// Minimum width of the title column, in characters.
const WIDE: usize = 12;

/// Median values of baseline and candidate.
pub(crate) type Rates<'r> = &'r dyn Fn(&Compared) -> [Option<f64>; 2];

/// Returns the rows with their explanation and qualifications.
pub(crate) fn rows(comparisons: &[Compared], rates: Rates<'_>, quantity: &Quantity) -> Vec<Block> {
    if comparisons.is_empty() {
        return Vec::new();
    }
    let all = comparisons.iter().flat_map(rates).flatten();
    let (unit, scale) = quantity.scale(all.fold(0.0, f64::max));
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
    // A separate part: with many comparisons, a mail shortens it.
    let notes = comparisons.iter().filter_map(note).collect();
    blocks.push(Block::Where(DetailLevel::Terminal, notes));
    blocks.extend(terms(comparisons).map(Block::text));
    blocks
}

fn answer(compared: &Compared) -> Option<&Answer> {
    match &compared.outcome {
        Outcome::Compared(answer) => Some(answer),
        Outcome::Counted(_) | Outcome::Unanswerable { .. } => None,
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

/// Returns the title of the variants' column: the common baseline, if there is one and it doesn't
/// widen the column.
fn title(comparisons: &[Compared]) -> String {
    let longest = comparisons.iter().map(|compared| compared.candidate().chars().count()).max();
    baseline(comparisons)
        .map(|baseline| format!("against {baseline}"))
        .filter(|title| Some(title.chars().count()) <= longest.max(Some(WIDE)))
        .unwrap_or_else(|| "variant".to_owned())
}

/// Returns the common baseline of all comparisons, if there is one.
fn baseline(comparisons: &[Compared]) -> Option<&str> {
    let first = comparisons.first()?.baseline_label.as_str();
    comparisons.iter().all(|compared| compared.baseline_label == first).then_some(first)
}

/// Groups the comparisons without a result by reason.
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

/// Returns the reasons for missing results, as notes with the first names.
fn no_answer(comparisons: &[Compared]) -> Vec<Block> {
    let note = |(reason, labels): (String, Vec<String>)| {
        let names = match labels.len() {
            n if n == comparisons.len() && n > 1 => "all".to_owned(),
            n if n > NAMES => {
                format!("{} and {} more", labels[..NAMES].join(", "), n - NAMES)
            }
            _ => labels.join(", "),
        };
        Block::remark(Remark::Note, format!("{names}: no answer: {reason}"))
    };
    reasons(comparisons).into_iter().map(note).collect()
}

/// Returns a remark on a row: the qualification of its verdict, and the minimum detectable effect
/// if no effect was found.
fn note(compared: &Compared) -> Option<Block> {
    let label = compared.candidate();
    let answer = answer(compared)?;
    let is_usual = answer.comparison.is_beyond_margin() && answer.comparison.doubtful.is_none();
    let found = matches!(answer.verdict, Verdict::Better | Verdict::Worse);
    // The row contains this already.
    if found && (is_usual || answer.shown.verdict == answer.verdict.to_string()) {
        return None;
    }
    let mut text = format!("{label}: {}", answer.shown.verdict);
    if !found && answer.verdict != Verdict::NotJudged {
        text += &format!("; nine of ten such experiments find {}", answer.shown.mde);
    }
    Some(Block::text(text))
}

/// Explains the columns, with the minimum detectable effects.
fn terms(comparisons: &[Compared]) -> Option<String> {
    let answers: Vec<&Answer> = comparisons.iter().filter_map(answer).collect();
    let first = &answers.first()?.comparison;
    let (confidence, margin) = (first.confidence, percent(first.margin, 1));
    let together = match first.family {
        0 | 1 => "intervals".to_owned(),
        n => {
            let p = format!("p ({}) of all {n} comparisons together", first.adjustment);
            format!("intervals{} {p}", if first.is_joint() { " and" } else { "," })
        }
    };
    let runs = match first.layout {
        Layout::Streams | Layout::Pairs => "slices",
        Layout::Blocks | Layout::Unblocked => "runs",
    };
    // Mails may omit the column of run counts.
    let sizes = |pick: fn(usize, usize) -> usize, start: usize| {
        answers.iter().flat_map(|a| [a.comparison.n_a, a.comparison.n_b]).fold(start, pick)
    };
    let n = match (sizes(usize::min, usize::MAX), sizes(usize::max, 0)) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    let judged = || answers.iter().filter(|answer| answer.verdict != Verdict::NotJudged);
    let mde = |pick: fn(f64, f64) -> f64, start: f64| {
        judged().map(|answer| answer.comparison.mde).fold(start, pick)
    };
    let (least, most) = (mde(f64::min, f64::INFINITY), mde(f64::max, 0.0));
    let mde = match percent(least, 1) == percent(most, 1) {
        true => percent(most, 1),
        false => format!("{} to {}", percent(least, 1), percent(most, 1)),
    };
    let detectable = match judged().next() {
        Some(_) => format!(" Nine of ten such experiments find {mde}."),
        None => String::new(),
    };
    let against = match baseline(comparisons) {
        Some(baseline) if title(comparisons) == "variant" => format!("Against {baseline}. "),
        _ => String::new(),
    };
    Some(format!(
        "{against}Medians; {confidence} % {together}; margin of equivalence {margin}; {n} {runs} of \
         each.{detectable}"
    ))
}
