//! Verification that each packet arrived intact, and once.
//!
//! [`expected`] defines how a run's packets must look when they arrive, [`verify`] compares a frame
//! with it and names the fault, [`order`] follows the sequence numbers: duplicates (RFC 5560),
//! reordering (RFC 4737) and missing packets per flow. [`Arrivals`] combines them for receivers in
//! user space. The receiver in the kernel (crate `port`, `bpf/receiver.bpf.c`) does the same and is
//! tested against it.

pub mod delays;
pub mod expected;
pub mod fault;
pub mod flows;
pub mod order;
pub mod sample;
pub mod translation;
pub mod verify;

pub use delays::Delays;
pub use expected::{Expected, Pattern};
pub use fault::{FAULTS, Fault};
pub use flows::FlowSummary;
pub use order::{Order, Routes, Times};
pub use sample::{CHECKED_ONE_IN, FIRST_CHECKED, FIRST_IN_FULL, PAYLOAD_ONE_IN};
pub use verify::FrameClass;

use crate::stamp::{PHASES, Phase, Stamp};
use translation::Mappings;

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Intact packets of this run, each counted once, by the phase in which they were sent.
    pub packets: [u64; PHASES],
    /// Bytes of these packets without FCS, by phase.
    pub bytes: [u64; PHASES],
    /// Intact packets with another run's stamp.
    pub foreign: u64,
    /// Intact UDP packets between the benchmark's addresses without a stamp.
    pub unstamped: u64,
    /// All other frames: neighbour discovery, ARP, LLDP.
    pub others: u64,
    /// Damaged packets of this run, by phase.
    pub damaged: [u64; PHASES],
    /// Damaged packets of this run, by [`Fault`].
    pub faults: [u64; FAULTS],
    /// Packets of this run that had arrived before, by phase.
    pub duplicates: [u64; PHASES],
    /// Packets, counted above as arrived, that a later packet of the same flow had overtaken, by
    /// phase.
    pub reordered: [u64; PHASES],
    /// Packets of this run of which every byte was checked.
    pub in_full: u64,
    /// Packets of this run chosen to be checked: all, unless only a sample is checked.
    pub checked: u64,
    /// Damaged packets among those that were not chosen.
    pub evident: u64,
}

impl Received {
    /// Returns the number of intact packets of this run in all phases.
    pub fn total(&self) -> u64 {
        self.packets.iter().copied().fold(0, u64::saturating_add)
    }

    /// Returns the number of received packets of this run, intact or not.
    pub fn ours(&self) -> u64 {
        let phases = [self.packets, self.damaged, self.duplicates];
        phases.iter().flatten().copied().fold(0, u64::saturating_add)
    }

    /// Returns the number of all received frames.
    pub fn seen(&self) -> u64 {
        let others = [self.foreign, self.unstamped, self.others];
        others.into_iter().fold(self.ours(), u64::saturating_add)
    }

    /// Adds the counts of another part of the same receiver.
    pub fn add(&mut self, other: &Received) {
        for phase in 0..PHASES {
            self.packets[phase] += other.packets[phase];
            self.bytes[phase] += other.bytes[phase];
            self.damaged[phase] += other.damaged[phase];
            self.duplicates[phase] += other.duplicates[phase];
            self.reordered[phase] += other.reordered[phase];
        }
        for (sum, packets) in self.faults.iter_mut().zip(other.faults) {
            *sum += packets;
        }
        self.foreign += other.foreign;
        self.unstamped += other.unstamped;
        self.others += other.others;
        self.in_full += other.in_full;
        self.checked += other.checked;
        self.evident += other.evident;
    }
}

/// Verifies and follows the packets of one receiver in user space.
#[derive(Debug)]
pub struct Arrivals {
    run_id: u32,
    pattern: Option<Pattern>,
    order: Order,
    /// Phase of the last intact packet.
    phase: usize,
    /// Received frames.
    frames: u64,
    /// Frames to check among the next 64, the next one in the lowest bit.
    chosen: u64,
    /// True if every available payload is checked from end to end.
    all_whole: bool,
    counts: Received,
    /// Delays of the packets of the window; `None` if the sender reads a different clock.
    delays: Option<FlowTimes>,
    /// Empty unless the device translates source addresses.
    mappings: Mappings,
}

/// Delays, and their differences between consecutive packets of a flow.
#[derive(Debug)]
struct FlowTimes {
    delays: Delays,
    differences: Delays,
    /// The next round of each flow, and the delay of the packet before it.
    last: Vec<(u32, u32)>,
}

impl FlowTimes {
    fn new(numbers: usize) -> FlowTimes {
        let (delays, differences) = (Delays::default(), Delays::default());
        FlowTimes { delays, differences, last: vec![(0, 0); numbers] }
    }

    /// Adds a packet, in its turn.
    fn add(&mut self, delay_ns: u32, turn: Option<(usize, u32)>) {
        self.delays.add(delay_ns);
        let Some((number, round)) = turn else { return };
        let Some(last) = self.last.get_mut(number) else { return };
        let (next, before_ns) = *last;
        if next == round && round > 0 {
            self.differences.add(delay_ns.abs_diff(before_ns));
        }
        *last = (round.wrapping_add(1), delay_ns);
    }
}

impl Arrivals {
    /// Creates arrivals of packets as `expected`, from senders that go through the flows as
    /// `routes` defines.
    pub fn new(expected: &Expected, routes: Routes) -> Arrivals {
        let pattern = Pattern::new(expected);
        let times = match (expected.timestamps, expected.same_clock) {
            (false, _) => Times::Off,
            (true, false) => Times::EachOther,
            (true, true) => Times::Clock,
        };
        let order = Order::new(routes, times);
        let delays = (times == Times::Clock).then(|| FlowTimes::new(order.numbers()));
        let mappings = match expected.translated {
            Some(_) => Mappings::new(expected.template.flows().count()),
            None => Mappings::default(),
        };
        Arrivals {
            pattern: Some(pattern),
            delays,
            mappings,
            ..Arrivals::empty(expected.template.run_id(), order)
        }
    }

    /// Creates arrivals that only read stamps, for packets of which nothing else is known. Flows
    /// below `flows` are distinguished.
    pub fn by_stamp(run_id: u32, flows: u32) -> Arrivals {
        let order = Order::new(Routes::Everywhere { flows, senders: 1 }, Times::Off);
        Arrivals::empty(run_id, order)
    }

    fn empty(run_id: u32, order: Order) -> Arrivals {
        Arrivals {
            run_id,
            pattern: None,
            order,
            phase: 0,
            frames: 0,
            chosen: 0,
            all_whole: false,
            counts: Received::default(),
            delays: None,
            mappings: Mappings::default(),
        }
    }

    /// Checks every packet, and every available payload from end to end: for receivers that drop
    /// most payloads themselves.
    pub fn looking_at_all(self) -> Arrivals {
        Arrivals { all_whole: true, ..self }
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> &Received {
        &self.counts
    }

    /// Returns the arrivals per flow; `None` if flows are not followed.
    pub fn flows(&self) -> Option<FlowSummary> {
        self.order.flows(self.pattern.is_some())
    }

    /// Returns the delays of the checked packets of the window, by the sending time in them; `None`
    /// if the sender's clock is not the receiver's. Duplicates and damaged packets have no delay,
    /// late packets do.
    pub fn delays(&self) -> Option<Delays> {
        let timed = self.delays.as_ref()?;
        Some(timed.delays.clone().with_differences(timed.differences.clone()))
    }

    /// Processes a frame of `length` bytes on the wire, of which `frame` contains the first bytes
    /// or all. `now_ns` is the receiver's clock modulo 2^32; any value if packets contain no time.
    #[inline]
    pub fn take(&mut self, frame: &[u8], length: usize, now_ns: u32) {
        let Some(pattern) = &self.pattern else { return self.take_by_stamp(frame, length) };
        let restored = pattern.restored(frame);
        let frame = restored.as_ref().map_or(frame, |restored| &restored.frame);
        let sampled = pattern.expected().sampled && !self.all_whole;
        self.chosen = match self.frames % 64 {
            0 if !sampled || self.counts.checked < FIRST_CHECKED => u64::MAX,
            0 => sample::chosen(self.run_id, self.frames),
            _ => self.chosen.rotate_right(1),
        };
        let chosen = self.chosen & 1 == 1;
        let scan = chosen
            && pattern.has_payload()
            && frame.len() == length
            && (self.all_whole
                || self.counts.in_full < FIRST_IN_FULL
                || sample::is_whole(self.run_id, self.frames));
        self.frames += 1;
        // Without payload of this kind, every checked packet is checked in full.
        self.counts.in_full += u64::from(scan);
        let is_whole = u64::from(chosen && !pattern.has_payload());
        let unchecked = match chosen {
            true => None,
            false => pattern
                .stamp(frame, length)
                .filter(|stamp| usize::from(stamp.phase) == self.phase && self.order.is_due(stamp)),
        };
        let is_checked = unchecked.is_none();
        let Some(stamp) = unchecked.or_else(|| pattern.passes(frame, length, scan)) else {
            let flow_of = |sender, sequence| self.order.flow_of(sender, sequence);
            let class = pattern.judge(frame, length, scan, flow_of);
            if matches!(class, FrameClass::Damaged(..)) {
                self.counts.checked += u64::from(chosen);
                self.counts.in_full += is_whole;
            }
            return self.count(class, chosen);
        };
        let phase = usize::from(stamp.phase);
        self.phase = phase;
        self.counts.checked += u64::from(chosen);
        self.counts.in_full += is_whole;
        match self.order.take(&stamp, is_checked.then_some(now_ns)) {
            order::SequencePosition::Next => {}
            order::SequencePosition::Late => self.counts.reordered[phase] += 1,
            order::SequencePosition::Again => {
                self.counts.duplicates[phase] += 1;
                return;
            }
            order::SequencePosition::Wrong(fault) => {
                return self.count(FrameClass::Damaged(fault, Some(phase)), chosen);
            }
        }
        // A packet with a wrong sequence number may name another flow.
        if let Some(restored) = &restored
            && is_checked
            && self.mappings.is_changed(stamp.flow, restored.port)
        {
            return self.count(FrameClass::Damaged(Fault::Mapping, Some(phase)), chosen);
        }
        self.counts.packets[phase] += 1;
        self.counts.bytes[phase] += length as u64;
        if is_checked
            && phase == Phase::Window as usize
            && let Some(timed) = &mut self.delays
        {
            timed.add(now_ns.wrapping_sub(stamp.time_ns), self.order.turn(&stamp));
        }
    }

    fn count(&mut self, class: FrameClass, chosen: bool) {
        match class {
            FrameClass::Damaged(fault, phase) => {
                self.counts.evident += u64::from(!chosen);
                self.counts.damaged[phase.unwrap_or(self.phase)] += 1;
                self.counts.faults[fault as usize] += 1;
            }
            FrameClass::Foreign => self.counts.foreign += 1,
            FrameClass::Unstamped => self.counts.unstamped += 1,
            FrameClass::Other => self.counts.others += 1,
        }
    }

    fn take_by_stamp(&mut self, frame: &[u8], length: usize) {
        match Stamp::parse_frame(frame) {
            Some(stamp) if stamp.run_id == self.run_id => {
                let phase = usize::from(stamp.phase) % PHASES;
                self.counts.packets[phase] += 1;
                self.counts.bytes[phase] += length as u64;
                self.order.mark(stamp.flow);
            }
            Some(_) => self.counts.foreign += 1,
            None if verify::is_benchmark_udp(frame) => self.counts.unstamped += 1,
            None => self.counts.others += 1,
        }
    }
}

#[cfg(test)]
mod tests;
