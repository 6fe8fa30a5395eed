//! Counted packets, and nothing before: a burst, or connections that are opened.

use super::{Clock, Traffic, TrialSpec, Window, sample_of};
use crate::Observer;
use crate::error::BenchError;
use fwdlab_model::record::Sample;
use fwdlab_packet::Phase;

/// Longest time that a burst may take: a sender that has not sent it by then never will.
const LIMIT_NS: u64 = 60_000_000_000;

/// Waits until so many packets are sent; the window lasts so long, to a sample. Where the
/// device tells how many states it holds, each sample is followed by that.
pub(super) fn measure(
    packets: u64,
    traffic: &mut dyn Traffic,
    clock: &dyn Clock,
    order: &mut TrialSpec<'_>,
    observer: &mut dyn Observer,
) -> Result<Window, BenchError> {
    let start = clock.now_ns();
    let (mut samples, mut states) = (Vec::new(), Vec::new());
    let mut last = (start, traffic.snapshot(), traffic.evidence());
    while last.1.sent_total() < packets && last.0 - start < LIMIT_NS {
        let now = clock.sleep_until(last.0 + order.trial.slice_ns);
        let next = (now, traffic.snapshot(), traffic.evidence());
        let valid = true;
        samples.push(Sample { variant: order.variant, valid, ..sample_of(&last, &next, start) });
        last = next;
        let held = order.account.states();
        states.extend(held.map(|held| (clock.now_ns() - start, held)));
        if observer.cancelled() {
            return Err(BenchError::Interrupted);
        }
    }
    traffic.set_phase(Phase::After);
    Ok(Window { ns: last.0 - start, samples, states, ..Window::default() })
}
