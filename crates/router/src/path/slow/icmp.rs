//! ICMP (RFC 792) and ICMPv6 (RFC 4443): error messages and echoes.

use super::super::ethernet::HEADER as ETHERNET;
use super::super::interface::Interface;
use super::super::{ipv4, ipv6};
use super::{end4, end6};
use crate::fib::{V4, V6};
use fwdlab_netio::frame::{CAPACITY, Frame};
use fwdlab_packet::checksum;

/// Initial TTL of the router's own packets.
const TTL: u8 = 64;
/// Largest error message about an IPv4 packet (RFC 1812 section 4.3.2.3).
const ERROR4_MAX: usize = 576;
/// Largest error message about an IPv6 packet (RFC 4443 section 2.4 (c)).
const ERROR6_MAX: usize = 1280;
/// Bytes of an ICMP header.
const ICMP: usize = 8;
const PROTOCOL_ICMP: u8 = 1;
/// Offset of the data after an IPv6 header.
const AFTER6: usize = ETHERNET + ipv6::HEADER;
/// Maximum number of extension headers to skip in search of ICMPv6.
const EXTENSIONS_MAX: usize = 8;

/// True unless an error message about the packet is forbidden (RFC 1122 section 3.2.2). Broadcasts
/// and invalid sources were dropped before.
pub(in super::super) fn deserves_error4(frame: &Frame, interface: &Interface) -> bool {
    let bytes = frame.buffer();
    let icmp = ETHERNET + usize::from(bytes[ETHERNET] & 15) * 4;
    let flags = [bytes[ipv4::field::FLAGS], bytes[ipv4::field::FLAGS + 1]];
    let is_first = u16::from_be_bytes(flags) & 0x1fff == 0;
    let is_error = bytes[ipv4::field::PROTOCOL] == PROTOCOL_ICMP
        && (icmp >= end4(frame) || !matches!(bytes[icmp], 0 | 8..=10 | 13..=18));
    is_first && !is_error && interface.address::<V4>().is_some()
}

/// As [`deserves_error4`] for IPv6 (RFC 4443 section 2.4 (e)), where a fragment with invisible
/// contents may be an error message.
pub(in super::super) fn deserves_error6(frame: &Frame, interface: &Interface) -> bool {
    interface.address::<V6>().is_some() && !may_be_error6(frame, true)
}

/// As [`deserves_error6`] for "packet too big": a later fragment deserves it, because path MTU
/// discovery fails otherwise (RFC 4443 section 3.2).
pub(super) fn deserves_too_big(frame: &Frame, interface: &Interface) -> bool {
    interface.address::<V6>().is_some() && !may_be_error6(frame, false)
}

/// True for an error, and for later fragments if `later` is true.
fn may_be_error6(frame: &Frame, later: bool) -> bool {
    let end = end6(frame).min(CAPACITY);
    let bytes = &frame.buffer()[..end];
    let mut next = bytes[ipv6::field::NEXT_HEADER];
    let mut at = AFTER6;
    for _ in 0..EXTENSIONS_MAX {
        if at + 8 > end {
            return matches!(next, 0 | 43 | 44 | 60 | ipv6::ICMP);
        }
        let length = match next {
            ipv6::ICMP => return bytes[at] < 128 || bytes[at] == 137,
            0 | 43 | 60 => 8 + 8 * usize::from(bytes[at + 1]),
            44 if u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]) >> 3 != 0 => return later,
            44 => 8,
            _ => return false,
        };
        next = bytes[at];
        at += length;
    }
    true
}

/// Writes an error message over the packet that it is about.
pub(in super::super) fn write_error4(
    frame: &mut Frame,
    interface: &Interface,
    kind: u8,
    code: u8,
    word: [u8; 4],
) -> usize {
    let quoted = (end4(frame) - ETHERNET).min(ERROR4_MAX - ipv4::HEADER - ICMP);
    let own = interface.address::<V4>().unwrap_or_default();
    let bytes = frame.buffer_mut();
    let sender = ipv4::address(bytes, ipv4::field::SOURCE);
    let icmp = ETHERNET + ipv4::HEADER;
    let end = icmp + ICMP + quoted;
    bytes.copy_within(ETHERNET..ETHERNET + quoted, icmp + ICMP);
    bytes[icmp..icmp + ICMP]
        .copy_from_slice(&[kind, code, 0, 0, word[0], word[1], word[2], word[3]]);
    // Precedence "internetwork control" (RFC 1812 section 4.3.2.5).
    bytes[ETHERNET..ETHERNET + 2].copy_from_slice(&[0x45, 0xc0]);
    // Not fragmented, so it needs no identification (RFC 6864 section 4.1): every current link
    // carries 576 bytes.
    bytes[ipv4::field::FLAGS - 2..ipv4::field::TTL].copy_from_slice(&[0, 0, 0x40, 0]);
    bytes[ipv4::field::PROTOCOL] = PROTOCOL_ICMP;
    finish4(bytes, own, sender, icmp, end)
}

/// Writes an error message over the packet that it is about.
pub(super) fn write_error6(
    frame: &mut Frame,
    interface: &Interface,
    kind: u8,
    code: u8,
    word: [u8; 4],
) -> usize {
    let quoted = (end6(frame) - ETHERNET).min(ERROR6_MAX - ipv6::HEADER - ICMP);
    let sender = ipv6::address(frame.buffer(), ipv6::field::SOURCE);
    // With the sender's scope, if there is one (RFC 6724 section 5, rule 2).
    let own = interface.nearest(sender).unwrap_or_default();
    let bytes = frame.buffer_mut();
    bytes.copy_within(ETHERNET..ETHERNET + quoted, AFTER6 + ICMP);
    bytes[AFTER6..AFTER6 + ICMP]
        .copy_from_slice(&[kind, code, 0, 0, word[0], word[1], word[2], word[3]]);
    finish6(bytes, own, sender, TTL, AFTER6 + ICMP + quoted)
}

/// Writes a redirect over the packet that it is about: `target`, with the MAC `mac`, is the better
/// next hop for such packets (RFC 4861 section 4.5).
pub(in super::super) fn write_redirect6(
    frame: &mut Frame,
    own: V6,
    target: V6,
    mac: [u8; 6],
) -> usize {
    /// Message with both addresses, the option with the MAC, and the header of the option that
    /// quotes.
    const HEAD: usize = 8 + 32 + 8 + 8;
    let most = (ERROR6_MAX - ipv6::HEADER - HEAD) & !7;
    let quoted = (end6(frame) - ETHERNET).min(most);
    let bytes = frame.buffer_mut();
    let sender = ipv6::address(bytes, ipv6::field::SOURCE);
    let destination = ipv6::address(bytes, ipv6::field::DESTINATION);
    bytes.copy_within(ETHERNET..ETHERNET + quoted, AFTER6 + HEAD);
    let end = AFTER6 + HEAD + quoted.next_multiple_of(8);
    bytes[AFTER6 + HEAD + quoted..end].fill(0);
    let head = &mut bytes[AFTER6..AFTER6 + HEAD];
    head.fill(0);
    head[0] = 137;
    head[8..24].copy_from_slice(&target.0.to_be_bytes());
    head[24..40].copy_from_slice(&destination.0.to_be_bytes());
    head[40..42].copy_from_slice(&[2, 1]);
    head[42..48].copy_from_slice(&mac);
    head[48..50].copy_from_slice(&[4, (1 + quoted.div_ceil(8)) as u8]);
    finish6(bytes, own, sender, 255, end)
}

/// True for a complete and valid echo request.
pub(super) fn is_echo4(frame: &Frame) -> bool {
    let bytes = frame.buffer();
    let (icmp, end) = (ETHERNET + usize::from(bytes[ETHERNET] & 15) * 4, end4(frame));
    let fragment = [bytes[ipv4::field::FLAGS] & 0x3f, bytes[ipv4::field::FLAGS + 1]];
    bytes[ipv4::field::PROTOCOL] == PROTOCOL_ICMP
        && fragment == [0, 0]
        && icmp + ICMP <= end
        && bytes[icmp..icmp + 2] == [8, 0]
        && checksum::finish(checksum::add(0, &frame.whole()[icmp..end])) == [0, 0]
}

/// Writes the echo reply over its request, without options.
pub(super) fn write_echo4(frame: &mut Frame, _: &Interface) -> usize {
    let end = end4(frame);
    let own = ipv4::address(frame.buffer(), ipv4::field::DESTINATION);
    let sender = ipv4::address(frame.buffer(), ipv4::field::SOURCE);
    let icmp = ETHERNET + ipv4::HEADER;
    frame.edit(|bytes| {
        let options = usize::from(bytes[ETHERNET] & 15) * 4 - ipv4::HEADER;
        bytes.copy_within(icmp + options..end, icmp);
        bytes[ETHERNET] = 0x45;
        bytes[icmp] = 0;
        finish4(bytes, own, sender, icmp, end - options)
    })
}

/// True for a valid echo request without extension headers.
pub(super) fn is_echo6(frame: &Frame) -> bool {
    is_sound6(frame) && frame.buffer()[AFTER6..AFTER6 + 2] == [128, 0]
}

/// Writes the echo reply over its request, with the same traffic class, as IPv4 does with its type
/// of service (RFC 1812 section 4.3.2.5).
pub(super) fn write_echo6(frame: &mut Frame, interface: &Interface) -> usize {
    let end = end6(frame);
    let sender = ipv6::address(frame.buffer(), ipv6::field::SOURCE);
    let mut own = ipv6::address(frame.buffer(), ipv6::field::DESTINATION);
    // A request to a group or anycast address is answered from a unicast address.
    if own.0 >> 120 == 0xff || interface.is_anycast(own) {
        own = interface.nearest(sender).unwrap_or(own);
    }
    frame.edit(|bytes| {
        bytes[AFTER6] = 129;
        let class = [bytes[ETHERNET], bytes[ETHERNET + 1] & 0xf0];
        let end = finish6(bytes, own, sender, TTL, end);
        bytes[ETHERNET..ETHERNET + 2].copy_from_slice(&class);
        end
    })
}

/// True if the IPv6 header is followed by an ICMPv6 message with a valid checksum.
pub(in super::super) fn is_sound6(frame: &Frame) -> bool {
    let (bytes, end) = (frame.buffer(), end6(frame));
    bytes[ipv6::field::NEXT_HEADER] == ipv6::ICMP
        && AFTER6 + ICMP <= end
        && checksum::finish(sum6(&frame.whole(), end)) == [0, 0]
}

/// Writes addresses, lengths, TTL and checksums of an ICMP message from `icmp` to `end`.
fn finish4(bytes: &mut [u8], from: V4, to: V4, icmp: usize, end: usize) -> usize {
    use ipv4::field;
    let total = ((end - ETHERNET) as u16).to_be_bytes();
    bytes[field::TOTAL_LENGTH..field::TOTAL_LENGTH + 2].copy_from_slice(&total);
    bytes[field::TTL] = TTL;
    bytes[field::SOURCE..field::DESTINATION].copy_from_slice(&from.0.to_be_bytes());
    bytes[field::DESTINATION..icmp].copy_from_slice(&to.0.to_be_bytes());
    bytes[field::CHECKSUM..field::SOURCE].fill(0);
    let check = checksum::finish(checksum::add(0, &bytes[ETHERNET..icmp]));
    bytes[field::CHECKSUM..field::SOURCE].copy_from_slice(&check);
    bytes[icmp + 2..icmp + 4].fill(0);
    let check = checksum::finish(checksum::add(0, &bytes[icmp..end]));
    bytes[icmp + 2..icmp + 4].copy_from_slice(&check);
    end
}

/// Writes the header and the checksum of the ICMPv6 message that follows it.
pub(in super::super) fn finish6(
    bytes: &mut [u8],
    from: V6,
    to: V6,
    hop_limit: u8,
    end: usize,
) -> usize {
    use ipv6::field;
    let payload = ((end - AFTER6) as u16).to_be_bytes();
    bytes[ETHERNET..field::PAYLOAD_LENGTH].copy_from_slice(&[0x60, 0, 0, 0]);
    bytes[field::PAYLOAD_LENGTH..field::NEXT_HEADER].copy_from_slice(&payload);
    bytes[field::NEXT_HEADER] = ipv6::ICMP;
    bytes[field::HOP_LIMIT] = hop_limit;
    bytes[field::SOURCE..field::DESTINATION].copy_from_slice(&from.0.to_be_bytes());
    bytes[field::DESTINATION..AFTER6].copy_from_slice(&to.0.to_be_bytes());
    bytes[AFTER6 + 2..AFTER6 + 4].fill(0);
    let check = checksum::finish(sum6(bytes, end));
    bytes[AFTER6 + 2..AFTER6 + 4].copy_from_slice(&check);
    end
}

/// Sum over message and pseudo header (RFC 8200 section 8.1).
fn sum6(bytes: &[u8], end: usize) -> u32 {
    let sum = checksum::add(0, &bytes[ipv6::field::SOURCE..end]);
    let sum = checksum::add(sum, &((end - AFTER6) as u32).to_be_bytes());
    checksum::add(sum, &[0, ipv6::ICMP])
}
