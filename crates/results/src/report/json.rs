//! The analysis as JSON.

use super::document::{Pictures, document, summary};
use super::results::Analysis;
use crate::document::form::json as as_json;
use crate::label::unit;
use fwdlab_model::settings::TestbedKind;
use serde_json::{Value, json};

/// Returns the output of `fwdlab show --json` and `run --json`: the label of the results, the
/// variants, the comparisons with their verdicts, and the findings about the runs.
///
/// # Errors
/// Never for an analysis from this crate.
pub fn show_json(analysis: &Analysis) -> Result<Value, serde_json::Error> {
    as_json::value(&summary(analysis, &shown(analysis)?))
}

/// Returns the data of a [`summary`]. A variant without runs has no values, and null as median, min
/// and max. The rest is as in `results.json`.
///
/// # Errors
/// Never for an analysis from this crate.
pub fn shown(analysis: &Analysis) -> Result<Value, serde_json::Error> {
    let variants: Vec<Value> = analysis
        .core
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
    let label = analysis.core.label();
    let mut shown = json!({
        "title": analysis.core.title,
        "testbed": analysis.core.testbed.kind.map_or("none", TestbedKind::name),
        "simulated": label.simulated,
        "caption": analysis.core.testbed.caption,
        "figure": label.figure,
        "unit": unit(analysis.core.figure),
        "fwdlab_version": label.version,
        "variants": variants,
        "comparisons": analysis.core.comparisons,
        "diagnoses": analysis.diagnostics.diagnoses,
        "steadiness": analysis.diagnostics.steadiness,
        "scaling": analysis.scaling,
    });
    if let Some(arrivals) = &analysis.packets.arrivals {
        shown["checked"] = arrivals.checked.as_str().into();
    }
    Ok(shown)
}

/// Returns the complete analysis: `results.json`.
///
/// # Errors
/// Never for an analysis from this crate.
pub fn results_json(analysis: &Analysis) -> Result<Value, serde_json::Error> {
    as_json::value(&document(analysis, &Pictures::default()))
}
