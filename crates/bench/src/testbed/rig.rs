//! The rig: machines and links that a testbed sets up for one run, for use by the runner.

use crate::Observer;
use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::dut::{Dut, Preparation, Reading};
use crate::error::BenchError;
use crate::generator::Outcome;
use crate::host::Host;
use crate::links::Links;
use crate::profiler::{Perf, Profiler, Sampling};
use crate::testbed::cpu_times::CpuTimes;
use crate::testbed::stopwatch::Stopwatch;
use crate::trial::{Clock, OpeningConditions, Traffic};
use fwdlab_model::plan::Trial;
use fwdlab_model::record::Counter;
use fwdlab_model::settings::{Firewall, GeneratorKind, Settings};
use fwdlab_model::warning::Warning;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Machines and links of one run. Dropping it tears everything down; [`Rig::down`] also reports
/// errors.
pub trait Rig {
    /// Applies settings that take effect at boot; reboots the DUT if needed.
    ///
    /// # Errors
    /// Returns an error if a setting does not exist there or is refused, or a needed reboot is not
    /// possible.
    fn prepare(
        &mut self,
        settings: &Settings,
        _trial: &Trial,
        _watch: &mut Stopwatch,
        _observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        let parts = self.parts()?;
        match parts.dut.prepare(parts.host, settings)? {
            Preparation::Ready => Ok(()),
            Preparation::Reboot(reasons) => Err(BenchError::Refused(format!(
                "{} is not rebooted by this testbed, but a variant needs it: {}",
                parts.host.name(),
                reasons.join("; ")
            ))),
        }
    }

    /// Borrows all parts of the rig together.
    ///
    /// # Errors
    /// Returns an error if the DUT's host is not available.
    fn parts(&mut self) -> Result<Parts<'_>, BenchError>;

    /// Tears everything down. Returns a warning for each setting that could not be restored: the
    /// run is valid, but later runs may be affected.
    ///
    /// # Errors
    /// Returns an error if a program exited with an error, or something cannot be torn down.
    fn down(self: Box<Self>) -> Result<Vec<Warning>, BenchError>;
}

/// The parts of a rig.
pub struct Parts<'a> {
    /// Host on which the DUT is configured and queried.
    pub host: &'a dyn Host,
    /// The DUT's machine, for its CPU times in the window.
    pub machine: &'a dyn Host,
    /// The DUT.
    pub dut: &'a mut dyn Dut,
    /// The DUT's interfaces and their peers.
    pub links: &'a Links,
    /// CPUs of sender, DUT and receiver.
    pub placement: &'a Placement,
    /// Senders and receiver.
    pub ends: &'a dyn Endpoints,
    /// The trial's clock.
    pub clock: &'a dyn Clock,
    /// Load model of a sender at the maximum rate.
    pub pressure: LoadModel,
    /// Location of the rig.
    pub reach: RigLocation,
    /// File on the DUT for use by perf.
    pub perf_file: &'a Path,
}

/// Location of a rig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RigLocation {
    /// The rig is this machine.
    Here {
        /// True if nothing is real: time costs nothing, and nothing is sampled.
        simulated: bool,
    },
    /// Over a network: every query takes a round trip.
    Remote {
        /// Offset of its CLOCK_MONOTONIC from this machine's, nanoseconds.
        ahead_ns: i64,
    },
}

impl RigLocation {
    /// Converts a time of this machine's CLOCK_MONOTONIC to the DUT's, nanoseconds.
    pub(crate) fn dut_ns(self, ours_ns: u64) -> u64 {
        match self {
            RigLocation::Here { .. } => ours_ns,
            RigLocation::Remote { ahead_ns } => ours_ns.saturating_add_signed(ahead_ns),
        }
    }

    /// Time limit for counters to settle: some drivers fetch them from the card only every
    /// second or two.
    fn settling(self) -> Duration {
        match self {
            RigLocation::Here { .. } => Duration::ZERO,
            RigLocation::Remote { .. } => Duration::from_millis(2500),
        }
    }

    /// Returns the DUT's counters after a trial: as soon as they match the receiver's, or after the
    /// time that slow drivers need to update them.
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

/// Effect of a sender at the maximum rate on a slower DUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadModel {
    /// The sender does not wait, the DUT drops packets: without loss the sender is the limit.
    OpenLoop,
    /// The sender waits for free slots, and nothing is lost.
    Backpressured,
}

/// Parameters for arming senders and receiver.
#[derive(Clone, Copy, Debug)]
pub struct TrafficRequest<'a> {
    /// Settings of the variant.
    pub settings: &'a Settings,
    /// Run id.
    pub run_id: u32,
    /// Packets per second of all senders together; `None` for as fast as possible.
    pub rate_pps: Option<f64>,
    /// Packets of a burst of all senders together; `None` without a limit.
    pub limit: Option<u64>,
    /// Phases: unattended programs end some time after them.
    pub trial: &'a Trial,
    /// Threads of this machine that forward.
    pub threads: &'a [u32],
    /// True if exact arrival times matter more than the cost of immediate polling.
    pub timed: bool,
    /// Flood in addition to the traffic while the window is open, each packet with its own flow.
    pub flood: Option<FloodRequest>,
}

/// A flood of new flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloodRequest {
    /// Packets per second of all senders together.
    pub rate_pps: f64,
    /// Packets in the window.
    pub packets: u64,
}

impl<'a> TrafficRequest<'a> {
    /// Returns the request for each of two directions.
    pub(crate) fn half(&self) -> TrafficRequest<'a> {
        TrafficRequest { rate_pps: self.rate_pps.map(|rate| rate / 2.0), ..*self }
    }

    /// Returns a request for endless traffic as fast as possible, through no thread of this
    /// machine.
    pub fn of(settings: &'a Settings, run_id: u32, trial: &'a Trial) -> TrafficRequest<'a> {
        TrafficRequest {
            settings,
            run_id,
            rate_pps: None,
            limit: None,
            trial,
            threads: &[],
            timed: false,
            flood: None,
        }
    }
}

/// Sender and receiver of a rig.
pub trait Endpoints {
    /// Arms senders and receiver, and opens the CPU account of the working threads.
    ///
    /// # Errors
    /// Returns an error if one of them fails.
    fn arm<'a>(
        &'a self,
        request: &TrafficRequest<'_>,
        findings: &mut Findings,
    ) -> Result<(Box<dyn Armed + 'a>, CpuTimes), BenchError>;

    /// Conditions for opening the window.
    fn awaited(&self, settings: &Settings) -> OpeningConditions;

    /// Adds counters that exist only at the other ends of the DUT's links.
    fn complete(&self, _reading: &mut Reading, _dut: &dyn Dut) {}

    /// Packets between two readings that the device sent and the receiver's interface refused;
    /// `None` if that is not counted.
    fn lost_at_receiver(&self, _before: &Reading, _after: &Reading) -> Option<u64> {
        None
    }

    /// Ceiling that is known without measuring it, packets per second.
    fn known_ceiling_pps(&self, _settings: &Settings) -> Option<f64> {
        None
    }

    /// Facts that do not depend on the run.
    fn facts(&self, settings: &Settings) -> BTreeMap<String, String>;

    /// Returns the sampling profiler for the DUT's CPUs.
    fn profiler<'a>(
        &self,
        host: &'a dyn Host,
        clock: &'a dyn Fn() -> u64,
        plan: &Sampling,
        cpus: &[u16],
        file: &Path,
        _settings: &Settings,
    ) -> Box<dyn Profiler + 'a> {
        Box::new(Perf::prepare(host, clock, plan, cpus, file))
    }
}

/// Armed senders and receiver.
pub trait Armed {
    /// Traffic that a trial drives.
    fn traffic(&mut self) -> &mut dyn Traffic;

    /// Mechanisms and versions in use, by name.
    fn facts(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Ends everything, and returns remarks and facts in addition to the counts.
    ///
    /// # Errors
    /// Returns an error if something fails at the end.
    fn end(self: Box<Self>) -> Result<Outcome, BenchError>;
}

/// Armed ends that consist of their traffic only.
pub struct Plain<T>(pub T);

impl<T: Traffic> Armed for Plain<T> {
    fn traffic(&mut self) -> &mut dyn Traffic {
        &mut self.0
    }

    fn end(self: Box<Self>) -> Result<Outcome, BenchError> {
        Ok(Outcome::default())
    }
}

/// Conditions for opening a trial's window; each of `senders` cycles through all flows.
pub(crate) fn awaited(settings: &Settings, senders: usize) -> OpeningConditions {
    // The flows of other generators are not known in advance.
    let ours = settings.traffic.generator == GeneratorKind::Fwdlab;
    OpeningConditions {
        flows: if ours { settings.traffic.flows.count() } else { 0 },
        // A flow and its answer are one: two directions send it twice.
        senders: senders.max(1) as u32 * settings.traffic.directions.count(),
        states: settings.dut.firewall == Firewall::Stateful,
    }
}
