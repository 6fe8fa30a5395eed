//! Diagnoses of the runs of a file; runs are never excluded because of them.

use super::input::Input;
use crate::stats::diagnostics::{LEVEL, RunFigure, diagnose};

/// Files of more runs are not searched: it would take longer than comparing.
const MOST: usize = 2000;

/// One sentence per finding.
pub(super) fn of(input: &Input) -> Vec<String> {
    let mut runs: Vec<(usize, u32, f64)> = input
        .variants
        .iter()
        .enumerate()
        .flat_map(|(variant, of)| of.runs.iter().map(move |run| (variant, run.block, run.pps)))
        .filter(|(_, _, pps)| pps.is_finite() && *pps > 0.0)
        .collect();
    if runs.len() > MOST {
        return Vec::new();
    }
    if input.has_blocks {
        // Within a block the order isn't known here; the report knows it.
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
    let path = input.path.display();
    diagnose(&figures, LEVEL).iter().map(|found| format!("{path}: {}", found.sentence())).collect()
}
