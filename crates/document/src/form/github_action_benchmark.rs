//! Form for the charts of github-action-benchmark
//! (<https://github.com/benchmark-action/github-action-benchmark>): the array that its tools
//! `customBiggerIsBetter` and `customSmallerIsBetter` read.
//!
//! One file has one direction. It contains the metrics for which bigger is better. A document
//! without such metrics, for example with instruction counts, contains the metrics for which
//! smaller is better.

use super::json::rounded;
use crate::Document;
use crate::readings::Reading;
use serde_json::{Value, json};

/// Renders an array of `name`, `unit`, `value`, `range` and `extra`.
///
/// # Errors
/// Never for a document of this crate.
pub fn render(document: &Document<'_>) -> Result<String, serde_json::Error> {
    let readings = document.readings();
    let is_smaller = readings.iter().all(|reading| reading.measure.is_smaller_better);
    let shown = readings.iter().filter(|reading| reading.measure.is_smaller_better == is_smaller);
    let entries: Vec<Value> = shown.map(|reading| entry(reading, &document.title)).collect();
    Ok(format!("{:#}\n", Value::from(entries)))
}

/// Builds an entry; the range is omitted if there are no bounds.
fn entry(reading: &Reading, title: &str) -> Value {
    let mut entry = json!({
        "name": format!("{}: {}", reading.benchmark, reading.measure.name),
        "unit": reading.measure.unit,
        "value": rounded(reading.value.into()),
    });
    let extra = [title, &reading.words].into_iter().filter(|text| !text.is_empty());
    entry["extra"] = extra.collect::<Vec<&str>>().join("\n").into();
    if let Some((low, high)) = reading.bounds {
        // Formatted by Rust: JSON writes integers with a decimal point.
        let digits = |bound: f64| rounded(bound.into()).as_f64().unwrap_or(bound).to_string();
        entry["range"] = format!("{} to {}", digits(low), digits(high)).into();
    }
    entry
}
