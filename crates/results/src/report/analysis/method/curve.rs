//! Loads at which a loss curve is free of loss.

use super::{MethodPoint, MethodRun};
use crate::stats::summary::median;
use serde::Serialize;

/// Loss against load of a variant, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct LossCurveOutcome {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Highest offered load at or below which no trial of a run has a loss that the device
    /// certainly caused, packets per second: median of the runs that have one; `lossless_runs`
    /// contains their number.
    pub lossless: Option<f64>,
    /// Number of runs with such a load, and number of all runs.
    pub lossless_runs: (usize, usize),
    /// The same load for no loss of any cause, packets per second.
    pub nothing_lost: Option<f64>,
    /// The highest offered load, packets per second: median of the runs.
    pub greatest: f64,
    /// Minimum share that the device lost at it, median of the runs.
    pub loss: Option<f64>,
}

/// Summarises a variant over its runs; `None` without trials.
pub(super) fn curved(
    (variant, label): (usize, &str),
    runs: &[MethodRun],
) -> Option<LossCurveOutcome> {
    let variant_runs: Vec<&MethodRun> =
        runs.iter().filter(|run| run.variant == variant && !run.points.is_empty()).collect();
    let up_to = |loss: fn(&MethodPoint) -> Option<f64>| -> Vec<f64> {
        let each = variant_runs.iter().filter_map(|run| lossless(&run.points, loss));
        each.map(|point| point.offered_pps).collect()
    };
    let lossless = up_to(|point| point.loss_ratio);
    let greatest: Vec<&MethodPoint> =
        variant_runs.iter().filter_map(|run| run.points.first()).collect();
    let loads: Vec<f64> = greatest.iter().map(|point| point.offered_pps).collect();
    let losses: Vec<f64> = greatest.iter().filter_map(|point| point.loss_ratio).collect();
    Some(LossCurveOutcome {
        variant,
        label: label.to_owned(),
        lossless: median(&lossless),
        lossless_runs: (lossless.len(), variant_runs.len()),
        nothing_lost: median(&up_to(|point| point.loss_at_most)),
        greatest: median(&loads)?,
        loss: median(&losses),
    })
}

/// Returns the trial with the highest load among the lossless trials at the end of a curve; `loss`
/// selects the measure of loss.
pub(super) fn lossless(
    points: &[MethodPoint],
    loss: fn(&MethodPoint) -> Option<f64>,
) -> Option<MethodPoint> {
    let trials = points.iter().rev().take_while(|point| loss(point) == Some(0.0));
    trials.max_by(|a, b| a.offered_pps.total_cmp(&b.offered_pps)).cloned()
}
