//! The DUT of a run, whichever it is: the namespace's kernel, or the software router in
//! a process there.

use crate::cpu::Placement;
use crate::dut::counters;
use crate::dut::linux::{Findings, LinuxDut};
use crate::dut::path;
use crate::dut::router::{self, RouterDut, Wires};
use crate::dut::{EGRESS, INGRESS, scheduling};
use crate::error::BenchError;
use crate::host::Host;
use crate::journal::Journal;
use crate::lab::links::Links;
use crate::testbed::Paths;
use fwdlab_model::record::{Counter, Counts, DropPlace};
use fwdlab_model::router::RouterStats;
use fwdlab_model::settings::{DutKind, Firewall, Settings};

/// A DUT that forwards.
pub(super) enum Device<'a> {
    Linux(LinuxDut<'a>, &'a dyn Host),
    // Killed when dropped: before its namespace goes.
    Router(RouterDut),
}

/// What a DUT had counted at one time.
pub(super) enum Reading {
    Linux(counters::Reading),
    Router(RouterStats),
}

impl<'a> Device<'a> {
    /// Sets the DUT up in the namespace `host`.
    pub(super) fn up(
        host: &'a dyn Host,
        journal: &'a Journal,
        wires: &'a Links,
        paths: &Paths,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<Device<'a>, BenchError> {
        if settings.dut.kind == DutKind::Router {
            links(host)?;
            scheduling::apply(host, wires, settings, placement, findings)?;
            let (ports, files) = (Wires::Sockets, &paths.experiment);
            let setup = router::setup(settings, &placement.dut, &ports, files);
            let (dut, stats) = RouterDut::start(host, &paths.program, &setup)?;
            router::record_facts(&stats, findings);
            return Ok(Device::Router(dut));
        }
        let dut = LinuxDut::new(host, journal, wires);
        dut.configure(settings, placement, findings)?;
        Ok(Device::Linux(dut, host))
    }

    /// Its counters as they are now.
    pub(super) fn read(&mut self) -> Result<Reading, BenchError> {
        Ok(match self {
            Device::Linux(_, host) => {
                Reading::Linux(counters::read(*host, &Links::of_namespaces())?)
            }
            Device::Router(dut) => Reading::Router(dut.stats()?),
        })
    }

    /// Switches from one variant to another while traffic flows.
    pub(super) fn switch(&self, from: &Settings, to: &Settings) -> Result<(), BenchError> {
        match self {
            Device::Linux(dut, _) => dut.switch(from, to),
            Device::Router(_) => Err(BenchError::Refused(
                "the router can't be switched while traffic flows: remove `alternate`".into(),
            )),
        }
    }

    /// Reads back what [`Device::switch`] has just changed.
    pub(super) fn verify_live(
        &self,
        from: &Settings,
        to: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        match self {
            Device::Linux(dut, _) => dut.verify_live(from, to, findings),
            Device::Router(_) => Ok(()),
        }
    }

    /// Ends it.
    pub(super) fn down(self) -> Result<(), BenchError> {
        match self {
            // Goes with its namespace.
            Device::Linux(..) => Ok(()),
            Device::Router(dut) => dut.stop().map(drop),
        }
    }
}

impl Reading {
    /// What was counted since `before`, with what it must be by our own count.
    pub(super) fn since(&self, before: &Reading, total: Counts) -> Vec<Counter> {
        match (before, self) {
            (Reading::Linux(before), Reading::Linux(after)) => {
                counters::compare(before, after, total, &Links::of_namespaces())
            }
            (Reading::Router(before), Reading::Router(after)) => {
                router::compare(before, after, total)
            }
            _ => Vec::new(),
        }
    }

    /// Where packets were lost since `before`.
    pub(super) fn drops_since(
        &self,
        before: &Reading,
        total: Counts,
        receiver: u64,
        firewall: &Firewall,
    ) -> Vec<DropPlace> {
        match (before, self) {
            (Reading::Linux(before), Reading::Linux(after)) => {
                let links = Links::of_namespaces();
                path::drops(before, after, total, receiver, *firewall != Firewall::None, &links)
            }
            (Reading::Router(before), Reading::Router(after)) => {
                router::drops(before, after, total, receiver)
            }
            _ => Vec::new(),
        }
    }
}

/// Brings the links up, without addresses: the kernel shall neither answer nor send.
/// GRO makes veth poll, which frames that are redirected into it need.
fn links(host: &dyn Host) -> Result<(), BenchError> {
    for interface in [INGRESS, EGRESS] {
        let text = format!("link set {interface} addrgenmode none\nlink set {interface} up\n");
        host.run(&["ip", "-batch", "-"], &text)?;
        host.run(&["ethtool", "-K", interface, "gro", "on", "tso", "off", "gso", "off"], "")?;
    }
    Ok(())
}
