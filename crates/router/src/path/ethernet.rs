//! The first look at a frame: whom is it for, and what is in it?

use super::counters::Reason;
use super::interface::Own;
use super::{ipv4, ipv6};
use crate::fib::{V4, V6};
use fwdlab_port::frame::Frame;

/// Bytes of the Ethernet header; VLAN tags are not taken.
pub(super) const HEADER: usize = 14;
/// Bytes of the smallest frame without FCS.
pub(super) const SMALLEST: usize = 60;
/// Bytes of an ARP packet for IPv4 on Ethernet, with the Ethernet header.
pub(super) const ARP_END: usize = HEADER + 28;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const IPV6: u16 = 0x86dd;

/// Where a packet without fault wants to go.
pub(super) enum Destination {
    Inet(V4),
    Inet6(V6),
    /// An IPv4 packet with options, which the fast path doesn't read.
    Options,
}

/// Protocol of a frame that is for this router.
pub(super) enum Protocol {
    Inet,
    Inet6,
}

/// Checks a frame that came in at a port with this MAC.
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

/// The protocol of a frame that came in at a port with this MAC.
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
    Err(rest(frame, mac))
}

/// A MAC as [`check`] compares it.
pub(super) fn number(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// What has no place in forwarding at all.
#[cold]
fn rest(frame: &Frame, mac: u64) -> Reason {
    let to_group = frame.buffer()[0] & 1 != 0;
    match ether_type(frame) {
        _ if !to_group && mac_number(frame) != mac => Reason::OtherMac,
        ARP if is_arp(frame) => Reason::SlowNeighbour,
        ARP => Reason::ArpInvalid,
        IPV6 => ipv6::check_group(frame),
        IPV4 => Reason::LinkBroadcast,
        _ => Reason::EtherType,
    }
}

fn is_arp(frame: &Frame) -> bool {
    // Ethernet and IPv4, addresses of 6 and 4 bytes (RFC 826).
    frame.len() >= ARP_END && frame.buffer()[14..20] == [0, 1, 8, 0, 6, 4]
}

#[inline(always)]
fn mac_number(frame: &Frame) -> u64 {
    let b = frame.buffer();
    u64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]) >> 16
}

#[inline(always)]
pub(super) fn ether_type(frame: &Frame) -> u16 {
    u16::from_be_bytes([frame.buffer()[12], frame.buffer()[13]])
}
