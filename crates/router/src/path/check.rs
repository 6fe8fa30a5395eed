//! Classifies received frames by destination and protocol.

use super::counters::Reason;
use super::ethernet::{ARP, HEADER, IPV4, IPV6, TAGS, ether_type, is_arp, mac_number};
use super::interface::Own;
use super::{ipv4, ipv6};
use crate::fib::{V4, V6};
use fwdlab_netio::frame::Frame;

/// Destination of a valid packet.
pub(super) enum Destination {
    Inet(V4),
    Inet6(V6),
    /// An IPv4 packet with options, which the fast path doesn't process.
    Options,
}

/// Protocol of a frame that is addressed to this router.
pub(super) enum Protocol {
    Inet,
    Inet6,
}

/// Checks a frame that was received at a port with this MAC.
#[inline(always)]
pub(super) fn check(frame: &Frame, mac: u64, owners: &impl Own) -> Result<Destination, Reason> {
    match protocol(frame, mac)? {
        Protocol::Inet => ipv4::check(frame, owners).map(|(address, options)| match options {
            false => Destination::Inet(address),
            true => Destination::Options,
        }),
        Protocol::Inet6 => ipv6::check(frame, owners).map(Destination::Inet6),
    }
}

/// Protocol of a frame that was received at a port with this MAC.
#[inline(always)]
pub(super) fn protocol(frame: &Frame, mac: u64) -> Result<Protocol, Reason> {
    if frame.len() < HEADER {
        return Err(Reason::EthernetShort);
    }
    if mac_number(frame) == mac {
        match ether_type(frame) {
            IPV4 => return Ok(Protocol::Inet),
            IPV6 => return Ok(Protocol::Inet6),
            _ => {}
        }
    }
    Err(other_reason(frame, mac))
}

/// Reason for a frame that can't be forwarded.
#[cold]
fn other_reason(frame: &Frame, mac: u64) -> Reason {
    let to_group = frame.buffer()[0] & 1 != 0;
    match ether_type(frame) {
        _ if !to_group && mac_number(frame) != mac => Reason::OtherMac,
        ARP if is_arp(frame) => Reason::SlowNeighbour,
        ARP => Reason::ArpInvalid,
        IPV6 => ipv6::check_group(frame),
        IPV4 => Reason::LinkBroadcast,
        tag if TAGS.contains(&tag) => Reason::VlanUnknown,
        _ => Reason::EtherType,
    }
}
