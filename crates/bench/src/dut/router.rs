//! fwdlab's own software router: a process of its own, `fwdlab route --control`.
//!
//! It is told its set-up as a line of JSON and asked for its counters the same way, so
//! that whoever measures it shares nothing with it but pipes, and the wires or sockets
//! that packets take.

use super::path::told;
use super::{EGRESS, INGRESS, linux::Findings, linux::mac, routes};
use crate::dut::routes::Route;
use crate::error::BenchError;
use crate::host::{Host, Running};
use crate::lab::links::Links;
use fwdlab_model::record::queues::{Direction, counter_name};
use fwdlab_model::record::{Counter, Counts, DropPlace};
use fwdlab_model::router::{
    InterfaceSetup, NeighbourSetup, PortKind, RouterSetup, RouterStats, Synthesised,
};
use fwdlab_model::settings::{Family, Firewall, RouterPort, Settings};
use fwdlab_packet::address::{Side, dut_address, peer_address, routed_prefix};
use fwdlab_packet::forwarding::Class;
use std::path::Path;
use std::time::Duration;

/// Longest time to build tables: a million routes take some seconds.
const START: Duration = Duration::from_secs(60);
/// Longest time until it answers.
const ANSWER: Duration = Duration::from_secs(5);

/// A router that runs. Dropping it kills it.
pub struct RouterDut {
    program: Box<dyn Running>,
    name: String,
}

impl RouterDut {
    /// Starts `program` (this one) as a router and waits until it forwards.
    ///
    /// # Errors
    /// When it can't be started, or refuses its set-up: what it says is quoted.
    pub fn start(
        host: &dyn Host,
        program: &Path,
        setup: &RouterSetup,
    ) -> Result<(RouterDut, RouterStats), BenchError> {
        let path = program.to_string_lossy();
        let mut dut = RouterDut {
            program: host.spawn(&[&path, "route", "--control"])?,
            name: host.name().to_owned(),
        };
        let setup = serde_json::to_string(setup)
            .map_err(|error| BenchError::Refused(format!("a router's set-up: {error}")))?;
        // A router that ended at once reads nothing: what it said counts, not that.
        let _ = dut.program.tell(&setup);
        let stats = dut.hear(START)?;
        Ok((dut, stats))
    }

    /// Its counters as they are now.
    ///
    /// # Errors
    /// When it has ended.
    pub fn stats(&mut self) -> Result<RouterStats, BenchError> {
        // As above.
        let _ = self.program.tell("stats");
        self.hear(ANSWER)
    }

    /// Ids of its workers' threads.
    pub fn workers(&self) -> Vec<u32> {
        self.program.threads("router/")
    }

    /// Ends it, and returns its last counters.
    ///
    /// # Errors
    /// When it has ended before, or did not end well.
    pub fn stop(mut self) -> Result<RouterStats, BenchError> {
        let _ = self.program.tell("stop");
        let stats = self.hear(ANSWER)?;
        let ended = self.program.wait(ANSWER);
        if ended.well { Ok(stats) } else { Err(self.failed(&ended.errors, &ended.status)) }
    }

    fn hear(&mut self, patience: Duration) -> Result<RouterStats, BenchError> {
        let line = match self.program.hear(patience) {
            Some(line) => line,
            None => {
                let ended = self.program.wait(Duration::from_millis(200));
                return Err(self.failed(&ended.errors, &ended.status));
            }
        };
        serde_json::from_str(&line)
            .map_err(|error| self.failed(&format!("it says `{line}`: {error}"), ""))
    }

    fn failed(&self, errors: &str, status: &str) -> BenchError {
        let said = errors.trim();
        let why = if said.is_empty() { format!("it ended: {status}") } else { said.to_owned() };
        BenchError::Program { command: "fwdlab route".into(), host: self.name.clone(), why }
    }
}

/// What holds the router's packets.
#[derive(Clone, Debug)]
pub enum Wires {
    /// Memory, one path for each queue.
    Memory(Vec<String>),
    /// Sockets on the devices of the testbed.
    Sockets,
}

/// The set-up of a router for a variant, bound to `cpus`. Files that the experiment
/// names lie in the directory `files`.
pub fn setup(settings: &Settings, cpus: &[u16], wires: &Wires, files: &Path) -> RouterSetup {
    let (dut, router) = (&settings.dut, &settings.dut.router);
    let family = settings.traffic.family;
    // The first routes are those of a Linux DUT; what is beyond the traffic's own
    // destinations has the Internet's prefix lengths.
    let destinations = settings.traffic.flows.destinations;
    let written = dut.routes.clamp(2, destinations + 2);
    let listed = routes::prefixes(family, written, destinations, &Links::of_namespaces());
    let mut setup = RouterSetup {
        workers: dut.queues,
        cpus: cpus.to_vec(),
        fib: router.fib,
        locking: router.locking,
        path: router.path,
        firewall: rules(&dut.firewall),
        state: router.state,
        state_limit: router.state_limit,
        entropy_harvest: router.entropy_harvest,
        icmp_redirect: dut.icmp_redirect,
        rss: false,
        routes: listed
            .iter()
            .map(|Route { prefix: (address, length), via, .. }| {
                format!("{address}/{length} via {via}")
            })
            .collect(),
        synthesised: synthesised(family, dut.routes.saturating_sub(written)),
        routes_file: router
            .routes_file
            .as_ref()
            .map(|routes| files.join(&routes.file).to_string_lossy().into_owned()),
        ..RouterSetup::default()
    };
    match wires {
        Wires::Memory(paths) => setup.circuits = paths.clone(),
        // What the kernel gave a queue says little about flows.
        Wires::Sockets => setup.rss = dut.queues > 1,
    }
    let port = match router.port {
        RouterPort::Auto => PortKind::Auto,
        RouterPort::Xsk => PortKind::Xsk,
        RouterPort::Packet => PortKind::Packet,
    };
    let sides = [
        (Side::Sender, INGRESS, mac::INGRESS, mac::SENDER),
        (Side::Receiver, EGRESS, mac::EGRESS, mac::RECEIVER),
    ];
    let families = [Family::Inet, Family::Inet6];
    for (side, name, own, peer) in sides {
        setup.interfaces.push(InterfaceSetup {
            name: name.into(),
            port,
            mac: Some(mac::text(own)),
            mtu: Some(1500),
            addresses: families.map(|family| dut_address(family, side).to_owned()).to_vec(),
            ..InterfaceSetup::default()
        });
        setup.neighbours.extend(families.map(|family| NeighbourSetup {
            address: peer_address(family, side).to_owned(),
            mac: Some(mac::text(peer)),
            interface: Some(name.into()),
        }));
    }
    setup
}

fn synthesised(family: Family, count: u32) -> Option<Synthesised> {
    let (inet, inet6) = match family {
        Family::Inet => (count, 0),
        Family::Inet6 => (0, count),
    };
    let via = vec![peer_address(family, Side::Receiver).to_owned()];
    (count > 0).then_some(Synthesised { inet, inet6, via, seed: 1 })
}

/// A firewall in the router's own words, rule by rule what [`super::nft`] has.
fn rules(firewall: &Firewall) -> String {
    let mut text = String::new();
    let mut pass = |state: &str| {
        for (words, family) in [("inet", Family::Inet), ("inet6", Family::Inet6)] {
            let (from, to) =
                (routed_prefix(family, Side::Sender), routed_prefix(family, Side::Receiver));
            text += &format!("pass in {words} proto udp from {from} to {to}{state}\n");
        }
        text += "block in\n";
    };
    match firewall {
        Firewall::None => {}
        Firewall::Stateless => pass(""),
        Firewall::Stateful => pass(" keep state"),
        Firewall::Rules(count) => {
            for n in 0..*count {
                text += &format!("block in proto udp to any port {}\n", 10_000 + n);
            }
            text += "pass in\n";
        }
        Firewall::Ruleset { text: written, .. } => text.clone_from(written),
    }
    text
}

/// The router's counters before and after a trial, with what they must say by our own
/// count of its packets.
pub fn compare(before: &RouterStats, after: &RouterStats, total: Counts) -> Vec<Counter> {
    let mut counters = vec![Counter {
        name: "received".into(),
        before: before.received,
        after: after.received,
        expected: None,
    }];
    counters.extend(after.counters.iter().map(|(name, packets, class)| Counter {
        name: name.clone(),
        before: before.count(name),
        after: *packets,
        expected: (*class == Class::Forwarded).then_some(total.forwarded),
    }));
    counters.extend(after.missed.iter().map(|(name, packets)| Counter {
        name: format!("{name} missed"),
        before: before.missed.iter().find(|(other, _)| other == name).map_or(0, |&(_, n)| n),
        after: *packets,
        expected: None,
    }));
    counters.retain(|counter| counter.delta() > 0 || counter.expected.is_some());
    let workers = after.workers.iter().enumerate().map(|(worker, &packets)| Counter {
        name: counter_name("worker", Direction::Receive, worker as u16),
        before: before.workers.get(worker).copied().unwrap_or(0),
        after: packets,
        expected: None,
    });
    counters.extend(workers);
    counters
}

/// Where packets were lost between two readings; the last place is the difference to
/// what was lost in all.
pub fn drops(
    before: &RouterStats,
    after: &RouterStats,
    total: Counts,
    receiver: u64,
) -> Vec<DropPlace> {
    // The slow path's answers are of packets counted already, as `slow_...`, and what the
    // router sends besides is none of those that it received.
    let lost = after.counters.iter().filter(|(_, _, class)| match class {
        Class::Dropped | Class::Slow => true,
        Class::Forwarded | Class::Answer | Class::Extra => false,
    });
    let lost =
        lost.map(|(name, packets, _)| (name.clone(), packets.saturating_sub(before.count(name))));
    let missed = after.missed.iter().map(|(name, packets)| {
        let earlier = before.missed.iter().find(|(other, _)| other == name);
        (
            format!("{name} missed"),
            packets.saturating_sub(earlier.map_or(0, |&(_, earlier)| earlier)),
        )
    });
    let places =
        lost.chain(missed).map(|(name, packets)| (format!("router: {name}"), packets as i64));
    let receiver = ("receiver of the testbed".to_owned(), receiver as i64);
    told(places.chain([receiver]), total)
}

/// States that the router's firewall holds, if it has one.
pub fn states(stats: &RouterStats) -> Option<u64> {
    let (_, states) = stats.facts.iter().find(|(name, _)| name == "states")?;
    states.parse().ok()
}

/// Records what the router says about itself.
pub fn record_facts(stats: &RouterStats, findings: &mut Findings) {
    for (name, value) in &stats.facts {
        findings.facts.insert(format!("router {name}"), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_up_says_what_the_settings_say() {
        let mut settings = Settings::default();
        settings.dut.queues = 3;
        settings.dut.routes = 1000;
        settings.dut.firewall = Firewall::Stateful;
        let paths = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let setup = setup(&settings, &[1, 2], &Wires::Memory(paths.clone()), Path::new(""));
        assert_eq!((setup.workers, &setup.cpus[..], setup.rss), (3, &[1, 2][..], false));
        assert_eq!((setup.circuits, setup.routes.len()), (paths, 102));
        assert_eq!(setup.synthesised.map(|made| (made.inet, made.inet6)), Some((898, 0)));
        assert_eq!(setup.routes[0], "198.18.0.0/16 via 198.18.0.2");
        assert!(setup.firewall.contains("keep state"), "{}", setup.firewall);
        assert_eq!(setup.interfaces[1].mac.as_deref(), Some("02:19:80:00:00:03"));
        assert_eq!((setup.interfaces.len(), setup.neighbours.len()), (2, 4));
    }

    #[test]
    fn counters_are_what_happened_meanwhile() {
        let stats = |received, forwarded, firewall| RouterStats {
            received,
            counters: vec![
                ("forwarded".into(), forwarded, Class::Forwarded),
                ("firewall".into(), firewall, Class::Dropped),
                ("a_new_answer".into(), firewall, Class::Answer),
            ],
            missed: vec![("d0".into(), received / 10)],
            ..RouterStats::default()
        };
        let total = Counts { offered: 100, forwarded: 90 };
        let counters = compare(&stats(100, 100, 0), &stats(200, 190, 10), total);
        let found: Vec<_> = counters.iter().map(|c| (&c.name[..], c.delta(), c.expected)).collect();
        assert_eq!(
            found,
            [
                ("received", 100, None),
                ("forwarded", 90, Some(90)),
                ("firewall", 10, None),
                ("a_new_answer", 10, None),
                ("d0 missed", 10, None)
            ]
        );
        let total = Counts { offered: 125, forwarded: 90 };
        let drops = drops(&stats(100, 100, 0), &stats(200, 190, 10), total, 3);
        let found: Vec<_> = drops.iter().map(|drop| (&drop.place[..], drop.packets)).collect();
        assert_eq!(
            found,
            [
                ("router: firewall", 10),
                ("router: d0 missed", 10),
                ("receiver of the testbed", 3),
                ("no counter tells", 12)
            ]
        );
    }
}
