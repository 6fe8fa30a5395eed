//! How long packets were lost after an overload (RFC 2544, 26.5) or around a reset (RFC 6201).

use super::MethodRun;
use crate::report::analysis::variants::SummaryResult;
use fwdlab_model::record::MethodRecord;
use serde::Serialize;

/// What an overload or a reset did, once.
#[derive(Clone, Debug, Serialize)]
pub struct Interruption {
    /// Load before, where it was another one, packets per second.
    pub before: Option<u64>,
    /// Load of the window, packets per second.
    pub load: u64,
    /// Packets lost in the window, around a reset only those.
    pub lost: u64,
    /// Time of losses, seconds: after an overload until the last lost packet had been sent, to
    /// a sample; around a reset the packets lost over the load (RFC 6201, frame-loss method).
    pub seconds: Option<f64>,
    /// How the device was reset, and how long whoever did it took, seconds.
    pub reset: Option<(String, f64)>,
    /// True if the load that was lost lasted until the window closed: it may last longer.
    pub is_open: bool,
    /// Why it says nothing of the device.
    pub invalid: Option<String>,
}

/// The interruptions of a variant, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Interrupted {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Load before and in the window, packets per second, of the first run.
    pub loads: (Option<u64>, u64),
    /// Seconds, over the interruptions that say something of the device; RFC 2544 reports the
    /// mean.
    pub seconds: Option<SummaryResult>,
    /// Those that had not ended when the window closed.
    pub open: usize,
    /// How the device was reset; none where it was not, or can't be.
    pub how: Option<String>,
    /// Those that say nothing of the device.
    pub invalid: usize,
}

/// Every interruption of a run's trials, in their order.
pub(super) fn each(record: &MethodRecord) -> Vec<Interruption> {
    let of = |trial: &fwdlab_model::record::MethodTrial| {
        let lost = match &trial.reset {
            Some(reset) => reset.lost,
            None => trial.offered.saturating_sub(trial.forwarded),
        };
        let seconds = |ns: u64| ns as f64 / 1e9;
        let last = trial.last_loss_ns.map_or(0.0, seconds);
        // What was neither overloaded nor reset was not interrupted.
        let time = match &trial.reset {
            Some(reset) => Some(reset.lost as f64 / trial.load.max(1) as f64),
            None => trial.before.map(|_| last),
        };
        let is_open = trial.last_loss_ns.is_some_and(|ns| ns >= trial.window_ns);
        let invalid = trial.loss_bounds().err();
        let reset = trial.reset.as_ref();
        Interruption {
            before: trial.before,
            load: trial.load,
            lost,
            seconds: time.filter(|_| invalid.is_none()),
            reset: reset.map(|reset| (reset.how.clone(), seconds(reset.took_ns))),
            is_open,
            invalid,
        }
    };
    record.trials.iter().map(of).collect()
}

/// A variant over its runs; none without a trial.
pub(super) fn interrupted(
    (variant, label): (usize, &str),
    runs: &[MethodRun],
) -> Option<Interrupted> {
    let own = runs.iter().filter(|run| run.variant == variant);
    let own: Vec<&Interruption> = own.flat_map(|run| &run.interruptions).collect();
    let first = own.first()?;
    let times: Vec<f64> = own.iter().filter_map(|one| one.seconds).collect();
    Some(Interrupted {
        variant,
        label: label.to_owned(),
        loads: (first.before, first.load),
        seconds: SummaryResult::of(&times),
        open: own.iter().filter(|one| one.is_open).count(),
        how: own.iter().find_map(|one| Some(one.reset.as_ref()?.0.clone())),
        invalid: own.iter().filter(|one| one.invalid.is_some()).count(),
    })
}
