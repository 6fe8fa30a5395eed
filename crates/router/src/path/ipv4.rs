//! Checks and rewrites IPv4 packets (RFC 1812 section 5.2.2 and 5.3).
//!
//! Packets with options, and packets that need fragmentation, take [`super::full`].

use super::counters::Reason;
use super::ethernet;
use super::interface::{Own, Owned};
use super::neighbours::Link;
use crate::fib::V4;
use fwdlab_netio::frame::{CAPACITY, Frame};
use fwdlab_packet::checksum;

/// Offset of the header in a frame.
const AT: usize = ethernet::HEADER;
/// Bytes of a header without options.
pub(super) const HEADER: usize = 20;

/// Offsets of header fields in a frame.
pub(super) mod field {
    pub(in super::super) const TOTAL_LENGTH: usize = 16;
    pub(in super::super) const FLAGS: usize = 20;
    pub(in super::super) const TTL: usize = 22;
    pub(in super::super) const PROTOCOL: usize = 23;
    pub(in super::super) const CHECKSUM: usize = 24;
    pub(in super::super) const SOURCE: usize = 26;
    pub(in super::super) const DESTINATION: usize = 30;
}

/// Destination of a packet that may be forwarded, and true if it has options.
#[inline(always)]
pub(super) fn check(frame: &Frame, owners: &impl Own) -> Result<(V4, bool), Reason> {
    let bytes = frame.buffer();
    let length = frame.len();
    if length < AT + HEADER {
        return Err(Reason::Ipv4Truncated);
    }
    let mut header = HEADER;
    if bytes[AT] != 0x45 {
        header = with_options(bytes[AT])?;
        if length < AT + header {
            return Err(Reason::Ipv4Truncated);
        }
    }
    let total = usize::from(total_length(bytes));
    if total < header || AT + total > length {
        return Err(Reason::Ipv4TotalLength);
    }
    if !sums_to_zero(bytes, header) {
        return Err(Reason::Ipv4Checksum);
    }
    let (source, destination) = (address(bytes, field::SOURCE), address(bytes, field::DESTINATION));
    if is_martian(source) {
        return Err(Reason::Ipv4Source);
    }
    if owners.inet(source).is_some() {
        return Err(Reason::Ipv4Source);
    }
    if is_martian(destination) {
        return Err(Reason::Ipv4Destination);
    }
    match owners.inet(destination) {
        None => {}
        Some(Owned::Address) => return Err(Reason::SlowLocal),
        // Directed broadcasts are not forwarded (RFC 2644).
        Some(Owned::Broadcast) => return Err(Reason::Ipv4Destination),
    }
    if bytes[field::TTL] <= 1 {
        return Err(Reason::SlowExpired);
    }
    Ok((destination, header > HEADER))
}

/// Rewrites the packet for the next hop, or returns the reason why it can't be forwarded there.
#[inline(always)]
pub(super) fn rewrite(frame: &mut Frame, link: &Link) -> Result<(), Reason> {
    let total = total_length(frame.buffer());
    if total > link.mtu {
        return Err(too_big(frame, link));
    }
    let length = frame.len();
    let bytes = frame.buffer_mut();
    bytes[..12].copy_from_slice(&link.macs);
    let before = [bytes[field::TTL], bytes[field::PROTOCOL]];
    bytes[field::TTL] -= 1;
    let after = [bytes[field::TTL], bytes[field::PROTOCOL]];
    let sum = [bytes[field::CHECKSUM], bytes[field::CHECKSUM + 1]];
    let sum = checksum::update(sum, before, after);
    bytes[field::CHECKSUM..field::CHECKSUM + 2].copy_from_slice(&sum);
    // Bytes after the packet are removed, except the padding of short frames.
    frame.set_len(length.min((AT + usize::from(total)).max(ethernet::SMALLEST)));
    frame.send_to(link.port);
    Ok(())
}

#[cold]
fn too_big(frame: &Frame, link: &Link) -> Reason {
    let dont_fragment = frame.buffer()[field::FLAGS] & 0x40 != 0;
    match (link.mtu, dont_fragment) {
        (0, _) => Reason::NeighbourUnknown,
        (_, true) => Reason::SlowTooBig,
        (_, false) => Reason::Ipv4Fragment,
    }
}

/// True if a packet is complete in its frame, and its header is valid.
pub(super) fn is_whole(frame: &Frame) -> bool {
    let bytes = frame.buffer();
    if frame.len() < AT + HEADER {
        return false;
    }
    let (header, total) = (usize::from(bytes[AT] & 15) * 4, usize::from(total_length(bytes)));
    bytes[AT] >> 4 == 4
        && header >= HEADER
        && total >= header
        && AT + total <= frame.len()
        && sums_to_zero(bytes, header)
}

/// Computes the checksum over a whole header.
pub(super) fn write_checksum(bytes: &mut [u8; CAPACITY], header: usize) {
    bytes[field::CHECKSUM..field::CHECKSUM + 2].fill(0);
    let check = checksum::finish(checksum::add(0, &bytes[AT..AT + header]));
    bytes[field::CHECKSUM..field::CHECKSUM + 2].copy_from_slice(&check);
}

/// Length in bytes of a header that begins with this byte.
#[cold]
fn with_options(first: u8) -> Result<usize, Reason> {
    match (first >> 4, usize::from(first & 15) * 4) {
        (4, length) if length >= HEADER => Ok(length),
        (4, _) => Err(Reason::Ipv4HeaderLength),
        _ => Err(Reason::Ipv4Version),
    }
}

#[inline(always)]
pub(super) fn total_length(bytes: &[u8; CAPACITY]) -> u16 {
    u16::from_be_bytes([bytes[field::TOTAL_LENGTH], bytes[field::TOTAL_LENGTH + 1]])
}

#[inline(always)]
pub(super) fn address(bytes: &[u8; CAPACITY], at: usize) -> V4 {
    V4(u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

/// True if the header's checksum is valid.
#[inline(always)]
fn sums_to_zero(bytes: &[u8; CAPACITY], header: usize) -> bool {
    // Words of 32 bits give the same sum modulo 2^16 - 1 (RFC 1071 section 2 (C)).
    let word = |at: usize| {
        let at = AT + 4 * at;
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        u64::from(u32::from_ne_bytes(word))
    };
    let sum = word(0) + word(1) + word(2) + word(3) + word(4);
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let mut sum = (sum & 0xffff) as u32 + (sum >> 16) as u32;
    if header > HEADER {
        sum = checksum::add(sum, &bytes[AT + HEADER..AT + header]);
    }
    checksum::finish(sum) == [0, 0]
}

/// True for addresses that are neither a sender's nor a receiver's on another link: 0/8, 127/8,
/// 224/3 with broadcast (RFC 1122 3.2.1.3), and 169.254/16 (RFC 3927 7).
#[inline(always)]
pub(crate) fn is_martian(V4(address): V4) -> bool {
    let first = address >> 24;
    first == 0 || first == 127 || first >= 224 || address >> 16 == 0xa9fe
}
