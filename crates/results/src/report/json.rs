//! The analysis for programs.

use super::analysis::Analysis;
use crate::label::Label;
use fwdlab_model::settings::TestbedKind;
use serde_json::{Value, json};

/// Version of the shape of `results.json`; raised when something that was there
/// is named otherwise or means something else.
const RESULTS_VERSION: u32 = 1;

/// The same of what [`show_json`] gives.
const SHOW_VERSION: u32 = 1;

/// What the figures are of; each variant's figures, in packets per second, and what was found about the
/// runs: what `fwdlab show --json` prints. A variant without runs has no values
/// and null for median, min, max. The rest is as in `results.json`.
pub fn show_json(analysis: &Analysis) -> Value {
    let variants: Vec<Value> = analysis
        .variants
        .iter()
        .map(|variant| {
            let summary = variant.summary;
            json!({
                "label": variant.label,
                "settings": variant.settings,
                "values": variant.values,
                "median": summary.map(|s| s.median),
                "min": summary.map(|s| s.min),
                "max": summary.map(|s| s.max),
                "warnings": variant.warnings,
            })
        })
        .collect();
    let label = Label::of(analysis);
    rounded(json!({
        "version": SHOW_VERSION,
        "title": analysis.title,
        "testbed": analysis.testbed.kind.map_or("none", TestbedKind::name),
        "simulated": label.simulated,
        "caption": analysis.testbed.caption,
        "figure": label.figure,
        "unit": "packets per second",
        "fwdlab_version": label.version,
        "variants": variants,
        "diagnoses": analysis.diagnoses,
        "steadiness": analysis.steadiness,
        "scaling": analysis.scaling,
    }))
}

/// The whole analysis: `results.json`.
///
/// # Errors
/// Never for an analysis that was made by this crate.
pub fn results_json(analysis: &Analysis) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(analysis)?;
    if let Some(results) = value.as_object_mut() {
        results.insert("version".to_owned(), RESULTS_VERSION.into());
    }
    Ok(rounded(value))
}

/// Computed numbers to ten digits: more than any of them is worth, and the same
/// on machines whose logarithm differs in the last bit.
pub(crate) fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().and_then(|n| format!("{n:.9e}").parse::<f64>().ok());
            rounded.map_or(Value::Null, Value::from)
        }
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, rounded(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_counts_are_not() {
        let value = rounded(json!({"a": [0.1 + 0.2, 1.0], "b": u64::MAX}));
        assert_eq!(value.to_string(), r#"{"a":[0.3,1.0],"b":18446744073709551615}"#);
    }
}
