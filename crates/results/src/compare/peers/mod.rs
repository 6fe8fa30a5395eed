//! Reads results of other tools: one file here per format, recognised by content.
//!
//! A reader returns benchmarks, each with one value per run, and counts everything else: runs that
//! are left out by kind, and parts of runs (intervals, seconds), which are no replicates. A file of
//! which most runs are unusable is refused. Each file here names its source of the format. Out of
//! scope: files with summaries only, which contain no runs.

mod content;
mod criterion;
mod csit;
mod go;
mod hyperfine;
mod iperf3;
mod moongen;
mod select;
mod testpmd;
mod trex;

pub(super) use select::{Choice, input};

use super::error::CompareError;
use crate::quantity::Quantity;
use content::Content;
use std::fmt;
use std::path::Path;

/// Formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `hyperfine --export-json`.
    Hyperfine,
    /// `sample.json` of criterion.rs.
    Criterion,
    /// `go test -bench`.
    Go,
    /// `iperf3 -J`.
    Iperf3,
    /// `get_stats()` of TRex.
    Trex,
    /// testpmd of DPDK.
    Testpmd,
    /// Counters of MoonGen and libmoon.
    MoonGen,
    /// Test cases of FD.io CSIT.
    Csit,
}

/// A reader of a format.
struct Reader {
    format: Format,
    /// Command or file of the format, for messages.
    file: &'static str,
    recognises: fn(&Content<'_>) -> bool,
    read: fn(&Content<'_>, Request<'_>) -> Result<Reading, Fault>,
}

const READERS: &[Reader] = &[
    iperf3::READER,
    trex::READER,
    testpmd::READER,
    moongen::READER,
    csit::READER,
    hyperfine::READER,
    criterion::READER,
    go::READER,
];

/// Request to a reader.
#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    path: &'a Path,
    /// Name of the value to read. `None` for the usual one of the format.
    column: Option<&'a str>,
}

/// Contents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
struct Reading {
    benchmarks: Vec<Benchmark>,
    /// Runs without a value of a benchmark, by kind, and other parts that are left out.
    left_out: Vec<(String, usize)>,
    /// The runs in `left_out` that failed or are of no known kind.
    unusable: Vec<UnusableRuns>,
    /// Parts of runs, e.g. `intervals`, and their number.
    parts: Option<(&'static str, usize)>,
    /// Remarks.
    notes: Vec<String>,
}

/// Runs that cannot be used.
#[derive(Clone, Debug, PartialEq)]
struct UnusableRuns {
    /// Name of the benchmark. `None` if it is unknown.
    benchmark: Option<String>,
    kind: String,
    runs: usize,
}

/// Runs of one benchmark.
#[derive(Clone, Debug, PartialEq)]
struct Benchmark {
    /// Name in the file. `None` if the format has no names.
    name: Option<String>,
    /// True if the name identifies the measurement, so that files with different names are not
    /// comparable. False if the name is the variant, as a command line is.
    is_identity: bool,
    /// True for another value of the same runs, e.g. of one port, which is read only on request.
    is_secondary: bool,
    quantity: Quantity,
    /// Addition to the unit's name, e.g. `received`.
    what: &'static str,
    /// One value per run.
    values: Vec<f64>,
}

impl Benchmark {
    /// Creates a benchmark without values, whose name identifies the measurement.
    fn new(name: impl Into<String>, quantity: Quantity, what: &'static str) -> Benchmark {
        let name = Some(name.into());
        Benchmark { name, is_identity: true, is_secondary: false, quantity, what, values: vec![] }
    }
}

/// An error in a file, without its path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    line: Option<usize>,
    what: String,
    next: String,
}

impl Fault {
    fn new(what: impl Into<String>, next: impl Into<String>) -> Fault {
        Fault { line: None, what: what.into(), next: next.into() }
    }

    fn at(line: usize, what: impl Into<String>, next: impl Into<String>) -> Fault {
        Fault { line: Some(line), what: what.into(), next: next.into() }
    }

    /// Request for a column that the format lacks.
    fn no_column(column: &str, known: &[&str]) -> Fault {
        Fault::new(
            format!("this format has no column `{column}`"),
            format!("give --column with one of {}", known.join(", ")),
        )
    }

    /// Refuses values without a logarithm.
    fn check(benchmark: &Benchmark) -> Result<(), Fault> {
        let values = &benchmark.values;
        let Some(at) = values.iter().position(|value| !value.is_finite() || *value <= 0.0) else {
            return Ok(());
        };
        let of = benchmark
            .name
            .as_deref()
            .map_or(String::new(), |name| format!(" of {}", excerpt(name)));
        let what =
            format!("run {}{of} has the value {}, which can't be compared", at + 1, values[at]);
        let next = "every run needs a finite value above 0; leave out runs that failed";
        Err(Fault::new(what, next))
    }

    fn in_file(self, path: &Path) -> CompareError {
        CompareError::input(path, self.line, self.what, self.next)
    }
}

impl Reading {
    /// Adds runs that are left out; nothing for 0 runs.
    fn leave_out(&mut self, kind: impl Into<String>, runs: usize) {
        let kind = kind.into();
        match self.left_out.iter_mut().find(|(known, _)| *known == kind) {
            _ if runs == 0 => {}
            Some((_, known)) => *known += runs,
            None => self.left_out.push((kind, runs)),
        }
    }

    /// Leaves out runs that cannot be used; most runs of a file may not be unusable.
    fn unusable(&mut self, benchmark: Option<String>, kind: impl Into<String>, runs: usize) {
        let kind = kind.into();
        self.leave_out(kind.clone(), runs);
        self.unusable.push(UnusableRuns { benchmark, kind, runs });
    }

    /// Benchmark with the same name and meaning; added if it is new.
    fn benchmark(&mut self, empty: Benchmark) -> &mut Benchmark {
        let is_same = |known: &Benchmark| {
            (&known.name, &known.quantity, known.what) == (&empty.name, &empty.quantity, empty.what)
        };
        let at = self.benchmarks.iter().position(is_same).unwrap_or_else(|| {
            self.benchmarks.push(empty);
            self.benchmarks.len() - 1
        });
        &mut self.benchmarks[at]
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Hyperfine => "hyperfine",
            Format::Criterion => "criterion",
            Format::Go => "go test -bench",
            Format::Iperf3 => "iperf3",
            Format::Trex => "TRex",
            Format::Testpmd => "testpmd",
            Format::MoonGen => "MoonGen",
            Format::Csit => "CSIT",
        })
    }
}

/// Reads the file if it is of a known format, or JSON. `None` for any other text.
fn read(path: &Path, text: &str, column: Option<&str>) -> Result<Option<(Format, Reading)>, Fault> {
    let content = Content::of(text)?;
    let Some(reader) = READERS.iter().find(|reader| (reader.recognises)(&content)) else {
        if content.is_json() {
            let known: Vec<&str> = READERS.iter().map(|reader| reader.file).collect();
            let next = format!(
                "give a list, a table, a store, or a file of another tool ({})",
                known.join(", ")
            );
            return Err(Fault::new("JSON of no known tool", next));
        }
        return Ok(None);
    };
    let reading = (reader.read)(&content, Request { path, column })?;
    Ok(Some((reader.format, reading)))
}

pub(super) use super::columns::excerpt;

#[cfg(test)]
mod tests;
