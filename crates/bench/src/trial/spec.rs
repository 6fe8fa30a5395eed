//! Specification of a trial.

use super::{DutCounters, OpeningConditions};
use crate::error::BenchError;
use fwdlab_model::plan::Trial;

/// Switches the DUT to a variant while traffic flows.
pub type Switch<'a> = &'a mut dyn FnMut(usize) -> Result<(), BenchError>;

/// Schedule of an alternation: levels switched in one stream of traffic.
pub struct Alternation<'a> {
    /// Length of a slice, nanoseconds.
    pub slice_ns: u64,
    /// Settling time after each switch, which is not counted, nanoseconds.
    pub settle_ns: u64,
    /// Number of slices in one cycle.
    pub length: u32,
    /// The variants of a cycle, by its number from 0 (A B B A, or B A A B).
    pub cycle: &'a dyn Fn(u32) -> Vec<usize>,
    /// Switches the DUT.
    pub switch: Switch<'a>,
}

/// Specification of a trial.
pub struct TrialSpec<'a> {
    /// Phases.
    pub trial: &'a Trial,
    /// Intended load in packets per second; `None` for the maximum.
    pub rate_pps: Option<f64>,
    /// Variant of the whole trial (the first one of an alternation).
    pub variant: usize,
    /// Alternation of levels, if any.
    pub alternation: Option<Alternation<'a>>,
    /// Called when the window opens and closes, for readings at exactly these moments.
    pub at_window: &'a mut dyn FnMut(Moment),
    /// Conditions that the warm-up waits for beyond its planned time.
    pub awaited: OpeningConditions,
    /// Queries to the DUT, before and after the window.
    pub account: &'a mut dyn DutCounters,
}

/// A moment of the window, with the time by the trial's clock in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Warm-up traffic flows, the window opens next; slow readings are taken here.
    Opening,
    /// The window has just opened.
    Open(u64),
    /// The window has just closed; senders are still sending.
    Closed(u64),
}

/// Load profile of a trial.
pub enum LoadProfile<'a> {
    /// Warm-up and window at one load.
    Steady,
    /// No warm-up: this number of packets, as fast as possible. The senders must be armed with the
    /// same number.
    Burst(u64),
    /// The window has another rate than the warm-up, packets per second.
    Then(f64),
    /// An action on the device, run once, this number of nanoseconds into the window.
    Meanwhile(u64, Option<Action<'a>>),
}

/// Action on a device under traffic; receives the nanoseconds since the window opened.
pub type Action<'a> = &'a mut dyn FnMut(u64) -> Result<(), BenchError>;

impl LoadProfile<'_> {
    /// Rate of the window; `None` if it is the rate of the trial.
    pub(crate) fn window_pps(&self) -> Option<f64> {
        match self {
            LoadProfile::Then(rate_pps) => Some(*rate_pps),
            _ => None,
        }
    }

    /// Runs the action that is due `since_ns` nanoseconds into the window.
    pub(super) fn at(&mut self, since_ns: u64) -> Result<(), BenchError> {
        match self {
            LoadProfile::Meanwhile(due_ns, action) if since_ns >= *due_ns => {
                action.take().map_or(Ok(()), |act| act(since_ns))
            }
            _ => Ok(()),
        }
    }
}
