//! Whether a packet arrived intact, and once.
//!
//! [`pattern`] says how packets of a run must look when they arrive, [`judge`] holds a
//! frame against it and names what is wrong, [`order`] follows the sequence numbers:
//! duplicates (RFC 5560), reordering (RFC 4737) and what is missing of each flow.
//! [`Arrivals`] is all of it, for receivers in user space; the receiver in the kernel
//! (crate `port`, `bpf/receiver.bpf.c`) does the same and is tested against it.

pub mod fault;
pub mod flows;
pub mod judge;
pub mod order;
pub mod pattern;

pub use fault::{FAULTS, Fault};
pub use flows::FlowSummary;
pub use judge::Seen;
pub use order::{Order, Routes, Times};
pub use pattern::{Expected, Pattern};

use crate::stamp::{PHASES, Stamp};

/// Packets of a run whose payload is looked at from end to end before samples begin.
pub const FIRST_IN_FULL: u64 = 1024;
/// Sampling of later packets: the whole payload of one in so many is checked, where it goes
/// on after the stamp.
pub const PAYLOAD_SAMPLE: u64 = 64;

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets of this run that arrived intact, each once, by the phase they were sent in.
    pub packets: [u64; PHASES],
    /// Bytes of these packets, without FCS.
    pub bytes: u64,
    /// Packets with another run's stamp, intact in themselves.
    pub foreign: u64,
    /// UDP packets between the benchmark's addresses without a stamp, intact in themselves.
    pub unstamped: u64,
    /// Any other frame: neighbour discovery, ARP, LLDP.
    pub others: u64,
    /// Packets of this run that arrived damaged, by phase.
    pub damaged: [u64; PHASES],
    /// The same by what is wrong with them, see [`Fault`].
    pub faults: [u64; FAULTS],
    /// Packets of this run that had arrived before, by phase.
    pub duplicates: [u64; PHASES],
    /// Packets, counted above as arrived, that a later one of the same flow had overtaken,
    /// by phase.
    pub reordered: [u64; PHASES],
    /// Packets whose payload was looked at from end to end.
    pub in_full: u64,
}

impl Received {
    /// Packets of this run in all phases.
    pub fn total(&self) -> u64 {
        self.packets.iter().copied().fold(0, u64::saturating_add)
    }

    /// Frames that came, whatever they were.
    pub fn seen(&self) -> u64 {
        let phases = [self.packets, self.damaged, self.duplicates];
        let others = [self.foreign, self.unstamped, self.others];
        phases.iter().flatten().chain(&others).copied().fold(0, u64::saturating_add)
    }

    /// Adds the counts of another part of the same receiver.
    pub fn add(&mut self, other: &Received) {
        for phase in 0..PHASES {
            self.packets[phase] += other.packets[phase];
            self.damaged[phase] += other.damaged[phase];
            self.duplicates[phase] += other.duplicates[phase];
            self.reordered[phase] += other.reordered[phase];
        }
        for (sum, packets) in self.faults.iter_mut().zip(other.faults) {
            *sum += packets;
        }
        self.bytes += other.bytes;
        self.foreign += other.foreign;
        self.unstamped += other.unstamped;
        self.others += other.others;
        self.in_full += other.in_full;
    }
}

/// Judges and follows the packets of one receiver in user space.
#[derive(Debug)]
pub struct Arrivals {
    run_id: u32,
    pattern: Option<Pattern>,
    order: Order,
    /// Phase of the last intact packet.
    phase: usize,
    /// Whatever is there from end to end is looked at so.
    all_whole: bool,
    counts: Received,
}

impl Arrivals {
    /// For packets that must be as `expected`, by senders that go through the flows as
    /// `routes` says.
    pub fn new(expected: &Expected, routes: Routes) -> Arrivals {
        let pattern = Pattern::new(expected);
        let times = match (expected.timestamps, expected.same_clock) {
            (false, _) => Times::Off,
            (true, false) => Times::EachOther,
            (true, true) => Times::Clock,
        };
        let order = Order::new(routes, times);
        let (run_id, counts) = (expected.template.run_id(), Received::default());
        Arrivals { run_id, pattern: Some(pattern), order, phase: 0, all_whole: false, counts }
    }

    /// Looks at stamps alone, where nothing else is known of the packets; flows below
    /// `flows` are told apart.
    pub fn by_stamp(run_id: u32, flows: u32) -> Arrivals {
        let order = Order::new(Routes::Everywhere { flows, senders: 1 }, Times::Off);
        let counts = Received::default();
        Arrivals { run_id, pattern: None, order, phase: 0, all_whole: false, counts }
    }

    /// Looks at each payload that is there from end to end: for receivers that leave most
    /// of them out themselves.
    pub fn looking_at_all(self) -> Arrivals {
        Arrivals { all_whole: true, ..self }
    }

    /// Counters so far.
    pub fn counts(&self) -> &Received {
        &self.counts
    }

    /// What arrived of each flow; none when flows are not followed.
    pub fn flows(&self) -> Option<FlowSummary> {
        self.order.flows(self.pattern.is_some())
    }

    /// True when the next frame's payload should be there from end to end.
    #[inline]
    fn wants_all(&self) -> bool {
        self.all_whole
            || self.counts.in_full < FIRST_IN_FULL
            || self.order.taken().is_multiple_of(PAYLOAD_SAMPLE)
    }

    /// Takes a frame that had `length` bytes on the wire, of which `frame` holds the first
    /// or all. `now_ns` is the receiver's clock modulo 2^32; any where packets carry no time.
    #[inline]
    pub fn take(&mut self, frame: &[u8], length: usize, now_ns: u32) {
        let Some(pattern) = &self.pattern else { return self.take_by_stamp(frame, length) };
        let scan = self.wants_all() && pattern.has_payload() && frame.len() == length;
        self.counts.in_full += u64::from(scan || !pattern.has_payload());
        let Some(stamp) = pattern.passes(frame, length, scan) else {
            let flow_of = |sender, sequence| self.order.flow_of(sender, sequence);
            let seen = pattern.judge(frame, length, scan, flow_of);
            return self.count(seen);
        };
        let phase = usize::from(stamp.phase);
        self.phase = phase;
        match self.order.take(&stamp, now_ns) {
            order::Place::Next => {}
            order::Place::Late => self.counts.reordered[phase] += 1,
            order::Place::Again => {
                self.counts.duplicates[phase] += 1;
                return;
            }
            order::Place::Wrong(fault) => return self.count(Seen::Damaged(fault, Some(phase))),
        }
        self.counts.packets[phase] += 1;
        self.counts.bytes += length as u64;
    }

    fn count(&mut self, seen: Seen) {
        match seen {
            Seen::Damaged(fault, phase) => {
                self.counts.damaged[phase.unwrap_or(self.phase)] += 1;
                self.counts.faults[fault as usize] += 1;
            }
            Seen::Foreign => self.counts.foreign += 1,
            Seen::Unstamped => self.counts.unstamped += 1,
            Seen::Other => self.counts.others += 1,
        }
    }

    fn take_by_stamp(&mut self, frame: &[u8], length: usize) {
        match Stamp::parse_frame(frame) {
            Some(stamp) if stamp.run_id == self.run_id => {
                self.counts.packets[usize::from(stamp.phase) % PHASES] += 1;
                self.counts.bytes += length as u64;
                self.order.mark(stamp.flow);
            }
            Some(_) => self.counts.foreign += 1,
            None if judge::is_benchmark_udp(frame) => self.counts.unstamped += 1,
            None => self.counts.others += 1,
        }
    }
}

#[cfg(test)]
mod tests;
