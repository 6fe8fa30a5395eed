//! Sources of routes: a text file, a dump of a router's BGP table, or a
//! generator.
//!
//! All three give [`Routes`]. Tables know next hops by number; what the numbers stand for
//! is kept here.

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
    /// IPv6 routes, likewise.
    pub inet6: Vec<(Prefix<V6>, NextHop)>,
    /// Where they lead.
    pub next_hops: NextHops,
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// To a router by its address.
    Address(IpAddr),
    /// Likewise, on the link of an interface: IPv6 link-local addresses are none elsewhere
    /// (RFC 4007).
    Scoped(IpAddr, String),
    /// To the hosts of an interface's link, each by its own address.
    Link(String),
    /// To several of the former by weight: flows are spread over them.
    Several(Vec<(Via, u8)>),
    /// Nowhere, in silence.
    Blackhole,
    /// Nowhere: senders are told that the host can't be reached.
    Unreachable,
    /// Nowhere: senders are told that they are not wanted.
    Prohibit,
    /// To the router's own host.
    Host,
}

impl From<IpAddr> for Via {
    fn from(address: IpAddr) -> Via {
        Via::Address(address)
    }
}

impl fmt::Display for Via {
    /// As it stands behind a route's prefix, or before it (see [`Via::leads_nowhere`]).
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
    /// True where packets end.
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
    /// The number of a next hop, the next free one if it has none yet; `None` when there are
    /// no more numbers.
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

    /// The number of a next hop, if it has one.
    pub fn get(&self, via: &Via) -> Option<NextHop> {
        self.numbers.get(via).copied()
    }

    /// What a number stands for.
    pub fn via(&self, next_hop: NextHop) -> Option<&Via> {
        self.vias.get(next_hop.number() as usize)
    }

    /// All of them; the place of each is its number.
    pub fn vias(&self) -> &[Via] {
        &self.vias
    }
}
