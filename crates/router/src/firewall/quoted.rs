//! Packets that ICMP errors quote: the quote assigns an error to a connection (RFC 5508 section 4,
//! and pf.conf(5) under `keep state`).
//!
//! Quotes contain the IP header and at least eight bytes after it (RFC 792), enough to identify a
//! state, and of TCP the sequence number, which must be one that its sender may have had in flight
//! (RFC 5927 section 4.1): see [`super::states`]. An error with a wrong checksum, or a fragmented
//! one, which can't be verified, is ignored.

use super::packet::{
    AT, Contents, Packet, Part, bit, contents, contents6, protocol, tcp_word, transport,
};
use super::states::sums_up;
use fwdlab_netio::frame::{CAPACITY, Frame};
use std::ops::Range;

/// Bytes of an ICMP header.
const ICMP: usize = 8;
/// Minimum bytes of TCP, UDP and ICMP in a quote.
const QUOTED: usize = 8;

/// A quoted packet.
pub(super) struct Quoted {
    /// The quoted part of the packet, at its offset in a frame, with an empty Ethernet header and
    /// zeros after it.
    pub(super) frame: Frame,
    /// Only the fields that make up keys of states are valid.
    pub(super) packet: Packet,
    /// Sequence number of TCP.
    pub(super) sequence: u32,
}

/// Differences between the families.
struct Family {
    version: u8,
    bit: u32,
    /// Bytes of the smallest header.
    header: usize,
    source: Range<usize>,
    destination: Range<usize>,
    contents: fn(&[u8; CAPACITY], usize) -> Contents,
}

const INET: Family =
    Family { version: 4, bit: 0, header: 20, source: 26..30, destination: 30..34, contents };
const INET6: Family = Family {
    version: 6,
    bit: bit::INET6,
    header: 40,
    source: 22..38,
    destination: 38..54,
    contents: contents6,
};

impl Quoted {
    /// Returns the packet that an error quotes; `None` if this is not an error, or the quoted
    /// packet can't have a state: it must have been sent by the error's receiver, and must not be
    /// an error itself.
    #[cold]
    #[inline(never)]
    pub(super) fn of(frame: &Frame, packet: Packet) -> Option<Quoted> {
        let family = if packet.is(bit::INET6) { INET6 } else { INET };
        let message = error(frame, &family)?;
        if sums_up(frame, packet) != Some(true) {
            return None;
        }
        let quote = message.get(ICMP..)?;
        let mut quoted = Frame::new();
        quoted.buffer_mut().get_mut(AT..AT + quote.len())?.copy_from_slice(quote);
        quoted.set_len(AT + quote.len());
        let is_to_sender =
            quoted.buffer()[family.source.clone()] == frame.buffer()[family.destination.clone()];
        let (packet, sequence) = is_to_sender.then(|| read(&quoted, &family))??;
        Some(Quoted { frame: quoted, packet, sequence })
    }
}

/// Message of an error: destination unreachable, source quench, time exceeded, parameter problem
/// (RFC 792); or those of RFC 4443, including packet too big.
fn error<'a>(frame: &'a Frame, family: &Family) -> Option<&'a [u8]> {
    let contents = (family.contents)(frame.buffer(), frame.len());
    let (protocol, message) = (contents.protocol, contents.header(frame.buffer())?);
    let is_error = match (family.version, protocol, message.first()?) {
        (4, protocol::ICMP, kind) => matches!(kind, 3 | 4 | 11 | 12),
        (6, protocol::ICMP6, kind) => matches!(kind, 1..=4),
        _ => false,
    };
    is_error.then_some(message)
}

/// As [`Packet::read`], but for TCP without its flags, which are rarely quoted, and with its
/// sequence number.
fn read(quoted: &Frame, family: &Family) -> Option<(Packet, u32)> {
    let bytes = quoted.buffer();
    let contents = (family.contents)(bytes, quoted.len());
    let header = contents.header(bytes)?;
    let needed = match contents.protocol {
        protocol::TCP | protocol::UDP | protocol::ICMP | protocol::ICMP6 => QUOTED,
        _ => 0,
    };
    let is_sound = bytes[AT] >> 4 == family.version && contents.at >= AT + family.header;
    if !is_sound || header.len() < needed {
        return None;
    }
    if contents.protocol == protocol::TCP
        && let Some(&[a, b, c, d, sequence @ ..]) = header.first_chunk::<8>()
    {
        let sequence = u32::from_be_bytes(sequence);
        let marks = u32::from_le_bytes([a, b, c, d]);
        return Some((Packet::new(tcp_word(0) | family.bit, marks, 0, 0), sequence));
    }
    // The first of several fragments identifies a connection as well as a whole packet.
    let (word, marks, _) = transport(bytes, Contents { part: Part::Whole, ..contents }, family.bit);
    let packet = Packet::new(word, marks, 0, 0);
    packet.is(bit::TRACKABLE).then_some((packet, 0))
}
