//! A part of all states: what one lock of sharded tables guards, and what grows at
//! once.

use super::key::Key;
use super::phase::{Limits, Phase, begin, go_on};
use super::table::{Entry, Place, Table};
use crate::firewall::packet::{Packet, bit};
use fwdlab_packet::Family::{self, Inet, Inet6};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Connections of both families.
#[derive(Debug)]
pub(in crate::firewall) struct Segment {
    pub(super) inet: Table<2>,
    pub(super) inet6: Table<5>,
}

/// What is looked up: the connection of a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct Question<const N: usize> {
    pub(in crate::firewall) packet: Packet,
    pub(in crate::firewall) key: Key<N>,
    /// The packet's source comes second in the key.
    pub(in crate::firewall) turned: bool,
    /// By [`Key::hash`].
    pub(in crate::firewall) hash: u64,
    pub(in crate::firewall) now_ns: u64,
}

/// Something that is there once for each family, by the words of its key.
pub(in crate::firewall) trait Of<const N: usize> {
    const FAMILY: Family;
    fn table(&mut self) -> &mut Table<N>;
}

impl Of<2> for Segment {
    const FAMILY: Family = Inet;
    #[inline(always)]
    fn table(&mut self) -> &mut Table<2> {
        &mut self.inet
    }
}

impl Of<5> for Segment {
    const FAMILY: Family = Inet6;
    #[inline(always)]
    fn table(&mut self) -> &mut Table<5> {
        &mut self.inet6
    }
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The connection, to which the packet was added.
    Known,
    /// Nothing.
    Unknown,
    /// A connection that was over and has been removed.
    Over,
}

/// What became of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It was made; the memory grew by so many slots of its family.
    New { grown: usize },
    /// Another worker had made it meanwhile.
    Known,
    /// There are as many as there may be.
    Full,
}

impl Segment {
    pub(super) fn new() -> Segment {
        Segment { inet: Table::new(), inet6: Table::new() }
    }

    /// Makes a connection of its first packet, if `room` finds room.
    pub(super) fn make<const N: usize>(
        &mut self,
        question: &Question<N>,
        limits: &Limits,
        room: impl FnOnce() -> bool,
    ) -> Made
    where
        Segment: Of<N>,
    {
        let table = self.table();
        if table.look(question, limits) == Found::Known {
            return Made::Known;
        }
        if !room() {
            return Made::Full;
        }
        let grown = table.insert(first(question), question.hash);
        Made::New { grown }
    }

    pub(super) fn slots(&self, family: Family) -> usize {
        match family {
            Inet => self.inet.slots(),
            Inet6 => self.inet6.slots(),
        }
    }

    /// As [`Table::sweep`].
    pub(super) fn sweep(
        &mut self,
        family: Family,
        (from, slots): (usize, usize),
        now_ns: u64,
        limits: &Limits,
    ) -> usize {
        match family {
            Inet => self.inet.sweep(from, slots, now_ns, limits),
            Inet6 => self.inet6.sweep(from, slots, now_ns, limits),
        }
    }

    #[inline(always)]
    pub(super) fn place(&self, family: Family) -> Place {
        match family {
            Inet => self.inet.place(),
            Inet6 => self.inet6.place(),
        }
    }
}

impl<const N: usize> Table<N> {
    /// Adds a packet to its connection, if there is one.
    #[inline(always)]
    pub(super) fn look(&mut self, question: &Question<N>, limits: &Limits) -> Found {
        let Question { packet, key, turned, hash, now_ns } = *question;
        let Some(at) = self.find(&key, hash) else { return Found::Unknown };
        let entry = self.entry(at);
        let begins_anew = entry.phase == Phase::Closed && packet.is(bit::OPENS_TCP);
        if begins_anew || entry.is_over(now_ns, limits) {
            self.remove(at);
            return Found::Over;
        }
        let reply = turned != entry.turned;
        (entry.phase, entry.finished) = go_on((entry.phase, entry.finished), &packet, reply);
        entry.last_ns = entry.last_ns.max(now_ns);
        let [packets, bytes] = &mut entry.traffic[usize::from(reply)];
        *packets += 1;
        *bytes += u64::from(packet.bytes());
        Found::Known
    }
}

fn first<const N: usize>(question: &Question<N>) -> Entry<N> {
    let Question { packet, key, turned, hash, now_ns } = *question;
    let mut entry = Entry::new(&key, hash, turned, begin(&packet));
    entry.last_ns = now_ns;
    entry.traffic[0] = [1, packet.bytes().into()];
    entry
}

/// Where a segment's tables are, for whoever doesn't hold its lock.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Hint([[AtomicUsize; 3]; 2]);

impl Hint {
    pub(super) fn of(segment: &Segment) -> Hint {
        let hint = Hint::default();
        for family in [Inet, Inet6] {
            hint.set(family, segment.place(family));
        }
        hint
    }

    #[inline(always)]
    pub(super) fn get(&self, family: Family) -> Place {
        let [tags, entries, mask] = &self.0[family as usize];
        Place { tags: tags.load(Relaxed), entries: entries.load(Relaxed), mask: mask.load(Relaxed) }
    }

    pub(super) fn set(&self, family: Family, place: Place) {
        let new = [place.tags, place.entries, place.mask];
        for (old, new) in self.0[family as usize].iter().zip(new) {
            old.store(new, Relaxed);
        }
    }
}
