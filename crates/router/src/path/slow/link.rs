//! ARP (RFC 826) and neighbour discovery (RFC 4861): answers requests for own addresses.
//!
//! For the router's own requests see [`super::learn`].

use super::super::ethernet::{self, HEADER as ETHERNET};
use super::super::interface::Interface;
use super::super::ipv6;
use super::{Answer, Kind, end6, icmp};
use crate::fib::{Address, V6};
use fwdlab_netio::frame::Frame;

/// Offsets in a frame with an ARP packet.
pub(super) mod field {
    pub(in super::super) const OPERATION: usize = 20;
    pub(in super::super) const SENDER: usize = 22;
    pub(in super::super) const TARGET: usize = 32;
    pub(in super::super) const TARGET_ADDRESS: usize = 38;
}

/// Offsets in a frame with a solicitation or an advertisement.
pub(super) const MESSAGE: usize = ETHERNET + ipv6::HEADER;
pub(super) const TARGET: usize = MESSAGE + 8;
pub(super) const OPTIONS: usize = TARGET + 16;
/// Flags of an advertisement: router, solicited, override.
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// The MAC of all nodes of a link (RFC 2464 section 7).
const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// True for a request for an address of the interface.
pub(super) fn asks_arp(frame: &Frame, interface: &Interface) -> bool {
    let bytes = frame.buffer();
    let target = super::ipv4::address(bytes, field::TARGET_ADDRESS);
    bytes[field::OPERATION..field::SENDER] == [0, 1] && has(interface, target)
}

/// Writes the reply over the request.
pub(super) fn write_arp(frame: &mut Frame, interface: &Interface) -> usize {
    let bytes = frame.buffer_mut();
    let target = super::ipv4::address(bytes, field::TARGET_ADDRESS);
    bytes[field::OPERATION + 1] = 2;
    bytes.copy_within(field::SENDER..field::TARGET, field::TARGET);
    bytes[field::SENDER..field::SENDER + 6].copy_from_slice(&interface.mac);
    bytes[field::SENDER + 6..field::TARGET].copy_from_slice(&target.0.to_be_bytes());
    ethernet::ARP_END
}

/// The advertisement that answers a solicitation, if it is valid (RFC 4861 section 7.1.1) and the
/// interface has the address.
pub(super) fn solicitation(frame: &Frame, interface: &Interface) -> Option<Answer> {
    let bytes = frame.buffer();
    let is_sound = icmp::is_sound6(frame)
        && end6(frame) >= OPTIONS
        && bytes[ipv6::field::HOP_LIMIT] == 255
        && bytes[MESSAGE..MESSAGE + 2] == [ipv6::SOLICITATION, 0]
        // A sender's address is never a multicast group.
        && bytes[ipv6::field::SOURCE] != 0xff;
    let is_answered = is_sound && has(interface, ipv6::address(bytes, TARGET));
    is_answered.then_some(Answer::Reply(Kind::Discovery, write_advertisement))
}

/// Writes the advertisement over the solicitation.
fn write_advertisement(frame: &mut Frame, interface: &Interface) -> usize {
    let bytes = frame.buffer_mut();
    let source = ipv6::address(bytes, ipv6::field::SOURCE);
    let target = ipv6::address(bytes, TARGET);
    // Without a source address, the answer goes to all nodes (section 7.2.4).
    let (to, flags) = match source {
        V6(0) => {
            // Replaces the source MAC, which becomes the destination of the answer.
            bytes[6..12].copy_from_slice(&ALL_NODES_MAC);
            (ipv6::ALL_NODES, ROUTER | OVERRIDE)
        }
        source => (source, ROUTER | SOLICITED | OVERRIDE),
    };
    bytes[MESSAGE..TARGET].copy_from_slice(&[136, 0, 0, 0, flags, 0, 0, 0]);
    bytes[OPTIONS..OPTIONS + 2].copy_from_slice(&[2, 1]);
    bytes[OPTIONS + 2..OPTIONS + 8].copy_from_slice(&interface.mac);
    icmp::finish6(bytes, target, to, 255, OPTIONS + 8)
}

/// True for an own address.
pub(super) fn has<A: Address>(interface: &Interface, address: A) -> bool {
    interface.addresses.iter().any(|&(own, _)| A::from_ip(own) == Some(address))
}
