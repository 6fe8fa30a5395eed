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

pub use rig::{Armed, Endpoints, FloodWanted, LoadModel, Parts, Plain, Reach, Rig, TrafficRequest};

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
    /// Its kind, and why it was chosen.
    fn choice(&self) -> &Choice;

    /// CPUs of sender, DUT and receiver in a variant.
    fn place(&self, settings: &Settings) -> Placement;

    /// The leases of its hosts, without which nothing may go on; none where no other machine is
    /// part of it.
    fn lease(&self) -> Option<Watch> {
        None
    }

    /// Before a run: checks that all hosts respond.
    ///
    /// # Errors
    /// When a host does not respond.
    fn begin(&mut self, _observer: &mut dyn Observer) -> Result<(), BenchError> {
        Ok(())
    }

    /// After a failed run: waits until all hosts respond again, and returns what happened to
    /// them, such as a reboot.
    ///
    /// # Errors
    /// When a host does not respond.
    fn recover(&mut self, _observer: &mut dyn Observer) -> Result<Option<String>, BenchError> {
        Ok(None)
    }

    /// Puts back what was changed, as dropping it does, which can't say what failed.
    ///
    /// # Errors
    /// What could not be put back.
    fn close(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    /// Sets up everything for one run of a variant.
    ///
    /// # Errors
    /// When something is not available; everything set up so far is torn down.
    fn stand<'a>(
        &'a mut self,
        task: Task<'a>,
        observer: &mut dyn Observer,
    ) -> Result<Box<dyn Rig + 'a>, BenchError>;

    /// True when the sender has a ceiling that can be measured.
    fn has_ceiling(&self) -> bool {
        true
    }

    /// Measures the ceiling for a variant's family and frame size: the sender
    /// straight into the receiver.
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

    /// One trial of the sender straight into the receiver, at the maximum rate.
    ///
    /// # Errors
    /// As [`Runner::run`](crate::Runner::run); always where there is no ceiling.
    fn without_dut(
        &self,
        _settings: &Settings,
        _trial: &Trial,
        _run_id: u32,
        _observer: &mut dyn Observer,
    ) -> Result<Observed, BenchError> {
        Err(BenchError::Refused("this testbed has no ceiling to be measured".into()))
    }

    /// How long packets take without a device: the sender straight into the receiver, at a rate
    /// in packets per second. None where the two have no clock in common, or can't be joined.
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

    /// The surroundings of what is measured: those of the machine that forwards. `version`
    /// is fwdlab's.
    fn environment(&self, version: &str) -> Environment {
        environment::capture(version)
    }

    /// What a ceiling measured here for these settings holds for.
    fn calibration_key(&self, settings: &Settings) -> String;
}

/// Which testbed was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The testbed in use.
    pub kind: TestbedKind,
    /// True when no packet is real.
    pub simulated: bool,
    /// Sentences for the user: what is used, what is not and why.
    pub reasons: Vec<String>,
}

/// Files that a testbed needs, and whether it is to end.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// A directory for lock and journal, which outlives this process. That it is empty after a
    /// reboot is as it should be.
    pub state: PathBuf,
    /// A directory that outlives a reboot too: for what others keep for this machine.
    pub lasting: PathBuf,
    /// A persistent directory for what is made once: unpacked kernels, compiled plugins.
    pub cache: PathBuf,
    /// The program that is started as a router: `PROGRAM route --control`.
    pub program: PathBuf,
    /// The directory that files named in the experiment lie in.
    pub experiment: PathBuf,
    /// Raised when the user asks to stop: what waits ends, and what fails then has not failed by
    /// itself.
    pub stop: Arc<AtomicBool>,
}

/// The testbed that a plan asks for, see [`Runner::open`](crate::Runner::open).
pub(crate) fn choose(
    plan: &Plan,
    privilege: &Privilege,
    paths: &Paths,
) -> Result<Box<dyn Testbed>, BenchError> {
    judge_directions(plan)?;
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
            "imported runs were measured in somebody's laboratory and can't be repeated here"
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

/// No variant asks for traffic in directions that nothing sends here: it would silently be sent
/// in one, and half of what was asked for would look like the whole.
///
/// # Errors
/// Names the variant, and what to write.
fn judge_directions(plan: &Plan) -> Result<(), BenchError> {
    for variant in &plan.variants {
        if let Some((why, next)) = variant.settings.lacks_direction() {
            let label = &variant.label;
            return Err(BenchError::Refused(format!("variant {label}: {why}: {next}")));
        }
    }
    Ok(())
}

/// True when every variant's DUT is the software router.
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
