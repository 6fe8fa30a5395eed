//! Checks and rewrites IPv6 packets (RFC 8200).
//!
//! Extension headers are forwarded unread, including hop-by-hop options (RFC 8200 section 4.3
//! allows this). Packets to groups are not forwarded.

use super::counters::Reason;
use super::ethernet;
use super::interface::Own;
use super::neighbours::Link;
use crate::fib::V6;
use fwdlab_netio::frame::{CAPACITY, Frame};

/// Offset of the header in a frame.
const AT: usize = ethernet::HEADER;
/// Bytes of the header.
pub(super) const HEADER: usize = 40;
/// Next header: ICMPv6.
pub(super) const ICMP: u8 = 58;
/// ICMPv6 type: echo request.
const ECHO: u8 = 128;
/// All nodes of a link, and all routers (RFC 4291 section 2.7.1).
pub(super) const ALL_NODES: V6 = V6(0xff02 << 112 | 1);
const ALL_ROUTERS: V6 = V6(0xff02 << 112 | 2);
/// ICMPv6 type: neighbour solicitation (RFC 4861 section 4.3).
pub(super) const SOLICITATION: u8 = 135;
/// ICMPv6 type: neighbour advertisement (RFC 4861 section 4.4).
pub(super) const ADVERTISEMENT: u8 = 136;

/// Offsets of header fields in a frame.
pub(super) mod field {
    pub(in super::super) const PAYLOAD_LENGTH: usize = 18;
    pub(in super::super) const NEXT_HEADER: usize = 20;
    pub(in super::super) const HOP_LIMIT: usize = 21;
    pub(in super::super) const SOURCE: usize = 22;
    pub(in super::super) const DESTINATION: usize = 38;
}

/// Destination of a packet that may be forwarded.
#[inline(always)]
pub(super) fn check(frame: &Frame, owners: &impl Own) -> Result<V6, Reason> {
    check_header(frame)?;
    let bytes = frame.buffer();
    let (source, destination) = (address(bytes, field::SOURCE), address(bytes, field::DESTINATION));
    if is_martian(source) || owners.inet6(source, frame.ingress()).is_some() {
        return Err(Reason::Ipv6Source);
    }
    if owners.inet6(destination, frame.ingress()).is_some() {
        return Err(Reason::SlowLocal);
    }
    // Link-local packets stay on their link (RFC 4291 section 2.5.6).
    if is_martian(destination) || destination.is_link_local() {
        return Err(Reason::Ipv6Destination);
    }
    if source.is_link_local() {
        return Err(Reason::SlowBeyondScope);
    }
    if bytes[field::HOP_LIMIT] <= 1 {
        return Err(Reason::SlowExpired);
    }
    Ok(destination)
}

/// Treatment of a packet in a frame to a group: solicitations and advertisements are processed, and
/// echo requests to all nodes and all routers of the link (RFC 4291 section 2.8).
pub(super) fn check_group(frame: &Frame) -> Reason {
    if let Err(reason) = check_header(frame) {
        return reason;
    }
    let bytes = frame.buffer();
    let is_discovery = bytes[field::NEXT_HEADER] == ICMP
        && frame.len() > AT + HEADER
        && matches!(bytes[AT + HEADER], SOLICITATION | ADVERTISEMENT)
        && bytes[field::DESTINATION] == 0xff;
    let to = address(bytes, field::DESTINATION);
    let is_echo = bytes[field::NEXT_HEADER] == ICMP
        && frame.len() > AT + HEADER
        && bytes[AT + HEADER] == ECHO
        && matches!(to, ALL_NODES | ALL_ROUTERS)
        && !is_martian(address(bytes, field::SOURCE));
    match () {
        () if is_discovery => Reason::SlowNeighbour,
        () if is_echo => Reason::SlowLocal,
        () => Reason::LinkBroadcast,
    }
}

#[inline(always)]
fn check_header(frame: &Frame) -> Result<(), Reason> {
    let bytes = frame.buffer();
    if frame.len() < AT + HEADER {
        return Err(Reason::Ipv6Truncated);
    }
    if bytes[AT] >> 4 != 6 {
        return Err(Reason::Ipv6Version);
    }
    let length = packet_length(bytes);
    // A length of 0 with hop-by-hop options marks a jumbogram (RFC 2675), which is not supported.
    if AT + length > frame.len() || length == HEADER && bytes[field::NEXT_HEADER] == 0 {
        return Err(Reason::Ipv6Length);
    }
    Ok(())
}

/// Rewrites the packet for the next hop, or returns the reason why it can't be forwarded there.
#[inline(always)]
pub(super) fn rewrite(frame: &mut Frame, link: &Link) -> Result<(), Reason> {
    let packet = packet_length(frame.buffer());
    if packet > usize::from(link.mtu) {
        let unknown = link.mtu == 0;
        return Err(if unknown { Reason::NeighbourUnknown } else { Reason::SlowTooBig });
    }
    let length = frame.len();
    let bytes = frame.buffer_mut();
    bytes[..12].copy_from_slice(&link.macs);
    bytes[field::HOP_LIMIT] -= 1;
    frame.set_len(length.min((AT + packet).max(ethernet::SMALLEST)));
    frame.send_to(link.port);
    Ok(())
}

/// Bytes of the packet, including its header.
#[inline(always)]
pub(super) fn packet_length(bytes: &[u8; CAPACITY]) -> usize {
    let payload = [bytes[field::PAYLOAD_LENGTH], bytes[field::PAYLOAD_LENGTH + 1]];
    HEADER + usize::from(u16::from_be_bytes(payload))
}

#[inline(always)]
pub(super) fn address(bytes: &[u8; CAPACITY], at: usize) -> V6 {
    let mut address = [0; 16];
    address.copy_from_slice(&bytes[at..at + 16]);
    V6(u128::from_be_bytes(address))
}

/// True for groups, and for addresses that begin with 80 zeros: unspecified, loopback, and
/// IPv4-mapped addresses (RFC 4291 sections 2.5 and 2.7).
#[inline(always)]
fn is_martian(V6(address): V6) -> bool {
    address >> 120 == 0xff || address >> 48 == 0
}
