//! Packets handed off by the fast path.

use super::counters::{Reason, Reasons, Tally};
use super::egress::{Egress, Egresses};
use super::firewall::{Firewall, HeldBack};
use super::neighbours::{Hop, Link};
use super::{mtu_word, places};
use crate::fib::NextHop;
use fwdlab_netio::frame::{BATCH, Frame};
use fwdlab_packet::forwarding::Class;

/// Packets of a batch that leave the fast path.
pub(super) struct Exceptions {
    /// Packets for the slow path.
    pub(super) slow: Vec<SlowPacket>,
    /// Places of packets that continue on the full path.
    pub(super) full: Vec<u8>,
    /// Places of packets that wait for the MAC of a next hop, with its port.
    pub(super) unresolved: Vec<(usize, Hop, u8)>,
    /// MTUs of the links that were found for packets of the present batch, by place.
    pub(super) found: Vec<(usize, u16)>,
    /// Next hops to request.
    pub(super) asked: Vec<Hop>,
    /// Reasons of packets that are logged.
    logged: Reasons,
    /// Dropped packets of the batch, if they are logged.
    pub(super) dropped: Vec<DroppedPacket>,
}

/// A dropped packet.
#[derive(Clone, Copy)]
pub(super) struct DroppedPacket {
    pub(super) place: usize,
    pub(super) reason: Reason,
    /// The rule that blocked it.
    pub(super) rule: Option<u32>,
}

/// A packet for the slow path.
#[derive(Clone, Copy)]
pub(super) struct SlowPacket {
    pub(super) place: usize,
    pub(super) reason: Reason,
    /// The second word of an error message.
    pub(super) word: [u8; 4],
}

impl Exceptions {
    pub(super) fn new(logged: Reasons) -> Exceptions {
        let (slow, full) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let (unresolved, found, asked, dropped) = Default::default();
        Exceptions { slow, full, unresolved, found, asked, logged, dropped }
    }

    /// Remembers a dropped packet for the log.
    #[cold]
    pub(super) fn note(&mut self, place: usize, reason: Reason, rule: Option<u32>) {
        if self.logged.contains(reason) {
            let rule = rule.filter(|_| reason == Reason::Firewall);
            self.dropped.push(DroppedPacket { place, reason, rule });
        }
    }

    /// Counts packets that are dropped for one reason.
    #[cold]
    pub(super) fn drop_all(&mut self, tally: &mut Tally, packets: u64, reason: Reason) {
        tally.add(reason, u64::from(packets.count_ones()));
        if self.logged.contains(reason) {
            places(packets).for_each(|place| self.note(place, reason, None));
        }
    }

    /// Counts packets that the firewall dropped.
    #[cold]
    pub(super) fn block<W: Firewall>(&mut self, tally: &mut Tally, firewall: &mut W, packets: u64) {
        let mut left = packets;
        for (reason, places) in apart(firewall.take_held_back()) {
            self.drop_all(tally, places & left, reason);
            left &= !places;
        }
        tally.add(Reason::Firewall, u64::from(left.count_ones()));
        if self.logged.contains(Reason::Firewall) {
            places(left).for_each(|place| self.note(place, Reason::Firewall, firewall.rule(place)));
        }
    }

    /// Counts a packet that the firewall dropped on its own, not with its batch.
    #[cold]
    pub(super) fn block_one<W: Firewall>(
        &mut self,
        tally: &mut Tally,
        firewall: &mut W,
        place: usize,
    ) {
        let before = self.dropped.len();
        self.block(tally, firewall, 1);
        self.dropped[before..].iter_mut().for_each(|packet| packet.place = place);
    }

    /// Counts a packet that isn't forwarded, and queues it for the slow path if necessary.
    #[cold]
    pub(super) fn sort_out(
        &mut self,
        tally: &mut Tally,
        place: usize,
        reason: Reason,
        word: [u8; 4],
    ) {
        self.sort_out_by(tally, place, reason, (word, None));
    }

    /// As [`Exceptions::sort_out`], for a packet that a rule may have blocked.
    #[cold]
    pub(super) fn sort_out_by(
        &mut self,
        tally: &mut Tally,
        place: usize,
        reason: Reason,
        (word, rule): ([u8; 4], Option<u32>),
    ) {
        tally.add(reason, 1);
        match reason.class() {
            Class::Slow => self.slow.push(SlowPacket { place, reason, word }),
            _ => self.note(place, reason, rule),
        }
    }

    /// Handles a packet that could not be rewritten for its link. Returns true if it was rewritten
    /// for another link.
    #[inline(never)]
    pub(super) fn refuse(
        &mut self,
        tally: &mut Tally,
        egresses: &mut Egresses<'_>,
        place: usize,
        frame: &mut Frame,
        reason: Reason,
        (next_hop, link, rewrite): (Option<NextHop>, &Link, Rewrite),
    ) -> bool {
        let (mut reason, mut mtu) = (reason, link.mtu);
        if reason == Reason::NeighbourUnknown
            && let Some(next_hop) = next_hop
        {
            match egresses.find(frame, next_hop) {
                Egress::Link(link) => match rewrite(frame, &link) {
                    Ok(()) => {
                        self.found.push((place, link.mtu));
                        return true;
                    }
                    Err(why) => (reason, mtu) = (why, link.mtu),
                },
                Egress::Wait(hop, port) => {
                    self.unresolved.push((place, hop, port));
                    return false;
                }
                Egress::End(why) => reason = why,
            }
        }
        match (reason, next_hop) {
            (_, None) => self.sort_out(tally, place, Reason::SlowNoRoute, [0; 4]),
            (Reason::Ipv4Fragment, _) => self.full.push(place as u8),
            (Reason::SlowTooBig, _) => self.sort_out(tally, place, reason, mtu_word(mtu)),
            (reason, _) => self.sort_out(tally, place, reason, [0; 4]),
        }
        false
    }
}

/// Drops of the firewall that have separate reasons, with the places of packets.
pub(super) fn apart(held_back: HeldBack) -> [(Reason, u64); 4] {
    let HeldBack { full, unreadable, fragments, stray } = held_back;
    [
        (Reason::StateFull, full),
        (Reason::FirewallUnreadable, unreadable),
        (Reason::FirewallFragment, fragments),
        (Reason::FirewallStray, stray),
    ]
}

/// Rewrites a packet for a link, or returns the reason why this is impossible.
pub(super) type Rewrite = fn(&mut Frame, &Link) -> Result<(), Reason>;
