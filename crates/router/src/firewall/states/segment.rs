//! A part of all states: what one lock of sharded tables guards, and what grows at
//! once.

use super::key::{Key, Seed};
use super::phase::{Limits, Phase, begin, go_on};
use super::table::{Entry, Place, Table};
use crate::fib::{Address, V4, V6};
use crate::firewall::packet::{Ends, Packet, bit};
use fwdlab_packet::Family::{self, Inet, Inet6};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Connections of both families.
#[derive(Debug)]
pub(in crate::firewall) struct Segment {
    pub(super) inet: Table<V4>,
    pub(super) inet6: Table<V6>,
}

/// What is looked up: the connection of a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct Question<'a> {
    pub(super) packet: &'a Packet,
    /// By [`hash`].
    pub(super) hash: u64,
    pub(super) now_ns: u64,
}

/// The hash of a packet's connection, the same in both directions.
#[inline(always)]
pub(in crate::firewall) fn hash(packet: &Packet, seed: &Seed) -> u64 {
    match packet.ends {
        Ends::Inet(ends) => Key::of(ends, packet.marks, packet.protocol).0.hash(seed),
        Ends::Inet6(ends) => Key::of(ends, packet.marks, packet.protocol).0.hash(seed),
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

impl<'a> Question<'a> {
    #[inline(always)]
    pub(in crate::firewall) fn new(packet: &'a Packet, hash: u64, now_ns: u64) -> Question<'a> {
        Question { packet, hash, now_ns }
    }

    #[inline(always)]
    pub(super) fn family(&self) -> Family {
        match self.packet.ends {
            Ends::Inet(_) => Inet,
            Ends::Inet6(_) => Inet6,
        }
    }
}

impl Segment {
    pub(super) fn new() -> Segment {
        Segment { inet: Table::new(), inet6: Table::new() }
    }

    /// Adds a packet to its connection, if there is one.
    #[inline(always)]
    pub(super) fn look(&mut self, question: &Question<'_>, limits: &Limits) -> Found {
        match question.packet.ends {
            Ends::Inet(ends) => look(&mut self.inet, ends, question, limits),
            Ends::Inet6(ends) => look(&mut self.inet6, ends, question, limits),
        }
    }

    /// Makes a connection of its first packet, if `room` finds room.
    pub(super) fn make(
        &mut self,
        question: &Question<'_>,
        limits: &Limits,
        room: impl FnOnce() -> bool,
    ) -> Made {
        if self.look(question, limits) == Found::Known {
            return Made::Known;
        }
        if !room() {
            return Made::Full;
        }
        let grown = match question.packet.ends {
            Ends::Inet(ends) => self.inet.insert(first(ends, question)),
            Ends::Inet6(ends) => self.inet6.insert(first(ends, question)),
        };
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

#[inline(always)]
fn look<A: Address>(
    table: &mut Table<A>,
    ends: [A; 2],
    question: &Question<'_>,
    limits: &Limits,
) -> Found {
    let Question { packet, hash, now_ns } = *question;
    let (key, turned) = Key::of(ends, packet.marks, packet.protocol);
    let Some(at) = table.find(&key, hash) else { return Found::Unknown };
    let entry = table.entry(at);
    let begins_anew = entry.phase == Phase::Closed && packet.is(bit::OPENS_TCP);
    if begins_anew || entry.is_over(now_ns, limits) {
        table.remove(at);
        return Found::Over;
    }
    let reply = turned != entry.turned;
    (entry.phase, entry.finished) = go_on((entry.phase, entry.finished), packet, reply);
    entry.last_ns = entry.last_ns.max(now_ns);
    entry.packets[usize::from(reply)] += 1;
    entry.bytes[usize::from(reply)] += u64::from(packet.bytes);
    Found::Known
}

fn first<A: Address>(ends: [A; 2], question: &Question<'_>) -> Entry<A> {
    let Question { packet, hash, now_ns } = *question;
    let (key, turned) = Key::of(ends, packet.marks, packet.protocol);
    let mut entry = Entry::new(&key, hash, turned, begin(packet));
    entry.last_ns = now_ns;
    entry.packets[0] = 1;
    entry.bytes[0] = packet.bytes.into();
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
        let [tags, entries, slots] = &self.0[family as usize];
        Place {
            tags: tags.load(Relaxed),
            entries: entries.load(Relaxed),
            slots: slots.load(Relaxed),
        }
    }

    pub(super) fn set(&self, family: Family, place: Place) {
        let new = [place.tags, place.entries, place.slots];
        for (old, new) in self.0[family as usize].iter().zip(new) {
            old.store(new, Relaxed);
        }
    }
}
