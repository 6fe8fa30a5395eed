//! What comes after: an overload (RFC 2544, section 26.5), a reset (section 26.6; RFC 6201).

use super::{Kind, PACED, Trials, Wish, rates};
use crate::error::BenchError;
use crate::trial::Observed;
use fwdlab_search::Trial as Asked;

/// The overload, over the throughput.
const OVERLOAD: f64 = 1.1;
/// The load after it, over the overload.
const THEN: f64 = 0.5;
/// Interval of the samples, nanoseconds: to it the time of the last loss is known.
const LOOK_NS: u64 = 5_000_000;
/// Length of a trial with a reset, over that of another one: as long before it, the rest after.
const LONGER: u64 = 5;

impl Trials<'_, '_> {
    /// The throughput, where a search of this run has found one, else what the device forwarded
    /// at the maximum offered load.
    fn throughput(&self, own: &Observed) -> f64 {
        self.throughput.unwrap_or_else(|| rates(own).1)
    }

    pub(super) fn recovery(
        &mut self,
        repeats: u32,
        overload_ns: u64,
        own: &Observed,
    ) -> Result<(), BenchError> {
        let (offered, _) = rates(own);
        let overload = (OVERLOAD * self.throughput(own)).min(PACED * offered).round();
        let then = (THEN * overload).round();
        (self.record.min_load, self.record.max_load) = (then as u64, overload as u64);
        if then < 1.0 {
            return Ok(());
        }
        for _ in 0..repeats {
            if self.is_full() {
                break;
            }
            let duration_ns = self.task.plan.trial.duration_ns;
            let asked = Asked { load: overload as u64, duration_ns };
            let kind = Kind::Then(then);
            let wish = Wish { asked, kind, warmup_ns: overload_ns, slice_ns: LOOK_NS };
            let (mut trial, observed) = self.observe(wish)?;
            trial.last_loss_ns = last_loss_ns(&observed);
            self.record.trials.push(trial);
        }
        Ok(())
    }

    pub(super) fn resets(&mut self, repeats: u32, own: &Observed) -> Result<(), BenchError> {
        let (offered, _) = rates(own);
        let load = self.throughput(own).min(PACED * offered).round() as u64;
        (self.record.min_load, self.record.max_load) = (load, load);
        for _ in 0..repeats {
            if load == 0 || self.is_full() || !self.reset(load)? {
                break;
            }
        }
        Ok(())
    }

    /// One reset, at a load; false if the device can't be reset while it meets traffic.
    fn reset(&mut self, load: u64) -> Result<bool, BenchError> {
        let trial = self.task.plan.trial;
        let asked = Asked { load, duration_ns: trial.duration_ns.saturating_mul(LONGER) };
        let kind = Kind::Reset(trial.duration_ns);
        let wish = Wish { asked, kind, warmup_ns: trial.warmup_ns, slice_ns: LOOK_NS };
        let (mut trial, observed) = self.observe(wish)?;
        trial.last_loss_ns = last_loss_ns(&observed);
        let was_reset = trial.reset.is_some();
        self.record.trials.push(trial);
        Ok(was_reset)
    }
}

/// When the last packet that was lost had been sent, nanoseconds after the window opened, to a
/// sample; none if none of the window's was.
///
/// Packets under way are not told from lost ones before they arrive, so a loss within a packet's
/// transit of the end of a sample may be booked on it.
fn last_loss_ns(observed: &Observed) -> Option<u64> {
    if observed.window.lost() <= 0 {
        return None;
    }
    // Sent and not arrived at the end of each sample: what was lost, and what is under way.
    let mut missing = observed.at_opening.lost();
    let gaps = observed.samples.iter().map(|sample| {
        missing += sample.offered as i64 - sample.forwarded as i64;
        (sample.at_ns + sample.duration_ns, missing)
    });
    let gaps: Vec<(u64, i64)> = gaps.collect();
    let lost = observed.total.lost();
    let before = gaps.iter().rposition(|&(_, missing)| missing < lost);
    let first = gaps.get(before.map_or(0, |at| at + 1));
    Some(first.map_or(observed.window_ns, |&(at_ns, _)| at_ns))
}
