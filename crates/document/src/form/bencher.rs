//! Form for Bencher: Bencher Metric Format
//! (<https://bencher.dev/docs/reference/bencher-metric-format>), read by `bencher run --adapter
//! json`.
//!
//! A benchmark is a variant or a comparison. Measures without bounds omit `lower_value` and
//! `upper_value`, which the format allows.

use super::json::rounded;
use crate::Document;
use serde_json::{Map, Value, json};

/// Renders an object for each benchmark, with an object for each measure.
///
/// # Errors
/// Never for a document of this crate.
pub fn render(document: &Document<'_>) -> Result<String, serde_json::Error> {
    let mut benchmarks = Map::new();
    for reading in document.readings() {
        let mut metric = json!({ "value": reading.value });
        if let Some((low, high)) = reading.bounds {
            metric["lower_value"] = low.into();
            metric["upper_value"] = high.into();
        }
        let measures = benchmarks.entry(reading.benchmark).or_insert_with(|| json!({}));
        measures[reading.measure.name] = rounded(metric);
    }
    Ok(format!("{:#}\n", Value::Object(benchmarks)))
}
