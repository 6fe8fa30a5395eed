//! The router's own host: frames that it receives and sends.
//!
//! Next to each interface there may be a port to the kernel's stack. It gets the frames for this
//! router that the slow path did not answer: packets to own addresses, answers of neighbours,
//! frames to groups of the link. Frames that arrive from it leave through the interface unchanged.

use super::advertise::Advertiser;
use super::counters::Reason;
use super::slow::TokenBucket;
use super::{Config, Firewall, HostRate, Router, ethernet, ipv4, ipv6};
use crate::fib::{V4, V6};
use fwdlab_netio::frame::Frame;
use std::sync::Arc;

/// Link Layer Discovery Protocol (IEEE 802.1AB).
const LLDP: u16 = 0x88cc;
/// Internet Group Management Protocol.
const IGMP: u8 = 2;
/// Below this value the field is a length (IEEE 802.3), and the protocol one of IEEE 802.2, such as
/// IS-IS.
const LENGTHS: u16 = 0x600;

/// Ports to the host, by interface, and their rate limits.
pub(super) struct Host {
    ports: Vec<Option<u8>>,
    buckets: Vec<[TokenBucket; 3]>,
    advertiser: Option<Arc<Advertiser>>,
}

impl Host {
    pub(super) fn new(config: &Config) -> Host {
        let HostRate(rate) = config.host_rate;
        let bucket = || TokenBucket::new(rate);
        let buckets = config.host_ports.iter().map(|_| [bucket(), bucket(), bucket()]).collect();
        Host { ports: config.host_ports.clone(), buckets, advertiser: config.advertiser.clone() }
    }

    /// The host's port for frames that came in at `ingress`.
    pub(super) fn port(&self, ingress: u8) -> Option<u8> {
        self.ports.get(usize::from(ingress)).copied().flatten()
    }

    /// The interface's port that belongs to a port of the host.
    fn interface(&self, port: u8) -> Option<u8> {
        let at = self.ports.iter().position(|&other| other == Some(port))?;
        u8::try_from(at).ok()
    }

    /// Changes the reason of a frame that is not forwarded: frames otherwise without receiver go to
    /// the host, and solicitations to the advertiser.
    #[cold]
    pub(super) fn sorted(&self, frame: &Frame, reason: Reason) -> Reason {
        let is_ipv6_group =
            reason == Reason::LinkBroadcast && ethernet::ether_type(frame) == ethernet::IPV6;
        if is_ipv6_group && self.advertiser.as_ref().is_some_and(|own| own.is_asked(frame)) {
            return Reason::SlowNeighbour;
        }
        let is_unclaimed = matches!(reason, Reason::LinkBroadcast | Reason::EtherType);
        match is_unclaimed && self.port(frame.ingress()).is_some() && is_to_link(frame) {
            true => Reason::SlowGroup,
            false => reason,
        }
    }

    /// Hands an unanswered frame to the host.
    #[cold]
    pub(super) fn tell(&mut self, frame: &mut Frame, reason: Reason, now_ns: u64) -> Reason {
        let kind = match reason {
            Reason::SlowNeighbour => 0,
            Reason::SlowGroup => 1,
            Reason::SlowLocal => 2,
            _ => return Reason::Silent,
        };
        let ingress = usize::from(frame.ingress());
        let Some(port) = self.port(frame.ingress()) else { return Reason::Silent };
        let bucket = self.buckets.get_mut(ingress).map(|buckets| &mut buckets[kind]);
        if !bucket.is_some_and(|bucket| bucket.take(now_ns)) {
            return Reason::HostLimited;
        }
        frame.send_to(port);
        Reason::ToHost
    }
}

/// True for frames to groups of the link that hosts listen to, and for reports of group membership
/// to routers, which go to the group itself (RFC 2236, RFC 2710).
fn is_to_link(frame: &Frame) -> bool {
    let bytes = frame.buffer();
    match ethernet::ether_type(frame) {
        _ if bytes[0] & 1 == 0 => false,
        ethernet::IPV4 => {
            let to = ipv4::address(bytes, ipv4::field::DESTINATION);
            // 224.0.0.0/24 (RFC 5771), and the broadcast address.
            let is_membership = to.0 >> 28 == 0xe && bytes[ipv4::field::PROTOCOL] == IGMP;
            ipv4::is_whole(frame) && (to.0 >> 8 == 0xe0_0000 || to == V4(u32::MAX) || is_membership)
        }
        ethernet::IPV6 => {
            // Link-local groups (RFC 4291 section 2.7). The header was checked before.
            frame.len() >= ethernet::HEADER + ipv6::HEADER
                && bytes[ipv6::field::DESTINATION] == 0xff
                && (bytes[ipv6::field::DESTINATION + 1] & 0xf == 2 || is_mld(frame))
        }
        other => other == LLDP || other < LENGTHS,
    }
}

/// True for a query, report or done message of MLDv1, which follows a router alert (RFC 2710
/// section 3).
fn is_mld(frame: &Frame) -> bool {
    const OPTIONS: usize = ethernet::HEADER + ipv6::HEADER;
    let bytes = frame.bytes();
    let Some(&[next, length, ..]) = bytes.get(OPTIONS..) else { return false };
    let kind = bytes.get(OPTIONS + 8 + 8 * usize::from(length));
    bytes[ipv6::field::NEXT_HEADER] == 0
        && next == ipv6::ICMP
        && kind.is_some_and(|kind| (130..=132).contains(kind))
}

impl<W: Firewall> Router<W> {
    /// Sends frames of the router's host: frames that came in at its ports leave through their
    /// interfaces unchanged. They do not count as received.
    pub fn originate(&mut self, batch: &mut [Frame]) {
        for frame in batch {
            match self.host.interface(frame.ingress()) {
                Some(port) => {
                    frame.send_to(port);
                    self.tally.add(Reason::FromHost, 1);
                }
                None => frame.send_nowhere(),
            }
        }
    }

    /// True if a packet is addressed to an address of the host, for which its TTL need not last any
    /// further.
    pub(super) fn is_for_host(&self, frame: &Frame) -> bool {
        use super::neighbours::Special;
        if self.host.port(frame.ingress()).is_none() {
            return false;
        }
        let mut next_hop = [None];
        if ethernet::ether_type(frame) == ethernet::IPV4 {
            let to: V4 = ipv4::address(frame.buffer(), ipv4::field::DESTINATION);
            self.inet.fib.lookup_batch(&[to], &mut next_hop);
        } else {
            let to: V6 = ipv6::address(frame.buffer(), ipv6::field::DESTINATION);
            self.inet6.fib.lookup_batch(&[to], &mut next_hop);
        }
        let entry = next_hop[0].and_then(|number| self.neighbours.entry(number));
        entry.is_some_and(|entry| entry.special == Some(Special::Host))
    }
}
