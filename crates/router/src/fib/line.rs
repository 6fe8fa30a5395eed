//! A few ranges of addresses and their next hops, on one cache line.

use super::Address;
use super::rib::Route;

/// Ranges on a line.
pub(crate) const RANGES: usize = 8;
/// Longest prefix at which a range may begin or end.
const LENGTH_MAX: u8 = 64;

/// Ranges in order; the rest of the line is padded so that it never matches. A range is 48 bits of
/// its first address, bits 16 to 63, followed by its next hop, packed: all addresses of a line
/// share the bits before those.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line([u64; RANGES]);

impl Default for Line {
    fn default() -> Line {
        Line([0; RANGES])
    }
}

impl Line {
    /// Builds the line of up to [`RANGES`] ranges.
    pub(crate) fn of(ranges: &[Range]) -> Line {
        let mut line = [u64::MAX; RANGES];
        for (entry, range) in line.iter_mut().zip(ranges) {
            *entry = range.first << 16 | u64::from(range.raw);
        }
        Line(line)
    }

    /// Next hop, packed, of the address whose first bits are `high`. The first range must begin at
    /// or before it.
    #[inline(always)]
    pub(crate) fn find(&self, high: u64) -> u32 {
        // The padding is all ones, and no range in use sorts after it.
        let key = high << 16 | 0xfffe;
        let mut at = 0;
        for half in [4, 2, 1] {
            at += half * usize::from(self.0[(at + half) % RANGES] <= key);
        }
        self.0[at % RANGES] as u32 & 0xffff
    }
}

/// Addresses from `first` on with one next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The first 64 bits of the first address.
    pub(crate) first: u64,
    /// The next hop, packed.
    pub(crate) raw: u16,
}

/// First 64 bits of an address, padded with zeros.
#[inline(always)]
pub(crate) fn high<A: Address>(address: A) -> u64 {
    (address.to_bits() << (128 - A::BITS) >> 64) as u64
}

/// [`high`] of an address, and the highest number that shares its first bits.
pub(crate) fn bounds<A: Address>(address: A, length: u8) -> (u64, u64) {
    let first = high(address);
    (first, first | u64::MAX.checked_shr(length.into()).unwrap_or(0))
}

/// Ranges from the address that begins with `first` to the one that begins with `last`: `routes`,
/// in order and all within, and `inherited` between them. `None` if a line can't represent these
/// ranges, however few they are.
pub(crate) fn ranges<A: Address>(
    (first, last): (u64, u64),
    inherited: u32,
    routes: &[Route<A>],
) -> Option<Vec<Range>> {
    // The highest number is reserved for the padding.
    let small = |raw: u32| u16::try_from(raw).ok().filter(|&raw| raw < u16::MAX);
    let inherited = small(inherited)?;
    let mut ranges = vec![Range { first, raw: inherited }];
    let mut begin = |first, raw| {
        // A range that begins at the same address is narrower, and replaces the earlier one.
        ranges.pop_if(|range| range.first == first);
        if ranges.last().is_none_or(|before| before.raw != raw) {
            ranges.push(Range { first, raw });
        }
    };
    // Last address and next hop of the routes that contain the current address.
    let mut open: Vec<(u64, u16)> = Vec::new();
    for route in routes.iter().map(Some).chain([None]) {
        while let Some((end, _)) =
            open.pop_if(|&mut (end, _)| route.is_none_or(|route| high(route.address) > end))
        {
            if end < last {
                begin(end + 1, open.last().map_or(inherited, |&(_, raw)| raw));
            }
        }
        if let Some(route) = route {
            let raw = small(route.raw).filter(|_| route.length <= LENGTH_MAX)?;
            let (first, last) = bounds(route.address, route.length);
            begin(first, raw);
            open.push((last, raw));
        }
    }
    Some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::{Prefix, V6};

    fn route(text: &str, raw: u32) -> Route<V6> {
        let prefix: Prefix<V6> = text.parse().expect("a prefix");
        Route { address: prefix.address(), length: prefix.length(), raw }
    }

    const ALL: (u64, u64) = (0x2001_0d00 << 32, 0x2001_0dff_ffff_ffff);

    #[test]
    fn ranges_follow_routes_and_merge_equal_neighbours() {
        let routes = [
            route("2001:d00::/32", 2),
            route("2001:d00::/48", 3),
            route("2001:d01::/32", 2),
            route("2001:dff::/32", 4),
        ];
        let ranges = ranges(ALL, 1, &routes).expect("a line can hold them");
        let found: Vec<(u64, u16)> = ranges.iter().map(|it| (it.first >> 16, it.raw)).collect();
        let expected = [
            (0x2001_0d00_0000, 3),
            (0x2001_0d00_0001, 2),
            (0x2001_0d02_0000, 1),
            (0x2001_0dff_0000, 4),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn find_returns_the_last_range_at_or_before_the_address() {
        for count in 1..=RANGES as u64 {
            let range = |n: u64| Range { first: ALL.0 + (n << 16), raw: n as u16 + 1 };
            let line = Line::of(&(0..count).map(range).collect::<Vec<_>>());
            for n in 0..count {
                assert_eq!(line.find(ALL.0 + (n << 16)), n as u32 + 1);
                assert_eq!(line.find(ALL.0 + (n << 16) + 0xffff), n as u32 + 1);
            }
            assert_eq!(line.find(u64::MAX), count as u32, "the filling is never found");
        }
    }

    #[test]
    fn ranges_that_do_not_fit_return_none() {
        assert_eq!(ranges(ALL, 1, &[route("2001:d00::/65", 2)]), None);
        assert_eq!(ranges(ALL, 1, &[route("2001:d00::/64", 0xffff)]), None);
        assert_eq!(ranges::<V6>(ALL, 0xffff, &[]), None);
        assert!(ranges(ALL, 0xfffe, &[route("2001:d00::/64", 0xfffe)]).is_some());
    }
}
