//! Testbeds: everything between an experiment file and packets.

mod bidirectional;
pub(crate) mod cpu_times;
pub mod memory;
pub mod netns;
mod rig;
pub mod sim;
pub mod ssh;
mod steal;
pub(crate) mod stopwatch;
pub(crate) mod traffic;
pub mod vm;

pub use rig::{
    Armed, Endpoints, FloodRequest, LoadModel, Parts, Plain, Rig, RigLocation, TrafficRequest,
};

use crate::cpu::Placement;
use crate::lease::Watch;
use crate::probe::{Cable, Privilege};
use crate::trial::Observed;
use crate::{BenchError, Observer, Task, calibrate, environment};
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::record::{Calibration, Environment, Latency};
use fwdlab_model::settings::{DutKind, Settings, TestbedKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Provides machines, links, CPU placement and traffic for planned runs. The
/// [`Runner`](crate::Runner) executes the runs.
pub trait Testbed {
    /// Kind of the testbed, and the reasons for choosing it.
    fn choice(&self) -> &Choice;

    /// CPUs of sender, DUT and receiver in a variant.
    fn place(&self, settings: &Settings) -> Placement;

    /// Leases of the testbed's hosts, without which no run may continue; `None` if it has no other
    /// machines.
    fn lease(&self) -> Option<Watch> {
        None
    }

    /// Checks before a run that all hosts respond.
    ///
    /// # Errors
    /// Returns an error if a host does not respond.
    fn begin(&mut self, _observer: &mut dyn Observer) -> Result<(), BenchError> {
        Ok(())
    }

    /// Waits after a failed run until all hosts respond again, and returns events on them, such as
    /// a reboot.
    ///
    /// # Errors
    /// Returns an error if a host does not respond.
    fn recover(&mut self, _observer: &mut dyn Observer) -> Result<Option<String>, BenchError> {
        Ok(None)
    }

    /// Restores everything that was changed; dropping the testbed does the same, but cannot report
    /// failures.
    ///
    /// # Errors
    /// Returns an error that names the changes it could not restore.
    fn close(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    /// Sets up everything for one run of a variant.
    ///
    /// # Errors
    /// Returns an error if something is not available; everything set up so far is torn down.
    fn stand<'a>(
        &'a mut self,
        task: Task<'a>,
        observer: &mut dyn Observer,
    ) -> Result<Box<dyn Rig + 'a>, BenchError>;

    /// Returns true if the sender has a ceiling that can be measured.
    fn has_ceiling(&self) -> bool {
        true
    }

    /// Measures the ceiling for a variant's family and frame size: the sender straight into the
    /// receiver.
    ///
    /// # Errors
    /// As [`Runner::run`](crate::Runner::run).
    fn calibrate(
        &mut self,
        plan: &Plan,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Calibration, BenchError> {
        let key = self.calibration_key(settings);
        calibrate::measure(plan, settings, key, &mut |trial, run_id| {
            self.without_dut(settings, trial, run_id, observer)
        })
    }

    /// Runs one trial of the sender straight into the receiver, at the maximum rate.
    ///
    /// # Errors
    /// As [`Runner::run`](crate::Runner::run); always fails without a ceiling.
    fn without_dut(
        &self,
        _settings: &Settings,
        _trial: &Trial,
        _run_id: u32,
        _observer: &mut dyn Observer,
    ) -> Result<Observed, BenchError> {
        Err(BenchError::Refused("this testbed has no ceiling to be measured".into()))
    }

    /// Measures the latency without a device: the sender straight into the receiver, at a rate in
    /// packets per second. `None` if the two have no common clock, or cannot be connected.
    ///
    /// # Errors
    /// As [`Runner::run`](crate::Runner::run).
    fn floor(
        &self,
        _trial: (&Settings, &Trial, u32),
        _rate_pps: f64,
        _observer: &mut dyn Observer,
    ) -> Result<Option<Latency>, BenchError> {
        Ok(None)
    }

    /// Environment of the measurement: the machine that forwards. `version` is fwdlab's version.
    fn environment(&self, version: &str) -> Environment {
        environment::capture(version)
    }

    /// Returns the key that identifies all settings to which a ceiling measured for `settings`
    /// applies.
    fn calibration_key(&self, settings: &Settings) -> String;
}

/// The chosen testbed, with the reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The testbed in use.
    pub kind: TestbedKind,
    /// True if no packet is real.
    pub simulated: bool,
    /// Sentences for the user: the parts in use, the parts not in use, and the reasons.
    pub reasons: Vec<String>,
}

/// Files that a testbed needs, and the flag that stops it.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Directory for lock and journal, which outlives this process. It may be empty after a reboot.
    pub state: PathBuf,
    /// Directory that also outlives a reboot: for files that others keep for this machine.
    pub lasting: PathBuf,
    /// Persistent directory for files that are created once: unpacked kernels, compiled plugins.
    pub cache: PathBuf,
    /// Program to start as a router: `PROGRAM route --control`.
    pub program: PathBuf,
    /// Directory to which file names in the experiment are relative.
    pub experiment: PathBuf,
    /// Set when the user asks to stop: waits then end, and failures count as interruptions.
    pub stop: Arc<AtomicBool>,
}

/// Opens the testbed that a plan requests, see [`Runner::open`](crate::Runner::open).
pub(crate) fn choose(
    plan: &Plan,
    privilege: &Privilege,
    paths: &Paths,
) -> Result<Box<dyn Testbed>, BenchError> {
    check_directions(plan)?;
    match plan.base.testbed.kind {
        TestbedKind::Sim => {
            let reasons = vec!["simulated device, as the experiment asks".to_owned()];
            Ok(Box::new(sim::Sim::new(reasons)))
        }
        TestbedKind::Memory => {
            let reasons = vec!["packets in memory, as the experiment asks".to_owned()];
            Ok(Box::new(memory::Memory::open(plan, paths, reasons)?))
        }
        TestbedKind::Ssh => Ok(Box::new(ssh::Ssh::open(plan, paths)?)),
        TestbedKind::Vm => Ok(Box::new(vm::Vm::open(plan, privilege, paths)?)),
        TestbedKind::Archive => Err(BenchError::Refused(
            "imported runs were measured in another laboratory and can't be repeated here"
                .to_owned(),
        )),
        TestbedKind::Netns => Ok(Box::new(open_netns(plan, privilege, paths)?)),
        TestbedKind::Auto => match open_netns(plan, privilege, paths) {
            Ok(testbed) => Ok(Box::new(testbed)),
            Err(error @ BenchError::Environment { .. }) if is_router(plan) => {
                let reasons = vec![
                    format!("no packets through this machine's kernel: {error}"),
                    "packets in memory instead: the router is real, its ports are not".into(),
                ];
                Ok(Box::new(memory::Memory::open(plan, paths, reasons)?))
            }
            Err(error @ BenchError::Environment { .. }) => {
                let reasons = vec![
                    format!("no real packets on this machine: {error}"),
                    "SIMULATED: every figure comes from a model, not from a kernel".into(),
                ];
                Ok(Box::new(sim::Sim::new(reasons)))
            }
            Err(other) => Err(other),
        },
    }
}

/// Refuses variants whose traffic directions the testbed cannot send: it would silently send in one
/// direction, and half of the requested traffic would look like all of it.
///
/// # Errors
/// Returns an error that names the variant and the alternatives.
fn check_directions(plan: &Plan) -> Result<(), BenchError> {
    for variant in &plan.variants {
        if let Some((why, next)) = variant.settings.lacks_direction() {
            let label = &variant.label;
            return Err(BenchError::Refused(format!("variant {label}: {why}: {next}")));
        }
    }
    Ok(())
}

/// Returns true if every variant's DUT is the software router.
fn is_router(plan: &Plan) -> bool {
    plan.variants.iter().all(|variant| variant.settings.dut.kind == DutKind::Router)
}

/// Opens the testbed of namespaces and checks that it supports every variant of the plan.
fn open_netns(
    plan: &Plan,
    privilege: &Privilege,
    paths: &Paths,
) -> Result<netns::Netns, BenchError> {
    let mut testbed = netns::Netns::open(privilege, paths, plan.base.testbed.engine, Cable::Veth)?;
    testbed.check(plan)?;
    Ok(testbed)
}
