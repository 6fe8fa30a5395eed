//! A frame's layout: the constant and the changing parts of the packets.
//!
//! A sender copies [`Template::bytes`] and, for each packet, writes the two addresses, the
//! checksums and the stamp. [`Template::frame`] is the straightforward reference; the BPF sender
//! does the same from [`Template::sums`].

use crate::address::{Family, Flows, MAX_ADDRESSES};
use crate::checksum;
use crate::size::{FCS_BYTES, FrameSize, SizeTurns};
use crate::stamp::{self, Stamp};
pub use crate::stream::{DESTINATION_PORT, SOURCE_PORT, TTL};
use crate::stream::{Endpoints, Stream};
use std::net::IpAddr;

/// Source port of a flood's packets, so that none has the 5-tuple of a measured packet.
pub const FLOOD_PORT: u16 = SOURCE_PORT + 1;
/// Maximum number of flows that a flood can open one by one: a stamp's 24 bits, minus the addresses
/// of a range that remain if the number is not a product.
pub const FLOOD_FLOWS: u64 = 16_000_000;

const ETHERNET: usize = 14;
const UDP: usize = 8;
const PROTOCOL_UDP: u8 = 17;

/// The constant part of all packets of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    family: Family,
    endpoints: Endpoints,
    flows: Flows,
    run_id: u32,
    size: FrameSize,
    turns: SizeTurns,
    bytes: Vec<u8>,
}

/// The two length fields in the headers of a frame, as in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Length field of IP (for IPv6: of its payload) as sent.
    pub ip: [u8; 2],
    /// Length field of UDP as sent; also part of the pseudo header.
    pub udp: [u8; 2],
}

/// Sums over the words that are the same in every packet, unfolded, in native order (see
/// [`crate::checksum`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// IPv4 header without addresses; 0 for IPv6.
    pub ip: u32,
    /// UDP with its pseudo header, without the addresses' last 32 bits and without the stamp's
    /// changing words (tag, sequence, time). For a mix of sizes, both sums also exclude the
    /// lengths.
    pub udp: u32,
}

impl Template {
    /// Lays out the frame of a stream, with the run's identity.
    ///
    /// # Panics
    /// If the stream's `frame_size` is below [`Template::smallest_frame`], or its endpoints are of
    /// another family: the plan prevents both.
    pub fn new(
        stream: &Stream,
        run_id: u32,
        source_mac: [u8; 6],
        destination_mac: [u8; 6],
    ) -> Template {
        let Stream { family, frame_size: size, flows, .. } = *stream;
        let endpoints = stream.endpoints();
        assert!(endpoints.are_of(family), "{endpoints:?} of {family}");
        assert!(size.least() >= Template::smallest_frame(family), "a frame of {size}");
        let length = usize::from(size.most() - FCS_BYTES);
        let mut bytes = vec![0; length];
        bytes[0..6].copy_from_slice(&destination_mac);
        bytes[6..12].copy_from_slice(&source_mac);
        // Lengths that differ from packet to packet are written into each packet.
        let lengths = match size.is_mix() {
            false => Template::lengths_of(family, length),
            true => Lengths { ip: [0; 2], udp: [0; 2] },
        };
        let udp = match family {
            Family::Inet => {
                bytes[12..14].copy_from_slice(&[0x08, 0x00]);
                bytes[14] = 0x45;
                bytes[16..18].copy_from_slice(&lengths.ip);
                bytes[20] = 0x40; // don't fragment
                bytes[22] = endpoints.ttl;
                bytes[23] = PROTOCOL_UDP;
                ETHERNET + 20
            }
            Family::Inet6 => {
                bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
                bytes[14] = 0x60;
                bytes[18..20].copy_from_slice(&lengths.ip);
                bytes[20] = PROTOCOL_UDP;
                bytes[21] = endpoints.ttl;
                ETHERNET + 40
            }
        };
        bytes[udp..udp + 2].copy_from_slice(&endpoints.source_port.to_be_bytes());
        bytes[udp + 2..udp + 4].copy_from_slice(&endpoints.destination_port.to_be_bytes());
        bytes[udp + 4..udp + 6].copy_from_slice(&lengths.udp);
        let turns = size.turns(flows.count());
        let mut template = Template { family, endpoints, flows, run_id, size, turns, bytes };
        template.write_prefixes();
        template
    }

    /// Returns the frames of the other direction between these MACs, with the same flows: source
    /// and destination, addresses and ports, are swapped.
    pub fn answers(&self, source_mac: [u8; 6], destination_mac: [u8; 6]) -> Template {
        let mut answers = self.clone();
        answers.endpoints = self.endpoints.swapped();
        answers.flows =
            Flows { sources: self.flows.destinations, destinations: self.flows.sources };
        answers.turns = self.size.turns(answers.flows.count());
        answers.bytes[0..6].copy_from_slice(&destination_mac);
        answers.bytes[6..12].copy_from_slice(&source_mac);
        let udp = self.udp_offset();
        answers.bytes[udp..udp + 2].copy_from_slice(&self.bytes[udp + 2..udp + 4]);
        answers.bytes[udp + 2..udp + 4].copy_from_slice(&self.bytes[udp..udp + 2]);
        answers.write_prefixes();
        answers
    }

    /// Writes the part of the addresses that is the same in every packet: the first 96 bits of
    /// IPv6's.
    fn write_prefixes(&mut self) {
        self.write_addresses(0, 0);
        if self.family == Family::Inet6 {
            self.bytes[34..38].fill(0);
            self.bytes[50..54].fill(0);
        } else {
            self.bytes[26..34].fill(0);
        }
    }

    /// Returns the frames of a flood in addition to these: of the same size, to the same
    /// destinations, with one flow per packet (at most [`FLOOD_FLOWS`]), beginning at
    /// [`FLOOD_PORT`]. Their run id differs from this one in so many bits that a few flipped bits
    /// cannot turn one into the other.
    pub fn flood(&self, packets: u64) -> Template {
        let packets = packets.clamp(1, FLOOD_FLOWS) as u32;
        let destinations = self.flows.destinations.max(packets.div_ceil(MAX_ADDRESSES));
        let flows = Flows { sources: packets.div_ceil(destinations), destinations };
        let mac = |at: usize| std::array::from_fn(|byte| self.bytes[at + byte]);
        let id = !self.run_id;
        let stream = Stream {
            endpoints: Some(self.endpoints),
            ..Stream::new(self.family, self.size, flows)
        };
        let mut flood = Template::new(&stream, id, mac(6), mac(0));
        let udp = flood.udp_offset();
        flood.bytes[udp..udp + 2].copy_from_slice(&FLOOD_PORT.to_be_bytes());
        flood
    }

    /// Returns the smallest frame with FCS that has room for the stamp.
    pub fn smallest_frame(family: Family) -> u16 {
        match family {
            Family::Inet => 64,
            Family::Inet6 => 84,
        }
    }

    /// Returns the length fields of a frame of `length` bytes without FCS.
    #[inline]
    pub fn lengths_of(family: Family, length: usize) -> Lengths {
        let (ip, udp) = match family {
            Family::Inet => (ETHERNET, ETHERNET + 20),
            Family::Inet6 => (ETHERNET + 40, ETHERNET + 40),
        };
        let field = |headers: usize| ((length - headers) as u16).to_be_bytes();
        Lengths { ip: field(ip), udp: field(udp) }
    }

    /// Returns the offsets of the length fields in a frame: IP's and UDP's.
    #[inline]
    pub fn length_offsets(family: Family) -> (usize, usize) {
        match family {
            Family::Inet => (16, ETHERNET + 20 + 4),
            Family::Inet6 => (18, ETHERNET + 40 + 4),
        }
    }

    /// Returns the sizes of the frames.
    pub fn size(&self) -> &FrameSize {
        &self.size
    }

    /// Returns the mapping from sequence numbers to sizes.
    pub fn size_turns(&self) -> SizeTurns {
        self.turns
    }

    /// Returns the bytes without FCS of the packet with this sequence number.
    #[inline]
    pub fn length(&self, sequence: u32) -> usize {
        usize::from(self.turns.size(&self.size, sequence) - FCS_BYTES)
    }

    /// Returns the frame without FCS, for a mix the longest one without lengths; changing
    /// addresses, checksums and stamp are 0.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the address family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the flows.
    pub fn flows(&self) -> Flows {
        self.flows
    }

    /// Returns the run id.
    pub fn run_id(&self) -> u32 {
        self.run_id
    }

    /// Returns the offset of the UDP header.
    pub fn udp_offset(&self) -> usize {
        match self.family {
            Family::Inet => ETHERNET + 20,
            Family::Inet6 => ETHERNET + 40,
        }
    }

    /// Returns the offset of the stamp.
    pub fn stamp_offset(&self) -> usize {
        self.udp_offset() + UDP
    }

    /// Returns the last 32 bits of the first source and destination address, in host order.
    pub fn bases(&self) -> (u32, u32) {
        self.endpoints.lows()
    }

    /// Returns the sums of the constant words.
    pub fn sums(&self) -> Sums {
        let udp = self.udp_offset();
        let (ip, mut sum) = match self.family {
            Family::Inet => (checksum::add(0, &self.bytes[ETHERNET..udp]), 0),
            Family::Inet6 => (0, checksum::add(0, &self.bytes[ETHERNET + 8..udp])),
        };
        sum = checksum::add(sum, &[0, PROTOCOL_UDP]);
        // The pseudo header's length: UDP's own, which is 0 for a mix.
        sum = checksum::add(sum, &self.bytes[udp + 4..udp + 6]);
        sum = checksum::add(sum, &self.bytes[udp..]);
        sum = checksum::add(sum, &stamp::MAGIC.to_be_bytes());
        sum = checksum::add(sum, &self.run_id.to_be_bytes());
        Sums { ip, udp: sum }
    }

    /// Returns the flow number of a source and destination index.
    pub fn flow(&self, source: u32, destination: u32) -> u32 {
        source * self.flows.destinations + destination
    }

    /// Returns one complete frame without FCS: the reference for every sender.
    pub fn frame(&self, source: u32, destination: u32, stamp: &Stamp) -> Vec<u8> {
        let mut frame = self.clone();
        frame.write_addresses(source, destination);
        let udp = frame.udp_offset();
        let at = frame.stamp_offset();
        let bytes = &mut frame.bytes;
        bytes.truncate(self.length(stamp.sequence));
        let lengths = Template::lengths_of(self.family, bytes.len());
        let (ip_at, udp_at) = Template::length_offsets(self.family);
        bytes[ip_at..ip_at + 2].copy_from_slice(&lengths.ip);
        bytes[udp_at..udp_at + 2].copy_from_slice(&lengths.udp);
        stamp.emit(&mut bytes[at..]);
        let mut sum = match self.family {
            Family::Inet => {
                let check = checksum::finish(checksum::add(0, &bytes[ETHERNET..udp]));
                bytes[24..26].copy_from_slice(&check);
                checksum::add(0, &bytes[26..34])
            }
            Family::Inet6 => checksum::add(0, &bytes[22..54]),
        };
        sum = checksum::add(sum, &[0, PROTOCOL_UDP]);
        sum = checksum::add(sum, &((bytes.len() - udp) as u16).to_be_bytes());
        sum = checksum::add(sum, &bytes[udp..]);
        let check = match checksum::finish(sum) {
            [0, 0] => [0xff, 0xff], // 0 means "no checksum" (RFC 768), never valid in IPv6
            check => check,
        };
        bytes[udp + 6..udp + 8].copy_from_slice(&check);
        frame.bytes
    }

    fn write_addresses(&mut self, source: u32, destination: u32) {
        let offset = match self.family {
            Family::Inet => 26,
            Family::Inet6 => 22,
        };
        let mut at = offset;
        let (first_source, first_destination) = self.bases();
        let lows = [first_source.wrapping_add(source), first_destination.wrapping_add(destination)];
        for (first, low) in
            [self.endpoints.source, self.endpoints.destination].into_iter().zip(lows)
        {
            match first {
                IpAddr::V4(_) => {
                    self.bytes[at..at + 4].copy_from_slice(&low.to_be_bytes());
                    at += 4;
                }
                IpAddr::V6(first) => {
                    self.bytes[at..at + 12].copy_from_slice(&first.octets()[..12]);
                    self.bytes[at + 12..at + 16].copy_from_slice(&low.to_be_bytes());
                    at += 16;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
