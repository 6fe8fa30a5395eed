//! Access to segments of states: with one lock for all, one lock per group, or none.
//!
//! Locks are the standard library's. Poisoning is ignored: no operation leaves a table
//! half changed.

use super::by_lock::LISTS;
use super::phase::Limits;
use super::segment::{Hint, Segment};
use super::sources::Sources;
use super::table::Place;
use fwdlab_packet::Family;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Granularity of sweeping, in slots.
const SWEEP_MIN: usize = 64;

/// Access to the segments.
pub(in crate::firewall) trait Access {
    /// Number of groups of segments with a common lock: segment n is in group n modulo this.
    const GROUPS: usize;
    /// True if the group's lock is taken for each packet.
    const EACH: bool;

    /// Probable position of a table, read without any lock.
    fn place(&self, segment: usize, family: Family) -> Place;

    /// Exclusive access to a group of segments.
    fn group(&mut self, group: usize) -> impl DerefMut<Target = Vec<Segment>>;

    /// Exclusive access to a single segment.
    #[inline(always)]
    fn segment(&mut self, segment: usize) -> impl DerefMut<Target = Segment> {
        One(self.group(segment % Self::GROUPS), segment / Self::GROUPS)
    }

    /// Records that a table has moved.
    fn moved(&mut self, segment: usize, family: Family, place: Place);

    /// Removes expired states in the slots that are due; returns their number. `slots` is the total
    /// number of slots.
    fn sweep(
        &mut self,
        now_ns: u64,
        most: usize,
        slots: usize,
        interval_ns: u64,
        limits: &Limits,
    ) -> usize;
}

/// All segments under one lock.
#[derive(Debug)]
pub(super) struct Global {
    segments: Mutex<Vec<Segment>>,
    hints: Box<[Hint]>,
    sweep: Mutex<Sweep>,
}

/// Groups of segments, each with its own lock, on separate cache lines.
#[derive(Debug)]
pub(super) struct Sharded {
    shards: Box<[Shard]>,
    hints: Box<[Hint]>,
    sweep: Mutex<Sweep>,
}

#[derive(Debug)]
#[repr(align(64))]
struct Shard(Mutex<Vec<Segment>>);

/// Segments of one worker.
#[derive(Debug)]
pub(in crate::firewall) struct WorkerTables {
    segments: Vec<Segment>,
    sweep: Sweep,
}

/// One segment of a group.
struct One<G>(G, usize);

impl<G: Deref<Target = Vec<Segment>>> Deref for One<G> {
    type Target = Segment;

    #[inline(always)]
    fn deref(&self) -> &Segment {
        &self.0[self.1]
    }
}

impl<G: DerefMut<Target = Vec<Segment>>> DerefMut for One<G> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Segment {
        &mut self.0[self.1]
    }
}

impl Global {
    pub(super) fn new(segments: usize, sources: &Option<Arc<Sources>>) -> Global {
        let segments: Vec<Segment> = (0..segments).map(|_| Segment::new(sources)).collect();
        let hints = segments.iter().map(Hint::of).collect();
        Global { segments: Mutex::new(segments), hints, sweep: Mutex::default() }
    }
}

impl Sharded {
    pub(super) fn new(segments: usize, sources: &Option<Arc<Sources>>) -> Sharded {
        let segments: Vec<Segment> = (0..segments).map(|_| Segment::new(sources)).collect();
        let hints = segments.iter().map(Hint::of).collect();
        let mut shards = [const { Vec::new() }; LISTS];
        for (at, segment) in segments.into_iter().enumerate() {
            shards[at % LISTS].push(segment);
        }
        let shards = shards.into_iter().map(|shard| Shard(Mutex::new(shard))).collect();
        Sharded { shards, hints, sweep: Mutex::default() }
    }
}

impl WorkerTables {
    pub(super) fn new(segments: usize, sources: &Option<Arc<Sources>>) -> WorkerTables {
        let segments = (0..segments).map(|_| Segment::new(sources)).collect();
        WorkerTables { segments, sweep: Sweep::default() }
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl Access for &Global {
    const GROUPS: usize = 1;
    const EACH: bool = true;

    #[inline(always)]
    fn place(&self, segment: usize, family: Family) -> Place {
        self.hints[segment].get(family)
    }

    #[inline(always)]
    fn group(&mut self, _: usize) -> impl DerefMut<Target = Vec<Segment>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&mut self, segment: usize, family: Family, place: Place) {
        self.hints[segment].set(family, place);
    }

    fn sweep(&mut self, now: u64, most: usize, slots: usize, interval: u64, l: &Limits) -> usize {
        // Another worker is sweeping.
        let Ok(mut sweep) = self.sweep.try_lock() else { return 0 };
        sweep.run((now, most, slots, interval), l, self.hints.len(), self)
    }
}

impl Access for &Sharded {
    const GROUPS: usize = LISTS;
    const EACH: bool = false;

    #[inline(always)]
    fn place(&self, segment: usize, family: Family) -> Place {
        self.hints[segment].get(family)
    }

    #[inline(always)]
    fn group(&mut self, group: usize) -> impl DerefMut<Target = Vec<Segment>> {
        let Shard(shard) = &self.shards[group];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&mut self, segment: usize, family: Family, place: Place) {
        self.hints[segment].set(family, place);
    }

    fn sweep(&mut self, now: u64, most: usize, slots: usize, interval: u64, l: &Limits) -> usize {
        let Ok(mut sweep) = self.sweep.try_lock() else { return 0 };
        sweep.run((now, most, slots, interval), l, self.hints.len(), self)
    }
}

impl Access for WorkerTables {
    const GROUPS: usize = 1;
    const EACH: bool = false;

    #[inline(always)]
    fn place(&self, segment: usize, family: Family) -> Place {
        self.segments[segment].place(family)
    }

    #[inline(always)]
    fn group(&mut self, _: usize) -> impl DerefMut<Target = Vec<Segment>> {
        &mut self.segments
    }

    fn moved(&mut self, _: usize, _: Family, _: Place) {}

    fn sweep(&mut self, now: u64, most: usize, slots: usize, interval: u64, l: &Limits) -> usize {
        let mut sweep = std::mem::take(&mut self.sweep);
        let removed = sweep.run((now, most, slots, interval), l, self.segments.len(), self);
        self.sweep = sweep;
        removed
    }
}

/// Position of the sweep for expired states.
#[derive(Debug, Default)]
struct Sweep {
    segment: usize,
    inet6: bool,
    slot: usize,
    last_ns: Option<u64>,
    /// Slots that are due.
    owed: usize,
}

impl Sweep {
    fn run<X: Access>(
        &mut self,
        (now_ns, most, slots, interval_ns): (u64, usize, usize, u64),
        limits: &Limits,
        segments: usize,
        access: &mut X,
    ) -> usize {
        let last_ns = self.last_ns.unwrap_or(now_ns);
        let elapsed_ns = now_ns.saturating_sub(last_ns);
        // 128-bit division is slow.
        let due = match elapsed_ns.checked_mul(slots as u64) {
            Some(product) => u128::from(product / interval_ns),
            None => u128::from(elapsed_ns) * slots as u128 / u128::from(interval_ns),
        };
        // Less than one slot is carried over to the next call.
        if due > 0 || self.last_ns.is_none() {
            self.last_ns = Some(now_ns.max(last_ns));
        }
        self.owed = self.owed.saturating_add(due.min(slots as u128) as usize).min(slots);
        let mut left = self.owed.min(most);
        if left < SWEEP_MIN {
            return 0;
        }
        self.owed -= left;
        let mut removed = 0;
        while left > 0 {
            let family = if self.inet6 { Family::Inet6 } else { Family::Inet };
            let slot = self.slot;
            let mut segment = access.segment(self.segment);
            removed += segment.sweep(family, (slot, left), now_ns, limits);
            let there = segment.slots(family).saturating_sub(slot);
            let (swept, ends) = (left.min(there), left >= there);
            drop(segment);
            left -= swept;
            self.slot += swept;
            if ends {
                self.slot = 0;
                self.segment = (self.segment + usize::from(self.inet6)) % segments;
                self.inet6 = !self.inet6;
            }
        }
        removed
    }
}
