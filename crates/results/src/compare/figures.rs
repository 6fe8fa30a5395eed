//! Reads values in text: one per line, or lines with named columns.
//!
//! The unit is the run: if a run has several lines (for example one per second), their mean is its
//! value; a mark in any of them leaves the run out. Nothing is guessed: unknown input is an error
//! with the line and the next step.

use super::columns::{Columns, IN_PPS, Unknown, excerpt};
use super::error::{CompareError, mostly_left_out};
use super::input::{Input, Kind, Variant};
use super::records::{Record, records};
use super::sidecar;
use crate::label::Label;
use crate::profile::is_majority;
use crate::stats::BlockedRun;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Parses the text of the file at `path`.
pub(super) fn read(path: &Path, text: &str) -> Result<Input, CompareError> {
    let (separator, records) = records(text).map_err(|error| {
        let next = "write a quote within a quoted field twice, or remove it";
        CompareError::input(path, error.line, error.what, next)
    })?;
    let Some(first) = records.first() else {
        let next = "it needs one figure per run, in packets per second, one per line";
        return Err(CompareError::input(path, None, "this file holds no figures", next));
    };
    let mut columns = Columns::of(path, separator, first)?;
    let lines = if columns.is_named { &records[1..] } else { &records[..] };
    columns.name_variants(lines);
    columns.refuse_clock(path, text, lines)?;
    // First of all: runs of two testbeds also differ in other columns.
    let labels = labels(path, text, columns_of(first), lines)?;
    let unknown = Unknown::of(&columns);
    let mut table = Table {
        path,
        columns,
        unknown,
        runs: Vec::new(),
        known: HashMap::new(),
        marked: HashSet::new(),
        empty: 0,
        missing: None,
    };
    for record in lines {
        table.add(record)?;
    }
    let mut input = table.input(lines.len(), labels)?;
    if input.kind == Kind::List && input.label.is_none() {
        input.label = sidecar::label_of_list(&input);
    }
    Ok(input)
}

/// Column names of the first record.
fn columns_of(first: &Record<'_>) -> Vec<String> {
    first.fields.iter().map(|name| name.to_lowercase()).collect()
}

/// Origin of the values according to the columns or a comment.
fn labels(
    path: &Path,
    text: &str,
    names: Vec<String>,
    lines: &[Record<'_>],
) -> Result<Option<Label>, CompareError> {
    let mut found: Option<Label> = Label::in_comments(text);
    for record in lines {
        let at = |name: &str| {
            let at = names.iter().position(|known| known == name)?;
            record.fields.get(at).map(|field| &**field)
        };
        match (Label::of_fields(at), &found) {
            (Some(label), None) => found = Some(label),
            (Some(label), Some(first)) if !label.is_comparable(first) => {
                let what = format!(
                    "testbed {} here, and {} before: one file holds figures of one testbed",
                    label.testbed, first.testbed
                );
                let next = "take them apart, and compare none with the other";
                return Err(CompareError::input(path, record.line, what, next));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Table being read; collects lines into runs.
struct Table<'a> {
    path: &'a Path,
    columns: Columns,
    unknown: Unknown,
    runs: Vec<Lines>,
    /// Index in `runs`, by variant and run number.
    known: HashMap<(String, String), usize>,
    /// Variant and number of runs with a marked line.
    marked: HashSet<(String, String)>,
    /// Number of lines without a value.
    empty: usize,
    /// Lines without a value and without a mark: their number, and the number of the first.
    missing: Option<(usize, usize)>,
}

/// Lines of one run.
struct Lines {
    variant: String,
    block: Option<u32>,
    sum: f64,
    count: usize,
    /// True if the run is marked as excluded from verdicts.
    is_left_out: bool,
}

impl Table<'_> {
    fn add(&mut self, record: &Record<'_>) -> Result<(), CompareError> {
        let Columns { is_named, count, rate, run, block, variant, left_out, .. } = self.columns;
        let error =
            |what: String, next: &str| Err(CompareError::input(self.path, record.line, what, next));
        let fields = &record.fields;
        if fields.len() != count {
            let what = format!("{} fields, but {count} before", fields.len());
            return error(what, "every line needs the same columns");
        }
        let variant = variant.map_or(String::new(), |at| fields[at].clone().into_owned());
        let is_left_out = left_out.is_some_and(|at| is_true(&fields[at]));
        let key = run.map(|at| (variant.clone(), fields[at].clone().into_owned()));
        if is_left_out {
            self.marked.extend(key.clone());
        }
        // fwdlab leaves the value of a run without valid samples empty.
        if is_named && fields[rate].is_empty() {
            self.empty += 1;
            if !is_left_out {
                self.missing.get_or_insert((0, record.line)).0 += 1;
            }
            return Ok(());
        }
        let pps = match fields[rate].parse::<f64>() {
            Ok(pps) if pps.is_finite() && pps > 0.0 => pps,
            Ok(_) => {
                let what = format!("`{}` can't be compared", excerpt(&fields[rate]));
                return error(
                    what,
                    "every run needs a finite rate above 0; leave out runs that failed",
                );
            }
            Err(_) => {
                return error(format!("`{}` is not a number", excerpt(&fields[rate])), IN_PPS);
            }
        };
        let block = match block.map(|at| fields[at].parse::<u32>()) {
            None => None,
            Some(Ok(block)) => Some(block),
            Some(Err(_)) => {
                return error("the block is not a whole number".into(), "number the blocks from 0");
            }
        };
        if let (false, Some(at)) = (is_named, run)
            && fields[at].parse::<u64>().is_err()
        {
            let what = format!("`{}` is not the number of a run", excerpt(&fields[at]));
            return error(what, "two columns are run and rate; name other ones in a first line");
        }
        let lines = Lines { variant, block, sum: pps, count: 1, is_left_out };
        let Some(key) = key else {
            self.runs.push(lines);
            return Ok(());
        };
        let number = self.known.get(&key).copied();
        let kept = number.unwrap_or(self.runs.len());
        self.unknown.add(kept, record).map_err(|what| {
            let next = "call the column `variant` if it distinguishes runs, or `second` if it \
                        numbers the parts of a run; otherwise remove it";
            CompareError::input(self.path, record.line, format!("run {} {what}", key.1), next)
        })?;
        match number.map(|index| &mut self.runs[index]) {
            Some(known) if known.block != block => {
                return error(format!("run {} is in two blocks", key.1), "a run has one block");
            }
            Some(known) => {
                known.sum += pps;
                known.count += 1;
            }
            None => {
                self.known.insert(key, self.runs.len());
                self.runs.push(lines);
            }
        }
        Ok(())
    }

    /// Builds the input: runs by variant, and notes on them.
    fn input(mut self, lines: usize, label: Option<Label>) -> Result<Input, CompareError> {
        let path = self.path;
        // Marks are intended.
        if let Some((missing, line)) = self.missing
            && is_majority(missing, lines)
        {
            let kinds = format!("{missing} lines without a figure");
            let what = mostly_left_out(&kinds, lines - self.empty);
            let next = "add the figures, or mark these lines in a column `left_out`";
            return Err(CompareError::input(path, line, what, next));
        }
        for key in &self.marked {
            if let Some(&index) = self.known.get(key) {
                self.runs[index].is_left_out = true;
            }
        }
        let of_file = self.columns.variant.is_none();
        let mut variants: Vec<Variant> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut left_out: Vec<(&str, usize)> = Vec::new();
        for run in &self.runs {
            let index = *known.entry(&run.variant).or_insert_with(|| {
                let label = if of_file { Input::stem(path) } else { run.variant.clone() };
                variants.push(Variant {
                    label,
                    runs: Vec::new(),
                    known: Vec::new(),
                    executed: Vec::new(),
                });
                variants.len() - 1
            });
            let runs = &mut variants[index].runs;
            let block = run.block.unwrap_or(runs.len() as u32);
            if run.is_left_out {
                left_out.push((&run.variant, runs.len()));
            }
            runs.push(BlockedRun { block, pps: run.sum / run.count as f64 });
        }
        if variants.is_empty() {
            let next = "it needs one line per run";
            return Err(CompareError::input(path, None, "names of columns and no figures", next));
        }
        if left_out.len() == self.runs.len() {
            let next = "remove the marks of the runs to compare";
            return Err(CompareError::input(path, None, "every run is marked as left out", next));
        }
        // In a table, other variants may still have a result.
        if of_file && self.runs.len() - left_out.len() < 2 {
            let what = "one run does not show the scatter";
            let next = "measure it at least twice, better ten times";
            return Err(CompareError::input(path, None, what, next));
        }
        let mut notes = Vec::new();
        let (samples, runs) = (lines - self.empty, self.runs.len());
        if samples > runs {
            notes
                .push(format!("{samples} samples of {} aggregated to {runs} runs", path.display()));
        }
        if self.empty > 0 {
            let empty = self.empty;
            notes.push(format!("{}: {empty} lines without a figure are left out", path.display()));
        }
        let unread = self.unknown.names();
        if of_file && !unread.is_empty() {
            notes.push(format!(
                "{}: columns that are not read: {}",
                path.display(),
                unread.join(", ")
            ));
        }
        let mut input = Input {
            path: path.to_path_buf(),
            name: path.display().to_string(),
            kind: if of_file { Kind::List } else { Kind::Table },
            variants,
            has_blocks: self.columns.block.is_some(),
            origin: None,
            label,
            plan: None,
            streams: Vec::new(),
            beds: Vec::new(),
            notes,
            peer: None,
        };
        // Backwards, so that removing a run does not move earlier ones.
        for (label, at) in left_out.iter().rev() {
            let named = |variant: &&mut Variant| of_file || variant.label == *label;
            if let Some(variant) = input.variants.iter_mut().find(named) {
                variant.runs.remove(*at);
            }
        }
        if !of_file {
            sidecar::complete(&mut input);
        }
        if !left_out.is_empty() {
            let (path, marked) = (path.display(), left_out.len());
            input.notes.push(format!("{path}: {marked} runs are marked as left out, and are"));
        }
        Ok(input)
    }
}

/// True if a run is marked as left out: by a reason, or by a boolean as other programs write it.
fn is_true(mark: &str) -> bool {
    !["", "0", "0.0", "f", "false", "n", "no", "none", "nan", "null", "-"]
        .contains(&mark.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    mod ambiguous;

    use super::*;

    fn read(text: &str) -> Result<Input, String> {
        super::read(Path::new("dir/a.b.pps"), text).map_err(|error| error.to_string())
    }

    fn values(text: &str) -> Vec<f64> {
        read(text).unwrap().variants[0].values()
    }

    #[test]
    fn list_is_one_variant_named_after_the_file() {
        let input = read("# packets per second\n\n1000\n 2e3 \r\n3000.5").unwrap();
        assert_eq!((input.kind, input.has_blocks, input.variants.len()), (Kind::List, false, 1));
        assert_eq!(input.variants[0].label, "a.b");
        assert_eq!(input.variants[0].values(), [1000.0, 2000.0, 3000.5]);
        assert_eq!(values("pps\n1\n2"), [1.0, 2.0]);
    }

    #[test]
    fn lines_of_a_run_are_averaged() {
        let input = read("1 10\n1 20\n2 30\n2 50\n").unwrap();
        assert_eq!(input.variants[0].values(), [15.0, 40.0]);
        assert_eq!(input.notes, ["4 samples of dir/a.b.pps aggregated to 2 runs"]);
        assert_eq!(values("run,second,pps\na,0,1\na,1,3\nb,0,5\nb,1,5\n"), [2.0, 5.0]);
        assert_eq!(read("run pps\n1 5\n2 6\n").unwrap().notes, [""; 0]);
        let notes = read("run pps disk load\n1 5 a 1\n2 6 b 2\n").unwrap().notes;
        assert_eq!(notes, ["dir/a.b.pps: columns that are not read: `disk`, `load`"]);
    }

    #[test]
    fn table_has_variants_and_blocks() {
        let text = "run,block,variant,value_pps,mean_pps\n0,0,\"4, a\",10,1\n1,0,b,20,1\n\
                    2,1,b,21,1\n3,1,\"4, a\",11,1\n4,2,b,,1\n";
        let input = read(text).unwrap();
        assert!(input.has_blocks && input.kind == Kind::Table);
        let labels: Vec<&str> = input.variants.iter().map(|v| v.label.as_str()).collect();
        assert_eq!(labels, ["4, a", "b"]);
        assert_eq!(input.variants[0].runs[1], BlockedRun { block: 1, pps: 11.0 });
        assert_eq!(input.notes, ["dir/a.b.pps: 1 lines without a figure are left out"]);
    }

    #[test]
    fn marked_runs_are_left_out() {
        let text = "run,variant,value_pps,left_out\n0,a,10,\n1,b,20,\n2,b,1,short\n3,a,11,\n\
                    4,b,21,\n";
        let input = read(text).unwrap();
        assert_eq!(input.variants[0].values(), [10.0, 11.0]);
        assert_eq!(input.variants[1].values(), [20.0, 21.0]);
        assert_eq!(input.notes, ["dir/a.b.pps: 1 runs are marked as left out, and are"]);
    }

    #[test]
    fn mark_in_any_line_leaves_the_run_out() {
        let head = "run,second,pps,left_out\n1,0,10,\n1,1,10,\n2,0,11,\n2,1,11,\n3,0,12,\n";
        for line in ["3,1,2,late\n", "3,1,,late\n"] {
            for text in [format!("{head}{line}"), head.replace("3,0", &format!("{line}3,0"))] {
                let input = read(&text).unwrap();
                assert_eq!(input.variants[0].values(), [10.0, 11.0], "{text}");
                let note = "dir/a.b.pps: 1 runs are marked as left out, and are";
                assert_eq!(input.notes.last().map(String::as_str), Some(note), "{text}");
            }
        }
        let one = read("run,pps,left_out\n1,10,\n2,11,x\n").unwrap_err();
        assert!(one.contains("one run does not show the scatter"), "{one}");
        let none = read("run,variant,pps,left_out\n1,a,10,x\n2,b,11,x\n").unwrap_err();
        assert!(none.contains("every run is marked as left out; remove the marks"), "{none}");
    }

    #[test]
    fn list_with_mostly_missing_figures_is_refused() {
        let text = "run,pps,left_out\n1,10,\n2,11,\n3,,\n4,,\n5,,late\n6,,late\n7,9,late\n";
        let input = read(text).unwrap();
        assert_eq!(input.variants[0].values(), [10.0, 11.0]);
        let refused = read(&text.replace(",late", ",")).unwrap_err();
        let expected = "a.b.pps:4: most of the file would be left out: 4 lines without a figure, \
                        with 3 read; add the figures";
        assert!(refused.contains(expected), "{refused}");
    }

    #[test]
    fn booleans_mark_left_out_runs() {
        for (no, yes) in [("False", "True"), ("0", "1"), ("no", "yes"), ("", "late")] {
            let text = format!("run,pps,left_out\n0,10,{no}\n1,11,{no}\n2,1,{yes}\n3,12,{no}\n");
            let input = read(&text).unwrap();
            assert_eq!(input.variants[0].values(), [10.0, 11.0, 12.0], "{no}, {yes}");
        }
    }

    #[test]
    fn errors_have_line_and_next_step() {
        for (text, expected) in [
            ("", "dir/a.b.pps: this file holds no figures; it needs one figure per run"),
            ("# only\n\n", "holds no figures"),
            ("pps\n", "names of columns and no figures"),
            ("5\n", "one run does not show the scatter; measure it at least twice"),
            ("5\n\nx\n", "a.b.pps:3: `x` is not a number; write packets per second"),
            ("5\nNaN\n", "a.b.pps:2: `NaN` can't be compared; every run needs a finite rate"),
            ("5\ninf\n", "`inf` can't be compared"),
            ("5\n0\n", "`0` can't be compared"),
            ("5\n-4\n", "`-4` can't be compared"),
            ("1.2 Mpps\n", "a.b.pps:1: `1.2 Mpps` is not a rate"),
            ("1,5\n2,5\n", "2 fields and no names of columns"),
            ("5\n6 7\n", "a.b.pps:2: 2 fields, but 1 before"),
            ("1.5 7\n2.5 8\n", "`1.5` is not the number of a run"),
            ("run,kpps\n1,2\n", "no column is called `value_pps` or `pps`"),
            (
                "second,pps\n1,2\n",
                "each line holds one second, and parts of a run are no replicates",
            ),
            ("run,block,pps\n1,a,2\n", "the block is not a whole number"),
            ("run,block,pps\n1,0,2\n1,1,2\n", "run 1 is in two blocks"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
