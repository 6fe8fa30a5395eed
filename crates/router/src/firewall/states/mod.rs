//! State tables of the firewall: sharing between workers, and locking.
//!
//! All kinds use the same tables, in segments of a few thousand connections each, and differ only
//! in their locks. Segments grow independently, so growing never blocks for longer than it takes to
//! copy one segment (about 0.3 ms); tables never shrink. Expired states are removed incrementally:
//! every slot is checked once in [`StateConfig::interval`]. Until then an expired state counts
//! towards the limit, but matches no packet.
//!
//! A table that fills up gives way ([`StateConfig::gives_way`]): from three fifths of the limit on,
//! states expire after a fraction of their timeouts, which shrinks as the table fills, as with pf's
//! adaptive timeouts; and at the limit, a new connection replaces the longest silent of several
//! nearby that are closed or of which one side has sent fewer than two packets, as with the early
//! drop of Linux's connection tracking. A flood therefore evicts itself, also if a host refuses or
//! answers each of its packets, and connections in use stay.

mod access;
mod by_lock;
mod config;
mod flows;
mod forget;
mod key;
mod phase;
mod segment;
mod sources;
mod table;
mod view;
mod window;

pub use config::StateConfig;
pub use phase::{Phase, Timeouts};

pub(super) use access::{Access, WorkerTables};
pub(super) use flows::Flows;
pub(super) use key::{Key, Of};
pub(super) use segment::{Credit, First, Found, Of as OfFamily, Query, Segment};
pub(super) use window::sums_up;

use access::{Global, Sharded};
use by_lock::Lists;
use fwdlab_netio::frame::{BATCH, Frame};
use fwdlab_packet::Family;
use fwdlab_packet::forwarding::StateTable;
use key::Seed;
use phase::Limits;
use segment::Made;
use sources::Sources;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Connections per segment.
const PER_SEGMENT: usize = 1 << 14;
/// Minimum and maximum number of segments.
const SEGMENTS: std::ops::RangeInclusive<usize> = 64..=1 << 16;
/// Segments to search for a state to evict.
const EVICTIONS: usize = 16;

/// A snapshot of a connection's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Addresses of initiator and responder.
    pub ends: [IpAddr; 2],
    /// Their ports; twice the identifier of ICMP queries, 0 for other protocols.
    pub marks: [u16; 2],
    /// Protocol number.
    pub protocol: u8,
    /// Phase of the connection.
    pub phase: Phase,
    /// Time of its last packet.
    pub last_ns: u64,
    /// Packets by direction.
    pub packets: [u64; 2],
    /// Bytes by direction, from the IP header on.
    pub bytes: [u64; 2],
}

/// States of all workers, or the common part of workers' own states.
#[derive(Debug)]
pub(super) struct States {
    pub(super) seed: Seed,
    limits: Limits,
    limit: usize,
    gives_way: bool,
    sources: Option<Arc<Sources>>,
    interval_ns: u64,
    flow_cache: bool,
    segments: usize,
    live: AtomicUsize,
    /// Slots of all segments, by family.
    slots: [AtomicUsize; 2],
    holder: Holder,
}

#[derive(Debug)]
enum Holder {
    None,
    Global(Global),
    Sharded(Sharded),
    PerWorker,
}

/// Lookups of a batch's packets of one address family.
#[derive(Debug)]
pub(super) struct Queries<const N: usize> {
    queries: [Query<N>; BATCH],
    lists: Lists,
}

impl<const N: usize> Queries<N> {
    /// No lookups.
    pub(super) fn new() -> Queries<N> {
        Queries { queries: [Query::EMPTY; BATCH], lists: Lists::new() }
    }

    /// Discards all lookups.
    pub(super) fn clear(&mut self) {
        self.lists.clear();
    }
}

impl<const N: usize> Queries<N> {
    /// The lookup of the packet at this place.
    #[inline(always)]
    pub(super) fn query(&self, place: usize) -> &Query<N> {
        &self.queries[place % BATCH]
    }
}

/// Result of the lookups of a batch; sets of packets are bit masks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Matches {
    /// Packets that have a connection.
    pub(super) known: u64,
    /// Packets whose connection is steady: [`Found::Steady`].
    pub(super) steady: u64,
    /// Packets that only claim to belong to a connection: [`Found::Stray`].
    pub(super) stray: u64,
    /// Expired connections that were removed.
    pub(super) over: usize,
}

/// Result of keeping state for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insertion {
    /// The state was created.
    New,
    /// The state replaced another one.
    Instead,
    /// It already existed.
    Known,
    /// The limit is reached.
    Full,
    /// The packet can't begin a connection.
    Stray,
}

impl States {
    pub(super) fn new(config: &StateConfig) -> States {
        let segments = (config.limit / PER_SEGMENT).next_power_of_two();
        let segments = segments.clamp(*SEGMENTS.start(), *SEGMENTS.end());
        let seed = Seed::of(config.seed);
        let sources = Sources::new(config.source_limit, &seed).map(Arc::new);
        let states = States {
            seed,
            limits: Limits::of(&config.timeouts),
            limit: config.limit,
            gives_way: config.gives_way,
            interval_ns: u64::try_from(config.interval.as_nanos()).unwrap_or(u64::MAX).max(1),
            flow_cache: config.flow_cache,
            segments,
            live: AtomicUsize::new(0),
            slots: [const { AtomicUsize::new(0) }; 2],
            holder: match config.kind {
                StateTable::None => Holder::None,
                StateTable::Global => Holder::Global(Global::new(segments, &sources)),
                StateTable::Sharded => Holder::Sharded(Sharded::new(segments, &sources)),
                StateTable::PerWorker => Holder::PerWorker,
            },
            sources,
        };
        if matches!(states.holder, Holder::Global(_) | Holder::Sharded(_)) {
            states.count_new_segments();
        }
        states
    }

    /// Tables for one worker, if workers have their own.
    pub(super) fn own(&self) -> Option<WorkerTables> {
        matches!(self.holder, Holder::PerWorker).then(|| {
            self.count_new_segments();
            WorkerTables::new(self.segments, &self.sources)
        })
    }

    fn count_new_segments(&self) {
        self.count_new_segments_of(self.segments);
    }

    fn count_new_segments_of(&self, segments: usize) {
        for slots in &self.slots {
            slots.fetch_add(Segment::new(&None).inet.slots() * segments, Relaxed);
        }
    }

    /// Flow cache for one worker, if workers have one.
    pub(super) fn flows(&self) -> Option<Flows> {
        let cached = matches!(self.holder, Holder::Sharded(_) | Holder::PerWorker);
        (cached && self.flow_cache).then(|| Flows::new(&self.limits, &self.seed))
    }

    /// Removes the states and caches of a terminating worker.
    pub(super) fn give_up(&self, own: &WorkerTables) {
        self.discount(own.segments().iter());
    }

    /// Subtracts the states and slots of segments from the totals.
    fn discount<'a>(&self, segments: impl Iterator<Item = &'a Segment>) {
        let mut live = 0;
        for segment in segments {
            live += segment.inet.iter().count() + segment.inet6.iter().count();
            if let Some(sources) = &self.sources {
                segment.inet.iter().for_each(|entry| sources.leave(&entry.key));
                segment.inet6.iter().for_each(|entry| sources.leave(&entry.key));
            }
            self.slots[0].fetch_sub(segment.inet.slots(), Relaxed);
            self.slots[1].fetch_sub(segment.inet6.slots(), Relaxed);
        }
        self.live.fetch_sub(live, Relaxed);
    }

    pub(super) fn keep(&self) -> bool {
        !matches!(self.holder, Holder::None)
    }

    /// Calls `work` with the kind of access that this worker has.
    #[inline(always)]
    pub(super) fn with<W: Work>(
        &self,
        own: Option<&mut WorkerTables>,
        work: W,
    ) -> Option<W::Result> {
        match (&self.holder, own) {
            (Holder::Global(global), _) => Some(work.run(&mut &*global)),
            (Holder::Sharded(sharded), _) => Some(work.run(&mut &*sharded)),
            (Holder::PerWorker, Some(own)) => Some(work.run(own)),
            (Holder::None | Holder::PerWorker, _) => None,
        }
    }

    #[inline(always)]
    fn segment(&self, hash: u64) -> usize {
        (hash >> 48) as usize & (self.segments - 1)
    }

    /// Prepares the lookup of a packet at a place of its batch, and prefetches the memory that
    /// [`States::lookup_all`] will need.
    #[inline(always)]
    pub(super) fn enqueue<const N: usize, X: Access>(
        &self,
        access: &X,
        Queries { queries, lists }: &mut Queries<N>,
        place: usize,
        query: Query<N>,
    ) where
        Segment: OfFamily<N>,
    {
        let segment = self.segment(query.hash);
        lists.push(segment % X::GROUPS, place);
        access.place(segment, Segment::FAMILY).prefetch::<N>(query.hash);
        queries[place % BATCH] = query;
    }

    /// Adds packets to their connections. Packets of one connection are processed in order, others
    /// are not.
    #[inline(always)]
    pub(super) fn lookup_all<const N: usize, X: Access>(
        &self,
        access: &mut X,
        Queries { queries, lists }: &Queries<N>,
        batch: &[Frame],
        now_ns: u64,
    ) -> Matches
    where
        Segment: OfFamily<N>,
    {
        let mut matches = Matches::default();
        let mut note = |place: usize, found: Found| match found {
            Found::Steady => matches.steady |= 1 << place,
            Found::Known => matches.known |= 1 << place,
            Found::Stray => matches.stray |= 1 << place,
            Found::Unknown => {}
            Found::Over => matches.over += 1,
        };
        // Local copies, so that the compiler knows they do not change.
        let (mask, limits) = (self.segments / X::GROUPS - 1, self.limits);
        for group in (0..X::GROUPS).filter(|&group| !lists.is_empty(group)) {
            if X::EACH {
                for place in lists.iter(group) {
                    let query = &queries[place % BATCH];
                    let mut segments = access.group(group);
                    let segment = &mut segments[within::<X>(query.hash, mask)];
                    note(place, segment.table().lookup(query, &batch[place], now_ns, &limits));
                }
            } else {
                let mut segments = access.group(group);
                let segments = &mut segments[..];
                for place in lists.iter(group) {
                    let query = &queries[place % BATCH];
                    let segment = &mut segments[within::<X>(query.hash, mask)];
                    note(place, segment.table().lookup(query, &batch[place], now_ns, &limits));
                }
            }
        }
        matches.known |= matches.steady;
        if matches.over > 0 {
            self.live.fetch_sub(matches.over, Relaxed);
        }
        matches
    }

    /// Prefetches the memory that [`States::credit`] will need.
    #[inline(always)]
    fn prefetch<const N: usize, X: Access>(&self, access: &X, key: &Key<N>)
    where
        Segment: OfFamily<N>,
    {
        let hash = key.hash(&self.seed);
        access.place(self.segment(hash), Segment::FAMILY).prefetch::<N>(hash);
    }

    /// Adds packets that passed by a flow cache. Returns true if the flow may stay there.
    pub(super) fn credit<const N: usize, X: Access>(
        &self,
        access: &mut X,
        key: &Key<N>,
        credit: Credit,
        now_ns: u64,
    ) -> bool
    where
        Segment: OfFamily<N>,
    {
        let hash = key.hash(&self.seed);
        let mut segment = access.segment(self.segment(hash));
        segment.table().credit(key, hash, credit, now_ns, &self.limits)
    }

    /// Adds a packet to its connection, if there is one.
    pub(super) fn lookup<const N: usize, X: Access>(
        &self,
        access: &mut X,
        query: &Query<N>,
        frame: &Frame,
        now_ns: u64,
    ) -> Found
    where
        Segment: OfFamily<N>,
    {
        let found = {
            let mut segment = access.segment(self.segment(query.hash));
            segment.table().lookup(query, frame, now_ns, &self.limits)
        };
        self.live.fetch_sub(usize::from(found == Found::Over), Relaxed);
        found
    }

    /// Creates a state that begins with this packet.
    pub(super) fn insert<const N: usize, X: Access>(
        &self,
        access: &mut X,
        first: First<'_, N>,
        now_ns: u64,
    ) -> Insertion
    where
        Segment: OfFamily<N>,
    {
        let (hash, family) = (first.query.hash, Segment::FAMILY);
        if self.sources.as_ref().is_some_and(|sources| !sources.have_room(&first.query.key)) {
            return Insertion::Full;
        }
        let more = |live: usize| (live < self.limit).then_some(live + 1);
        let at = self.segment(hash);
        let mut instead = false;
        // Retry once if evicting from another segment has made room.
        for elsewhere in [false, true] {
            let made = {
                let mut segment = access.segment(at);
                let room = |segment: &mut Segment| {
                    if self.live.fetch_update(Relaxed, Relaxed, more).is_ok() {
                        return true;
                    }
                    let evicts = self.gives_way && segment.evict(family, hash);
                    instead |= evicts;
                    evicts
                };
                (segment.insert(first, now_ns, &self.limits, room), segment.place(family))
            };
            return match made {
                (Made::Known, _) => Insertion::Known,
                (Made::Stray, _) => Insertion::Stray,
                (Made::Full, _) if self.gives_way && !elsewhere => {
                    instead = self.evict_nearby(access, family, at, hash);
                    if instead {
                        continue;
                    }
                    Insertion::Full
                }
                (Made::Full, _) => Insertion::Full,
                (Made::New { grown }, place) => {
                    if grown > 0 {
                        self.slots[family as usize].fetch_add(grown, Relaxed);
                        access.moved(at, family, place);
                    }
                    if instead { Insertion::Instead } else { Insertion::New }
                }
            };
        }
        Insertion::Full
    }

    /// Evicts a state from one of the next segments.
    #[cold]
    fn evict_nearby<X: Access>(
        &self,
        access: &mut X,
        family: Family,
        at: usize,
        hash: u64,
    ) -> bool {
        let nearby = (1..=EVICTIONS).map(|step| (at + step) & (self.segments - 1));
        let found = nearby.into_iter().any(|at| access.segment(at).evict(family, hash));
        self.live.fetch_sub(usize::from(found), Relaxed);
        found
    }

    /// Removes expired states in the slots that are due, at most `most` slots.
    pub(super) fn sweep<X: Access>(&self, access: &mut X, now_ns: u64, most: usize) -> u64 {
        let slots = self.slots.iter().map(|slots| slots.load(Relaxed)).sum();
        let limits = self.limits_when_full();
        let limits = limits.as_ref().unwrap_or(&self.limits);
        let removed = access.sweep(now_ns, most, slots, self.interval_ns, limits);
        self.live.fetch_sub(removed, Relaxed);
        removed as u64
    }

    /// Timeouts of a table that fills up: full at three fifths of the limit, zero at six fifths,
    /// like `adaptive.start` and `adaptive.end` in pf.conf(5).
    fn limits_when_full(&self) -> Option<Limits> {
        let fifth = self.limit / 5;
        let above = self.live.load(Relaxed).saturating_sub(3 * fifth);
        if above == 0 || !self.gives_way || fifth == 0 {
            return None;
        }
        let left = (3 * fifth).saturating_sub(above);
        Some(self.limits.shortened((left * 255 / (3 * fifth)) as u8))
    }
}

/// A segment's index in its group, which has `mask` + 1 segments.
#[inline(always)]
fn within<X: Access>(hash: u64, mask: usize) -> usize {
    ((hash >> 48) as usize / X::GROUPS) & mask
}

/// An operation that works with any kind of access.
pub(super) trait Work {
    type Result;
    fn run<X: Access>(self, access: &mut X) -> Self::Result;
}
