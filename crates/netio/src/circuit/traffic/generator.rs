//! Work of the thread: writes packets of each direction into free slots, and counts arrivals.

use super::super::{BATCH, Circuit, Drain, FAR, Feeder, NEAR, Transit};
use super::{DRAIN, GO, ReverseTraffic, Shared, TrafficConfig, WAIT, locked};
use crate::clock;
use crate::flood::Flooding;
use crate::frame::Frame;
use crate::pacing::{Pacer, Times, burst};
use crate::prefetch::prefetch;
use fwdlab_packet::{Phase, PreparedFlows, Template};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

pub(super) struct Wire {
    feeder: Feeder,
    /// The router's end, used if there is no router.
    bypass: Option<Transit>,
    drain: Drain,
    /// Flows on this wire, by direction.
    lanes: Vec<Lane>,
    /// Number of frames in the current slot.
    filled: usize,
}

/// Flows of one direction that take the same wire.
struct Lane {
    flows: PreparedFlows,
    /// Index of the next flow.
    next: usize,
    /// Ingress port of the packets.
    ingress: u8,
}

impl Lane {
    fn new(direction: &ReverseTraffic, ingress: u8, number: usize) -> Lane {
        let destinations = direction.template.flows().destinations;
        let flows = (0..).zip(&direction.wires).filter(|&(_, &wire)| usize::from(wire) == number);
        let flows: Vec<(u32, u32)> =
            flows.map(|(flow, _)| (flow / destinations, flow % destinations)).collect();
        Lane {
            flows: PreparedFlows::new(&direction.template, number as u8, &flows),
            next: 0,
            ingress,
        }
    }

    /// Writes a packet of the flow over the previous packet, whatever the router has made of it.
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
        let lanes =
            lanes.map(|(direction, ingress)| Lane::new(direction, ingress, number)).collect();
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

    /// Forwards the frames if there is no router.
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
    /// Senders by direction, and with a rate the index of the next one.
    ways: Vec<Sending>,
    turn: usize,
    /// True if all bytes of each packet must be written, because packets came back damaged, or a
    /// flood shares the buffers.
    rewrites: bool,
    flood: Option<Flooding>,
}

/// A direction with a rate.
struct Sending {
    template: Template,
    /// Wire of each flow.
    wires: Vec<u16>,
    /// Index of each flow among the flows of its wire.
    places: Vec<u32>,
    /// The next flow.
    flow: usize,
}

impl Sending {
    fn new(direction: ReverseTraffic, wires: usize) -> Sending {
        let mut counts = vec![0; wires];
        let index = |&wire: &u16| {
            let count = &mut counts[usize::from(wire)];
            *count += 1;
            *count - 1
        };
        let places = direction.wires.iter().map(index).collect();
        Sending { template: direction.template, wires: direction.wires, places, flow: 0 }
    }
}

impl Generator {
    pub(super) fn new(config: TrafficConfig, wires: Vec<Wire>, shared: Arc<Shared>) -> Generator {
        let ways = config
            .ways()
            .into_iter()
            .map(|direction| Sending::new(direction, wires.len()))
            .collect();
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
            let new_rate = self.shared.rate.load(Ordering::Relaxed);
            let sent = match &mut pacer {
                None => self.fill(),
                Some(pacer) => {
                    if new_rate != rate {
                        rate = new_rate;
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
                // The process that shares this CPU may be the one this thread waits for.
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

    /// Fills the next slot of each wire, if free; returns the number of packets sent.
    fn fill(&mut self) -> usize {
        let phase = self.phase();
        let time = self.time();
        let mut sent = 0;
        for wire in &mut self.wires {
            // With two directions, the frames alternate between them.
            let mut lanes: Vec<(usize, &mut Lane)> = Vec::with_capacity(2);
            lanes.extend(
                wire.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.flows.is_empty()),
            );
            let ways = lanes.len();
            if ways == 0 {
                continue;
            }
            let Some(frames) = wire.feeder.slot() else { continue };
            for (at, frame) in frames.iter_mut().enumerate() {
                let (direction, lane) = &mut lanes[at % ways];
                if self.rewrites {
                    restore(frame, &self.ways[*direction].template);
                }
                lane.write(lane.next, frame, phase, time);
                lane.next = if lane.next + 1 == lane.flows.len() { 0 } else { lane.next + 1 };
            }
            for (index, (direction, _)) in lanes.iter().enumerate() {
                let count = (BATCH + ways - 1 - index) / ways;
                add(&self.shared.ways[*direction].sent[phase as usize], count as u64);
            }
            wire.feeder.publish(BATCH);
            wire.carry();
            sent += BATCH;
        }
        sent
    }

    /// Sends the next `due` packets, whether or not there is room.
    fn send(&mut self, due: usize, mut times: Times) {
        let phase = self.phase();
        let is_timed = self.config.timestamps;
        let (mut full, mut sent) = (0, [0; 2]);
        for _ in 0..due {
            let time = if is_timed { times.next() } else { 0 };
            let number = self.turn;
            self.turn = if number + 1 == self.ways.len() { 0 } else { number + 1 };
            sent[number] += 1;
            let direction = &mut self.ways[number];
            let flow = direction.flow;
            direction.flow = if flow + 1 == direction.wires.len() { 0 } else { flow + 1 };
            let wire = &mut self.wires[usize::from(direction.wires[flow])];
            let lane = &mut wire.lanes[number];
            let Some(frames) = wire.feeder.slot() else {
                full += 1;
                lane.flows.skip();
                continue;
            };
            let index = direction.places[flow] as usize;
            if self.rewrites {
                restore(&mut frames[wire.filled], &direction.template);
            }
            lane.write(index, &mut frames[wire.filled], phase, time);
            wire.filled += 1;
            if wire.filled == BATCH {
                wire.publish();
            }
        }
        self.wires.iter_mut().for_each(Wire::publish);
        add(&self.shared.full, full);
        for (direction, packets) in self.shared.ways.iter().zip(sent) {
            add(&direction.sent[phase as usize], packets);
        }
    }

    /// Sends the due packets of the flood, whether or not there is room; returns their number.
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

    /// Counts arrived packets; returns the number of all frames seen.
    fn count(&mut self) -> usize {
        let shared = &*self.shared;
        let mut forward = locked(&shared.ways[0].arrivals);
        let mut back = shared.ways.get(1).map(|direction| locked(&direction.arrivals));
        let Some(forward) = forward.as_mut() else { return 0 };
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
                        (Some(FAR), _) => &mut *forward,
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
            // Damaged bytes may remain in a slot's buffer beyond the rewritten bytes.
            self.rewrites |= forward.counts().faults.iter().any(|&packets| packets > 0);
            *locked(&shared.ways[0].counts) = *forward.counts();
            if let (Some(back), Some(direction)) = (&back, shared.ways.get(1)) {
                *locked(&direction.counts) = *back.counts();
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

/// There is one writer: a plain load and store keep the hot loop free of locked instructions.
#[inline]
fn add(counter: &AtomicU64, packets: u64) {
    if packets > 0 {
        counter.store(counter.load(Ordering::Relaxed) + packets, Ordering::Release);
    }
}
