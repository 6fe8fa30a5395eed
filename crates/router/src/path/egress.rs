//! Forwarding decisions beyond a next hop with a known MAC: hosts of a link, one of several next
//! hops, or no egress.

use super::neighbours::{Gateway, Hop, Link, Neighbours, Special};
use super::{Interface, Reason, ethernet, ipv4, ipv6, link};
use crate::fib::{Address, NextHop};
use fwdlab_netio::frame::Frame;
use std::collections::HashMap;

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
        let (mut number, mut mtu) = (next_hop, u16::MAX);
        // Several next hops, each of which may be one with a smaller MTU.
        for _ in 0..3 {
            if self.neighbours.entry_by_now(number).is_none() {
                break;
            }
            let neighbours = &*self.neighbours;
            let Some(entry) = neighbours.entry(number) else { break };
            let is_inet = ethernet::ether_type(frame) == ethernet::IPV4;
            match &entry.special {
                // Added or learnt since the links were built, or stale until this use.
                None if entry.is_known() => {
                    if entry.use_at(neighbours.clock_ns()) {
                        neighbours.change();
                    }
                    return Egress::Link(entry.link(self.interfaces).limited_to(mtu));
                }
                None => {
                    let hop = Hop { number, host: None, mtu };
                    let wait = |gateway: Gateway| Egress::Wait(hop, gateway.port);
                    return entry.gateway.map_or(Egress::End(Reason::NeighbourUnknown), wait);
                }
                Some(Special::Link(port)) => {
                    let port = *port;
                    let host = Gateway { port, address: destination(frame) };
                    return match self.host(&host) {
                        Some(link) => Egress::Link(link.limited_to(mtu)),
                        None => Egress::Wait(Hop { number, host: Some(host), mtu }, port),
                    };
                }
                Some(Special::Blackhole) => return Egress::End(Reason::Blackhole),
                Some(Special::NoRoute) => return Egress::End(Reason::SlowNoRoute),
                // As Linux answers.
                Some(Special::Unreachable) if !is_inet => return Egress::End(Reason::SlowNoRoute),
                Some(Special::Unreachable) => return Egress::End(Reason::SlowUnreachable),
                Some(Special::Prohibit) => return Egress::End(Reason::SlowProhibited),
                Some(Special::Host) => return Egress::End(Reason::SlowLocal),
                Some(Special::Limited(inner, limit)) => {
                    (number, mtu) = (*inner, mtu.min(*limit));
                }
                Some(Special::Several(members)) => {
                    let port = |number: NextHop| {
                        link(self.links, Some(neighbours.without_limit(number))).port
                    };
                    let is_usable = |&number: &NextHop| !neighbours.is_down(port(number));
                    let all_usable = !neighbours.is_any_down();
                    let Some(member) = member(members, flow(frame), all_usable, is_usable) else {
                        break;
                    };
                    number = member;
                }
            }
            let link = link(self.links, Some(number));
            if link.mtu > 0 {
                return Egress::Link(link.limited_to(mtu));
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

/// The next hop of a flow by hash threshold (RFC 2992), which moves few flows when a next hop goes
/// or comes. Next hops that are not usable have no flows, unless none is usable.
fn member(
    members: &[NextHop],
    flow: u32,
    all_usable: bool,
    is_usable: impl Fn(&NextHop) -> bool,
) -> Option<NextHop> {
    let place = |count: usize| ((u64::from(flow) * count as u64) >> 32) as usize;
    if !all_usable {
        let usable = || members.iter().filter(|number| is_usable(number));
        if let Some(&member) = usable().nth(place(usable().count())) {
            return Some(member);
        }
    }
    members.get(place(members.len())).copied()
}

/// Maximum number of extension headers before the ports.
const HEADERS_MAX: usize = 8;

/// A number that all packets of a flow share, and all fragments of a packet, as fragments have no
/// ports. It covers addresses, ports, protocol, and the flow label (RFC 6438).
fn flow(frame: &Frame) -> u32 {
    let bytes = frame.buffer();
    let word = |at: usize| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
        word.map_or(0, |&word| u64::from_le_bytes(word))
    };
    let ports = |at: usize| u64::from(word(at) as u32);
    let is_inet = ethernet::ether_type(frame) == ethernet::IPV4;
    let (ends, rest) = if is_inet {
        let whole = bytes[ethernet::HEADER] == 0x45 && bytes[20] & 0x3f == 0 && bytes[21] == 0;
        let ports = if whole && matches!(bytes[23], 6 | 17) { ports(34) } else { 0 };
        ([word(26), 0, 0, 0, 0], ports | u64::from(bytes[23]) << 32)
    } else {
        let label = u64::from(u32::from_be_bytes([0, bytes[15] & 0x0f, bytes[16], bytes[17]]));
        let ports = transport(bytes, frame.len())
            .map_or(0, |(protocol, at)| ports(at) | u64::from(protocol) << 32);
        ([word(22), word(30), word(38), word(46), label], ports)
    };
    let hash = ends.into_iter().chain([rest]).fold(0x9e37_79b9_7f4a_7c15u64, |hash, word| {
        let product = u128::from(hash ^ word) * 0xe703_7ed1_a0b4_28db;
        product as u64 ^ (product >> 64) as u64
    });
    (hash >> 32) as u32
}

/// TCP or UDP of a whole IPv6 packet, and where its header begins.
fn transport(bytes: &[u8], end: usize) -> Option<(u8, usize)> {
    // Of longer frames only the beginning is here.
    let end = end.min(bytes.len());
    let (mut next, mut at) = (bytes[20], 54);
    for _ in 0..=HEADERS_MAX {
        match next {
            6 | 17 => return (at + 4 <= end).then_some((next, at)),
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 if at + 2 <= end => {
                (next, at) = (bytes[at], at + 8 * (usize::from(bytes[at + 1]) + 1));
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests;
