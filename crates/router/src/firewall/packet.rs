//! The parsed fields of a packet that rules and states use.
//!
//! Non-initial fragments have no transport header, so no ports: rules with ports don't
//! match them, and they belong to no state. The same applies to truncated headers.
//! Fragments are not reassembled.

use fwdlab_port::frame::{CAPACITY, Frame};

/// Offset of the IP header in a frame.
pub(super) const AT: usize = 14;
/// Maximum number of IPv6 extension headers that are skipped.
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

/// Bits of [`Packet::word`], from the lowest.
pub(super) mod bit {
    /// The router's port at which the packet is filtered; 0 until then.
    pub(in super::super) const PORT: u32 = 0xff;
    /// Protocol number.
    pub(in super::super) const PROTOCOL: u32 = 0xff << 8;
    /// IPv6.
    pub(in super::super) const INET6: u32 = 1 << 16;
    /// TCP or UDP, and the ports are present.
    pub(in super::super) const HAS_PORTS: u32 = 1 << 17;
    /// TCP: SYN without ACK.
    pub(in super::super) const OPENS_TCP: u32 = 1 << 18;
    /// Has ports or an ICMP identifier, so connection tracking applies.
    pub(in super::super) const TRACKABLE: u32 = 1 << 19;
    /// May create a state: not a TCP reset or an ICMP reply.
    pub(in super::super) const OPENS: u32 = 1 << 20;
    /// All that holds for UDP over IPv4.
    pub(in super::super) const UDP: u32 =
        (super::protocol::UDP as u32) << 8 | HAS_PORTS | TRACKABLE | OPENS;
}

/// A packet as it is judged: two words, so that it stays in registers. Its addresses stay
/// in the frame, where they are read when needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// What is compared in one go: see [`bit`], and above it the marks, which tell flows
    /// between the same addresses apart. They are as they lie in the packet, the
    /// source's half lower: ports of source and destination; twice the identifier of
    /// ICMP queries; 0 of others, or unknown.
    pub(super) word: u64,
    /// Bytes from the IP header on, and above them flags of TCP, otherwise 0.
    pub(super) more: u32,
}

impl Packet {
    /// A packet of these bits, marks, flags of TCP and bytes.
    #[inline(always)]
    pub(super) fn new(word: u32, marks: u32, flags: u8, bytes: u16) -> Packet {
        Packet {
            word: u64::from(word) | u64::from(marks) << 32,
            more: u32::from(bytes) | u32::from(flags) << 16,
        }
    }

    /// Parses a frame whose IP header has been validated; otherwise the result is
    /// unspecified.
    #[inline(always)]
    pub(super) fn read(frame: &Frame) -> Packet {
        let bytes = frame.buffer();
        match Packet::quick(bytes) {
            Some((protocol::UDP, marks, more)) => {
                Packet { word: u64::from(bit::UDP) | u64::from(marks) << 32, more }
            }
            Some((_, marks, more)) => {
                let word = tcp_word((more >> 16) as u8);
                Packet { word: u64::from(word) | u64::from(marks) << 32, more }
            }
            None => Packet::read_any(frame),
        }
    }

    /// Protocol, marks and [`Packet::more`] of UDP and TCP over IPv4 without options, and
    /// no later fragment: that is what most packets are.
    #[inline(always)]
    pub(super) fn quick(bytes: &[u8; CAPACITY]) -> Option<(u8, u32, u32)> {
        let (first, second) = (word_at(bytes, 12), half_at(bytes, 20));
        // One comparison for all.
        let odd = ((first & 0xff_ffff) ^ 0x45_0008) | u64::from(second & 0xff1f);
        let total = ((first >> 32) as u16).swap_bytes();
        let protocol = (second >> 24) as u8;
        if odd == 0 && protocol == protocol::UDP && total >= 24 {
            return Some((protocol::UDP, half_at(bytes, 34), u32::from(total)));
        }
        if odd == 0 && protocol == protocol::TCP && total >= 34 {
            let more = u32::from(total) | u32::from(bytes[47]) << 16;
            return Some((protocol::TCP, half_at(bytes, 34), more));
        }
        None
    }

    #[inline(never)]
    fn read_any(frame: &Frame) -> Packet {
        let bytes = frame.buffer();
        if bytes[12..14] == [0x86, 0xdd] {
            Packet::inet6(bytes, frame.len())
        } else {
            Packet::inet(bytes, frame.len())
        }
    }

    /// True of these bits of the word.
    #[inline(always)]
    pub(super) fn is(&self, bits: u32) -> bool {
        self.word as u32 & bits != 0
    }

    /// The protocol after the last extension header.
    #[inline(always)]
    pub(super) fn protocol(&self) -> u8 {
        (self.word >> 8) as u8
    }

    /// As they lie in the packet.
    #[inline(always)]
    pub(super) fn marks(&self) -> u32 {
        (self.word >> 32) as u32
    }

    /// TCP flags.
    #[inline(always)]
    pub(super) fn flags(&self) -> u8 {
        (self.more >> 16) as u8
    }

    /// TCP with SYN, FIN or RST.
    #[inline(always)]
    pub(super) fn may_change_phase(&self) -> bool {
        may_change_phase(self.more)
    }

    /// From the IP header on.
    #[inline(always)]
    pub(super) fn bytes(&self) -> u16 {
        self.more as u16
    }

    fn inet(bytes: &[u8; CAPACITY], length: usize) -> Packet {
        let (protocol, at, end) = contents(bytes, length);
        let (word, marks, flags) = transport(bytes, protocol, at, end, 0);
        Packet::new(word, marks, flags, total(bytes))
    }

    fn inet6(bytes: &[u8; CAPACITY], length: usize) -> Packet {
        let (protocol, at, end) = contents6(bytes, length);
        let (word, marks, flags) = transport(bytes, protocol, at, end, bit::INET6);
        Packet::new(word, marks, flags, total6(bytes))
    }
}

/// [`Packet::more`] of TCP with SYN, FIN or RST.
#[inline(always)]
pub(super) fn may_change_phase(more: u32) -> bool {
    more >> 16 & u32::from(flag::SYN | flag::FIN | flag::RST) != 0
}

/// Source and destination of an IPv4 packet, the source in the lower half.
#[inline(always)]
pub(super) fn ends(bytes: &[u8; CAPACITY]) -> u64 {
    word_at(bytes, 26)
}

/// Source and destination of an IPv6 packet, two words each.
#[inline(always)]
pub(super) fn ends6(bytes: &[u8; CAPACITY]) -> [u64; 4] {
    [22, 30, 38, 46].map(|at| word_at(bytes, at))
}

/// Eight bytes as they lie: little endian, which costs nothing on most machines.
#[inline(always)]
fn word_at(bytes: &[u8; CAPACITY], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |&word| u64::from_le_bytes(word))
}

#[inline(always)]
fn half_at(bytes: &[u8; CAPACITY], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |&half| u32::from_le_bytes(half))
}

#[inline(always)]
fn tcp_word(flags: u8) -> u32 {
    let opens = if flags & flag::RST == 0 { bit::OPENS } else { 0 };
    let opens_tcp = flags & (flag::SYN | flag::ACK) == flag::SYN;
    let opens_tcp = if opens_tcp { bit::OPENS_TCP } else { 0 };
    u32::from(protocol::TCP) << 8 | bit::HAS_PORTS | bit::TRACKABLE | opens | opens_tcp
}

/// Bytes of an IPv4 packet.
#[inline(always)]
fn total(bytes: &[u8; CAPACITY]) -> u16 {
    u16::from_be_bytes([bytes[16], bytes[17]])
}

/// Bytes of an IPv6 packet.
#[inline(always)]
fn total6(bytes: &[u8; CAPACITY]) -> u16 {
    u16::from_be_bytes([bytes[18], bytes[19]]).saturating_add(40)
}

/// What an IPv4 packet carries, in a frame of `length` bytes: the protocol, where its
/// header begins, and where the packet ends. That is before the beginning where there is
/// no such header.
#[inline(always)]
pub(super) fn contents(bytes: &[u8; CAPACITY], length: usize) -> (u8, usize, usize) {
    let header = usize::from(bytes[AT] & 15) * 4;
    let later = u16::from_be_bytes([bytes[20], bytes[21]]) & 0x1fff != 0;
    let end = if later { 0 } else { length.min(AT + usize::from(total(bytes))) };
    (bytes[23], AT + header, end)
}

/// Likewise of an IPv6 packet, behind its extension headers.
#[inline(always)]
pub(super) fn contents6(bytes: &[u8; CAPACITY], length: usize) -> (u8, usize, usize) {
    let end = length.min(AT + usize::from(total6(bytes)));
    let (protocol, at) = match bytes[20] {
        protocol @ (protocol::TCP | protocol::UDP) => (protocol, AT + 40),
        protocol => after_extensions(bytes, protocol, end),
    };
    (protocol, at, end)
}

/// Bits, marks and flags from the transport header at `at`, as far as `end`; where it
/// isn't whole there, or there is none, only the protocol is known. Inlined, as a call costs
/// each IPv6 packet some thirty instructions.
#[inline(always)]
pub(super) fn transport(
    bytes: &[u8; CAPACITY],
    protocol: u8,
    at: usize,
    end: usize,
    family: u32,
) -> (u32, u32, u8) {
    let header = bytes.get(at..end);
    let (mut word, mut marks, mut flags) = (0, 0, 0);
    match (protocol, header) {
        (protocol::UDP, Some(&[a, b, c, d, ..])) => {
            marks = u32::from_le_bytes([a, b, c, d]);
            word = bit::UDP;
        }
        (protocol::TCP, Some(&[a, b, c, d, _, _, _, _, _, _, _, _, _, tcp, ..])) => {
            marks = u32::from_le_bytes([a, b, c, d]);
            flags = tcp;
            word = tcp_word(tcp);
        }
        (protocol::UDP | protocol::TCP, _) => {}
        (protocol::ICMP | protocol::ICMP6, header) => {
            if let Some(&[kind, _, _, _, a, b, ..]) = header {
                (word, marks) = query(protocol, family, kind, [a, b]);
            }
        }
        (_, None) => {}
        (_, Some(_)) => word = bit::TRACKABLE | bit::OPENS,
    }
    (word | family | u32::from(protocol) << 8, marks, flags)
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
fn query(protocol: u8, family: u32, kind: u8, [a, b]: [u8; 2]) -> (u32, u32) {
    let (request, reply) = match (protocol, family) {
        (protocol::ICMP, 0) => (matches!(kind, 8 | 13), matches!(kind, 0 | 14)),
        (protocol::ICMP6, bit::INET6) => (kind == 128, kind == 129),
        _ => (false, false),
    };
    let word = match (request, reply) {
        (true, _) => bit::TRACKABLE | bit::OPENS,
        (_, true) => bit::TRACKABLE,
        _ => return (0, 0),
    };
    (word, u32::from_le_bytes([a, b, a, b]))
}
