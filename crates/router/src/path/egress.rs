//! Forwarding decisions beyond a next hop with a known MAC: hosts of a link, one of several next
//! hops, or no egress.

use super::neighbours::{Gateway, Hop, Link, Neighbours, Special};
use super::{Interface, Reason, ethernet, ipv4, ipv6, link};
use crate::fib::{Address, NextHop};
use fwdlab_netio::frame::Frame;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of links to hosts that a worker caches.
const NEAR_MAX: usize = 4096;

/// Forwarding decision for a packet.
pub(super) enum Egress {
    Link(Link),
    /// Wait for the MAC, then send out of this port.
    Wait(Hop, u8),
    End(Reason),
}

/// Data that the forwarding decision needs.
pub(super) struct Egresses<'a> {
    pub(super) neighbours: &'a mut Neighbours,
    pub(super) links: &'a [Link],
    pub(super) near: &'a mut HashMap<Gateway, Link>,
    pub(super) interfaces: &'a [Interface],
}

impl Egresses<'_> {
    /// Decides on a packet whose next hop has no link itself.
    #[inline(never)]
    pub(super) fn find(&mut self, frame: &Frame, next_hop: NextHop) -> Egress {
        let mut number = next_hop;
        // Multipath next hops are not nested.
        for _ in 0..2 {
            let Some(entry) = self.neighbours.entry_by_now(number) else { break };
            let is_inet = ethernet::ether_type(frame) == ethernet::IPV4;
            match &entry.special {
                // Added or learnt since the links were built, or stale until this use.
                None if entry.is_known() => {
                    let entry = Arc::clone(entry);
                    if entry.use_at(self.neighbours.clock_ns()) {
                        self.neighbours.change();
                    }
                    return Egress::Link(entry.link(self.interfaces));
                }
                None => {
                    let wait =
                        |gateway: Gateway| Egress::Wait(Hop { number, host: None }, gateway.port);
                    return entry.gateway.map_or(Egress::End(Reason::NeighbourUnknown), wait);
                }
                Some(Special::Link(port)) => {
                    let port = *port;
                    let host = Gateway { port, address: destination(frame) };
                    return match self.host(&host) {
                        Some(link) => Egress::Link(link),
                        None => Egress::Wait(Hop { number, host: Some(host) }, port),
                    };
                }
                Some(Special::Blackhole) => return Egress::End(Reason::Blackhole),
                // As Linux answers.
                Some(Special::Unreachable) if !is_inet => return Egress::End(Reason::SlowNoRoute),
                Some(Special::Unreachable) => return Egress::End(Reason::SlowUnreachable),
                Some(Special::Prohibit) => return Egress::End(Reason::SlowProhibited),
                Some(Special::Host) => return Egress::End(Reason::SlowLocal),
                Some(Special::Several(members)) => {
                    let Some(place) = flow(frame).checked_rem(members.len()) else { break };
                    number = members[place];
                    let link = link(self.links, Some(number));
                    if link.mtu > 0 {
                        return Egress::Link(*link);
                    }
                }
            }
        }
        Egress::End(Reason::NeighbourUnknown)
    }

    fn host(&mut self, host: &Gateway) -> Option<Link> {
        if let Some(link) = self.near.get(host) {
            return Some(*link);
        }
        let link = self.neighbours.host(host, self.interfaces)?;
        if self.near.len() >= NEAR_MAX {
            self.near.clear();
        }
        self.near.insert(*host, link);
        Some(link)
    }
}

fn destination(frame: &Frame) -> std::net::IpAddr {
    if ethernet::ether_type(frame) == ethernet::IPV4 {
        ipv4::address(frame.buffer(), ipv4::field::DESTINATION).to_ip()
    } else {
        ipv6::address(frame.buffer(), ipv6::field::DESTINATION).to_ip()
    }
}

/// A number that all packets of a flow share (RFC 2992), and all fragments of a packet, as
/// fragments have no ports.
fn flow(frame: &Frame) -> usize {
    let bytes = frame.buffer();
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |&word| u64::from_le_bytes(word));
    let ports = |at: usize| u64::from(word(at) as u32);
    let is_inet = ethernet::ether_type(frame) == ethernet::IPV4;
    let (ends, rest) = if is_inet {
        let whole = bytes[ethernet::HEADER] == 0x45 && bytes[20] & 0x3f == 0 && bytes[21] == 0;
        let ports = if whole && matches!(bytes[23], 6 | 17) { ports(34) } else { 0 };
        ([word(26), 0, 0, 0], ports | u64::from(bytes[23]) << 32)
    } else {
        let whole = matches!(bytes[20], 6 | 17);
        let ports = if whole { ports(54) | u64::from(bytes[20]) << 32 } else { 0 };
        ([word(22), word(30), word(38), word(46)], ports)
    };
    let hash = ends.into_iter().chain([rest]).fold(0x9e37_79b9_7f4a_7c15u64, |hash, word| {
        let product = u128::from(hash ^ word) * 0xe703_7ed1_a0b4_28db;
        product as u64 ^ (product >> 64) as u64
    });
    (hash >> 16) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_spread_evenly_and_fragments_follow_one_path() {
        let mut counts = [0; 4];
        let mut bytes = [0u8; 60];
        bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
        bytes[23] = 17;
        for number in 0..4000u16 {
            bytes[34..36].copy_from_slice(&number.to_be_bytes());
            counts[flow(&Frame::of(0, &bytes).expect("it fits")) % 4] += 1;
        }
        assert!(counts.iter().all(|&count| (900..1100).contains(&count)), "{counts:?}");
        bytes[20] = 0x20;
        let first = flow(&Frame::of(0, &bytes).expect("it fits"));
        (bytes[20], bytes[21], bytes[34]) = (0, 9, 77);
        assert_eq!(flow(&Frame::of(0, &bytes).expect("it fits")), first);
    }
}
