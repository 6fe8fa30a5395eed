//! Bursts of counted packets without a warm-up: a burst, or connections to open.

use super::{Clock, Traffic, TrialSpec, Window, sample_of};
use crate::Observer;
use crate::error::BenchError;
use fwdlab_model::record::Sample;
use fwdlab_packet::Phase;

/// Maximum duration of a burst: a sender that has not finished by then never will.
const LIMIT_NS: u64 = 60_000_000_000;

/// Waits until `packets` packets are sent; the window lasts until then, to a sample. If the device
/// reports its number of states, each sample is followed by that number.
pub(super) fn measure(
    packets: u64,
    traffic: &mut dyn Traffic,
    clock: &dyn Clock,
    spec: &mut TrialSpec<'_>,
    observer: &mut dyn Observer,
) -> Result<Window, BenchError> {
    let start = clock.now_ns();
    let (mut samples, mut states) = (Vec::new(), Vec::new());
    let mut last = (start, traffic.snapshot(), traffic.evidence());
    while last.1.sent_total() < packets && last.0 - start < LIMIT_NS {
        let now = clock.sleep_until(last.0 + spec.trial.slice_ns);
        let next = (now, traffic.snapshot(), traffic.evidence());
        let valid = true;
        samples.push(Sample { variant: spec.variant, valid, ..sample_of(&last, &next, start) });
        last = next;
        let count = spec.account.states();
        states.extend(count.map(|count| (clock.now_ns() - start, count)));
        if observer.cancelled() {
            return Err(BenchError::Interrupted);
        }
    }
    traffic.set_phase(Phase::After);
    Ok(Window { ns: last.0 - start, samples, states, ..Window::default() })
}
