//! What identifies a connection, in one way for both of its directions.

use crate::fib::Address;
use std::hash::{BuildHasher, RandomState};

/// Family (by the type), protocol, addresses and marks; the lower address with its
/// mark comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::firewall) struct Key<A> {
    pub(super) ends: [A; 2],
    pub(super) marks: [u16; 2],
    pub(super) protocol: u8,
}

/// Three secret numbers: without them nobody can choose connections that collide.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct Seed([u64; 3]);

impl<A: Address> Key<A> {
    /// The key of a packet, and whether its source comes second in it.
    #[inline(always)]
    pub(in crate::firewall) fn of(ends: [A; 2], marks: [u16; 2], protocol: u8) -> (Key<A>, bool) {
        let turned = (ends[1], marks[1]) < (ends[0], marks[0]);
        let key = if turned {
            Key { ends: [ends[1], ends[0]], marks: [marks[1], marks[0]], protocol }
        } else {
            Key { ends, marks, protocol }
        };
        (key, turned)
    }

    /// Folded multiplications, as in wyhash (Wang Yi, public domain): two of IPv4,
    /// four of IPv6.
    #[inline(always)]
    pub(in crate::firewall) fn hash(&self, Seed([a, b, c]): &Seed) -> u64 {
        let [first, second] = self.ends.map(Address::to_bits);
        let rest = u64::from(self.marks[0])
            | u64::from(self.marks[1]) << 16
            | u64::from(self.protocol) << 32;
        let mixed = if A::BITS == 32 {
            fold((first as u64 | (second as u64) << 32) ^ a, rest ^ b)
        } else {
            let first = fold((first >> 64) as u64 ^ a, first as u64 ^ b);
            let second = fold((second >> 64) as u64 ^ b, second as u64 ^ c);
            fold(first ^ rest ^ c, second ^ a)
        };
        fold(mixed ^ c, 0x9e37_79b9_7f4a_7c15)
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
    use crate::fib::{V4, V6};
    use std::collections::HashSet;

    #[test]
    fn both_directions_have_one_key() {
        let (one, turned) = Key::of([V4(7), V4(5)], [1, 2], 17);
        let (other, other_turned) = Key::of([V4(5), V4(7)], [2, 1], 17);
        assert_eq!((one, turned, other_turned), (other, true, false));
        let (one, _) = Key::of([V6(5), V6(5)], [2, 1], 6);
        let (other, _) = Key::of([V6(5), V6(5)], [1, 2], 6);
        assert_eq!(one, other);
    }

    #[test]
    fn hashes_of_like_keys_spread_over_all_bits() {
        let seed = Seed::of(Some(1));
        let mut of_bits = [HashSet::new(), HashSet::new(), HashSet::new(), HashSet::new()];
        let count = 1 << 14;
        for number in 0..count {
            let ends = [0xc612_0000 + number / 128, 0xc613_0000 + number % 128];
            let inet = Key::of(ends.map(V4), [1, 2], 17).0.hash(&seed);
            let inet6 = Key::of(ends.map(|end| V6(end.into())), [1, 2], 17).0.hash(&seed);
            for (at, hash) in [inet, inet >> 48, inet6, inet6 >> 48].into_iter().enumerate() {
                of_bits[at].insert(hash & 0x3fff);
            }
        }
        // 1 - 1/e of the values are met by as many random numbers: 10,357 of 16,384.
        for seen in of_bits {
            assert!((10_100..10_600).contains(&seen.len()), "{}", seen.len());
        }
    }

    #[test]
    fn another_seed_gives_other_hashes() {
        let key = Key::of([V4(1), V4(2)], [3, 4], 17).0;
        let hashes: HashSet<u64> = (0..100).map(|n| key.hash(&Seed::of(Some(n)))).collect();
        assert_eq!(hashes.len(), 100);
    }
}
