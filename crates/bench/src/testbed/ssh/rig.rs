//! The rig of one run: the connected hosts and the variant's DUT.

use super::rack::Rack;
use super::{links, reboot, traffic};
use crate::Observer;
use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::dut::{Dut, Preparation};
use crate::error::BenchError;
use crate::generator::Outcome;
use crate::host::Host;
use crate::lease::Leases;
use crate::links::Links;
use crate::profiler::{Perf, Pmcstat, Profiler, Sampling};
use crate::testbed::LoadModel;
use crate::testbed::cpu_times::CpuTimes;
use crate::testbed::rig::awaited;
use crate::testbed::stopwatch::Stopwatch;
use crate::testbed::{Armed, Endpoints, Parts, Rig, RigLocation, TrafficRequest};
use crate::trial::{Clock, OpeningConditions, SystemClock, Traffic};
use fwdlab_model::lab::System;
use fwdlab_model::plan::Trial;
use fwdlab_model::settings::{Reboot, Settings};
use fwdlab_model::units::{LINE_RATE, line_rate_text};
use fwdlab_model::warning::Warning;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum number of reboots for a variant: for the revision, for its files, and one spare.
const BOOTS_MAX: u32 = 3;
/// perf's file on the DUT.
const PERF: &str = "/var/tmp/fwdlab-perf.data";

/// The rig.
pub(super) struct SshRig<'a> {
    pub(super) dut: Box<dyn Dut + 'a>,
    pub(super) ends: SshEnds<'a>,
    pub(super) leases: &'a Leases,
}

impl Rig for SshRig<'_> {
    /// Writes the files that the DUT reads at boot, and reboots it if needed.
    fn prepare(
        &mut self,
        settings: &Settings,
        _trial: &Trial,
        watch: &mut Stopwatch,
        observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        observer.step("preparing the DUT");
        let reached = self.ends.rack.dut()?;
        self.leases.renew()?;
        let mut boots = 0;
        loop {
            // A new connection after each boot.
            let host = reached.host();
            let prepared = self.dut.prepare(host, settings)?;
            watch.lap("prepare");
            let reasons = match (prepared, settings.dut.remote.reboot) {
                (Preparation::Ready, Reboot::Always) if boots == 0 => {
                    vec!["before every run".to_owned()]
                }
                (Preparation::Ready, _) => return Ok(()),
                (Preparation::Reboot(reasons), Reboot::Never) => {
                    return Err(BenchError::Refused(format!(
                        "reboot = \"never\", but a variant needs one: {}",
                        reasons.join("; ")
                    )));
                }
                (Preparation::Reboot(reasons), _) => reasons,
            };
            let (name, reasons) = (&reached.described.name, reasons.join("; "));
            if boots == BOOTS_MAX {
                return Err(BenchError::environment(
                    format!("{name} has booted {boots} times and needs it again: {reasons}"),
                    "see that it boots from where its files were changed",
                ));
            }
            observer.step(&format!("rebooting {name}: {reasons}"));
            let before = reboot::mark(host)?;
            self.leases.away(name);
            self.dut.reboot(host)?;
            reboot::wait(self.ends.rack, Some(&before), observer)?;
            self.leases.back(name)?;
            watch.lap("reboot");
            boots += 1;
        }
    }

    fn parts(&mut self) -> Result<Parts<'_>, BenchError> {
        let host = self.ends.rack.dut()?.host();
        Ok(Parts {
            host,
            machine: host,
            dut: self.dut.as_mut(),
            links: self.ends.links,
            placement: self.ends.placement,
            ends: &self.ends,
            clock: &SystemClock,
            pressure: LoadModel::OpenLoop,
            reach: RigLocation::Remote { ahead_ns: ahead_ns(host) },
            perf_file: Path::new(PERF),
        })
    }

    /// Settings stay in place; the next run restores those that it does not use.
    fn down(self: Box<Self>) -> Result<Vec<Warning>, BenchError> {
        Ok(Vec::new())
    }
}

/// Senders and receiver of the laboratory.
pub(super) struct SshEnds<'a> {
    pub(super) rack: &'a Rack,
    pub(super) links: &'a Links,
    pub(super) placement: &'a Placement,
}

impl Endpoints for SshEnds<'_> {
    fn arm<'a>(
        &'a self,
        request: &TrafficRequest<'_>,
        _findings: &mut Findings,
    ) -> Result<(Box<dyn Armed + 'a>, CpuTimes), BenchError> {
        let armed = traffic::arm(self.rack, self.links, request)?;
        Ok((Box::new(armed), CpuTimes::none()))
    }

    /// Returns the profiler of the DUT's operating system.
    fn profiler<'a>(
        &self,
        host: &'a dyn Host,
        clock: &'a dyn Fn() -> u64,
        plan: &Sampling,
        cpus: &[u16],
        file: &Path,
        _settings: &Settings,
    ) -> Box<dyn Profiler + 'a> {
        match self.rack.dut().map(|dut| dut.system) {
            Ok(System::FreeBsd) => Box::new(Pmcstat::prepare(host, clock, plan, cpus, file)),
            _ => Box::new(Perf::prepare(host, clock, plan, cpus, file)),
        }
    }

    /// Each sending thread cycles through all flows.
    fn awaited(&self, settings: &Settings) -> OpeningConditions {
        let threads = usize::from(settings.testbed.senders.max(1));
        awaited(settings, self.links.ingress.peers.len() * threads)
    }

    fn facts(&self, settings: &Settings) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::from([
            ("laboratory".to_owned(), self.rack.lab.name.clone()),
            ("generator".to_owned(), settings.traffic.generator.name().to_owned()),
            ("dut CPUs".to_owned(), format!("{:?}", self.placement.dut)),
        ]);
        for reached in self.rack.all() {
            let (described, system) = (&reached.described, reached.system.uname());
            let text = format!("{system} {}", reached.release);
            facts.insert(format!("host {}", described.name), text);
        }
        let speed = links::line_rate_bps(self.rack, self.links);
        facts.extend(speed.map(|bps| (LINE_RATE.to_owned(), line_rate_text(bps))));
        facts
    }
}

impl Armed for traffic::Armed<'_> {
    fn traffic(&mut self) -> &mut dyn Traffic {
        self.as_traffic()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        traffic::Armed::facts(self)
    }

    fn end(self: Box<Self>) -> Result<Outcome, BenchError> {
        traffic::Armed::end(*self)
    }
}

/// Offset of a Linux host's CLOCK_MONOTONIC from this machine's, nanoseconds, accurate to half a
/// round trip; 0 if unknown.
fn ahead_ns(host: &dyn Host) -> i64 {
    let before = SystemClock.now_ns() as i64;
    // "now at N nsecs" in the third line (kernel/time/timer_list.c).
    let output =
        host.run(&["sed", "-n", "s/^now at \\([0-9]*\\) nsecs/\\1/p;3q", "/proc/timer_list"], "");
    let after = SystemClock.now_ns() as i64;
    let host_ns = output.ok().and_then(|text| text.trim().parse::<i64>().ok());
    host_ns.map_or(0, |host_ns| host_ns - (before + after) / 2)
}
