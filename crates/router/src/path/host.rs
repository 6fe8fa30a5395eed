//! The router's own host: what it is told, and what it sends.
//!
//! Beside each interface may be a port to the kernel's stack. It gets what is for this router
//! and was not answered by the slow path: packets to own addresses, what neighbours answer,
//! frames to groups of the link. What comes in there goes out of the interface as it is.

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
/// Below this, the field is a length (IEEE 802.3), and the protocol one of IEEE 802.2, as
/// IS-IS is.
const LENGTHS: u16 = 0x600;

/// Ports to the host, by those of interfaces, and how much goes there.
pub(super) struct Host {
    ports: Vec<Option<u8>>,
    told: Vec<[TokenBucket; 3]>,
    advertiser: Option<Arc<Advertiser>>,
}

impl Host {
    pub(super) fn new(config: &Config) -> Host {
        let HostRate(rate) = config.host_rate;
        let bucket = || TokenBucket::new(rate);
        let told = config.host_ports.iter().map(|_| [bucket(), bucket(), bucket()]).collect();
        Host { ports: config.host_ports.clone(), told, advertiser: config.advertiser.clone() }
    }

    /// Where the host is told of what comes in at a port.
    pub(super) fn port(&self, ingress: u8) -> Option<u8> {
        self.ports.get(usize::from(ingress)).copied().flatten()
    }

    /// The interface's port of a host's.
    fn interface(&self, port: u8) -> Option<u8> {
        let at = self.ports.iter().position(|&other| other == Some(port))?;
        u8::try_from(at).ok()
    }

    /// The reason for which a frame is not forwarded, if the host is told of it in place of
    /// nobody, or the router advertises when it is asked so.
    #[cold]
    pub(super) fn sorted(&self, frame: &Frame, reason: Reason) -> Reason {
        let is_ipv6_group =
            reason == Reason::LinkBroadcast && ethernet::ether_type(frame) == ethernet::IPV6;
        if is_ipv6_group && self.advertiser.as_ref().is_some_and(|own| own.is_asked(frame)) {
            return Reason::SlowNeighbour;
        }
        let nobodys = matches!(reason, Reason::LinkBroadcast | Reason::EtherType);
        match nobodys && self.port(frame.ingress()).is_some() && is_to_link(frame) {
            true => Reason::SlowGroup,
            false => reason,
        }
    }

    /// Hands the host a frame that has no answer here.
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
        let bucket = self.told.get_mut(ingress).map(|buckets| &mut buckets[kind]);
        if !bucket.is_some_and(|bucket| bucket.take(now_ns)) {
            return Reason::HostLimited;
        }
        frame.send_to(port);
        Reason::ToHost
    }
}

/// True of frames to those groups of the link that hosts listen to, and of what tells a router
/// which groups have members: that goes to the group itself (RFC 2236, RFC 2710).
fn is_to_link(frame: &Frame) -> bool {
    let bytes = frame.buffer();
    match ethernet::ether_type(frame) {
        _ if bytes[0] & 1 == 0 => false,
        ethernet::IPV4 => {
            let to = ipv4::address(bytes, ipv4::field::DESTINATION);
            // 224.0.0.0/24 (RFC 5771), and everybody on the link.
            let is_membership = to.0 >> 28 == 0xe && bytes[ipv4::field::PROTOCOL] == IGMP;
            ipv4::is_whole(frame) && (to.0 >> 8 == 0xe0_0000 || to == V4(u32::MAX) || is_membership)
        }
        ethernet::IPV6 => {
            // RFC 4291 section 2.7: of the link. The header was looked at before.
            frame.len() >= ethernet::HEADER + ipv6::HEADER
                && bytes[ipv6::field::DESTINATION] == 0xff
                && (bytes[ipv6::field::DESTINATION + 1] & 0xf == 2 || is_mld(frame))
        }
        other => other == LLDP || other < LENGTHS,
    }
}

/// True of a query, report or done of MLDv1, which comes behind a router alert (RFC 2710
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
    /// Sends what the router's host has sent: frames that came in at its ports go out of
    /// their interfaces, as they are. None of them counts as received.
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

    /// True when a packet is to an address that only the host knows of: its TTL needn't last
    /// any further.
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
