//! Faults of TOML's syntax, and filtering of faults that follow from them.
//!
//! The parser recovers after a fault, but its result for the faulty line is a guess, and after a
//! broken table header the keys below it belong to no table. A fault reported in such a place would
//! be misleading.

use crate::diagnostic::Diagnostic;
use std::ops::Range;

/// Returns the syntax faults and those of `faults` that are not mere consequences of them.
pub(crate) fn merge(
    text: &str,
    errors: &[toml::de::Error],
    faults: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let mut all: Vec<Diagnostic> = Vec::new();
    let mut doubtful: Vec<Range<usize>> = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        doubtful.push(doubtful_range(text, &span));
        // Several faults on one line are mostly one mistake: keep the first.
        let line = line_of(text, span.start);
        if all.iter().all(|fault| line_of(text, fault.span.start) != line) {
            all.push(
                Diagnostic::new(span, format!("not valid TOML: {}", error.message().trim()))
                    .help("https://toml.io describes the format"),
            );
        }
    }
    let believable = |fault: &Diagnostic| {
        // A missing item may be in a line that could not be read.
        let missing = fault.span.is_empty() && !errors.is_empty();
        !missing && doubtful.iter().all(|range| !range.contains(&fault.span.start))
    };
    all.extend(faults.into_iter().filter(believable));
    all
}

/// Returns the lines that a syntax fault makes doubtful: its own, and after a broken header
/// everything up to the next one.
fn doubtful_range(text: &str, span: &Range<usize>) -> Range<usize> {
    let line = line_of(text, span.start);
    let end = line_of(text, span.end.max(span.start)).end;
    if !text[line.clone()].trim_start().starts_with('[') {
        return line.start..end;
    }
    let mut at = end;
    for next in text[end..].split_inclusive('\n') {
        if next.trim_start().starts_with('[') {
            break;
        }
        at += next.len();
    }
    line.start..at
}

/// Returns the line that contains the byte at `at`, with its line feed.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let at = at.min(bytes.len());
    let start = bytes[..at].iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
    let end = bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |i| at + i + 1);
    start..end
}
