//! Packets handed off by the fast path.

use super::counters::{Reason, Tally};
use super::egress::{Egress, Egresses};
use super::mtu_word;
use super::neighbours::{Hop, Link};
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
    pub(super) fn new() -> Exceptions {
        let (slow, full) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let (unresolved, asked) = (Vec::new(), Vec::new());
        Exceptions { slow, full, unresolved, found: Vec::new(), asked }
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
        tally.add(reason, 1);
        if reason.class() == Class::Slow {
            self.slow.push(SlowPacket { place, reason, word });
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

/// Rewrites a packet for a link, or returns the reason why this is impossible.
pub(super) type Rewrite = fn(&mut Frame, &Link) -> Result<(), Reason>;
