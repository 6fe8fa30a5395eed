//! Tables of medians for gnuplot: `*.data`.
//!
//! A row is a label, then median, minimum and maximum. The label may be several words, quoted, or
//! absent.

use super::printed::{MedianRule, PrintedFigures, same};
use serde::Serialize;
use std::collections::BTreeSet;

/// A table as published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Its first comment: the names of its columns.
    pub header: Option<String>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Numbers of the lines, from 1, that are not rows.
    pub others: Vec<usize>,
}

/// A row, numbers as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Line in the file, from 1.
    pub line: usize,
    /// The text before the numbers; gnuplot's `\n` becomes a line break.
    pub label: String,
    /// Median of the runs.
    pub median: String,
    /// Smallest run.
    pub min: String,
    /// Largest run.
    pub max: String,
}

/// The variant that a row was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RowSource {
    /// Its index.
    pub variant: usize,
    /// The rule of the row's median.
    pub rule: MedianRule,
}

impl Table {
    /// Reads a table.
    pub fn parse(text: &str) -> Table {
        let mut table = Table::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if let Some(comment) = line.strip_prefix('#') {
                let words: Vec<&str> = comment.split_whitespace().collect();
                table.header.get_or_insert_with(|| words.join(" "));
            } else if let Some(row) = row(number, line) {
                table.rows.push(row);
            } else if !line.is_empty() {
                table.others.push(number);
            }
        }
        table
    }
}

/// Returns, for each row, the variant (name, figures of its runs) with its numbers, preferably one
/// that no other row uses; `None` if no variant has them.
pub fn check_rows(rows: &[Row], variants: &[(&str, &[f64])]) -> Vec<Option<RowSource>> {
    let printed: Vec<Option<PrintedFigures>> =
        variants.iter().map(|(_, values)| PrintedFigures::of(values)).collect();
    let mut taken = BTreeSet::new();
    rows.iter()
        .map(|row| {
            let sources: Vec<RowSource> = (0..)
                .zip(&printed)
                .filter_map(|(variant, printed)| {
                    let printed = printed.as_ref()?;
                    let ends = same(&row.min, &printed.min) && same(&row.max, &printed.max);
                    let rule = printed.median_rule(&row.median).filter(|_| ends)?;
                    Some(RowSource { variant, rule })
                })
                .collect();
            let free = sources.iter().find(|source| !taken.contains(&source.variant));
            let source = free.or(sources.first()).copied()?;
            taken.insert(source.variant);
            Some(source)
        })
        .collect()
}

/// Parses a label and three numbers.
fn row(line: usize, text: &str) -> Option<Row> {
    let words = words(text);
    let at = words.len().checked_sub(3)?;
    let (label, numbers) = words.split_at(at);
    let finite = |word: &String| word.parse::<f64>().is_ok_and(f64::is_finite);
    let [median, min, max] = numbers else { return None };
    numbers.iter().all(finite).then(|| Row {
        line,
        label: label.join(" "),
        median: median.clone(),
        min: min.clone(),
        max: max.clone(),
    })
}

/// Splits a text into words; text in double quotes is one word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (word, after) = quoted.split_once('"').unwrap_or((quoted, ""));
                (word.replace("\\n", "\n"), after)
            }
            None => {
                let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                (word.to_owned(), after)
            }
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_all_kinds_of_labels() {
        let text = "#key median  minimum\tmaximum\r\n1199682 1189795 1200125\r\n\
                    fastforwarding 295802 2460830.8 2108683.5 2553645\n\
                    \"r368287+D27401\\n(80345)\" 3 1 4\n\nno row\n1 2 three\n";
        let table = Table::parse(text);
        assert_eq!(table.header.as_deref(), Some("key median minimum maximum"));
        let rows: Vec<_> =
            table.rows.iter().map(|row| (row.label.as_str(), row.median.as_str())).collect();
        assert_eq!(
            rows,
            [
                ("", "1199682"),
                ("fastforwarding 295802", "2460830.8"),
                ("r368287+D27401\n(80345)", "3"),
            ]
        );
        assert_eq!(table.others, [6, 7]);
    }

    #[test]
    fn check_rows_matches_variants_by_numbers() {
        let table = Table::parse("a 3 1 8\nb 3 1 8\nc 4 1 8\nd 2 1 8\n");
        let even: &[f64] = &[8.0, 1.0, 4.0, 2.0];
        let sources = check_rows(&table.rows, &[("one", even), ("other", even), ("odd", &[1.0])]);
        let source = |variant, rule| Some(RowSource { variant, rule });
        assert_eq!(
            sources,
            [
                source(0, MedianRule::Mean),
                source(1, MedianRule::Mean),
                source(0, MedianRule::Upper),
                None
            ]
        );
    }
}
