//! fwdlab's software router as DUT: a separate process, `fwdlab route --control`.
//!
//! The setup and the counters are exchanged as lines of JSON over pipes. Apart from these and the
//! wires or sockets that carry packets, the router shares nothing with the measuring process.

use super::counters::{self, ProgramCounter};
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
    ChecksumKind, FileWarning, FullTable, InterfaceSetup, NeighbourSetup, PortKind, RouterSetup,
    RouterStats, Synthesised,
};
use fwdlab_model::settings::{Directions, Family, Firewall, RouterPort, Settings};
use fwdlab_model::warning::Warning;
use fwdlab_packet::address::{Side, peer_address, routed_prefix};
use fwdlab_packet::forwarding::Class;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit for building tables: a million routes take a few seconds.
const START: Duration = Duration::from_secs(60);
/// Time limit for the threads of the router to start.
const NAMING: Duration = Duration::from_secs(2);
/// Time limit for an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// The router as a DUT.
pub(super) struct RouterDut<'a> {
    context: DutContext<'a>,
    process: Option<Process>,
    /// Kernel threads that deliver the router's packets, bound to its CPUs.
    polling: Vec<u32>,
}

impl<'a> RouterDut<'a> {
    pub(super) fn new(context: DutContext<'a>) -> RouterDut<'a> {
        RouterDut { context, process: None, polling: Vec::new() }
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
        let DutContext { links, wires, experiment, .. } = self.context;
        findings.accept_not_put_back(self.undo(host))?;
        if matches!(wires, Wires::Sockets) {
            self.polling = program::configure(host, &self.context, settings, placement, findings)?;
        }
        let setup = setup(settings, &placement.dut, wires, links, experiment);
        let (process, stats) = Process::start(host, self.context.program, &setup)?;
        let is_here = self.context.keeper.is_namespace() || matches!(wires, Wires::Memory(_));
        if is_here && !process.wait_for_workers(setup.workers) {
            let why = "its threads do not show: whose CPU time it was is not known";
            findings.facts.insert("router threads".into(), why.into());
        }
        self.process = Some(process);
        for (name, value) in &stats.facts {
            findings.facts.insert(format!("router {name}"), value.clone());
        }
        let left_out = |FileWarning { file, line, what }| Warning::Log { file, line, what };
        findings.warnings.extend(stats.warnings.into_iter().map(left_out));
        Ok(())
    }

    fn reset(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<Option<String>, BenchError> {
        // Memory shared with the generator cannot be abandoned.
        if matches!(self.context.wires, Wires::Memory(_)) {
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
            // Without the workers' ids the device's time is unknown.
            none if none.is_empty() => none,
            // While the polling threads run, a worker on the same CPU is not waiting for others.
            workers => [workers, self.polling.clone()].concat(),
        }
    }

    fn read(&mut self, host: &dyn Host) -> Result<Reading, BenchError> {
        let links = self.context.links;
        let machine = match self.context.wires {
            Wires::Sockets => counters::read(host, links)?,
            Wires::Memory(_) => counters::Reading::new(),
        };
        Ok(Reading { machine, own: program_counters(&self.process(host)?.stats()?) })
    }

    fn queues(&self, host: &dyn Host) -> counters::Reading {
        match self.context.wires {
            Wires::Sockets => queues::of_both(host, self.context.links),
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
        counters::compare(before, after, totals, self.context.links)
    }

    fn drops(&self, loss: &Loss<'_>) -> Vec<DropPlace> {
        program::drops("router", loss, self.context.links)
    }

    fn stop(&mut self, _host: &dyn Host) -> Result<(), BenchError> {
        self.process.take().map_or(Ok(()), |process| process.stop().map(drop))
    }

    fn undo(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        self.process = None;
        match self.context.wires {
            Wires::Sockets => self.context.keeper.undo(host),
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
    /// Fails if the router cannot be started or rejects its setup; the error quotes its message.
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
        // A router that exits immediately breaks this pipe: its own message is the error to report.
        let _ = dut.program.tell(&setup);
        let stats = dut.receive_stats(START)?;
        Ok((dut, stats))
    }

    /// Reads the router's counters.
    ///
    /// # Errors
    /// Fails if the router has exited.
    pub fn stats(&mut self) -> Result<RouterStats, BenchError> {
        // A router that has exited breaks this pipe, too.
        let _ = self.program.tell("stats");
        self.receive_stats(ANSWER)
    }

    /// Removes all states of the router's firewall, and waits until every worker has done so.
    ///
    /// # Errors
    /// Fails if the router has exited or a worker does not answer.
    pub fn forget_states(&mut self) -> Result<RouterStats, BenchError> {
        let _ = self.program.tell("forget");
        self.receive_stats(ANSWER)
    }

    /// Waits until this number of workers is visible by thread name, which each thread sets when it
    /// first runs; false if the time limit passes.
    fn wait_for_workers(&self, workers: u16) -> bool {
        let deadline = Instant::now() + NAMING;
        while self.workers().len() < usize::from(workers) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Thread ids of the router's workers.
    pub fn workers(&self) -> Vec<u32> {
        self.program.threads("router/")
    }

    /// Stops the router and returns its final counters.
    ///
    /// # Errors
    /// Fails if the router exited earlier, or with an error.
    pub fn stop(mut self) -> Result<RouterStats, BenchError> {
        let _ = self.program.tell("stop");
        let stats = self.receive_stats(ANSWER)?;
        let ended = self.program.wait(ANSWER);
        if ended.well { Ok(stats) } else { Err(self.failed(&ended.errors, &ended.status)) }
    }

    fn receive_stats(&mut self, patience: Duration) -> Result<RouterStats, BenchError> {
        let line = match self.program.hear(patience) {
            Some(line) => line,
            None => {
                let ended = self.program.wait(Duration::from_millis(200));
                return Err(self.failed(&ended.errors, &ended.status));
            }
        };
        let stats: RouterStats = serde_json::from_str(&line)
            .map_err(|error| self.failed(&format!("invalid output `{line}`: {error}"), ""))?;
        match &stats.error {
            None => Ok(stats),
            Some(error) => Err(self.failed(error, "")),
        }
    }

    fn failed(&self, errors: &str, status: &str) -> BenchError {
        let message = errors.trim();
        let why =
            if message.is_empty() { format!("it ended: {status}") } else { message.to_owned() };
        BenchError::Program { command: "fwdlab route".into(), host: self.name.clone(), why }
    }
}

/// Connection that carries packets to the router.
#[derive(Clone, Debug)]
pub enum Wires {
    /// Shared memory: one file path per queue.
    Memory(Vec<String>),
    /// Sockets on the testbed's interfaces.
    Sockets,
}

/// Setup of a router between `links` for a variant, bound to `cpus`. The directory `files` contains
/// the files that the experiment names.
pub fn setup(
    settings: &Settings,
    cpus: &[u16],
    wires: &Wires,
    links: &Links,
    files: &Path,
) -> RouterSetup {
    let (dut, router) = (&settings.dut, &settings.dut.router);
    let family = settings.traffic.family;
    // The first routes are those of a Linux DUT; routes beyond the traffic's own destinations have
    // prefix lengths distributed like the Internet's.
    let destinations = settings.traffic.flows.destinations;
    let listed_count = dut.routes.clamp(2, destinations + 2);
    let listed = routes::prefixes(family, listed_count, destinations, links);
    let mut setup = RouterSetup {
        workers: dut.queues,
        cpus: cpus.to_vec(),
        fib: router.fib,
        locking: router.locking,
        path: router.path,
        firewall: rules(&dut.firewall, settings.traffic.directions),
        state: router.state,
        state_limit: router.state_limit,
        // Drop new states if the table is full: evicting old ones would change what is measured.
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
        synthesised: synthesised(family, dut.routes.saturating_sub(listed_count)),
        routes_file: router
            .routes_file
            .as_ref()
            .map(|routes| files.join(&routes.file).to_string_lossy().into_owned()),
        ..RouterSetup::default()
    };
    match wires {
        Wires::Memory(paths) => setup.circuits = paths.clone(),
        // The queue that the kernel chose says little about flows.
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
            // fwdlab's senders never leave checksums to a device, and checking them costs time.
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

/// A firewall in the router's syntax, equivalent rule by rule to [`super::linux::nft`].
fn rules(firewall: &Firewall, directions: Directions) -> String {
    let mut text = String::new();
    let mut pass = |state: &str| {
        for direction in directions.ways() {
            for (words, family) in [("inet", Family::Inet), ("inet6", Family::Inet6)] {
                let [from, to] = direction.map(|side| routed_prefix(family, side));
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
        Firewall::Ruleset { text: ruleset, .. } => text.clone_from(ruleset),
    }
    text
}

/// Counters of a router with their classes.
fn program_counters(stats: &RouterStats) -> Vec<ProgramCounter> {
    let mut all = vec![ProgramCounter::new("received", Class::Received, stats.received)];
    all.extend(stats.counters.iter().map(|(name, n, of)| ProgramCounter::new(name, *of, *n)));
    let missed = stats.missed.iter();
    all.extend(
        missed.map(|(name, n)| ProgramCounter::new(format!("{name} missed"), Class::Dropped, *n)),
    );
    let workers = stats.workers.iter().enumerate();
    all.extend(workers.map(|(worker, &packets)| {
        let name = counter_name("worker", Direction::Receive, worker as u16);
        ProgramCounter::new(name, Class::Extra, packets)
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setup_follows_the_settings() {
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
    fn answered_packets_are_not_counted_as_loss() {
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
        let classes: Vec<_> = program_counters(&stats)
            .into_iter()
            .map(|counter| (counter.name, counter.class))
            .collect();
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
