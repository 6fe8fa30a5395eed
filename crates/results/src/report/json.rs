//! The analysis for programs.

use super::analysis::Analysis;
use super::document::document;
use crate::document::form::json::{self as as_json, rounded};
use crate::label::unit;
use fwdlab_model::settings::TestbedKind;
use serde_json::{Value, json};

/// Version of the shape of what [`show_json`] gives; raised when something that was there is
/// named otherwise or means something else.
const SHOW_VERSION: u32 = 1;

/// What the figures are of; each variant's figures, and what was found about the
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
    let label = analysis.label();
    let mut shown = json!({
        "version": SHOW_VERSION,
        "title": analysis.title,
        "testbed": analysis.testbed.kind.map_or("none", TestbedKind::name),
        "simulated": label.simulated,
        "caption": analysis.testbed.caption,
        "figure": label.figure,
        "unit": unit(analysis.figure),
        "fwdlab_version": label.version,
        "variants": variants,
        "diagnoses": analysis.diagnoses,
        "steadiness": analysis.steadiness,
        "scaling": analysis.scaling,
    });
    if let Some(arrivals) = &analysis.arrivals {
        shown["checked"] = arrivals.checked.as_str().into();
    }
    rounded(shown)
}

/// The whole analysis: `results.json`.
///
/// # Errors
/// Never for an analysis that was made by this crate.
pub fn results_json(analysis: &Analysis) -> Result<Value, serde_json::Error> {
    as_json::value(&document(analysis, "", ""))
}
