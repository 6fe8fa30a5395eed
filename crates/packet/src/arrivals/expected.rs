//! The expected form of a run's packets at the receiver.

use crate::Flows;
use crate::address::Family;
use crate::checksum;
use crate::size::FCS_BYTES;
use crate::stamp::{self, Stamp};
use crate::template::Template;
use std::net::IpAddr;

/// Properties of a run's packets that are known before they arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The frames as sent, with translated destinations; MAC addresses are up to the sender.
    pub template: Template,
    /// Destination MAC; `None` accepts any.
    pub destination_mac: Option<[u8; 6]>,
    /// Source MAC, which is the device's egress interface; `None` accepts any.
    pub source_mac: Option<[u8; 6]>,
    /// Source address that the device gives every packet (NAT), see [`super::translation`]; `None`
    /// if packets keep theirs.
    pub translated: Option<IpAddr>,
    /// Routers on the path: one with a device under test, zero without.
    pub hops: u8,
    /// Sending threads, 1 to 16, numbered from 0.
    pub senders: u8,
    /// True if every packet contains its sending time.
    pub timestamps: bool,
    /// True if sender and receiver read the same clock.
    pub same_clock: bool,
    /// True if only a sample of the packets is checked, see [`super::sample`].
    pub sampled: bool,
}

/// Words of 8 bytes that hold headers and stamp of either family.
pub const WORDS: usize = 10;

/// [`Expected`] compiled for speed: words to compare, and sums of the compared words, so that a
/// checksum is right if the remaining words add up.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// First bytes of the frame as they must arrive; 0 where masked.
    pub words: [u64; WORDS],
    /// Bits that are the same in every packet.
    pub masks: [u64; WORDS],
    /// Sum over the constant words of the IPv4 header, see [`crate::template::Sums`].
    pub ip_sum: u32,
    /// The same sum for UDP with its pseudo header, magic and run id.
    pub udp_sum: u32,
    /// Bytes of the longest frame without FCS; of all frames if they have one size.
    pub length: usize,
    is_mix: bool,
    pub(super) family: Family,
    pub(super) expected: Expected,
    // Fields needed for each packet.
    run_id: u32,
    senders: u8,
    flows: Flows,
    bases: (u32, u32),
}

/// Length fields of one packet of a mix, which differ from packet to packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LengthFields {
    /// Bits of the word that contains the IP length, the third.
    pub(super) ip: u64,
    /// Bits of the word that contains the UDP length: the fifth, for IPv6 the eighth.
    pub(super) udp: u64,
    ip_sum: u64,
    udp_sum: u64,
}

/// Offsets of a frame layout, of either family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    pub(super) ip_length: usize,
    pub(super) ttl: usize,
    pub(super) source: usize,
    pub(super) destination: usize,
    pub(super) udp: usize,
}

pub(super) fn offsets(family: Family) -> Offsets {
    match family {
        Family::Inet => Offsets { ip_length: 16, ttl: 22, source: 26, destination: 30, udp: 34 },
        Family::Inet6 => Offsets { ip_length: 18, ttl: 21, source: 34, destination: 50, udp: 54 },
    }
}

impl Pattern {
    /// Compiles the expected packets.
    pub fn new(expected: &Expected) -> Pattern {
        let template = &expected.template;
        let (family, at) = (template.family(), offsets(template.family()));
        let mut bytes = template.bytes().to_vec();
        bytes[at.ttl] = bytes[at.ttl].saturating_sub(expected.hops);
        let ip_sum = match family {
            Family::Inet => checksum::add(0, &bytes[14..34]),
            Family::Inet6 => 0,
        };
        let udp_sum = template.sums().udp;
        bytes[0..6].copy_from_slice(&expected.destination_mac.unwrap_or_default());
        bytes[6..12].copy_from_slice(&expected.source_mac.unwrap_or_default());
        let stamp = at.udp + 8;
        let id = Stamp { run_id: template.run_id(), ..Stamp::default() };
        id.emit(&mut bytes[stamp..]);
        bytes[stamp + 6..stamp + stamp::BYTES].fill(0);
        let mut mask = vec![0xff; stamp + 6];
        let mut free = |from: usize, to: usize| mask[from..to].fill(0);
        if expected.destination_mac.is_none() {
            free(0, 6);
        }
        if expected.source_mac.is_none() {
            free(6, 12);
        }
        if family == Family::Inet {
            // A router may renumber packets that are not fragments (RFC 6864); the header checksum
            // covers the number.
            free(18, 20);
            free(24, 26);
        }
        free(at.source, at.source + 4);
        free(at.destination, at.destination + 4);
        free(at.udp + 6, at.udp + 8);
        let word = |bytes: &[u8], at: usize| {
            let mut eight = [0; 8];
            let part = bytes.get(8 * at..).unwrap_or_default();
            let length = part.len().min(8);
            eight[..length].copy_from_slice(&part[..length]);
            u64::from_le_bytes(eight)
        };
        let masks = std::array::from_fn(|n| word(&mask, n));
        let words = std::array::from_fn(|n| word(&bytes, n) & masks[n]);
        let length = bytes.len();
        Pattern {
            words,
            masks,
            ip_sum,
            udp_sum,
            length,
            is_mix: template.size().is_mix(),
            family,
            run_id: template.run_id(),
            senders: expected.senders,
            flows: template.flows(),
            bases: template.bases(),
            expected: expected.clone(),
        }
    }

    /// Returns the source of this pattern.
    pub fn expected(&self) -> &Expected {
        &self.expected
    }

    /// True if packets have payload after their stamp.
    #[inline]
    pub fn has_payload(&self) -> bool {
        self.length > offsets(self.family).udp + 8 + stamp::BYTES
    }

    /// Returns the stamp of a frame that is right in everything that can be checked without other
    /// packets; `None` otherwise. With `scan`, the whole payload is checked.
    #[inline]
    pub fn passes(&self, frame: &[u8], length: usize, scan: bool) -> Option<Stamp> {
        if !self.is_length(frame, length) {
            return None;
        }
        let own = self.own(length);
        match self.family {
            Family::Inet => self.passes_inet(frame, scan, &own),
            Family::Inet6 => self.passes_inet6(frame, scan, &own),
        }
    }

    /// True if the packet has the right length; in a mix its sequence number decides.
    #[inline]
    pub(super) fn is_length(&self, frame: &[u8], length: usize) -> bool {
        if !self.is_mix {
            return length == self.length;
        }
        let at = offsets(self.family).udp + 8 + 10;
        let sequence = frame.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        sequence
            .is_some_and(|bytes| length == self.expected.template.length(u32::from_be_bytes(bytes)))
    }

    /// True for a length that some packets have.
    pub(super) fn is_some_length(&self, length: usize) -> bool {
        let sizes = self.expected.template.size().sizes();
        sizes.iter().any(|&size| usize::from(size - FCS_BYTES) == length)
    }

    /// Returns the length fields of a packet of a mix; empty if all packets are alike.
    #[inline]
    pub(super) fn own(&self, length: usize) -> LengthFields {
        if !self.is_mix {
            return LengthFields::default();
        }
        let lengths = Template::lengths_of(self.family, length);
        let [ip, udp] = [lengths.ip, lengths.udp].map(|field| u64::from(u16::from_le_bytes(field)));
        match self.family {
            Family::Inet => LengthFields { ip, udp: udp << 48, ip_sum: ip, udp_sum: 2 * udp },
            Family::Inet6 => {
                LengthFields { ip: ip << 16, udp: udp << 16, ip_sum: 0, udp_sum: 2 * udp }
            }
        }
    }

    /// Returns the stamp of a frame of the sent length with a stamp of this run, whatever else the
    /// frame contains; `None` if a part of the stamp is impossible.
    #[inline]
    pub fn stamp(&self, frame: &[u8], length: usize) -> Option<Stamp> {
        if !self.is_length(frame, length) {
            return None;
        }
        let stamp = Stamp::parse(frame.get(offsets(self.family).udp + 8..)?)?;
        let is_ours = stamp.run_id == self.run_id
            && stamp.phase <= 2
            && stamp.sender < self.senders
            && stamp.flow < self.flows.count();
        is_ours.then_some(stamp)
    }

    #[inline]
    fn passes_inet(&self, frame: &[u8], scan: bool, own: &LengthFields) -> Option<Stamp> {
        // The compiler knows its length, so no bounds are checked twice.
        let (head, payload) = frame.split_first_chunk::<60>()?;
        let (w2, w3, w4, w5) = (word(head, 2), word(head, 3), word(head, 4), word(head, 5));
        let wrong = self.differs(0, word(head, 0))
            | self.differs(1, word(head, 1))
            | self.differs(2, w2 ^ own.ip)
            | self.differs(4, w4 ^ own.udp)
            | self.differs(5, w5);
        let source = (w3 >> 16) as u32;
        let destination = (w3 >> 48) as u32 | (w4 as u32) << 16;
        let sum = u64::from(self.ip_sum) + own.ip_sum + (w2 >> 16 & 0xffff) + (w3 & 0xffff);
        if wrong != 0 || !sums_up(sum + u64::from(source) + u64::from(destination)) {
            return None;
        }
        let w6 = word(head, 6);
        let time = u32::from_le_bytes([head[56], head[57], head[58], head[59]]);
        let changing = [w6 as u32, (w6 >> 32) as u32, time];
        self.passes_udp((source, destination), w5 as u16, changing, payload, scan, own.udp_sum)
    }

    #[inline]
    fn passes_inet6(&self, frame: &[u8], scan: bool, own: &LengthFields) -> Option<Stamp> {
        let (head, payload) = frame.split_first_chunk::<80>()?;
        let words: [u64; WORDS] = std::array::from_fn(|n| word(head, n));
        let own_of = |n| match n {
            2 => own.ip,
            7 => own.udp,
            _ => 0,
        };
        let wrong = (0..9).fold(0, |wrong, n| wrong | self.differs(n, words[n] ^ own_of(n)));
        if wrong != 0 {
            return None;
        }
        let (source, destination) = ((words[4] >> 16) as u32, (words[6] >> 16) as u32);
        let changing = [(words[8] >> 32) as u32, words[9] as u32, (words[9] >> 32) as u32];
        let check = (words[7] >> 32) as u16;
        self.passes_udp((source, destination), check, changing, payload, scan, own.udp_sum)
    }

    /// Checks the parts that both families share: UDP's checksum, the stamp, the payload after it.
    #[inline]
    fn passes_udp(
        &self,
        (source, destination): (u32, u32),
        check: u16,
        changing: [u32; 3],
        payload: &[u8],
        scan: bool,
        own_sum: u64,
    ) -> Option<Stamp> {
        let sum = u64::from(self.udp_sum) + own_sum + u64::from(source) + u64::from(destination);
        let sum = changing.iter().fold(sum + u64::from(check), |sum, &word| sum + u64::from(word));
        if check == 0 || !sums_up(sum) {
            return None;
        }
        let [tag, sequence, time_ns] = changing.map(u32::from_be);
        let stamp = Stamp {
            run_id: self.run_id,
            sender: (tag >> 28) as u8,
            phase: (tag >> 24) as u8 & 0xf,
            flow: tag & 0x00ff_ffff,
            sequence,
            time_ns,
        };
        let wrong = self.address_flow(source, destination) != Some(stamp.flow)
            || stamp.phase > 2
            || stamp.sender >= self.senders
            || scan && payload.iter().any(|&byte| byte != 0);
        (!wrong).then_some(stamp)
    }

    /// Returns the bits of a frame's word that differ from the expected ones.
    #[inline]
    fn differs(&self, n: usize, word: u64) -> u64 {
        (word ^ self.words[n]) & self.masks[n]
    }

    /// Returns the flow between two addresses, given by their last 32 bits in the memory order of a
    /// little-endian machine.
    #[inline]
    fn address_flow(&self, source: u32, destination: u32) -> Option<u32> {
        let Flows { sources, destinations } = self.flows;
        let source = u32::from_be(source).wrapping_sub(self.bases.0);
        let destination = u32::from_be(destination).wrapping_sub(self.bases.1);
        (source < sources && destination < destinations)
            .then(|| source * destinations + destination)
    }
}

/// Returns the 8 bytes at word `n`, read as little-endian.
#[inline]
fn word(bytes: &[u8], n: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[8 * n..8 * n + 8]);
    u64::from_le_bytes(eight)
}

/// True if words and their checksum, together above 0, add up (RFC 1071): one's complement sums of
/// 16 bits are sums modulo 0xffff, and a word of 32 bits is one of its parts.
#[inline]
pub(super) fn sums_up(sum: u64) -> bool {
    sum.is_multiple_of(0xffff)
}
