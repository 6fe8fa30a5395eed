//! Loss that persists at lower loads: it is not caused by too high a load.

use crate::drift::Drift;
use crate::trial::{Invalid, Measured};
use crate::trials::Trials;
use serde::Serialize;

/// Minimum number of valid trials at each of the two loads.
const TRIALS_MIN: usize = 8;
/// Minimum ratio of the two loads.
const APART: f64 = 1.1;

/// Loss that persists while the load falls: from a device that drops some packets at any load, or
/// one that stalls now and then, by itself or with its machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LossFloor {
    /// Median loss ratio of all trials at the lower load; invalid ones count as lossless.
    pub loss_ratio: f64,
    /// The lower load, in frames per second of one interface.
    pub from: u64,
    /// The higher load, at which the median was at most twice as large.
    pub to: u64,
}

impl LossFloor {
    /// Returns the persistent loss over the widest span of loads, if there is any. A device that is
    /// only slower than the higher load would have lost nothing at the lower one, because the lower
    /// load is below the rate forwarded at the higher one. `None` for a device that drifts.
    ///
    /// The lower load is the lowest known one: a lossless load below it shows that too high a load
    /// causes the loss, even with few trials.
    ///
    /// A disturbed trial counts as valid if it lost much in spite of the disturbance, so the valid
    /// trials alone would show a loss even if most trials had none.
    pub(crate) fn of(
        trials: &Trials,
        invalid: &[Invalid],
        drift: Option<&Drift>,
    ) -> Option<LossFloor> {
        let spoiled = |load| invalid.iter().filter(|one| one.trial.load == load).count();
        let known = || trials.loads().filter(|(_, at)| at.len() >= TRIALS_MIN);
        let (from, at) = known().next()?;
        let loss_ratio = median_loss(at, spoiled(from));
        let is_lossless = |(load, at): (u64, &[Measured])| median_loss(at, spoiled(load)) == 0.0;
        if trials.loads().take_while(|(load, _)| *load <= from).any(is_lossless) {
            return None;
        }
        let stays = |(to, lost): &(u64, f64)| {
            *lost <= 2.0 * loss_ratio
                && *to as f64 >= APART * from as f64
                && *to as f64 * (1.0 - lost) > from as f64
        };
        let (to, _) = known().map(|(load, at)| (load, median_loss(at, 0))).rfind(stays)?;
        drift.is_none().then_some(LossFloor { loss_ratio, from, to })
    }
}

/// Returns the lower median of the loss ratios together with `lossless` lossless trials: at least
/// half of all lost at least this much.
fn median_loss(trials: &[Measured], lossless: usize) -> f64 {
    let ratios = trials.iter().map(|trial| trial.output.loss_ratio);
    let mut ratios: Vec<f64> = ratios.chain(std::iter::repeat_n(0.0, lossless)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[(ratios.len() - 1) / 2]
}
