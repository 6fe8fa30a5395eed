//! Testbeds: everything between an experiment file and packets.

mod account;
mod asked;
mod doubts;
mod evidence;
pub mod memory;
pub mod netns;
mod profiling;
mod rate;
pub mod sim;
pub mod ssh;
mod stopwatch;
pub(crate) mod traffic;
pub mod wiring;

use crate::probe::Privilege;
use crate::profiler::RawProfile;
use crate::{BenchError, Observer, Task, environment};
use fwdlab_model::plan::Plan;
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{Calibration, Environment, ProfileRecord, RunRecord};
use fwdlab_model::settings::{DutKind, Settings, TestbedKind};
use std::path::PathBuf;

/// A place where planned runs are carried out.
pub trait Testbed {
    /// What it is and how it came to be chosen.
    fn choice(&self) -> &Choice;

    /// Builds what a variant needs, sends, counts, takes everything down again.
    ///
    /// # Errors
    /// When something fails or the observer cancels; nothing is left behind. After
    /// [`BenchError::GivenUp`] runs of other variants are worth trying.
    fn run(&mut self, task: Task<'_>, observer: &mut dyn Observer)
    -> Result<RunRecord, BenchError>;

    /// Measures the ceiling for a variant's family and frame size: the sender
    /// straight into the receiver.
    ///
    /// # Errors
    /// As [`Testbed::run`].
    fn calibrate(
        &mut self,
        plan: &Plan,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Calibration, BenchError>;

    /// Runs one variant once more with a sampler beside it. Its figures are no
    /// measurement. A sampler that fails is a remark of the record, not an error.
    ///
    /// # Errors
    /// As [`Testbed::run`].
    fn profile(
        &mut self,
        task: Task<'_>,
        plan: &ProfilePlan,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError>;

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
    /// `netns`, `memory`, `ssh` or `sim`.
    pub kind: &'static str,
    /// True when no packet is real.
    pub simulated: bool,
    /// Sentences for the user: what is used, what is not and why.
    pub reasons: Vec<String>,
}

/// Files that a testbed needs.
#[derive(Clone, Debug)]
pub struct Paths {
    /// A directory that survives this process, for lock and journal.
    pub state: PathBuf,
    /// The program that is started as a router: `PROGRAM route --control`.
    pub program: PathBuf,
    /// The directory that files named in the experiment lie in.
    pub experiment: PathBuf,
}

/// Opens the testbed that a plan asks for; `auto` takes the best that the
/// machine permits.
///
/// # Errors
/// When a testbed that was named can't be had; `auto` always finds one.
pub fn open(
    plan: &Plan,
    privilege: &Privilege,
    paths: &Paths,
) -> Result<Box<dyn Testbed>, BenchError> {
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

/// True when every variant's DUT is the software router.
fn is_router(plan: &Plan) -> bool {
    plan.variants.iter().all(|variant| variant.settings.dut.kind == DutKind::Router)
}

/// Opens namespaces and makes sure, before anything is measured, that every variant
/// of the plan can be had there.
fn open_netns(
    plan: &Plan,
    privilege: &Privilege,
    paths: &Paths,
) -> Result<netns::Netns, BenchError> {
    let mut testbed = netns::Netns::open(privilege, paths, plan.base.testbed.engine)?;
    testbed.check(plan)?;
    Ok(testbed)
}
