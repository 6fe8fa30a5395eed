//! What rules and states want to know of a packet.
//!
//! Later fragments have no transport header, so no ports: rules that ask for ports
//! don't match them, and they belong to no state. The same holds where the header
//! is cut off. Fragments are not put together.

use crate::fib::{V4, V6};
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
pub(super) enum Ends {
    /// Of an IPv4 packet.
    Inet([V4; 2]),
    /// Of an IPv6 packet.
    Inet6([V6; 2]),
}

/// Bits of [`Packet::word`], from the lowest.
pub(super) mod bit {
    /// The router's port where the packet is judged; 0 until then.
    pub(in super::super) const PORT: u32 = 0xff;
    /// Protocol number.
    pub(in super::super) const PROTOCOL: u32 = 0xff << 8;
    /// IPv6.
    pub(in super::super) const INET6: u32 = 1 << 16;
    /// Of TCP or UDP, and the ports are known.
    pub(in super::super) const HAS_PORTS: u32 = 1 << 17;
    /// TCP: SYN without ACK.
    pub(in super::super) const OPENS_TCP: u32 = 1 << 18;
    /// It can belong to a state.
    pub(in super::super) const HAS_MARKS: u32 = 1 << 19;
    /// A state may begin with it: not with a reset or an ICMP answer.
    pub(in super::super) const OPENS: u32 = 1 << 20;
}

/// A packet as it is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Source and destination.
    pub(super) ends: Ends,
    /// What is compared in one go: see [`bit`].
    pub(super) word: u32,
    /// What tells flows between the same addresses apart: ports of source and
    /// destination; twice the identifier of ICMP queries; 0 of others, or unknown.
    pub(super) marks: [u16; 2],
    /// Bytes from the IP header on.
    pub(super) bytes: u16,
    /// The protocol after the last extension header.
    pub(super) protocol: u8,
    /// Flags of TCP, otherwise 0.
    pub(super) flags: u8,
}

impl Packet {
    /// Nothing.
    pub(super) const EMPTY: Packet = Packet {
        ends: Ends::Inet([V4(0); 2]),
        word: 0,
        marks: [0; 2],
        bytes: 0,
        protocol: 0,
        flags: 0,
    };

    /// Reads a frame whose IP header has been checked; of others it makes something
    /// or other. In place: a packet that is put together elsewhere and then copied
    /// waits for its own small writes.
    #[inline(always)]
    pub(super) fn read(&mut self, frame: &Frame) {
        let bytes = frame.buffer();
        if bytes[12..14] == [0x86, 0xdd] {
            self.inet6(bytes, frame.len());
        } else {
            self.inet(bytes, frame.len());
        }
    }

    /// True of these bits of the word.
    #[inline(always)]
    pub(super) fn is(&self, bits: u32) -> bool {
        self.word & bits != 0
    }

    #[inline(always)]
    fn inet(&mut self, bytes: &[u8; CAPACITY], length: usize) {
        let total = u16::from_be_bytes([bytes[16], bytes[17]]);
        let address = |at: usize| {
            V4(u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
        };
        self.ends = Ends::Inet([address(26), address(30)]);
        self.bytes = total;
        let header = usize::from(bytes[AT] & 15) * 4;
        let later = u16::from_be_bytes([bytes[20], bytes[21]]) & 0x1fff != 0;
        let end = if later { 0 } else { length.min(AT + usize::from(total)) };
        self.transport(bytes, bytes[23], AT + header, end, 0);
    }

    #[inline(always)]
    fn inet6(&mut self, bytes: &[u8; CAPACITY], length: usize) {
        let total = u16::from_be_bytes([bytes[18], bytes[19]]).saturating_add(40);
        let address = |at: usize| {
            let mut address = [0; 16];
            address.copy_from_slice(&bytes[at..at + 16]);
            V6(u128::from_be_bytes(address))
        };
        self.ends = Ends::Inet6([address(22), address(38)]);
        self.bytes = total;
        let end = length.min(AT + usize::from(total));
        let (protocol, at) = match bytes[20] {
            protocol @ (protocol::TCP | protocol::UDP) => (protocol, AT + 40),
            protocol => after_extensions(bytes, protocol, end),
        };
        self.transport(bytes, protocol, at, end, bit::INET6);
    }

    /// Reads on in the transport header at `at`, as far as `end`; where it isn't
    /// whole there, or there is none, only the protocol is known.
    #[inline(always)]
    fn transport(
        &mut self,
        bytes: &[u8; CAPACITY],
        protocol: u8,
        at: usize,
        end: usize,
        family: u32,
    ) {
        let header = bytes.get(at..end);
        let (mut word, mut marks, mut flags) = (0, [0; 2], 0);
        match (protocol, header) {
            (protocol::UDP, Some(&[a, b, c, d, ..])) => {
                marks = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
                word = bit::HAS_PORTS | bit::HAS_MARKS | bit::OPENS;
            }
            (protocol::TCP, Some(&[a, b, c, d, _, _, _, _, _, _, _, _, _, tcp, ..])) => {
                marks = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
                flags = tcp;
                word = bit::HAS_PORTS | bit::HAS_MARKS;
                word |= if tcp & flag::RST == 0 { bit::OPENS } else { 0 };
                word |= if tcp & (flag::SYN | flag::ACK) == flag::SYN { bit::OPENS_TCP } else { 0 };
            }
            (protocol::UDP | protocol::TCP, _) => {}
            (protocol::ICMP | protocol::ICMP6, header) => {
                if let Some(&[kind, _, _, _, a, b, ..]) = header {
                    (word, marks) = query(protocol, family, kind, [a, b]);
                }
            }
            (_, None) => {}
            (_, Some(_)) => word = bit::HAS_MARKS | bit::OPENS,
        }
        self.word = word | family | u32::from(protocol) << 8;
        (self.marks, self.flags, self.protocol) = (marks, flags, protocol);
    }
}

/// Steps over extension headers (RFC 8200 section 4) and authentication (RFC 4302):
/// the protocol, and where its header begins. That is beyond `end` where there is none.
fn after_extensions(bytes: &[u8; CAPACITY], mut protocol: u8, end: usize) -> (u8, usize) {
    let mut at = AT + 40;
    for _ in 0..EXTENSIONS_MAX {
        if !matches!(protocol, 0 | 43 | 44 | 51 | 60) {
            return (protocol, at);
        }
        let Some(header) = bytes[..end].get(at..at + 8) else { return (protocol, CAPACITY + 1) };
        let later = u16::from_be_bytes([header[2], header[3]]) & 0xfff8 != 0;
        let words = usize::from(header[1]);
        let was = protocol;
        protocol = header[0];
        at += match was {
            44 if later => return (protocol, CAPACITY + 1),
            44 => 8,
            51 => (words + 2) * 4,
            _ => (words + 1) * 8,
        };
    }
    (protocol, CAPACITY + 1)
}

/// Word and marks of ICMP: echo and timestamp (RFC 792), or echo (RFC 4443).
fn query(protocol: u8, family: u32, kind: u8, identifier: [u8; 2]) -> (u32, [u16; 2]) {
    let (request, reply) = match (protocol, family) {
        (protocol::ICMP, 0) => (matches!(kind, 8 | 13), matches!(kind, 0 | 14)),
        (protocol::ICMP6, bit::INET6) => (kind == 128, kind == 129),
        _ => (false, false),
    };
    let word = match (request, reply) {
        (true, _) => bit::HAS_MARKS | bit::OPENS,
        (_, true) => bit::HAS_MARKS,
        _ => return (0, [0; 2]),
    };
    (word, [u16::from_be_bytes(identifier); 2])
}
