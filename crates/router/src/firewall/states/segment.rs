//! A segment of the state table: the unit of growth, and of locking in sharded tables.

use super::key::{self, Key, Seed};
use super::phase::{Limits, Phase, Sort, begin, go_on, tcp};
use super::sources::Sources;
use super::table::{Entry, Place, Table};
use super::window::{Fit, TcpSegment, Window, lies};
use crate::firewall::packet::{Packet, bit};
use fwdlab_netio::frame::Frame;
use fwdlab_packet::Family::{self, Inet, Inet6};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Packets and bytes of a flow that are not yet written back to its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::firewall) struct Credit {
    pub(in crate::firewall) packets: u64,
    pub(in crate::firewall) bytes: u64,
    pub(in crate::firewall) last_ns: u64,
}

/// Connections of both families.
#[derive(Debug)]
pub(in crate::firewall) struct Segment {
    pub(super) inet: Table<2>,
    pub(super) inet6: Table<5>,
}

/// The lookup of a packet's connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct Query<const N: usize> {
    pub(in crate::firewall) key: Key<N>,
    /// Result of [`Key::hash`].
    pub(in crate::firewall) hash: u64,
    /// [`Packet::more`]; the other word is in the key.
    pub(in crate::firewall) more: u32,
}

impl<const N: usize> Query<N> {
    /// A lookup that matches nothing.
    pub(in crate::firewall) const EMPTY: Query<N> = Query { key: Key::EMPTY, hash: 0, more: 0 };

    /// Lookup of a packet's connection.
    #[inline(always)]
    pub(in crate::firewall) fn of(frame: &Frame, packet: Packet, seed: &Seed) -> Query<N>
    where
        Key<N>: key::Of,
    {
        let key: Key<N> = key::Of::of(frame.buffer(), &packet);
        Query { hash: key.hash(seed), key, more: packet.more }
    }

    #[inline(always)]
    pub(super) fn packet(&self) -> Packet {
        Packet { word: self.key.word(), more: self.more }
    }
}

/// A component that exists once for each family, selected by the number of words in its key.
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

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::firewall) enum Found {
    /// The connection, which now includes the packet.
    Known,
    /// As `Known`, and further packets of this direction without SYN, FIN and RST leave its phase
    /// unchanged.
    Steady,
    /// There is no such connection.
    Unknown,
    /// The connection had expired and was removed.
    Over,
    /// The packet claims to belong to a connection and does not: it is outside its window, or its
    /// checksum is wrong.
    Stray,
}

/// Result of inserting a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// Created; the table grew by `grown` slots of its address family.
    New { grown: usize },
    /// Another worker created it in the meantime.
    Known,
    /// The limit is reached.
    Full,
    /// The packet can't begin a connection: its checksum is wrong.
    Stray,
}

/// The first packet of a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct First<'a, const N: usize> {
    pub(in crate::firewall) query: &'a Query<N>,
    pub(in crate::firewall) frame: &'a Frame,
    /// Ignore windows.
    pub(in crate::firewall) sloppy: bool,
}

impl Segment {
    pub(super) fn new(sources: &Option<Arc<Sources>>) -> Segment {
        Segment { inet: Table::new(sources), inet6: Table::new(sources) }
    }

    /// Creates a connection from its first packet, if `room` finds room.
    pub(super) fn insert<const N: usize>(
        &mut self,
        first: First<'_, N>,
        now_ns: u64,
        limits: &Limits,
        room: impl FnOnce(&mut Segment) -> bool,
    ) -> Made
    where
        Segment: Of<N>,
    {
        let First { query, frame, sloppy } = first;
        match self.table().lookup(query, frame, now_ns, limits) {
            Found::Known | Found::Steady => return Made::Known,
            Found::Stray => return Made::Stray,
            Found::Unknown | Found::Over => {}
        }
        let packet = query.packet();
        let sort = Sort::of(packet.protocol(), sloppy);
        let mut window = [0; 9];
        if sort == Sort::Tcp {
            let segment = TcpSegment::read(frame, packet);
            let segment = segment.filter(|_| !lies(frame, packet));
            let Some(segment) = segment else { return Made::Stray };
            Window(&mut window).begin(&segment);
        }
        if !room(self) {
            return Made::Full;
        }
        let mut entry = Entry::new(&query.key, sort, query.hash, begin(&packet, sort));
        entry.last_ns = now_ns;
        (entry.packets[0], entry.bytes[0]) = (1, packet.bytes().into());
        Made::New { grown: self.table().insert(entry, &window, query.hash) }
    }

    /// As [`Table::evict`], in this family or else in the other.
    pub(super) fn evict(&mut self, family: Family, hash: u64) -> bool {
        match family {
            Inet => self.inet.evict(hash) || self.inet6.evict(hash),
            Inet6 => self.inet6.evict(hash) || self.inet.evict(hash),
        }
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
    pub(super) fn lookup(
        &mut self,
        query: &Query<N>,
        frame: &Frame,
        now_ns: u64,
        limits: &Limits,
    ) -> Found {
        let (packet, hash) = (query.packet(), query.hash);
        if let Some((entry, reply)) = self.first(&query.key, hash)
            && entry.sort != Sort::Tcp
            && let Some(found) = entry.add_packet(packet, reply, now_ns, limits)
        {
            return found;
        }
        self.search(query, frame, now_ns, limits)
    }

    /// As [`Table::lookup`], for a packet that the fast check did not match.
    #[inline(never)]
    fn search(&mut self, query: &Query<N>, frame: &Frame, now_ns: u64, limits: &Limits) -> Found {
        let Some((at, reply)) = self.find(&query.key, query.hash) else {
            return Found::Unknown;
        };
        let packet = query.packet();
        let fit = match self.entry(at).sort {
            Sort::Tcp => self.fit(at, frame, packet, reply, now_ns, limits),
            _ => Some(Fit::Inside),
        };
        match fit {
            Some(Fit::Outside) => return Found::Stray,
            Some(Fit::Aside) => return Found::Known,
            None => {}
            Some(fit @ (Fit::Inside | Fit::Ends | Fit::Anew)) => {
                let entry = self.entry(at);
                if fit == Fit::Anew {
                    (entry.phase, entry.finished) = (Phase::First, 0);
                }
                if let Some(found) = entry.add_packet(packet, reply, now_ns, limits) {
                    return found;
                }
            }
        }
        self.remove(at);
        Found::Over
    }

    /// Relation of a packet to the TCP connection at `at`; `None` if the connection has expired.
    fn fit(
        &mut self,
        at: usize,
        frame: &Frame,
        packet: Packet,
        reply: bool,
        now_ns: u64,
        limits: &Limits,
    ) -> Option<Fit> {
        if lies(frame, packet) {
            return Some(Fit::Outside);
        }
        let entry = self.entry(at);
        if entry.is_over(now_ns, limits)
            || entry.phase == Phase::Closed && packet.is(bit::OPENS_TCP)
        {
            return None;
        }
        let segment = TcpSegment::read(frame, packet);
        Some(segment.map_or(Fit::Outside, |segment| self.window(at).go_on(&segment, reply)))
    }

    /// Adds packets that passed without a lookup while the connection was steady. Returns true if
    /// it still is.
    pub(super) fn credit(
        &mut self,
        key: &Key<N>,
        hash: u64,
        credit: Credit,
        now_ns: u64,
        limits: &Limits,
    ) -> bool {
        let Some((at, reply)) = self.find(key, hash) else { return false };
        let entry = self.entry(at);
        entry.last_ns = entry.last_ns.max(credit.last_ns);
        entry.packets[usize::from(reply)] += credit.packets;
        entry.bytes[usize::from(reply)] += credit.bytes;
        entry.is_steady() && !entry.is_over(now_ns, limits)
    }
}

impl<const N: usize> Entry<N> {
    /// Adds a packet; `None` if the connection has expired, which leaves it unchanged.
    #[inline(always)]
    fn add_packet(
        &mut self,
        packet: Packet,
        reply: bool,
        now_ns: u64,
        limits: &Limits,
    ) -> Option<Found> {
        if self.is_over(now_ns, limits) {
            return None;
        }
        let mut found = Found::Steady;
        if matches!(self.sort, Sort::Tcp | Sort::SloppyTcp) {
            if self.phase == Phase::Closed && packet.is(bit::OPENS_TCP) {
                return None;
            }
            let was = (self.phase, self.finished);
            (self.phase, self.finished) = tcp(was, packet.flags(), reply);
            if !self.is_steady() || packet.may_change_phase() {
                found = Found::Known;
            }
        } else {
            self.phase = go_on(self.phase, reply);
        }
        self.last_ns = self.last_ns.max(now_ns);
        self.packets[usize::from(reply)] += 1;
        self.bytes[usize::from(reply)] += u64::from(packet.bytes());
        Some(found)
    }

    /// See [`Found::Steady`]. Other protocols are steady after more than one packet; TCP with
    /// windows never is, as each packet moves the window.
    fn is_steady(&self) -> bool {
        match self.sort {
            Sort::Tcp => false,
            Sort::SloppyTcp => self.phase == Phase::Established && self.finished == 0,
            _ => self.phase != Phase::First,
        }
    }
}

/// Addresses of a segment's tables, readable without its lock.
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
