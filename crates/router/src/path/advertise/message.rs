//! The messages: parses solicitations and writes advertisements (RFC 4861 sections 4.1 and 4.2).

use super::{Advertisement, own};
use crate::path::interface::Interface;
use crate::path::slow::{end6, icmp};
use crate::path::{ethernet, ipv6};
use fwdlab_netio::frame::Frame;

/// Offset of the message in a frame.
const MESSAGE: usize = ethernet::HEADER + ipv6::HEADER;
/// Bytes of a solicitation and of an advertisement without options.
const SOLICITATION: usize = 8;
const ADVERTISEMENT: usize = 16;
/// ICMPv6 types.
const SOLICITS: u8 = 133;
const ADVERTISES: u8 = 134;
/// Options: MAC of the sender, a prefix, the MTU.
const SOURCE_MAC: u8 = 1;
const PREFIX: u8 = 3;
const MTU: u8 = 5;
/// The MAC of all nodes of a link (RFC 2464 section 7).
const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
/// Hop limit that advertisements recommend to hosts (IANA's current number, RFC 1700).
const HOP_LIMIT: u8 = 64;

/// True if the frame's type is a solicitation.
pub(super) fn is_solicitation(frame: &Frame) -> bool {
    let bytes = frame.buffer();
    frame.len() >= MESSAGE + SOLICITATION
        && bytes[ipv6::field::NEXT_HEADER] == ipv6::ICMP
        && bytes[MESSAGE] == SOLICITS
}

/// True for a valid solicitation (section 6.1.1).
pub(super) fn is_sound(frame: &Frame) -> bool {
    let bytes = frame.buffer();
    let end = end6(frame);
    let Some(mut options) = bytes.get(MESSAGE + SOLICITATION..end) else { return false };
    let has_no_source = bytes[ipv6::field::SOURCE..ipv6::field::DESTINATION] == [0; 16];
    while let [kind, words, ..] = *options {
        let length = 8 * usize::from(words);
        if length == 0 || length > options.len() || has_no_source && kind == SOURCE_MAC {
            return false;
        }
        options = &options[length..];
    }
    options.is_empty()
        && bytes[ipv6::field::HOP_LIMIT] == 255
        && bytes[MESSAGE + 1] == 0
        && icmp::is_sound6(frame)
}

/// Returns the bytes of the IPv6 packet of an advertisement.
pub(super) fn packet_len(advertisement: &Advertisement) -> usize {
    ipv6::HEADER + message([0; 6], u16::MAX, advertisement).len()
}

/// Writes the advertisement of an interface; `None` if it has no address to send from.
pub(super) fn write(
    port: u8,
    interface: &Interface,
    advertisement: &Advertisement,
) -> Option<Frame> {
    let own = own(interface)?;
    let message = message(interface.mac, interface.mtu, advertisement);
    let mut frame = Frame::of(port, &[0; MESSAGE]).ok()?;
    let bytes = frame.buffer_mut();
    bytes[..6].copy_from_slice(&ALL_NODES_MAC);
    bytes[6..12].copy_from_slice(&interface.mac);
    bytes[12..14].copy_from_slice(&ethernet::IPV6.to_be_bytes());
    let end = MESSAGE + message.len();
    bytes.get_mut(MESSAGE..end)?.copy_from_slice(&message);
    icmp::finish6(bytes, own, ipv6::ALL_NODES, 255, end);
    frame.set_len(end);
    frame.send_to(port);
    Some(frame)
}

/// Returns the ICMPv6 message without checksum.
fn message(mac: [u8; 6], mtu: u16, advertisement: &Advertisement) -> Vec<u8> {
    let mut message = vec![0; ADVERTISEMENT];
    let (managed, other) = advertisement.flags;
    // Without a lifetime there is no preference (RFC 4191 section 2.2).
    let preference = match advertisement.lifetime {
        0 => 0,
        _ => advertisement.preference.flags(),
    };
    message[0] = ADVERTISES;
    message[4] = HOP_LIMIT;
    message[5] = u8::from(managed) << 7 | u8::from(other) << 6 | preference;
    message[6..8].copy_from_slice(&advertisement.lifetime.to_be_bytes());
    message.extend([SOURCE_MAC, 1]);
    message.extend(mac);
    if advertisement.tells_mtu {
        message.extend([MTU, 1, 0, 0]);
        message.extend(u32::from(mtu).to_be_bytes());
    }
    for &(prefix, length) in &advertisement.prefixes {
        // On-link; with 64 bits each host adds its own bits (RFC 4862 section 5.5.3).
        let flags = 0x80 | if length == 64 { 0x40 } else { 0 };
        message.extend([PREFIX, 4, length, flags]);
        message.extend(advertisement.valid.to_be_bytes());
        message.extend(advertisement.preferred.to_be_bytes());
        message.extend([0; 4]);
        message.extend(prefix.0.to_be_bytes());
    }
    for option in &advertisement.options {
        option.write(advertisement.options_lifetime, &mut message);
    }
    message
}
