//! Tables of medians for gnuplot: `*.data`.
//!
//! A row is a label, then median, minimum and maximum. The label may be several
//! words, quoted, or missing.

use super::printed::{MedianRule, Printed, same};
use serde::Serialize;
use std::collections::BTreeSet;

/// A table as published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Its first comment: the names of its columns.
    pub header: Option<String>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Lines, from 1, that are no rows.
    pub others: Vec<usize>,
}

/// A row, numbers as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Line in the file, from 1.
    pub line: usize,
    /// What stands before the numbers; gnuplot's `\n` is a line's end.
    pub label: String,
    /// Median of the runs.
    pub median: String,
    /// Smallest run.
    pub min: String,
    /// Greatest run.
    pub max: String,
}

/// The variant that a row is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RowSource {
    /// Its index.
    pub variant: usize,
    /// How the row's median was taken.
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

/// For each row the variant (name, figures of its runs) with its numbers, where
/// possible one that no other row has; none where no variant has them.
pub fn check_rows(rows: &[Row], variants: &[(&str, &[f64])]) -> Vec<Option<RowSource>> {
    let printed: Vec<Option<Printed>> =
        variants.iter().map(|(_, values)| Printed::of(values)).collect();
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

/// A label and three numbers.
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

/// Words, those in double quotes as one.
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
    fn rows_with_labels_of_all_kinds() {
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
    fn rows_are_tied_to_runs_by_their_numbers() {
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
