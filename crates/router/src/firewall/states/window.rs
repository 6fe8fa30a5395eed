//! Windows of TCP connections: which segments belong to one, and which may end it.
//!
//! The bounds are those that firewalls have used since van Rooij, Real Stateful TCP Packet
//! Filtering in IP Filter (USENIX Security 2001): a segment lies between the last acknowledgement
//! of its receiver, less one window, and the end of the window that the receiver has offered; it
//! acknowledges only data that was sent. Window scaling follows RFC 7323. A connection picked up
//! mid-stream has windows of unknown scale, and gets the largest.
//!
//! A reset ends the state only if its sequence number is exactly the expected one (RFC 5961 section
//! 3.2): the last that its receiver has acknowledged, or the end of what its sender has sent.
//! Another one within the window passes, so that its receiver can send a challenge ACK, and changes
//! nothing; so does a SYN of the initiator (section 4.2). If the answer to such a SYN accepts it, its
//! sender had lost the old connection, and the state becomes the new connection's. A SYN of the
//! responder, and combinations of flags that TCP never sends, do not belong to the connection, as
//! with Linux's connection tracking.

use crate::firewall::packet::{Contents, Packet, Part, bit, contents, contents6, flag};
use fwdlab_netio::frame::Frame;
use fwdlab_packet::checksum;

/// Minimum distance by which a side may acknowledge below the end of what the other has sent: more
/// than the largest window without scaling.
const ACKNOWLEDGED_MIN: u32 = 66_000;
/// The largest scale (RFC 7323 section 2.3).
const SCALE_MAX: u32 = 14;

/// A TCP segment, reduced to the fields that windows need.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct TcpSegment {
    flags: u8,
    begin: u32,
    /// End of the segment; SYN and FIN count.
    end: u32,
    acknowledges: Option<u32>,
    /// Window field, unscaled.
    window: u32,
    /// Window scale option of a SYN.
    scale: Option<u32>,
}

/// Relation of a segment to the connection that its addresses and ports identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It belongs to the connection.
    Inside,
    /// It belongs to the connection, and ends it.
    Ends,
    /// It passes, and changes nothing.
    Aside,
    /// It begins a new connection with the same key.
    Anew,
    /// It does not belong to the connection.
    Outside,
}

/// Both sides of a connection, the initiator first. All zero if nothing is known.
#[derive(Debug)]
pub(super) struct Window<'a>(pub(super) &'a mut Words);

/// A window in its stored form: as allocations are zeroed, windows that no connection has used
/// occupy no memory.
pub(super) type Words = [u32; 9];

/// One side.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    /// End of the data that it has sent.
    sent: u32,
    /// End of the data that it may send.
    limit: u32,
    /// End of the other side's data that it has acknowledged, if `has_acked`.
    acked: u32,
    seen: bool,
    has_acked: bool,
    /// Its SYN had the window scale option.
    scales: bool,
    scale: u32,
    /// Largest window that it has offered, in bytes.
    window: u32,
}

/// Windows are rounded up to a multiple of this, which leaves room for flags.
const UNIT: u32 = 32;

impl Side {
    fn of([sent, limit, acked, word]: [u32; 4]) -> Side {
        let flag = |at: u32| word >> at & 1 != 0;
        let (scale, window) = (word >> 3 & 15, (word >> 7) * UNIT);
        let (seen, has_acked, scales) = (flag(0), flag(1), flag(2));
        Side { sent, limit, acked, seen, has_acked, scales, scale, window }
    }

    fn words(&self) -> [u32; 4] {
        let flags = u32::from(self.seen)
            | u32::from(self.has_acked) << 1
            | u32::from(self.scales) << 2
            | self.scale << 3;
        [self.sent, self.limit, self.acked, flags | self.window.div_ceil(UNIT) << 7]
    }
}

/// `a` is after `b`, in the modular order of sequence numbers.
fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

fn later(a: u32, b: u32) -> u32 {
    if after(a, b) { a } else { b }
}

impl TcpSegment {
    /// `None` if the header is malformed: its length is less than the minimum or exceeds the packet,
    /// or no stack sends its flags.
    pub(in crate::firewall) fn read(frame: &Frame, packet: Packet) -> Option<TcpSegment> {
        let bytes = frame.buffer();
        let contents = of(frame, packet);
        let header = contents.header(bytes)?;
        let length = usize::from(*header.get(12)? >> 4) * 4;
        if length < 20 || length > header.len() {
            return None;
        }
        let word =
            |at: usize| header[at..].first_chunk().map_or(0, |&bytes| u32::from_be_bytes(bytes));
        let flags = header[13];
        if !are_possible(flags) {
            return None;
        }
        let begin = word(4);
        let flag_octets = u32::from(flags & flag::SYN != 0) + u32::from(flags & flag::FIN != 0);
        let end = begin.wrapping_add((contents.length() - length) as u32 + flag_octets);
        let acknowledges = (flags & flag::ACK != 0).then(|| word(8));
        let window = word(14) >> 16;
        let scale = if flags & flag::SYN != 0 { scale(&header[20..length]) } else { None };
        Some(TcpSegment { flags, begin, end, acknowledges, window, scale })
    }

    fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// True for flags of TCP's segments: SYN, SYN+ACK, ACK, FIN+ACK, RST or RST+ACK, each with any other
/// flags. Scanners send others.
fn are_possible(flags: u8) -> bool {
    const RST_ACK: u8 = flag::RST | flag::ACK;
    const FIN_ACK: u8 = flag::FIN | flag::ACK;
    const SYN_ACK: u8 = flag::SYN | flag::ACK;
    matches!(
        flags & (flag::SYN | flag::FIN | flag::RST | flag::ACK),
        flag::SYN | SYN_ACK | flag::ACK | FIN_ACK | flag::RST | RST_ACK
    )
}

/// Value of the window scale option (RFC 7323 section 2.2).
fn scale(mut options: &[u8]) -> Option<u32> {
    while let [kind, rest @ ..] = options {
        options = match (kind, rest) {
            (0, _) => return None,
            (1, _) => rest,
            (3, [3, scale, ..]) => return Some(u32::from(*scale).min(SCALE_MAX)),
            (_, [length, ..]) => options.get(usize::from((*length).max(2))..)?,
            (_, []) => return None,
        };
    }
    None
}

fn of(frame: &Frame, packet: Packet) -> Contents {
    if packet.is(bit::INET6) {
        contents6(frame.buffer(), frame.len())
    } else {
        contents(frame.buffer(), frame.len())
    }
}

/// Returns true if the checksum of TCP or ICMP is right; `None` for a fragment, which can't be
/// verified.
pub(in crate::firewall) fn sums_up(frame: &Frame, packet: Packet) -> Option<bool> {
    use crate::firewall::packet::protocol::ICMP;
    let contents = of(frame, packet);
    let (bytes, protocol) = (frame.buffer(), contents.protocol);
    contents.header(bytes).filter(|_| contents.part == Part::Whole)?;
    let whole = frame.whole();
    let message = &whole[contents.at..contents.end];
    let mut sum = checksum::add(0, message);
    if protocol != ICMP {
        let ends = if packet.is(bit::INET6) { &bytes[22..54] } else { &bytes[26..34] };
        sum = checksum::add(sum, ends);
        sum = checksum::add(sum, &(message.len() as u32).to_be_bytes());
        sum = checksum::add(sum, &[0, protocol]);
    }
    Some(checksum::finish(sum) == [0, 0])
}

/// True for a TCP packet that would open or end a connection and has a wrong checksum, or, except
/// for FIN, one that can't be verified.
pub(super) fn lies(frame: &Frame, packet: Packet) -> bool {
    packet.may_change_phase()
        && match sums_up(frame, packet) {
            Some(sound) => !sound,
            None => packet.flags() & (flag::SYN | flag::RST) != 0,
        }
}

impl Window<'_> {
    fn sides(&self) -> [Side; 2] {
        let [a, b, c, d, e, f, g, h, _] = *self.0;
        [Side::of([a, b, c, d]), Side::of([e, f, g, h])]
    }

    fn set(&mut self, sides: [Side; 2]) {
        let ([a, b, c, d], [e, f, g, h]) = (sides[0].words(), sides[1].words());
        *self.0 = [a, b, c, d, e, f, g, h, self.0[8]];
    }

    /// Records the first segment of a connection.
    pub(super) fn begin(&mut self, segment: &TcpSegment) {
        let mut sides = [Side::default(); 2];
        let one = &mut sides[0];
        (one.seen, one.sent, one.limit) = (true, segment.end, segment.end);
        if segment.is(flag::SYN) && segment.acknowledges.is_none() {
            one.window = segment.window;
            one.scales = segment.scale.is_some();
            one.scale = segment.scale.unwrap_or(0);
        } else {
            sides.iter_mut().for_each(|side| side.scale = SCALE_MAX);
            let window = segment.window << SCALE_MAX;
            let largest = u32::from(u16::MAX) << SCALE_MAX;
            (sides[0].window, sides[0].limit) = (window, segment.end.wrapping_add(largest));
            if let Some(acked) = segment.acknowledges {
                (sides[0].acked, sides[0].has_acked) = (acked, true);
                let limit = acked.wrapping_add(window);
                sides[1] = Side { seen: true, sent: acked, limit, window: largest, ..sides[1] };
            }
        }
        self.0[8] = 0;
        self.set(sides);
    }

    /// Classifies a further segment, and records it.
    pub(super) fn go_on(&mut self, segment: &TcpSegment, reply: bool) -> Fit {
        let mut sides = self.sides();
        let fit = fit(&sides, segment, reply, self.0[8]);
        match fit {
            Fit::Inside | Fit::Ends => {
                note(&mut sides, segment, reply);
                self.set(sides);
            }
            Fit::Aside if segment.is(flag::SYN) && !reply => self.0[8] = segment.end,
            Fit::Anew if reply => {
                // The answer to a SYN that passed aside, whose window was not recorded.
                let stray = self.0[8];
                let largest = u32::from(u16::MAX) << SCALE_MAX;
                let mut sides = [Side { scale: SCALE_MAX, ..Side::default() }; 2];
                let one =
                    Side { seen: true, sent: stray, limit: stray, window: largest, ..sides[0] };
                sides[0] = one;
                note(&mut sides, segment, reply);
                sides[1].scale = SCALE_MAX;
                self.0[8] = 0;
                self.set(sides);
            }
            Fit::Anew => self.begin(segment),
            Fit::Aside | Fit::Outside => {}
        }
        fit
    }

    /// True if a side (the replying one if `reply`) may have this sequence number in flight, sent
    /// but not acknowledged (RFC 5927 section 4.1), or may have had it recently, as the error
    /// itself took time.
    pub(super) fn may_be_on_its_way(&self, sequence: u32, reply: bool) -> bool {
        let sides = self.sides();
        let (own, other) = (sides[usize::from(reply)], sides[usize::from(!reply)]);
        let low = if other.has_acked { other.acked } else { own.sent.wrapping_sub(1) };
        own.seen
            && !after(sequence, own.sent)
            && !after(low.wrapping_sub(other.window.max(1)), sequence)
    }
}

fn fit(sides: &[Side; 2], segment: &TcpSegment, reply: bool, stray: u32) -> Fit {
    let (own, other) = (sides[usize::from(reply)], sides[usize::from(!reply)]);
    let opens = segment.is(flag::SYN) && segment.acknowledges.is_none();
    if !own.seen {
        let answers = segment.acknowledges.map(|acked| {
            !after(acked, other.sent) && !after(other.sent.wrapping_sub(other.window.max(1)), acked)
        });
        return match (segment.is(flag::RST), answers) {
            (true, Some(true)) => Fit::Ends,
            (true, None) if other.has_acked && segment.begin == other.acked => Fit::Ends,
            (true, None) => Fit::Outside,
            (_, Some(false)) => Fit::Outside,
            (false, Some(true) | None) => Fit::Inside,
        };
    }
    if segment.is(flag::RST) {
        let expected = other.has_acked && segment.begin == other.acked || segment.begin == own.sent;
        let refuses = reply && stray != 0 && segment.acknowledges == Some(stray);
        return match () {
            () if expected => Fit::Ends,
            () if refuses || is_in_window(own, other, segment) => Fit::Aside,
            () => Fit::Outside,
        };
    }
    let acknowledges = segment.acknowledges.is_none_or(|acked| {
        let few = own.window.max(ACKNOWLEDGED_MIN);
        !other.seen || !after(acked, other.sent) && !after(other.sent.wrapping_sub(few), acked)
    });
    if is_in_window(own, other, segment) && acknowledges {
        // A second SYN of the same connection does not belong to it.
        let again = segment.is(flag::SYN) && segment.end != own.sent && other.seen;
        return match again {
            true if opens && reply => Fit::Outside,
            true => Fit::Aside,
            false => Fit::Inside,
        };
    }
    match () {
        // Without an answer, the initiator may start over.
        () if opens && !reply && !other.seen => Fit::Anew,
        () if opens && !reply => Fit::Aside,
        () if segment.is(flag::SYN)
            && reply
            && stray != 0
            && segment.acknowledges == Some(stray) =>
        {
            Fit::Anew
        }
        () => Fit::Outside,
    }
}

/// Not beyond the window that the receiver has offered, and not far in the past.
fn is_in_window(own: Side, other: Side, segment: &TcpSegment) -> bool {
    let low = own.sent.wrapping_sub(other.window.max(1));
    !after(segment.begin, own.limit) && (!other.seen || !after(low, segment.end))
}

fn note(sides: &mut [Side; 2], segment: &TcpSegment, reply: bool) {
    let (own, other) = (usize::from(reply), usize::from(!reply));
    let is_syn = segment.is(flag::SYN);
    if !sides[own].seen {
        let window = sides[other].window.max(1);
        let side = &mut sides[own];
        (side.seen, side.sent) = (true, segment.end);
        side.limit = segment.end.wrapping_add(window);
        if is_syn {
            // Only if both sides have sent the option (RFC 7323 section 1.3).
            let is_negotiated = segment.scale.is_some() && sides[other].scales;
            sides[own].scale = segment.scale.filter(|_| is_negotiated).unwrap_or(0);
            if !is_negotiated && sides[other].scale != SCALE_MAX {
                sides[other].scale = 0;
            }
        } else {
            // Its SYN was not seen.
            sides[own].scale = SCALE_MAX;
        }
    }
    sides[own].sent = later(segment.end, sides[own].sent);
    let window = if is_syn { segment.window } else { segment.window << sides[own].scale };
    if segment.is(flag::RST) {
        return;
    }
    sides[own].window = sides[own].window.max(window);
    if let Some(acked) = segment.acknowledges {
        let side = &mut sides[own];
        side.acked = if side.has_acked { later(acked, side.acked) } else { acked };
        side.has_acked = true;
        let limit = acked.wrapping_add(window.max(1));
        let side = &mut sides[other];
        side.limit = if side.seen { later(limit, side.limit) } else { limit };
    }
}
