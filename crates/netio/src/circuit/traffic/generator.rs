//! The thread's work: packets of each direction into free slots, and counting what arrives.

use super::super::{BATCH, Circuit, Drain, FAR, Feeder, NEAR, Transit};
use super::{Back, DRAIN, GO, Shared, TrafficConfig, WAIT, locked};
use crate::clock;
use crate::flood::Flooding;
use crate::frame::Frame;
use crate::pacing::{Pacer, Times, burst};
use crate::prefetch::prefetch;
use fwdlab_packet::{Phase, Prepared, Template};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

pub(super) struct Wire {
    feeder: Feeder,
    /// Ours when there is no router.
    bypass: Option<Transit>,
    drain: Drain,
    /// The flows that take this wire, of each direction.
    lanes: Vec<Lane>,
    /// Frames in the slot that is being filled.
    filled: usize,
}

/// Flows of one direction that take the same wire.
struct Lane {
    flows: Prepared,
    /// The one of them that is next.
    next: usize,
    /// Where they come from.
    ingress: u8,
}

impl Lane {
    fn new(way: &Back, ingress: u8, number: usize) -> Lane {
        let destinations = way.template.flows().destinations;
        let own = (0..).zip(&way.wires).filter(|&(_, &wire)| usize::from(wire) == number);
        let own: Vec<(u32, u32)> =
            own.map(|(flow, _)| (flow / destinations, flow % destinations)).collect();
        Lane { flows: Prepared::new(&way.template, number as u8, &own), next: 0, ingress }
    }

    /// Writes a packet of the flow over whatever the router has made of the one before it.
    #[inline]
    fn write(&mut self, flow: usize, frame: &mut Frame, phase: Phase, time: u32) {
        let length = self.flows.write(flow, frame.buffer_mut(), phase, time);
        frame.reset(self.ingress, length);
    }
}

impl Wire {
    pub(super) fn new(circuit: &Circuit, number: usize, config: &TrafficConfig) -> Wire {
        let ways = config.ways();
        let lanes = ways.iter().zip([NEAR, FAR]);
        let lanes = lanes.map(|(way, ingress)| Lane::new(way, ingress, number)).collect();
        circuit.prepare(config.template.bytes());
        Wire {
            feeder: circuit.feeder(),
            bypass: config.bypass.then(|| circuit.transit()),
            drain: circuit.drain(),
            lanes,
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
            for frame in frames {
                frame.send_to(if frame.ingress() == FAR { NEAR } else { FAR });
            }
            transit.publish();
        }
    }
}

pub(super) struct Generator {
    wires: Vec<Wire>,
    config: TrafficConfig,
    shared: Arc<Shared>,
    /// The directions, and with a rate the one that is next.
    ways: Vec<Sending>,
    turn: usize,
    /// All bytes of each packet are written, since packets came back damaged, or a flood's are
    /// among them.
    rewrites: bool,
    flood: Option<Flooding>,
}

/// One direction at a rate.
struct Sending {
    template: Template,
    /// The wire that each flow takes.
    wires: Vec<u16>,
    /// Each flow's place among those of its wire.
    places: Vec<u32>,
    /// The flow that is next.
    flow: usize,
}

impl Sending {
    fn new(way: Back, wires: usize) -> Sending {
        let mut counts = vec![0; wires];
        let place = |&wire: &u16| {
            let count = &mut counts[usize::from(wire)];
            *count += 1;
            *count - 1
        };
        let places = way.wires.iter().map(place).collect();
        Sending { template: way.template, wires: way.wires, places, flow: 0 }
    }
}

impl Generator {
    pub(super) fn new(config: TrafficConfig, wires: Vec<Wire>, shared: Arc<Shared>) -> Generator {
        let ways = config.ways().into_iter().map(|way| Sending::new(way, wires.len())).collect();
        let flood = config.flood.clone().map(|flood| Flooding::new(flood, 0, burst(2)));
        let rewrites = flood.is_some() || config.back.is_some();
        Generator { wires, config, shared, ways, turn: 0, rewrites, flood }
    }

    pub(super) fn run(mut self) {
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
        for wire in &mut self.wires {
            // Of two directions each frame is of another one than the frame before it.
            let mut lanes: Vec<(usize, &mut Lane)> = Vec::with_capacity(2);
            lanes.extend(
                wire.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.flows.is_empty()),
            );
            let ways = lanes.len();
            if ways == 0 {
                continue;
            }
            let Some(frames) = wire.feeder.slot() else { continue };
            for (place, frame) in frames.iter_mut().enumerate() {
                let (way, lane) = &mut lanes[place % ways];
                if self.rewrites {
                    restore(frame, &self.ways[*way].template);
                }
                lane.write(lane.next, frame, phase, time);
                lane.next = if lane.next + 1 == lane.flows.len() { 0 } else { lane.next + 1 };
            }
            for (place, (way, _)) in lanes.iter().enumerate() {
                let own = (BATCH + ways - 1 - place) / ways;
                add(&self.shared.ways[*way].sent[phase as usize], own as u64);
            }
            wire.feeder.publish(BATCH);
            wire.carry();
            sent += BATCH;
        }
        sent
    }

    /// Sends the next `due` packets, whether there is room for them or not.
    fn send(&mut self, due: usize, mut times: Times) {
        let phase = self.phase();
        let is_timed = self.config.timestamps;
        let (mut full, mut sent) = (0, [0; 2]);
        for _ in 0..due {
            let time = if is_timed { times.next() } else { 0 };
            let number = self.turn;
            self.turn = if number + 1 == self.ways.len() { 0 } else { number + 1 };
            sent[number] += 1;
            let way = &mut self.ways[number];
            let flow = way.flow;
            way.flow = if flow + 1 == way.wires.len() { 0 } else { flow + 1 };
            let wire = &mut self.wires[usize::from(way.wires[flow])];
            let lane = &mut wire.lanes[number];
            let Some(frames) = wire.feeder.slot() else {
                full += 1;
                lane.flows.skip();
                continue;
            };
            let place = way.places[flow] as usize;
            if self.rewrites {
                restore(&mut frames[wire.filled], &way.template);
            }
            lane.write(place, &mut frames[wire.filled], phase, time);
            wire.filled += 1;
            if wire.filled == BATCH {
                wire.publish();
            }
        }
        self.wires.iter_mut().for_each(Wire::publish);
        add(&self.shared.full, full);
        for (way, packets) in self.shared.ways.iter().zip(sent) {
            add(&way.sent[phase as usize], packets);
        }
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
        let mut forth = locked(&shared.ways[0].arrivals);
        let mut back = shared.ways.get(1).map(|way| locked(&way.arrivals));
        let Some(forth) = forth.as_mut() else { return 0 };
        let mut back = back.as_mut().and_then(|back| back.as_mut());
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
                    let arrivals = match (frame.egress(), &mut back) {
                        (Some(FAR), _) => &mut *forth,
                        (Some(_), Some(back)) => &mut **back,
                        (Some(_), None) => {
                            returned += 1;
                            continue;
                        }
                        (None, _) => continue,
                    };
                    arrivals.take(frame.bytes(), frame.len(), now_ns);
                }
                wire.drain.release();
            }
        }
        if seen > 0 {
            // Damaged bytes may lie in a slot's buffer beyond what is written anew.
            self.rewrites |= forth.counts().faults.iter().any(|&packets| packets > 0);
            *locked(&shared.ways[0].counts) = *forth.counts();
            if let (Some(back), Some(way)) = (&back, shared.ways.get(1)) {
                *locked(&way.counts) = *back.counts();
            }
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

/// There is one writer: a plain load and store keep the hot loop free of locked
/// instructions.
#[inline]
fn add(counter: &AtomicU64, packets: u64) {
    if packets > 0 {
        counter.store(counter.load(Ordering::Relaxed) + packets, Ordering::Release);
    }
}
