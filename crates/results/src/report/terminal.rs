//! Text laid out for terminals of any width.

use super::analysis::SummaryResult;
use super::format::percent;
use fwdlab_model::units::format_pps;

/// From this width on a variant fits on one line.
const TABLE_WIDTH: usize = 64;
/// Columns of the table right of the label.
const NUMBERS_WIDTH: usize = 45;
/// Narrower than this no text is laid out for.
const MIN_WIDTH: usize = 20;

/// A line per variant (label and summary) with its median, extremes, CV and
/// number of runs; where that is too wide, a phrase per variant.
pub(crate) fn variants<'a>(
    text: &mut Text,
    variants: impl Iterator<Item = (&'a str, Option<&'a SummaryResult>)> + Clone,
) {
    if text.width < TABLE_WIDTH {
        for (label, summary) in variants {
            let numbers = match summary {
                Some(summary) => {
                    format!(
                        "{} (n = {}, CV {})",
                        format_pps(summary.median),
                        summary.n,
                        cv(summary)
                    )
                }
                None => "no runs yet".to_owned(),
            };
            text.wrapped(&format!("{label}: {numbers}"), "  ");
        }
        return;
    }
    let longest = variants.clone().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let label_width = longest.max("variant".len()).min(text.width - NUMBERS_WIDTH);
    let row = |label: &str, numbers: [&str; 5]| {
        let [median, min, max, cv, n] = numbers;
        let label = shortened(label, label_width);
        format!("{label:label_width$} {median:>10} {min:>10} {max:>10} {cv:>7} {n:>3}")
    };
    text.lines.push(row("variant", ["median", "min", "max", "CV", "n"]));
    for (label, summary) in variants {
        let line = match summary {
            Some(summary) => row(
                label,
                [
                    &format_pps(summary.median),
                    &format_pps(summary.min),
                    &format_pps(summary.max),
                    &cv(summary),
                    &summary.n.to_string(),
                ],
            ),
            None => row(label, ["-", "-", "-", "-", "0"]),
        };
        text.lines.push(line);
    }
}

fn cv(summary: &SummaryResult) -> String {
    summary.cv.map_or("-".to_owned(), |cv| percent(cv, 1))
}

fn shortened(label: &str, width: usize) -> String {
    if label.chars().count() <= width {
        return label.to_owned();
    }
    label.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Lines of a limited width.
pub(crate) struct Text {
    width: usize,
    /// The lines so far, without line feeds.
    pub(crate) lines: Vec<String>,
}

impl Text {
    /// No lines yet, for `width` columns.
    pub(crate) fn new(width: usize) -> Text {
        Text { width: width.max(MIN_WIDTH), lines: Vec::new() }
    }

    /// Adds a paragraph; its lines after the first begin with `indent`.
    pub(crate) fn wrapped(&mut self, paragraph: &str, indent: &str) {
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
