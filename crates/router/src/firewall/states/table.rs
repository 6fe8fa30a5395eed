//! A hash table of connections of one family, in contiguous memory.
//!
//! Open addressing. Eight bits of each connection's hash are in a separate array, which fits in
//! small caches, and eight of them are compared together: with unpredictable iteration counts,
//! loops cost more than their bodies. An entry is read only if these bits match, so a lookup
//! fetches one line of entries: a complete IPv4 entry, and of an IPv6 entry the key, with its
//! counters on the next line. Removal leaves no tombstone: the following entries move up.

use super::key::Key;
use super::phase::{Finished, Limits, Phase, Sort};
use super::sources::Sources;
use super::window::{Window, Words};
use fwdlab_netio::memory::Block;
use fwdlab_netio::prefetch::prefetch;
use std::sync::Arc;

/// Initial entries of a table: a power of two, and no fewer than a group.
const SMALLEST: usize = 8;
/// Number of slots from which tables do not fit in caches.
const FAR: usize = 1 << 12;
/// Tags that are compared together.
const GROUP: usize = 8;
/// Entries that are considered for eviction.
const CANDIDATES: usize = 64;
/// A byte in each lane.
const LANES: u64 = 0x0101_0101_0101_0101;

/// A connection.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Entry<const N: usize> {
    /// The connection, in the direction of its first packet.
    pub(super) key: Key<N>,
    pub(super) last_ns: u64,
    /// Packets from the initiator, and from the other side.
    pub(super) packets: [u64; 2],
    /// Bytes by direction.
    pub(super) bytes: [u64; 2],
    /// Lower half of the hash; tables have fewer slots than it has values.
    hash: u32,
    pub(super) phase: Phase,
    pub(super) finished: Finished,
    pub(super) sort: Sort,
}

const _: () = assert!(size_of::<Entry<2>>() == 64);
const _: () = assert!(size_of::<Entry<5>>() == 128);

/// Connections of one family.
#[derive(Debug)]
pub(in crate::firewall) struct Table<const N: usize> {
    /// 0 for an empty slot. The first tags are repeated after the last, so that every group is
    /// contiguous.
    tags: Box<[u8]>,
    entries: Block<Entry<N>>,
    /// Windows of TCP connections, at the indices of their entries: memory that other protocols
    /// don't touch.
    windows: Box<[Words]>,
    count: usize,
    /// Number of connections that each source has begun, if that is limited.
    sources: Option<Arc<Sources>>,
}

/// Positions of a table's arrays, for prefetching. Stale values are harmless.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::firewall) struct Place {
    pub(super) tags: usize,
    pub(super) entries: usize,
    /// Number of slots minus one.
    pub(super) mask: usize,
}

impl<const N: usize> Entry<N> {
    fn empty() -> Entry<N> {
        Entry::new(&Key::EMPTY, Sort::Other, 0, (Phase::First, 0))
    }

    pub(super) fn new(
        key: &Key<N>,
        sort: Sort,
        hash: u64,
        (phase, finished): (Phase, Finished),
    ) -> Entry<N> {
        let hash = hash as u32;
        let (packets, bytes) = ([0; 2], [0; 2]);
        Entry { key: *key, last_ns: 0, packets, bytes, hash, phase, finished, sort }
    }

    #[inline(always)]
    pub(super) fn is_over(&self, now_ns: u64, limits: &Limits) -> bool {
        // Another worker's clock may be slightly ahead.
        now_ns.wrapping_sub(self.last_ns).cast_signed() >= limits.get(self.sort, self.phase)
    }

    /// True if the connection gives way in a full table. It stays once each side has sent twice:
    /// what a flood makes, even if a host answers each of its packets once, has not.
    fn gives_way(&self) -> bool {
        self.phase == Phase::Closed || self.packets.iter().any(|&packets| packets < 2)
    }
}

/// Bits of the hash that do not determine an entry's position. Never 0 or 1: see [`zeros`].
#[inline(always)]
fn tag(hash: u64) -> u8 {
    (hash >> 40) as u8 | 0x80
}

/// The highest bit of each lane that is 0; possibly also of lanes above the first of these that are
/// 1.
#[inline(always)]
fn zeros(lanes: u64) -> u64 {
    lanes.wrapping_sub(LANES) & !lanes & LANES << 7
}

impl<const N: usize> Table<N> {
    pub(super) fn new(sources: &Option<Arc<Sources>>) -> Table<N> {
        Table::with_slots(SMALLEST, sources.clone())
    }

    fn with_slots(slots: usize, sources: Option<Arc<Sources>>) -> Table<N> {
        let entries = Block::filled(Entry::empty(), slots);
        let tags = vec![0; slots + GROUP].into_boxed_slice();
        let windows = vec![[0; 9]; slots].into_boxed_slice();
        Table { tags, entries, windows, count: 0, sources }
    }

    #[inline(always)]
    fn mask(&self) -> usize {
        self.entries.len().wrapping_sub(1)
    }

    /// The first candidate entry, if it is this connection's, which it usually is. The boolean is
    /// true if the key is a reply's.
    #[inline(always)]
    pub(super) fn first(&mut self, key: &Key<N>, hash: u64) -> Option<(&mut Entry<N>, bool)> {
        let mask = self.mask();
        let at = hash as u32 as usize & mask;
        let alike = zeros(self.group(at)? ^ (u64::from(tag(hash)) * LANES));
        // Without a match the slot is arbitrary.
        let slot = (at + alike.trailing_zeros() as usize / 8) & mask;
        let entry = self.entries.get_mut(slot)?;
        let reply = !entry.key.is(key);
        (alike != 0 && (!reply || entry.key.is(&key.turned()))).then_some((entry, reply))
    }

    /// Slot of a connection, and whether the key is a reply's.
    pub(super) fn find(&self, key: &Key<N>, hash: u64) -> Option<(usize, bool)> {
        let pattern = u64::from(tag(hash)) * LANES;
        let (mask, turned) = (self.mask(), key.turned());
        let mut at = hash as u32 as usize & mask;
        loop {
            let group = self.group(at)?;
            let mut alike = zeros(group ^ pattern);
            while alike != 0 {
                let slot = (at + alike.trailing_zeros() as usize / 8) & mask;
                let found = &self.entries.get(slot)?.key;
                if found.is(key) || found.is(&turned) {
                    return Some((slot, !found.is(key)));
                }
                alike &= alike - 1;
            }
            if zeros(group) != 0 {
                return None;
            }
            at = (at + GROUP) & mask;
        }
    }

    /// Group of tags that starts at a slot.
    #[inline(always)]
    fn group(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.tags.get(at..at + GROUP)?.first_chunk()?))
    }

    #[inline(always)]
    pub(super) fn entry(&mut self, at: usize) -> &mut Entry<N> {
        &mut self.entries[at]
    }

    /// Window of the connection at a slot.
    pub(super) fn window(&mut self, at: usize) -> Window<'_> {
        Window(&mut self.windows[at])
    }

    /// Adds a new connection, for TCP with `window`. Returns the number of slots by which the table
    /// grew.
    pub(super) fn insert(&mut self, entry: Entry<N>, window: &Words, hash: u64) -> usize {
        let mut grown = 0;
        // Two thirds full: most entries are found in the first group.
        if self.count * 3 >= self.slots() * 2 {
            grown = self.slots();
            let mut larger = Table::with_slots(grown * 2, self.sources.clone());
            for at in 0..grown {
                if self.tags[at] != 0 {
                    larger.put(self.entries[at], &self.windows[at], self.tags[at]);
                }
            }
            *self = larger;
        }
        if let Some(sources) = &self.sources {
            sources.enter(&entry.key);
        }
        self.put(entry, window, tag(hash));
        grown
    }

    fn put(&mut self, entry: Entry<N>, window: &Words, tag: u8) {
        let mask = self.mask();
        let mut at = entry.hash as usize & mask;
        while self.tags[at] != 0 {
            at = (at + 1) & mask;
        }
        self.set_tag(at, tag);
        if entry.sort == Sort::Tcp {
            self.windows[at] = *window;
        }
        self.entries[at] = entry;
        self.count += 1;
    }

    fn set_tag(&mut self, at: usize, tag: u8) {
        self.tags[at] = tag;
        if at < GROUP {
            let slots = self.slots();
            self.tags[slots + at] = tag;
        }
    }

    /// Removes an entry; another one may be in its slot afterwards.
    pub(super) fn remove(&mut self, at: usize) {
        let mask = self.mask();
        if let Some(sources) = &self.sources {
            sources.leave(&self.entries[at].key);
        }
        let (mut hole, mut next) = (at, (at + 1) & mask);
        while self.tags[next] != 0 {
            let home = self.entries[next].hash as usize & mask;
            // An entry may move up as long as it doesn't pass its home slot.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.set_tag(hole, self.tags[next]);
                self.entries[hole] = self.entries[next];
                if self.entries[next].sort == Sort::Tcp {
                    self.windows[hole] = self.windows[next];
                }
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.set_tag(hole, 0);
        self.count -= 1;
    }

    /// Removes the longest silent of the connections near the home slot of this hash that give way.
    /// Returns false if none does.
    pub(super) fn evict(&mut self, hash: u64) -> bool {
        let mask = self.mask();
        let places = (0..CANDIDATES.min(self.slots())).map(|at| (hash as usize + at) & mask);
        let places = places.filter(|&at| self.tags[at] != 0 && self.entries[at].gives_way());
        let oldest = places.min_by_key(|&at| self.entries[at].last_ns);
        if let Some(at) = oldest {
            self.remove(at);
        }
        oldest.is_some()
    }

    /// Removes expired entries among `slots` slots from `from` on; returns their number.
    pub(super) fn sweep(
        &mut self,
        from: usize,
        slots: usize,
        now_ns: u64,
        limits: &Limits,
    ) -> usize {
        let mut removed = 0;
        let end = self.slots().min(from.saturating_add(slots));
        let mut at = from;
        while at < end {
            if self.tags[at] != 0 && self.entries[at].is_over(now_ns, limits) {
                self.remove(at);
                removed += 1;
            } else {
                at += 1;
            }
        }
        removed
    }

    /// Removes the entries that `selects`; returns their number.
    pub(super) fn remove_if(&mut self, selects: impl Fn(&Entry<N>) -> bool) -> usize {
        let mut removed = 0;
        // One pass misses an entry that moves across the end.
        for _ in 0..2 {
            let mut at = 0;
            while at < self.slots() {
                if self.tags[at] != 0 && selects(&self.entries[at]) {
                    self.remove(at);
                    removed += 1;
                } else {
                    at += 1;
                }
            }
        }
        removed
    }

    pub(super) fn slots(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<N>> {
        self.tags
            .iter()
            .zip(self.entries.iter())
            .filter_map(|(tag, entry)| (*tag != 0).then_some(entry))
    }

    #[inline(always)]
    pub(super) fn place(&self) -> Place {
        let (tags, entries) = (self.tags.as_ptr() as usize, self.entries.as_ptr() as usize);
        Place { tags, entries, mask: self.mask() }
    }

    /// Bytes of one slot.
    pub(super) const SLOT: usize = size_of::<Entry<N>>() + size_of::<Words>() + size_of::<u8>();
}

impl Place {
    /// Prefetches the memory that [`Table::find`] will most probably need.
    #[inline(always)]
    pub(super) fn prefetch<const N: usize>(&self, hash: u64) {
        let at = hash as u32 as usize & self.mask;
        prefetch(self.tags.wrapping_add(at));
        let entry = self.entries.wrapping_add(at * size_of::<Entry<N>>());
        prefetch(entry);
        // About a quarter of the entries are displaced, mostly by one slot; prefetching them is
        // worthwhile if no cache holds the table.
        if self.mask >= FAR {
            prefetch(entry.wrapping_add(size_of::<Entry<N>>()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase::Timeouts;
    use super::*;
    use crate::firewall::packet::Packet;
    use crate::firewall::states::key::{Inet, Of};
    use fwdlab_netio::frame::CAPACITY;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(number: u32) -> Inet {
        let word = u32::from(crate::firewall::packet::protocol::UDP) << 8;
        Key::of(&[0; CAPACITY], &Packet::new(word, number, 0, 0))
    }

    proptest! {
        /// Few hash values, so that entries displace each other.
        #[test]
        fn table_matches_a_map(steps in prop::collection::vec((0u32..24, 0u8..3), 1..200)) {
            let (mut table, mut map) = (Table::<2>::new(&None), BTreeMap::new());
            let hash = |number: u32| u64::from(number % 5 * 3) | u64::from(number % 2) << 40;
            let limits = Limits::of(&Timeouts::default());
            for (at, (number, step)) in steps.into_iter().enumerate() {
                let found = table.find(&key(number), hash(number));
                prop_assert_eq!(found.is_some(), map.contains_key(&number));
                match (step, found) {
                    (0 | 1, None) => {
                        let mut entry = Entry::new(&key(number), Sort::Udp, hash(number), (Phase::First, 0));
                        entry.last_ns = u64::from(number) << 40;
                        table.insert(entry, &[0; 9], hash(number));
                        map.insert(number, ());
                    }
                    (2, Some(found)) => {
                        table.remove(found.0);
                        map.remove(&number);
                    }
                    _ => {}
                }
                if at % 50 == 49 {
                    // Entries below 12 have expired. One pass misses an entry that moves across the
                    // end.
                    let now_ns = (11 << 40) + 60_000_000_000;
                    let removed = [0, 0].map(|from| table.sweep(from, usize::MAX, now_ns, &limits));
                    let before = map.len();
                    map.retain(|&number, ()| number >= 12);
                    prop_assert_eq!(removed[0] + removed[1], before - map.len());
                }
                let held: std::collections::BTreeSet<u32> = table.iter().map(|entry| (entry.last_ns >> 40) as u32).collect();
                prop_assert!(held.iter().eq(map.keys()));
                prop_assert_eq!(table.count, map.len());
            }
        }
    }
}
