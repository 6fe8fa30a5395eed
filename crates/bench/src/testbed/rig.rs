//! What a testbed stands up for one run, and what carries a run out asks of it.

use crate::Observer;
use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::dut::{Dut, Prepared, Reading};
use crate::error::BenchError;
use crate::generator::Outcome;
use crate::host::Host;
use crate::links::Links;
use crate::profiler::{Perf, Profiler};
use crate::testbed::account::Account;
use crate::testbed::stopwatch::Stopwatch;
use crate::trial::{Awaited, Clock, Traffic};
use fwdlab_model::plan::Trial;
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::Counter;
use fwdlab_model::settings::{Firewall, GeneratorKind, Settings};
use fwdlab_model::warning::Warning;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Machines and links of one run. Dropping it takes everything down, [`Rig::down`] says
/// how that went.
pub trait Rig {
    /// Brings what holds from boot on to what the settings ask for; boots the DUT where
    /// that is needed.
    ///
    /// # Errors
    /// When a setting does not exist there or is refused, or a boot is needed and can't be.
    fn prepare(
        &mut self,
        settings: &Settings,
        _trial: &Trial,
        _watch: &mut Stopwatch,
        _observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        let parts = self.parts()?;
        match parts.dut.prepare(parts.host, settings)? {
            Prepared::Ready => Ok(()),
            Prepared::Reboot(reasons) => Err(BenchError::Refused(format!(
                "{} is not rebooted by this testbed, but a variant needs it: {}",
                parts.host.name(),
                reasons.join("; ")
            ))),
        }
    }

    /// Its parts, to be used side by side.
    ///
    /// # Errors
    /// When the DUT's host can't be had.
    fn parts(&mut self) -> Result<Parts<'_>, BenchError>;

    /// Takes everything down. What could not be put back is a doubt: the run is over and
    /// counts, the next ones may meet another machine.
    ///
    /// # Errors
    /// When a program did not end well, or something can't be taken down.
    fn down(self: Box<Self>) -> Result<Vec<Warning>, BenchError>;
}

/// The parts of a rig.
pub struct Parts<'a> {
    /// Where the DUT is configured and asked.
    pub host: &'a dyn Host,
    /// The machine that the DUT is on, asked for its CPU times in the window.
    pub machine: &'a dyn Host,
    /// The DUT.
    pub dut: &'a mut dyn Dut,
    /// Its interfaces and what is beside them.
    pub links: &'a Links,
    /// CPUs of sender, DUT and receiver.
    pub placement: &'a Placement,
    /// Senders and receiver.
    pub ends: &'a dyn Ends,
    /// The trial's clock.
    pub clock: &'a dyn Clock,
    /// What a sender at the maximum rate does to a DUT that is slower.
    pub pressure: LoadModel,
    /// How the rig is reached.
    pub reach: Reach,
    /// perf's own file on the DUT.
    pub perf_file: &'a Path,
}

/// How a rig is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is this machine.
    Here {
        /// True when nothing of it is real: time costs nothing, and nothing is sampled.
        simulated: bool,
    },
    /// By a network: every question takes a round trip.
    Remote {
        /// How far its CLOCK_MONOTONIC is ahead of this machine's, nanoseconds.
        ahead_ns: i64,
    },
}

impl Reach {
    /// Time that counters may need until they agree with ours: some drivers fetch them
    /// from the card every second or two.
    fn settling(self) -> Duration {
        match self {
            Reach::Here { .. } => Duration::ZERO,
            Reach::Remote { .. } => Duration::from_millis(2500),
        }
    }

    /// The DUT's counters after a trial, as soon as they agree with ours, or after as long
    /// as some drivers need to fetch them.
    pub(crate) fn settled(
        self,
        mut read: impl FnMut() -> Result<(Reading, Vec<Counter>), BenchError>,
    ) -> Result<(Reading, Vec<Counter>), BenchError> {
        let deadline = Instant::now() + self.settling();
        let agrees =
            |counter: &Counter| counter.expected.is_none_or(|expected| counter.delta() >= expected);
        loop {
            let (after, counters) = read()?;
            if counters.iter().all(agrees) || Instant::now() >= deadline {
                return Ok((after, counters));
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }
}

/// What a sender at the maximum rate does to a DUT that is slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadModel {
    /// It sends on, and the DUT loses packets: where none is lost, the sender was slower.
    OpenLoop,
    /// It waits for room, and nothing is lost.
    Backpressured,
}

/// What is wanted of senders and receiver.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Of the variant.
    pub settings: &'a Settings,
    /// Identity of the run.
    pub run_id: u32,
    /// Packets per second of all senders together; none for as fast as possible.
    pub rate_pps: Option<f64>,
    /// Phases: whatever is left alone ends some time after them.
    pub trial: &'a Trial,
    /// Threads of this machine that forward.
    pub threads: &'a [u32],
}

/// Both ends of a rig.
pub trait Ends {
    /// Makes senders and receiver ready, with the account of the threads that work.
    ///
    /// # Errors
    /// When one of them can't be.
    fn arm<'a>(
        &'a self,
        wanted: &Wanted<'_>,
        findings: &mut Findings,
    ) -> Result<(Box<dyn Armed + 'a>, Account), BenchError>;

    /// What the warm-up of a variant waits for.
    fn awaited(&self, settings: &Settings) -> Awaited;

    /// Adds to the DUT's counters what is counted at the other ends of its links only.
    fn complete(&self, _reading: &mut Reading, _dut: &dyn Dut) {}

    /// The ceiling that is known without being measured, packets per second.
    fn known_ceiling_pps(&self, _settings: &Settings) -> Option<f64> {
        None
    }

    /// What does not depend on a run.
    fn facts(&self, settings: &Settings) -> BTreeMap<String, String>;

    /// What samples the DUT's CPUs.
    fn profiler<'a>(
        &self,
        host: &'a dyn Host,
        clock: &'a dyn Fn() -> u64,
        plan: &ProfilePlan,
        cpus: &[u16],
        file: &Path,
        _settings: &Settings,
    ) -> Box<dyn Profiler + 'a> {
        Box::new(Perf::prepare(host, clock, plan, cpus, file))
    }
}

/// Senders and receiver that are ready.
pub trait Armed {
    /// As a trial drives them.
    fn traffic(&mut self) -> &mut dyn Traffic;

    /// What is used, by name.
    fn facts(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Ends everything, and tells what there was to tell beside the counts.
    ///
    /// # Errors
    /// What was met at the end.
    fn end(self: Box<Self>) -> Result<Outcome, BenchError>;
}

/// Ends that are nothing but their traffic.
pub struct Plain<T>(pub T);

impl<T: Traffic> Armed for Plain<T> {
    fn traffic(&mut self) -> &mut dyn Traffic {
        &mut self.0
    }

    fn end(self: Box<Self>) -> Result<Outcome, BenchError> {
        Ok(Outcome::default())
    }
}

/// What a trial of a variant waits for, with so many senders that each go through all
/// flows in turn.
pub(crate) fn awaited(settings: &Settings, senders: usize) -> Awaited {
    // Other generators choose their flows as they like.
    let ours = settings.traffic.generator == GeneratorKind::Fwdlab;
    Awaited {
        flows: if ours { settings.traffic.flows.count() } else { 0 },
        senders: senders.max(1) as u32,
        states: settings.dut.firewall == Firewall::Stateful,
    }
}
