//! Warnings about runs, by kind.

use crate::store::{Contents, kind_of};
use fwdlab_model::{RunRecord, Warning};
use serde::Serialize;
use std::collections::BTreeMap;

/// A warning about one run.
#[derive(Clone, Debug, Serialize)]
pub struct RunWarning {
    /// Index of the run.
    pub run: u32,
    /// Kind, e.g. `generator-limited`.
    pub kind: String,
    /// One sentence with the evidence.
    pub sentence: String,
    /// The recorded warning.
    pub evidence: Warning,
}

/// All warnings of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct WarningGroup {
    /// Kind.
    pub kind: String,
    /// Number of warnings.
    pub count: usize,
    /// Number of runs with a warning.
    pub runs: usize,
    /// True if the number itself can't be trusted.
    pub fatal: bool,
    /// The warnings, by run.
    pub warnings: Vec<RunWarning>,
}

/// Returns all warnings by kind, fatal kinds first, then by name.
pub(super) fn warnings(contents: &Contents) -> Vec<WarningGroup> {
    let mut kinds: BTreeMap<(bool, String), Vec<RunWarning>> = BTreeMap::new();
    for run in &contents.runs {
        for warning in &run.warnings {
            let key = (!warning.is_fatal(), kind_of(warning));
            kinds.entry(key).or_default().push(run_warning(run, warning));
        }
    }
    kinds
        .into_iter()
        .map(|((harmless, kind), warnings)| {
            let mut runs: Vec<u32> = warnings.iter().map(|warning| warning.run).collect();
            runs.dedup();
            WarningGroup {
                kind,
                count: warnings.len(),
                runs: runs.len(),
                fatal: !harmless,
                warnings,
            }
        })
        .collect()
}

/// Returns the warnings of the runs in which `variant` was measured.
pub(super) fn warnings_of(contents: &Contents, variant: usize) -> Vec<RunWarning> {
    contents
        .runs
        .iter()
        .filter(|run| run.variants.contains(&variant))
        .flat_map(|run| run.warnings.iter().map(|warning| run_warning(run, warning)))
        .collect()
}

fn run_warning(run: &RunRecord, warning: &Warning) -> RunWarning {
    RunWarning {
        run: run.run,
        kind: kind_of(warning),
        sentence: warning.sentence(),
        evidence: warning.clone(),
    }
}
