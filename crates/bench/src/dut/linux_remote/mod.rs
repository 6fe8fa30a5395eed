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
mod undo;

use super::counters::{self, Reading};
use super::findings::not_put_back;
use super::linux::{Findings, LinuxDut};
use super::path;
use super::remote::{Prepared, RemoteDut};
use super::routes;
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
#[derive(Debug)]
pub struct LinuxRemote {
    links: Links,
    placement: Placement,
    /// Directory that the experiment's files lie in.
    experiment: PathBuf,
    loaded: Loaded,
}

impl LinuxRemote {
    /// A DUT between `links`, with its CPUs for traffic.
    pub fn new(links: Links, placement: Placement, experiment: PathBuf) -> LinuxRemote {
        LinuxRemote { links, placement, experiment, loaded: Loaded::default() }
    }

    /// Switches from one variant to another while traffic flows, at the speed of the
    /// network: a few round trips.
    ///
    /// # Errors
    /// As [`RemoteDut::configure`].
    pub fn switch(
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
        LinuxDut::new(host, &Undo, &self.links).switch(&same, to)
    }

    /// Reads back what [`LinuxRemote::switch`] has changed.
    ///
    /// # Errors
    /// When something can't be read.
    pub fn verify_live(
        &self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let dut = LinuxDut::new(host, &Undo, &self.links);
        if from.dut.firewall != to.dut.firewall {
            self.loaded.verify(host, to, findings)?;
            if to.dut.firewall == Firewall::Stateful {
                dut.room_for_states(to, findings)?;
            }
        }
        dut.verify_sysctls(&to.dut.sysctl, findings)
    }
}

impl RemoteDut for LinuxRemote {
    fn prepare(&mut self, host: &dyn Host, settings: &Settings) -> Result<Prepared, BenchError> {
        let remote = &settings.dut.remote;
        let mut reasons = software::lay(host, remote.overlay.as_ref())?;
        if let Some(revision) = &remote.revision {
            reasons.extend(software::install(host, revision, &self.experiment)?);
        }
        let reasons = undo::reboot_for(host, &reasons)?;
        Ok(if reasons.is_empty() { Prepared::Ready } else { Prepared::Reboot(reasons) })
    }

    fn reboot(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        match host.run(&["reboot"], "") {
            // The connection went with the machine.
            Ok(_) | Err(BenchError::Environment { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
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
        if let Some(revision) = &settings.dut.remote.revision {
            software::check(host, revision, findings)?;
        }
        routes::keep_ways_of(settings, &self.links)?;
        let dut = LinuxDut::new(host, &Undo, &self.links);
        dut.forwarding(settings)?;
        interfaces::configure(host, &self.links, settings, &self.placement, findings)?;
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
        counters::read(host, &self.links)
    }

    fn compare(&self, before: &Reading, after: &Reading, total: Counts) -> Vec<Counter> {
        counters::compare(before, after, total, &self.links)
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
        path::drops(before, after, total, receiver, has_firewall, &self.links)
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
