//! A hash table of connections of one family, in one piece.
//!
//! Open addressing. Sixteen bits of each connection's hash lie together in an array
//! of their own, which small caches hold; an entry is looked at where they agree,
//! so a lookup fetches one line of entries: all of an IPv4 entry, and of an IPv6 entry
//! the key, with its counters on the next. What is removed leaves no grave: entries
//! behind it move up.

use super::key::Key;
use super::phase::{Finished, Limits, Phase};
use crate::fib::Address;

/// Entries that a table begins with: a power of two.
const SMALLEST: usize = 8;

/// A connection.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Entry<A> {
    ends: [A; 2],
    marks: [u16; 2],
    protocol: u8,
    pub(super) phase: Phase,
    pub(super) finished: Finished,
    /// Who began comes second in the key.
    pub(super) turned: bool,
    pub(super) last_ns: u64,
    pub(super) hash: u64,
    /// Packets and bytes from who began, and from the other side.
    pub(super) packets: [u64; 2],
    pub(super) bytes: [u64; 2],
}

const _: () = assert!(size_of::<Entry<crate::fib::V4>>() == 64);
const _: () = assert!(size_of::<Entry<crate::fib::V6>>() == 128);

/// Connections of one family.
#[derive(Debug)]
pub(super) struct Table<A> {
    /// 0 where there is no entry.
    tags: Box<[u16]>,
    entries: Box<[Entry<A>]>,
    count: usize,
}

/// Where a table's arrays are, for prefetching. May be out of date: no harm.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::firewall) struct Place {
    pub(super) tags: usize,
    pub(super) entries: usize,
    pub(super) slots: usize,
}

impl<A: Address> Entry<A> {
    const EMPTY: Phase = Phase::First;

    fn empty() -> Entry<A> {
        let key = Key { ends: [A::default(); 2], marks: [0; 2], protocol: 0 };
        Entry::new(&key, 0, false, (Entry::<A>::EMPTY, 0))
    }

    pub(super) fn new(
        key: &Key<A>,
        hash: u64,
        turned: bool,
        (phase, finished): (Phase, Finished),
    ) -> Entry<A> {
        let Key { ends, marks, protocol } = *key;
        let (packets, bytes) = ([0; 2], [0; 2]);
        Entry { ends, marks, protocol, phase, finished, turned, last_ns: 0, hash, packets, bytes }
    }

    pub(super) fn key(&self) -> Key<A> {
        Key { ends: self.ends, marks: self.marks, protocol: self.protocol }
    }

    #[inline(always)]
    fn is(&self, key: &Key<A>) -> bool {
        // Not one by one: their order can't be predicted.
        (self.ends[0] == key.ends[0])
            & (self.ends[1] == key.ends[1])
            & (self.marks == key.marks)
            & (self.protocol == key.protocol)
    }

    #[inline(always)]
    pub(super) fn is_over(&self, now_ns: u64, limits: &Limits) -> bool {
        now_ns.saturating_sub(self.last_ns) >= limits.get(self.protocol, self.phase)
    }
}

#[inline(always)]
fn tag(hash: u64) -> u16 {
    (hash >> 32) as u16 | 1
}

impl<A: Address> Table<A> {
    pub(super) fn new() -> Table<A> {
        Table::with_slots(SMALLEST)
    }

    fn with_slots(slots: usize) -> Table<A> {
        let tags = vec![0; slots].into_boxed_slice();
        Table { tags, entries: vec![Entry::empty(); slots].into_boxed_slice(), count: 0 }
    }

    /// The entry of a connection.
    #[inline(always)]
    pub(super) fn find(&mut self, key: &Key<A>, hash: u64) -> Option<usize> {
        let wanted = tag(hash);
        let mask = self.tags.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let found = self.tags[at];
            if found == wanted && self.entries[at].is(key) {
                return Some(at);
            }
            if found == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline(always)]
    pub(super) fn entry(&mut self, at: usize) -> &mut Entry<A> {
        &mut self.entries[at]
    }

    /// Adds a connection that isn't there. Returns by how many slots the table grew.
    pub(super) fn insert(&mut self, entry: Entry<A>) -> usize {
        let mut grown = 0;
        // Two thirds full: a search that finds nothing looks at five tags.
        if self.count * 3 >= self.tags.len() * 2 {
            grown = self.tags.len();
            let mut larger = Table::with_slots(grown * 2);
            for (tag, entry) in self.tags.iter().zip(&self.entries) {
                if *tag != 0 {
                    larger.put(*entry);
                }
            }
            *self = larger;
        }
        self.put(entry);
        grown
    }

    fn put(&mut self, entry: Entry<A>) {
        let mask = self.tags.len() - 1;
        let mut at = entry.hash as usize & mask;
        while self.tags[at] != 0 {
            at = (at + 1) & mask;
        }
        self.tags[at] = tag(entry.hash);
        self.entries[at] = entry;
        self.count += 1;
    }

    /// Takes an entry out; another may be in its place afterwards.
    pub(super) fn remove(&mut self, at: usize) {
        let mask = self.tags.len() - 1;
        let (mut hole, mut next) = (at, (at + 1) & mask);
        while self.tags[next] != 0 {
            let home = self.entries[next].hash as usize & mask;
            // It may move up as long as it doesn't pass its home.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.tags[hole] = self.tags[next];
                self.entries[hole] = self.entries[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.tags[hole] = 0;
        self.count -= 1;
    }

    /// Removes what is over among `slots` slots from `from` on; returns how many.
    pub(super) fn sweep(
        &mut self,
        from: usize,
        slots: usize,
        now_ns: u64,
        limits: &Limits,
    ) -> usize {
        let mut removed = 0;
        let end = self.tags.len().min(from.saturating_add(slots));
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

    pub(super) fn slots(&self) -> usize {
        self.tags.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<A>> {
        self.tags.iter().zip(&self.entries).filter_map(|(tag, entry)| (*tag != 0).then_some(entry))
    }

    pub(super) fn place(&self) -> Place {
        let (tags, entries) = (self.tags.as_ptr() as usize, self.entries.as_ptr() as usize);
        Place { tags, entries, slots: self.tags.len() }
    }

    /// Bytes of one slot.
    pub(super) const SLOT: usize = size_of::<Entry<A>>() + size_of::<u16>();
}

#[cfg(test)]
mod tests {
    use super::super::phase::Timeouts;
    use super::*;
    use crate::fib::V4;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(number: u32) -> Key<V4> {
        Key { ends: [V4(number), V4(0)], marks: [0; 2], protocol: 17 }
    }

    proptest! {
        /// Hashes are few, so that entries stand in each other's places.
        #[test]
        fn a_table_holds_what_a_map_holds(steps in prop::collection::vec((0u32..24, 0u8..3), 1..200)) {
            let (mut table, mut map) = (Table::<V4>::new(), BTreeMap::new());
            let hash = |number: u32| u64::from(number % 5 * 3) | u64::from(number % 2) << 40;
            let limits = Limits::of(&Timeouts::default());
            for (at, (number, step)) in steps.into_iter().enumerate() {
                let found = table.find(&key(number), hash(number));
                prop_assert_eq!(found.is_some(), map.contains_key(&number));
                match (step, found) {
                    (0 | 1, None) => {
                        let mut entry = Entry::new(&key(number), hash(number), false, (Phase::First, 0));
                        entry.last_ns = u64::from(number) << 40;
                        table.insert(entry);
                        map.insert(number, ());
                    }
                    (2, Some(found)) => {
                        table.remove(found);
                        map.remove(&number);
                    }
                    _ => {}
                }
                if at % 50 == 49 {
                    // Those below 12 are over. One that moves across the end is missed.
                    let now_ns = (11 << 40) + 60_000_000_000;
                    let removed = [0, 0].map(|from| table.sweep(from, usize::MAX, now_ns, &limits));
                    let before = map.len();
                    map.retain(|&number, ()| number >= 12);
                    prop_assert_eq!(removed[0] + removed[1], before - map.len());
                }
                let held: std::collections::BTreeSet<u32> = table.iter().map(|entry| entry.ends[0].0).collect();
                prop_assert!(held.iter().eq(map.keys()));
                prop_assert_eq!(table.count, map.len());
            }
        }
    }
}
