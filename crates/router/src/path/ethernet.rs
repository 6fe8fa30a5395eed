//! The Ethernet header.

use fwdlab_netio::frame::Frame;

/// Bytes of the Ethernet header; VLAN tags are not supported.
pub(super) const HEADER: usize = 14;
/// Bytes of the smallest frame without FCS.
pub(super) const SMALLEST: usize = 60;
/// Bytes of an ARP packet for IPv4 on Ethernet, with the Ethernet header.
pub(super) const ARP_END: usize = HEADER + 28;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const IPV6: u16 = 0x86dd;
/// EtherTypes of VLAN tags and service tags (IEEE 802.1Q).
pub(super) const TAGS: [u16; 2] = [0x8100, 0x88a8];

/// A MAC in the representation of [`mac_number`].
pub(super) fn number(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// True for ARP for IPv4 on Ethernet.
pub(super) fn is_arp(frame: &Frame) -> bool {
    // Ethernet and IPv4, addresses of 6 and 4 bytes (RFC 826).
    frame.len() >= ARP_END && frame.buffer()[14..20] == [0, 1, 8, 0, 6, 4]
}

/// Destination MAC of a frame as a number.
#[inline(always)]
pub(super) fn mac_number(frame: &Frame) -> u64 {
    let b = frame.buffer();
    u64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]) >> 16
}

#[inline(always)]
pub(super) fn ether_type(frame: &Frame) -> u16 {
    u16::from_be_bytes([frame.buffer()[12], frame.buffer()[13]])
}
