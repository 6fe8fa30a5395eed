//! What rules and states want to know of a packet.
//!
//! Later fragments have no transport header, so no ports: rules that ask for ports
//! don't match them, and they belong to no state. The same holds where the header
//! is cut off. Fragments are not put together.

use crate::fib::{V4, V6};
use fwdlab_packet::Family;
use fwdlab_port::frame::{CAPACITY, Frame};

/// Offset of the IP header in a frame.
const AT: usize = 14;
/// Extension headers of IPv6 that are stepped over.
const EXTENSIONS_MAX: usize = 8;

/// Protocol numbers (IANA).
pub(super) mod protocol {
    /// ICMP
    pub(in super::super) const ICMP: u8 = 1;
    /// TCP
    pub(in super::super) const TCP: u8 = 6;
    /// UDP
    pub(in super::super) const UDP: u8 = 17;
    /// ICMPv6
    pub(in super::super) const ICMP6: u8 = 58;
}

/// Bits of the TCP header (RFC 9293 section 3.1).
pub(super) mod flag {
    pub(in super::super) const FIN: u8 = 1;
    pub(in super::super) const SYN: u8 = 2;
    pub(in super::super) const RST: u8 = 4;
    pub(in super::super) const ACK: u8 = 16;
}

/// Source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Of an IPv4 packet.
    Inet([V4; 2]),
    /// Of an IPv6 packet.
    Inet6([V6; 2]),
}

/// A packet as it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source and destination.
    pub ends: Ends,
    /// The protocol after the last extension header.
    pub protocol: u8,
    /// What tells flows between the same addresses apart: ports of source and
    /// destination; twice the identifier of ICMP queries; 0 of other protocols.
    /// `None` where that can't be known, so no state is possible.
    pub marks: Option<[u16; 2]>,
    /// Flags of TCP, otherwise 0.
    pub flags: u8,
    /// A state may begin with this packet: not with a reset or an ICMP answer.
    pub opens: bool,
    /// Bytes from the IP header on.
    pub bytes: u16,
}

impl Packet {
    /// Nothing.
    pub(super) const EMPTY: Packet = Packet {
        ends: Ends::Inet([V4(0); 2]),
        protocol: 0,
        marks: None,
        flags: 0,
        opens: false,
        bytes: 0,
    };

    /// Reads a frame whose IP header has been checked; of others it makes something
    /// or other.
    #[inline(always)]
    pub fn read(frame: &Frame) -> Packet {
        let bytes = frame.buffer();
        if bytes[12..14] == [0x86, 0xdd] {
            inet6(bytes, frame.len())
        } else {
            inet(bytes, frame.len())
        }
    }

    /// The family.
    #[inline(always)]
    pub fn family(&self) -> Family {
        match self.ends {
            Ends::Inet(_) => Family::Inet,
            Ends::Inet6(_) => Family::Inet6,
        }
    }

    /// Ports of source and destination, of TCP and UDP.
    #[inline(always)]
    pub fn ports(&self) -> Option<[u16; 2]> {
        self.marks.filter(|_| matches!(self.protocol, protocol::TCP | protocol::UDP))
    }

    /// The first packet of a TCP connection: SYN without ACK.
    #[inline(always)]
    pub fn opens_tcp(&self) -> bool {
        self.flags & (flag::SYN | flag::ACK) == flag::SYN
    }
}

#[inline(always)]
fn inet(bytes: &[u8; CAPACITY], length: usize) -> Packet {
    let total = u16::from_be_bytes([bytes[16], bytes[17]]);
    let address = |at: usize| {
        V4(u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
    };
    let later = u16::from_be_bytes([bytes[20], bytes[21]]) & 0x1fff != 0;
    let packet = Packet {
        ends: Ends::Inet([address(26), address(30)]),
        protocol: bytes[23],
        bytes: total,
        ..Packet::EMPTY
    };
    if later {
        return packet;
    }
    let header = usize::from(bytes[AT] & 15) * 4;
    with_transport(packet, bytes, AT + header, length.min(AT + usize::from(total)))
}

#[inline(always)]
fn inet6(bytes: &[u8; CAPACITY], length: usize) -> Packet {
    let total = u16::from_be_bytes([bytes[18], bytes[19]]).saturating_add(40);
    let address = |at: usize| {
        let mut address = [0; 16];
        address.copy_from_slice(&bytes[at..at + 16]);
        V6(u128::from_be_bytes(address))
    };
    let ends = Ends::Inet6([address(22), address(38)]);
    let packet = Packet { ends, protocol: bytes[20], bytes: total, ..Packet::EMPTY };
    let end = length.min(AT + usize::from(total));
    match packet.protocol {
        protocol::TCP | protocol::UDP => with_transport(packet, bytes, AT + 40, end),
        _ => after_extensions(packet, bytes, end),
    }
}

/// Steps over extension headers (RFC 8200 section 4) and authentication (RFC 4302).
fn after_extensions(mut packet: Packet, bytes: &[u8; CAPACITY], end: usize) -> Packet {
    let mut at = AT + 40;
    for _ in 0..EXTENSIONS_MAX {
        if !matches!(packet.protocol, 0 | 43 | 44 | 51 | 60) {
            return with_transport(packet, bytes, at, end);
        }
        let Some(header) = bytes[..end].get(at..at + 8) else { return packet };
        let later = u16::from_be_bytes([header[2], header[3]]) & 0xfff8 != 0;
        let words = usize::from(header[1]);
        let (was, next) = (packet.protocol, header[0]);
        packet.protocol = next;
        at += match was {
            44 if later => return packet,
            44 => 8,
            51 => (words + 2) * 4,
            _ => (words + 1) * 8,
        };
    }
    packet
}

/// Reads on in the transport header at `at`, as far as `end`.
#[inline(always)]
fn with_transport(mut packet: Packet, bytes: &[u8; CAPACITY], at: usize, end: usize) -> Packet {
    let Some(header) = bytes.get(at..end) else { return packet };
    match (packet.protocol, header) {
        (protocol::UDP, &[a, b, c, d, ..]) => {
            packet.marks = Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            packet.opens = true;
        }
        (protocol::TCP, &[a, b, c, d, _, _, _, _, _, _, _, _, _, flags, ..]) => {
            packet.marks = Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            packet.flags = flags;
            packet.opens = flags & flag::RST == 0;
        }
        (protocol::UDP | protocol::TCP, _) => {}
        (protocol::ICMP, &[kind, _, _, _, a, b, ..]) if packet.family() == Family::Inet => {
            // Echo, timestamp (RFC 792): request and reply.
            query(&mut packet, matches!(kind, 8 | 13), matches!(kind, 0 | 14), [a, b]);
        }
        (protocol::ICMP6, &[kind, _, _, _, a, b, ..]) if packet.family() == Family::Inet6 => {
            query(&mut packet, kind == 128, kind == 129, [a, b]);
        }
        (protocol::ICMP | protocol::ICMP6, _) => {}
        _ => {
            packet.marks = Some([0; 2]);
            packet.opens = true;
        }
    }
    packet
}

fn query(packet: &mut Packet, request: bool, reply: bool, identifier: [u8; 2]) {
    if request || reply {
        packet.marks = Some([u16::from_be_bytes(identifier); 2]);
        packet.opens = request;
    }
}
