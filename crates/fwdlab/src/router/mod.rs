//! The software router as a process: what was written about it becomes tables,
//! interfaces and threads.

mod interfaces;
mod tables;

use crate::error::CliError;
use fwdlab_model::router::{RouterSetup, RouterStats};
use fwdlab_port::circuit::Circuit;
use fwdlab_port::{PortError, affinity, clock};
use fwdlab_router::path::{Class, Config, Counters, NoFirewall, Rate, Router};
use fwdlab_router::worker::{self, Engine, Missed};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Most worker threads.
const WORKERS_MAX: u16 = 64;

/// A router at work. Dropping it ends its threads.
pub(crate) struct Running {
    counters: Arc<Counters>,
    missed: Vec<(String, Arc<[Missed]>)>,
    facts: Vec<(String, String)>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), PortError>>>,
}

impl Running {
    /// Builds the router and starts its threads.
    ///
    /// # Errors
    /// The user's mistakes in `setup`, and what the environment lacks.
    pub(crate) fn start(setup: &RouterSetup) -> anyhow::Result<Running> {
        if !(1..=WORKERS_MAX).contains(&setup.workers) {
            return Err(mistake(format!(
                "workers = {}: a router has 1 to {WORKERS_MAX}",
                setup.workers
            )));
        }
        let tables = tables::build(setup)?;
        let interfaces = interfaces::read(setup)?;
        let config = Config {
            neighbours: interfaces::neighbours(setup, &interfaces, &tables.next_hops)?,
            interfaces: interfaces.iter().map(|named| named.interface.clone()).collect(),
            errors: Rate { per_second: setup.icmp_errors_pps, ..Rate::default() },
            ..Config::default()
        };
        let counters = Counters::new(setup.workers.into());
        let mut running = Running {
            counters: counters.clone(),
            missed: Vec::new(),
            facts: tables.facts,
            stop: Arc::default(),
            threads: Vec::new(),
        };
        let mut circuits = setup.circuits.iter();
        for number in 0..usize::from(setup.workers) {
            let Some(tally) = counters.tally(number) else { continue };
            let (inet, inet6) = (tables.inet.clone(), tables.inet6.clone());
            let router = Router::new(&config, inet, inet6, NoFirewall, tally);
            let engine = Box::new(router.map_err(|error| mistake(error.to_string()))?);
            let path = circuits.next().ok_or_else(|| {
                mistake(format!("worker {number} has no wire: `circuits` has too few paths"))
            })?;
            running.along(Circuit::open(Path::new(path))?, engine, number, setup)?;
        }
        Ok(running)
    }

    /// Builds everything but ports and threads; says what there would be.
    ///
    /// # Errors
    /// As [`Running::start`].
    pub(crate) fn check(setup: &RouterSetup) -> anyhow::Result<Vec<(String, String)>> {
        let tables = tables::build(setup)?;
        let interfaces = interfaces::read(setup)?;
        interfaces::neighbours(setup, &interfaces, &tables.next_hops)?;
        let mut facts = vec![("workers".into(), setup.workers.to_string())];
        facts.extend(
            interfaces
                .iter()
                .enumerate()
                .map(|(number, named)| (format!("interface {number}"), named.name.clone())),
        );
        facts.extend(tables.facts);
        Ok(facts)
    }

    /// Starts a worker along a wire in memory.
    fn along(
        &mut self,
        circuit: Circuit,
        mut engine: Box<dyn Engine>,
        number: usize,
        setup: &RouterSetup,
    ) -> anyhow::Result<()> {
        let stop = self.stop.clone();
        self.spawn(number, setup, move || {
            worker::forward_circuit(&mut *engine, &mut circuit.passage(), &stop);
            Ok(())
        })
    }

    fn spawn(
        &mut self,
        number: usize,
        setup: &RouterSetup,
        work: impl FnOnce() -> Result<(), PortError> + Send + 'static,
    ) -> anyhow::Result<()> {
        let cpu = match setup.cpus.len() {
            0 => None,
            cpus => Some(setup.cpus[number % cpus]),
        };
        let thread = thread::Builder::new().name(format!("worker{number}"));
        self.threads.push(thread.spawn(move || {
            if let Some(cpu) = cpu {
                affinity::pin_thread(&[cpu])?;
            }
            work()
        })?);
        Ok(())
    }

    /// True when no thread works any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// What the router has done so far.
    pub(crate) fn stats(&self) -> RouterStats {
        let snapshot = self.counters.read();
        let missed = self
            .missed
            .iter()
            .map(|(name, queues)| (name.clone(), queues.iter().map(Missed::get).sum()));
        RouterStats {
            at_ns: clock::monotonic_ns(),
            received: snapshot.received(),
            forwarded: snapshot.total(Class::Forwarded),
            dropped: snapshot.total(Class::Dropped),
            slow: snapshot.total(Class::Slow),
            counters: snapshot.iter().map(|(reason, n)| (reason.name().to_owned(), n)).collect(),
            missed: missed.collect(),
            facts: self.facts.clone(),
        }
    }

    /// Ends all threads.
    ///
    /// # Errors
    /// What the first of them met.
    pub(crate) fn stop(&mut self) -> Result<(), PortError> {
        self.stop.store(true, Ordering::Relaxed);
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if result.is_ok() {
                result = ended;
            }
        }
        result
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The user's mistake.
fn mistake(text: String) -> anyhow::Error {
    CliError::Mistake(text).into()
}
