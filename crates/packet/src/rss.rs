//! Receive-side scaling (RSS): assigns packets to queues so that one CPU handles all packets of a
//! flow.
//!
//! The hash is the Toeplitz hash of network cards ([Microsoft's
//! description](https://learn.microsoft.com/windows-hardware/drivers/network/rss-hashing-functions)),
//! over source and destination address and, if present, both ports. An indirection table maps the
//! hash to a queue.
//!
//! VLAN tags, tunnels and IPv6 extension headers are not parsed: a frame with a tag counts as one
//! without IP, the others count as packets without ports.

use crate::stamp::Stamp;
use crate::template::Template;
use std::net::IpAddr;

/// Bytes of a key.
pub const KEY: usize = 40;
/// Entries of an indirection table, a common size in network cards.
pub const ENTRIES: usize = 128;
/// Maximum number of hashed bytes: two IPv6 addresses and two ports.
const INPUT_MAX: usize = 36;

/// Microsoft's key, which many drivers also use.
pub const MICROSOFT_KEY: [u8; KEY] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// A key of equal 16-bit words, with which both directions of a flow have the same hash (Woo and
/// Park, "Scalable TCP Session Monitoring with Symmetric Receive-side Scaling", KAIST 2012).
pub const SYMMETRIC_KEY: [u8; KEY] = {
    let mut key = [0x6d; KEY];
    let mut at = 1;
    while at < KEY {
        key[at] = 0x5a;
        at += 2;
    }
    key
};

/// The hash with one key, precomputed: the contribution of each value of each input byte.
///
/// An input byte costs one lookup in a table of 1 KiB, instead of eight steps.
#[derive(Clone, Debug)]
pub struct Toeplitz {
    tables: Box<[[u32; 256]]>,
}

impl Toeplitz {
    /// Creates the hash with this key.
    pub fn new(key: &[u8; KEY]) -> Toeplitz {
        let table = |at: usize| {
            std::array::from_fn(|byte| {
                let bits = (0..8).filter(|bit| byte << bit & 0x80 != 0);
                bits.fold(0, |hash, bit| hash ^ window(key, 8 * at + bit))
            })
        };
        Toeplitz { tables: (0..INPUT_MAX).map(table).collect() }
    }

    /// Returns the hash of the input of network cards, in wire order: the addresses, then the
    /// ports, source first. Bytes beyond 36 are ignored.
    #[inline]
    pub fn hash(&self, input: &[u8]) -> u32 {
        let pairs = self.tables.iter().zip(input);
        pairs.fold(0, |hash, (table, &byte)| hash ^ table[usize::from(byte)])
    }

    /// Returns the hash of two addresses and, if given, source and destination port.
    pub fn hash_tuple(
        &self,
        source: IpAddr,
        destination: IpAddr,
        ports: Option<(u16, u16)>,
    ) -> u32 {
        let mut input = Vec::with_capacity(INPUT_MAX);
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => input.extend(address.octets()),
                IpAddr::V6(address) => input.extend(address.octets()),
            }
        }
        for port in ports.into_iter().flat_map(|(source, destination)| [source, destination]) {
            input.extend(port.to_be_bytes());
        }
        self.hash(&input)
    }

    /// Returns the hash of a frame's packet; `None` if it is neither IPv4 nor IPv6, or truncated.
    ///
    /// Ports are included for TCP and UDP directly after the IP header. No fragment includes ports,
    /// not even the first one, which would otherwise go to a different queue.
    #[inline]
    pub fn hash_frame(&self, frame: &[u8]) -> Option<u32> {
        match frame.get(12..14)? {
            [0x08, 0x00] => self.hash_ipv4(frame.get(14..)?),
            [0x86, 0xdd] => self.hash_ipv6(frame.get(14..)?),
            _ => None,
        }
    }

    #[inline]
    fn hash_ipv4(&self, packet: &[u8]) -> Option<u32> {
        let header = packet.first_chunk::<20>()?;
        let mut input = [0; 12];
        input[..8].copy_from_slice(&header[12..20]);
        let whole = header[6] & 0x3f == 0 && header[7] == 0;
        let ports = whole.then(|| ports(packet, usize::from(header[0] & 15) * 4, header[9]));
        self.hash_with(&mut input, ports.flatten())
    }

    #[inline]
    fn hash_ipv6(&self, packet: &[u8]) -> Option<u32> {
        let header = packet.first_chunk::<40>()?;
        let mut input = [0; 36];
        input[..32].copy_from_slice(&header[8..40]);
        self.hash_with(&mut input, ports(packet, 40, header[6]))
    }

    /// The input ends with room for the ports.
    #[inline]
    fn hash_with(&self, input: &mut [u8], ports: Option<&[u8; 4]>) -> Option<u32> {
        let (addresses, room) = input.split_last_chunk_mut::<4>()?;
        Some(match ports {
            Some(ports) => {
                *room = *ports;
                self.hash(input)
            }
            None => self.hash(addresses),
        })
    }
}

impl Default for Toeplitz {
    fn default() -> Toeplitz {
        Toeplitz::new(&MICROSOFT_KEY)
    }
}

/// Returns both ports, if the protocol has any.
#[inline]
fn ports(packet: &[u8], at: usize, protocol: u8) -> Option<&[u8; 4]> {
    let has_ports = matches!(protocol, 6 | 17);
    if has_ports { packet.get(at..)?.first_chunk() } else { None }
}

/// Returns the 32 bits of the key from bit `at` on.
fn window(key: &[u8; KEY], at: usize) -> u32 {
    let byte = |n: usize| u64::from(key.get(at / 8 + n).copied().unwrap_or(0));
    let five = (0..5).fold(0, |bits, n| bits << 8 | byte(n));
    (five >> (8 - at % 8)) as u32
}

/// Returns the queue of a hash, with an indirection table as drivers fill it: entry n of
/// [`ENTRIES`] maps to queue n modulo `queues`. No queues count as one.
#[inline]
pub fn queue_of(hash: u32, queues: usize) -> usize {
    hash as usize % ENTRIES % queues.max(1)
}

/// Returns the queue of each flow of a template, by flow number, as a network card with the
/// symmetric key spreads them over `queues`.
pub fn queues_of_flows(template: &Template, queues: u16) -> Vec<u16> {
    let (toeplitz, flows) = (Toeplitz::new(&SYMMETRIC_KEY), template.flows());
    let queue = |flow| {
        let (source, destination) = (flow / flows.destinations, flow % flows.destinations);
        let stamp = Stamp { run_id: 0, sender: 0, phase: 0, flow, sequence: 0, time_ns: 0 };
        let hash = toeplitz.hash_frame(&template.frame(source, destination, &stamp));
        hash.map_or(0, |hash| queue_of(hash, queues.into()) as u16)
    };
    (0..flows.count()).map(queue).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flows;
    use crate::stream::Stream;
    use crate::template::Template;
    use crate::{Family, Stamp};
    use proptest::prelude::*;

    /// Source and destination with their ports, the hash of the addresses, and the hash with ports:
    /// all vectors of Microsoft's "Verifying the RSS Hash Calculation".
    const VECTORS: [(&str, u16, &str, u16, u32, u32); 8] = [
        ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e_8fc2, 0x51cc_c178),
        ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718_262a, 0xc626_b0ea),
        ("24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0_a5de, 0x5c2b_394a),
        ("38.27.205.30", 48228, "209.142.163.6", 2217, 0x8298_9176, 0xafc7_327f),
        ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d18_09c5, 0x10e8_28a2),
        ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc1_8cd5, 0x4020_7d3d),
        ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0f0c_461c, 0xdde5_1bbf),
        (
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            "fe80::200:f8ff:fe21:67cf",
            38024,
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    /// The definition: a window over the key that advances by one bit per bit of input.
    fn bit_by_bit(key: &[u8; KEY], input: &[u8]) -> u32 {
        let bit =
            |bytes: &[u8], at: usize| bytes.get(at / 8).is_some_and(|b| b << (at % 8) & 0x80 != 0);
        let mut hash = 0;
        for at in (0..8 * input.len()).filter(|&at| bit(input, at)) {
            hash ^= (0..32).fold(0, |bits, n| bits << 1 | u32::from(bit(key, at + n)));
        }
        hash
    }

    #[test]
    fn hash_matches_microsoft_vectors() {
        let rss = Toeplitz::default();
        for (source, source_port, destination, destination_port, plain, with_ports) in VECTORS {
            let [source, destination] = [source, destination].map(|a| a.parse().expect("one"));
            let ports = Some((source_port, destination_port));
            assert_eq!(rss.hash_tuple(source, destination, None), plain);
            assert_eq!(rss.hash_tuple(source, destination, ports), with_ports);
        }
    }

    proptest! {
        #[test]
        fn table_hash_matches_definition(
            key in prop::array::uniform32(any::<u8>()),
            rest in prop::array::uniform8(any::<u8>()),
            input in prop::collection::vec(any::<u8>(), 0..=INPUT_MAX),
        ) {
            let mut whole = [0; KEY];
            whole[..32].copy_from_slice(&key);
            whole[32..].copy_from_slice(&rest);
            prop_assert_eq!(Toeplitz::new(&whole).hash(&input), bit_by_bit(&whole, &input));
        }

        #[test]
        fn symmetric_key_hashes_both_directions_alike(
            a: u128, b: u128, short: bool, source: u16, destination: u16, with_ports: bool,
        ) {
            let address = |n: u128| match short {
                true => IpAddr::from((n as u32).to_be_bytes()),
                false => IpAddr::from(n.to_be_bytes()),
            };
            let (a, b) = (address(a), address(b));
            let rss = Toeplitz::new(&SYMMETRIC_KEY);
            let ports = |source, destination| with_ports.then_some((source, destination));
            let there = rss.hash_tuple(a, b, ports(source, destination));
            prop_assert_eq!(there, rss.hash_tuple(b, a, ports(destination, source)));
        }

        #[test]
        fn arbitrary_frames_do_not_panic(frame in prop::collection::vec(any::<u8>(), 0..120)) {
            Toeplitz::default().hash_frame(&frame);
        }
    }

    fn frame(family: Family) -> Vec<u8> {
        let flows = Flows { sources: 20, destinations: 100 };
        let template = Template::new(&Stream::new(family, 84, flows), 7, [2; 6], [4; 6]);
        let stamp = Stamp { run_id: 7, sender: 0, phase: 1, flow: 102, sequence: 5, time_ns: 9 };
        template.frame(1, 2, &stamp)
    }

    #[test]
    fn frame_hash_matches_tuple_hash() {
        let rss = Toeplitz::default();
        let tuple = |source: &str, destination: &str, ports| {
            let [source, destination] = [source, destination].map(|a| a.parse().expect("one"));
            Some(rss.hash_tuple(source, destination, ports))
        };
        let changed = |family, at: usize, byte: u8| {
            let mut frame = frame(family);
            frame[at] = byte;
            rss.hash_frame(&frame)
        };
        let (source, destination) = ("198.18.1.1", "198.19.1.2");
        let plain = tuple(source, destination, None);
        assert_eq!(
            rss.hash_frame(&frame(Family::Inet)),
            tuple(source, destination, Some((0xc020, 7)))
        );
        // TCP has ports, ICMP has none, and no fragment has any.
        assert_ne!(changed(Family::Inet, 23, 6), plain);
        assert_eq!(changed(Family::Inet, 23, 1), plain);
        assert_eq!(changed(Family::Inet, 20, 0x20), plain);
        assert_eq!(changed(Family::Inet, 21, 1), plain);
        // With options the ports are further back: here, where the stamp begins.
        assert_eq!(changed(Family::Inet, 14, 0x47), tuple(source, destination, Some((0xf1ab, 0))));
        assert_eq!(changed(Family::Inet, 12, 9), None);
        assert_eq!(rss.hash_frame(&frame(Family::Inet)[..33]), None);
        assert_eq!(rss.hash_frame(&frame(Family::Inet)[..37]), plain);
        let (source, destination) = ("2001:2:0:1::1:1", "2001:2:0:8001::1:2");
        let with_ports = tuple(source, destination, Some((0xc020, 7)));
        assert_eq!(rss.hash_frame(&frame(Family::Inet6)), with_ports);
        assert_eq!(changed(Family::Inet6, 20, 44), tuple(source, destination, None));
    }

    #[test]
    fn entries_are_spread_over_queues() {
        for queues in 1..=8 {
            let mut counts = vec![0_usize; queues];
            (0..ENTRIES as u32)
                .for_each(|entry| counts[queue_of(0xffff_ff80 | entry, queues)] += 1);
            assert!(counts.iter().all(|count| count.abs_diff(ENTRIES / queues) <= 1));
        }
        assert_eq!(queue_of(77, 0), 0);
    }
}
