//! A Linux machine of a laboratory as the DUT.
//!
//! What it is told is what a namespace is told too ([`LinuxDut`]); what only machines have
//! comes on top: interfaces that were there before, interrupts, files, revisions, reboots.
//! Everything but files and revisions is noted on the DUT before it is changed (`undo.rs`),
//! and put back before the next variant is set, so that each begins with the same machine.
//!
//! Left out: the machine's own firewall and addresses. They stay, and what of them
//! forwarded packets would meet is told.

mod firewall;
pub mod interfaces;
mod software;
pub(super) mod undo;

use super::counters;
use super::findings::not_put_back;
use super::linux::{Findings, Found, LinuxDut};
use super::path;
use super::routes;
use super::{Dut, Ground, Prepared, Reading, Totals, queues};
use crate::cpu::Placement;
use crate::error::BenchError;
use crate::host::Host;
use crate::lab::links::Links;
use firewall::Loaded;
use fwdlab_model::record::{Counter, Counts, DropPlace};
use fwdlab_model::settings::{Firewall, Settings};
use std::path::PathBuf;
use undo::Undo;

/// The DUT.
pub struct LinuxRemote {
    links: Links,
    /// Directory that the experiment's files lie in.
    experiment: PathBuf,
    loaded: Loaded,
    found: Found,
}

impl LinuxRemote {
    pub(super) fn new(ground: Ground<'_>) -> LinuxRemote {
        let Ground { links, experiment, .. } = ground;
        let (links, experiment) = (links.clone(), experiment.to_path_buf());
        LinuxRemote { links, experiment, loaded: Loaded::default(), found: Found::default() }
    }
}

impl Dut for LinuxRemote {
    /// At the speed of the network: a few round trips.
    fn switch(
        &mut self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
    ) -> Result<(), BenchError> {
        if from.dut.firewall != to.dut.firewall {
            self.loaded.load(host, to)?;
        }
        // The rest is as in a namespace.
        let mut same = from.clone();
        same.dut.firewall = to.dut.firewall.clone();
        LinuxDut::new(host, &Undo, &self.links, &self.found).switch(&same, to)
    }

    fn verify(
        &mut self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let dut = LinuxDut::new(host, &Undo, &self.links, &self.found);
        if from.dut.firewall != to.dut.firewall {
            self.loaded.verify(host, to, findings)?;
            if to.dut.firewall == Firewall::Stateful {
                dut.room_for_states(to, findings)?;
            }
        }
        dut.verify_sysctls(&to.dut.sysctl, findings)
    }

    fn prepare(&mut self, host: &dyn Host, settings: &Settings) -> Result<Prepared, BenchError> {
        let remote = &settings.dut.remote;
        let mut reasons = software::lay(host, remote.overlay.as_ref())?;
        if let Some(revision) = &remote.revision {
            reasons.extend(software::install(host, revision, &self.experiment)?);
        }
        let reasons = undo::reboot_for(host, &reasons)?;
        Ok(if reasons.is_empty() { Prepared::Ready } else { Prepared::Reboot(reasons) })
    }

    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        match Undo.undo(host) {
            // The others are put back, and this variant's own settings are read back below.
            Err(left @ BenchError::NotPutBack { .. }) => {
                findings.warnings.push(not_put_back(left));
            }
            other => other?,
        }
        self.loaded = Loaded::default();
        self.found = Found::default();
        if let Some(revision) = &settings.dut.remote.revision {
            software::check(host, revision, findings)?;
        }
        routes::keep_ways_of(settings, &self.links)?;
        let dut = LinuxDut::new(host, &Undo, &self.links, &self.found);
        dut.forwarding(settings)?;
        interfaces::configure(host, &self.links, settings, placement, findings)?;
        interfaces::wait_for_signal(host, &self.links)?;
        dut.routes(settings, findings)?;
        self.loaded.load(host, settings)?;
        self.loaded.verify(host, settings, findings)?;
        if settings.dut.firewall == Firewall::Stateful {
            dut.room_for_states(settings, findings)?;
        }
        dut.sysctls(&settings.dut.sysctl, findings)
    }

    fn read(&mut self, host: &dyn Host) -> Result<Reading, BenchError> {
        let machine = counters::read(host, &self.links)?;
        Ok(Reading { machine, ..Reading::default() })
    }

    fn queues(&self, host: &dyn Host) -> counters::Reading {
        let links = self.links.both().into_iter();
        links.flat_map(|link| queues::read(host, &link.interface)).collect()
    }

    fn states(&mut self, host: &dyn Host, firewall: &Firewall) -> Option<u64> {
        if *firewall == Firewall::None { None } else { counters::states(host) }
    }

    fn compare(&self, before: &Reading, after: &Reading, totals: Totals) -> Vec<Counter> {
        counters::compare(&before.machine, &after.machine, totals.at_interfaces, &self.links)
    }

    fn drops(
        &self,
        before: &Reading,
        after: &Reading,
        total: Counts,
        receiver: u64,
        settings: &Settings,
    ) -> Vec<DropPlace> {
        let has_firewall = settings.dut.firewall != Firewall::None;
        path::drops(&before.machine, &after.machine, total, receiver, has_firewall, &self.links)
    }

    fn undo(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        let undone = Undo.undo(host);
        self.loaded = Loaded::default();
        let lifted = software::lay(host, None);
        if let Ok(lifted) = lifted.as_ref()
            && !lifted.is_empty()
        {
            undo::reboot_for(host, lifted)?;
        }
        undone.and(lifted.map(drop))
    }
}
