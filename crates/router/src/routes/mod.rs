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
    /// One of the above, with a smaller MTU in bytes.
    Limited(Box<Via>, u16),
    /// Dropped silently.
    Blackhole,
    /// As if there were no route, not even a less specific one.
    NoRoute,
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
            Via::Limited(via, mtu) => write!(f, "{via} mtu {mtu}"),
            Via::Blackhole => f.write_str("blackhole"),
            Via::NoRoute => f.write_str("throw"),
            Via::Unreachable => f.write_str("unreachable"),
            Via::Prohibit => f.write_str("prohibit"),
            Via::Host => f.write_str("local"),
        }
    }
}

impl Via {
    /// True if packets are dropped here.
    pub fn leads_nowhere(&self) -> bool {
        matches!(self, Via::Blackhole | Via::NoRoute | Via::Unreachable | Via::Prohibit | Via::Host)
    }

    /// The same next hops with an MTU of at most `mtu` bytes.
    pub fn limited_to(self, mtu: u16) -> Via {
        match self {
            Via::Several(several) => {
                let limited = |(via, weight): (Via, u8)| (via.limited_to(mtu), weight);
                Via::Several(several.into_iter().map(limited).collect())
            }
            Via::Limited(via, other) => Via::Limited(via, other.min(mtu)),
            via if via.leads_nowhere() => via,
            via => Via::Limited(Box::new(via), mtu),
        }
    }

    /// Next hops of which this one consists.
    fn parts(&self) -> impl Iterator<Item = &Via> {
        let (several, limited) = match self {
            Via::Several(several) => (several.as_slice(), None),
            Via::Limited(via, _) => (&[][..], Some(&**via)),
            _ => (&[][..], None),
        };
        several.iter().map(|(via, _)| via).chain(limited)
    }

    /// True for a single next hop with an address.
    pub fn is_router(&self) -> bool {
        match self {
            Via::Address(_) | Via::Scoped(..) => true,
            Via::Limited(via, _) => via.is_router(),
            _ => false,
        }
    }
}

/// Next hops, each once, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextHops {
    vias: Vec<Via>,
    numbers: HashMap<Via, NextHop>,
    /// Numbers that were given back.
    free: Vec<NextHop>,
    /// Numbers in use since the last [`NextHops::take_new`].
    new: Vec<NextHop>,
}

impl NextHops {
    /// Number of a next hop, a free one if it has none yet; `None` if there are no more numbers.
    pub fn number(&mut self, via: impl Into<Via>) -> Option<NextHop> {
        self.number_of(via.into())
    }

    fn number_of(&mut self, via: Via) -> Option<NextHop> {
        if let Some(&known) = self.numbers.get(&via) {
            return Some(known);
        }
        for part in via.parts() {
            self.number_of(part.clone())?;
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.vias[number.number() as usize] = via.clone();
                number
            }
            None => {
                let number = NextHop::new(u32::try_from(self.vias.len()).ok()?)?;
                self.vias.push(via.clone());
                number
            }
        };
        self.numbers.insert(via, number);
        self.new.push(number);
        Some(number)
    }

    /// Number of a next hop, if it has one.
    pub fn get(&self, via: &Via) -> Option<NextHop> {
        self.numbers.get(via).copied()
    }

    /// Next hop with this number.
    pub fn via(&self, next_hop: NextHop) -> Option<&Via> {
        self.vias.get(next_hop.number() as usize)
    }

    /// All next hops; the index of each is its number. Those that were retired are meaningless.
    pub fn vias(&self) -> &[Via] {
        &self.vias
    }

    /// Number of next hops.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True if there are no next hops.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Numbers given out since the last call.
    pub fn take_new(&mut self) -> Vec<NextHop> {
        std::mem::take(&mut self.new)
    }

    /// Removes all next hops but the first `kept` and those `in_use`; returns their numbers, which
    /// are not free yet ([`NextHops::give_back`]).
    pub fn retire(
        &mut self,
        kept: usize,
        in_use: impl IntoIterator<Item = NextHop>,
    ) -> Vec<NextHop> {
        let mut is_used = vec![false; self.vias.len()];
        is_used.iter_mut().take(kept).for_each(|used| *used = true);
        let mut left: Vec<NextHop> = in_use.into_iter().collect();
        while let Some(number) = left.pop() {
            let at = number.number() as usize;
            if !std::mem::replace(&mut is_used[at], true) {
                left.extend(self.vias[at].parts().filter_map(|part| self.get(part)));
            }
        }
        let mut retired = Vec::new();
        self.numbers.retain(|_, number| {
            let used = is_used[number.number() as usize];
            if !used {
                retired.push(*number);
            }
            used
        });
        retired
    }

    /// Frees retired numbers, which no table contains any more.
    pub fn give_back(&mut self, numbers: Vec<NextHop>) {
        self.free.extend(numbers);
    }
}
