//! Flow cache: a per-worker exact-match cache of flows with a state. Packets that would
//! change only the counters and the time of their state pass without access to it, as in
//! software switches (Pfaff et al., The Design and Implementation of Open vSwitch, NSDI
//! 2015, section 6).
//!
//! A flow is one direction of a connection. It is cached when further packets can't change
//! the phase of its state ([`Found::Steady`]); packets with SYN, FIN or RST bypass the cache
//! and evict the flow. Counters are written back to the state at least every two periods; a
//! flow without packets since the last visit is then evicted. So a state's time lags by at
//! most two periods, and a period is at most a sixteenth of the shortest timeout: no state
//! expires early, only counters may lag.
//!
//! With many more flows than slots, or with short flows, the hit rate is low. The cache is
//! then bypassed, and tried again from time to time.
//!
//! [`Found::Steady`]: super::Found::Steady

use super::key::{self, Key, Of, Seed};
use super::phase::Limits;
use super::segment::{Credit, Of as OfFamily, Query, Segment};
use super::{Access, States};
use crate::firewall::packet::{Packet, bit, may_change_phase};
use crate::firewall::places;
use fwdlab_port::frame::{BATCH, Frame};
use fwdlab_port::prefetch::prefetch;

/// Pairs of slots of a family: a power of two. Of 2000 flows, 99 of 100 find one.
const PAIRS: usize = 1 << 13;
/// Longest time between two visits of a flow, in nanoseconds.
const PERIOD_MAX: u64 = 10_000_000;
/// Periods in the shortest timeout.
const PERIODS: u64 = 16;
/// Number of packets after which the hit rate is evaluated.
const TRIAL: u32 = 1 << 17;
/// Number of packets that bypass the cache after a low hit rate.
const REST: u32 = 1 << 22;

/// Flows of both families.
#[derive(Debug)]
pub(in crate::firewall) struct Flows {
    pub(in crate::firewall) inet: Slots<2>,
    pub(in crate::firewall) inet6: Slots<5>,
    trial: Trial,
}

/// Whether the cache is used, by its hit rate.
#[derive(Debug, Default)]
struct Trial {
    /// Remaining packets that bypass it.
    resting: u32,
    /// Lookups and hits since the last evaluation.
    asked: u32,
    found: u32,
}

/// Flows of one family.
#[derive(Debug)]
pub(in crate::firewall) struct Slots<const N: usize> {
    /// None until the first flow.
    pairs: Box<[Pair<N>]>,
    /// Pairs that hold a flow, or held one, in no order.
    listed: Vec<u16>,
    /// Pairs that the current visit has still to process, from the last to the first.
    left: usize,
    /// Start time of the current visit.
    visit_ns: u64,
    period_ns: u64,
    pairing: Pairing,
    asked: [Ask<N>; BATCH],
    /// Evicted flows whose counters must still be written back.
    forgotten: Vec<(Key<N>, Credit)>,
}

/// How flows are given pairs of slots.
#[derive(Clone, Copy, Debug)]
struct Pairing {
    /// Address of the first pair, for prefetching.
    begin: usize,
    multiplier: u64,
}

/// The lookup of one packet of a batch.
#[derive(Clone, Copy, Debug)]
struct Ask<const N: usize> {
    /// [`Key::counting`]
    key: Key<N>,
    /// Number of its pair.
    at: u32,
    /// [`Packet::more`]
    more: u32,
}

/// The two places that a flow may be in: of IPv4, one line of a cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Pair<const N: usize>([Slot<N>; 2]);

/// A flow entry, possibly empty.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Slot<const N: usize> {
    /// [`Key::counting`]
    key: Key<N>,
    /// Packets not yet written back, in the upper 24 bits, and their bytes.
    more: u64,
    /// Time of the last packet; where there is no flow, [`FREE`] or [`LISTED`].
    last_ns: u64,
}

const _: () = assert!(size_of::<Pair<2>>() == 64 && PAIRS <= 1 << 15);

/// One packet, as [`Slot::more`] counts.
const PACKET: u64 = 1 << 40;
/// Without flow.
const FREE: u64 = 0;
/// Without flow, and still in the list.
const LISTED: u64 = u64::MAX;

impl Flows {
    /// An empty cache for states with these timeouts.
    pub(super) fn new(limits: &Limits, seed: &Seed) -> Flows {
        let period_ns = (limits.shortest() / PERIODS).min(PERIOD_MAX);
        Flows {
            inet: Slots::new(period_ns, seed),
            inet6: Slots::new(period_ns, seed),
            trial: Trial::default(),
        }
    }

    /// True if a batch of so many packets should use the cache. Otherwise its flows must not be
    /// inserted either.
    #[inline(always)]
    pub(in crate::firewall) fn is_awake(&mut self, packets: u32) -> bool {
        let trial = &mut self.trial;
        if trial.resting > 0 {
            trial.resting = trial.resting.saturating_sub(packets);
            return false;
        }
        trial.asked += packets;
        if trial.asked >= TRIAL {
            let is_good = trial.found >= trial.asked / 3;
            *trial = Trial { resting: if is_good { 0 } else { REST }, ..Trial::default() };
        }
        true
    }

    /// Records the number of hits in a batch.
    #[inline(always)]
    pub(in crate::firewall) fn found(&mut self, packets: u32) {
        self.trial.found += packets;
    }

    /// Tells the states what they don't know yet of the flows whose turn it is.
    #[inline(always)]
    pub(in crate::firewall) fn visit<X: Access>(
        &mut self,
        states: &States,
        access: &mut X,
        now_ns: u64,
    ) {
        self.inet.visit(states, access, now_ns);
        self.inet6.visit(states, access, now_ns);
    }

    /// Writes back the counters of flows that were just evicted.
    #[inline(always)]
    pub(in crate::firewall) fn tell_forgotten<X: Access>(
        &mut self,
        states: &States,
        access: &mut X,
        now_ns: u64,
    ) {
        self.inet.tell_forgotten(states, access, now_ns);
        self.inet6.tell_forgotten(states, access, now_ns);
    }

    /// Writes back all counters.
    pub(in crate::firewall) fn tell<X: Access>(&mut self, states: &States, access: &mut X) {
        self.inet.tell(states, access);
        self.inet6.tell(states, access);
    }

    /// Returns the packets `among` a batch that hit the cache and can't change their state's
    /// phase. A separate function: two short loops that need all registers.
    #[inline(never)]
    pub(in crate::firewall) fn take(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64 {
        let Flows { inet, inet6, .. } = self;
        // Where the compiler can see that nothing changes them.
        let (places_of_inet, places_of_inet6) = (inet.pairing, inet6.pairing);
        let (mut of_inet6, mut without) = (0u64, 0u64);
        // For packets that are not among them the lookup is unspecified, and its result unused.
        for (place, (frame, asked)) in batch.iter().zip(&mut inet.asked).enumerate() {
            if let Some((key, more)) = key::quick(frame.buffer()) {
                *asked = places_of_inet.ask(key, more);
                continue;
            }
            let packet = Packet::read(frame);
            if !packet.is(bit::TRACKABLE) {
                // Fragments, too. An ICMP error would look like a query with the identifier 0.
                without |= 1 << place;
            } else if packet.is(bit::INET6) {
                of_inet6 |= 1 << place;
                let key: Key<5> = Of::of(frame.buffer(), &packet);
                inet6.asked[place] = places_of_inet6.ask(key.counting(), packet.more);
            } else {
                let key: Key<2> = Of::of(frame.buffer(), &packet);
                *asked = places_of_inet.ask(key.counting(), packet.more);
            }
        }
        let taken = inet.take(among & !of_inet6 & !without, now_ns);
        if of_inet6 == 0 { taken } else { taken | inet6.take(among & of_inet6, now_ns) }
    }
}

impl Pairing {
    /// The pair of slots that a flow may be in.
    #[inline(always)]
    fn at<const N: usize>(&self, key: &Key<N>) -> usize {
        (key.spread(self.multiplier) >> (64 - PAIRS.ilog2())) as usize
    }

    /// The lookup of a packet. Prefetches the slots, which are less likely cached than the
    /// packet.
    #[inline(always)]
    fn ask<const N: usize>(&self, key: Key<N>, more: u32) -> Ask<N> {
        let at = self.at(&key);
        prefetch(self.begin + at * size_of::<Pair<N>>());
        Ask { key, at: at as u32, more }
    }
}

impl<const N: usize> Slots<N> {
    fn new(period_ns: u64, seed: &Seed) -> Slots<N> {
        Slots {
            pairs: Box::default(),
            listed: Vec::new(),
            left: 0,
            visit_ns: 0,
            period_ns,
            pairing: Pairing { begin: 0, multiplier: seed.multiplier() },
            asked: [Ask { key: Key::NONE, at: 0, more: 0 }; BATCH],
            forgotten: Vec::new(),
        }
    }

    #[inline(always)]
    fn take(&mut self, among: u64, now_ns: u64) -> u64 {
        let Slots { pairs, asked, .. } = self;
        let Some(pairs) = pairs.first_chunk_mut::<PAIRS>() else { return 0 };
        let (mut taken, mut ends) = (0u64, 0u64);
        for place in places(among) {
            let Ask { key, at, more } = &asked[place % BATCH];
            let Pair([one, other]) = &mut pairs[*at as usize % PAIRS];
            let slot = if one.key.unlike(key) == 0 {
                one
            } else if other.key.unlike(key) == 0 {
                other
            } else {
                continue;
            };
            if may_change_phase(*more) {
                ends = among & u64::MAX << place;
                break;
            }
            slot.more += PACKET + u64::from(*more as u16);
            slot.last_ns = now_ns;
            taken |= 1 << place;
        }
        if ends == 0 { taken } else { taken | self.forget_and_take(ends, now_ns) }
    }

    /// Evicts the flow of the first of these packets, and continues after it.
    #[cold]
    #[inline(never)]
    fn forget_and_take(&mut self, among: u64, now_ns: u64) -> u64 {
        let Ask { key, at, .. } = &self.asked[among.trailing_zeros() as usize % BATCH];
        let Pair(pair) = &mut self.pairs[*at as usize];
        for slot in pair.iter_mut().filter(|slot| slot.key.unlike(key) == 0) {
            if let Some(credit) = slot.credit() {
                self.forgotten.push((slot.key, credit));
            }
            *slot = Slot { key: Key::NONE, more: 0, last_ns: LISTED };
        }
        self.take(among & (among - 1), now_ns)
    }

    /// Inserts a flow, unless both of its slots are occupied.
    pub(in crate::firewall) fn remember(&mut self, query: &Query<N>, now_ns: u64) {
        if self.pairs.is_empty() {
            let mut pairs = Vec::with_capacity(PAIRS);
            pairs.resize(PAIRS, Pair([Slot { key: Key::NONE, more: 0, last_ns: FREE }; 2]));
            self.pairs = pairs.into_boxed_slice();
            self.pairing.begin = self.pairs.as_ptr() as usize;
        }
        let key = query.key.counting();
        let at = self.pairing.at(&key);
        let Pair([one, other]) = &mut self.pairs[at];
        if one.key.unlike(&key) == 0 || other.key.unlike(&key) == 0 {
            return;
        }
        let (slot, second) = if one.is_empty() { (one, 0) } else { (other, 1) };
        match slot.last_ns {
            FREE => self.listed.push((at * 2 + second) as u16),
            LISTED => {}
            _ => return,
        }
        // Neither free nor merely listed.
        *slot = Slot { key, more: 0, last_ns: now_ns.clamp(FREE + 1, LISTED - 1) };
    }

    /// Writes back the counters of the flows that are due, and evicts those without packets or
    /// whose state is no longer steady.
    #[inline(always)]
    fn visit<X: Access>(&mut self, states: &States, access: &mut X, now_ns: u64)
    where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        if self.listed.is_empty() {
            self.visit_ns = now_ns;
            return;
        }
        let elapsed_ns = now_ns.saturating_sub(self.visit_ns);
        // No more than 2^24 and 2^14.
        let rest_ns = self.period_ns - elapsed_ns.min(self.period_ns);
        let stay = (rest_ns * self.listed.len() as u64 / self.period_ns.max(1)) as usize;
        if self.left > stay || elapsed_ns >= self.period_ns {
            self.visit_some(stay, elapsed_ns, (states, access, now_ns));
        }
    }

    #[inline(never)]
    fn visit_some<X: Access>(
        &mut self,
        stay: usize,
        elapsed_ns: u64,
        (states, access, now_ns): (&States, &mut X, u64),
    ) where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        self.visit_down_to(stay, states, access, now_ns);
        if elapsed_ns >= self.period_ns {
            self.left = self.listed.len();
            self.visit_ns += self.period_ns;
            if elapsed_ns / 2 >= self.period_ns {
                // Those that came first in the last visit have waited too long.
                self.visit_ns = now_ns;
                self.visit_down_to(0, states, access, now_ns);
            }
        }
    }

    /// Writes back all counters.
    fn tell<X: Access>(&mut self, states: &States, access: &mut X)
    where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        self.left = self.listed.len();
        let now_ns = self.visit_ns;
        self.visit_down_to(0, states, access, now_ns);
        self.tell_forgotten(states, access, now_ns);
    }

    /// Writes back the counters of flows that were just evicted.
    #[inline(always)]
    fn tell_forgotten<X: Access>(&mut self, states: &States, access: &mut X, now_ns: u64)
    where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        for (key, credit) in self.forgotten.drain(..) {
            states.credit(access, &key, credit, now_ns);
        }
    }

    fn visit_down_to<X: Access>(
        &mut self,
        stay: usize,
        states: &States,
        access: &mut X,
        now_ns: u64,
    ) where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        while self.left > stay {
            self.left -= 1;
            let at = usize::from(self.listed[self.left]);
            let slot = &mut self.pairs[at / 2].0[at % 2];
            let stays = slot.credit().is_some_and(|credit| {
                slot.more = 0;
                states.credit(access, &slot.key, credit, now_ns)
            });
            if !stays {
                *slot = Slot { key: Key::NONE, more: 0, last_ns: FREE };
                // What takes its place is new, or has been visited.
                self.listed.swap_remove(self.left);
            }
        }
    }
}

impl<const N: usize> Slot<N> {
    fn is_empty(&self) -> bool {
        matches!(self.last_ns, FREE | LISTED)
    }

    /// None when there was no packet.
    fn credit(&self) -> Option<Credit> {
        let (packets, bytes) = (self.more / PACKET, self.more % PACKET);
        (packets > 0).then_some(Credit { packets, bytes, last_ns: self.last_ns })
    }
}
