//! Each direction by itself in the trials of traffic that goes both ways at once: loads and
//! results of a method are the sums.

use super::{Method, MethodPoint, MethodRun, curve};
use crate::report::analysis::directions::{WAYS, Way, way};
use fwdlab_model::design::MethodKind;
use fwdlab_model::record::Counts;
use serde::Serialize;

/// One direction in those trials of a variant that a result rests on.
#[derive(Clone, Debug, Serialize)]
pub struct TrialDirection {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Which trials: those at a goal's lower or upper bound, or at a load of a curve.
    pub at: String,
    /// From which end to which.
    pub direction: String,
    /// Trials of all runs that say something of the device.
    pub trials: usize,
    /// Median rate that was offered, over the trials, packets per second.
    pub offered_pps: Option<f64>,
    /// Median rate that was forwarded.
    pub forwarded_pps: Option<f64>,
    /// Packets of all these trials that were lost, over those offered.
    pub loss_ratio: Option<f64>,
}

/// Both directions of a variant at each load that its result names; none where packets went
/// one way.
pub(super) fn of_trials(
    method: &Method,
    (variant, label): (usize, &str),
    runs: &[MethodRun],
) -> Vec<TrialDirection> {
    let own: Vec<&MethodRun> = runs.iter().filter(|run| run.variant == variant).collect();
    if own.iter().flat_map(|run| &run.points).all(|point| point.reverse.is_none()) {
        return Vec::new();
    }
    let all = |of: &dyn Fn(&MethodRun) -> Vec<MethodPoint>| -> Vec<MethodPoint> {
        own.iter().flat_map(|run| of(run)).collect()
    };
    let named: Vec<(String, Vec<MethodPoint>)> = match method.kind {
        MethodKind::Mlrsearch => {
            let goals = method.goals.iter().enumerate().flat_map(|(number, goal)| {
                ["lower bound", "upper bound"].map(|side| (number, goal.name.as_str(), side))
            });
            let at = |(number, goal, side): (usize, &str, &str)| {
                let points = all(&|run: &MethodRun| {
                    let found = run.found.get(number).filter(|found| found.has_rate());
                    let bounds = found.map(|found| (found.lower, found.upper));
                    let load = bounds.and_then(|(lower, upper)| match side {
                        "lower bound" => lower,
                        _ => upper,
                    });
                    run.points.iter().filter(|point| Some(point.load) == load).cloned().collect()
                });
                (format!("{goal}, {side}"), points)
            };
            goals.map(at).collect()
        }
        MethodKind::LossCurve => vec![
            ("greatest load".into(), all(&|run| run.points.first().cloned().into_iter().collect())),
            (
                "lossless up to".into(),
                all(&|run| curve::lossless(&run.points, |p| p.loss_ratio).into_iter().collect()),
            ),
        ],
        MethodKind::Soak => vec![("all trials".into(), all(&|run| run.points.clone()))],
        _ => Vec::new(),
    };
    let rows = named.into_iter().flat_map(|(at, points)| {
        WAYS.map(|(direction, is_back)| {
            let windows: Vec<(Counts, f64)> = points
                .iter()
                .filter(|point| point.loss_ratio.is_some())
                .filter_map(|point| window(point, is_back))
                .collect();
            let Way { offered_pps, forwarded_pps, loss_ratio } = way(&windows);
            TrialDirection {
                variant,
                label: label.to_owned(),
                at: at.clone(),
                direction: direction.to_owned(),
                trials: windows.len(),
                offered_pps,
                forwarded_pps,
                loss_ratio,
            }
        })
    });
    rows.filter(|row| row.trials > 0).collect()
}

/// Counts of one direction of a trial, and the seconds of its window.
fn window(point: &MethodPoint, is_back: bool) -> Option<(Counts, f64)> {
    let (back, all) =
        (point.reverse?, Counts { offered: point.offered, forwarded: point.forwarded });
    let own = if is_back { back } else { all.without(back) };
    Some((own, point.offered as f64 / point.offered_pps))
}
