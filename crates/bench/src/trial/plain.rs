//! Trials without waiting for flows and without queries to a DUT.

use super::{NoCounters, Observed, OpeningConditions, SystemClock, Traffic, TrialSpec, run};
use crate::Observer;
use crate::error::BenchError;
use fwdlab_model::plan::Trial;

/// Runs one trial at a rate, or at the maximum rate, by the machine's clock, without waiting for
/// flows and without queries to a DUT: for ceilings, latency without a device, and cable checks.
///
/// # Errors
/// As [`run`].
pub fn plain(
    traffic: &mut dyn Traffic,
    trial: &Trial,
    rate_pps: Option<f64>,
    observer: &mut dyn Observer,
) -> Result<Observed, BenchError> {
    let spec = TrialSpec {
        trial,
        rate_pps,
        variant: 0,
        alternation: None,
        at_window: &mut |_| {},
        awaited: OpeningConditions::default(),
        account: &mut NoCounters,
    };
    run(traffic, &SystemClock, spec, observer)
}
