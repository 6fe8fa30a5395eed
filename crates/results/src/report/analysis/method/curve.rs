//! Up to which load a curve lost nothing.

use super::{MethodPoint, MethodRun};
use crate::stats::summary::median;
use serde::Serialize;

/// Loss against load in a variant, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct LossCurveOutcome {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Offered load up to which no trial of a run shows a loss that is the device's for sure,
    /// packets per second: median of the runs that have one, which are counted in
    /// `lossless_runs`.
    pub lossless: Option<f64>,
    /// Runs in which the device lost nothing at some load and below, of all.
    pub lossless_runs: (usize, usize),
    /// The same for runs in which nothing at all was lost, packets per second.
    pub nothing_lost: Option<f64>,
    /// The greatest offered load, packets per second: median of the runs.
    pub greatest: f64,
    /// Share lost at it by the device at least, median of the runs.
    pub loss: Option<f64>,
}

/// A variant over its runs; none without trials.
pub(super) fn curved(
    (variant, label): (usize, &str),
    runs: &[MethodRun],
) -> Option<LossCurveOutcome> {
    let own: Vec<&MethodRun> =
        runs.iter().filter(|run| run.variant == variant && !run.points.is_empty()).collect();
    let up_to = |loss: fn(&MethodPoint) -> Option<f64>| -> Vec<f64> {
        let each = own.iter().filter_map(|run| lossless(&run.points, loss));
        each.map(|point| point.offered_pps).collect()
    };
    let lossless = up_to(|point| point.loss_ratio);
    let greatest: Vec<&MethodPoint> = own.iter().filter_map(|run| run.points.first()).collect();
    let loads: Vec<f64> = greatest.iter().map(|point| point.offered_pps).collect();
    let losses: Vec<f64> = greatest.iter().filter_map(|point| point.loss_ratio).collect();
    Some(LossCurveOutcome {
        variant,
        label: label.to_owned(),
        lossless: median(&lossless),
        lossless_runs: (lossless.len(), own.len()),
        nothing_lost: median(&up_to(|point| point.loss_at_most)),
        greatest: median(&loads)?,
        loss: median(&losses),
    })
}

/// The trial of the greatest load among those at the end of a curve that all lost nothing, by
/// `loss`.
pub(super) fn lossless(
    points: &[MethodPoint],
    loss: fn(&MethodPoint) -> Option<f64>,
) -> Option<MethodPoint> {
    let nothing = points.iter().rev().take_while(|point| loss(point) == Some(0.0));
    nothing.max_by(|a, b| a.offered_pps.total_cmp(&b.offered_pps)).cloned()
}
