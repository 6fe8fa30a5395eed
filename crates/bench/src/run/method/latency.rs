//! How long packets take at shares of the rate that was found (RFC 2544, section 26.2; RFC 8219,
//! section 7.2), and what of that is the instrument's own.

use super::search::INVALID_IN_A_ROW;
use super::{Kind, Trials, Wish};
use crate::error::BenchError;
use crate::testbed::Testbed;
use crate::trial::Traffic;
use crate::{Observer, Task};
use fwdlab_model::design::method::TRIALS_MAX;
use fwdlab_model::design::{Method, MethodKind};
use fwdlab_model::record::{Floor, LatencyTrial, MethodRecord};
use fwdlab_model::settings::{Checks, Settings};
use fwdlab_model::units::format_pps;
use fwdlab_search::Trial as DutQueries;

impl Trials<'_, '_> {
    /// Trials at shares of the throughput. Nothing where none was found: any load would be one
    /// that this device perhaps can't carry, and its delays those of its queues.
    pub(super) fn delays(&mut self, shares: &[f64], repeats: u32) -> Result<(), BenchError> {
        let Some(throughput) = self.throughput else { return Ok(()) };
        let loads = shares.iter().map(|share| ((share * throughput).round() as u64).max(1));
        let loads: Vec<u64> = loads.collect();
        self.record.min_load = loads.iter().copied().min().unwrap_or(0);
        self.record.max_load = loads.iter().copied().max().unwrap_or(0);
        let mut spoiled = vec![0; loads.len()];
        // Share after share, again and again: what drifts is the same to all of them.
        for _ in 0..repeats {
            for ((&share, &load), spoiled) in shares.iter().zip(&loads).zip(&mut spoiled) {
                if !until_timed(spoiled, || self.timed(share, load))? {
                    return self.cannot_tell();
                }
            }
        }
        Ok(())
    }

    /// A trial at a share: whether its delays are the device's, none where none can be told.
    /// Where no more trials fit into the run there is nothing to be measured again.
    fn timed(&mut self, share: f64, load: u64) -> Result<Option<bool>, BenchError> {
        if self.is_full() {
            return Ok(Some(true));
        }
        let trial = self.task.plan.trial;
        let asked = DutQueries { load, duration_ns: trial.duration_ns };
        let slice_ns = trial.slice_ns.min(asked.duration_ns);
        let kind = Kind::Timed(share);
        let wish = Wish { asked, kind, warmup_ns: trial.warmup_ns, slice_ns };
        let timed = match self.replay(&wish) {
            Some(timed) => timed,
            None => {
                let (timed, _) = self.observe(wish)?;
                if timed.latency.is_none() {
                    return Ok(None);
                }
                self.keep(&wish, timed.clone());
                timed
            }
        };
        let fault = timed.timing_fault();
        self.report(fault.clone(), None);
        Ok(Some(fault.is_none()))
    }

    /// Nothing to tell is no answer to who asked for delays, and one of several to a suite.
    fn cannot_tell(&mut self) -> Result<(), BenchError> {
        if let Some(Method::Latency { .. }) = &self.task.plan.method {
            return Err(BenchError::Refused(format!(
                "no delay can be told: {NO_CLOCK}\n  next step: kind = \"netns\" or \"memory\" in \
                 [testbed], or a laboratory whose sender and receiver are one host"
            )));
        }
        self.findings.facts.insert("latency".into(), format!("can't be told: {NO_CLOCK}"));
        Ok(())
    }
}

/// Measures again where the sender fell short, which is no matter of the device, unless that
/// happened too often in a row; false where no delay can be told.
fn until_timed<E>(
    spoiled: &mut usize,
    mut timed: impl FnMut() -> Result<Option<bool>, E>,
) -> Result<bool, E> {
    while *spoiled < INVALID_IN_A_ROW {
        match timed()? {
            None => return Ok(false),
            Some(false) => *spoiled += 1,
            Some(true) => {
                *spoiled = 0;
                break;
            }
        }
    }
    Ok(true)
}

/// The same traffic, every packet of it with its sending time, and checked: a sample would be
/// one of packets that arrive in order.
pub(super) fn with_times(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    (settings.traffic.timestamps, settings.traffic.checks) = (true, Checks::All);
    settings
}

/// What a trial's packets tell; no delays if none arrived, none at all where sender and receiver
/// have no clock in common.
pub(super) fn of_trial(share: f64, traffic: &mut dyn Traffic) -> Option<LatencyTrial> {
    let arrived = traffic.snapshot().received.iter().sum::<u64>() > 0;
    let delays = traffic.delays();
    let is_told = delays.is_some() || !arrived;
    is_told.then(|| LatencyTrial { share, delays: delays.unwrap_or_default() })
}

/// Why no delay is told.
const NO_CLOCK: &str = "sender and receiver have no clock in common";

/// Measures the instrument's own part at each load at which packets were timed, on a testbed
/// whose device has been taken down.
///
/// # Errors
/// As [`Runner::run`](crate::Runner::run).
pub(in crate::run) fn measure_floor(
    testbed: &dyn Testbed,
    task: Task<'_>,
    record: &mut MethodRecord,
    observer: &mut dyn Observer,
) -> Result<(), BenchError> {
    let planned = task.plan.method.iter().flat_map(|method| method.parts());
    let timed = planned.enumerate().filter(|(_, part)| part.kind() == MethodKind::Latency);
    let mut number = record.len() as u32;
    for (part, _) in timed {
        let record = match record.parts.get_mut(part) {
            Some(part) => part,
            None => return Ok(()),
        };
        let mut loads: Vec<u64> = record.trials.iter().map(|trial| trial.load).collect();
        loads.sort_unstable();
        loads.dedup();
        for load in loads {
            if number >= TRIALS_MAX {
                return Ok(());
            }
            observer.step(&format!("without the device at {}", format_pps(load as f64)));
            let settings = with_times(&task.plan.variants[task.run.variants[0]].settings);
            let run_id = task.plan.trial_id(task.run.index, number);
            let trial = (&settings, &task.plan.trial, run_id);
            let Some(delays) = testbed.floor(trial, load as f64, observer)? else { return Ok(()) };
            record.floor.push(Floor { load, delays });
            number += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_of_a_sender_that_fell_short_is_measured_again_until_that_is_hopeless() {
        let mut trials = 0;
        let mut times = |spoiled: &mut usize, needed: usize| {
            let mut left = needed;
            let told = until_timed(spoiled, || {
                (trials, left) = (trials + 1, left.saturating_sub(1));
                Ok::<_, ()>(Some(left == 0))
            });
            (told, std::mem::take(&mut trials))
        };
        let mut spoiled = 0;
        assert_eq!(times(&mut spoiled, 1), (Ok(true), 1));
        assert_eq!(times(&mut spoiled, 30), (Ok(true), 30), "the thirtieth is one");
        assert_eq!(spoiled, 0, "in a row");
        assert_eq!(times(&mut spoiled, usize::MAX), (Ok(true), 30));
        assert_eq!(times(&mut spoiled, 1), (Ok(true), 0), "no more of this share");
        assert_eq!(until_timed(&mut 0, || Ok::<_, ()>(None)), Ok(false));
    }

    #[test]
    fn packets_are_timed_and_all_checked_whatever_the_file_says() {
        let mut settings = Settings::default();
        settings.traffic.checks = Checks::Sample;
        let timed = with_times(&settings);
        assert!(timed.traffic.timestamps && !timed.traffic.checks.is_sample(None));
        assert!(!settings.traffic.timestamps);
    }
}
