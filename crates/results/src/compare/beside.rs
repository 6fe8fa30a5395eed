//! A report's `runs.csv` lies beside its `results.json`, which knows more: the
//! baselines, the testbed, what was asked. It is believed only where it tells
//! the same figures.

use super::input::{Input, Origin};
use crate::report::analysis::{ComparedFigure, mode};
use fwdlab_model::plan::Stop;
use serde::Deserialize;

/// Name of the file.
const RESULTS: &str = "results.json";

/// The part of it that is wanted.
#[derive(Deserialize)]
struct Results {
    confidence: f64,
    margin: f64,
    figure: ComparedFigure,
    testbed: Testbed,
    variants: Vec<Variant>,
    stopping: Option<Stopping>,
}

#[derive(Deserialize)]
struct Stopping {
    rule: Stop,
    max_blocks: u32,
}

#[derive(Deserialize)]
struct Testbed {
    kind: String,
    caption: String,
}

#[derive(Deserialize)]
struct Variant {
    label: String,
    baseline: Option<usize>,
    values: Vec<f64>,
}

/// Puts the variants into the order of the plan and adds what the results know;
/// leaves `input` as it is where there are none, or those of other runs.
pub(super) fn complete(input: &mut Input) {
    let path = input.path.with_file_name(RESULTS);
    let Ok(bytes) = std::fs::read(&path) else { return };
    let Ok(results) = serde_json::from_slice::<Results>(&bytes) else {
        input.notes.push(format!("{} is no report of this version: not used", path.display()));
        return;
    };
    let mut variants = Vec::new();
    for theirs in &results.variants {
        let ours = input.variants.iter().find(|variant| variant.label == theirs.label);
        match ours {
            Some(ours) if same(&ours.values(), &theirs.values) => variants.push(ours.clone()),
            _ => break,
        }
    }
    if variants.len() != input.variants.len() || variants.len() != results.variants.len() {
        let what = "tells other figures than this file: not used";
        input.notes.push(format!("{} {what}", path.display()));
        return;
    }
    if results.figure == ComparedFigure::Slices {
        let what =
            "holds one figure per stream: compare the store for slices as neighbours in time";
        input.notes.push(format!("{} {what}", input.path.display()));
    }
    input.variants = variants;
    input.origin = Some(Origin {
        testbed: results.testbed.kind,
        caption: results.testbed.caption,
        figure: results.figure,
        baselines: results.variants.iter().map(|variant| variant.baseline).collect(),
        confidence: results.confidence,
        margin: results.margin,
        stop: results.stopping.map(|stopping| (mode(stopping.rule), stopping.max_blocks)),
    });
}

/// The table has one decimal, the results ten digits.
fn same(table: &[f64], results: &[f64]) -> bool {
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 0.06 + 1e-9 * b.abs();
    table.len() == results.len() && table.iter().zip(results).all(close)
}
