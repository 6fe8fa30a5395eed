//! Synthetic routes with a realistic distribution of prefix lengths.
//!
//! The speed of a table depends on the lengths of its prefixes and on their nesting. The shares of
//! lengths below are rounded from weekly reports on the Internet's table (the CIDR Report, and
//! Huston's yearly "BGP in ..." at APNIC, for 2023 to 2025); there about half of the IPv4 routes
//! are within a shorter one, and nearly all IPv6 routes within an allocation of 32 bits or fewer.
//! Nearly half of the real table could be aggregated: networks announce allocations in adjacent
//! pieces with the same path. Here, therefore, every second route is the neighbour of an earlier
//! one of its length, and three of four neighbours have its next hop. Other addresses are drawn
//! uniformly, with less structure than allocations have, which is slightly harder for every
//! algorithm. The real table has almost no routes of the longest lengths, as they are filtered; a
//! router's own interfaces add some, and so do the shares here.

use super::{NextHops, Routes};
use crate::fib::{Address, NextHop, Prefix, V4, V6};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length and share of IPv4 routes, per ten thousand routes or so.
const INET: &[(u8, u64)] = &[
    (8, 1),
    (9, 1),
    (10, 1),
    (11, 1),
    (12, 3),
    (13, 6),
    (14, 12),
    (15, 21),
    (16, 136),
    (17, 85),
    (18, 142),
    (19, 260),
    (20, 460),
    (21, 530),
    (22, 1120),
    (23, 1020),
    (24, 6180),
    (25, 6),
    (26, 4),
    (27, 3),
    (28, 2),
    (29, 2),
    (30, 2),
    (32, 4),
];

/// Length and share of IPv6 routes, per ten thousand routes or so.
const INET6: &[(u8, u64)] = &[
    (20, 4),
    (22, 5),
    (24, 18),
    (26, 6),
    (27, 8),
    (28, 60),
    (29, 240),
    (30, 60),
    (31, 30),
    (32, 1150),
    (33, 190),
    (34, 170),
    (35, 120),
    (36, 430),
    (37, 90),
    (38, 170),
    (39, 80),
    (40, 1050),
    (41, 60),
    (42, 390),
    (43, 110),
    (44, 1080),
    (45, 210),
    (46, 340),
    (47, 290),
    (48, 4550),
    (52, 3),
    (56, 15),
    (60, 2),
    (64, 30),
    (127, 2),
    (128, 10),
];

/// Blocks from which IPv6 addresses are allocated: first bits and their number.
const REGISTRIES: [(u128, u8); 6] =
    [(0x2001, 16), (0x240, 12), (0x260, 12), (0x280, 12), (0x2a0, 12), (0x2c0, 12)];

/// Blocks for the /48 of provider-independent networks: first bits and their number.
const INDEPENDENT: [(u128, u8); 2] = [(0x2001_0600 >> 5, 27), (0x2620_0000 >> 9, 23)];

/// Maximum number of routes per family.
pub const ROUTES_MAX: usize = 1_000_000;
/// Attempts to place a route next to another route or within a shorter one, which may be full; and
/// the same number of attempts to place it in a block, which may also be full: of 1,000,000 IPv6
/// routes 17,000 have 33 bits, and the blocks have room for 1,088 of them.
const ATTEMPTS: usize = 16;

/// Request for synthetic routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synthesis {
    /// IPv4 routes, up to [`ROUTES_MAX`].
    pub inet: usize,
    /// IPv6 routes, up to [`ROUTES_MAX`].
    pub inet6: usize,
    /// Next hops that the routes of each family lead to; 0 counts as 1.
    pub next_hops: u16,
    /// The same seed gives the same routes.
    pub seed: u64,
}

/// Generates exactly the requested number of routes.
pub fn synthesise(request: &Synthesis) -> Routes {
    let mut random = Xoshiro256StarStar::seed_from_u64(request.seed);
    let mut next_hops = NextHops::default();
    let count = request.next_hops.max(1);
    // Addresses of the benchmark blocks (RFC 2544, RFC 5180), numbered in the last 16 bits.
    let inet_hops = hops(&mut next_hops, count, |n| IpAddr::V4(Ipv4Addr::new(198, 19, n[0], n[1])));
    let inet = family(request.inet, INET, inet_block, &inet_hops, &mut random);
    let inet6_hops = hops(&mut next_hops, count, |n| {
        let last = u16::from_be_bytes(n);
        IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, last))
    });
    let inet6 = family(request.inet6, INET6, inet6_block, &inet6_hops, &mut random);
    Routes { inet, inet6, next_hops }
}

fn hops(known: &mut NextHops, count: u16, address: impl Fn([u8; 2]) -> IpAddr) -> Vec<NextHop> {
    (0..count).filter_map(|number| known.number(address(number.to_be_bytes()))).collect()
}

/// Unicast addresses except "this network" and private ones: 1.0.0.0 to 223.255.255.255 without
/// 10/8 and 127/8.
fn inet_block(_: u8, random: &mut Xoshiro256StarStar) -> V4 {
    loop {
        let address = random.next_u32();
        if !matches!(address >> 24, 0 | 10 | 127 | 224..) {
            return V4(address);
        }
    }
}

fn inet6_block(length: u8, random: &mut Xoshiro256StarStar) -> V6 {
    let blocks: &[(u128, u8)] = if length > 32 { &INDEPENDENT } else { &REGISTRIES };
    let (first, length) = blocks[random.next_u64() as usize % blocks.len()];
    V6(first << (128 - length) | (bits(random) >> length))
}

fn bits(random: &mut Xoshiro256StarStar) -> u128 {
    u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
}

fn family<A: Address>(
    count: usize,
    shares: &[(u8, u64)],
    block: fn(u8, &mut Xoshiro256StarStar) -> A,
    next_hops: &[NextHop],
    random: &mut Xoshiro256StarStar,
) -> Vec<(Prefix<A>, NextHop)> {
    let count = count.min(ROUTES_MAX);
    let mut lengths: Vec<u8> = (0..count).map(|_| length(shares, random)).collect();
    // Shorter prefixes first, so that the others can be placed within them.
    lengths.sort_unstable();
    let mut routes: Vec<(Prefix<A>, NextHop)> = Vec::with_capacity(count);
    let mut taken = HashSet::with_capacity(count);
    let mut shorter = 0;
    for (at, &length) in lengths.iter().enumerate() {
        if at > 0 && lengths[at - 1] < length {
            shorter = at;
        }
        let any = |from: usize, random: &mut Xoshiro256StarStar| {
            from + random.next_u64() as usize % (at - from)
        };
        let mut next_hop = next_hops[random.next_u64() as usize % next_hops.len()];
        let neighbour = at > shorter && random.next_u64().is_multiple_of(2);
        // Half of the IPv4 routes, seven of eight IPv6 routes.
        let within_of_eight = if A::BITS == V4::BITS { 4 } else { 7 };
        let within = shorter > 0 && random.next_u64() % 8 < within_of_eight;
        let mut attempts = 0;
        let prefix = loop {
            let few = attempts < ATTEMPTS;
            let crowded = shorter > 0 && attempts >= 2 * ATTEMPTS;
            let address = if neighbour && few {
                let (neighbour_prefix, its_next_hop) = routes[any(shorter, random)];
                if !random.next_u64().is_multiple_of(4) {
                    next_hop = its_next_hop;
                }
                neighbour_prefix.last().next().unwrap_or_default()
            } else if within && few || crowded {
                inside(routes[random.next_u64() as usize % shorter].0, random)
            } else {
                block(length, random)
            };
            let prefix = Prefix::containing(address, length);
            if taken.insert(prefix) {
                break prefix;
            }
            attempts += 1;
        };
        routes.push((prefix, next_hop));
    }
    routes
}

/// A random address within a prefix.
pub(crate) fn inside<A: Address>(prefix: Prefix<A>, random: &mut Xoshiro256StarStar) -> A {
    let host = prefix.address().to_bits() ^ prefix.last().to_bits();
    A::from_bits(prefix.address().to_bits() | (bits(random) & host))
}

fn length(shares: &[(u8, u64)], random: &mut Xoshiro256StarStar) -> u8 {
    let all: u64 = shares.iter().map(|(_, share)| share).sum();
    let mut drawn = random.next_u64() % all;
    for &(length, share) in shares {
        if drawn < share {
            return length;
        }
        drawn -= share;
    }
    shares[shares.len() - 1].0
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Synthesis = Synthesis { inet: 50_000, inet6: 20_000, next_hops: 16, seed: 1 };

    fn share<A: Address>(routes: &[(Prefix<A>, NextHop)], of: impl Fn(Prefix<A>) -> bool) -> f64 {
        let count = routes.iter().filter(|(prefix, _)| of(*prefix)).count();
        count as f64 / routes.len() as f64
    }

    #[test]
    fn synthesis_is_deterministic_by_seed() {
        assert_eq!(synthesise(&REQUEST), synthesise(&REQUEST));
        let other = synthesise(&Synthesis { seed: 2, ..REQUEST });
        assert_ne!(synthesise(&REQUEST).inet, other.inet);
    }

    #[test]
    fn lengths_follow_shares_and_prefixes_are_unique() {
        let routes = synthesise(&REQUEST);
        assert_eq!((routes.inet.len(), routes.inet6.len()), (50_000, 20_000));
        assert_eq!(routes.next_hops.vias().len(), 32);
        let slash24 = share(&routes.inet, |prefix| prefix.length() == 24);
        assert!((0.60..0.63).contains(&slash24), "{slash24}");
        let slash48 = share(&routes.inet6, |prefix| prefix.length() == 48);
        assert!((0.40..0.43).contains(&slash48), "{slash48}");
        let distinct: HashSet<_> = routes.inet.iter().map(|(prefix, _)| *prefix).collect();
        assert_eq!(distinct.len(), routes.inet.len());
    }

    #[test]
    fn largest_request_is_fulfilled() {
        let request = Synthesis { inet: 0, inet6: ROUTES_MAX, ..REQUEST };
        assert_eq!(synthesise(&request).inet6.len(), ROUTES_MAX);
    }

    #[test]
    fn addresses_are_routable() {
        let routes = synthesise(&REQUEST);
        let odd = share(&routes.inet, |p| matches!(p.address().0 >> 24, 0 | 10 | 127 | 224..));
        assert_eq!(odd, 0.0);
        assert_eq!(share(&routes.inet6, |p| p.address().0 >> 125 != 1), 0.0, "2000::/3");
    }

    #[test]
    fn small_requests_are_fulfilled_exactly() {
        for count in [0, 1, 2, 8] {
            let request = Synthesis { inet: count, inet6: count, next_hops: 0, seed: 3 };
            let routes = synthesise(&request);
            assert_eq!((routes.inet.len(), routes.inet6.len()), (count, count));
        }
    }
}
