//! Packets that ICMP errors quote: by them an error belongs to a connection (RFC 5508
//! section 4, and pf.conf(5) under `keep state`).
//!
//! Quotes contain the IP header and at least eight bytes after it (RFC 792), enough to
//! identify a state. Not checked here: checksums, and whether the quoted sequence number is
//! within the window (RFC 5927).

use super::packet::{AT, Packet, bit, contents, contents6, protocol, transport};
use fwdlab_port::frame::{CAPACITY, Frame};
use std::ops::Range;

/// Bytes of an ICMP header.
const ICMP: usize = 8;
/// Bytes of TCP, UDP and ICMP that are always quoted.
const QUOTED: usize = 8;
/// Bytes of TCP up to its flags.
const TCP: usize = 14;

/// A packet that was quoted.
pub(super) struct Quoted {
    /// As far as it was, where a frame has it; with nothing before, and zeros behind.
    pub(super) frame: Frame,
    /// Only the fields that keys of states are made of are valid.
    pub(super) packet: Packet,
}

/// What differs between the families.
struct Family {
    version: u8,
    bit: u32,
    /// Bytes of the smallest header.
    header: usize,
    source: Range<usize>,
    destination: Range<usize>,
    contents: fn(&[u8; CAPACITY], usize) -> (u8, usize, usize),
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
    /// What an error quotes, if it is one, and a packet that can have a state: one which
    /// the error's receiver has sent, and no error itself.
    #[cold]
    #[inline(never)]
    pub(super) fn of(frame: &Frame, packet: Packet) -> Option<Quoted> {
        let family = if packet.is(bit::INET6) { INET6 } else { INET };
        let message = error(frame, &family)?;
        let quote = message.get(ICMP..)?;
        let mut quoted = Frame::new();
        quoted.buffer_mut().get_mut(AT..AT + quote.len())?.copy_from_slice(quote);
        quoted.set_len(AT + quote.len());
        let is_to_sender =
            quoted.buffer()[family.source.clone()] == frame.buffer()[family.destination.clone()];
        let packet = is_to_sender.then(|| read(&quoted, &family))??;
        Some(Quoted { frame: quoted, packet })
    }
}

/// The message of an error: destination unreachable, source quench, time exceeded,
/// parameter problem (RFC 792); and with packet too big those of RFC 4443.
fn error<'a>(frame: &'a Frame, family: &Family) -> Option<&'a [u8]> {
    let (protocol, at, end) = (family.contents)(frame.buffer(), frame.len());
    let message = frame.buffer().get(at..end)?;
    let is_error = match (family.version, protocol, message.first()?) {
        (4, protocol::ICMP, kind) => matches!(kind, 3 | 4 | 11 | 12),
        (6, protocol::ICMP6, kind) => matches!(kind, 1..=4),
        _ => false,
    };
    is_error.then_some(message)
}

/// As [`Packet::read`] does, but for TCP without its flags, which are rarely quoted.
fn read(quoted: &Frame, family: &Family) -> Option<Packet> {
    let bytes = quoted.buffer();
    let (protocol, at, end) = (family.contents)(bytes, quoted.len());
    let needed = match protocol {
        protocol::TCP | protocol::UDP | protocol::ICMP | protocol::ICMP6 => QUOTED,
        _ => 0,
    };
    let is_sound = bytes[AT] >> 4 == family.version && at >= AT + family.header;
    if !is_sound || end < at + needed {
        return None;
    }
    let end = if protocol == protocol::TCP { at + TCP } else { end };
    let (word, marks, _) = transport(bytes, protocol, at, end, family.bit);
    let packet = Packet::new(word, marks, 0, 0);
    packet.is(bit::TRACKABLE).then_some(packet)
}
