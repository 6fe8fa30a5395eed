//! This machine's kernel as the DUT, in a namespace of its own: what is set there goes with
//! it, and what is the whole machine's is noted by a [`Keeper`].

use super::counters;
use super::keeper::Keeper;
use super::linux::{Findings, Found, LinuxDut};
use super::path;
use super::queues;
use super::{Dut, Reading, Totals};
use crate::cpu::Placement;
use crate::error::BenchError;
use crate::host::Host;
use crate::lab::links::Links;
use fwdlab_model::record::{Counter, Counts, DropPlace};
use fwdlab_model::settings::{Firewall, Settings};

/// The DUT.
pub(super) struct NamespaceDut<'a> {
    keeper: &'a dyn Keeper,
    links: Links,
    found: Found,
    /// Kernel threads that poll for it on CPUs given to them.
    threads: Vec<u32>,
}

impl<'a> NamespaceDut<'a> {
    pub(super) fn new(keeper: &'a dyn Keeper, links: Links) -> NamespaceDut<'a> {
        NamespaceDut { keeper, links, found: Found::default(), threads: Vec::new() }
    }

    fn on<'b>(&'b self, host: &'b dyn Host) -> LinuxDut<'b> {
        LinuxDut::new(host, self.keeper, &self.links, &self.found)
    }
}

impl Dut for NamespaceDut<'_> {
    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        self.threads = self.on(host).configure(settings, placement, findings)?;
        Ok(())
    }

    fn switch(
        &mut self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
    ) -> Result<(), BenchError> {
        self.on(host).switch(from, to)
    }

    fn verify(
        &mut self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        self.on(host).verify_live(from, to, findings)
    }

    fn threads(&self) -> Vec<u32> {
        self.threads.clone()
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
        let (before, after) = (&before.machine, &after.machine);
        let has_firewall = settings.dut.firewall != Firewall::None;
        path::drops(before, after, total, receiver, has_firewall, &self.links)
    }
}
