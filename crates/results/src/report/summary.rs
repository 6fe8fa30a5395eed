//! The analysis for a terminal, also a narrow one.

use super::analysis::{Analysis, Outcome, ScalingOutcome, VariantResult};
use super::format::percent;
use fwdlab_model::units::format_pps;

/// From this width on a variant fits on one line.
const TABLE_WIDTH: usize = 64;
/// Columns of the table right of the label.
const NUMBERS_WIDTH: usize = 45;
/// Narrower than this no text is laid out for.
const MIN_WIDTH: usize = 20;

/// Variants and verdicts as lines of at most `width` columns (words longer than
/// that stay whole). Ends with a line feed.
pub fn summary_text(analysis: &Analysis, width: usize) -> String {
    let width = width.max(MIN_WIDTH);
    let mut text = Text { width, lines: Vec::new() };
    text.wrapped(&analysis.title, "");
    if !analysis.testbed.caption.is_empty() {
        text.wrapped(&analysis.testbed.caption, "");
    }
    text.wrapped(
        &format!(
            "{} of {} runs; per run: {}",
            analysis.runs_recorded,
            analysis.runs_planned,
            analysis.figure.description()
        ),
        "",
    );
    for note in &analysis.notes {
        text.wrapped(&format!("note: {note}"), "  ");
    }
    text.lines.push(String::new());
    variants(&mut text, &analysis.variants);
    if !analysis.comparisons.is_empty() {
        text.lines.push(String::new());
    }
    for compared in &analysis.comparisons {
        let outcome = match &compared.outcome {
            Outcome::Compared(answer) => answer.sentence.clone(),
            Outcome::Unanswerable { reason } => format!("no answer: {reason}"),
        };
        text.wrapped(
            &format!("{} against {}: {outcome}", compared.label, compared.baseline_label),
            "  ",
        );
        if let Outcome::Compared(answer) = &compared.outcome
            && !answer.shown.beside.is_empty()
        {
            text.wrapped(&format!("  beside it: {}", answer.shown.beside), "    ");
        }
    }
    scaling(&mut text, analysis);
    if !analysis.warnings.is_empty() {
        text.lines.push(String::new());
    }
    for group in &analysis.warnings {
        let example = group.warnings.first().map_or("", |warning| warning.sentence.as_str());
        let trust = if group.fatal { "NOT TO BE TRUSTED: " } else { "" };
        text.wrapped(
            &format!(
                "warning: {trust}{} ({} in {} of {} runs), e.g. {example}",
                group.kind, group.count, group.runs, analysis.runs_recorded
            ),
            "  ",
        );
    }
    text.lines.push(String::new());
    text.lines.join("\n")
}

fn scaling(text: &mut Text, analysis: &Analysis) {
    if !analysis.scaling.is_empty() {
        text.lines.push(String::new());
    }
    for sweep in &analysis.scaling {
        for series in &sweep.series {
            let outcome = match &series.outcome {
                ScalingOutcome::Fitted(fitted) => fitted.sentence.clone(),
                ScalingOutcome::Unanswerable { reason } => format!("no fit: {reason}"),
            };
            let of = if series.label.is_empty() { "" } else { ", " };
            let name = format!("scaling with {}{of}{}", sweep.name, series.label);
            text.wrapped(&format!("{name}: {outcome}"), "  ");
        }
    }
}

fn variants(text: &mut Text, variants: &[VariantResult]) {
    if text.width < TABLE_WIDTH {
        for variant in variants {
            let numbers = match &variant.summary {
                Some(summary) => {
                    format!(
                        "{} (n = {}, CV {})",
                        format_pps(summary.median),
                        summary.n,
                        cv(variant)
                    )
                }
                None => "no runs yet".to_owned(),
            };
            text.wrapped(&format!("{}: {numbers}", variant.label), "  ");
        }
        return;
    }
    let longest = variants.iter().map(|v| v.label.chars().count()).max().unwrap_or(0);
    let label_width = longest.max("variant".len()).min(text.width - NUMBERS_WIDTH);
    let row = |label: &str, numbers: [&str; 5]| {
        let [median, min, max, cv, n] = numbers;
        let label = shortened(label, label_width);
        format!("{label:label_width$} {median:>10} {min:>10} {max:>10} {cv:>7} {n:>3}")
    };
    text.lines.push(row("variant", ["median", "min", "max", "CV", "n"]));
    for variant in variants {
        let line = match &variant.summary {
            Some(summary) => row(
                &variant.label,
                [
                    &format_pps(summary.median),
                    &format_pps(summary.min),
                    &format_pps(summary.max),
                    &cv(variant),
                    &summary.n.to_string(),
                ],
            ),
            None => row(&variant.label, ["-", "-", "-", "-", "0"]),
        };
        text.lines.push(line);
    }
}

fn cv(variant: &VariantResult) -> String {
    let cv = variant.summary.and_then(|summary| summary.cv);
    cv.map_or("-".to_owned(), |cv| percent(cv, 1))
}

fn shortened(label: &str, width: usize) -> String {
    if label.chars().count() <= width {
        return label.to_owned();
    }
    label.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Lines of a limited width.
struct Text {
    width: usize,
    lines: Vec<String>,
}

impl Text {
    /// Adds a paragraph; its lines after the first begin with `indent`.
    fn wrapped(&mut self, paragraph: &str, indent: &str) {
        let mut line = String::new();
        for word in words(paragraph) {
            let longer = line.chars().count() + 1 + word.chars().count();
            if line.trim().is_empty() {
                line.push_str(&word);
            } else if longer <= self.width {
                line.push(' ');
                line.push_str(&word);
            } else {
                self.lines.push(std::mem::replace(&mut line, format!("{indent}{word}")));
            }
        }
        self.lines.push(line);
    }
}

/// Words of a paragraph; a number and its unit, and what belongs to an equals
/// sign, stay together.
fn words(paragraph: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        let is_unit = |c: char| c == '%' || c == '=';
        let belongs = ["kpps", "Mpps", "Gpps", "pps"].iter().any(|unit| word.starts_with(unit))
            || word.starts_with(is_unit);
        match words.last_mut() {
            Some(last) if belongs || last.ends_with(" =") => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_wrap_with_a_hanging_indent() {
        let mut text = Text { width: 12, lines: Vec::new() };
        text.wrapped("one two three four incomprehensibilities five", "  ");
        assert_eq!(text.lines, ["one two", "  three four", "  incomprehensibilities", "  five"]);
        text.lines.clear();
        text.wrapped("it grew by 2.5 %, p = 0.01", "");
        assert_eq!(text.lines, ["it grew by", "2.5 %,", "p = 0.01"]);
        assert_eq!(shortened("abcdef", 4), "abc…");
    }
}
