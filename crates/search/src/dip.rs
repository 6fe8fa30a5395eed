//! Higher loss at a lower load than at a higher one: a search on such a device finds one of several
//! thresholds, by chance.

use crate::drift::Drift;
use crate::trial::Measured;
use crate::trials::Trials;
use serde::Serialize;

/// Minimum number of valid trials at each of the two loads. If both lost alike, chance would
/// separate six from six in one of 924 pairs.
const TRIALS_MIN: usize = 6;
/// Minimum ratio of the losses.
const APART: f64 = 2.0;
/// Minimum difference of the loss ratios.
const LEAST: f64 = 0.001;

/// Loss that falls while the load rises.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LossDip {
    /// The load with more loss, in frames per second of one interface.
    pub load: u64,
    /// Median loss ratio at that load.
    pub loss_ratio: f64,
    /// The higher load with less loss.
    pub higher: u64,
    /// Median loss ratio at the higher load.
    pub loss_at_higher: f64,
}

impl LossDip {
    /// Returns the largest fall of the loss between two loads, if each trial at the lower load lost
    /// more than any at the higher one. `None` for a device that drifts.
    pub(crate) fn of(trials: &Trials, drift: Option<&Drift>) -> Option<LossDip> {
        let known: Vec<(u64, Vec<f64>)> = trials
            .loads()
            .filter(|(_, at)| at.len() >= TRIALS_MIN)
            .map(|(load, at)| (load, sorted_losses(at)))
            .collect();
        let pairs = known.iter().enumerate().flat_map(|(place, lower)| {
            known[place + 1..].iter().map(move |higher| (lower, higher))
        });
        let dips = pairs.filter_map(|((load, lost), (higher, lost_there))| {
            let is_separate = lost.first()? > lost_there.last()?;
            let (loss_ratio, loss_at_higher) = (median(lost), median(lost_there));
            let is_large =
                loss_ratio >= APART * loss_at_higher && loss_ratio - loss_at_higher >= LEAST;
            let (load, higher) = (*load, *higher);
            (is_separate && is_large).then_some(LossDip {
                load,
                loss_ratio,
                higher,
                loss_at_higher,
            })
        });
        let fall = |dip: &LossDip| dip.loss_ratio - dip.loss_at_higher;
        dips.max_by(|a, b| fall(a).total_cmp(&fall(b))).filter(|_| drift.is_none())
    }
}

fn sorted_losses(trials: &[Measured]) -> Vec<f64> {
    let mut ratios: Vec<f64> = trials.iter().map(|trial| trial.output.loss_ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// Returns the lower median of sorted values.
fn median(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() - 1) / 2]
}
