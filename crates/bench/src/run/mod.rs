//! Executes runs on any testbed: prepares and configures the DUT, reads settings back, checks
//! forwarding, arms sender and receiver, runs the trial, waits until counters settle, derives
//! warnings and writes the record. Retries a failed run once, then gives its variant up.

mod cpus;
pub(crate) mod doubts;
pub(crate) mod dut_queries;
mod hooks;
mod lease_guard;
mod measure;
mod method;
mod preflight;
pub(crate) mod profile;
mod rate;
mod sampled;

use crate::dut::findings::Findings;
use crate::error::BenchError;
use crate::probe::Privilege;
use crate::profiler::RawProfile;
use crate::testbed::stopwatch::Stopwatch;
use crate::testbed::{self, Choice, Paths, Testbed};
use crate::trial::SystemClock;
use crate::{Observer, Task};
use fwdlab_model::plan::Plan;
use fwdlab_model::profile::{Event, ProfilePlan};
use fwdlab_model::record::{Calibration, Checkpoint, Environment, ProfileRecord, RunRecord};
use fwdlab_model::settings::Settings;
use fwdlab_netio::affinity;
use lease_guard::with_lease;
use measure::{RunMeasurement, measure};
use method::Attempt;
pub use sampled::Sampled;
use std::collections::BTreeMap;

/// Executes runs on a testbed, and remembers variants that it gave up.
pub struct Runner {
    testbed: Box<dyn Testbed>,
    /// Variants that are not retried, with the reason.
    given_up: BTreeMap<usize, String>,
    /// Event that triggered the samples of earlier runs.
    sampled_event: Option<Event>,
}

impl Runner {
    /// Returns a runner on `testbed`.
    pub fn new(testbed: Box<dyn Testbed>) -> Runner {
        Runner { testbed, given_up: BTreeMap::new(), sampled_event: None }
    }

    /// Opens the testbed that the plan names; `auto` takes the best one available on this machine.
    ///
    /// # Errors
    /// Returns an error if the named testbed is not available here; `auto` always finds one.
    pub fn open(plan: &Plan, privilege: &Privilege, paths: &Paths) -> Result<Runner, BenchError> {
        testbed::choose(plan, privilege, paths).map(Runner::new)
    }

    /// Restores everything that the testbed has changed; dropping the runner does the same, but
    /// cannot report failures.
    ///
    /// # Errors
    /// Returns an error that names the changes it could not restore.
    pub fn close(mut self) -> Result<(), BenchError> {
        self.testbed.close()
    }

    /// Returns the testbed in use and the reason for choosing it.
    pub fn choice(&self) -> &Choice {
        self.testbed.choice()
    }

    /// Hardware and software environment of the machine that forwards. `version` is fwdlab's
    /// version.
    pub fn environment(&self, version: &str) -> Environment {
        self.testbed.environment(version)
    }

    /// Calibration key: a ceiling applies to all settings with the same key.
    pub fn calibration_key(&self, settings: &Settings) -> String {
        self.testbed.calibration_key(settings)
    }

    /// Returns true if the testbed's sender has a ceiling that can be measured.
    pub fn has_ceiling(&self) -> bool {
        self.testbed.has_ceiling()
    }

    /// Measures the ceiling for a variant's family and frame size: the sender straight into the
    /// receiver, or up to the DUT's interface.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn calibrate(
        &mut self,
        plan: &Plan,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Calibration, BenchError> {
        let _pinned = PinGuard::to(&self.testbed.place(settings).control)?;
        with_lease(self.testbed.lease(), observer, |observer| {
            self.testbed.calibrate(plan, settings, observer)
        })
    }

    /// Executes a run: sets up the variant, runs the trial, tears everything down. Retries once
    /// if something failed or a host was lost.
    ///
    /// # Errors
    /// Returns user errors and interruptions immediately. A second failure gives the variant up
    /// ([`BenchError::GivenUp`]); runs of other variants may continue. Everything is torn down in
    /// any case.
    pub fn run(
        &mut self,
        task: Task<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        self.run_sampled(task, &mut Vec::new(), observer).map(|(record, _)| record)
    }

    /// Executes a run like [`Runner::run`], and returns the samples of its window if the plan
    /// samples measured runs. The method of the run continues from its `checkpoints`, to which each
    /// finished trial is added; the record names the attempts that measured them.
    ///
    /// # Errors
    /// As [`Runner::run`]. A failed profiler is a remark among the samples, not an error.
    pub fn run_sampled(
        &mut self,
        task: Task<'_>,
        checkpoints: &mut Vec<Checkpoint>,
        observer: &mut dyn Observer,
    ) -> Result<(RunRecord, Option<Sampled>), BenchError> {
        let variant = task.run.variants[0];
        if let Some(why) = self.given_up.get(&variant) {
            return Err(BenchError::GivenUp { variant, why: why.clone() });
        }
        let mut repeated = None;
        loop {
            self.testbed.begin(observer)?;
            let lease = self.testbed.lease();
            let attempt =
                with_lease(lease, observer, |observer| self.once(task, checkpoints, observer));
            let error = match attempt {
                Ok((mut record, sampled)) => {
                    record.facts.extend(repeated.map(|why| ("repeated after".into(), why)));
                    return Ok((record, sampled));
                }
                Err(error @ (BenchError::Refused(_) | BenchError::Interrupted)) => {
                    return Err(error);
                }
                Err(_) if observer.cancelled() => return Err(BenchError::Interrupted),
                Err(error) => error,
            };
            let recovery = self.testbed.recover(observer)?;
            let suffix = recovery.map_or(String::new(), |what| format!("; {what}"));
            let why = format!("{error}{suffix}").replace('\n', ";");
            if let Some(first) = repeated {
                let why =
                    if why == first { why } else { format!("{why}; the first time: {first}") };
                self.given_up.insert(variant, why.clone());
                return Err(BenchError::GivenUp { variant, why });
            }
            repeated = Some(why);
        }
    }

    fn once(
        &mut self,
        task: Task<'_>,
        checkpoints: &mut Vec<Checkpoint>,
        observer: &mut dyn Observer,
    ) -> Result<(RunRecord, Option<Sampled>), BenchError> {
        let sampling = sampled::sampling(task.plan.profile.as_ref(), self.sampled_event);
        let first = task.run.variants[0];
        let settings = &task.plan.variants[first].settings;
        let placement = self.testbed.place(settings);
        let _pinned = PinGuard::to(&placement.control)?;
        let started_at = SystemClock.wall_text();
        let mut watch = Stopwatch::default();
        let mut findings = Findings::default();
        let mut rig = self.testbed.stand(task, observer)?;
        watch.lap("set up");
        rig.prepare(settings, &task.plan.trial, &mut watch, observer)?;
        let parts = rig.parts()?;
        let mut attempt = Attempt::new(started_at.clone(), std::mem::take(checkpoints));
        let watched = &mut watch;
        let measured =
            measure(parts, task, sampling, watched, &mut attempt, &mut findings, observer);
        let continued = attempt.warnings();
        *checkpoints = attempt.into_checkpoints();
        let measured = measured.inspect_err(|_| stop_after_failure(rig.as_mut()))?;
        observer.step("taking down");
        let left = rig.down()?;
        watch.lap("take down");

        let RunMeasurement { trial, mut method, mut warnings, simulated, sampled } = measured;
        if sampled.as_ref().is_some_and(|sampled| sampled.raw.event.contains("clock")) {
            self.sampled_event = Some(Event::CpuClock);
        }
        if let Some(record) = &mut method {
            method::latency::measure_floor(self.testbed.as_ref(), task, record, observer)?;
        }
        // A setting that could not be restored before the run is reported once.
        warnings.extend(left.into_iter().filter(|left| !findings.warnings.contains(left)));
        warnings.extend(findings.warnings);
        warnings.extend(continued);
        let record = RunRecord {
            run: task.run.index,
            block: task.run.block,
            variants: task.run.variants.clone(),
            run_id: task.plan.run_id(task.run.index),
            started_at,
            trial,
            method,
            facts: findings.facts,
            warnings,
            // The overhead of a simulated run is meaningless.
            overhead_ns: if simulated { Vec::new() } else { watch.laps },
        };
        Ok((record, sampled))
    }

    /// Executes a profile run of a variant: with a sampling profiler on the DUT's CPUs. Its rate is
    /// not a measurement. A failed profiler is a remark in the record, not an error.
    ///
    /// # Errors
    /// As [`Runner::run`], without a retry.
    pub fn profile(
        &mut self,
        task: Task<'_>,
        plan: &ProfilePlan,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        let settings = &task.plan.variants[task.run.variants[0]].settings;
        let placement = self.testbed.place(settings);
        let _pinned = PinGuard::to(&placement.control)?;
        self.testbed.begin(observer)?;
        with_lease(self.testbed.lease(), observer, |observer| {
            let mut rig = self.testbed.stand(task, observer)?;
            rig.prepare(settings, &task.plan.trial, &mut Stopwatch::default(), observer)?;
            let profiled = profile::take(rig.parts()?, task, plan, observer);
            let profiled = profiled.inspect_err(|_| stop_after_failure(rig.as_mut()))?;
            observer.step("taking down");
            // Settings that cannot be restored are reported by the runs, and at the next start.
            rig.down().map(drop)?;
            Ok(profiled)
        })
    }
}

/// Stops the DUT's programs after a failed run, whose error is the one to report.
fn stop_after_failure(rig: &mut dyn testbed::Rig) {
    if let Ok(parts) = rig.parts()
        && parts.dut.is_program()
    {
        let _ = parts.dut.stop(parts.host);
    }
}

/// Pins this thread to CPUs until dropped.
struct PinGuard {
    before: Vec<u16>,
}

impl PinGuard {
    /// Pins this thread to `cpus`; unchanged if the list is empty.
    fn to(cpus: &[u16]) -> Result<PinGuard, BenchError> {
        if cpus.is_empty() {
            return Ok(PinGuard { before: Vec::new() });
        }
        let before = affinity::allowed_cpus()?;
        affinity::pin_thread(cpus)?;
        Ok(PinGuard { before })
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        if !self.before.is_empty() {
            // Failing to unpin this thread must not discard a finished record.
            let _ = affinity::pin_thread(&self.before);
        }
    }
}
