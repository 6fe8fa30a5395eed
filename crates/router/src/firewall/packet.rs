//! The parsed fields of a packet that rules and states use.
//!
//! Fragments are not reassembled: the first one contains the transport header, or the packet can't
//! be filtered (RFC 1858, RFC 3128, RFC 7112), and the later ones follow it (see
//! [`super::fragments`]). A packet whose headers are truncated, or which has more headers than are
//! read, is [`bit::UNREADABLE`].

use fwdlab_netio::frame::{CAPACITY, Frame};

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
    /// Its headers can't be read, so rules can't identify it.
    pub(in super::super) const UNREADABLE: u32 = 1 << 21;
    /// The first fragment of a packet: [`TRACKABLE`] and [`OPENS`] are hidden in the two bits
    /// above, so that it isn't treated as a whole packet.
    pub(in super::super) const FIRST: u32 = 1 << 22;
    /// A later fragment.
    pub(in super::super) const LATER: u32 = 1 << 23;
    /// Packets that are filtered one by one.
    pub(in super::super) const ODD: u32 = UNREADABLE | FIRST | LATER;
    /// TCP, but not SYN without ACK, or not known to be. First fragments hide two bits below.
    pub(in super::super) const WITHIN_TCP: u32 = 1 << 26;
    /// Bits that a first fragment hides, and the shift to their hidden position.
    pub(super) const HIDDEN: u32 = TRACKABLE | OPENS;
    pub(super) const HIDE: u32 = 5;
    /// All bits of UDP over IPv4.
    pub(in super::super) const UDP: u32 =
        (super::protocol::UDP as u32) << 8 | HAS_PORTS | TRACKABLE | OPENS;
}

/// A packet as the filter sees it: two words, so that it stays in registers. Its addresses stay in
/// the frame, and are read when needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Fields that are compared together: see [`bit`], and above it the marks, which distinguish
    /// flows between the same addresses. Marks are in packet byte order, the source's half lower:
    /// ports of source and destination; twice the identifier of ICMP queries; 0 for other packets,
    /// or if unknown.
    pub(super) word: u64,
    /// Bytes from the IP header on, and above them the TCP flags, or 0.
    pub(super) more: u32,
}

impl Packet {
    /// A packet with these bits, marks, TCP flags and bytes.
    #[inline(always)]
    pub(super) fn new(word: u32, marks: u32, flags: u8, bytes: u16) -> Packet {
        Packet {
            word: u64::from(word) | u64::from(marks) << 32,
            more: u32::from(bytes) | u32::from(flags) << 16,
        }
    }

    /// Parses a frame whose IP header has been validated. For other frames the result is
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

    /// Protocol, marks and [`Packet::more`] of UDP and TCP over IPv4 without options or
    /// fragmentation, which most packets are.
    #[inline(always)]
    pub(super) fn quick(bytes: &[u8; CAPACITY]) -> Option<(u8, u32, u32)> {
        let (first, second) = (word_at(bytes, 12), half_at(bytes, 20));
        // One comparison for all conditions.
        let odd = ((first & 0xff_ffff) ^ 0x45_0008) | u64::from(second & 0xff3f);
        let total = ((first >> 32) as u16).swap_bytes();
        let protocol = (second >> 24) as u8;
        if odd == 0 && protocol == protocol::UDP && total >= 28 {
            return Some((protocol::UDP, half_at(bytes, 34), u32::from(total)));
        }
        if odd == 0 && protocol == protocol::TCP && total >= 40 {
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

    /// True if one of these bits of the word is set.
    #[inline(always)]
    pub(super) fn is(&self, bits: u32) -> bool {
        self.word as u32 & bits != 0
    }

    /// The protocol after the last extension header.
    #[inline(always)]
    pub(super) fn protocol(&self) -> u8 {
        (self.word >> 8) as u8
    }

    /// Marks in packet byte order.
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

    /// Bytes from the IP header on.
    #[inline(always)]
    pub(super) fn bytes(&self) -> u16 {
        self.more as u16
    }

    /// A first fragment as if it were whole.
    pub(super) fn unhidden(&self) -> Packet {
        let hidden = self.word as u32 >> bit::HIDE & bit::HIDDEN;
        Packet { word: self.word | u64::from(hidden), more: self.more }
    }

    fn inet(bytes: &[u8; CAPACITY], length: usize) -> Packet {
        let (word, marks, flags) = transport(bytes, contents(bytes, length), 0);
        Packet::new(word, marks, flags, total(bytes))
    }

    fn inet6(bytes: &[u8; CAPACITY], length: usize) -> Packet {
        let (word, marks, flags) = transport(bytes, contents6(bytes, length), bit::INET6);
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

/// Eight bytes in packet order: little endian, which costs nothing on most machines.
#[inline(always)]
fn word_at(bytes: &[u8; CAPACITY], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |&word| u64::from_le_bytes(word))
}

#[inline(always)]
fn half_at(bytes: &[u8; CAPACITY], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |&half| u32::from_le_bytes(half))
}

/// The bits of TCP with these flags.
#[inline(always)]
pub(super) fn tcp_word(flags: u8) -> u32 {
    let opens = if flags & flag::RST == 0 { bit::OPENS } else { 0 };
    let opens_tcp = flags & (flag::SYN | flag::ACK) == flag::SYN;
    let opens_tcp = if opens_tcp { bit::OPENS_TCP } else { bit::WITHIN_TCP };
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

/// Fragmentation of a packet's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// The first fragment.
    First,
    /// A later fragment, with its offset in bytes.
    Later(u32),
    /// Headers that can't be read.
    Unreadable,
}

/// Contents of a packet after the IP header, options and extension headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contents {
    pub(super) protocol: u8,
    /// Offset in the frame at which they begin.
    pub(super) at: usize,
    /// Offset at which the fragmented part begins: in IPv6, extension headers may precede the
    /// contents.
    pub(super) cut: usize,
    /// End of the packet.
    pub(super) end: usize,
    pub(super) part: Part,
    /// More fragments follow.
    pub(super) more: bool,
    pub(super) id: u32,
}

impl Contents {
    /// Contents directly after an IPv6 header.
    #[inline(always)]
    fn whole(end: usize) -> Contents {
        let at = AT + 40;
        Contents { protocol: 0, at, cut: at, end, part: Part::Whole, more: false, id: 0 }
    }

    /// Bytes from the transport header on.
    pub(super) fn length(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// The transport header and what follows it in the frame's buffer, if it is there.
    pub(super) fn header<'a>(&self, bytes: &'a [u8; CAPACITY]) -> Option<&'a [u8]> {
        let there = matches!(self.part, Part::Whole | Part::First);
        if there { bytes.get(self.at..self.end.min(CAPACITY)) } else { None }
    }
}

/// Contents of an IPv4 packet, in a frame of `length` bytes.
#[inline(always)]
pub(super) fn contents(bytes: &[u8; CAPACITY], length: usize) -> Contents {
    let at = AT + usize::from(bytes[AT] & 15) * 4;
    let flags = u16::from_be_bytes([bytes[20], bytes[21]]);
    let more = flags & 0x2000 != 0;
    let part = match flags & 0x1fff {
        0 if more => Part::First,
        0 => Part::Whole,
        offset => Part::Later(u32::from(offset) * 8),
    };
    let end = length.min(AT + usize::from(total(bytes)));
    let id = u32::from(u16::from_be_bytes([bytes[18], bytes[19]]));
    Contents { protocol: bytes[23], at, cut: at, end, part, more, id }
}

/// Contents of an IPv6 packet.
#[inline(always)]
pub(super) fn contents6(bytes: &[u8; CAPACITY], length: usize) -> Contents {
    let end = length.min(AT + usize::from(total6(bytes)));
    match bytes[20] {
        protocol @ (protocol::TCP | protocol::UDP) => Contents { protocol, ..Contents::whole(end) },
        protocol => after_extensions(bytes, protocol, end),
    }
}

/// Bits, marks and flags from the transport header. Inlined, as a call costs each IPv6 packet about
/// thirty instructions.
#[inline(always)]
pub(super) fn transport(bytes: &[u8; CAPACITY], contents: Contents, family: u32) -> (u32, u32, u8) {
    let protocol = contents.protocol;
    let (mut word, mut marks, mut flags) = (bit::UNREADABLE, 0, 0);
    match (protocol, contents.header(bytes)) {
        (protocol::UDP, Some(&[a, b, c, d, _, _, _, _, ..])) => {
            marks = u32::from_le_bytes([a, b, c, d]);
            word = bit::UDP;
        }
        (protocol::TCP, Some(header @ &[a, b, c, d, _, _, _, _, _, _, _, _, words, tcp, ..]))
            if is_whole_tcp(header.len(), words, contents.part) =>
        {
            marks = u32::from_le_bytes([a, b, c, d]);
            flags = tcp;
            word = tcp_word(tcp);
        }
        (protocol::ICMP | protocol::ICMP6, Some(&[kind, _, _, _, a, b, _, _, ..])) => {
            (word, marks) = query(protocol, family, kind, [a, b]);
        }
        (protocol::TCP | protocol::UDP | protocol::ICMP | protocol::ICMP6, Some(_)) => {}
        (_, Some(_)) => word = bit::TRACKABLE | bit::OPENS,
        (protocol::TCP, None) if matches!(contents.part, Part::Later(_)) => {
            word = bit::LATER | bit::WITHIN_TCP;
        }
        (_, None) if matches!(contents.part, Part::Later(_)) => word = bit::LATER,
        (_, None) => {}
    }
    if contents.part == Part::First && word & bit::UNREADABLE == 0 {
        word = bit::FIRST | word & !bit::HIDDEN | (word & bit::HIDDEN) << bit::HIDE;
    }
    (word | family | u32::from(protocol) << 8, marks, flags)
}

/// True if a TCP header has its minimum length, and in a first fragment the length it states: flags
/// and options must be within the fragment for rules that need them (RFC 3128).
#[inline(always)]
fn is_whole_tcp(length: usize, words: u8, part: Part) -> bool {
    length >= 20 && (part == Part::Whole || length >= usize::from(words >> 4) * 4)
}

/// Skips extension headers (RFC 8200 section 4) and authentication (RFC 4302). All of them must be
/// in the packet, or in its first fragment (RFC 7112).
fn after_extensions(bytes: &[u8; CAPACITY], protocol: u8, end: usize) -> Contents {
    let mut contents = Contents { protocol, ..Contents::whole(end) };
    for _ in 0..=EXTENSIONS_MAX {
        if !matches!(contents.protocol, 0 | 43 | 44 | 51 | 60) {
            return contents;
        }
        let there = bytes.get(contents.at..end.min(CAPACITY));
        let header = there.and_then(|header| header.first_chunk());
        let Some(&[next, words, high, low, a, b, c, d]) = header else { break };
        let words = usize::from(words);
        let was = contents.protocol;
        contents.protocol = next;
        contents.at += match was {
            // A second fragment header is invalid.
            44 if contents.part != Part::Whole => break,
            44 => {
                let field = u16::from_be_bytes([high, low]);
                contents.cut = contents.at + 8;
                contents.more = field & 1 != 0;
                contents.id = u32::from_be_bytes([a, b, c, d]);
                contents.part = match (field & 0xfff8, contents.more) {
                    (0, true) => Part::First,
                    // An atomic fragment: treated as a whole packet (RFC 6946).
                    (0, false) => Part::Whole,
                    (offset, _) => Part::Later(u32::from(offset)),
                };
                8
            }
            51 => (words + 2) * 4,
            _ => (words + 1) * 8,
        };
        if matches!(contents.part, Part::Later(_)) {
            return contents;
        }
    }
    Contents { part: Part::Unreadable, ..contents }
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
