//! A laboratory of several hosts, reached by ssh.
//!
//! A run is prepared, configured, tried with a few packets, measured as on every testbed,
//! and read out; the hosts do the work and this machine only asks. What fails because a
//! connection or the DUT was lost is done once more; what fails again is given up for this
//! sitting, and the rest of the plan goes on (`reboot.rs`, [`BenchError::GivenUp`]).
//!
//! Left out: where the cables lead is found out by sending, not by asking; hosts are not
//! installed; a rate is measured by the senders' clocks, which nobody compares.

mod dut;
mod links;
mod lock;
mod profile;
mod rack;
mod reboot;
mod run;
mod traffic;

use super::{Choice, Paths, Testbed};
use crate::cpu::Placement;
use crate::dut::freebsd::FreebsdDut;
use crate::dut::linux_remote::LinuxRemote;
use crate::dut::routes::keep_ways_of;
use crate::error::BenchError;
use crate::host::Host;
use crate::lab::links::Links;
use crate::profiler::RawProfile;
use crate::trial::{Observed, longest_ns};
use crate::{Observer, Task, calibrate, environment};
use dut::Dut;
use fwdlab_model::lab::System;
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{Calibration, Environment, ProfileRecord, RunRecord};
use fwdlab_model::settings::{Arrangement, DutKind, FirewallProgram, Settings};
use lock::Locks;
use rack::Rack;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a host is ours beyond a run's phases.
const HELD: Duration = Duration::from_secs(1800);

/// The testbed.
pub struct Ssh {
    rack: Rack,
    links: Links,
    dut: Dut,
    locks: Locks,
    placement: Placement,
    /// Variants that are not tried again in this sitting, with the reason.
    given_up: BTreeMap<usize, String>,
    choice: Choice,
}

impl Ssh {
    /// Reaches the hosts of the plan's laboratory, takes them, and puts back what a
    /// predecessor that was killed has left on the DUT.
    ///
    /// # Errors
    /// When the lab's file has faults or asks for what can't be, a host can't be reached
    /// or is another controller's, or the plan does not go with the laboratory.
    pub fn open(plan: &Plan, paths: &Paths) -> Result<Ssh, BenchError> {
        let file = plan.base.testbed.lab.as_ref().ok_or_else(|| {
            BenchError::Refused(
                "an experiment over ssh needs a laboratory: write lab = \"lab.toml\" into [testbed]"
                    .into(),
            )
        })?;
        let file = paths.experiment.join(file);
        let rack = Rack::open(&file, &paths.program, plan.base.traffic.generator)?;
        let dut = rack.dut()?;
        plan.variants.iter().try_for_each(|variant| check(&variant.settings, dut.system, plan))?;
        let links = links::resolve(&rack)?;
        plan.variants.iter().try_for_each(|variant| keep_ways_of(&variant.settings, &links))?;
        let placement = placement(dut);
        let remote = match dut.system {
            System::Linux => Dut::Linux(LinuxRemote::new(
                links.clone(),
                placement.clone(),
                paths.experiment.clone(),
            )),
            System::FreeBsd => {
                Dut::Freebsd(FreebsdDut::new(links.clone(), paths.experiment.clone()))
            }
        };
        let locks = Locks::take(&rack, held(&plan.trial))?;
        let choice = Choice { kind: "ssh", simulated: false, reasons: reasons(&rack, &links) };
        let given_up = BTreeMap::new();
        let mut ssh = Ssh { rack, links, dut: remote, locks, placement, given_up, choice };
        match ssh.dut.remote().undo(ssh.rack.dut()?.host()) {
            // Told, and no reason not to start: the rest is as it was.
            Err(left @ BenchError::NotPutBack { .. }) => ssh.choice.reasons.push(left.to_string()),
            other => other?,
        }
        Ok(ssh)
    }

    /// The DUT and where it is.
    fn reached(&mut self) -> Result<(&dyn Host, &mut Dut), BenchError> {
        Ok((self.rack.dut()?.host(), &mut self.dut))
    }

    /// One trial whose packets are counted as they reach the DUT's interface.
    fn up_to_the_dut(
        &mut self,
        settings: &Settings,
        trial: &Trial,
        run_id: u32,
        observer: &mut dyn Observer,
    ) -> Result<Observed, BenchError> {
        let host = self.rack.dut()?.host();
        let wanted = traffic::Wanted { settings, run_id, rate_pps: None, trial };
        let mut armed = traffic::arm(&self.rack, &self.links, &wanted)?;
        let before = self.dut.remote().read(host)?;
        let mut observed = run::trial(&mut armed, trial, observer)?;
        armed.end()?;
        let counters =
            run::settled(&mut self.dut, host, &self.links, &before, observed.passed())?.1;
        // What the senders believe to have sent, as far as the DUT's interface saw it.
        let seen = counters.iter().find(|counter| counter.expected == Some(observed.total.offered));
        let share = seen
            .map_or(1.0, |counter| counter.delta() as f64 / observed.total.offered.max(1) as f64);
        observed.window.forwarded = (observed.window.offered as f64 * share.min(1.0)) as u64;
        Ok(observed)
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // What can't be put back now is put back by whoever comes next.
        if let Ok((host, dut)) = self.reached() {
            let _ = dut.remote().undo(host);
        }
        self.locks.release(&self.rack);
    }
}

impl Testbed for Ssh {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn run(
        &mut self,
        task: Task<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let variant = task.run.variants[0];
        if let Some(why) = self.given_up.get(&variant) {
            return Err(BenchError::GivenUp { variant, why: why.clone() });
        }
        self.insist(task, observer)
    }

    fn calibrate(
        &mut self,
        plan: &Plan,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Calibration, BenchError> {
        let key = self.calibration_key(settings);
        let (host, dut) = self.reached()?;
        dut.remote().configure(host, settings, &mut Default::default())?;
        calibrate::measure(plan, settings, key, &mut |trial, run_id| {
            self.up_to_the_dut(settings, trial, run_id, observer)
        })
    }

    fn profile(
        &mut self,
        task: Task<'_>,
        plan: &ProfilePlan,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        self.execute_profile(task, plan, observer)
    }

    /// The DUT's, and a few lines about this machine, which controls.
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

/// Time for which a host is taken.
fn held(trial: &Trial) -> Duration {
    HELD + Duration::from_nanos(2 * longest_ns(trial))
}

/// CPUs of the DUT: those that the file names, else all.
fn placement(dut: &rack::Reached) -> Placement {
    let all = || (0..u16::try_from(dut.cpus).unwrap_or(u16::MAX)).collect();
    let named = &dut.described.cpus;
    Placement {
        senders: Vec::new(),
        dut: if named.is_empty() { all() } else { named.clone() },
        receiver: Vec::new(),
        control: Vec::new(),
        arrangement: Arrangement::Open,
        fallback: None,
    }
}

/// What of a plan can be said before anything is asked of the DUT.
fn check(settings: &Settings, system: System, plan: &Plan) -> Result<(), BenchError> {
    let refused = |why: String| Err(BenchError::Refused(why));
    let (kind, program) = (settings.dut.kind, settings.dut.remote.firewall_program);
    match (kind, system) {
        (DutKind::Linux, System::Linux) | (DutKind::Freebsd, System::FreeBsd) => {}
        (DutKind::Router, _) => {
            return refused("fwdlab's own router does not run in laboratories yet".into());
        }
        _ => {
            return refused(format!(
                "the experiment is for {}, and the laboratory's DUT runs {}: write kind = \"{}\" \
                 into [dut]",
                kind.name(),
                system.uname(),
                system.name()
            ));
        }
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
    if system != System::Linux && plan.design.alternate_ns.is_some() {
        return refused(
            "only a Linux DUT can be switched while traffic flows: remove `alternate`".into(),
        );
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
