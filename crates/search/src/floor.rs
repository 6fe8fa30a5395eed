//! Whether as much is lost at a lower load: what is lost then is not of too high a load.

use crate::drift::Drift;
use crate::trial::{Invalid, Measured};
use crate::trials::Trials;
use serde::Serialize;

/// Valid trials that a statement needs at each of its two loads.
const TRIALS_MIN: usize = 8;
/// How far apart these are at least, as a ratio.
const APART: f64 = 1.1;

/// Loss that stays while the load falls: of a device that drops some packets of any load, or of
/// one that stands still now and then, by itself or with the machine under it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LossFloor {
    /// Median loss ratio of all trials at the lower load, invalid ones being counted as lossless.
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
    ///
    /// The lower load is the lowest one known: a lossless one below it shows that the loss is of
    /// too high a load after all, even if it has few trials.
    ///
    /// A spoiled trial is valid where much was lost in spite of it, so that the valid ones alone
    /// would show a loss where most trials had none.
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

/// The lower median of loss ratios, those of so many `lossless` trials beside them: half of all or
/// more lost at least as much.
fn median_loss(trials: &[Measured], lossless: usize) -> f64 {
    let ratios = trials.iter().map(|trial| trial.output.loss_ratio);
    let mut ratios: Vec<f64> = ratios.chain(std::iter::repeat_n(0.0, lossless)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[(ratios.len() - 1) / 2]
}
