//! The DUT of a run, whichever it is: the namespace's kernel, or the software router in
//! a process there.

use crate::cpu::Placement;
use crate::dut::counters;
use crate::dut::linux::{Findings, LinuxDut};
use crate::dut::router::{self, RouterDut, Wires};
use crate::dut::{EGRESS, INGRESS, scheduling};
use crate::dut::{path, queues};
use crate::error::BenchError;
use crate::host::{Host, LocalHost, NamespaceHost};
use crate::journal::Journal;
use crate::lab::links::Links;
use crate::testbed::Paths;
use crate::testbed::traffic::NetnsTraffic;
use crate::testbed::wiring::Wiring;
use crate::trial::Traffic;
use fwdlab_model::record::queues::{Direction, counter_name};
use fwdlab_model::record::{Counter, Counts, DropPlace};
use fwdlab_model::router::RouterStats;
use fwdlab_model::settings::{DutKind, Firewall, Settings};

/// The DUT, and the sender's end where a part of its counters is.
pub(super) struct Device<'a> {
    kind: Kind<'a>,
    /// Where frames are counted that found the DUT's ring full.
    sender: Option<NamespaceHost>,
}

/// A DUT that forwards.
enum Kind<'a> {
    // With the kernel threads that poll for it.
    Linux(LinuxDut<'a>, &'a dyn Host, Vec<u32>),
    // Killed when dropped: before its namespace goes.
    Router(RouterDut, &'a dyn Host),
}

/// What a DUT had counted at one time.
pub(super) enum Reading {
    Linux(counters::Reading),
    /// What the router counts, and what the interfaces do.
    Router(RouterStats, counters::Reading),
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
            return Ok(Device { kind: Kind::Router(dut, host), sender: None });
        }
        let dut = LinuxDut::new(host, journal, wires);
        let threads = dut.configure(settings, placement, findings)?;
        Ok(Device { kind: Kind::Linux(dut, host, threads), sender: None })
    }

    /// Lets the DUT read at the sender's end which frames found its ring full.
    pub(super) fn fed_by(
        mut self,
        wiring: &Wiring,
        cpus: &[u16],
    ) -> Result<Device<'a>, BenchError> {
        self.sender = Some(NamespaceHost::new(&wiring.sender, cpus)?);
        Ok(self)
    }

    /// Ids of the threads that forward: those that poll d0 on the DUT's CPUs, or the
    /// router's workers. None where softirqs forward.
    pub(super) fn threads(&self) -> Vec<u32> {
        match &self.kind {
            Kind::Linux(.., threads) => threads.clone(),
            Kind::Router(dut, _) => dut.workers(),
        }
    }

    /// Its counters as they are now.
    pub(super) fn read(&mut self) -> Result<Reading, BenchError> {
        let mut interfaces = counters::read(self.host(), &Links::of_namespaces())?;
        if let Some(sender) = &self.sender {
            // Veth counts a frame that finds the ring full at the sender's end, whatever
            // sent it; at the DUT's only where it was a live frame (`veth_xmit`,
            // `veth_xdp_xmit`), beside frames that an XDP program has dropped after they
            // were received: those are the router's to tell.
            let text = sender.get("/proc/thread-self/net/dev")?;
            let lost = counters::interface_counters(&text, ["g0", "g0"]).into_iter();
            let lost: u64 = lost.filter(|(name, _)| name == "g0 tx_dropped").map(|(_, n)| n).sum();
            let dropped = interfaces.entry(format!("{INGRESS} rx_dropped")).or_default();
            *dropped = match self.kind {
                Kind::Linux(..) => lost.max(*dropped),
                Kind::Router(..) => lost,
            };
        }
        Ok(match &mut self.kind {
            Kind::Linux(..) => Reading::Linux(interfaces),
            Kind::Router(dut, _) => Reading::Router(dut.stats()?, interfaces),
        })
    }

    fn host(&self) -> &'a dyn Host {
        match &self.kind {
            Kind::Linux(_, host, _) | Kind::Router(_, host) => *host,
        }
    }

    /// The same with the packets of each queue. Veth counts what a queue sends where it is
    /// received: queue by queue at the peer.
    pub(super) fn read_all(&mut self, wiring: &Wiring) -> Result<Reading, BenchError> {
        let mut queues = queues::read(self.host(), INGRESS);
        let peer = ["ip", "netns", "exec", wiring.receiver.name(), "ethtool", "-S", "r0"];
        let text = LocalHost.run(&peer, "").unwrap_or_default();
        let sent = queues::packets(&text).into_iter();
        let sent = sent.filter(|((way, _), _)| *way == Direction::Receive);
        queues.extend(
            sent.map(|((_, queue), n)| (counter_name(EGRESS, Direction::Transmit, queue), n)),
        );
        let mut reading = self.read()?;
        let (Reading::Linux(interfaces) | Reading::Router(_, interfaces)) = &mut reading;
        interfaces.extend(queues);
        Ok(reading)
    }

    /// States of its firewall, if it has any.
    pub(super) fn states(&mut self, firewall: &Firewall) -> Option<u64> {
        if *firewall == Firewall::None {
            return None;
        }
        match &mut self.kind {
            Kind::Linux(_, host, _) => counters::states(*host),
            Kind::Router(dut, _) => router::states(&dut.stats().ok()?),
        }
    }

    /// Switches from one variant to another while traffic flows.
    pub(super) fn switch(&self, from: &Settings, to: &Settings) -> Result<(), BenchError> {
        match &self.kind {
            Kind::Linux(dut, ..) => dut.switch(from, to),
            Kind::Router(..) => Err(BenchError::Refused(
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
        match &self.kind {
            Kind::Linux(dut, ..) => dut.verify_live(from, to, findings),
            Kind::Router(..) => Ok(()),
        }
    }

    /// Ends it.
    pub(super) fn down(self) -> Result<(), BenchError> {
        match self.kind {
            // Goes with its namespace.
            Kind::Linux(..) => Ok(()),
            Kind::Router(dut, _) => dut.stop().map(drop),
        }
    }
}

impl Reading {
    /// What was counted since `before`, with what it must be by our own count: that of the
    /// run's packets in all, and as they were at the DUT's interfaces.
    pub(super) fn since(
        &self,
        before: &Reading,
        total: Counts,
        at_the_dut: Counts,
    ) -> Vec<Counter> {
        let links = Links::of_namespaces();
        match (before, self) {
            (Reading::Linux(before), Reading::Linux(after)) => {
                counters::compare(before, after, at_the_dut, &links)
            }
            (Reading::Router(before, first), Reading::Router(after, last)) => {
                let mut all = router::compare(before, after, total);
                all.extend(counters::compare(first, last, at_the_dut, &links));
                all
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
            (Reading::Router(before, first), Reading::Router(after, last)) => {
                let drops = router::drops(before, after, total, receiver);
                let name = format!("{INGRESS} rx_dropped");
                path::with_place(drops, path::ring(INGRESS), path::risen(first, last, &name))
            }
            _ => Vec::new(),
        }
    }
}

/// The DUT's counters with those of its queues, and the packets that arrived and are none
/// of the run's, of one moment: what the DUT sends of its own may come in between, and the
/// two are read again then.
pub(super) fn together(
    traffic: &mut NetnsTraffic,
    dut: &mut Device<'_>,
    wiring: &Wiring,
) -> Result<(Reading, u64), BenchError> {
    let mut others = traffic.snapshot().others();
    let mut tries = 0;
    loop {
        let reading = dut.read_all(wiring)?;
        let again = traffic.snapshot().others();
        tries += 1;
        if again == others || tries == 10 {
            return Ok((reading, again));
        }
        others = again;
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
