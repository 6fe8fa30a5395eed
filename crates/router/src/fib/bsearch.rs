//! Binary search over the ranges of addresses that have the same next hop.
//!
//! For small tables: everything fits in the first-level cache, and the search has no branch that
//! depends on an address, so nothing is mispredicted. Any change rebuilds the ranges.

use super::rib::Route;
use super::table::Array;
use super::{Address, Batch, Fib, NextHop, Prefix, Rib};
use std::hint::select_unpredictable;
use std::iter;

/// Searches that advance together, step by step.
const LANES: usize = 8;

/// Ranges of addresses, by their first address.
#[derive(Clone, Debug)]
pub struct BSearch<A> {
    rib: Rib<A>,
    /// First addresses, ascending, beginning with 0; padded to a power of two with the highest
    /// address, so that each search takes the same number of steps.
    starts: Array<A>,
    /// The next hop of each range; the padding repeats the last range's.
    raws: Array<u32>,
}

impl<A: Address> BSearch<A> {
    /// An empty table.
    pub fn new() -> BSearch<A> {
        BSearch::of(Rib::new())
    }

    /// Builds the table from these routes.
    pub fn of(rib: Rib<A>) -> BSearch<A> {
        let (mut starts, mut raws) = ranges(&rib.all());
        let filled = starts.len().next_power_of_two();
        starts.resize(filled, A::default().last(0));
        raws.resize(filled, raws[raws.len() - 1]);
        BSearch { rib, starts: starts.into(), raws: raws.into() }
    }

    /// Returns the routes, for another algorithm; the table is unusable afterwards.
    pub(crate) fn take_rib(&mut self) -> Rib<A> {
        std::mem::take(&mut self.rib)
    }
}

/// First address and next hop of each range; adjacent ranges differ.
fn ranges<A: Address>(routes: &[Route<A>]) -> (Vec<A>, Vec<u32>) {
    let mut ranges = vec![(A::default(), 0)];
    let mut begin = |start: A, raw: u32| {
        // A range that begins at the same address is narrower, and replaces the earlier one.
        while ranges.last().is_some_and(|&(last, _)| last == start) {
            ranges.pop();
        }
        if ranges.last().is_none_or(|&(_, before)| before != raw) {
            ranges.push((start, raw));
        }
    };
    // Last address and next hop of the routes that contain the current address.
    let mut open: Vec<(A, u32)> = Vec::new();
    let ends = iter::once(None);
    for route in routes.iter().map(Some).chain(ends) {
        while let Some(&(last, _)) = open.last()
            && route.is_none_or(|route| route.address > last)
        {
            open.pop();
            let outer = open.last().map_or(0, |&(_, raw)| raw);
            if let Some(next) = last.next() {
                begin(next, outer);
            }
        }
        if let Some(route) = route {
            begin(route.address, route.raw);
            open.push((route.address.last(route.length), route.raw));
        }
    }
    ranges.into_iter().unzip()
}

impl<A: Address> Fib<A> for BSearch<A> {
    #[inline]
    fn lookup(&self, address: A) -> Option<NextHop> {
        let mut at = 0;
        let mut half = self.starts.len() / 2;
        while half > 0 {
            at = select_unpredictable(self.starts[at + half].at_most(address), at + half, at);
            half /= 2;
        }
        NextHop::unpack(self.raws[at])
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        let (addresses, addresses_rest) = addresses.as_chunks::<LANES>();
        let (next_hops, next_hops_rest) = next_hops.as_chunks_mut::<LANES>();
        for (addresses, next_hops) in addresses.iter().zip(next_hops) {
            let mut at = [0; LANES];
            let mut half = self.starts.len() / 2;
            while half > 0 {
                for (at, address) in at.iter_mut().zip(addresses) {
                    let beyond = self.starts[*at + half].at_most(*address);
                    *at = select_unpredictable(beyond, *at + half, *at);
                }
                half /= 2;
            }
            *next_hops = at.map(|at| NextHop::unpack(self.raws[at]));
        }
        for (address, next_hop) in addresses_rest.iter().zip(next_hops_rest) {
            *next_hop = self.lookup(*address);
        }
    }

    fn apply(&mut self, batch: &Batch<A>) {
        let mut rib = std::mem::take(&mut self.rib);
        rib.apply(batch);
        *self = BSearch::of(rib);
    }

    fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        self.rib.get(prefix)
    }

    fn len(&self) -> usize {
        self.rib.len()
    }

    fn memory_bytes(&self) -> usize {
        self.starts.memory_bytes() + self.raws.memory_bytes() + self.rib.memory_bytes()
    }
}

impl<A: Address> Default for BSearch<A> {
    fn default() -> BSearch<A> {
        BSearch::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::V4;

    #[test]
    fn ranges_follow_routes_and_merge_equal_neighbours() {
        let route = |text: &str, raw| {
            let prefix: Prefix<V4> = text.parse().expect("a prefix");
            Route { address: prefix.address(), length: prefix.length(), raw }
        };
        let routes = [
            route("10.0.0.0/8", 1),
            route("10.0.0.0/16", 2),
            route("10.1.0.0/16", 2),
            route("255.0.0.0/8", 3),
        ];
        let (starts, raws) = ranges(&routes);
        let starts: Vec<String> = starts.iter().map(V4::to_string).collect();
        assert_eq!(starts, ["0.0.0.0", "10.0.0.0", "10.2.0.0", "11.0.0.0", "255.0.0.0"]);
        assert_eq!(raws, [0, 2, 1, 0, 3]);
    }
}
