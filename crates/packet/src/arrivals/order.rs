//! Duplicates, reordering and losses by sequence number.
//!
//! A sender goes through its flows in turn, so its sequence number determines the flow: number `s`
//! belongs to flow `s mod n` of `n`, and is that flow's packet of round `s / n`. For each flow of
//! each sender, [`Entry`] (16 bytes) contains the newest round, the number of packets that arrived,
//! and the arrivals of the last 64 rounds.
//!
//! A packet is *late* (RFC 4737, Type-P-Reordered) if a newer one of the same flow and sender came
//! before it; packets of different flows have no order between them. It is a *duplicate* (RFC 5560)
//! if the same packet came before it, within the last 64 rounds. If there are few flows, each has
//! several entries that share its rounds in turn, so that at least the last 65,536 packets of a
//! sender are remembered; of older packets only the lateness is known.
//!
//! The usual case needs no division: the sender's current round is remembered.

use super::fault::Fault;
use super::flows::{Entry, FlowSummary, Line, summary};
use crate::stamp::Stamp;

/// Maximum number of 16-byte entries: a million flows of four senders, 64 MiB. Above it flows are
/// not followed, and only impossible sequence numbers are detected.
pub const ENTRIES_MAX: u64 = 1 << 22;
/// Minimum number of entries per sender.
const ENTRIES_MIN: u32 = 1024;
/// Maximum distance of a packet's sequence number from the sender's last one, in either direction,
/// unless a second packet confirms it: 1.6 s of the fastest traffic.
pub const JUMP_MAX: u64 = 1 << 24;
/// Maximum age of a packet at arrival.
pub const AGE_MAX_NS: u32 = 3_000_000_000;
/// Maximum backward step of sending times that is not taken for a wrapped clock.
pub const BACK_MAX_NS: u32 = 1 << 30;

/// Order in which senders go through the flows.
#[derive(Clone, Debug)]
pub enum Routes {
    /// Each of `senders` goes through all flows.
    Everywhere {
        /// Flows.
        flows: u32,
        /// Senders.
        senders: u8,
    },
    /// Each flow has one sender, number `wires[flow]` of several, which may be more than a stamp
    /// can distinguish. It goes through its own flows by number.
    Wires(Vec<u16>),
}

/// Position of a packet relative to the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequencePosition {
    /// Newer than all earlier packets of its flow.
    Next,
    /// A newer packet of its flow came before it.
    Late,
    /// A duplicate.
    Again,
    /// Impossible.
    Wrong(Fault),
}

/// Position of a sender.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    /// Sequence number at which the newest round began, counted over all 2^32 rounds.
    base: u64,
    /// The newest round.
    round: u32,
    /// Sequence number and sending time of the last packet.
    sequence: u32,
    time_ns: u32,
    /// Arrival time of the last packet, by the receiver's clock.
    seen_ns: u32,
    /// True once a packet arrived.
    began: bool,
    /// Start of a round that one packet claimed and no other has confirmed.
    suspect: u64,
}

/// Order of the packets of all senders.
#[derive(Debug)]
pub struct Order {
    walks: Vec<Walk>,
    /// Number of flows of each sender.
    lengths: Vec<u32>,
    /// With [`Routes::Wires`]: each flow's sender, and its index among the sender's flows.
    wires: Option<(Vec<u16>, Vec<u32>)>,
    entries: Vec<Entry>,
    /// Newest round plus one of each flow, if it has several entries.
    newest: Vec<u32>,
    /// Entries per flow, as a power of two.
    shares: u32,
    times: Times,
}

/// References that sending times are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// No sending times: they must be 0.
    Off,
    /// Each other, because the sender's clock cannot be read here.
    EachOther,
    /// Each other and the receiver's clock, which is also the sender's.
    Clock,
}

impl Order {
    /// Creates an order without arrivals.
    pub fn new(routes: Routes, times: Times) -> Order {
        let (lengths, wires) = match routes {
            Routes::Everywhere { flows, senders } => {
                (vec![flows; usize::from(senders.max(1))], None)
            }
            Routes::Wires(wires) => {
                let count = wires.iter().max().map_or(0, |&last| usize::from(last) + 1);
                let mut lengths = vec![0; count];
                let place = |&wire: &u16| {
                    let length = &mut lengths[usize::from(wire)];
                    *length += 1;
                    *length - 1
                };
                let places = wires.iter().map(place).collect();
                (lengths, Some((wires, places)))
            }
        };
        let flows: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        let smallest = lengths.iter().copied().filter(|&length| length > 0).min().unwrap_or(0);
        let shares = shares(smallest);
        let is_followed = flows << shares <= ENTRIES_MAX;
        let entries = if is_followed { (flows << shares) as usize } else { 0 };
        let newest = if is_followed && shares > 0 { flows as usize } else { 0 };
        Order {
            walks: vec![Walk::default(); lengths.len()],
            lengths,
            wires,
            entries: vec![Entry::default(); entries],
            newest: vec![0; newest],
            shares,
            times,
        }
    }

    /// Returns the sender, the index among its flows and the number of the flow's entry; `None` if
    /// the sender has no such flow.
    #[inline]
    fn place(&self, sender: u8, flow: u32) -> Option<(usize, u32, usize)> {
        match &self.wires {
            None => {
                let (walk, length) = (usize::from(sender), *self.lengths.get(usize::from(sender))?);
                let number = walk * length as usize + flow as usize;
                (flow < length).then_some((walk, flow, number))
            }
            Some((wires, places)) => {
                let walk = usize::from(*wires.get(flow as usize)?);
                (walk as u8 & 0xf == sender).then_some((walk, places[flow as usize], flow as usize))
            }
        }
    }

    /// True if a packet belongs to its sender's newest round or the next one, and is newer than all
    /// earlier packets of its flow.
    #[inline]
    pub fn is_due(&self, stamp: &Stamp) -> bool {
        let Some((at, place, number)) = self.place(stamp.sender, stamp.flow) else { return false };
        let walk = &self.walks[at];
        let ahead = stamp.sequence.wrapping_sub(place).wrapping_sub(walk.base as u32);
        let is_next = ahead == self.lengths[at];
        let round = walk.round.wrapping_add(u32::from(is_next));
        let share = round as usize & ((1 << self.shares) - 1);
        let entry = self.entries.get((number << self.shares) + share);
        (ahead == 0 || is_next)
            && entry.is_none_or(|entry| round >> self.shares >= entry.next)
            && self.newest.get(number).is_none_or(|&newest| round >= newest)
    }

    /// Processes a packet that is intact by itself. `now_ns` is the receiver's clock; `None` if the
    /// sending time is not checked.
    #[inline]
    pub fn take(&mut self, stamp: &Stamp, now_ns: Option<u32>) -> SequencePosition {
        let Some((at, place, number)) = self.place(stamp.sender, stamp.flow) else {
            return SequencePosition::Wrong(Fault::Stamp);
        };
        let length = self.lengths[at];
        let walk = &mut self.walks[at];
        let ahead = stamp.sequence.wrapping_sub(place).wrapping_sub(walk.base as u32).cast_signed();
        let (base, round) = if ahead == 0 {
            (walk.base, walk.round)
        } else if ahead.cast_unsigned() == length {
            (walk.base + u64::from(length), walk.round.wrapping_add(1))
        } else {
            match walk.leap(i64::from(ahead), length) {
                Some(there) => there,
                None => return SequencePosition::Wrong(Fault::Sequence),
            }
        };
        let is_possible = match (self.times, now_ns) {
            (_, None) => true,
            (Times::Off, _) => stamp.time_ns == 0,
            (Times::EachOther, Some(now)) => walk.is_time_possible(stamp, now, false),
            (Times::Clock, Some(now)) => walk.is_time_possible(stamp, now, true),
        };
        if !is_possible {
            return SequencePosition::Wrong(Fault::Time);
        }
        if base >= walk.base {
            (walk.base, walk.round) = (base, round);
        }
        self.follow(number, round)
    }

    #[inline]
    fn follow(&mut self, number: usize, round: u32) -> SequencePosition {
        let share = round as usize & ((1 << self.shares) - 1);
        let Some(entry) = self.entries.get_mut((number << self.shares) + share) else {
            return SequencePosition::Next;
        };
        let entry_round = round >> self.shares;
        let mut is_late = entry_round < entry.next;
        if is_late {
            let behind = entry.next - 1 - entry_round;
            if behind < 64 {
                if entry.window >> behind & 1 == 1 {
                    return SequencePosition::Again;
                }
                entry.window |= 1 << behind;
            }
        } else {
            let by = entry_round - entry.next + 1;
            entry.window = if by < 64 { entry.window << by | 1 } else { 1 };
            entry.next = entry_round + 1;
        }
        entry.count += 1;
        if let Some(newest) = self.newest.get_mut(number) {
            is_late = round < *newest;
            if !is_late {
                *newest = round + 1;
            }
        }
        if is_late { SequencePosition::Late } else { SequencePosition::Next }
    }

    /// Number of flows of all senders, as numbered by [`Order::turn`]; 0 if flows are not followed.
    pub fn numbers(&self) -> usize {
        if self.entries.is_empty() { 0 } else { self.entries.len() >> self.shares }
    }

    /// Returns the number of a packet's flow among the flows of all senders, and its round; for
    /// packets that [`Order::take`] has processed.
    pub fn turn(&self, stamp: &Stamp) -> Option<(usize, u32)> {
        let (at, place, number) = self.place(stamp.sender, stamp.flow)?;
        let walk = &self.walks[at];
        let ahead = stamp.sequence.wrapping_sub(place).wrapping_sub(walk.base as u32).cast_signed();
        let rounds = ahead / self.lengths[at].max(1).cast_signed();
        Some((number, walk.round.wrapping_add_signed(rounds)))
    }

    /// Returns the flow that a sender's sequence number belongs to, as far as is known; `None` if
    /// there is no such sender, or if several senders share its number.
    pub fn flow_of(&self, sender: u8, sequence: u32) -> Option<u32> {
        let at = usize::from(sender);
        let (walk, length) = (self.walks.get(at)?, *self.lengths.get(at).filter(|&&n| n > 0)?);
        let ahead = sequence.wrapping_sub(walk.base as u32).cast_signed();
        let place = walk.base.checked_add_signed(i64::from(ahead))? % u64::from(length);
        match &self.wires {
            None => Some(place as u32),
            Some(_) if self.walks.len() > 16 => None,
            Some((wires, places)) => {
                let flows = wires.iter().zip(places);
                let flow = flows.into_iter().position(|(&wire, &index)| {
                    usize::from(wire) == at && u64::from(index) == place
                });
                flow.map(|flow| flow as u32)
            }
        }
    }

    /// Records that a packet of a flow arrived, and nothing else.
    pub fn mark(&mut self, flow: u32) {
        if let Some(entry) = self.entries.get_mut((flow as usize) << self.shares) {
            entry.count += 1;
        }
    }

    /// Returns the arrivals per flow; `None` if flows are not followed. Without `sequences`, only
    /// the flows that were seen are known.
    pub fn flows(&self, sequences: bool) -> Option<FlowSummary> {
        if self.entries.is_empty() {
            return None;
        }
        let lines = match &self.wires {
            None => {
                let length = self.lengths[0];
                (0..self.lengths.len() * length as usize)
                    .map(|n| (n / length as usize, (n % length as usize) as u32))
                    .map(|(sender, flow)| (sender, flow, flow))
                    .collect::<Vec<_>>()
            }
            Some((wires, places)) => {
                let all = wires.iter().zip(places).zip(0..);
                all.map(|((&wire, &place), flow)| (usize::from(wire), place, flow)).collect()
            }
        };
        let lines = lines.into_iter().enumerate().map(|(number, (sender, place, flow))| {
            let shares = &self.entries[number << self.shares..(number + 1) << self.shares];
            Line::of(sender, place, flow, shares, self.shares)
        });
        Some(summary(lines, &self.lengths, sequences))
    }
}

/// Returns the entries per flow of a sender with this number of flows, as a power of two.
pub fn shares(flows: u32) -> u32 {
    (ENTRIES_MIN / flows.max(1)).max(1).ilog2()
}

impl Walk {
    /// Returns the start and number of the round that is `ahead` sequence numbers after the newest
    /// one, or before it; `None` if no round begins there, or if it is so far away that a second
    /// packet must confirm it.
    #[cold]
    fn leap(&mut self, ahead: i64, length: u32) -> Option<(u64, u32)> {
        let base = self.base.checked_add_signed(ahead)?;
        if base % u64::from(length) != 0 {
            return None;
        }
        if ahead.unsigned_abs() > JUMP_MAX {
            // By another packet: a duplicate confirms nothing.
            let is_confirmed = self.suspect != 0
                && base != self.suspect
                && base.abs_diff(self.suspect) <= JUMP_MAX;
            self.suspect = base;
            if !is_confirmed {
                return None;
            }
            self.suspect = 0;
        }
        Some((base, (base / u64::from(length)) as u32))
    }

    /// True if a packet's sending time is consistent with its sequence number and with the last
    /// packet, and is neither in the future nor long ago.
    #[inline]
    fn is_time_possible(&mut self, stamp: &Stamp, now_ns: u32, same_clock: bool) -> bool {
        let time = stamp.time_ns;
        if same_clock && now_ns.wrapping_sub(time) > AGE_MAX_NS {
            return false;
        }
        // After a silence, the times of two packets are unrelated.
        let is_compared = self.began && now_ns.wrapping_sub(self.seen_ns) < BACK_MAX_NS;
        let is_newer = stamp.sequence.wrapping_sub(self.sequence).cast_signed() > 0;
        let back = match is_newer {
            true => self.time_ns.wrapping_sub(time),
            false => time.wrapping_sub(self.time_ns),
        };
        let is_possible = !is_compared || back == 0 || back > BACK_MAX_NS;
        (self.sequence, self.time_ns, self.seen_ns, self.began) =
            (stamp.sequence, time, now_ns, true);
        is_possible
    }
}
