//! Results per direction in trials of simultaneous bidirectional traffic; loads and results of a
//! method are the sums.

use super::{Method, MethodPoint, MethodRun, curve};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::one_direction::{DIRECTIONS, DirectionSummary, summarise};
use fwdlab_model::design::MethodKind;
use fwdlab_model::record::Counts;
use serde::Serialize;

/// Results of one direction in the trials of a variant that determine a result.
#[derive(Clone, Debug, Serialize)]
pub struct TrialDirection {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// The selected trials: at a goal's lower or upper bound, or at a load of a curve.
    pub at: String,
    /// Sending and receiving end.
    pub direction: String,
    /// Number of valid trials over all runs.
    pub trials: usize,
    /// Median offered rate over the trials, packets per second.
    pub offered_pps: Option<f64>,
    /// Median forwarded rate.
    pub forwarded_pps: Option<f64>,
    /// Ratio of lost to offered packets over these trials.
    pub loss_ratio: Option<f64>,
}

/// Returns both directions of a variant at each load of its result; empty for unidirectional
/// traffic.
pub(super) fn of_trials(
    method: &Method,
    (variant, label): (usize, &str),
    runs: &[MethodRun],
) -> Vec<TrialDirection> {
    let variant_runs: Vec<&MethodRun> = runs.iter().filter(|run| run.variant == variant).collect();
    if variant_runs.iter().flat_map(|run| &run.points).all(|point| point.reverse.is_none()) {
        return Vec::new();
    }
    let all = |of: &dyn Fn(&MethodRun) -> Vec<MethodPoint>| -> Vec<MethodPoint> {
        variant_runs.iter().flat_map(|run| of(run)).collect()
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
        DIRECTIONS.map(|(direction, is_back)| {
            let windows: Vec<(Counts, f64)> = points
                .iter()
                .filter(|point| point.loss_ratio.is_some())
                .filter_map(|point| window(point, is_back))
                .collect();
            let DirectionSummary { offered_pps, forwarded_pps, loss_ratio } = summarise(&windows);
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

/// Returns the counts of one direction of a trial, and the window length in seconds.
fn window(point: &MethodPoint, is_back: bool) -> Option<(Counts, f64)> {
    let (back, all) =
        (point.reverse?, Counts { offered: point.offered, forwarded: point.forwarded });
    let counts = if is_back { back } else { all.without(back) };
    Some((counts, point.offered as f64 / point.offered_pps))
}

/// Returns a table with one row per direction and load of a result; `None` for unidirectional
/// traffic.
pub(super) fn section(method: &Method) -> Option<Block> {
    let table = Table::of(&method.directions)
        .words("variant", |row| Cell::text(&row.label))
        .words("at", |row| Cell::text(&row.at))
        .words("direction", |row| Cell::text(&row.direction))
        .numbers("trials", |row| Cell::count(row.trials))
        .numbers("offered", |row| Cell::rate(row.offered_pps))
        .numbers("forwarded", |row| Cell::rate(row.forwarded_pps))
        .numbers("loss", |row| Cell::number(row.loss_ratio, Digits::Percent(4)))
        .set(|table| table.name = Some("trial-directions"));
    let blocks = vec![Block::text(TEXT), table.block()];
    (!method.directions.is_empty()).then(|| Block::section("Each direction", blocks))
}

const TEXT: &str = "Traffic was bidirectional (RFC 2544, section 14): loads, rates and losses elsewhere \
                    are sums of both directions. Here is each direction in the trials at the loads \
                    that were found: medians over the trials; loss of all trials as counted, without \
                    attribution of its cause.";
