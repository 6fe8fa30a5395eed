//! The software router as a process: builds tables, interfaces and threads from its
//! set-up.

mod advertise;
mod captures;
mod carriers;
pub mod commands;
mod drop_log;
mod error;
mod firewall;
mod flows;
mod host;
mod interfaces;
pub mod metrics;
mod ports;
mod prepared;
mod presence;
mod reload;
mod routing;
mod tables;
mod vlans;

use anyhow::Context;
use captures::Capture;
use carriers::Carriers;
pub use error::RouterdError;
use fwdlab_model::router::{FileWarning, InterfaceCounts, RouterSetup, RouterStats};
use fwdlab_netio::circuit::Circuit;
use fwdlab_netio::files::WriteLosses;
use fwdlab_netio::host::AllMulticast;
use fwdlab_netio::xsk::FlowTable;
use fwdlab_netio::{NetioError, Port, affinity, clock, landlock, rights, seccomp};
use fwdlab_router::fib::{V4, V6};
use fwdlab_router::firewall::SharedFirewall;
use fwdlab_router::path::harvest::Pool;
use fwdlab_router::path::{Advertiser, Class, Config, Counters, DropLog, Lookup, Tally};
use fwdlab_router::worker::{self, Engine, Orders, PortCounters, Station, engine};
use host::Following;
use interfaces::NamedInterface;
use ports::Ports;
use prepared::{Prepared, prepare};
use presence::Watched;
use routing::Routing;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time within which every worker checks for states to remove.
const FORGETTING: Duration = Duration::from_secs(2);

/// Maximum number of routes that a message lists.
const LISTED: usize = 4;

/// Name and value of a fact about a router.
pub type Fact = (String, String);

/// A running router. Dropping it ends its threads.
pub struct Running {
    setup: RouterSetup,
    counters: Arc<Counters>,
    routing: Arc<Mutex<Routing>>,
    /// By worker, then by interface.
    missed: Vec<Arc<[PortCounters]>>,
    interfaces: Vec<String>,
    wall: Option<Arc<SharedFirewall>>,
    flows: Option<Arc<FlowTable>>,
    pool: Option<Arc<Pool>>,
    facts: Vec<(String, String)>,
    /// Parts of the set-up's files that are left out.
    warnings: Vec<FileWarning>,
    captures: Vec<Capture>,
    /// Records that captures and traces did not take.
    losses: Vec<Arc<WriteLosses>>,
    /// Notes for the user.
    notes: Vec<String>,
    /// Number of completed checksums, by interface.
    completed: Vec<(String, Arc<AtomicU64>)>,
    /// Number of times that the set-up was replaced.
    reloads: u64,
    /// True if kernel routes that are not followed were reported.
    has_named_routes: bool,
    /// By worker.
    orders: Vec<Arc<Orders>>,
    threads: Vec<JoinHandle<Result<(), NetioError>>>,
    /// Interfaces receive all groups while this exists.
    _groups: Vec<AllMulticast>,
    /// Interfaces are locked while this exists.
    _locks: Vec<UnixDatagram>,
    following: Option<Following>,
    watched: Vec<Watched>,
    carriers: Option<Carriers>,
    advertiser: Option<Arc<Advertiser>>,
    drop_log: Option<Arc<DropLog>>,
}

impl Running {
    /// Builds the router and starts its threads. Afterwards this thread can change files in the
    /// directories `written` only, if the router has interfaces.
    ///
    /// # Errors
    /// User errors in `setup`, and missing requirements of the environment.
    pub fn start(setup: &RouterSetup, written: &[&Path]) -> anyhow::Result<Running> {
        let Prepared { mut routing, interfaces, wall, pool, mut config, facts, warnings } =
            prepare(setup, &[])?;
        let flows = flows::load(setup)?;
        (config.flows, routing.flows) = (flows.clone(), flows.clone());
        let counters = Counters::new(setup.workers.into());
        let names = interfaces.iter().map(|named| named.name.clone()).collect();
        let mut running = Running {
            setup: setup.clone(),
            counters,
            missed: Vec::new(),
            interfaces: names,
            wall,
            flows,
            pool,
            facts,
            routing: Arc::new(Mutex::new(routing)),
            notes: warnings.iter().map(FileWarning::to_string).collect(),
            warnings,
            captures: Vec::new(),
            losses: Vec::new(),
            completed: Vec::new(),
            reloads: 0,
            has_named_routes: false,
            orders: Vec::new(),
            threads: Vec::new(),
            _groups: Vec::new(),
            _locks: Vec::new(),
            following: None,
            watched: Vec::new(),
            carriers: None,
            advertiser: config.advertiser.clone(),
            drop_log: None,
        };
        let ports = match setup.circuits.is_empty() {
            true => Some(ports::open(setup, &interfaces, running.flows.as_ref())?),
            false => None,
        };
        // After the interfaces are locked: the file of another router is not emptied.
        let log = drop_log::open(setup, &running.interfaces)?;
        let log_losses = log.as_ref().map(|(_, losses)| losses.clone());
        running.drop_log = log.map(|(log, _)| log);
        config.drop_log = running.drop_log.clone();
        let engines = running.engines(&config, &running.locked(), running.wall.as_ref())?;
        if let Some(ports) = ports {
            running.between_ports(setup, ports, (&interfaces, written), engines)?;
        } else {
            if setup.circuits.len() != engines.len() {
                let (wires, workers) = (setup.circuits.len(), engines.len());
                return Err(mistake(format!("circuits: {wires} paths for {workers} workers")));
            }
            for (number, (engine, path)) in engines.into_iter().zip(&setup.circuits).enumerate() {
                running.along(Circuit::open(Path::new(path))?, engine, number, setup)?;
            }
        }
        running.losses.extend(log_losses);
        Ok(running)
    }

    /// One engine for each worker.
    fn engines(
        &self,
        config: &Config,
        routing: &Routing,
        wall: Option<&Arc<SharedFirewall>>,
    ) -> anyhow::Result<Vec<Box<dyn Engine>>> {
        let build = |tally: Tally| -> anyhow::Result<Box<dyn Engine>> {
            let inet: Arc<dyn Lookup<V4>> = routing.inet.clone();
            let inet6: Arc<dyn Lookup<V6>> = routing.inet6.clone();
            engine(config, inet, inet6, wall, tally).map_err(|error| mistake(error.to_string()))
        };
        let workers = 0..usize::from(self.setup.workers);
        workers.filter_map(|number| self.counters.tally(number)).map(build).collect()
    }

    fn locked(&self) -> MutexGuard<'_, Routing> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the workers that forward between ports.
    fn between_ports(
        &mut self,
        setup: &RouterSetup,
        mut ports: Ports,
        (interfaces, written): (&[NamedInterface], &[&Path]),
        engines: Vec<Box<dyn Engine>>,
    ) -> anyhow::Result<()> {
        self.facts.extend(ports.facts);
        self.notes.append(&mut ports.notes);
        self.captures = ports.captures;
        self.completed = ports.completed;
        self._groups = ports.groups;
        (self.losses, self._locks) = (ports.losses, ports.locks);
        self.watched = ports.presences.into_iter().map(Watched::new).collect();
        if !self.watched.is_empty() {
            self.carriers = Some(Carriers::open()?);
        }
        let mut host = host::open(setup, interfaces)?;
        if let Some(host) = &mut host {
            self.notes.append(&mut host.notes);
            for (worker, more) in ports.workers.iter_mut().zip(std::mem::take(&mut host.ports)) {
                worker.extend(more);
            }
        }
        rights::drop_all()?;
        landlock::write_only_in(written)?;
        // Its routes are in the tables before the first packet.
        self.following = host.map(|host| host.follow(&self.routing)).transpose()?;
        for (number, (engine, ports)) in engines.into_iter().zip(ports.workers).enumerate() {
            self.between(ports, engine, number, setup)?;
        }
        // The router also forwards on a kernel without filters.
        if let Err(why) = seccomp::only_forwarding() {
            self.notes.push(why.to_string());
        }
        Ok(())
    }

    /// Builds everything except ports and threads, and reads capture files; returns the facts about
    /// them, and the parts of files that are left out.
    ///
    /// # Errors
    /// As [`Running::start`].
    pub fn check(setup: &RouterSetup) -> anyhow::Result<(Vec<Fact>, Vec<FileWarning>)> {
        let Prepared { routing, interfaces, config, facts: tables, mut warnings, .. } =
            prepare(setup, &[])?;
        if setup.circuits.is_empty() {
            ports::check(setup, &interfaces)?;
            warnings.extend(captures::survey(setup)?);
        }
        let tally = Counters::new(1).tally(0).context("a worker")?;
        let (inet, inet6) = (routing.inet.clone(), routing.inet6.clone());
        engine(&config, inet, inet6, None, tally).map_err(|error| mistake(error.to_string()))?;
        let mut facts = vec![("workers".into(), setup.workers.to_string())];
        facts.extend(
            interfaces
                .iter()
                .enumerate()
                .map(|(number, named)| (format!("interface {number}"), named.name.clone())),
        );
        facts.extend(tables);
        Ok((facts, warnings))
    }

    /// Starts a worker on a link in memory.
    fn along(
        &mut self,
        circuit: Circuit,
        engine: Box<dyn Engine>,
        number: usize,
        setup: &RouterSetup,
    ) -> anyhow::Result<()> {
        let orders = Arc::new(Orders::new()?);
        self.orders.push(orders.clone());
        self.spawn(number, setup, move || {
            worker::forward_circuit(engine, &mut circuit.transit(), &orders);
            Ok(())
        })
    }

    /// Starts a worker between ports.
    fn between(
        &mut self,
        ports: Vec<Box<dyn Port>>,
        engine: Box<dyn Engine>,
        number: usize,
        setup: &RouterSetup,
    ) -> anyhow::Result<()> {
        let missed: Arc<[PortCounters]> =
            self.interfaces.iter().map(|_| PortCounters::default()).collect();
        self.missed.push(missed.clone());
        let orders = Arc::new(Orders::new()?);
        self.orders.push(orders.clone());
        let station = Station { ports, missed, orders };
        self.spawn(number, setup, move || worker::forward(engine, station))
    }

    fn spawn(
        &mut self,
        number: usize,
        setup: &RouterSetup,
        work: impl FnOnce() -> Result<(), NetioError> + Send + 'static,
    ) -> anyhow::Result<()> {
        let cpu = match setup.cpus.len() {
            0 => None,
            cpus => Some(setup.cpus[number % cpus]),
        };
        let thread = thread::Builder::new().name(format!("router/{number}"));
        self.threads.push(thread.spawn(move || {
            if let Some(cpu) = cpu {
                affinity::pin_thread(&[cpu])?;
            }
            work()
        })?);
        Ok(())
    }

    /// True if all threads have ended.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Changes a route during forwarding.
    ///
    /// # Errors
    /// Errors of the command.
    pub fn change_route(&self, words: &str) -> Result<(), String> {
        self.locked().change(words)
    }

    /// Counters of the router so far.
    pub fn stats(&self) -> RouterStats {
        let snapshot = self.counters.read();
        let missed = self.interfaces.iter().enumerate().filter_map(|(at, name)| {
            let mut queues = self.missed.iter().filter_map(|worker| worker.get(at)).peekable();
            queues.peek()?;
            Some((name.clone(), queues.map(PortCounters::get).sum()))
        });
        let interfaces = self.interfaces.iter().enumerate().map(|(at, name)| {
            let queues = || self.missed.iter().filter_map(move |worker| worker.get(at));
            InterfaceCounts {
                name: name.clone(),
                received: queues().map(PortCounters::received).sum(),
                sent: queues().map(PortCounters::sent).sum(),
                lost: queues().map(PortCounters::lost).sum(),
                missed: queues().map(PortCounters::get).sum(),
            }
        });
        let interfaces = interfaces.collect();
        let mut facts = self.facts.clone();
        if let Some(wall) = &self.wall {
            let stats = wall.stats();
            facts.push(("states".into(), stats.states.to_string()));
            facts.push(("states created".into(), stats.created.to_string()));
            facts.push(("states expired".into(), stats.expired.to_string()));
            facts.push(("states evicted".into(), stats.evicted.to_string()));
            facts.push(("packets with a state".into(), stats.matches.to_string()));
            facts.push(("state memory bytes".into(), stats.memory_bytes.to_string()));
        }
        for (name, completed) in &self.completed {
            let count = completed.load(Ordering::Relaxed);
            if count > 0 {
                facts.push((format!("checksums completed at {name}"), count.to_string()));
            }
        }
        if let Some(log) = &self.drop_log {
            let counts = log.counts();
            facts.push(("dropped packets logged".into(), counts.logged.to_string()));
            facts.push(("dropped packets not logged".into(), counts.omitted.to_string()));
        }
        if let Some(pool) = &self.pool {
            facts.push(("packets harvested".into(), pool.events().to_string()));
        }
        if self.setup.host.as_ref().is_some_and(|host| host.routes) {
            let routing = self.locked();
            facts.push(("routes of the kernel".into(), routing.kernel_routes().to_string()));
            facts.extend(left_out(&routing).map(|text| ("routes not followed".into(), text)));
        }
        facts.extend(self.gone().map(|name| ("gone".to_owned(), name.to_owned())));
        let trouble = self.following.as_ref().and_then(Following::trouble);
        facts.extend(trouble.map(|what| ("trouble".to_owned(), what)));
        if self.reloads > 0 {
            facts.push(("reloads".into(), self.reloads.to_string()));
        }
        let stats = RouterStats {
            at_ns: clock::monotonic_ns(),
            received: snapshot.received(),
            forwarded: snapshot.total(Class::Forwarded),
            dropped: snapshot.total(Class::Dropped),
            slow: snapshot.total(Class::Slow),
            counters: snapshot
                .iter()
                .map(|(reason, n)| (reason.name().to_owned(), n, reason.class()))
                .collect(),
            missed: missed.collect(),
            interfaces,
            workers: self.counters.received_by_worker(),
            facts,
            warnings: self
                .warnings
                .iter()
                .cloned()
                .chain(self.captures.iter().filter_map(Capture::warning))
                .chain(self.losses.iter().filter_map(|losses| captures::unwritten(losses)))
                .collect(),
            error: None,
        };
        match &self.flows {
            Some(table) => flows::counted(stats, table),
            None => stats,
        }
    }

    /// Notes for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Refuses capture files of which most was left out.
    ///
    /// # Errors
    /// The counts of the first one.
    pub fn check_captures(&self) -> anyhow::Result<()> {
        self.captures.iter().try_for_each(Capture::check)
    }

    /// Ends all threads.
    ///
    /// # Errors
    /// The first error of a thread.
    pub fn stop(&mut self) -> Result<(), NetioError> {
        self.following = None;
        self.orders.iter().for_each(|orders| orders.stop());
        let log = self.drop_log.clone();
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if result.is_ok() {
                result = ended;
            }
        }
        log.inspect(|log| log.flush());
        result
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orders.iter().for_each(|orders| orders.stop());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Number and beginning of the list of kernel routes that are not followed; `None` if all are.
fn left_out(routing: &Routing) -> Option<String> {
    let all = routing.left_out();
    let count = all.len();
    let some: Vec<String> = all.take(LISTED).map(ToString::to_string).collect();
    let more = if count > LISTED { ", ..." } else { "" };
    (count > 0).then(|| format!("{count}: {}{more}", some.join(", ")))
}

/// A user error.
fn mistake(text: String) -> anyhow::Error {
    RouterdError::Mistake(text).into()
}
