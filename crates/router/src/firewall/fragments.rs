//! Fragments follow the first one of their packet, which alone identifies it.
//!
//! Nothing is reassembled and nothing waits: for each packet the firewall stores the verdict on its
//! first fragment and the byte ranges that have passed. A later fragment passes, and belongs to a
//! state, if the first one did; one that covers bytes that have already passed is dropped (RFC 1858
//! section 4, RFC 5722). A later fragment that arrives before the first is dropped if rules need
//! fields that only the first one has: ports, flags, states. The same applies to a packet that was
//! forgotten, because it is older than [`AGE_NS`] or more than [`PACKETS_MAX`] fragmented packets
//! arrived since.

use super::packet::{Contents, Packet};
use super::packet::{Part, bit, contents, contents6, ends, ends6};
use super::rule::Direction;
use fwdlab_netio::frame::Frame;
use std::collections::{HashMap, VecDeque};

/// Maximum number of fragmented packets known at a time: mostly less than 2 MB with all their data,
/// 4 MB if all have [`PIECES_MAX`].
pub(super) const PACKETS_MAX: usize = 8192;
/// Time after its first fragment for which a packet is known: Linux's `ipfrag_time`.
const AGE_NS: u64 = 30_000_000_000;
/// Maximum number of byte ranges with gaps between them, for one packet: enough for the largest one
/// in fragments of 1480 bytes, in any order.
const PIECES_MAX: usize = 24;
/// Maximum size of a packet in bytes.
const BYTES_MAX: u32 = 65_535;

/// Verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) passes: bool,
    /// It passed by its state.
    pub(super) known: bool,
}

/// Treatment of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is the first one: filter it, and record the verdict with [`Fragments::decide`].
    Judge,
    /// Apply the verdict of the first one.
    Follow(Verdict),
    /// The first one is unknown.
    Orphan,
    /// It covers bytes that have passed, or is no valid fragment.
    Refuse,
}

/// Identifies a packet by addresses, identification, in IPv4 the protocol, and the direction in
/// which it is filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name([u64; 5]);

/// A fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) name: Name,
    begin: u32,
    end: u32,
    more: bool,
}

/// Packets whose first fragment has arrived.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    packets: HashMap<Name, Known>,
    /// Names in order of time, oldest first. Entries of packets that were removed or restarted are
    /// skipped.
    ages: VecDeque<(Name, u64)>,
}

#[derive(Debug)]
struct Known {
    since_ns: u64,
    verdict: Option<Verdict>,
    /// Byte ranges that have passed, in order.
    pieces: Vec<(u32, u32)>,
    /// Total bytes, once the last fragment has arrived.
    total: Option<u32>,
}

impl Piece {
    /// Describes a packet that is a fragment.
    pub(super) fn of(frame: &Frame, packet: Packet, direction: Direction) -> Piece {
        let (bytes, length) = (frame.buffer(), frame.len());
        let filtered = (direction as u64) << 40;
        let (Contents { protocol, cut, end, part, more, id, .. }, [a, b, c, d]) =
            match packet.is(bit::INET6) {
                true => (contents6(bytes, length), ends6(bytes)),
                false => (contents(bytes, length), [ends(bytes), 0, 0, 0]),
            };
        // Only the first fragment contains the protocol after an IPv6 fragment header (RFC 8200
        // section 4.5).
        let protocol = if packet.is(bit::INET6) { 0 } else { u64::from(protocol) << 32 };
        let begin = if let Part::Later(begin) = part { begin } else { 0 };
        let end = begin + end.saturating_sub(cut) as u32;
        Piece { name: Name([a, b, c, d, u64::from(id) | protocol | filtered]), begin, end, more }
    }

    /// True if no packet can contain it: it does not end at a multiple of eight bytes, ends beyond
    /// the largest packet, or is empty.
    fn is_impossible(&self) -> bool {
        self.more && !(self.end - self.begin).is_multiple_of(8)
            || self.end > BYTES_MAX
            || self.end == self.begin
    }
}

impl Fragments {
    /// Decides on a fragment, and records the bytes that pass.
    pub(super) fn admit(&mut self, piece: &Piece, now_ns: u64) -> Admission {
        if piece.is_impossible() {
            return Admission::Refuse;
        }
        if piece.begin == 0 {
            self.begin(piece, now_ns);
            return Admission::Judge;
        }
        let Some(known) = self.packets.get_mut(&piece.name) else { return Admission::Orphan };
        let (false, Some(verdict)) = (known.is_old(now_ns), known.verdict) else {
            return Admission::Orphan;
        };
        if !verdict.passes {
            return Admission::Follow(verdict);
        }
        if !known.add(piece) {
            return Admission::Refuse;
        }
        if known.is_whole() {
            self.packets.remove(&piece.name);
        }
        Admission::Follow(verdict)
    }

    /// Records the verdict on a first fragment.
    pub(super) fn decide(&mut self, name: Name, verdict: Verdict) {
        if let Some(known) = self.packets.get_mut(&name) {
            known.verdict = Some(verdict);
        }
    }

    /// Starts a packet, and restarts it if the name is known: its fragments are always filtered by
    /// a first fragment, whichever it is.
    fn begin(&mut self, piece: &Piece, now_ns: u64) {
        while let Some(&(name, since_ns)) = self.ages.front()
            && (self.ages.len() >= PACKETS_MAX || now_ns.saturating_sub(since_ns) >= AGE_NS)
        {
            self.ages.pop_front();
            if self.packets.get(&name).is_some_and(|known| known.since_ns == since_ns) {
                self.packets.remove(&name);
            }
        }
        let pieces = vec![(0, piece.end)];
        let known = Known { since_ns: now_ns, verdict: None, pieces, total: None };
        self.packets.insert(piece.name, known);
        self.ages.push_back((piece.name, now_ns));
    }
}

impl Known {
    fn is_old(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.since_ns) >= AGE_NS
    }

    /// Records a byte range; returns false if it overlaps a recorded one or contradicts it.
    fn add(&mut self, piece: &Piece) -> bool {
        let &Piece { begin, end, more, .. } = piece;
        let last = self.pieces.last().map_or(0, |&(_, end)| end);
        if self.total.is_some_and(|total| end > total || !more) || !more && last > end {
            return false;
        }
        let at = self.pieces.partition_point(|&(from, _)| from < begin);
        let before = at.checked_sub(1).and_then(|at| self.pieces.get(at)).map(|&(_, end)| end);
        let after = self.pieces.get(at).map(|&(begin, _)| begin);
        if before.is_some_and(|before| before > begin) || after.is_some_and(|after| after < end) {
            return false;
        }
        match (before == Some(begin), after == Some(end)) {
            (true, true) => {
                self.pieces[at - 1].1 = self.pieces[at].1;
                self.pieces.remove(at);
            }
            (true, false) => self.pieces[at - 1].1 = end,
            (false, true) => self.pieces[at].0 = begin,
            (false, false) if self.pieces.len() >= PIECES_MAX => return false,
            (false, false) => self.pieces.insert(at, (begin, end)),
        }
        if !more {
            self.total = Some(end);
        }
        true
    }

    fn is_whole(&self) -> bool {
        matches!(self.pieces[..], [(0, end)] if Some(end) == self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PASSES: Verdict = Verdict { passes: true, known: true };

    fn piece(id: u64, begin: u32, end: u32, more: bool) -> Piece {
        Piece { name: Name([0, 0, 0, 0, id]), begin, end, more }
    }

    #[test]
    fn later_fragments_follow_until_the_packet_is_complete() {
        let mut all = Fragments::default();
        assert_eq!(all.admit(&piece(1, 8, 16, true), 0), Admission::Orphan);
        assert_eq!(all.admit(&piece(1, 0, 8, true), 0), Admission::Judge);
        assert_eq!(all.admit(&piece(1, 8, 16, true), 0), Admission::Orphan, "not decided yet");
        all.decide(Name([0, 0, 0, 0, 1]), PASSES);
        assert_eq!(all.admit(&piece(1, 24, 30, false), 1), Admission::Follow(PASSES));
        assert_eq!(all.admit(&piece(1, 30, 38, true), 1), Admission::Refuse, "behind the last");
        assert_eq!(all.admit(&piece(1, 8, 24, true), 1), Admission::Follow(PASSES));
        assert!(all.packets.is_empty());
        assert_eq!(all.admit(&piece(1, 8, 24, true), 1), Admission::Orphan);
    }

    /// The largest packet on a link of 1500 bytes, its first fragment first.
    #[test]
    fn fragments_arrive_in_any_order() {
        let mut order: Vec<u32> = (1..45).collect();
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        for id in 0..200 {
            let mut all = Fragments::default();
            assert_eq!(all.admit(&piece(id, 0, 1480, true), 0), Admission::Judge);
            all.decide(Name([0, 0, 0, 0, id]), PASSES);
            for at in (1..order.len()).rev() {
                seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                order.swap(at, (seed >> 33) as usize % (at + 1));
            }
            // In the second order no two fragments of the first half are neighbours.
            if id == 1 {
                order.sort_by_key(|number| (number % 2, *number));
            }
            for &number in &order {
                let (begin, is_last) = (number * 1480, number == 44);
                let end = if is_last { 65_515 } else { begin + 1480 };
                let admission = all.admit(&piece(id, begin, end, !is_last), 1);
                assert_eq!(admission, Admission::Follow(PASSES), "{number} of {order:?}");
            }
            assert!(all.packets.is_empty());
        }
    }

    #[test]
    fn impossible_fragments_are_refused() {
        let mut all = Fragments::default();
        assert_eq!(all.admit(&piece(1, 0, 9, true), 0), Admission::Refuse);
        assert_eq!(all.admit(&piece(1, 65_528, 65_536, false), 0), Admission::Refuse);
        assert_eq!(all.admit(&piece(1, 8, 8, false), 0), Admission::Refuse);
    }

    #[test]
    fn known_packets_are_limited_by_number_and_age() {
        let mut all = Fragments::default();
        for id in 0..3 * PACKETS_MAX as u64 {
            assert_eq!(all.admit(&piece(id, 0, 8, true), id), Admission::Judge);
            all.decide(Name([0, 0, 0, 0, id]), PASSES);
        }
        assert_eq!((all.packets.len(), all.ages.len()), (PACKETS_MAX, PACKETS_MAX));
        let last = 3 * PACKETS_MAX as u64 - 1;
        assert_eq!(all.admit(&piece(0, 8, 16, true), last), Admission::Orphan);
        assert_eq!(all.admit(&piece(last, 8, 16, true), last), Admission::Follow(PASSES));
        assert_eq!(all.admit(&piece(last, 16, 24, true), last + AGE_NS), Admission::Orphan);
    }

    proptest! {
        /// Compared with a map of bytes: nothing passes twice, and everything passes once, unless
        /// there were too many gaps.
        #[test]
        fn no_byte_passes_twice(pieces in prop::collection::vec((1u32..40, 1u32..6), 1..30)) {
            let mut known = Known { since_ns: 0, verdict: None, pieces: vec![(0, 8)], total: None };
            let mut seen = vec![false; 400];
            seen[0] = true;
            for (begin, length) in pieces {
                let there = seen[begin as usize..(begin + length) as usize].iter().any(|&s| s);
                let passed = known.add(&piece(0, begin * 8, (begin + length) * 8, true));
                prop_assert!(!(there && passed));
                prop_assert!(there || passed || known.pieces.len() == PIECES_MAX);
                if passed {
                    seen[begin as usize..(begin + length) as usize].fill(true);
                }
            }
        }
    }
}
