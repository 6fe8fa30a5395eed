//! Recovery after an overload (RFC 2544, section 26.5) or a reset (section 26.6; RFC 6201).

use super::{Kind, PACED, Trials, Wish, taken_in};
use crate::error::BenchError;
use crate::trial::Observed;
use fwdlab_model::record::{OwnTrial, Reset, Sample};
use fwdlab_search::Trial as SearchTrial;

/// Overload, as a multiple of the throughput.
const OVERLOAD: f64 = 1.1;
/// Load after the overload, as a share of it.
const THEN: f64 = 0.5;
/// Interval of the samples, nanoseconds: the resolution of the time of the last loss.
const LOOK_NS: u64 = 5_000_000;
/// Share of the offered packets at which a device counts as forwarding again.
const BACK: f64 = 0.9;
/// Length of a trial with a reset, as a multiple of other trials: one part before the reset, the
/// rest after it.
const LONGER: u64 = 5;

impl Trials<'_, '_> {
    /// Throughput that a search of this run has found, otherwise the forwarding rate at the maximum
    /// offered load.
    fn throughput(&self, own: &OwnTrial) -> f64 {
        self.throughput.unwrap_or_else(|| own.forwarded_pps())
    }

    pub(super) fn recovery(
        &mut self,
        repeats: u32,
        overload_ns: u64,
        own: &OwnTrial,
    ) -> Result<(), BenchError> {
        let offered = own.offered_pps();
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
            let request = SearchTrial { load: overload as u64, duration_ns };
            let kind = Kind::Then(then);
            let wish = Wish { asked: request, kind, warmup_ns: overload_ns, slice_ns: LOOK_NS };
            let trial = self.take(wish, |trials, wish| {
                let (mut trial, observed) = trials.observe(wish)?;
                trial.last_loss_ns = last_loss_ns(&observed, then, trial.receiver_lost);
                Ok(trial)
            })?;
            self.report(trial.invalid, None);
        }
        Ok(())
    }

    pub(super) fn resets(&mut self, repeats: u32, own: &OwnTrial) -> Result<(), BenchError> {
        let offered = own.offered_pps();
        let load = self.throughput(own).min(PACED * offered).round() as u64;
        (self.record.min_load, self.record.max_load) = (load, load);
        for _ in 0..repeats {
            if load == 0 || self.is_full() || !self.reset(load)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs one trial with a reset, at a load; returns false if the device cannot be reset under
    /// traffic.
    fn reset(&mut self, load: u64) -> Result<bool, BenchError> {
        let trial = self.task.plan.trial;
        let request = SearchTrial { load, duration_ns: trial.duration_ns.saturating_mul(LONGER) };
        let kind = Kind::Reset(trial.duration_ns);
        let wish = Wish { asked: request, kind, warmup_ns: trial.warmup_ns, slice_ns: LOOK_NS };
        let trial = self.take(wish, |trials, wish| {
            let (mut trial, observed) = trials.observe(wish)?;
            if let Some(reset) = &mut trial.reset {
                reset.lost = lost_around(reset, &observed.samples);
            }
            Ok(trial)
        })?;
        self.report(trial.invalid, None);
        Ok(trial.reset.is_some())
    }
}

/// Returns the sending time of the last packet that the device lost in the window, nanoseconds
/// after it opened, to a sample; `None` if it lost none there.
///
/// Losses that other work on the device's CPU explains do not count as losses of the device: the
/// number of packets that arrived while it did not run, and the number that the receiver lost.
/// Packets in flight cannot be distinguished from lost ones until they arrive, so a loss within a
/// packet's transit time of the end of a sample may be attributed to that sample.
fn last_loss_ns(observed: &Observed, load_pps: f64, receiver_lost: u64) -> Option<u64> {
    // Packets sent that had not arrived at the end of each sample: lost or in flight.
    let mut missing = observed.at_opening.lost();
    let mut ends = vec![(0, missing)];
    ends.extend(observed.samples.iter().map(|sample| {
        missing += sample.offered as i64 - sample.forwarded as i64;
        (sample.at_ns + sample.duration_ns, missing)
    }));
    let lost = observed.warm_up.lost() + observed.window.lost();
    // Going backwards, the earliest moment after which stalls explain all losses.
    let mut explained = receiver_lost as f64;
    let mut last_ns = observed.window_ns;
    for (at, &(end_ns, missing)) in ends.iter().enumerate().rev() {
        let taken_ns = observed.samples.get(at).map_or(0, taken_in);
        explained += load_pps * taken_ns as f64 / 1e9;
        if (lost - missing) as f64 > explained {
            return Some(last_ns);
        }
        last_ns = end_ns;
    }
    None
}

/// Packets lost from a reset until the device forwards the offered load again.
fn lost_around(reset: &Reset, samples: &[Sample]) -> u64 {
    let after = samples.iter().skip_while(|sample| sample.at_ns + sample.duration_ns < reset.at_ns);
    let over_ns = reset.at_ns + reset.took_ns;
    let mut lost: i64 = 0;
    for sample in after {
        lost += sample.offered as i64 - sample.forwarded as i64;
        let is_back = sample.forwarded as f64 >= BACK * sample.offered as f64;
        if sample.at_ns > over_ns && is_back {
            break;
        }
    }
    lost.max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::Counts;

    /// Samples of 5 ms, a packet a microsecond: packets lost, and nanoseconds taken.
    fn observed(before: u64, losses: &[(u64, u64)]) -> Observed {
        let lost: u64 = losses.iter().map(|(lost, _)| lost).sum();
        let samples = (0..).zip(losses).map(|(at, &(lost, taken_ns))| Sample {
            at_ns: at * LOOK_NS,
            duration_ns: LOOK_NS,
            offered: 5000,
            forwarded: 5000 - lost,
            waited_ns: Some(taken_ns),
            ..Sample::default()
        });
        let offered = 5000 * losses.len() as u64;
        Observed {
            window_ns: losses.len() as u64 * LOOK_NS,
            window: Counts { offered, forwarded: offered - lost },
            at_opening: Counts { offered: 1000, forwarded: 1000 - before },
            warm_up: Counts { offered: 1000, forwarded: 1000 - before },
            samples: samples.collect(),
            ..Observed::default()
        }
    }

    #[test]
    fn last_loss_excludes_losses_explained_by_others() {
        let of = |before, losses: &[(u64, u64)]| last_loss_ns(&observed(before, losses), 1e6, 0);
        assert_eq!(of(300, &[(0, 0), (0, 0)]), None, "what the overload lost is not counted");
        assert_eq!(of(300, &[(200, 0), (10, 0), (0, 0)]), Some(2 * LOOK_NS));
        assert_eq!(of(0, &[(200, 0), (0, 0), (400, 500_000), (0, 0)]), Some(LOOK_NS));
        assert_eq!(of(0, &[(0, 0), (400, 500_000)]), None, "all of it is explained");
        assert_eq!(of(0, &[(0, 0), (400, 300_000)]), Some(2 * LOOK_NS), "not all of it");
        let refused = observed(0, &[(200, 0), (0, 0), (40, 0)]);
        assert_eq!(last_loss_ns(&refused, 1e6, 40), Some(LOOK_NS), "the receiver's");
    }

    #[test]
    fn losses_around_a_reset_are_attributed_to_it() {
        let losses = [(70, 0), (5000, 0), (5000, 0), (2000, 0), (3, 0), (400, 0)];
        let samples = observed(0, &losses).samples;
        let reset = Reset { at_ns: LOOK_NS + 1, took_ns: LOOK_NS, ..Reset::default() };
        assert_eq!(lost_around(&reset, &samples), 12_003);
    }
}
