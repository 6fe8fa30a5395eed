//! Fault of a frame, and the run it belongs to.
//!
//! The owner of a frame follows from evidence, not from the run id alone. A frame with magic and
//! run id within [`NEAR_BITS`] bits of this run's at their place belongs to this run, whatever else
//! it contains. A packet of another run is intact by itself; one between this run's addresses with
//! a distant identity and a wrong checksum is a damaged packet of this run.

use super::expected::{Pattern, offsets};
use super::fault::Fault;
use crate::address::Family;
use crate::checksum;
use crate::stamp;
use crate::template::Template;

/// Maximum number of bits in which magic and run id (48 bits) of a packet of this run may differ.
/// Two runs are this close by chance once in ten billion times.
pub const NEAR_BITS: u32 = 3;

/// Classification of a frame that is not an intact packet of this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameClass {
    /// A packet of this run with a fault, and its phase if credible.
    Damaged(Fault, Option<usize>),
    /// A packet of another run.
    Foreign,
    /// A UDP packet between the benchmark's addresses without a stamp.
    Unstamped,
    /// Something else.
    Other,
}

impl Pattern {
    /// Classifies a frame that does not pass. `flow_of` returns the flow that a sender's sequence
    /// number belongs to.
    #[cold]
    pub fn judge(
        &self,
        frame: &[u8],
        length: usize,
        scan: bool,
        flow_of: impl Fn(u8, u32) -> Option<u32>,
    ) -> FrameClass {
        let at = offsets(self.family);
        let stamp = at.udp + 8;
        let distance = self.distance(frame, stamp);
        if distance.is_some_and(|bits| bits <= NEAR_BITS) {
            return self.fault(frame, length, scan, distance == Some(0), flow_of);
        }
        let other_family = match self.family {
            Family::Inet => is_stamped(frame, Family::Inet6),
            Family::Inet6 => is_stamped(frame, Family::Inet),
        };
        if other_family {
            return FrameClass::Foreign;
        }
        if !self.is_between_our_addresses(frame) {
            return match is_stamped(frame, self.family) {
                true => FrameClass::Foreign,
                false if is_benchmark_udp(frame) => FrameClass::Unstamped,
                false => FrameClass::Other,
            };
        }
        if length < stamp + stamp::BYTES {
            return FrameClass::Damaged(Fault::Length, None);
        }
        match (is_udp_intact(frame, length, self.family), is_stamped(frame, self.family)) {
            (false, _) => FrameClass::Damaged(Fault::Stamp, None),
            (true, true) => FrameClass::Foreign,
            (true, false) => FrameClass::Unstamped,
        }
    }

    /// Returns the number of bits in which magic and run id differ from this run's; `None` if the
    /// frame ends before them.
    fn distance(&self, frame: &[u8], stamp: usize) -> Option<u32> {
        let found = frame.get(stamp..stamp + 6)?;
        let magic = stamp::MAGIC.to_be_bytes().into_iter();
        let ours = magic.chain(self.expected.template.run_id().to_be_bytes());
        Some(found.iter().zip(ours).map(|(found, ours)| (found ^ ours).count_ones()).sum())
    }

    /// Returns the first fault of a packet of this run. If no fault is visible alone, it is the
    /// checksum's.
    fn fault(
        &self,
        frame: &[u8],
        length: usize,
        scan: bool,
        identity: bool,
        flow_of: impl Fn(u8, u32) -> Option<u32>,
    ) -> FrameClass {
        let (family, at) = (self.family, offsets(self.family));
        let stamp = at.udp + 8;
        let read = frame.get(stamp..).and_then(read_tag);
        let phase = read.map(|(tag, ..)| usize::from((tag >> 24) as u8 & 0xf));
        let believed = phase.filter(|&phase| phase <= 2 && identity);
        let damaged = |fault| FrameClass::Damaged(fault, believed);
        // In a mix, a damaged sequence number may require a different length. The checks below find
        // the fault of a frame that is as long as its header states.
        let is_length = self.is_length(frame, length);
        let is_other = !is_length && self.is_other_length(frame, length);
        let Some((tag, sequence, _)) = read.filter(|_| is_length || is_other) else {
            return damaged(Fault::Length);
        };
        let (own, udp_word) = (self.own(length), (at.udp + 4) / 8);
        let mut words = self.words;
        words[2] ^= own.ip;
        words[udp_word] ^= own.udp;
        let differs = |from: usize, to: usize| {
            (from..to).any(|at| {
                let (word, byte) = (at / 8, 8 * (at % 8));
                let ours = (words[word] >> byte) as u8;
                let mask = (self.masks[word] >> byte) as u8;
                frame.get(at).is_none_or(|found| (found ^ ours) & mask != 0)
            })
        };
        let headers = [
            (Fault::DestinationMac, differs(0, 6)),
            (Fault::SourceMac, differs(6, 12)),
            (
                Fault::IpHeader,
                match family {
                    // Service after version; fragmentation; protocol.
                    Family::Inet => differs(12, 16) || differs(20, 22) || differs(23, 24),
                    Family::Inet6 => differs(12, 18) || differs(20, 21),
                },
            ),
            (Fault::IpLength, differs(at.ip_length, at.ip_length + 2)),
            (Fault::Ttl, differs(at.ttl, at.ttl + 1)),
        ];
        if let Some((fault, _)) = headers.into_iter().find(|(_, is_wrong)| *is_wrong) {
            return damaged(fault);
        }
        if let Some(fault) = self.flow_fault(frame, tag, sequence, flow_of) {
            return damaged(fault);
        }
        if differs(at.udp, at.udp + 6) {
            return damaged(Fault::UdpHeader);
        }
        if !identity {
            return damaged(Fault::Stamp);
        }
        if scan && frame.iter().skip(stamp + stamp::BYTES).any(|&byte| byte != 0) {
            return damaged(Fault::Payload);
        }
        if family == Family::Inet && checksum::finish(checksum::add(0, &frame[14..34])) != [0, 0] {
            return damaged(Fault::IpChecksum);
        }
        if is_other && is_udp_intact(frame, length, family) {
            return damaged(Fault::Length);
        }
        damaged(Fault::UdpChecksum)
    }

    /// True if a frame of a mix has the length in its IP header, and some other packet has that
    /// length.
    fn is_other_length(&self, frame: &[u8], length: usize) -> bool {
        let (ip, _) = Template::length_offsets(self.family);
        let length_field = Template::lengths_of(self.family, length).ip;
        self.is_some_length(length) && frame.get(ip..ip + 2) == Some(&length_field)
    }

    /// Returns which of addresses, stamp and sequence contradicts the other two about the flow;
    /// `None` if they agree. If all three differ, an address that no flow has is wrong, else the
    /// stamp.
    fn flow_fault(
        &self,
        frame: &[u8],
        tag: u32,
        sequence: u32,
        flow_of: impl Fn(u8, u32) -> Option<u32>,
    ) -> Option<Fault> {
        let at = offsets(self.family);
        let flows = self.expected.template.flows();
        let (sender, stamped) = ((tag >> 28) as u8, tag & 0x00ff_ffff);
        let low =
            |at: usize| -> u32 { u32::from_be_bytes(std::array::from_fn(|byte| frame[at + byte])) };
        let (first_source, first_destination) = self.expected.template.bases();
        let source = low(at.source).wrapping_sub(first_source);
        let destination = low(at.destination).wrapping_sub(first_destination);
        let high_is_wrong = |to: usize| {
            let high = |frame: &[u8]| self.family == Family::Inet6 && frame[to - 12..to] != [0; 12];
            let template = self.expected.template.bytes();
            high(frame) && frame[to - 12..to] != template[to - 12..to]
        };
        if high_is_wrong(at.source) {
            return Some(Fault::SourceAddress);
        }
        if high_is_wrong(at.destination) {
            return Some(Fault::DestinationAddress);
        }
        let in_range = source < flows.sources && destination < flows.destinations;
        let addressed = in_range.then(|| source * flows.destinations + destination);
        let turn = flow_of(sender, sequence);
        let stamp_is_possible =
            stamped < flows.count() && sender < self.expected.senders && (tag >> 24 & 0xf) <= 2;
        if addressed == Some(stamped) && stamp_is_possible {
            return (turn.is_some() && turn != addressed).then_some(Fault::Sequence);
        }
        // The stamp is believed if it agrees with the sequence, or if the addresses belong to no
        // flow.
        if stamp_is_possible && addressed != Some(stamped) && (turn == Some(stamped) || !in_range) {
            let is_source = source != stamped / flows.destinations;
            return Some(match is_source {
                true => Fault::SourceAddress,
                false => Fault::DestinationAddress,
            });
        }
        Some(Fault::Stamp)
    }

    /// True for UDP packets of this family between addresses that this run's packets can have.
    fn is_between_our_addresses(&self, frame: &[u8]) -> bool {
        let Some(headers) = frame.get(..offsets(self.family).udp + 8) else { return false };
        let flows = self.expected.template.flows();
        let at = offsets(self.family);
        let low = |at: usize| -> u32 {
            u32::from_be_bytes(std::array::from_fn(|byte| headers[at + byte]))
        };
        let (first_source, first_destination) = self.expected.template.bases();
        let source = low(at.source).wrapping_sub(first_source);
        let destination = low(at.destination).wrapping_sub(first_destination);
        let template = self.expected.template.bytes();
        let prefixes = match self.family {
            Family::Inet => true,
            Family::Inet6 => {
                headers[22..34] == template[22..34] && headers[38..50] == template[38..50]
            }
        };
        is_udp(headers, self.family)
            && prefixes
            && source < flows.sources
            && destination < flows.destinations
    }
}

/// Returns tag, sequence and time of a payload that begins with a stamp.
fn read_tag(payload: &[u8]) -> Option<(u32, u32, u32)> {
    let field = |at: usize| Some(u32::from_be_bytes(payload.get(at..at + 4)?.try_into().ok()?));
    Some((field(6)?, field(10)?, field(14)?))
}

fn is_udp(frame: &[u8], family: Family) -> bool {
    // A frame without IPv4 addresses and ports belongs to no run.
    if frame.len() < 38 {
        return false;
    }
    match family {
        Family::Inet => {
            frame.get(12..15) == Some(&[0x08, 0x00, 0x45]) && frame.get(23) == Some(&17)
        }
        Family::Inet6 => frame.get(12..14) == Some(&[0x86, 0xdd]) && frame.get(20) == Some(&17),
    }
}

fn is_stamped(frame: &[u8], family: Family) -> bool {
    let stamp = offsets(family).udp + 8;
    is_udp(frame, family) && frame.get(stamp..stamp + 2) == Some(&stamp::MAGIC.to_be_bytes())
}

/// True for UDP packets from the sender's half of the benchmark's addresses to the receiver's half
/// (see [`crate::address`]).
pub(super) fn is_benchmark_udp(frame: &[u8]) -> bool {
    if is_udp(frame, Family::Inet) {
        return frame.get(26..28) == Some(&[198, 18]) && frame.get(30..32) == Some(&[198, 19]);
    }
    let prefix = [0x20, 0x01, 0, 2, 0, 0];
    frame.len() >= offsets(Family::Inet6).udp
        && is_udp(frame, Family::Inet6)
        && frame.get(22..28) == Some(&prefix)
        && frame.get(38..44) == Some(&prefix)
        && frame[28] & 0x80 == 0
        && frame[44] & 0x80 != 0
}

/// True if UDP's length and checksum match the packet, which ends with the frame. Bytes of the
/// frame that were not kept count as zeros, as senders send them.
fn is_udp_intact(frame: &[u8], length: usize, family: Family) -> bool {
    let at = offsets(family);
    let Some(udp) = frame.get(at.udp..) else { return false };
    let length_field = [udp[4], udp[5]];
    if usize::from(u16::from_be_bytes(length_field)) + at.udp != length || udp[6..8] == [0, 0] {
        return false;
    }
    let addresses = match family {
        Family::Inet => &frame[26..34],
        Family::Inet6 => &frame[22..54],
    };
    let sum =
        checksum::add(checksum::add(0, addresses), &[0, 17, length_field[0], length_field[1]]);
    checksum::finish(checksum::add(sum, udp)) == [0, 0]
}
