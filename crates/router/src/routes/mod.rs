//! Sources of routes: a text file, a dump of a router's BGP table, or a
//! generator.
//!
//! All three give [`Routes`]. Tables know next hops by number; the addresses that
//! the numbers stand for are kept here.

pub mod mrt;
pub mod synthesis;
pub mod text;

use crate::fib::{NextHop, Prefix, V4, V6};
use std::collections::HashMap;
use std::net::IpAddr;

/// Routes of both families with their next hops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// IPv4 routes, each prefix once, in no particular order.
    pub inet: Vec<(Prefix<V4>, NextHop)>,
    /// IPv6 routes, likewise.
    pub inet6: Vec<(Prefix<V6>, NextHop)>,
    /// Where they lead.
    pub next_hops: NextHops,
}

/// Addresses of next hops, each once, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextHops {
    addresses: Vec<IpAddr>,
    numbers: HashMap<IpAddr, NextHop>,
}

impl NextHops {
    /// The number of an address, the next free one if it has none yet; `None` when
    /// there are no more numbers.
    pub fn number(&mut self, address: IpAddr) -> Option<NextHop> {
        if let Some(&known) = self.numbers.get(&address) {
            return Some(known);
        }
        let next_hop = NextHop::new(u32::try_from(self.addresses.len()).ok()?)?;
        self.addresses.push(address);
        self.numbers.insert(address, next_hop);
        Some(next_hop)
    }

    /// The number of an address, if it has one.
    pub fn get(&self, address: IpAddr) -> Option<NextHop> {
        self.numbers.get(&address).copied()
    }

    /// The address of a next hop.
    pub fn address(&self, next_hop: NextHop) -> Option<IpAddr> {
        self.addresses.get(next_hop.number() as usize).copied()
    }

    /// All addresses; the place of each is its number.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}
