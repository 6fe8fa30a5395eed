//! The testbed `ssh`: a laboratory of several hosts.
//!
//! Runs proceed as on every testbed; the hosts do the work and this machine controls them. A run
//! that fails because a connection or the DUT was lost is retried once; after a second failure the
//! variant is given up for this invocation, and the rest of the plan continues (`reboot.rs`,
//! [`BenchError::GivenUp`]).
//!
//! Limits: cabling is discovered by sending packets only; hosts are not installed; rates are
//! measured by the senders' clocks, which are not compared with each other.

mod links;
mod places;
mod rack;
mod reboot;
mod rig;
mod traffic;

use super::{Choice, Paths, Rig, Testbed, TrafficRequest};
use crate::cpu::Placement;
use crate::dut::freebsd::system::Boot;
use crate::dut::router::Wires;
use crate::dut::routes::keep_ways_of;
use crate::dut::undo::Undo;
use crate::dut::{self, Dut, DutContext, Totals};
use crate::error::BenchError;
use crate::host::connected::ConnectedHost;
use crate::lease::{Leases, Watch};
use crate::links::Links;
use crate::trial::Observed;
use crate::{Observer, Task, calibrate, environment};
use fwdlab_model::lab::System;
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::record::{Calibration, Environment};
use fwdlab_model::settings::{Arrangement, DutKind, FirewallProgram, Settings, TestbedKind};
use rack::Rack;
use rig::{SshEnds, SshRig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The testbed. The order of its fields is the order of release: the leases end while the hosts are
/// connected, the connections before their places are given back.
pub struct Ssh {
    leases: Leases,
    rack: Rack,
    links: Links,
    placement: Placement,
    experiment: PathBuf,
    /// Boot id of the DUT when the current run began.
    boot: Boot,
    choice: Choice,
    /// True if all changes are restored, and nothing has changed since.
    is_closed: bool,
    stop: Arc<AtomicBool>,
}

impl Ssh {
    /// Connects to the hosts of the plan's laboratory, takes their leases, and restores settings
    /// that a killed process left on the DUT.
    ///
    /// Returns an error if the lab file is invalid, a host cannot be reached, belongs to another
    /// controller or is marked sick, or the laboratory does not support the plan.
    pub fn open(plan: &Plan, paths: &Paths) -> Result<Ssh, BenchError> {
        let file = plan.base.testbed.lab.as_ref().ok_or_else(|| {
            BenchError::Refused(
                "an experiment over ssh needs a laboratory: write lab = \"lab.toml\" into [testbed]"
                    .into(),
            )
        })?;
        let file = paths.experiment.join(file);
        let has = |kind| plan.variants.iter().any(|v| v.settings.dut.kind == kind);
        let mut rack = Rack::open(&file, paths)?;
        let system = rack.dut()?.system;
        plan.variants.iter().try_for_each(|variant| check(&variant.settings, system))?;
        // Before anything else: waiting for the hosts must not disturb a measurement that uses
        // them.
        let leases = Leases::take(rack.all(), &rack.lab)?;
        rack.bring_agents(&paths.program, plan.base.traffic.generator, has(DutKind::Router))?;
        let links = links::resolve(&rack)?;
        plan.variants.iter().try_for_each(|variant| keep_ways_of(&variant.settings, &links))?;
        let placement = placement(rack.dut()?);
        let choice =
            Choice { kind: TestbedKind::Ssh, simulated: false, reasons: reasons(&rack, &links) };
        let experiment = paths.experiment.clone();
        let boot = Boot(String::new());
        let (is_closed, stop) = (true, paths.stop.clone());
        let mut ssh =
            Ssh { leases, rack, links, placement, experiment, boot, choice, is_closed, stop };
        match ssh.undo_or_mark() {
            // Reported, but not fatal: the other settings were restored.
            Err(left @ BenchError::NotPutBack { .. }) => ssh.choice.reasons.push(left.to_string()),
            undone => undone?,
        }
        ssh.is_closed = false;
        Ok(ssh)
    }

    /// The DUT kind for its kernel: it can restore changes of any kind there.
    fn kernel(&self) -> Result<DutKind, BenchError> {
        Ok(match self.rack.dut()?.system {
            System::Linux => DutKind::Linux,
            System::FreeBsd => DutKind::Freebsd,
        })
    }

    /// Restores the settings of the DUT. If that fails as a whole, and again over a new connection,
    /// although the DUT responds, marks it sick: it must be inspected before it measures again.
    /// Does not mark it if the user has asked to stop: Ctrl-C also reaches the local programs that
    /// restore the settings, and the next process restores them.
    fn undo_or_mark(&mut self) -> Result<(), BenchError> {
        let is_over = |undone: &Result<(), BenchError>| {
            matches!(undone, Ok(()) | Err(BenchError::NotPutBack { .. }))
        };
        let undone = self.undo();
        if is_over(&undone) || is_stopped(&self.stop) {
            return undone;
        }
        self.rack.dut()?.reconnect();
        let undone = self.undo();
        let dut = self.rack.dut()?;
        let error = match undone {
            Err(error) if !matches!(error, BenchError::NotPutBack { .. }) => error,
            undone => return undone,
        };
        if is_stopped(&self.stop) || reboot::mark(dut.host()).is_err() {
            return Err(error);
        }
        let name = &dut.described.name;
        let why = format!("the settings of {name} can't be restored: {error}");
        Err(reboot::is_sick(&self.rack, name, &why, "look what is wrong with it; "))
    }

    fn undo(&mut self) -> Result<(), BenchError> {
        let host = self.rack.dut()?.host();
        self.device(self.kernel()?)?.undo(host)
    }

    /// Opens a DUT of a kind on the DUT's host.
    fn device(&self, kind: DutKind) -> Result<Box<dyn Dut + '_>, BenchError> {
        Ok(dut::open(
            kind,
            DutContext {
                links: &self.links,
                experiment: &self.experiment,
                program: Path::new(&self.rack.dut()?.program),
                keeper: &Undo,
                wires: &Wires::Sockets,
            },
        ))
    }

    /// Runs one trial whose packets are counted as they reach the DUT's interface.
    fn up_to_the_dut(
        &self,
        settings: &Settings,
        trial: &Trial,
        run_id: u32,
        observer: &mut dyn Observer,
    ) -> Result<Observed, BenchError> {
        let (host, mut dut) = (self.rack.dut()?.host(), self.device(self.kernel()?)?);
        let request = TrafficRequest::of(settings, run_id, trial);
        let mut armed = traffic::arm(&self.rack, &self.links, &request)?;
        let before = dut.read(host)?;
        let mut observed = crate::trial::plain(armed.as_traffic(), trial, None, observer)?;
        armed.end()?;
        let passed = observed.passed();
        let totals = Totals { passed, at_interfaces: passed, ..Totals::default() };
        let (_, counters) = super::RigLocation::Remote { ahead_ns: 0 }.settled(|| {
            let after = dut.read(host)?;
            let counters = dut.compare(&before, &after, totals);
            Ok((after, counters))
        })?;
        // The senders' counts, limited to the count of the DUT's interface.
        let sum = format!("{} rx_packets + rx_dropped", self.links.ingress.interface);
        let arrived = counters.iter().find(|counter| counter.name == sum);
        let share = arrived
            .map_or(1.0, |counter| counter.delta() as f64 / observed.total.offered.max(1) as f64);
        observed.window.forwarded = (observed.window.offered as f64 * share.min(1.0)) as u64;
        Ok(observed)
    }
}

/// Returns true if the user has asked to stop. Ctrl-C may reach the child programs, whose failure
/// is in question, a moment before this process, whose signal thread may have to wait for a CPU:
/// waits up to a second for it.
fn is_stopped(stop: &AtomicBool) -> bool {
    let until = Instant::now() + Duration::from_secs(1);
    loop {
        let is_stopped = stop.load(Ordering::Relaxed);
        if is_stopped || Instant::now() >= until {
            return is_stopped;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // The next process restores anything that cannot be restored now.
        let _ = self.close();
    }
}

impl Testbed for Ssh {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn place(&self, _settings: &Settings) -> Placement {
        self.placement.clone()
    }

    fn lease(&self) -> Option<Watch> {
        Some(self.leases.watch())
    }

    fn begin(&mut self, observer: &mut dyn Observer) -> Result<(), BenchError> {
        self.boot = reboot::insist(&self.rack, observer, || reboot::mark(self.rack.dut()?.host()))?;
        Ok(())
    }

    fn recover(&mut self, observer: &mut dyn Observer) -> Result<Option<String>, BenchError> {
        observer.step("finding the hosts again");
        let has_booted = reboot::recover(&self.rack, &self.boot, &self.leases, observer)?;
        let dut = &self.rack.dut()?.described.name;
        Ok(has_booted.then(|| format!("{dut} has booted meanwhile")))
    }

    fn close(&mut self) -> Result<(), BenchError> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        // Other hosts may be unreachable: only the DUT's lease matters.
        let dut = self.rack.dut()?;
        let name = &dut.described.name;
        let is_ours = self.leases.keeps(name).or_else(|_| {
            dut.reconnect();
            self.leases.keeps(name)
        });
        match is_ours {
            Ok(true) => self.undo_or_mark(),
            // The current holder of the DUT has restored all changes.
            Ok(false) => Ok(()),
            Err(error) => Err(BenchError::environment(
                format!("the settings of {name} are not restored: {error}"),
                "make it reachable: the next run restores them",
            )),
        }
    }

    fn stand<'a>(
        &'a mut self,
        task: Task<'a>,
        _observer: &mut dyn Observer,
    ) -> Result<Box<dyn Rig + 'a>, BenchError> {
        let settings = &task.plan.variants[task.run.variants[0]].settings;
        let this = &*self;
        let dut = this.device(settings.dut.kind)?;
        let ends = SshEnds { rack: &this.rack, links: &this.links, placement: &this.placement };
        Ok(Box::new(SshRig { dut, ends, leases: &this.leases }))
    }

    fn calibrate(
        &mut self,
        plan: &Plan,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Calibration, BenchError> {
        self.leases.renew()?;
        let key = self.calibration_key(settings);
        let host = self.rack.dut()?.host();
        // Packets are counted at ingress: forwarding does not matter.
        let mut settings_of_kernel = settings.clone();
        settings_of_kernel.dut.kind = self.kernel()?;
        let findings = &mut Default::default();
        let placement = &self.placement;
        self.device(self.kernel()?)?.configure(host, &settings_of_kernel, placement, findings)?;
        calibrate::measure(plan, settings, key, &mut |trial, run_id| {
            self.up_to_the_dut(settings, trial, run_id, observer)
        })
    }

    /// Returns the DUT's environment, and a few lines about this machine, the controller.
    fn environment(&self, version: &str) -> Environment {
        let Environment(controller) = environment::capture(version);
        let Ok(dut) = self.rack.dut() else { return Environment(controller) };
        let Environment(mut sections) = match dut.system {
            System::Linux => environment::of_linux(dut.host(), version),
            System::FreeBsd => environment::of_freebsd(dut.host(), version),
        };
        let of = |section: &str, key: &str| {
            let value = controller.get(section).and_then(|section| section.get(key)).cloned();
            value.map(|value| (key.to_owned(), value))
        };
        let kept = [of("cpu", "model"), of("kernel", "release"), of("system", "os")];
        sections.insert("controller".into(), kept.into_iter().flatten().collect());
        Environment(sections)
    }

    fn calibration_key(&self, settings: &Settings) -> String {
        let (testbed, traffic) = (&settings.testbed, &settings.traffic);
        let stamps = if traffic.timestamps { ", time stamps" } else { "" };
        format!(
            "ssh {}, {} x {} threads of {} ({}) to the DUT's interface{stamps}",
            self.rack.lab.name,
            self.links.ingress.peers.len(),
            testbed.senders,
            traffic.generator.name(),
            testbed.engine.name(),
        )
    }
}

/// CPUs of the DUT: those that the lab file names, otherwise all.
fn placement(dut: &ConnectedHost) -> Placement {
    let all = || (0..u16::try_from(dut.cpus).unwrap_or(u16::MAX)).collect();
    let named = &dut.described.cpus;
    Placement::of_dut(if named.is_empty() { all() } else { named.clone() })
}

/// Performs the checks that need no query to the DUT.
fn check(settings: &Settings, system: System) -> Result<(), BenchError> {
    let refused = |why: String| Err(BenchError::Refused(why));
    let (kind, program) = (settings.dut.kind, settings.dut.remote.firewall_program);
    if !kind.row().systems.contains(&system) {
        return refused(format!(
            "the experiment is for {}, and the laboratory's DUT runs {}: write kind = \"{}\" \
             into [dut]",
            kind.name(),
            system.uname(),
            system.name()
        ));
    }
    if settings.testbed.arrangement == Arrangement::Closed {
        return refused(
            "arrangement = \"closed\" is for one machine: hosts of a laboratory have CPUs of their \
             own"
            .into(),
        );
    }
    let is_linux =
        matches!(program, FirewallProgram::Auto | FirewallProgram::Nft | FirewallProgram::Iptables);
    if system == System::Linux && !is_linux {
        return refused(format!("firewall_program = \"{}\" is FreeBSD's", program.name()));
    }
    Ok(())
}

fn reasons(rack: &Rack, links: &Links) -> Vec<String> {
    let mut reasons = vec![format!("laboratory {}, as the experiment asks", rack.lab.name)];
    for reached in rack.all() {
        let described = &reached.described;
        let roles: Vec<&str> = described.roles.iter().map(|role| role.name()).collect();
        reasons.push(format!(
            "{}: {}, {} {}",
            described.name,
            roles.join(" and "),
            reached.system.uname(),
            reached.release
        ));
    }
    for link in links.both() {
        for peer in &link.peers {
            reasons.push(format!("{}:{} - {}", peer.host, peer.interface, link.interface));
        }
    }
    reasons
}
