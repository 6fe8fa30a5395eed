//! Slots of the flows of one family.

use crate::firewall::packet::may_change_phase;
use crate::firewall::states::key::{Key, Of, Seed};
use crate::firewall::states::segment::{Credit, Of as OfFamily, Query, Segment};
use crate::firewall::states::{Access, States};
use crate::path::places;
use fwdlab_netio::frame::BATCH;
use fwdlab_netio::memory::prefer_huge_pages;
use fwdlab_netio::prefetch::prefetch;

/// Initial pairs of slots per family: a power of two. Of 2000 flows, 99 of 100 find a slot.
pub(super) const PAIRS: usize = 1 << 13;
/// Maximum memory of a family's pairs, in bytes: a power of two.
const BYTES_MAX: usize = 128 << 20;
/// Pairs that each batch allocates while a cache grows, so that no batch waits for all of them.
const MADE: usize = 512;
/// Maximum time between two visits of a flow in a cache of [`PAIRS`], in nanoseconds.
const PERIOD_MAX: u64 = 10_000_000;
/// Flows that are visited together to overlap memory reads.
const TOGETHER: usize = 32;
/// Maximum number of evicted flows that a batch writes back.
const WRITE_BACKS: usize = BATCH;

/// Flows of one family.
#[derive(Debug)]
pub(in crate::firewall) struct Slots<const N: usize> {
    /// Empty until the first flow.
    pairs: Vec<Pair<N>>,
    /// Replacement for `pairs` when it has `target` elements.
    next: Vec<Pair<N>>,
    target: usize,
    /// Slots that contain or contained a flow, in no order.
    listed: Vec<u32>,
    /// Number of slots that the current visit still has to process, from the last to the first.
    left: usize,
    /// Start time of the current visit.
    visit_ns: u64,
    /// Time between two visits.
    period_ns: u64,
    /// Maximum period that timeouts allow.
    period_max_ns: u64,
    pub(super) pairing: Pairing,
    pub(super) asked: [SlotLookup<N>; BATCH],
    /// Evicted flows whose counters are not yet written back.
    forgotten: Vec<(Key<N>, Credit)>,
}

/// Assignment of flows to pairs of slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairing {
    /// Address of the first pair, for prefetching.
    begin: usize,
    multiplier: u64,
    /// Bits of a hash to discard.
    shift: u32,
}

/// The lookup of one packet of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotLookup<const N: usize> {
    /// [`Key::counting`]
    key: Key<N>,
    /// Index of its pair.
    at: u32,
    /// [`Packet::more`]
    more: u32,
}

/// Two slots for flows: for IPv4, one cache line. A flow may also use the slots of [`buddy`]: with
/// as many flows as pairs, 96 of 100 then find a slot, instead of 90.
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
    /// Time of the last packet; without a flow, [`FREE`] or [`LISTED`].
    last_ns: u64,
}

const _: () = assert!(size_of::<Pair<2>>() == 64 && size_of::<Pair<5>>() == 128);

/// One packet in the unit of [`Slot::more`].
const PACKET: u64 = 1 << 40;
/// No flow.
const FREE: u64 = 0;
/// No flow, but still in the list.
const LISTED: u64 = u64::MAX;

impl Pairing {
    /// Index of a flow's first pair of slots.
    #[inline(always)]
    fn at<const N: usize>(&self, key: &Key<N>) -> usize {
        (key.spread(self.multiplier) >> self.shift) as usize
    }

    /// Starts the lookup of a packet. Prefetches the slots, which are less likely to be cached than
    /// the packet.
    #[inline(always)]
    pub(super) fn ask<const N: usize>(&self, key: Key<N>, more: u32) -> SlotLookup<N> {
        let at = self.at(&key);
        prefetch(self.begin + at * size_of::<Pair<N>>());
        SlotLookup { key, at: at as u32, more }
    }
}

impl<const N: usize> Slots<N> {
    pub(super) fn new(period_max_ns: u64, seed: &Seed) -> Slots<N> {
        let shift = 64 - PAIRS.ilog2();
        Slots {
            pairs: Vec::new(),
            next: Vec::new(),
            target: PAIRS,
            listed: Vec::new(),
            left: 0,
            visit_ns: 0,
            period_ns: period_max_ns.min(PERIOD_MAX),
            period_max_ns,
            pairing: Pairing { begin: 0, multiplier: seed.multiplier(), shift },
            asked: [SlotLookup { key: Key::NONE, at: 0, more: 0 }; BATCH],
            forgotten: Vec::new(),
        }
    }

    /// A separate function, as is [`super::Flows::start_lookups`]: short loops that need all
    /// registers.
    #[inline(never)]
    pub(super) fn take(&mut self, among: u64, now_ns: u64) -> u64 {
        let Slots { pairs, asked, .. } = self;
        if pairs.is_empty() {
            return 0;
        }
        let pairs = &mut pairs[..];
        let (mut taken, mut ends) = (0u64, 0u64);
        for place in places(among) {
            let SlotLookup { key, at, more } = &asked[place % BATCH];
            let Some(slot) = find(pairs, *at as usize, key) else { continue };
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
        let SlotLookup { key, at, .. } = &self.asked[among.trailing_zeros() as usize % BATCH];
        if let Some(slot) = find(&mut self.pairs, *at as usize, key) {
            if let Some(credit) = slot.credit() {
                self.forgotten.push((slot.key, credit));
            }
            *slot = Slot { key: Key::NONE, more: 0, last_ns: LISTED };
        }
        self.take(among & (among - 1), now_ns)
    }

    /// Inserts a flow, unless all of its slots are occupied.
    pub(in crate::firewall) fn remember(&mut self, query: &Query<N>, now_ns: u64) {
        if self.pairs.is_empty() {
            self.next = vec![Pair::FREE; PAIRS];
            self.change();
        }
        let key = query.key.counting();
        let at = self.pairing.at(&key);
        if find(&mut self.pairs, at, &key).is_some() {
            return;
        }
        let candidates = [at, buddy(at)].into_iter().flat_map(|at| [(at, 0), (at, 1)]);
        let pairs = &self.pairs;
        let Some((at, second)) = candidates.into_iter().find(|&(at, n)| pairs[at].0[n].is_empty())
        else {
            return;
        };
        let slot = &mut self.pairs[at].0[second];
        if slot.last_ns == FREE {
            self.listed.push((at * 2 + second) as u32);
        }
        // Neither [`FREE`] nor [`LISTED`].
        *slot = Slot { key, more: 0, last_ns: now_ns.clamp(FREE + 1, LISTED - 1) };
    }

    /// True if flows were evicted whose counters must still be written back.
    pub(super) fn has_forgotten(&self) -> bool {
        !self.forgotten.is_empty()
    }

    /// Number of pairs of slots, each for two flows.
    pub(in crate::firewall) fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Starts to grow if most slots are in use and the number of states justifies more pairs.
    /// Returns true if it grows.
    pub(super) fn grow(&mut self, live: usize) -> bool {
        let most = BYTES_MAX / size_of::<Pair<N>>();
        let target = (2 * live).next_power_of_two().min(most);
        let grows = self.listed.len() > self.pairs.len() && target > self.target;
        if grows {
            self.target = target;
            self.next = Vec::with_capacity(target);
            prefer_huge_pages(self.next.spare_capacity_mut());
        }
        grows
    }

    /// Allocates some more of the target number of pairs.
    #[cold]
    #[inline(never)]
    fn make(&mut self) {
        self.next.resize((self.next.len() + MADE).min(self.target), Pair::FREE);
        if self.next.len() == self.target {
            self.change();
        }
    }

    /// Replaces the pairs with the next ones, which are empty.
    fn change(&mut self) {
        let pairs = std::mem::replace(&mut self.pairs, std::mem::take(&mut self.next));
        for slot in pairs.iter().flat_map(|Pair(pair)| pair) {
            if let Some(credit) = slot.credit() {
                self.forgotten.push((slot.key, credit));
            }
        }
        self.listed = Vec::with_capacity(self.pairs.len() * 2);
        self.left = 0;
        self.pairing.begin = self.pairs.as_ptr() as usize;
        self.pairing.shift = 64 - self.pairs.len().ilog2();
        let larger = (self.pairs.len() / PAIRS) as u64;
        self.period_ns = (PERIOD_MAX * larger).min(self.period_max_ns);
    }

    /// Writes back the counters of the flows that are due, at most `most` of them, and evicts flows
    /// without packets or whose state is no longer steady. Returns true if more are due.
    #[inline(always)]
    pub(super) fn visit<X: Access>(
        &mut self,
        states: &States,
        access: &mut X,
        now_ns: u64,
        most: usize,
    ) -> bool
    where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        if self.pairs.len() != self.target && !self.pairs.is_empty() {
            self.make();
        }
        if self.listed.is_empty() {
            self.visit_ns = now_ns;
            return false;
        }
        let elapsed_ns = now_ns.saturating_sub(self.visit_ns);
        // The factors are less than 2^31 and 2^22.
        let rest_ns = self.period_ns - elapsed_ns.min(self.period_ns);
        let stay = (rest_ns * self.listed.len() as u64 / self.period_ns.max(1)) as usize;
        let is_due = self.left > stay + TOGETHER || elapsed_ns >= self.period_ns;
        is_due && self.visit_some(stay, most, (states, access, now_ns))
    }

    /// Visits flows down to `stay`, at most `most`, and restarts after the last; after a long pause
    /// visits all.
    #[inline(never)]
    fn visit_some<X: Access>(
        &mut self,
        stay: usize,
        most: usize,
        (states, access, now_ns): (&States, &mut X, u64),
    ) -> bool
    where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        let periods = now_ns.saturating_sub(self.visit_ns) / self.period_ns.max(1);
        let most = match periods {
            0 => most,
            1 => most * 8,
            // After a long pause without calls. A flow not visited for this long must not be found:
            // its state may have expired.
            _ => usize::MAX,
        };
        let last = stay.max(self.left.saturating_sub(most));
        self.visit_down_to(last, states, access, now_ns);
        if last == 0 && periods > 0 {
            self.left = self.listed.len();
            self.visit_ns += self.period_ns;
            if periods > 1 {
                self.visit_ns = now_ns;
                self.visit_down_to(0, states, access, now_ns);
                self.write_back_all_evicted(states, access, now_ns);
            }
        }
        last > stay
    }

    /// Writes back all counters.
    pub(super) fn tell<X: Access>(&mut self, states: &States, access: &mut X)
    where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        self.left = self.listed.len();
        let now_ns = self.visit_ns;
        self.visit_down_to(0, states, access, now_ns);
        self.write_back_all_evicted(states, access, now_ns);
    }

    fn write_back_all_evicted<X: Access>(&mut self, states: &States, access: &mut X, now_ns: u64)
    where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        while !self.forgotten.is_empty() {
            self.tell_forgotten(states, access, now_ns);
        }
    }

    /// Writes back the counters of flows that were just evicted.
    #[inline(always)]
    pub(super) fn tell_forgotten<X: Access>(&mut self, states: &States, access: &mut X, now_ns: u64)
    where
        Segment: OfFamily<N>,
        Key<N>: Of,
    {
        for (key, credit) in
            self.forgotten.drain(self.forgotten.len().saturating_sub(WRITE_BACKS)..)
        {
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
            let together = stay.max(self.left.saturating_sub(TOGETHER))..self.left;
            for &at in &self.listed[together.clone()] {
                prefetch(&raw const self.pairs[at as usize / 2] as usize);
            }
            for &at in &self.listed[together.clone()] {
                let slot = &self.pairs[at as usize / 2].0[at as usize % 2];
                if slot.more > 0 {
                    states.prefetch(access, &slot.key);
                }
            }
            for _ in together {
                self.left -= 1;
                let at = self.listed[self.left] as usize;
                let slot = &mut self.pairs[at / 2].0[at % 2];
                let stays = slot.credit().is_some_and(|credit| {
                    slot.more = 0;
                    states.credit(access, &slot.key, credit, now_ns)
                });
                if !stays {
                    *slot = Slot::FREE;
                    // The element that replaces it is new, or has been visited.
                    self.listed.swap_remove(self.left);
                }
            }
        }
    }
}

/// The alternative pair for a flow whose own pair is full: the other one of two lines that CPUs
/// fetch together.
#[inline(always)]
fn buddy(at: usize) -> usize {
    at ^ 1
}

/// Slot of a flow whose first pair is at `at`.
#[inline(always)]
fn find<'a, const N: usize>(
    pairs: &'a mut [Pair<N>],
    at: usize,
    key: &Key<N>,
) -> Option<&'a mut Slot<N>> {
    let (at, second) = match pairs[at].which(key) {
        Some(second) => (at, second),
        None => (buddy(at), pairs[buddy(at)].which(key)?),
    };
    Some(&mut pairs[at].0[usize::from(second)])
}

impl<const N: usize> Pair<N> {
    /// Slot of a flow in this pair: true for the second one.
    #[inline(always)]
    fn which(&self, key: &Key<N>) -> Option<bool> {
        let Pair([one, other]) = self;
        if one.key.unlike(key) == 0 {
            Some(false)
        } else {
            (other.key.unlike(key) == 0).then_some(true)
        }
    }

    const FREE: Pair<N> = Pair([Slot::FREE; 2]);
}

impl<const N: usize> Slot<N> {
    const FREE: Slot<N> = Slot { key: Key::NONE, more: 0, last_ns: FREE };

    fn is_empty(&self) -> bool {
        matches!(self.last_ns, FREE | LISTED)
    }

    /// `None` if there was no packet.
    fn credit(&self) -> Option<Credit> {
        let (packets, bytes) = (self.more / PACKET, self.more % PACKET);
        (packets > 0).then_some(Credit { packets, bytes, last_ns: self.last_ns })
    }
}
