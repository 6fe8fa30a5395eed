//! Text of `go test -bench`, as benchstat reads it: each line of a benchmark is a run.
//!
//! A line has a name, the number of iterations, and pairs of value and unit. The first unit of the
//! file is read unless `--column` names another. Runs of one name with different configuration lines
//! (`key: value`) are different benchmarks, as for benchstat; different machines are refused. Source:
//! the Go benchmark data format (golang.org/design/14313-benchmark-format) and `benchfmt/reader.go`,
//! `benchfmt/units.go`, `cmd/benchstat/main.go` of golang/perf, which also has the directions of
//! units.

use super::content::Content;
use super::{Benchmark, Fault, Format, Reader, Reading, Request, excerpt};
use crate::quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub(super) const READER: Reader =
    Reader { format: Format::Go, file: "go test -bench", recognises, read };

/// Units with a known direction; true if smaller is better.
const KNOWN: [(&str, bool); 6] = [
    ("ns/op", true),
    ("sec/op", true),
    ("B/op", true),
    ("allocs/op", true),
    ("MB/s", false),
    ("B/s", false),
];

/// Keys of the machine, which may not have two values in a file.
const MACHINE: [&str; 3] = ["goos", "goarch", "cpu"];
/// Keys in lines of `go test` that are no configuration: `coverage: 50.0% of statements`.
const NO_CONFIGURATION: [&str; 3] = ["coverage", "testing", "warning"];

/// Configuration lines before a run: values by key.
type Configuration<'a> = BTreeMap<&'a str, &'a str>;

/// A line of a benchmark.
struct Run<'a> {
    name: String,
    configuration: Configuration<'a>,
    values: Vec<(f64, &'a str)>,
    line: usize,
}

impl<'a> Run<'a> {
    fn package(&self) -> Option<&'a str> {
        self.configuration.get("pkg").copied()
    }
}

fn recognises(content: &Content<'_>) -> bool {
    content.text().lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields[..], [name, iterations, value, _, ..]
            if line.starts_with("Benchmark") && name.len() > "Benchmark".len()
                && iterations.parse::<u64>().is_ok() && value.parse::<f64>().is_ok())
    })
}

fn read(content: &Content<'_>, request: Request<'_>) -> Result<Reading, Fault> {
    let mut directions: HashMap<&str, bool> = KNOWN.into_iter().collect();
    let mut machine: HashMap<&str, &str> = HashMap::new();
    let mut configuration = Configuration::new();
    let (mut runs, mut failed) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(content.text().lines()) {
        if let Some(rest) = line.strip_prefix("Benchmark") {
            if rest.trim_end().contains(char::is_whitespace) {
                runs.push(run(line, number, &configuration)?);
            }
        } else if let Some(name) = line.trim_start().strip_prefix("--- FAIL: ")
            && name.starts_with("Benchmark")
        {
            failed.push(name.split_whitespace().next().unwrap_or_default().to_owned());
        } else if let Some(rest) = line.strip_prefix("Unit ") {
            let mut fields = rest.split_whitespace();
            let unit = fields.next().unwrap_or_default();
            for field in fields {
                match field {
                    "better=lower" => directions.insert(unit, true),
                    "better=higher" => directions.insert(unit, false),
                    _ => None,
                };
            }
        } else if let Some((key, value)) = configured(line) {
            if MACHINE.contains(&key)
                && !value.is_empty()
                && let Some(before) = machine.insert(key, value)
                && before != value
            {
                let what = format!("`{key}` is `{value}` here and `{before}` before");
                return Err(Fault::at(number, what, "give the runs of each machine as a file"));
            }
            match value {
                "" => configuration.remove(key),
                value => configuration.insert(key, value),
            };
        }
    }
    name_by_configuration(&mut runs);
    let mut reading = benchmarks(runs, &directions, request.column)?;
    for name in failed {
        reading.unusable(Some(name), "failed benchmarks", 1);
    }
    Ok(reading)
}

/// Key and value of a configuration line; an empty value removes the key.
fn configured(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = key.starts_with(char::is_lowercase)
        && !key.contains(|c: char| c.is_whitespace() || c.is_uppercase())
        && (value.is_empty() || value.starts_with([' ', '\t']));
    (is_key && !NO_CONFIGURATION.contains(&key)).then(|| (key, value.trim()))
}

/// Adds the configuration that distinguishes runs of one name to their names: the package in front,
/// because a name is unique within its package, and other values behind.
fn name_by_configuration(runs: &mut [Run<'_>]) {
    if runs.iter().any(|run| run.package() != runs[0].package()) {
        for run in &mut *runs {
            if let Some(package) = run.package() {
                run.name = format!("{package}.{}", run.name);
            }
        }
    }
    let mut first: HashMap<String, Configuration<'_>> = HashMap::new();
    let mut varying: HashMap<String, BTreeSet<&str>> = HashMap::new();
    for run in &*runs {
        let first = first.entry(run.name.clone()).or_insert_with(|| run.configuration.clone());
        let keys = first.keys().chain(run.configuration.keys());
        let differing = keys.filter(|key| first.get(*key) != run.configuration.get(*key));
        varying.entry(run.name.clone()).or_default().extend(differing);
    }
    for run in runs {
        let keys = varying.get(&run.name).into_iter().flatten();
        let values = keys.filter_map(|key| Some(format!("{key}: {}", run.configuration.get(key)?)));
        let values: Vec<String> = values.collect();
        if !values.is_empty() {
            run.name = format!("{} ({})", run.name, values.join(", "));
        }
    }
}

fn run<'a>(
    line: &'a str,
    number: usize,
    configuration: &Configuration<'a>,
) -> Result<Run<'a>, Fault> {
    let cut = |what: &str| {
        Fault::at(number, what, "give the output of `go test -bench` whole, one line per run")
    };
    let mut fields = line.split_whitespace();
    let name = fields.next().unwrap_or_default().to_owned();
    if fields.next().and_then(|field| field.parse::<u64>().ok()).is_none() {
        return Err(cut("the number of iterations is missing"));
    }
    let mut values = Vec::new();
    while let Some(value) = fields.next() {
        let Ok(value) = value.parse::<f64>() else {
            return Err(cut(&format!("`{}` is not a number", excerpt(value))));
        };
        let unit = fields.next().ok_or_else(|| cut("a value without a unit"))?;
        values.push((value, unit));
    }
    match values.is_empty() {
        true => Err(cut("a run without a value")),
        false => Ok(Run { name, configuration: configuration.clone(), values, line: number }),
    }
}

fn benchmarks(
    runs: Vec<Run<'_>>,
    directions: &HashMap<&str, bool>,
    column: Option<&str>,
) -> Result<Reading, Fault> {
    let mut units: Vec<&str> = Vec::new();
    for (_, unit) in runs.iter().flat_map(|run| &run.values) {
        if !units.contains(unit) {
            units.push(unit);
        }
    }
    let unit = match column {
        Some(column) if !units.contains(&column) => return Err(Fault::no_column(column, &units)),
        Some(column) => column,
        None => units.first().copied().unwrap_or_default(),
    };
    let Some(&is_smaller_better) = directions.get(unit) else {
        let what = format!("the file does not state which values of `{unit}` are better");
        let next = format!("add a line `Unit {unit} better=higher` or `better=lower` to the file");
        return Err(Fault::new(what, next));
    };
    let mut reading = Reading::default();
    let has_unit = |run: &Run<'_>| run.values.iter().any(|(_, known)| *known == unit);
    let with_unit: HashSet<String> =
        runs.iter().filter(|run| has_unit(run)).map(|run| run.name.clone()).collect();
    for run in runs {
        if !with_unit.contains(&run.name) {
            reading.leave_out(format!("runs of benchmarks without {unit}"), 1);
            continue;
        }
        let value = run.values.iter().find(|(_, known)| *known == unit);
        let Some((value, _)) = value else {
            let what = format!("this run has no value in {unit}, and others of it have");
            let next = "give the output of `go test -bench` whole, or another --column";
            return Err(Fault::at(run.line, what, next));
        };
        let quantity = Quantity::named(unit, is_smaller_better);
        reading.benchmark(Benchmark::new(run.name, quantity, "")).values.push(*value);
    }
    let others: Vec<&str> = units.iter().filter(|known| **known != unit).copied().collect();
    if !others.is_empty() && column.is_none() {
        reading.notes.push(format!("values in {} are not read (--column)", others.join(", ")));
    }
    Ok(reading)
}
