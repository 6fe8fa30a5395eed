//! The routes themselves, in order: the source from which tables are compiled.
//!
//! A compiled table does not know the route below a removed one; this does. It also answers
//! lookups, slowly, in the simplest way.

use super::{Address, Batch, Change, NextHop, Prefix};
use std::collections::BTreeMap;

/// Routes by prefix.
#[derive(Clone, Debug)]
pub struct Rib<A> {
    routes: BTreeMap<Prefix<A>, NextHop>,
}

/// A route as input to the compilation of tables; the next hop is packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route<A> {
    pub(crate) address: A,
    pub(crate) length: u8,
    pub(crate) raw: u32,
}

impl<A: Address> Rib<A> {
    /// No routes.
    pub fn new() -> Rib<A> {
        Rib { routes: BTreeMap::new() }
    }

    /// Applies all changes in order.
    pub fn apply(&mut self, batch: &Batch<A>) {
        if self.routes.is_empty() && batch.changes().iter().all(|c| matches!(c, Change::Insert(..)))
        {
            // Large batches: sorted and built bottom-up, as separate insertions take three times as
            // long.
            let inserted = batch.changes().iter().filter_map(|change| match *change {
                Change::Insert(prefix, next_hop) => Some((prefix, next_hop)),
                Change::Remove(_) => None,
            });
            self.routes = inserted.collect();
            return;
        }
        for change in batch.changes() {
            match *change {
                Change::Insert(prefix, next_hop) => self.routes.insert(prefix, next_hop),
                Change::Remove(prefix) => self.routes.remove(&prefix),
            };
        }
    }

    /// The next hop of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        self.routes.get(&prefix).copied()
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// True if there are no routes.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The routes in the order of [`Prefix`].
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, NextHop)> {
        self.routes.iter().map(|(&prefix, &next_hop)| (prefix, next_hop))
    }

    /// The longest prefix of at most `length_max` bits that contains `address`.
    pub fn longest(&self, address: A, length_max: u8) -> Option<(Prefix<A>, NextHop)> {
        let mut bound = Prefix::containing(address, length_max);
        loop {
            let (&found, &next_hop) = self.routes.range(..=bound).next_back()?;
            if found.contains(address) {
                return Some((found, next_hop));
            }
            // Any prefix that contains the address sorts before `found`, and ends at the latest
            // where the two differ.
            bound = Prefix::containing(address, found.address().common(address));
        }
    }

    /// All routes, in order.
    pub(crate) fn all(&self) -> Vec<Route<A>> {
        self.routes.iter().map(|(&prefix, &next_hop)| Route::of(prefix, next_hop)).collect()
    }

    /// Routes within `prefix`, including `prefix` itself, in order.
    pub(crate) fn within(&self, prefix: Prefix<A>) -> Vec<Route<A>> {
        let last = Prefix::containing(prefix.last(), A::BITS);
        let range = self.routes.range(prefix..=last);
        range.map(|(&prefix, &next_hop)| Route::of(prefix, next_hop)).collect()
    }

    /// Estimated memory: a map's nodes are three quarters full on average.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.routes.len() * size_of::<(Prefix<A>, NextHop)>() * 4 / 3
    }
}

impl<A: Address> Default for Rib<A> {
    fn default() -> Rib<A> {
        Rib::new()
    }
}

impl<A: Address> Route<A> {
    fn of(prefix: Prefix<A>, next_hop: NextHop) -> Route<A> {
        let raw = NextHop::pack(Some(next_hop));
        Route { address: prefix.address(), length: prefix.length(), raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::V4;

    fn rib(prefixes: &[&str]) -> Rib<V4> {
        let mut rib = Rib::new();
        let routes = prefixes.iter().zip(0..).filter_map(|(text, number)| {
            Some((text.parse::<Prefix<V4>>().expect("a prefix"), NextHop::new(number)?))
        });
        rib.apply(&routes.collect());
        rib
    }

    #[test]
    fn longest_skips_neighbours_without_the_address() {
        let rib = rib(&["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.128/25"]);
        let found = |text: &str, length_max| {
            let address: std::net::Ipv4Addr = text.parse().expect("an address");
            rib.longest(address.into(), length_max).map(|(prefix, _)| prefix.to_string())
        };
        assert_eq!(found("10.1.3.1", 32).as_deref(), Some("10.1.0.0/16"));
        assert_eq!(found("10.1.2.200", 32).as_deref(), Some("10.1.2.128/25"));
        assert_eq!(found("10.1.2.200", 24).as_deref(), Some("10.1.2.0/24"));
        assert_eq!(found("10.1.2.200", 7).as_deref(), Some("0.0.0.0/0"));
        assert_eq!(found("255.255.255.255", 32).as_deref(), Some("0.0.0.0/0"));
    }

    #[test]
    fn within_lists_routes_in_order() {
        let rib = rib(&["10.0.0.0/8", "10.1.0.0/16", "10.255.255.255/32", "11.0.0.0/8"]);
        let within: Vec<u8> = rib
            .within("10.0.0.0/8".parse().expect("a prefix"))
            .iter()
            .map(|route| route.length)
            .collect();
        assert_eq!(within, [8, 16, 32]);
    }
}
