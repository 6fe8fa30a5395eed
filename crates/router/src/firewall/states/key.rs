//! What identifies a connection, in one way for both of its directions.

use crate::fib::{Address, V4, V6};
use crate::firewall::packet::{Packet, ends, ends6};
use fwdlab_port::frame::CAPACITY;
use std::hash::{BuildHasher, RandomState};
use std::hint::select_unpredictable;
use std::net::IpAddr;

/// Addresses, marks and protocol as words: two of IPv4, five of IPv6. Bytes stand as in
/// the packet. The end that is lower as words are compared comes first; which that is
/// means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::firewall) struct Key<const N: usize>([u64; N]);

/// The key of an IPv4 packet.
pub(in crate::firewall) type Inet = Key<2>;
/// The key of an IPv6 packet.
pub(in crate::firewall) type Inet6 = Key<5>;

/// A packet's key of whichever family.
pub(in crate::firewall) trait Of: Sized {
    /// The key, and whether the packet's source comes second in it.
    fn of(bytes: &[u8; CAPACITY], packet: &Packet) -> (Self, bool);
}

/// Three secret numbers: without them nobody can choose connections that collide.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct Seed([u64; 3]);

impl Of for Inet {
    #[inline(always)]
    fn of(bytes: &[u8; CAPACITY], packet: &Packet) -> (Inet, bool) {
        let ends = ends(bytes);
        let others = ends.rotate_left(32);
        let turned = is_turned(&ends, &others, packet);
        (Key([select_unpredictable(turned, others, ends), rest(packet, turned)]), turned)
    }
}

impl Of for Inet6 {
    #[inline(always)]
    fn of(bytes: &[u8; CAPACITY], packet: &Packet) -> (Inet6, bool) {
        let [a, b, c, d] = ends6(bytes);
        let turned = is_turned(&[a, b], &[c, d], packet);
        let [a, b, c, d] = if turned { [c, d, a, b] } else { [a, b, c, d] };
        (Key([a, b, c, d, rest(packet, turned)]), turned)
    }
}

/// Whether `ends` come second; where a host talks to itself, the marks tell.
#[inline(always)]
fn is_turned<T: Ord>(ends: &T, others: &T, packet: &Packet) -> bool {
    if ends == others { packet.marks().rotate_left(16) < packet.marks() } else { others < ends }
}

/// The last word.
#[inline(always)]
fn rest(packet: &Packet, turned: bool) -> u64 {
    let marks = packet.marks();
    let marks = select_unpredictable(turned, marks.rotate_left(16), marks);
    u64::from(marks) | u64::from(packet.protocol()) << 32
}

impl<const N: usize> Key<N> {
    /// Number of words.
    pub(in crate::firewall) const WORDS: usize = N;
    /// No packet's.
    pub(in crate::firewall) const EMPTY: Key<N> = Key([0; N]);

    /// All words at once: where they differ can't be predicted.
    #[inline(always)]
    pub(super) fn is(&self, other: &Key<N>) -> bool {
        self.0.iter().zip(&other.0).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }

    /// Folded multiplications, as in wyhash (Wang Yi, public domain): one of IPv4,
    /// three of IPv6.
    #[inline(always)]
    pub(in crate::firewall) fn hash(&self, Seed([a, b, c]): &Seed) -> u64 {
        match self.0[..] {
            [first, second, third, fourth, rest] => {
                let (one, other) = (fold(first ^ a, second ^ b), fold(third ^ b, fourth ^ c));
                fold(one ^ rest ^ c, other ^ a)
            }
            [ends, rest] => fold(ends ^ a, rest ^ b),
            _ => 0,
        }
    }

    #[inline(always)]
    pub(super) fn protocol(&self) -> u8 {
        (self.rest() >> 32) as u8
    }

    /// Addresses and marks in the order of the key.
    pub(super) fn parts(&self) -> ([IpAddr; 2], [u16; 2]) {
        let rest = self.rest();
        let ends = match self.0[..] {
            [ends, _] => [ends, ends >> 32].map(|end| V4((end as u32).swap_bytes()).to_ip()),
            [a, b, c, d, _] => [(a, b), (c, d)].map(|(first, second)| {
                let bits = u128::from(first) | u128::from(second) << 64;
                V6(bits.swap_bytes()).to_ip()
            }),
            _ => [V4(0).to_ip(); 2],
        };
        (ends, [rest, rest >> 16].map(|mark| (mark as u16).swap_bytes()))
    }

    #[inline(always)]
    fn rest(&self) -> u64 {
        self.0[N - 1]
    }
}

/// The two halves of the product.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Seed {
    /// Of a number, or of the operating system's random ones.
    pub(in crate::firewall) fn of(number: Option<u64>) -> Seed {
        let number = number.unwrap_or_else(|| RandomState::new().hash_one(0));
        let mut last = number;
        Seed([(); 3].map(|()| {
            last = fold(last ^ 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3).rotate_left(23);
            // As many ones as zeros, roughly, and never 0.
            last | 1 << 63
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firewall::packet::protocol::{TCP, UDP};
    use std::collections::HashSet;

    fn inet(ends: [u32; 2], marks: [u16; 2], protocol: u8) -> (Inet, bool) {
        let mut bytes = [0; CAPACITY];
        bytes[26..30].copy_from_slice(&ends[0].to_be_bytes());
        bytes[30..34].copy_from_slice(&ends[1].to_be_bytes());
        Key::of(&bytes, &packet(marks, protocol))
    }

    fn inet6(ends: [u128; 2], marks: [u16; 2], protocol: u8) -> (Inet6, bool) {
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
    fn both_directions_have_one_key() {
        let (one, turned) = inet([7, 5], [1, 2], UDP);
        let (other, other_turned) = inet([5, 7], [2, 1], UDP);
        assert_eq!((one, turned), (other, !other_turned));
        assert_ne!(one, inet([5, 7], [1, 2], UDP).0);
        assert_ne!(one, inet([5, 7], [2, 1], TCP).0);
        let (one, turned) = inet6([7, 5], [1, 2], UDP);
        let (other, other_turned) = inet6([5, 7], [2, 1], UDP);
        assert_eq!((one, turned), (other, !other_turned));
        // Of one host only the marks tell its ends apart.
        assert_eq!(inet([5, 5], [2, 1], TCP).0, inet([5, 5], [1, 2], TCP).0);
        assert_eq!(inet6([5, 5], [2, 1], TCP).0, inet6([5, 5], [1, 2], TCP).0);
    }

    #[test]
    fn a_key_holds_what_it_was_made_of() {
        let (one, turned) = inet([0xc612_0001, 0xc613_0002], [80, 40_000], TCP);
        let (ends, marks) = one.parts();
        let [first, second] = if turned { [1, 0] } else { [0, 1] };
        assert_eq!(
            [ends[first], ends[second]].map(|end| end.to_string()),
            ["198.18.0.1", "198.19.0.2"]
        );
        assert_eq!(([marks[first], marks[second]], one.protocol()), ([80, 40_000], TCP));
        let (one, turned) = inet6([0x2001 << 112 | 1, 0x2001 << 112 | 2], [80, 40_000], UDP);
        let (ends, marks) = one.parts();
        let [first, second] = if turned { [1, 0] } else { [0, 1] };
        assert_eq!([ends[first], ends[second]].map(|end| end.to_string()), ["2001::1", "2001::2"]);
        assert_eq!(([marks[first], marks[second]], one.protocol()), ([80, 40_000], UDP));
    }

    #[test]
    fn hashes_of_like_keys_spread_over_all_bits() {
        let seed = Seed::of(Some(1));
        let mut of_bits = [(); 6].map(|()| HashSet::new());
        let count = 1 << 14;
        for number in 0..count {
            let ends = [0xc612_0000 + number / 128, 0xc613_0000 + number % 128];
            let of_inet = inet(ends, [1, 2], UDP).0.hash(&seed);
            let of_inet6 = inet6(ends.map(u128::from), [1, 2], UDP).0.hash(&seed);
            let of_ports = inet([1, 2], [number as u16, 80], UDP).0.hash(&seed);
            for (at, hash) in [of_inet, of_inet6, of_ports].into_iter().enumerate() {
                of_bits[at * 2].insert(hash & 0x3fff);
                of_bits[at * 2 + 1].insert(hash >> 48 & 0x3fff);
            }
        }
        // 1 - 1/e of the values are met by as many random numbers: 10,357 of 16,384. Like
        // keys may spread more evenly than chance would have it.
        for seen in of_bits {
            assert!(seen.len() > 10_000, "{}", seen.len());
        }
    }

    #[test]
    fn another_seed_gives_other_hashes() {
        let key = inet([1, 2], [3, 4], UDP).0;
        let hashes: HashSet<u64> = (0..100).map(|n| key.hash(&Seed::of(Some(n)))).collect();
        assert_eq!(hashes.len(), 100);
    }
}
