//! Drift over the order of the runs.

use super::figures::RunResult;
use crate::stats::diagnostics::{RunFigure, RunOrder, Trend, run_order, trend_within_variants};
use crate::store::Contents;

/// Tests the effect of the run order; within variants only for a sequential design. `None` for
/// too few runs.
pub(super) fn order(contents: &Contents, runs: &[RunResult]) -> Option<RunOrder> {
    // Between beds the order has no meaning; each bed is tested for drift.
    if contents.beds().len() > 1 {
        return None;
    }
    let figures = log_figures(runs);
    let order = run_order(&figures)?;
    if !contents.plan.design.sequential {
        return Some(order);
    }
    let Trend { slope, p } = trend_within_variants(&figures)?;
    Some(RunOrder { slope, p, ..order })
}

/// Returns the logs of the positive values of the included runs, in the order of the runs.
pub(in crate::report) fn log_figures<'a>(
    runs: impl IntoIterator<Item = &'a RunResult>,
) -> Vec<RunFigure> {
    let positive = |run: &RunResult| run.value_pps.filter(|pps| pps.is_finite() && *pps > 0.0);
    runs.into_iter()
        .filter(|run| run.left_out.is_none())
        .filter_map(|run| {
            let log_rate = positive(run)?.ln();
            Some(RunFigure { run: run.run, variant: run.variant, block: run.block, log_rate })
        })
        .collect()
}
