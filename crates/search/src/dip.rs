//! More loss at a lower load than at a higher one: there a search finds one of several borders,
//! by chance.

use crate::drift::Drift;
use crate::trial::Measured;
use crate::trials::Trials;
use serde::Serialize;

/// Valid trials that each of the two loads needs. If both lost alike, chance would separate six
/// from six in one of 924 pairs.
const TRIALS_MIN: usize = 6;
/// Ratio of the losses.
const APART: f64 = 2.0;
/// Least difference of the loss ratios.
const LEAST: f64 = 0.001;

/// Loss that falls while the load rises.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LossDip {
    /// The load that lost more, in frames a second of one interface.
    pub load: u64,
    /// Median loss ratio there.
    pub loss_ratio: f64,
    /// The higher load that lost less.
    pub higher: u64,
    /// Median loss ratio at the higher load.
    pub loss_at_higher: f64,
}

impl LossDip {
    /// The largest fall of the loss between two loads, each trial of the lower one having lost more
    /// than any of the higher one. `None` for a device that drifts.
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

/// The lower median of sorted values.
fn median(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() - 1) / 2]
}
