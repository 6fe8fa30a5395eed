//! The analysis for a terminal, also a narrow one.

use super::analysis::{Analysis, Outcome, ScalingOutcome};
use super::terminal::{Text, variants};

/// Variants and verdicts as lines of at most `width` columns (words longer than
/// that stay whole). Ends with a line feed.
pub fn summary_text(analysis: &Analysis, width: usize) -> String {
    let mut text = Text::new(width);
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
    variants(&mut text, analysis.variants.iter().map(|v| (v.label.as_str(), v.summary.as_ref())));
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
    if let Some(device) = &analysis.device {
        text.wrapped(&format!("{}.", device.receiver), "  ");
        for effect in &device.effects {
            text.wrapped(&effect.sentence(), "  ");
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
