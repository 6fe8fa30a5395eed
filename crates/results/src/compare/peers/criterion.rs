//! `sample.json` of criterion.rs: each sample is a run, its time over its iterations in
//! nanoseconds.
//!
//! The samples of a file are of one process. The name of the benchmark is in `benchmark.json` of
//! the same directory. `estimates.json` has no samples. Source: the user guide of criterion.rs
//! (file structure, sampling modes).

use super::content::{Content, text};
use super::{Benchmark, Fault, Format, Reader, Reading, Request};
use crate::quantity::Quantity;
use serde_json::Value;
use std::path::Path;

pub(super) const READER: Reader =
    Reader { format: Format::Criterion, file: "criterion's sample.json", recognises, read };

const COLUMNS: [&str; 1] = ["times"];

fn recognises(content: &Content<'_>) -> bool {
    content.has_value(|value| is_sample(value) || is_estimates(value))
}

fn is_sample(value: &Value) -> bool {
    ["iters", "times"].iter().all(|name| value.get(name).is_some_and(Value::is_array))
}

fn is_estimates(value: &Value) -> bool {
    ["mean", "median", "std_dev"]
        .iter()
        .all(|name| value.get(name).and_then(|estimate| estimate.get("point_estimate")).is_some())
}

fn read(content: &Content<'_>, request: Request<'_>) -> Result<Reading, Fault> {
    if let Some(column) = request.column.filter(|column| !COLUMNS.contains(column)) {
        return Err(Fault::no_column(column, &COLUMNS));
    }
    let [sample] = content.values() else {
        let next = "give one sample.json";
        return Err(Fault::new("several JSON values, and criterion writes one", next));
    };
    if is_estimates(sample) {
        let what = "criterion's estimates.json has estimates and no samples";
        return Err(Fault::new(what, "give sample.json of the same directory"));
    }
    let column = |name: &str| -> Result<Vec<f64>, Fault> {
        let all = sample.get(name).and_then(Value::as_array);
        let numbers: Option<Vec<f64>> = all.and_then(|all| all.iter().map(Value::as_f64).collect());
        let what = format!("`{name}` is no list of numbers");
        numbers.ok_or_else(|| Fault::new(what, "measure again"))
    };
    let (iterations, times) = (column("iters")?, column("times")?);
    if iterations.len() != times.len() {
        let (iterations, times) = (iterations.len(), times.len());
        let what = format!("{iterations} numbers of iterations and {times} times");
        return Err(Fault::new(what, "measure again"));
    }
    let values = times.iter().zip(&iterations).map(|(time, iterations)| time / iterations);
    Ok(Reading {
        benchmarks: vec![Benchmark {
            name: name(request.path),
            is_identity: true,
            is_secondary: false,
            quantity: Quantity::named("ns/iteration", true),
            what: "",
            values: values.collect(),
        }],
        notes: vec![
            "the samples are of one process: differences between starts are not in them".to_owned(),
        ],
        ..Reading::default()
    })
}

/// Name of the benchmark. `None` if there is no `benchmark.json` in the same directory.
fn name(sample: &Path) -> Option<String> {
    let bytes = std::fs::read(sample.with_file_name("benchmark.json")).ok()?;
    let benchmark: Value = serde_json::from_slice(&bytes).ok()?;
    text(&benchmark, "/full_id").map(str::to_owned)
}
