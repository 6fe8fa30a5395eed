//! Generator and sink of the testbed `memory`.
//!
//! One thread does both, which costs less than passing cache lines between two threads.
//! Without a rate it fills all free slots of every wire: nothing is lost before the
//! router, and the rate is the router's capacity. With a rate it follows the schedule,
//! and a packet that finds its wire full is sent and lost, as in the receive ring of a
//! network card.

use super::{BATCH, Circuit, Drain, FAR, Feeder, NEAR, Transit};
use crate::flood::{Flood, Flooding};
use crate::frame::Frame;
use crate::pacing::{Pacer, Times, burst};
use crate::prefetch::prefetch;
use crate::sender::{Received, Receiver};
use crate::{PortError, affinity, clock};
use fwdlab_packet::arrivals::{Arrivals, Delays, Expected, FlowSummary, Routes};
use fwdlab_packet::stamp::PHASES;
use fwdlab_packet::{Phase, Prepared, Template};
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
}

#[derive(Debug, Default)]
struct Shared {
    order: AtomicU8,
    phase: AtomicU8,
    sent: [AtomicU64; PHASES],
    missed: AtomicU64,
    /// Bits of the rate wanted from now on; 0 for the configured one.
    rate: AtomicU64,
    full: AtomicU64,
    returned: AtomicU64,
    idle: AtomicBool,
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
    expected: Expected,
    task: u32,
    thread: Option<JoinHandle<()>>,
}

impl Traffic {
    /// Starts the thread, which waits for [`Traffic::start`].
    ///
    /// # Errors
    /// When the thread can't be started, or `cpu` is not ours.
    pub fn new(config: TrafficConfig, circuits: &[Circuit]) -> Result<Traffic, PortError> {
        let expected = config.expected();
        let arrivals = Arrivals::new(&expected, Routes::Wires(config.wires.clone()));
        let shared = Arc::new(Shared { arrivals: Mutex::new(Some(arrivals)), ..Shared::default() });
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
        let thread = thread.map_err(|e| PortError::system("starting thread traffic", e))?;
        let mut traffic = Traffic { shared, expected, task: 0, thread: Some(thread) };
        match is_pinned.recv() {
            Ok(result) => {
                traffic.task = result?;
                Ok(traffic)
            }
            Err(_) => Err(PortError::system(
                "starting thread traffic",
                std::io::Error::other("it ended at once"),
            )),
        }
    }

    /// What the sink checks packets for.
    pub fn expected(&self) -> &Expected {
        &self.expected
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

    /// Packets sent in each phase so far.
    pub fn sent(&self) -> [u64; PHASES] {
        std::array::from_fn(|phase| self.shared.sent[phase].load(Ordering::Acquire))
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

impl Receiver for Traffic {
    fn received(&self) -> Received {
        *locked(&self.shared.counts)
    }

    fn flows(&self) -> Option<FlowSummary> {
        locked(&self.shared.arrivals).as_ref()?.flows()
    }

    fn delays(&self) -> Option<Delays> {
        locked(&self.shared.arrivals).as_ref()?.delays()
    }

    fn dropped(&self) -> u64 {
        0 // the sink takes every slot: the wire would be full before
    }
}

impl TrafficConfig {
    /// The expected packets.
    fn expected(&self) -> Expected {
        Expected {
            template: self.template.clone(),
            destination_mac: self.arriving.map(|(to, _)| to),
            source_mac: self.arriving.map(|(_, from)| from),
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

struct Wire {
    feeder: Feeder,
    /// Ours when there is no router.
    bypass: Option<Transit>,
    drain: Drain,
    /// The flows that take this wire.
    flows: Prepared,
    /// The one of them that is next.
    next: usize,
    /// Frames in the slot that is being filled.
    filled: usize,
}

impl Wire {
    fn new(circuit: &Circuit, number: usize, config: &TrafficConfig) -> Wire {
        let destinations = config.template.flows().destinations;
        let own = (0..).zip(&config.wires).filter(|&(_, &wire)| usize::from(wire) == number);
        let own: Vec<(u32, u32)> =
            own.map(|(flow, _)| (flow / destinations, flow % destinations)).collect();
        circuit.prepare(config.template.bytes());
        Wire {
            feeder: circuit.feeder(),
            bypass: config.bypass.then(|| circuit.transit()),
            drain: circuit.drain(),
            flows: Prepared::new(&config.template, number as u8, &own),
            next: 0,
            filled: 0,
        }
    }

    /// Sends the frames in the slot.
    fn publish(&mut self) {
        if self.filled > 0 {
            self.feeder.publish(self.filled);
            self.filled = 0;
        }
        self.carry();
    }

    /// Takes the router's place, if there is none.
    fn carry(&mut self) {
        let Some(transit) = &mut self.bypass else { return };
        while let Some(frames) = transit.slot() {
            frames.iter_mut().for_each(|frame| frame.send_to(FAR));
            transit.publish();
        }
    }
}

struct Generator {
    wires: Vec<Wire>,
    config: TrafficConfig,
    shared: Arc<Shared>,
    /// With a rate, the flow that is next.
    flow: usize,
    /// Each flow's place among those of its wire.
    places: Vec<u32>,
    /// All bytes of each packet are written, since packets came back damaged, or a flood's are
    /// among them.
    rewrites: bool,
    flood: Option<Flooding>,
}

impl Generator {
    fn new(config: TrafficConfig, wires: Vec<Wire>, shared: Arc<Shared>) -> Generator {
        let mut counts = vec![0; wires.len()];
        let place = |&wire: &u16| {
            let count = &mut counts[usize::from(wire)];
            *count += 1;
            *count - 1
        };
        let places = config.wires.iter().map(place).collect();
        let flood = config.flood.clone().map(|flood| Flooding::new(flood, 0, burst(2)));
        let rewrites = flood.is_some();
        Generator { wires, config, shared, flow: 0, places, rewrites, flood }
    }

    fn run(mut self) {
        while self.shared.order.load(Ordering::Acquire) == WAIT {
            thread::park();
        }
        let mut pacer =
            self.config.rate_pps.map(|rate| Pacer::new(rate, clock::monotonic_ns(), burst(1)));
        let mut rate = 0;
        while self.shared.order.load(Ordering::Relaxed) == GO {
            let counted = self.count();
            let wanted = self.shared.rate.load(Ordering::Relaxed);
            let sent = match &mut pacer {
                None => self.fill(),
                Some(pacer) => {
                    if wanted != rate {
                        rate = wanted;
                        pacer.set_rate(f64::from_bits(rate), clock::monotonic_ns());
                    }
                    let due = pacer.due(clock::monotonic_ns(), BATCH);
                    self.send(due, pacer.times());
                    pacer.sent(due);
                    self.shared.missed.store(pacer.missed(), Ordering::Relaxed);
                    due
                }
            };
            if counted + sent + self.send_flood() == 0 {
                // Who shares this CPU with us may be the one that we wait for.
                thread::yield_now();
            }
        }
        self.wires.iter_mut().for_each(Wire::publish);
        self.shared.idle.store(true, Ordering::Release);
        while self.shared.order.load(Ordering::Relaxed) == DRAIN {
            if self.count() == 0 {
                thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// Fills each wire's next slot, if it has one; returns the packets sent.
    fn fill(&mut self) -> usize {
        let phase = self.phase();
        let time = self.time();
        let mut sent = 0;
        for wire in self.wires.iter_mut().filter(|wire| !wire.flows.is_empty()) {
            let Some(frames) = wire.feeder.slot() else { continue };
            for frame in frames {
                if self.rewrites {
                    restore(frame, &self.config.template);
                }
                write(&mut wire.flows, wire.next, frame, phase, time);
                wire.next = if wire.next + 1 == wire.flows.len() { 0 } else { wire.next + 1 };
            }
            wire.feeder.publish(BATCH);
            wire.carry();
            sent += BATCH;
        }
        add(&self.shared.sent[phase as usize], sent as u64);
        sent
    }

    /// Sends the next `due` packets, whether there is room for them or not.
    fn send(&mut self, due: usize, mut times: Times) {
        let phase = self.phase();
        let is_timed = self.config.timestamps;
        let mut full = 0;
        for _ in 0..due {
            let time = if is_timed { times.next() } else { 0 };
            let flow = self.flow;
            self.flow = if flow + 1 == self.config.wires.len() { 0 } else { flow + 1 };
            let wire = &mut self.wires[usize::from(self.config.wires[flow])];
            let Some(frames) = wire.feeder.slot() else {
                full += 1;
                wire.flows.skip();
                continue;
            };
            let place = self.places[flow] as usize;
            if self.rewrites {
                restore(&mut frames[wire.filled], &self.config.template);
            }
            write(&mut wire.flows, place, &mut frames[wire.filled], phase, time);
            wire.filled += 1;
            if wire.filled == BATCH {
                wire.publish();
            }
        }
        self.wires.iter_mut().for_each(Wire::publish);
        add(&self.shared.full, full);
        add(&self.shared.sent[phase as usize], due as u64);
    }

    /// Sends the flood's packets that are due, whether there is room for them or not; returns
    /// their number.
    fn send_flood(&mut self) -> usize {
        let phase = self.phase();
        let Some(flooding) = &mut self.flood else { return 0 };
        let due = flooding.due(phase, BATCH);
        let mut full = 0;
        for _ in 0..due {
            let wire = &mut self.wires[usize::from(flooding.writer.next_queue())];
            let Some(frames) = wire.feeder.slot() else {
                full += 1;
                flooding.writer.skip();
                continue;
            };
            let frame = &mut frames[wire.filled];
            restore(frame, flooding.template());
            let buffer = &mut frame.buffer_mut()[..flooding.writer.frame_length()];
            let length = flooding.writer.write_next(buffer, phase, 0);
            frame.reset(NEAR, length);
            wire.filled += 1;
            if wire.filled == BATCH {
                wire.publish();
            }
        }
        self.wires.iter_mut().for_each(Wire::publish);
        add(&self.shared.full, full);
        flooding.sent(due);
        due
    }

    fn phase(&self) -> Phase {
        Phase::of(self.shared.phase.load(Ordering::Relaxed))
    }

    fn time(&self) -> u32 {
        if self.config.timestamps { clock::monotonic_ns() as u32 } else { 0 }
    }

    /// Counts what has arrived; returns the frames seen, whatever became of them.
    fn count(&mut self) -> usize {
        let shared = &*self.shared;
        let mut arrivals = locked(&shared.arrivals);
        let Some(arrivals) = arrivals.as_mut() else { return 0 };
        let (mut seen, mut returned, mut now_ns) = (0, 0, 0);
        for wire in &mut self.wires {
            while let Some(frames) = wire.drain.slot() {
                seen += frames.len();
                // The frames are in another CPU's caches: prefetch them all.
                frames.iter().for_each(|frame| prefetch(frame.bytes().as_ptr() as usize));
                if self.config.timestamps && now_ns == 0 {
                    now_ns = clock::monotonic_ns() as u32;
                }
                for frame in frames {
                    match frame.egress() {
                        Some(FAR) => {}
                        Some(_) => {
                            returned += 1;
                            continue;
                        }
                        None => continue,
                    }
                    arrivals.take(frame.bytes(), frame.len(), now_ns);
                }
                wire.drain.release();
            }
        }
        if seen > 0 {
            // Damaged bytes may lie in a slot's buffer beyond what is written anew.
            self.rewrites |= arrivals.counts().faults.iter().any(|&packets| packets > 0);
            *locked(&shared.counts) = *arrivals.counts();
            add(&shared.returned, returned);
        }
        seen
    }
}

/// Restores the initial contents of a buffer.
#[cold]
fn restore(frame: &mut Frame, template: &Template) {
    let bytes = template.bytes();
    frame.buffer_mut()[..bytes.len()].copy_from_slice(bytes);
}

/// Writes a packet over whatever the router has made of the one before it.
#[inline]
fn write(flows: &mut Prepared, flow: usize, frame: &mut Frame, phase: Phase, time: u32) {
    let length = flows.write(flow, frame.buffer_mut(), phase, time);
    frame.reset(NEAR, length);
}

/// There is one writer: a plain load and store keep the hot loop free of locked
/// instructions.
#[inline]
fn add(counter: &AtomicU64, packets: u64) {
    if packets > 0 {
        counter.store(counter.load(Ordering::Relaxed) + packets, Ordering::Release);
    }
}
