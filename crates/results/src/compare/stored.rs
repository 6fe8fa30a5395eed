//! Reads a store as input of a comparison, without data that is not needed.

use super::error::CompareError;
use super::input::{Input, Kind, Origin, Stream, Variant};
use crate::label::{Label, MeasuredOn};
use crate::report::analysis::{Figures, RunResult, mode, slices_of_run};
use crate::report::sections::beds_of_runs;
use crate::stats::BlockedRun;
use crate::store::Store;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::Executed;
use fwdlab_model::{RunRecord, Warning};
use std::path::Path;

/// Reads the values of the store at `path`.
pub(super) fn read(path: &Path) -> Result<Input, CompareError> {
    of_store(path, &Store::open_read_only(path)?)
}

/// Reads the values of an open store, which messages refer to as `path`.
pub(super) fn of_store(path: &Path, store: &Store) -> Result<Input, CompareError> {
    let (contents, figures) = Figures::of_store(store)?;
    let plan = contents.plan.clone();
    let mut variants: Vec<Variant> = plan
        .variants
        .iter()
        .map(|variant| Variant {
            label: variant.label.clone(),
            runs: Vec::new(),
            known: Vec::new(),
            executed: Vec::new(),
        })
        .collect();
    for run in &figures.runs {
        if let Some(variant) = variants.get_mut(run.variant) {
            variant.executed.extend(executed_by(&contents.runs, run));
            let included = run.value().filter(|_| run.left_out.is_none());
            variant.runs.extend(included.map(|pps| BlockedRun { block: run.block, pps }));
            variant.known.push(run.clone());
        }
    }
    let streams = match figures.figure {
        RunMetric::Slices => contents
            .runs
            .iter()
            .map(|run| Stream { variants: run.variants.clone(), slices: slices_of_run(run) })
            .collect(),
        _ => Vec::new(),
    };
    let (recorded, planned) = (contents.runs.len(), plan.runs.len());
    let named = |note: String| format!("{}: {note}", path.display());
    let mut notes: Vec<String> = figures.notes.into_iter().map(named).collect();
    if recorded < planned && plan.design.stop.is_none() {
        notes.push(named(format!("incomplete, {recorded} of {planned} runs are recorded")));
    }
    if let Some(beds) = beds_of_runs(&contents, &figures.runs) {
        notes.extend(beds.sentences().into_iter().map(named));
    }
    let label = Label {
        testbed: MeasuredOn::of(figures.testbed.kind, &figures.testbed.caption),
        simulated: figures.testbed.simulated,
        figure: Some(figures.figure),
        version: String::new(),
    };
    let origin = Origin {
        baselines: (0..variants.len()).map(|variant| plan.baseline_of(variant)).collect(),
        confidence: plan.compare.confidence,
        margin: plan.compare.margin,
        stop: plan.design.stop.map(|stop| (mode(stop), plan.design.blocks)),
        is_distrusted: contents.runs.iter().any(|run| run.warnings.iter().any(Warning::is_fatal)),
    };
    let plan_is_sequential = plan.design.sequential;
    Ok(Input {
        path: path.to_path_buf(),
        name: path.display().to_string(),
        kind: Kind::Store,
        variants,
        has_blocks: !plan_is_sequential,
        origin: Some(origin),
        label: Some(label),
        plan: Some(plan),
        streams,
        beds: contents.bed_names().map(str::to_owned).collect(),
        notes,
        peer: None,
    })
}

/// Instructions executed in a run. `None` unless they are its metric.
fn executed_by(records: &[RunRecord], run: &RunResult) -> Option<Executed> {
    run.counted.as_ref()?;
    records.iter().find(|record| record.run == run.run)?.trial.executed.clone()
}
