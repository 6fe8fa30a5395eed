//! Latency at shares of the rate that was found (RFC 2544, section 26.2; RFC 8219, section 7.2),
//! and the instrument's own part of it.

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
use fwdlab_search::Trial as SearchTrial;

impl Trials<'_, '_> {
    /// Runs trials at shares of the throughput. Does nothing if no throughput was found: the device
    /// might not be able to forward any load, and the latency would be that of its queues.
    pub(super) fn delays(&mut self, shares: &[f64], repeats: u32) -> Result<(), BenchError> {
        let Some(throughput) = self.throughput else { return Ok(()) };
        let loads = shares.iter().map(|share| ((share * throughput).round() as u64).max(1));
        let loads: Vec<u64> = loads.collect();
        self.record.min_load = loads.iter().copied().min().unwrap_or(0);
        self.record.max_load = loads.iter().copied().max().unwrap_or(0);
        let mut spoiled = vec![0; loads.len()];
        // Share after share, again and again: drift affects all of them equally.
        for _ in 0..repeats {
            for ((&share, &load), spoiled) in shares.iter().zip(&loads).zip(&mut spoiled) {
                if !until_timed(spoiled, || self.timed(share, load))? {
                    return self.report_unmeasurable();
                }
            }
        }
        Ok(())
    }

    /// Runs a trial at a share; returns whether its delays are due to the device, `None` if latency
    /// cannot be measured. Returns true if no more trials fit into the run: there is nothing to
    /// measure again.
    fn timed(&mut self, share: f64, load: u64) -> Result<Option<bool>, BenchError> {
        if self.is_full() {
            return Ok(Some(true));
        }
        let trial = self.task.plan.trial;
        let request = SearchTrial { load, duration_ns: trial.duration_ns };
        let slice_ns = trial.slice_ns.min(request.duration_ns);
        let kind = Kind::Timed(share);
        let wish = Wish { asked: request, kind, warmup_ns: trial.warmup_ns, slice_ns };
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

    /// Fails a latency experiment because latency cannot be measured; a suite only records the
    /// fact.
    fn report_unmeasurable(&mut self) -> Result<(), BenchError> {
        if let Some(Method::Latency { .. }) = &self.task.plan.method {
            return Err(BenchError::Refused(format!(
                "latency cannot be measured: {NO_CLOCK}\n  next step: kind = \"netns\" or \
                 \"memory\" in [testbed], or a laboratory whose sender and receiver are one host"
            )));
        }
        self.findings.facts.insert("latency".into(), format!("can't be told: {NO_CLOCK}"));
        Ok(())
    }
}

/// Repeats a measurement if the sender fell short, which is not due to the device, unless that
/// happened too often in a row; returns false if latency cannot be measured.
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

/// Settings of the same traffic in which every packet carries its sending time and is checked:
/// sampled checks would only cover packets that arrive in order.
pub(super) fn with_times(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    (settings.traffic.timestamps, settings.traffic.checks) = (true, Checks::All);
    settings
}

/// Latency of a trial's packets: without delays if no packet arrived, `None` if sender and receiver
/// have no common clock.
pub(super) fn of_trial(share: f64, traffic: &mut dyn Traffic) -> Option<LatencyTrial> {
    let arrived = traffic.snapshot().received.iter().sum::<u64>() > 0;
    let delays = traffic.delays();
    let is_measured = delays.is_some() || !arrived;
    is_measured.then(|| LatencyTrial { share, delays: delays.unwrap_or_default() })
}

/// Reason why latency cannot be measured.
const NO_CLOCK: &str = "sender and receiver have no clock in common";

/// Measures the instrument's own latency at each load at which packets were timed, on a testbed
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
    fn shortfall_of_the_sender_repeats_the_trial_up_to_a_limit() {
        let mut trials = 0;
        let mut times = |spoiled: &mut usize, needed: usize| {
            let mut left = needed;
            let is_timed = until_timed(spoiled, || {
                (trials, left) = (trials + 1, left.saturating_sub(1));
                Ok::<_, ()>(Some(left == 0))
            });
            (is_timed, std::mem::take(&mut trials))
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
    fn latency_settings_override_timestamps_and_checks() {
        let mut settings = Settings::default();
        settings.traffic.checks = Checks::Sample;
        let timed = with_times(&settings);
        assert!(timed.traffic.timestamps && !timed.traffic.checks.is_sample(None));
        assert!(!settings.traffic.timestamps);
    }
}
