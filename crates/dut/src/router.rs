//! fwdlab's software router as DUT: a separate process, `fwdlab route --control`.
//!
//! Set-up and counters are exchanged as lines of JSON over pipes. Apart from these and the
//! wires or sockets that carry packets, the router shares nothing with the measuring
//! process.

use super::counters::{self, Own};
use super::findings::Findings;
use super::{Dut, DutContext, Loss, Reading, Totals, program, queues, routes};
use crate::cpu::Placement;
use crate::links::{Link, Links, mac};
use crate::routes::Route;
use fwdlab_host::error::BenchError;
use fwdlab_host::{Host, Running};
use fwdlab_model::record::queues::{Direction, counter_name};
use fwdlab_model::record::{Counter, DropPlace};
use fwdlab_model::router::{
    ChecksumKind, FullTable, InterfaceSetup, NeighbourSetup, PortKind, RouterSetup, RouterStats,
    Synthesised,
};
use fwdlab_model::settings::{Directions, Family, Firewall, RouterPort, Settings};
use fwdlab_packet::address::{Side, peer_address, routed_prefix};
use fwdlab_packet::forwarding::Class;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit for building tables: a million routes take a few seconds.
const START: Duration = Duration::from_secs(60);
/// Time limit for its threads to have begun.
const NAMING: Duration = Duration::from_secs(2);
/// Time limit for an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// The router as a DUT.
pub(super) struct RouterDut<'a> {
    ground: DutContext<'a>,
    process: Option<Process>,
    /// The kernel's threads that bring it its packets, bound to its CPUs.
    polling: Vec<u32>,
}

impl<'a> RouterDut<'a> {
    pub(super) fn new(ground: DutContext<'a>) -> RouterDut<'a> {
        RouterDut { ground, process: None, polling: Vec::new() }
    }

    fn process(&mut self, host: &dyn Host) -> Result<&mut Process, BenchError> {
        self.process.as_mut().ok_or_else(|| BenchError::Program {
            command: "fwdlab route".into(),
            host: host.name().to_owned(),
            why: "it was not started".into(),
        })
    }
}

impl Dut for RouterDut<'_> {
    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let DutContext { links, wires, experiment, .. } = self.ground;
        self.undo(host)?;
        if matches!(wires, Wires::Sockets) {
            self.polling = program::configure(host, &self.ground, settings, placement, findings)?;
        }
        let setup = setup(settings, &placement.dut, wires, links, experiment);
        let (process, stats) = Process::start(host, self.ground.program, &setup)?;
        let is_here = self.ground.keeper.is_namespace() || matches!(wires, Wires::Memory(_));
        if is_here && !process.shows_workers(setup.workers) {
            let why = "its threads do not show: whose CPU time it was is not known";
            findings.facts.insert("router threads".into(), why.into());
        }
        self.process = Some(process);
        for (name, value) in &stats.facts {
            findings.facts.insert(format!("router {name}"), value.clone());
        }
        Ok(())
    }

    fn reset(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<Option<String>, BenchError> {
        // What lies in memory that is shared with the generator can't be left alone.
        if matches!(self.ground.wires, Wires::Memory(_)) {
            return Ok(None);
        }
        self.stop(host)?;
        self.configure(host, settings, placement, findings)?;
        Ok(Some("the router ended and started again".into()))
    }

    fn is_program(&self) -> bool {
        true
    }

    fn threads(&self) -> Vec<u32> {
        match self.process.as_ref().map(Process::workers).unwrap_or_default() {
            // Without them nothing is known of the device's time.
            none if none.is_empty() => none,
            // While those poll, a worker on the same CPU does not wait for others.
            workers => [workers, self.polling.clone()].concat(),
        }
    }

    fn read(&mut self, host: &dyn Host) -> Result<Reading, BenchError> {
        let links = self.ground.links;
        let machine = match self.ground.wires {
            Wires::Sockets => counters::read(host, links)?,
            Wires::Memory(_) => counters::Reading::new(),
        };
        Ok(Reading { machine, own: own(&self.process(host)?.stats()?) })
    }

    fn queues(&self, host: &dyn Host) -> counters::Reading {
        match self.ground.wires {
            Wires::Sockets => queues::of_both(host, self.ground.links),
            Wires::Memory(_) => counters::Reading::new(),
        }
    }

    fn states(&mut self, host: &dyn Host, _settings: &Settings) -> Option<u64> {
        let stats = self.process(host).ok()?.stats().ok()?;
        let (_, states) = stats.facts.into_iter().find(|(name, _)| name == "states")?;
        states.parse().ok()
    }

    fn forget_states(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
    ) -> Result<Option<String>, BenchError> {
        if !settings.dut.firewall.may_keep_states() {
            return Ok(None);
        }
        self.process(host)?.forget_states()?;
        Ok(Some("the router removed all states".into()))
    }

    fn compare(&self, before: &Reading, after: &Reading, totals: Totals) -> Vec<Counter> {
        counters::compare(before, after, totals, self.ground.links)
    }

    fn drops(&self, loss: &Loss<'_>) -> Vec<DropPlace> {
        program::drops("router", loss, self.ground.links)
    }

    fn stop(&mut self, _host: &dyn Host) -> Result<(), BenchError> {
        self.process.take().map_or(Ok(()), |process| process.stop().map(drop))
    }

    fn undo(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        self.process = None;
        match self.ground.wires {
            Wires::Sockets => self.ground.keeper.undo(host),
            Wires::Memory(_) => Ok(()),
        }
    }
}

/// A running router. Dropping it kills the process.
pub struct Process {
    program: Box<dyn Running>,
    name: String,
}

impl Process {
    /// Starts `program` (fwdlab itself) as a router and waits until it forwards.
    ///
    /// # Errors
    /// When it can't be started, or refuses its set-up: what it says is quoted.
    pub fn start(
        host: &dyn Host,
        program: &Path,
        setup: &RouterSetup,
    ) -> Result<(Process, RouterStats), BenchError> {
        let path = program.to_string_lossy();
        let mut dut = Process {
            program: host.spawn(&[&path, "route", "--control"])?,
            name: host.name().to_owned(),
        };
        let setup = serde_json::to_string(setup)
            .map_err(|error| BenchError::Refused(format!("a router's set-up: {error}")))?;
        // A router that exits at once breaks this pipe: its own message is the error to report.
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

    /// Removes all states of its firewall, and waits until every worker has.
    ///
    /// # Errors
    /// When it has ended, or a worker does not answer.
    pub fn forget_states(&mut self) -> Result<RouterStats, BenchError> {
        let _ = self.program.tell("forget");
        self.hear(ANSWER)
    }

    /// Waits until the threads of so many workers show by their names, which each gives itself
    /// when it first runs; false if they do not in time.
    fn shows_workers(&self, workers: u16) -> bool {
        let deadline = Instant::now() + NAMING;
        while self.workers().len() < usize::from(workers) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Thread ids of its workers.
    pub fn workers(&self) -> Vec<u32> {
        self.program.threads("router/")
    }

    /// Stops the router and returns its final counters.
    ///
    /// # Errors
    /// When it exited earlier, or with an error.
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
        let stats: RouterStats = serde_json::from_str(&line)
            .map_err(|error| self.failed(&format!("it says `{line}`: {error}"), ""))?;
        match &stats.error {
            None => Ok(stats),
            Some(error) => Err(self.failed(error, "")),
        }
    }

    fn failed(&self, errors: &str, status: &str) -> BenchError {
        let said = errors.trim();
        let why = if said.is_empty() { format!("it ended: {status}") } else { said.to_owned() };
        BenchError::Program { command: "fwdlab route".into(), host: self.name.clone(), why }
    }
}

/// How packets reach the router.
#[derive(Clone, Debug)]
pub enum Wires {
    /// Shared memory: one file path per queue.
    Memory(Vec<String>),
    /// Sockets on the testbed's interfaces.
    Sockets,
}

/// The set-up of a router between `links` for a variant, bound to `cpus`. Files that the
/// experiment names lie in the directory `files`.
pub fn setup(
    settings: &Settings,
    cpus: &[u16],
    wires: &Wires,
    links: &Links,
    files: &Path,
) -> RouterSetup {
    let (dut, router) = (&settings.dut, &settings.dut.router);
    let family = settings.traffic.family;
    // The first routes are those of a Linux DUT; routes beyond the traffic's own
    // destinations have prefix lengths distributed as in the Internet.
    let destinations = settings.traffic.flows.destinations;
    let written = dut.routes.clamp(2, destinations + 2);
    let listed = routes::prefixes(family, written, destinations, links);
    let mut setup = RouterSetup {
        workers: dut.queues,
        cpus: cpus.to_vec(),
        fib: router.fib,
        locking: router.locking,
        path: router.path,
        firewall: rules(&dut.firewall, settings.traffic.directions),
        state: router.state,
        state_limit: router.state_limit,
        // What is measured is a table that holds what it holds.
        state_full: FullTable::Drop,
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
    for Link { interface, mac, addresses, peers } in links.both() {
        setup.interfaces.push(InterfaceSetup {
            name: interface.clone(),
            port,
            mac: Some(mac::text(*mac)),
            mtu: Some(1500),
            // Our own senders leave none to a device, and looking at them costs time.
            checksums: ChecksumKind::Trust,
            addresses: addresses.iter().map(|(a, length)| format!("{a}/{length}")).collect(),
            ..InterfaceSetup::default()
        });
        for peer in peers {
            setup.neighbours.extend(peer.addresses.iter().map(|address| NeighbourSetup {
                address: address.to_string(),
                mac: Some(mac::text(peer.mac)),
                interface: Some(interface.clone()),
            }));
        }
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

/// A firewall in the router's syntax, equivalent rule by rule to [`super::nft`].
fn rules(firewall: &Firewall, directions: Directions) -> String {
    let mut text = String::new();
    let mut pass = |state: &str| {
        for way in directions.ways() {
            for (words, family) in [("inet", Family::Inet), ("inet6", Family::Inet6)] {
                let [from, to] = way.map(|side| routed_prefix(family, side));
                text += &format!("pass in {words} proto udp from {from} to {to}{state}\n");
            }
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

/// What a router counts, each counter with its class.
fn own(stats: &RouterStats) -> Vec<Own> {
    let mut all = vec![Own::new("received", Class::Received, stats.received)];
    all.extend(stats.counters.iter().map(|(name, n, of)| Own::new(name, *of, *n)));
    let missed = stats.missed.iter();
    all.extend(missed.map(|(name, n)| Own::new(format!("{name} missed"), Class::Dropped, *n)));
    let workers = stats.workers.iter().enumerate();
    all.extend(workers.map(|(worker, &packets)| {
        let name = counter_name("worker", Direction::Receive, worker as u16);
        Own::new(name, Class::Extra, packets)
    }));
    all
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
        let (wires, links) = (Wires::Memory(paths.clone()), Links::of_namespaces());
        let setup = setup(&settings, &[1, 2], &wires, &links, Path::new(""));
        assert_eq!((setup.workers, &setup.cpus[..], setup.rss), (3, &[1, 2][..], false));
        assert_eq!((setup.circuits, setup.routes.len()), (paths, 102));
        assert_eq!(setup.synthesised.map(|made| (made.inet, made.inet6)), Some((898, 0)));
        assert_eq!(setup.routes[0], "198.18.0.0/16 via 198.18.0.2");
        assert!(setup.firewall.contains("keep state"), "{}", setup.firewall);
        assert_eq!(setup.interfaces[1].mac.as_deref(), Some("02:19:80:00:00:03"));
        assert_eq!((setup.interfaces.len(), setup.neighbours.len()), (2, 4));
    }

    #[test]
    fn what_a_router_answers_is_no_loss() {
        let stats = RouterStats {
            received: 10,
            counters: vec![
                ("forwarded".into(), 7, Class::Forwarded),
                ("answered".into(), 1, Class::Answer),
                ("no_route".into(), 2, Class::Slow),
            ],
            missed: vec![("d0".into(), 3)],
            ..RouterStats::default()
        };
        let classes: Vec<_> = own(&stats).into_iter().map(|own| (own.name, own.class)).collect();
        let expected = [
            ("received", Class::Received),
            ("forwarded", Class::Forwarded),
            ("answered", Class::Answer),
            ("no_route", Class::Slow),
            ("d0 missed", Class::Dropped),
        ];
        assert_eq!(classes, expected.map(|(name, class)| (name.to_owned(), class)));
    }
}
