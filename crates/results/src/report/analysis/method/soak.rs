//! How a variant held one load.

use super::{MethodPoint, MethodRun};
use crate::stats::binomial::{Rate, interval_over_groups};
use serde::Serialize;

/// How a variant held one load, over all trials of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct SoakOutcome {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// The load, packets per second.
    pub load: u64,
    /// Valid trials.
    pub trials: usize,
    /// Those in which the device lost something for sure.
    pub lossy: usize,
    /// Packets that the device lost, at least.
    pub lost: u64,
    /// Packets lost besides, while others had the device's CPU: whose loss they are is not
    /// known.
    pub in_doubt: u64,
    /// Packets offered.
    pub offered: u64,
    /// Ends of the 95 % interval over the trials of the share that was lost; `None` of a single
    /// trial, and if all trials lost the same share.
    pub interval: Option<(f64, f64)>,
    /// The largest share that one trial lost.
    pub worst: f64,
    /// Trials that say nothing of the device.
    pub invalid: usize,
}

/// A variant over all trials of its runs; none without trials.
pub(super) fn soaked((variant, label): (usize, &str), runs: &[MethodRun]) -> Option<SoakOutcome> {
    let own = || runs.iter().filter(|run| run.variant == variant).flat_map(|run| &run.points);
    let valid: Vec<(&MethodPoint, f64)> = own().filter_map(|p| Some((p, p.loss_ratio?))).collect();
    let offered = valid.iter().map(|(point, _)| point.offered).sum();
    let all: u64 = valid.iter().map(|(point, _)| point.offered - point.forwarded).sum();
    let surely = |(point, loss): &(&MethodPoint, f64)| match point.loss_at_most {
        Some(most) if most > *loss => (loss * point.offered as f64).floor() as u64,
        _ => point.offered - point.forwarded,
    };
    let lost: u64 = valid.iter().map(surely).sum();
    let trials: Vec<Rate> =
        valid.iter().map(|found| Rate { hits: surely(found), of: found.0.offered }).collect();
    let interval = interval_over_groups(&trials, 95.0).map(|found| (found.low, found.high));
    Some(SoakOutcome {
        variant,
        label: label.to_owned(),
        load: own().next()?.load,
        trials: valid.len(),
        lossy: valid.iter().filter(|(_, loss)| *loss > 0.0).count(),
        lost,
        in_doubt: all - lost,
        offered,
        interval,
        worst: valid.iter().map(|(_, loss)| *loss).fold(0.0, f64::max),
        invalid: own().count() - valid.len(),
    })
}
