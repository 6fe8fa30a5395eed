//! Windows of TCP connections: which segments belong to one, and which may end it.
//!
//! The bounds are those that firewalls have had since van Rooij, Real Stateful TCP Packet
//! Filtering in IP Filter (USENIX Security 2001): a segment lies between what its receiver
//! has acknowledged, less one window, and what the receiver has offered; what it
//! acknowledges was sent. Scaling is RFC 7323's. A connection that is met under way has
//! windows of unknown scale, and gets the largest.
//!
//! A reset ends the state only if its sequence number is the very one that is expected
//! (RFC 5961 section 3.2): the last that its receiver has acknowledged, or that its sender
//! has sent up to. Another one within the window passes, so that its receiver can ask back,
//! and changes nothing; so does a SYN (section 4.2). If the answer to such a SYN accepts it,
//! its sender had lost the old connection, and the state is the new one's.

use crate::firewall::packet::{Contents, Packet, Part, bit, contents, contents6, flag};
use fwdlab_netio::frame::Frame;
use fwdlab_packet::checksum;

/// What a side may acknowledge below what the other has sent, at least: more than the
/// largest window without scaling.
const ACKNOWLEDGED_MIN: u32 = 66_000;
/// The largest scale (RFC 7323 section 2.3).
const SCALE_MAX: u32 = 14;

/// A TCP segment as its windows see it.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct TcpSegment {
    flags: u8,
    begin: u32,
    /// SYN and FIN count.
    end: u32,
    acknowledges: Option<u32>,
    /// As it stands there.
    window: u32,
    /// Of a SYN with that option.
    scale: Option<u32>,
}

/// How a segment fits the connection that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is one of it.
    Inside,
    /// It is one of it, and ends it.
    Ends,
    /// It passes, and changes nothing.
    Aside,
    /// The connection is another one from here on.
    Anew,
    /// It belongs to something else.
    Outside,
}

/// Both sides of a connection; who began is the first. All zero: nothing is known.
#[derive(Debug)]
pub(super) struct Window<'a>(pub(super) &'a mut Words);

/// A window as it is stored: allocated as zeros, memory that no connection has used isn't
/// there.
pub(super) type Words = [u32; 9];

/// One side.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    /// Up to which it has sent.
    sent: u32,
    /// Up to which it may.
    may: u32,
    /// Up to which it has what the other sent; if anything.
    has: u32,
    seen: bool,
    has_any: bool,
    /// Its SYN had the option.
    scales: bool,
    scale: u32,
    /// The largest it has offered, in bytes.
    window: u32,
}

/// Windows are rounded up to these bytes: beside them, flags have room.
const UNIT: u32 = 32;

impl Side {
    fn of([sent, may, has, word]: [u32; 4]) -> Side {
        let flag = |at: u32| word >> at & 1 != 0;
        let (scale, window) = (word >> 3 & 15, (word >> 7) * UNIT);
        let (seen, has_any, scales) = (flag(0), flag(1), flag(2));
        Side { sent, may, has, seen, has_any, scales, scale, window }
    }

    fn words(&self) -> [u32; 4] {
        let flags = u32::from(self.seen)
            | u32::from(self.has_any) << 1
            | u32::from(self.scales) << 2
            | self.scale << 3;
        [self.sent, self.may, self.has, flags | self.window.div_ceil(UNIT) << 7]
    }
}

/// `a` is after `b`, as sequence numbers go around.
fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

fn later(a: u32, b: u32) -> u32 {
    if after(a, b) { a } else { b }
}

impl TcpSegment {
    /// None when it isn't one: its header is longer than it says, or than it is.
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
        let begin = word(4);
        let both = u32::from(flags & flag::SYN != 0) + u32::from(flags & flag::FIN != 0);
        let end = begin.wrapping_add((contents.length() - length) as u32 + both);
        let acknowledges = (flags & flag::ACK != 0).then(|| word(8));
        let window = word(14) >> 16;
        let scale = if flags & flag::SYN != 0 { scale(&header[20..length]) } else { None };
        Some(TcpSegment { flags, begin, end, acknowledges, window, scale })
    }

    fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// The option of window scaling (RFC 7323 section 2.2).
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

/// Whether the checksum of TCP, or ICMP, is right; none of a fragment, which can't be summed
/// up.
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

/// True of a TCP packet that would open or end a connection, and has a wrong checksum; or,
/// but for FIN, none that can be verified.
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

    /// The first segment of a connection.
    pub(super) fn begin(&mut self, segment: &TcpSegment) {
        let mut sides = [Side::default(); 2];
        let one = &mut sides[0];
        (one.seen, one.sent, one.may) = (true, segment.end, segment.end);
        if segment.is(flag::SYN) && segment.acknowledges.is_none() {
            one.window = segment.window;
            one.scales = segment.scale.is_some();
            one.scale = segment.scale.unwrap_or(0);
        } else {
            sides.iter_mut().for_each(|side| side.scale = SCALE_MAX);
            let window = segment.window << SCALE_MAX;
            let largest = u32::from(u16::MAX) << SCALE_MAX;
            (sides[0].window, sides[0].may) = (window, segment.end.wrapping_add(largest));
            if let Some(has) = segment.acknowledges {
                (sides[0].has, sides[0].has_any) = (has, true);
                let may = has.wrapping_add(window);
                sides[1] = Side { seen: true, sent: has, may, window: largest, ..sides[1] };
            }
        }
        self.0[8] = 0;
        self.set(sides);
    }

    /// Looks at a further segment, and notes it.
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
                // The answer to a SYN that passed aside: what that offered was not kept.
                let stray = self.0[8];
                let largest = u32::from(u16::MAX) << SCALE_MAX;
                let mut sides = [Side { scale: SCALE_MAX, ..Side::default() }; 2];
                let one = Side { seen: true, sent: stray, may: stray, window: largest, ..sides[0] };
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

    /// True when a side, the one that replies or the other, may have sent this sequence
    /// number without having heard that it arrived (RFC 5927 section 4.1); or may have not
    /// long ago, as the error was on its way itself.
    pub(super) fn may_be_on_its_way(&self, sequence: u32, reply: bool) -> bool {
        let sides = self.sides();
        let (own, other) = (sides[usize::from(reply)], sides[usize::from(!reply)]);
        let low = if other.has_any { other.has } else { own.sent.wrapping_sub(1) };
        own.seen
            && !after(sequence, own.sent)
            && !after(low.wrapping_sub(other.window.max(1)), sequence)
    }
}

fn fit(sides: &[Side; 2], segment: &TcpSegment, reply: bool, stray: u32) -> Fit {
    let (own, other) = (sides[usize::from(reply)], sides[usize::from(!reply)]);
    let opens = segment.is(flag::SYN) && segment.acknowledges.is_none();
    if !own.seen {
        let answers = segment.acknowledges.map(|has| {
            !after(has, other.sent) && !after(other.sent.wrapping_sub(other.window.max(1)), has)
        });
        return match (segment.is(flag::RST), answers) {
            (true, Some(true)) => Fit::Ends,
            (true, None) if other.has_any && segment.begin == other.has => Fit::Ends,
            (true, None) => Fit::Outside,
            (_, Some(false)) => Fit::Outside,
            (false, Some(true) | None) => Fit::Inside,
        };
    }
    if segment.is(flag::RST) {
        let expected = other.has_any && segment.begin == other.has || segment.begin == own.sent;
        let refuses = reply && stray != 0 && segment.acknowledges == Some(stray);
        return match () {
            () if expected => Fit::Ends,
            () if refuses || lies_within(own, other, segment) => Fit::Aside,
            () => Fit::Outside,
        };
    }
    let acknowledges = segment.acknowledges.is_none_or(|has| {
        let few = own.window.max(ACKNOWLEDGED_MIN);
        !other.seen || !after(has, other.sent) && !after(other.sent.wrapping_sub(few), has)
    });
    if lies_within(own, other, segment) && acknowledges {
        // Another beginning of the same connection is no part of it.
        let again = segment.is(flag::SYN) && segment.end != own.sent && other.seen;
        return if again { Fit::Aside } else { Fit::Inside };
    }
    match () {
        // Nobody has answered: who begins may begin anew.
        () if opens && !reply && !other.seen => Fit::Anew,
        () if opens => Fit::Aside,
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

/// Not beyond what its receiver has offered, and not long past.
fn lies_within(own: Side, other: Side, segment: &TcpSegment) -> bool {
    let low = own.sent.wrapping_sub(other.window.max(1));
    !after(segment.begin, own.may) && (!other.seen || !after(low, segment.end))
}

fn note(sides: &mut [Side; 2], segment: &TcpSegment, reply: bool) {
    let (own, other) = (usize::from(reply), usize::from(!reply));
    let is_syn = segment.is(flag::SYN);
    if !sides[own].seen {
        let window = sides[other].window.max(1);
        let side = &mut sides[own];
        (side.seen, side.sent) = (true, segment.end);
        side.may = segment.end.wrapping_add(window);
        if is_syn {
            // Only if both have said so (RFC 7323 section 1.3).
            let both = segment.scale.is_some() && sides[other].scales;
            sides[own].scale = segment.scale.filter(|_| both).unwrap_or(0);
            if !both && sides[other].scale != SCALE_MAX {
                sides[other].scale = 0;
            }
        } else {
            // Its beginning was not seen.
            sides[own].scale = SCALE_MAX;
        }
    }
    sides[own].sent = later(segment.end, sides[own].sent);
    let window = if is_syn { segment.window } else { segment.window << sides[own].scale };
    if segment.is(flag::RST) {
        return;
    }
    sides[own].window = sides[own].window.max(window);
    if let Some(has) = segment.acknowledges {
        let side = &mut sides[own];
        side.has = if side.has_any { later(has, side.has) } else { has };
        side.has_any = true;
        let may = has.wrapping_add(window.max(1));
        let side = &mut sides[other];
        side.may = if side.seen { later(may, side.may) } else { may };
    }
}
