//! Supplements a report's `runs.csv` with the `results.json` in the same directory: baselines,
//! testbed, plan. The file is ignored unless its values match.

use super::input::{Input, Origin};
use crate::label::{Label, MeasuredOn};
use crate::report::analysis::mode;
use fwdlab_model::plan::{RunMetric, Stop};
use fwdlab_model::settings::TestbedKind;
use serde::Deserialize;

/// Name of the file.
const RESULTS: &str = "results.json";

/// Fields of the file that are used.
#[derive(Deserialize)]
struct Results {
    confidence: f64,
    margin: f64,
    figure: RunMetric,
    testbed: Testbed,
    variants: Vec<Variant>,
    stopping: Option<Stopping>,
    #[serde(default)]
    warnings: Vec<WarningGroup>,
}

#[derive(Deserialize)]
struct WarningGroup {
    #[serde(default)]
    fatal: bool,
}

#[derive(Deserialize)]
struct Stopping {
    rule: Stop,
    max_blocks: u32,
}

#[derive(Deserialize)]
struct Testbed {
    kind: Option<TestbedKind>,
    simulated: bool,
    caption: String,
}

#[derive(Deserialize)]
struct Variant {
    label: String,
    #[serde(default)]
    file: String,
    baseline: Option<usize>,
    values: Vec<f64>,
}

/// Sorts the variants in the order of the plan and adds metadata from the results. Leaves `input`
/// unchanged if there are no results, or if they belong to other runs.
pub(super) fn complete(input: &mut Input) {
    let path = input.path.with_file_name(RESULTS);
    let Ok(bytes) = std::fs::read(&path) else { return };
    let Ok(results) = serde_json::from_slice::<Results>(&bytes) else {
        input.notes.push(format!("{} is no report of this version: not used", path.display()));
        return;
    };
    let mut variants = Vec::new();
    for reported in &results.variants {
        let known = input.variants.iter().find(|variant| variant.label == reported.label);
        match known {
            // A report summarises all runs of a variant that has no others.
            Some(known) if known.runs.is_empty() => variants.push(known.clone()),
            Some(known) if same(&known.values(), &reported.values) => variants.push(known.clone()),
            _ => break,
        }
    }
    if variants.len() != input.variants.len() || variants.len() != results.variants.len() {
        let problem = "tells other figures than this file: not used";
        input.notes.push(format!("{} {problem}", path.display()));
        return;
    }
    if results.figure == RunMetric::Slices {
        let problem =
            "holds one figure per stream: compare the store for slices as neighbours in time";
        input.notes.push(format!("{} {problem}", input.path.display()));
    }
    input.variants = variants;
    input.label = Some(Label {
        testbed: MeasuredOn::of(results.testbed.kind, &results.testbed.caption),
        simulated: results.testbed.simulated,
        figure: Some(results.figure),
        version: String::new(),
    });
    input.origin = Some(Origin {
        baselines: results.variants.iter().map(|variant| variant.baseline).collect(),
        confidence: results.confidence,
        margin: results.margin,
        stop: results.stopping.map(|stopping| (mode(stopping.rule), stopping.max_blocks)),
        is_distrusted: results.warnings.iter().any(|group| group.fatal),
    });
}

/// Origin of a list's values according to the report in the same directory, for fwdlab's lists
/// without a comment. `None` unless the values match.
pub(super) fn label_of_list(input: &Input) -> Option<Label> {
    let bytes = std::fs::read(input.path.with_file_name(RESULTS)).ok()?;
    let results = serde_json::from_slice::<Results>(&bytes).ok()?;
    let name = input.path.file_name()?.to_str()?;
    let reported = results.variants.iter().find(|variant| variant.file == name)?;
    let [known] = &input.variants[..] else { return None };
    let close = |a: &f64, b: &f64| (a - b).abs() <= 0.51 + 1e-7 * b.abs();
    let values = known.values();
    let same = values.len() == reported.values.len()
        && values.iter().zip(&reported.values).all(|(a, b)| close(a, b));
    same.then(|| Label {
        testbed: MeasuredOn::of(results.testbed.kind, &results.testbed.caption),
        simulated: results.testbed.simulated,
        figure: Some(results.figure),
        version: String::new(),
    })
}

/// Compares values in any order: the results of an import are sorted by file name. The table has
/// one decimal, the results ten digits.
fn same(table: &[f64], results: &[f64]) -> bool {
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 0.06 + 1e-9 * b.abs();
    let [table, results] = [table, results].map(|values| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    });
    table.len() == results.len() && table.iter().zip(&results).all(close)
}
