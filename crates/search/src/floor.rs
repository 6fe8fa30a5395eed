//! Whether a device loses as much at a lower load: what is lost then is not of too high a load.

use crate::drift::Drift;
use crate::trial::Measured;
use crate::trials::Trials;
use serde::Serialize;

/// Valid trials that a statement needs at each of its two loads.
const TRIALS_MIN: usize = 8;
/// How far apart these are at least, as a ratio.
const APART: f64 = 1.1;

/// Loss that stays while the load falls: of a device or a machine that stands still now and then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LossFloor {
    /// Median loss ratio of the trials at the lower load.
    pub loss_ratio: f64,
    /// The lower load, in frames a second of one interface.
    pub from: u64,
    /// The higher one, at which the median was at most twice as large.
    pub to: u64,
}

impl LossFloor {
    /// The loss that stays over the widest span of loads, if there is any. A device that is only
    /// slower than the higher load would have lost nothing at the lower one: the latter is less
    /// than what was forwarded at the former. Of a device that drifts nothing is said.
    pub(crate) fn of(trials: &Trials, drift: Option<&Drift>) -> Option<LossFloor> {
        let mut medians = trials
            .loads()
            .filter(|(_, at)| at.len() >= TRIALS_MIN)
            .map(|(load, at)| (load, median_loss(at)));
        let (from, loss_ratio) = medians.next()?;
        let stays = |(to, lost): &(u64, f64)| {
            *lost <= 2.0 * loss_ratio
                && *to as f64 >= APART * from as f64
                && *to as f64 * (1.0 - lost) > from as f64
        };
        let (to, _) = medians.rfind(stays)?;
        (loss_ratio > 0.0 && drift.is_none()).then_some(LossFloor { loss_ratio, from, to })
    }
}

/// The lower median of the trials' loss ratios: half of the trials or more lost at least as much.
fn median_loss(trials: &[Measured]) -> f64 {
    let mut ratios: Vec<f64> = trials.iter().map(|trial| trial.output.loss_ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[(ratios.len() - 1) / 2]
}
