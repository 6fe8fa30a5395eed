//! Generator and sink of the testbed `memory`.
//!
//! One thread does both, which costs less than passing cache lines between two threads. Without a
//! rate it fills all free slots of every wire: nothing is lost before the router, and the rate is
//! the router's capacity. With a rate it follows the schedule. A packet that finds its wire full
//! counts as sent and lost, as in the receive ring of a network card.

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
    /// Wire of each flow, by flow number: source index x destinations + destination index.
    pub wires: Vec<u16>,
    /// Packets per second; `None` for as fast as the wires accept them.
    pub rate_pps: Option<f64>,
    /// Write the sending time into every packet; with a rate, the scheduled time.
    pub timestamps: bool,
    /// Destination and source MACs of arriving packets; `None` for any.
    pub arriving: Option<([u8; 6], [u8; 6])>,
    /// Carry the packets from generator to sink without a router: the upper limit of the testbed.
    pub bypass: bool,
    /// Flood to send in addition to these packets during [`Phase::Window`].
    pub flood: Option<Flood>,
    /// Traffic in the opposite direction, interleaved packet by packet with these.
    pub back: Option<ReverseTraffic>,
}

/// Packets of the opposite direction of a [`TrafficConfig`], whose rate is the rate of both
/// directions together.
#[derive(Clone, Debug)]
pub struct ReverseTraffic {
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
    /// Bits of the newly requested rate; 0 for the configured rate.
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
    /// Locked by the thread while it counts a batch; `None` before it has started.
    arrivals: Mutex<Option<Arrivals>>,
}

const WAIT: u8 = 0;
const GO: u8 = 1;
/// Stop sending, but continue counting arrivals.
const DRAIN: u8 = 2;
const END: u8 = 3;

/// The running thread.
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
    /// If the thread can't be started, or `cpu` is not available.
    pub fn new(config: TrafficConfig, circuits: &[Circuit]) -> Result<Traffic, NetioError> {
        let ways = config.ways().into_iter().map(|direction| {
            let expected = config.expected(&direction);
            let arrivals = Arrivals::new(&expected, Routes::Wires(direction.wires));
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
        let thread_shared = shared.clone();
        let (pinned, is_pinned) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("traffic".into()).spawn(move || {
            let result = affinity::pin_thread(&[config.cpu]);
            let is_ready = result.is_ok();
            let _ = pinned.send(result.map(|()| affinity::this_task()));
            if is_ready {
                Generator::new(config, wires, thread_shared).run();
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
                std::io::Error::other("it ended immediately"),
            )),
        }
    }

    /// Returns the directions: the one from the near side, then the opposite one, if configured.
    pub fn ways(&self) -> Vec<DirectionCounters<'_>> {
        self.shared.ways.iter().map(DirectionCounters).collect()
    }

    fn forward(&self) -> DirectionCounters<'_> {
        DirectionCounters(&self.shared.ways[0])
    }

    /// Returns the sink's expectations of packets from the near side.
    pub fn expected(&self) -> &Expected {
        &self.shared.ways[0].expected
    }

    /// Id of the thread that generates and counts.
    pub fn task(&self) -> u32 {
        self.task
    }

    /// Returns the number of packets that came back to the generator's side: answers of the router.
    pub fn returned(&self) -> u64 {
        self.shared.returned.load(Ordering::Relaxed)
    }

    /// Returns the counter of packets that found their wire full.
    pub fn full(&self) -> FullWireCounter {
        FullWireCounter(Arc::clone(&self.shared))
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

    /// Starts sending.
    pub fn start(&self) {
        self.give(GO);
    }

    /// Stops sending and waits until it has stopped; packets in flight are still counted.
    pub fn stop(&self) {
        self.give(DRAIN);
        let is_running = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while !self.shared.idle.load(Ordering::Acquire) && is_running() {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Changes the rate, in packets per second; only if a rate was configured.
    pub fn set_rate(&self, rate_pps: f64) {
        self.shared.rate.store(rate_pps.to_bits(), Ordering::Relaxed);
    }

    /// Returns the number of packets sent from the near side in each phase so far.
    pub fn sent(&self) -> [u64; PHASES] {
        self.forward().sent()
    }

    /// Returns the number of packets given up because the generator was late (paced sending only).
    pub fn missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }
}

/// Counter of packets that found their wire full (paced sending only); to be read while the traffic
/// is running.
#[derive(Clone, Debug)]
pub struct FullWireCounter(Arc<Shared>);

impl FullWireCounter {
    /// Returns the number of packets so far.
    pub fn packets(&self) -> u64 {
        self.0.full.load(Ordering::Acquire)
    }
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug)]
pub struct DirectionCounters<'a>(&'a Counting);

impl DirectionCounters<'_> {
    /// Returns the sink's expectations of the packets.
    pub fn expected(&self) -> &Expected {
        &self.0.expected
    }

    /// Returns the number of packets sent in each phase so far.
    pub fn sent(&self) -> [u64; PHASES] {
        std::array::from_fn(|phase| self.0.sent[phase].load(Ordering::Acquire))
    }
}

impl Receiver for DirectionCounters<'_> {
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

/// The receiver of the direction from the near side.
impl Receiver for Traffic {
    fn received(&self) -> Received {
        self.forward().received()
    }

    fn flows(&self) -> Option<FlowSummary> {
        self.forward().flows()
    }

    fn delays(&self) -> Option<Delays> {
        self.forward().delays()
    }

    fn dropped(&self) -> u64 {
        0 // the sink takes every slot: the wire would be full before
    }
}

impl TrafficConfig {
    /// Returns the directions.
    fn ways(&self) -> Vec<ReverseTraffic> {
        let TrafficConfig { template, wires, arriving, .. } = self.clone();
        [ReverseTraffic { template, wires, arriving }]
            .into_iter()
            .chain(self.back.clone())
            .collect()
    }

    /// Returns the expected packets of a direction.
    fn expected(&self, direction: &ReverseTraffic) -> Expected {
        Expected {
            template: direction.template.clone(),
            destination_mac: direction.arriving.map(|(to, _)| to),
            source_mac: direction.arriving.map(|(_, from)| from),
            translated: None,
            hops: u8::from(!self.bypass),
            senders: 16,
            timestamps: self.timestamps,
            same_clock: true,
            sampled: false,
        }
    }
}

/// Locks a counter. It is always consistent, because nothing panics while the lock is held.
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
