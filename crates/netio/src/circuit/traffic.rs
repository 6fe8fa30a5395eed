//! Generator and sink of the testbed `memory`.
//!
//! One thread does both, which costs less than passing cache lines between two threads.
//! Without a rate it fills all free slots of every wire: nothing is lost before the
//! router, and the rate is the router's capacity. With a rate it follows the schedule,
//! and a packet that finds its wire full is sent and lost, as in the receive ring of a
//! network card.

mod generator;

use self::generator::{Generator, Wire};
use super::Circuit;
use crate::flood::Flood;
use crate::sender::{Received, Receiver};
use crate::{NetioError, affinity};
use fwdlab_packet::arrivals::{Arrivals, Delays, Expected, FlowSummary, Routes};
use fwdlab_packet::stamp::PHASES;
use fwdlab_packet::{Phase, Template};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Configuration of the generator.
#[derive(Clone, Debug)]
pub struct TrafficConfig {
    /// CPU of the thread.
    pub cpu: u16,
    /// Frames.
    pub template: Template,
    /// The wire that each flow takes, by its number: source index x destinations +
    /// destination index.
    pub wires: Vec<u16>,
    /// Packets per second; none for as fast as the wires take them.
    pub rate_pps: Option<f64>,
    /// Write the sending time into every packet; with a rate, the time at which it was due.
    pub timestamps: bool,
    /// The MACs that packets arrive with: to and from whom; none: any.
    pub arriving: Option<([u8; 6], [u8; 6])>,
    /// Carry the packets from generator to sink without a router: the ceiling.
    pub bypass: bool,
    /// What is sent beside these packets while the phase is [`Phase::Window`].
    pub flood: Option<Flood>,
    /// What is sent the other way at the same time, packet by packet in turn with these.
    pub back: Option<Back>,
}

/// The packets of the other direction, beside those of a [`TrafficConfig`], whose rate is that
/// of both together.
#[derive(Clone, Debug)]
pub struct Back {
    /// As [`TrafficConfig::template`].
    pub template: Template,
    /// As [`TrafficConfig::wires`].
    pub wires: Vec<u16>,
    /// As [`TrafficConfig::arriving`].
    pub arriving: Option<([u8; 6], [u8; 6])>,
}

#[derive(Debug, Default)]
struct Shared {
    order: AtomicU8,
    phase: AtomicU8,
    ways: Vec<Counting>,
    missed: AtomicU64,
    /// Bits of the rate wanted from now on; 0 for the configured one.
    rate: AtomicU64,
    full: AtomicU64,
    returned: AtomicU64,
    idle: AtomicBool,
}

/// The counters of one direction.
#[derive(Debug)]
struct Counting {
    expected: Expected,
    sent: [AtomicU64; PHASES],
    /// Counts, updated after each slot.
    counts: Mutex<Received>,
    /// Held by the thread while it counts a batch; none before it has started.
    arrivals: Mutex<Option<Arrivals>>,
}

const WAIT: u8 = 0;
const GO: u8 = 1;
/// Stop sending, but continue counting arrivals.
const DRAIN: u8 = 2;
const END: u8 = 3;

/// The thread at work.
#[derive(Debug)]
pub struct Traffic {
    shared: Arc<Shared>,
    task: u32,
    thread: Option<JoinHandle<()>>,
}

impl Traffic {
    /// Starts the thread, which waits for [`Traffic::start`].
    ///
    /// # Errors
    /// When the thread can't be started, or `cpu` is not ours.
    pub fn new(config: TrafficConfig, circuits: &[Circuit]) -> Result<Traffic, NetioError> {
        let ways = config.ways().into_iter().map(|way| {
            let expected = config.expected(&way);
            let arrivals = Arrivals::new(&expected, Routes::Wires(way.wires));
            Counting {
                expected,
                sent: Default::default(),
                counts: Mutex::default(),
                arrivals: Mutex::new(Some(arrivals)),
            }
        });
        let shared = Arc::new(Shared { ways: ways.collect(), ..Shared::default() });
        let wires = circuits.iter().enumerate();
        let wires = wires.map(|(number, circuit)| Wire::new(circuit, number, &config)).collect();
        let theirs = shared.clone();
        let (pinned, is_pinned) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("traffic".into()).spawn(move || {
            let result = affinity::pin_thread(&[config.cpu]);
            let go_on = result.is_ok();
            let _ = pinned.send(result.map(|()| affinity::this_task()));
            if go_on {
                Generator::new(config, wires, theirs).run();
            }
        });
        let thread = thread.map_err(|e| NetioError::system("starting thread traffic", e))?;
        let mut traffic = Traffic { shared, task: 0, thread: Some(thread) };
        match is_pinned.recv() {
            Ok(result) => {
                traffic.task = result?;
                Ok(traffic)
            }
            Err(_) => Err(NetioError::system(
                "starting thread traffic",
                std::io::Error::other("it ended at once"),
            )),
        }
    }

    /// The directions: the one from the near side, then the other one, if there is one.
    pub fn ways(&self) -> Vec<Way<'_>> {
        self.shared.ways.iter().map(Way).collect()
    }

    fn forth(&self) -> Way<'_> {
        Way(&self.shared.ways[0])
    }

    /// What the sink checks packets from the near side for.
    pub fn expected(&self) -> &Expected {
        &self.shared.ways[0].expected
    }

    /// Id of the thread that generates and counts.
    pub fn task(&self) -> u32 {
        self.task
    }

    /// Packets that came back to the generator's side: answers of the router.
    pub fn returned(&self) -> u64 {
        self.shared.returned.load(Ordering::Relaxed)
    }

    /// What counts the packets that found their wire full.
    pub fn full(&self) -> Full {
        Full(Arc::clone(&self.shared))
    }

    fn give(&self, order: u8) {
        self.shared.order.store(order, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Sets the phase stamped into packets from now on.
    pub fn set_phase(&self, phase: Phase) {
        self.shared.phase.store(phase as u8, Ordering::Release);
    }

    /// Begins sending.
    pub fn start(&self) {
        self.give(GO);
    }

    /// Stops sending and waits until it has stopped; packets in flight are still counted.
    pub fn stop(&self) {
        self.give(DRAIN);
        let working = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while !self.shared.idle.load(Ordering::Acquire) && working() {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Sends at another rate from now on, packets per second; only where a rate was set.
    pub fn set_rate(&self, rate_pps: f64) {
        self.shared.rate.store(rate_pps.to_bits(), Ordering::Relaxed);
    }

    /// Packets sent from the near side in each phase so far.
    pub fn sent(&self) -> [u64; PHASES] {
        self.forth().sent()
    }

    /// Packets given up because the generator was late (paced sending only).
    pub fn missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }
}

/// Counts the packets that found their wire full (paced sending only); to be read while
/// the traffic is at work.
#[derive(Clone, Debug)]
pub struct Full(Arc<Shared>);

impl Full {
    /// Packets so far.
    pub fn packets(&self) -> u64 {
        self.0.full.load(Ordering::Acquire)
    }
}

/// What is counted of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a>(&'a Counting);

impl Way<'_> {
    /// What the sink checks its packets for.
    pub fn expected(&self) -> &Expected {
        &self.0.expected
    }

    /// Packets sent in each phase so far.
    pub fn sent(&self) -> [u64; PHASES] {
        std::array::from_fn(|phase| self.0.sent[phase].load(Ordering::Acquire))
    }
}

impl Receiver for Way<'_> {
    fn received(&self) -> Received {
        *locked(&self.0.counts)
    }

    fn flows(&self) -> Option<FlowSummary> {
        locked(&self.0.arrivals).as_ref()?.flows()
    }

    fn delays(&self) -> Option<Delays> {
        locked(&self.0.arrivals).as_ref()?.delays()
    }

    fn dropped(&self) -> u64 {
        0 // the sink takes every slot: the wire would be full before
    }
}

/// That of the direction from the near side.
impl Receiver for Traffic {
    fn received(&self) -> Received {
        self.forth().received()
    }

    fn flows(&self) -> Option<FlowSummary> {
        self.forth().flows()
    }

    fn delays(&self) -> Option<Delays> {
        self.forth().delays()
    }

    fn dropped(&self) -> u64 {
        0 // the sink takes every slot: the wire would be full before
    }
}

impl TrafficConfig {
    /// Its directions.
    fn ways(&self) -> Vec<Back> {
        let TrafficConfig { template, wires, arriving, .. } = self.clone();
        [Back { template, wires, arriving }].into_iter().chain(self.back.clone()).collect()
    }

    /// The expected packets.
    fn expected(&self, way: &Back) -> Expected {
        Expected {
            template: way.template.clone(),
            destination_mac: way.arriving.map(|(to, _)| to),
            source_mac: way.arriving.map(|(_, from)| from),
            translated: None,
            hops: u8::from(!self.bypass),
            senders: 16,
            timestamps: self.timestamps,
            same_clock: true,
            sampled: false,
        }
    }
}

/// A count is whole whenever its lock is free: nothing panics while it is held.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.give(END);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
