//! Diagnoses of the runs of a file; they never exclude runs.

use super::input::Input;
use crate::report::analysis::RunResult;
use crate::stats::diagnostics::{LEVEL, RunFigure, diagnose};
use std::collections::BTreeMap;

/// Maximum number of runs: diagnosing more would take longer than comparing.
const MOST: usize = 2000;

/// One sentence per finding.
pub(super) fn of(input: &Input) -> Vec<String> {
    // Each bed of a variant counts as a separate variant: different levels of beds are not a trend.
    let mut numbers = BTreeMap::new();
    let mut runs: Vec<(usize, u32, f64)> = Vec::new();
    for (variant, of) in input.variants.iter().enumerate() {
        let is_included = |known: &&RunResult| known.left_out.is_none() && known.value().is_some();
        let known: Vec<&RunResult> = of.known.iter().filter(is_included).collect();
        for (at, run) in of.runs.iter().enumerate() {
            let bed = known.get(at).and_then(|known| known.bed.as_deref());
            let next = numbers.len();
            let number = *numbers.entry((variant, bed)).or_insert(next);
            runs.push((number, run.block, run.pps));
        }
    }
    runs.retain(|(_, _, pps)| pps.is_finite() && *pps > 0.0);
    if runs.len() > MOST {
        return Vec::new();
    }
    if input.has_blocks {
        // The order within a block is unknown here; the report has it.
        runs.sort_by_key(|&(_, block, _)| block);
    }
    let figures: Vec<RunFigure> = (1..)
        .zip(&runs)
        .map(|(run, &(variant, block, pps))| RunFigure {
            run,
            variant,
            block: if input.has_blocks { block } else { 0 },
            log_rate: pps.ln(),
        })
        .collect();
    let name = &input.name;
    let sentence = |sentence: String| match &input.peer {
        None => sentence,
        Some(_) => sentence.replace("the rates drifted", "the values drifted"),
    };
    let found = diagnose(&figures, LEVEL);
    found.iter().map(|found| format!("{name}: {}", sentence(found.sentence()))).collect()
}
