//! Columns of a file of values: their meaning, and columns that make a file ambiguous.

use super::error::CompareError;
use super::records::{Record, Separator};
use crate::label;
use crate::report::LEFT_OUT;
use std::collections::HashSet;
use std::path::Path;

/// Columns with the value, in order of preference.
const RATES: [&str; 4] = ["value_pps", "pps", "rate_pps", "instructions"];
/// Columns that mark a line as a part of a run.
const PARTS: [&str; 8] =
    ["second", "seconds", "sec", "interval", "sample", "slice", "time", "timestamp"];

/// Longest text that a message quotes.
const EXCERPT_CHARS: usize = 60;

pub(super) const IN_PPS: &str = "write packets per second as a plain number, e.g. 1488095";

/// Positions of the columns in a record.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// True if the first record contains column names.
    pub(super) is_named: bool,
    pub(super) count: usize,
    pub(super) rate: usize,
    pub(super) run: Option<usize>,
    pub(super) block: Option<usize>,
    pub(super) variant: Option<usize>,
    pub(super) left_out: Option<usize>,
    /// Column names; empty without them.
    names: Vec<String>,
}

impl Columns {
    /// Interprets the first record.
    pub(super) fn of(
        path: &Path,
        separator: Separator,
        first: &Record<'_>,
    ) -> Result<Columns, CompareError> {
        let names: Vec<String> = first.fields.iter().map(|name| name.to_lowercase()).collect();
        let at = |name: &str| names.iter().position(|known| known == name);
        let error =
            |what: String, next: &str| Err(CompareError::input(path, first.line, what, next));
        let count = names.len();
        if let Some(rate) = RATES.iter().find_map(|name| at(name)) {
            let part = PARTS.iter().find(|name| at(name).is_some());
            if let (Some(part), None) = (part, at("run")) {
                let what =
                    format!("each line holds one {part}, and parts of a run are no replicates");
                return error(what, "add a column `run` with the number of the run");
            }
            let [run, block, variant, left_out] = ["run", "block", "variant", LEFT_OUT].map(at);
            return Ok(Columns {
                is_named: true,
                count,
                rate,
                run,
                block,
                variant,
                left_out,
                names,
            });
        }
        let numbers = first.fields.iter().filter(|field| field.parse::<f64>().is_ok()).count();
        let unnamed = |rate: usize, run: Option<usize>| {
            Ok(Columns {
                is_named: false,
                count,
                rate,
                run,
                block: None,
                variant: None,
                left_out: None,
                names: Vec::new(),
            })
        };
        match (count, separator) {
            (1, _) => unnamed(0, None),
            (2, Separator::Blanks | Separator::Tab) if numbers == 2 => unnamed(1, Some(0)),
            (_, Separator::Comma) if numbers == count => error(
                format!("{count} fields and no names of columns"),
                "write a first line such as `run,pps`, and fractions with a point",
            ),
            _ if numbers > 0 => {
                error(format!("`{}` is not a rate", excerpt(&first.fields.join(" "))), IN_PPS)
            }
            _ => error(
                format!(
                    "no column is called {}",
                    RATES[..2].iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" or ")
                ),
                "name the column with one figure per run, in packets per second, `pps`",
            ),
        }
    }

    /// Uses the column `label` as names of variants if the column `variant` only numbers them, as in
    /// exported tables.
    pub(super) fn name_variants(&mut self, lines: &[Record<'_>]) {
        let label = self.names.iter().position(|name| name == "label");
        let (Some(variant), Some(label)) = (self.variant, label) else { return };
        let both = |record: &Record<'_>| {
            [variant, label].map(|at| record.fields.get(at).map_or("", |field| &**field).to_owned())
        };
        let pairs: HashSet<[String; 2]> = lines.iter().map(both).collect();
        let is_numbered = pairs.iter().all(|[variant, _]| variant.parse::<u64>().is_ok());
        // A label may also be a remark on a single run.
        let is_unique = |side: usize| {
            let texts: HashSet<&String> = pairs.iter().map(|pair| &pair[side]).collect();
            texts.len() == pairs.len()
        };
        if is_numbered && is_unique(0) && is_unique(1) {
            self.variant = Some(label);
        }
    }

    /// Refuses two columns without names of which the first one is a time: its heading is a comment,
    /// or it rises evenly.
    pub(super) fn refuse_clock(
        &self,
        path: &Path,
        text: &str,
        lines: &[Record<'_>],
    ) -> Result<(), CompareError> {
        let Some(at) = self.run.filter(|_| !self.is_named) else { return Ok(()) };
        // A comment with a word for each column is a heading, unless it is a key with its value.
        let comments = text.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
        let headings = comments.filter_map(|line| {
            let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '#');
            let words: Vec<&str> = line.split(is_between).filter(|word| !word.is_empty()).collect();
            let [first, second] = words[..] else { return None };
            let is_value = second.starts_with(|c: char| c.is_ascii_digit());
            (!first.ends_with(':') && !is_value).then_some(first)
        });
        let name = |word: &str| {
            let is_letter = |c: char| c.is_alphanumeric() || c == '_';
            word.split(|c| !is_letter(c)).next().unwrap_or_default().to_lowercase()
        };
        let words: Vec<String> = headings.map(name).collect();
        let part = PARTS.iter().find(|part| words.iter().any(|word| word == *part));
        let what = match part {
            Some(part) => {
                format!("each line holds one {part}, and parts of a run are no replicates")
            }
            None if words.iter().any(|word| word == "run") => return Ok(()),
            None if !rises_evenly(lines, at) => return Ok(()),
            None => {
                "the first column rises evenly, as a clock does: are these the parts of one run \
                     or several runs?"
                    .to_owned()
            }
        };
        let next = "write a first line `run pps` if each line is a run; otherwise add a column \
                    `run` with the number of the run";
        Err(CompareError::input(path, lines.first().map(|record| record.line), what, next))
    }
}

/// True if the numbers in this column rise by the same step from line to line.
fn rises_evenly(lines: &[Record<'_>], at: usize) -> bool {
    let number = |record: &Record<'_>| record.fields.get(at)?.parse::<u64>().ok();
    let Some(numbers) = lines.iter().map(number).collect::<Option<Vec<u64>>>() else {
        return false;
    };
    let mut steps = numbers.windows(2).map(|pair| pair[1].checked_sub(pair[0]));
    match steps.next() {
        Some(Some(step)) if step > 0 => steps.all(|other| other == Some(step)),
        _ => false,
    }
}

/// Values of the columns with unknown meaning, which must be the same in all lines of a run.
#[derive(Debug)]
pub(super) struct Unknown {
    /// Position and name of these columns.
    columns: Vec<(usize, String)>,
    /// Columns with the part of the run.
    parts: Vec<usize>,
    /// First values, by run and column.
    first: Vec<Vec<String>>,
    /// Runs and parts that were seen.
    seen: HashSet<(usize, Vec<String>)>,
}

impl Unknown {
    pub(super) fn of(columns: &Columns) -> Unknown {
        let used = [columns.run, columns.block, columns.variant, columns.left_out];
        let numbered = || columns.names.iter().enumerate();
        let is_known = |at: usize, name: &str| {
            used.contains(&Some(at))
                || RATES.contains(&name)
                || PARTS.contains(&name)
                || name == "variant"
        };
        let unknown = numbered().filter(|(at, name)| !is_known(*at, name));
        Unknown {
            columns: unknown.map(|(at, name)| (at, name.clone())).collect(),
            parts: numbered()
                .filter(|(_, name)| PARTS.contains(&name.as_str()))
                .map(|(at, _)| at)
                .collect(),
            first: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Names of the columns that are not read, quoted.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.columns.iter().map(|(_, name)| name.as_str());
        let unread = names.filter(|name| !label::COLUMNS.contains(name));
        unread.map(|name| format!("`{}`", excerpt(name))).collect()
    }

    /// Adds a line of a run, by its index; the error names a column with two values in the run.
    /// Numbers and times may differ, or lack, if they belong to different parts of the run.
    pub(super) fn add(&mut self, run: usize, record: &Record<'_>) -> Result<(), String> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let values = self.columns.iter().map(|(at, _)| record.fields[*at].clone().into_owned());
        let part = self.parts.iter().map(|&at| record.fields[at].clone().into_owned()).collect();
        let is_another_part = !self.parts.is_empty() && self.seen.insert((run, part));
        let Some(first) = self.first.get(run) else {
            self.first.push(values.collect());
            return Ok(());
        };
        for ((value, known), (_, name)) in values.zip(first).zip(&self.columns) {
            let are_measured = is_measured(known) && is_measured(&value);
            if *known != value && !(is_another_part && are_measured) {
                let (known, value) = (excerpt(known), excerpt(&value));
                return Err(format!("has two values of `{name}`: `{known}` and `{value}`"));
            }
        }
        Ok(())
    }
}

/// True for a number, a date, a time, or a lacking value.
fn is_measured(text: &str) -> bool {
    let is_of_time =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | '.' | '+' | 'T' | 'Z' | ' ');
    let is_time = text.contains(':') || text.matches('-').count() == 2;
    text.parse::<f64>().is_ok()
        || is_time && text.chars().all(is_of_time)
        || ["", "-", "na", "n/a", "none", "null"].contains(&text.to_lowercase().as_str())
}

/// The beginning of a text, for a message.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}[...]", &text[..end]),
    }
}
