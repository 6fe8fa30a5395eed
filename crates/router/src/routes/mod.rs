//! Sources of routes: a text file, a dump of a router's BGP table, or a generator.
//!
//! All three produce [`Routes`]. Tables know next hops by number; this module stores what the
//! numbers mean.

pub mod kernel;
pub mod mrt;
pub mod synthesis;
pub mod text;

use crate::fib::{NextHop, Prefix, V4, V6};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

/// Routes of both families with their next hops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// IPv4 routes, each prefix once, in no particular order.
    pub inet: Vec<(Prefix<V4>, NextHop)>,
    /// IPv6 routes, each prefix once, in no particular order.
    pub inet6: Vec<(Prefix<V6>, NextHop)>,
    /// Next hops of the routes.
    pub next_hops: NextHops,
}

/// Destination of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// A router, by its address.
    Address(IpAddr),
    /// A router, by its address on the link of an interface: IPv6 link-local addresses need one
    /// (RFC 4007).
    Scoped(IpAddr, String),
    /// The hosts of an interface's link, each by its own address.
    Link(String),
    /// Several of the above by weight: flows are spread over them.
    Several(Vec<(Via, u8)>),
    /// Dropped silently.
    Blackhole,
    /// Dropped; senders get "host unreachable".
    Unreachable,
    /// Dropped; senders get "administratively prohibited".
    Prohibit,
    /// The router's own host.
    Host,
}

impl From<IpAddr> for Via {
    fn from(address: IpAddr) -> Via {
        Via::Address(address)
    }
}

impl fmt::Display for Via {
    /// Writes the text that follows a route's prefix, or precedes it (see [`Via::leads_nowhere`]).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Via::Address(address) => write!(f, "via {address}"),
            Via::Scoped(address, interface) => write!(f, "via {address}%{interface}"),
            Via::Link(interface) => write!(f, "dev {interface}"),
            Via::Several(several) => {
                for (at, (via, weight)) in several.iter().enumerate() {
                    let space = if at == 0 { "" } else { " " };
                    write!(f, "{space}{via}")?;
                    if *weight != 1 {
                        write!(f, " weight {weight}")?;
                    }
                }
                Ok(())
            }
            Via::Blackhole => f.write_str("blackhole"),
            Via::Unreachable => f.write_str("unreachable"),
            Via::Prohibit => f.write_str("prohibit"),
            Via::Host => f.write_str("local"),
        }
    }
}

impl Via {
    /// True if packets are dropped here.
    pub fn leads_nowhere(&self) -> bool {
        matches!(self, Via::Blackhole | Via::Unreachable | Via::Prohibit | Via::Host)
    }
}

/// Next hops, each once, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextHops {
    vias: Vec<Via>,
    numbers: HashMap<Via, NextHop>,
}

impl NextHops {
    /// Number of a next hop, the next free one if it has none yet; `None` if there are no more
    /// numbers.
    pub fn number(&mut self, via: impl Into<Via>) -> Option<NextHop> {
        self.number_of(via.into())
    }

    fn number_of(&mut self, via: Via) -> Option<NextHop> {
        if let Some(&known) = self.numbers.get(&via) {
            return Some(known);
        }
        if let Via::Several(several) = &via {
            for (via, _) in several {
                self.number_of(via.clone())?;
            }
        }
        let next_hop = NextHop::new(u32::try_from(self.vias.len()).ok()?)?;
        self.vias.push(via.clone());
        self.numbers.insert(via, next_hop);
        Some(next_hop)
    }

    /// Number of a next hop, if it has one.
    pub fn get(&self, via: &Via) -> Option<NextHop> {
        self.numbers.get(via).copied()
    }

    /// Next hop with this number.
    pub fn via(&self, next_hop: NextHop) -> Option<&Via> {
        self.vias.get(next_hop.number() as usize)
    }

    /// All next hops; the index of each is its number.
    pub fn vias(&self) -> &[Via] {
        &self.vias
    }
}
