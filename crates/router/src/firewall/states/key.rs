//! Key of a connection: stored in the direction of its first packet; the hash is the same
//! for both directions.

use crate::fib::{Address, V4, V6};
use crate::firewall::packet::{Packet, bit, ends, ends6};
use fwdlab_netio::frame::CAPACITY;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

/// Addresses of source and destination in packet byte order, followed by [`Packet::word`], of which
/// only marks and protocol count: two words for IPv4, five for IPv6.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct Key<const N: usize>([u64; N]);

/// The key of an IPv4 packet.
pub(in crate::firewall) type Inet = Key<2>;
/// The key of an IPv6 packet.
pub(in crate::firewall) type Inet6 = Key<5>;

/// Bits of the last word that belong to the key.
const COUNTS: u64 = (u32::MAX as u64) << 32 | bit::PROTOCOL as u64;

/// A packet's key, for either family.
pub(in crate::firewall) trait Of: Sized {
    fn of(bytes: &[u8; CAPACITY], packet: &Packet) -> Self;
}

/// Random seed of the hash: three secret numbers, which prevent chosen collisions.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct Seed([u64; 3]);

impl Of for Inet {
    #[inline(always)]
    fn of(bytes: &[u8; CAPACITY], packet: &Packet) -> Inet {
        Key([ends(bytes), packet.word])
    }
}

impl Of for Inet6 {
    #[inline(always)]
    fn of(bytes: &[u8; CAPACITY], packet: &Packet) -> Inet6 {
        let [a, b, c, d] = ends6(bytes);
        Key([a, b, c, d, packet.word])
    }
}

impl<const N: usize> Key<N> {
    /// Key of a packet with ports. `addresses` has one word less than the key.
    pub(in crate::firewall) fn with_ports(
        addresses: &[u64],
        protocol: u8,
        ports: u32,
    ) -> Option<Key<N>> {
        let mut key = [0; N];
        let (last, first) = key.split_last_mut()?;
        *last = u64::from(protocol) << 8 | u64::from(ports) << 32;
        (first.len() == addresses.len()).then(|| first.copy_from_slice(addresses))?;
        Some(Key(key))
    }

    /// A key that belongs to no packet.
    pub(in crate::firewall) const EMPTY: Key<N> = Key([0; N]);

    /// A key that equals no packet's: the bits outside [`COUNTS`] are 1.
    pub(super) const NONE: Key<N> = Key([!COUNTS; N]);

    /// The key without the bits that do not count.
    #[inline(always)]
    pub(super) fn counting(&self) -> Key<N> {
        let mut key = *self;
        key.0[N - 1] &= COUNTS;
        key
    }

    /// Bits in which any two words differ, including those that do not count.
    #[inline(always)]
    pub(super) fn unlike(&self, other: &Key<N>) -> u64 {
        (0..N).fold(0, |sum, at| sum | (self.0[at] ^ other.0[at]))
    }

    /// A quick hash of one direction, of which the upper bits are the best.
    #[inline(always)]
    pub(super) fn spread(&self, multiplier: u64) -> u64 {
        self.0
            .iter()
            .fold(0, |sum: u64, word| (sum.rotate_left(23) ^ word).wrapping_mul(multiplier))
    }

    /// [`Packet::word`]
    #[inline(always)]
    pub(super) fn word(&self) -> u64 {
        self.0[N - 1]
    }

    /// The source's address; for IPv6 its first half.
    pub(super) fn source(&self) -> u64 {
        if N == 2 { u64::from(self.0[0] as u32) } else { self.0[0] }
    }

    #[inline(always)]
    pub(super) fn protocol(&self) -> u8 {
        (self.word() >> 8) as u8
    }

    /// Compares all words without branches: the first difference can't be predicted.
    #[inline(always)]
    pub(super) fn is(&self, other: &Key<N>) -> bool {
        let ends = (0..N - 1).fold(0, |sum, at| sum | (self.0[at] ^ other.0[at]));
        ends | (self.word() ^ other.word()) & COUNTS == 0
    }

    /// Key of packets in the other direction.
    #[inline(always)]
    pub(super) fn turned(&self) -> Key<N> {
        let mut turned = *self;
        let marks = ((self.word() >> 32) as u32).rotate_left(16);
        turned.0[N - 1] = self.word() & u64::from(u32::MAX) | u64::from(marks) << 32;
        match &mut turned.0[..] {
            [a, b, c, d, _] => (*a, *b, *c, *d) = (*c, *d, *a, *b),
            [ends, _] => *ends = ends.rotate_left(32),
            _ => {}
        }
        turned
    }

    /// Hash that is equal in both directions, as multiplication is commutative. Folded products, as
    /// in wyhash (Wang Yi, public domain): one over the ends, or three for IPv6, and another one
    /// that spreads similar keys.
    #[inline(always)]
    pub(in crate::firewall) fn hash(&self, Seed([a, b, c]): &Seed) -> u64 {
        let mark = 0xffff << 32;
        let marks = [self.word() & mark, self.word() >> 16 & mark];
        let product = match self.0[..] {
            [ends, _] => {
                let (one, other) = (u64::from(ends as u32) | marks[0], ends >> 32 | marks[1]);
                fold(one ^ a, other ^ a)
            }
            [first, second, third, fourth, _] => {
                let (one, other) = (fold(first ^ a, second ^ b), fold(third ^ a, fourth ^ b));
                fold(one ^ marks[0] ^ c, other ^ marks[1] ^ c)
            }
            _ => 0,
        };
        fold(product ^ c ^ self.word() & u64::from(bit::PROTOCOL), 0x9e37_79b9_7f4a_7c15)
    }

    /// Addresses and marks of source and destination.
    pub(super) fn parts(&self) -> ([IpAddr; 2], [u16; 2]) {
        let ends = match self.0[..] {
            [ends, _] => [ends, ends >> 32].map(|end| V4((end as u32).swap_bytes()).to_ip()),
            [a, b, c, d, _] => [(a, b), (c, d)].map(|(first, second)| {
                let bits = u128::from(first) | u128::from(second) << 64;
                V6(bits.swap_bytes()).to_ip()
            }),
            _ => [V4(0).to_ip(); 2],
        };
        let marks = [self.word() >> 32, self.word() >> 48];
        (ends, marks.map(|mark| (mark as u16).swap_bytes()))
    }
}

/// [`Key::counting`] and [`Packet::more`] of the most common packets, or `None`.
#[inline(always)]
pub(super) fn quick(bytes: &[u8; CAPACITY]) -> Option<(Inet, u32)> {
    let (protocol, marks, more) = Packet::quick(bytes)?;
    let word = u64::from(protocol) << 8 | u64::from(marks) << 32;
    Some((Key([ends(bytes), word]), more))
}

/// Xor of the two halves of the product.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Seed {
    /// An odd number for [`Key::spread`].
    pub(super) fn multiplier(&self) -> u64 {
        self.0[1] | 1
    }

    /// A seed from a number, or a random one from the operating system.
    pub(in crate::firewall) fn of(number: Option<u64>) -> Seed {
        let number = number.unwrap_or_else(|| RandomState::new().hash_one(0));
        let mut last = number;
        Seed([(); 3].map(|()| {
            last = fold(last ^ 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3).rotate_left(23);
            // Roughly as many ones as zeros, and never 0.
            last | 1 << 63
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firewall::packet::protocol::{TCP, UDP};
    use std::collections::HashSet;

    fn inet(ends: [u32; 2], marks: [u16; 2], protocol: u8) -> Inet {
        let mut bytes = [0; CAPACITY];
        bytes[26..30].copy_from_slice(&ends[0].to_be_bytes());
        bytes[30..34].copy_from_slice(&ends[1].to_be_bytes());
        Key::of(&bytes, &packet(marks, protocol))
    }

    fn inet6(ends: [u128; 2], marks: [u16; 2], protocol: u8) -> Inet6 {
        let mut bytes = [0; CAPACITY];
        bytes[22..38].copy_from_slice(&ends[0].to_be_bytes());
        bytes[38..54].copy_from_slice(&ends[1].to_be_bytes());
        Key::of(&bytes, &packet(marks, protocol))
    }

    fn packet([source, destination]: [u16; 2], protocol: u8) -> Packet {
        let [[a, b], [c, d]] = [source.to_be_bytes(), destination.to_be_bytes()];
        Packet::new(u32::from(protocol) << 8, u32::from_le_bytes([a, b, c, d]), 0, 0)
    }

    #[test]
    fn directions_share_a_hash_and_turned_swaps_them() {
        let seed = Seed::of(Some(1));
        let (one, other) = (inet([7, 5], [1, 2], UDP), inet([5, 7], [2, 1], UDP));
        assert_eq!(one.hash(&seed), other.hash(&seed));
        assert!(one.is(&other.turned()) && one.is(&one) && !one.is(&other));
        for unlike in [
            inet([5, 7], [1, 2], UDP),
            inet([5, 7], [2, 1], TCP),
            inet([5, 8], [2, 1], UDP),
            inet([4, 7], [2, 1], UDP),
        ] {
            assert_ne!(one.hash(&seed), unlike.hash(&seed));
            assert!(!one.is(&unlike.turned()) && !one.is(&unlike));
        }
        let (one, other) = (inet6([7, 5], [1, 2], UDP), inet6([5, 7], [2, 1], UDP));
        assert_eq!(one.hash(&seed), other.hash(&seed));
        assert!(one.is(&other.turned()) && one.is(&one) && !one.is(&other));
        for unlike in [
            inet6([5, 7], [1, 2], UDP),
            inet6([5, 7], [2, 1], TCP),
            inet6([5 << 64, 7], [2, 1], UDP),
            inet6([5, 7 << 64], [2, 1], UDP),
        ] {
            assert_ne!(one.hash(&seed), unlike.hash(&seed));
            assert!(!one.is(&unlike.turned()) && !one.is(&unlike));
        }
    }

    #[test]
    fn parts_returns_addresses_and_ports() {
        let one = inet([0xc612_0001, 0xc613_0002], [80, 40_000], TCP);
        let (ends, marks) = one.parts();
        assert_eq!(ends.map(|end| end.to_string()), ["198.18.0.1", "198.19.0.2"]);
        assert_eq!((marks, one.protocol()), ([80, 40_000], TCP));
        let one = inet6([0x2001 << 112 | 1, 0x2001 << 112 | 2], [80, 40_000], UDP);
        let (ends, marks) = one.parts();
        assert_eq!(ends.map(|end| end.to_string()), ["2001::1", "2001::2"]);
        assert_eq!((marks, one.protocol()), ([80, 40_000], UDP));
    }

    #[test]
    fn hashes_of_similar_keys_spread_over_all_bits() {
        let seed = Seed::of(Some(1));
        let mut of_bits = [(); 6].map(|()| HashSet::new());
        let count = 1 << 14;
        for number in 0..count {
            let ends = [0xc612_0000 + number / 128, 0xc613_0000 + number % 128];
            let of_inet = inet(ends, [1, 2], UDP).hash(&seed);
            let of_inet6 = inet6(ends.map(u128::from), [1, 2], UDP).hash(&seed);
            let of_ports = inet([1, 2], [number as u16, 80], UDP).hash(&seed);
            for (at, hash) in [of_inet, of_inet6, of_ports].into_iter().enumerate() {
                of_bits[at * 2].insert(hash & 0x3fff);
                of_bits[at * 2 + 1].insert(hash >> 48 & 0x3fff);
            }
        }
        // N random numbers meet 1 - 1/e of N values: 10,357 of 16,384.
        for seen in of_bits {
            assert!((10_100..10_600).contains(&seen.len()), "{}", seen.len());
        }
    }

    #[test]
    fn seeds_change_the_hash() {
        let key = inet([1, 2], [3, 4], UDP);
        let hashes: HashSet<u64> = (0..100).map(|n| key.hash(&Seed::of(Some(n)))).collect();
        assert_eq!(hashes.len(), 100);
    }
}
