//! The answer for a terminal, also a narrow one.

use crate::compare::Results;
use crate::report::analysis::Outcome;
use crate::report::format::percent;
use crate::report::terminal::{Text, variants};
use crate::stats::Verdict;

/// A line of text, and how it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line, without a line feed.
    pub text: String,
    /// What a colour may stress.
    pub tone: Tone,
}

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// What was compared.
    Heading,
    /// A candidate that forwards more.
    Better,
    /// A candidate that forwards less.
    Worse,
    /// A remark, or no answer.
    Doubt,
}

/// Heading, variants and one sentence per comparison with what stands beside
/// it, as lines of at most `width` columns (words longer than that stay whole).
pub fn text(results: &Results, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |tone: Tone, write: &dyn Fn(&mut Text)| {
        let mut part = Text::new(width);
        write(&mut part);
        lines.extend(part.lines.into_iter().map(|text| Line { text, tone }));
    };
    add(Tone::Heading, &|text| text.wrapped(&results.asked, "  "));
    if !results.caption.is_empty() {
        add(Tone::Doubt, &|text| text.wrapped(&results.caption, "  "));
    }
    add(Tone::Plain, &|text| text.wrapped(&terms(results), "  "));
    for note in &results.notes {
        add(Tone::Doubt, &|text| text.wrapped(&format!("note: {note}"), "  "));
    }
    add(Tone::Plain, &|text| text.lines.push(String::new()));
    add(Tone::Plain, &|text| {
        variants(text, results.variants.iter().map(|v| (v.label.as_str(), v.summary.as_ref())));
    });
    add(Tone::Plain, &|text| text.lines.push(String::new()));
    for compared in &results.comparisons {
        let names = format!("{} against {}", compared.label, compared.baseline_label);
        match &compared.outcome {
            Outcome::Compared(answer) => {
                let tone = match answer.verdict {
                    Verdict::Better => Tone::Better,
                    Verdict::Worse => Tone::Worse,
                    Verdict::Equivalent | Verdict::Inconclusive => Tone::Plain,
                };
                add(tone, &|text| text.wrapped(&format!("{names}: {}", answer.sentence), "  "));
                if !answer.shown.beside.is_empty() {
                    let beside = format!("  beside it: {}", answer.shown.beside);
                    add(Tone::Plain, &|text| text.wrapped(&beside, "    "));
                }
            }
            Outcome::Unanswerable { reason } => {
                add(Tone::Doubt, &|text| {
                    text.wrapped(&format!("{names}: no answer: {reason}"), "  ")
                });
            }
        }
    }
    lines
}

/// Unit, figure, confidence, margin and family in one line.
fn terms(results: &Results) -> String {
    let figure =
        results.figure.map_or(String::new(), |figure| format!(" ({})", figure.description()));
    let family = match results.family {
        1 => "1 comparison".to_owned(),
        n => format!("{n} comparisons, p-values adjusted ({})", results.adjustment),
    };
    format!(
        "packets per second, one figure per run{figure}; confidence {} %, margin {}, {family}",
        results.confidence,
        percent(results.margin, 1)
    )
}
