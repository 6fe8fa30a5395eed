//! The kernel's routes, followed through its netlink messages.
//!
//! The kernel may have several routes to one prefix, of which the first of the lowest metric is
//! used; its table of own addresses (`local`) precedes all others. Routes over interfaces that do
//! not belong to the router are ignored, as are link-local prefixes and groups.
//!
//! A route of which a part cannot be followed is listed ([`KernelRoutes::left_out`]) and ends here:
//! its packets neither lose that part nor take a less specific route. Routes that apply to some
//! packets only, by source or type of service, are left out.

mod left_out;

use super::Via;
use crate::fib::{Address, Prefix, V4, V6};
use fwdlab_netio::netlink::{
    Event, Hop, NextHopEvent, NextHopObject, RouteEvent, RouteKind, Unsupported,
};
pub use left_out::{Cause, LeftOut};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::ops::Range;

/// Number of the kernel's table of own addresses.
const LOCAL: u32 = 255;

/// Smallest MTUs of a route: an IPv4 link's (RFC 791 section 3.2) and an IPv6 link's (RFC 8200 section
/// 5). Linux also raises an IPv6 route's.
const INET_MTU: u16 = 68;
const INET6_MTU: u16 = 1280;

/// All kernel routes that may apply to the router.
#[derive(Clone, Debug, Default)]
pub struct KernelRoutes {
    table: u32,
    /// The router's interfaces by the kernel's interface numbers.
    interfaces: HashMap<u32, String>,
    inet: Family<V4>,
    inet6: Family<V6>,
    /// Next hop objects by number.
    objects: HashMap<u32, NextHopObject>,
    left_out: BTreeSet<LeftOut>,
}

/// Routes of one family, in order of precedence.
type Family<A> = HashMap<Prefix<A>, Vec<Held>>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    rank: Rank,
    /// Destination of the route; `None` if it is not the router's.
    via: Option<Via>,
}

/// Precedence: lower ranks come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_of_table: bool,
    metric: u32,
}

/// Prefixes whose route may have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// IPv4 prefixes, in no order, possibly repeated.
    pub inet: Vec<Prefix<V4>>,
    /// IPv6 prefixes, in no order, possibly repeated.
    pub inet6: Vec<Prefix<V6>>,
    /// The messages leave the kernel's current state ambiguous: read all routes again.
    pub is_doubtful: bool,
}

impl KernelRoutes {
    /// No routes yet; follows the kernel's table with this number. `interfaces` are the router's,
    /// by the kernel's numbers.
    pub fn new(table: u32, interfaces: HashMap<u32, String>) -> KernelRoutes {
        KernelRoutes { table, interfaces, ..KernelRoutes::default() }
    }

    /// Applies an event, and adds its prefix to `changed` if it applies to the router.
    pub fn hear(&mut self, event: &Event, changed: &mut Changed) {
        match event {
            Event::Route(route) => self.enter(route, changed, false),
            Event::NextHop(NextHopEvent { number, object }) => {
                self.objects.insert(*number, object.clone());
            }
            _ => {}
        }
    }

    /// Adds or removes a route. Routes from a dump (`is_answer`) are appended in order.
    fn enter(&mut self, event: &RouteEvent, changed: &mut Changed, is_answer: bool) {
        let is_local = event.kind == RouteKind::Local;
        if event.table != if is_local { LOCAL } else { self.table } {
            return;
        }
        let (via, cause) = match self.via(event) {
            Ok(via) => (via, None),
            Err(cause) => (Some(Via::Unreachable), Some(cause)),
        };
        if !self.left_out.is_empty() || cause.is_some() {
            self.note(event, cause, is_answer);
        }
        changed.is_doubtful |= matches!(cause, Some(Cause::NextHop(_)));
        if cause.is_some_and(Cause::is_of_some_packets) {
            return;
        }
        let held = Held { rank: Rank { is_of_table: !is_local, metric: event.metric }, via };
        match event.address {
            IpAddr::V4(address) => {
                let prefix = Prefix::containing(V4::from(address), event.length);
                if is_routed4(prefix) {
                    let is_sure = change(&mut self.inet, prefix, held, event, is_answer);
                    changed.is_doubtful |= !is_sure;
                    changed.inet.push(prefix);
                }
            }
            IpAddr::V6(address) => {
                let prefix = Prefix::containing(V6::from(address), event.length);
                if is_routed6(prefix) {
                    let is_sure = change(&mut self.inet6, prefix, held, event, is_answer);
                    changed.is_doubtful |= !is_sure;
                    changed.inet6.push(prefix);
                }
            }
        }
    }

    /// Lists a route that is not followed, and removes the routes from the list that the event
    /// removes or replaces.
    fn note(&mut self, event: &RouteEvent, cause: Option<Cause>, is_answer: bool) {
        let listed = LeftOut::new(event, cause);
        if event.is_gone {
            self.left_out.retain(|other| !other.is_removed_with(&listed));
        } else {
            if event.replaces && !is_answer {
                self.left_out.retain(|other| !other.is_replaced_by(&listed));
            }
            if cause.is_some() {
                self.left_out.insert(listed);
            }
        }
    }

    /// Routes that are not followed, in order of their prefixes.
    pub fn left_out(&self) -> impl ExactSizeIterator<Item = &LeftOut> {
        self.left_out.iter()
    }

    /// Replaces all routes with a complete dump of routes and next hop objects; returns the prefixes
    /// whose route has changed.
    pub fn replace_all(&mut self, all: &[Event]) -> Changed {
        let (table, interfaces) = (self.table, std::mem::take(&mut self.interfaces));
        let mut now = KernelRoutes::new(table, interfaces);
        let mut ignored = Changed::default();
        let objects = all.iter().filter(|event| matches!(event, Event::NextHop(_)));
        objects.for_each(|event| now.hear(event, &mut ignored));
        for event in all {
            if let Event::Route(route) = event {
                now.enter(route, &mut ignored, true);
            }
        }
        let before = std::mem::replace(self, now);
        Changed {
            inet: different(&before.inet, &self.inet),
            inet6: different(&before.inet6, &self.inet6),
            is_doubtful: false,
        }
    }

    /// All prefixes that have a route.
    pub fn all(&self) -> Changed {
        Changed {
            inet: self.inet.keys().copied().collect(),
            inet6: self.inet6.keys().copied().collect(),
            is_doubtful: false,
        }
    }

    /// Destinations of all prefixes, one for each.
    pub fn vias(&self) -> impl Iterator<Item = &Via> {
        let inet = self.inet.values().filter_map(|routes| routes.first());
        let inet6 = self.inet6.values().filter_map(|routes| routes.first());
        inet.chain(inet6).filter_map(|route| route.via.as_ref())
    }

    /// Destination of IPv4 packets to this prefix.
    pub fn inet(&self, prefix: Prefix<V4>) -> Option<&Via> {
        best(&self.inet, prefix)
    }

    /// Destination of IPv6 packets to this prefix.
    pub fn inet6(&self, prefix: Prefix<V6>) -> Option<&Via> {
        best(&self.inet6, prefix)
    }

    /// Number of prefixes that have a route, over both families.
    pub fn len(&self) -> usize {
        self.inet.len() + self.inet6.len()
    }

    /// True if there are no routes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Destination of an event's route; `None` if it is not the router's.
    fn via(&self, event: &RouteEvent) -> Result<Option<Via>, Cause> {
        if event.kind == RouteKind::Local {
            return Ok(Some(Via::Host));
        }
        if event.source.is_some() {
            return Err(Cause::Source);
        }
        if matches!(event.unsupported, Some(Unsupported::TypeOfService(_))) {
            return Err(Cause::TypeOfService);
        }
        Ok(Some(match event.kind {
            RouteKind::Blackhole => Via::Blackhole,
            RouteKind::Unreachable => Via::Unreachable,
            RouteKind::Prohibit => Via::Prohibit,
            // There is no next table.
            RouteKind::Throw => Via::NoRoute,
            RouteKind::Way | RouteKind::Local => {
                let Some(via) = self.way(event)? else { return Ok(None) };
                match event.mtu {
                    // As the kernel forwards.
                    Some(mtu) if mtu.is_locked || event.address.is_ipv4() => {
                        let least = if event.address.is_ipv4() { INET_MTU } else { INET6_MTU };
                        via.limited_to(u16::try_from(mtu.bytes).unwrap_or(u16::MAX).max(least))
                    }
                    _ => via,
                }
            }
        }))
    }

    /// Destination of a route with next hops.
    fn way(&self, event: &RouteEvent) -> Result<Option<Via>, Cause> {
        let mut hops = event.hops.clone();
        let mut is_encapsulated = event.unsupported == Some(Unsupported::Encapsulation);
        if let Some(number) = event.object.filter(|_| hops.is_empty()) {
            match self.objects.get(&number) {
                Some(NextHopObject::Blackhole) => return Ok(Some(Via::Blackhole)),
                Some(NextHopObject::Group(members)) => {
                    for &(number, weight) in members {
                        let member = self.objects.get(&number).ok_or(Cause::NextHop(number))?;
                        let NextHopObject::Hop { hop, is_usable, is_encapsulated: also } = member
                        else {
                            continue;
                        };
                        is_encapsulated |= also;
                        hops.extend(is_usable.then_some(Hop { weight, ..*hop }));
                    }
                }
                Some(NextHopObject::Hop { hop, is_encapsulated: also, .. }) => {
                    is_encapsulated |= also;
                    hops.push(*hop);
                }
                None => return Err(Cause::NextHop(number)),
            }
        }
        let via = self.via_hops(&hops);
        match via {
            Some(_) if is_encapsulated => Err(Cause::Encapsulation),
            via => Ok(via),
        }
    }

    fn via_hops(&self, hops: &[Hop]) -> Option<Via> {
        let most = hops.iter().map(|hop| u32::from(hop.weight)).max().unwrap_or(1).max(255);
        // Linux has weights up to 65,536 since 6.12.
        let share = |weight: u16| (u32::from(weight) * 255 / most).max(1) as u8;
        let one = |hop: &Hop| {
            let interface = self.interfaces.get(&hop.interface)?.clone();
            let via = match hop.gateway {
                Some(gateway) => Via::Scoped(gateway, interface),
                None => Via::Link(interface),
            };
            Some((via, share(hop.weight)))
        };
        let mut all: Vec<(Via, u8)> = hops.iter().filter_map(one).collect();
        match all.len() {
            0 => None,
            1 => all.pop().map(|(via, _)| via),
            _ => Some(Via::Several(all)),
        }
    }
}

/// Adds or removes a route of a prefix as the kernel does. Returns false if the kernel may have
/// done something else.
fn change<A: Address>(
    family: &mut Family<A>,
    prefix: Prefix<A>,
    held: Held,
    event: &RouteEvent,
    is_answer: bool,
) -> bool {
    let is_inet6 = A::BITS == V6::BITS;
    let all = family.entry(prefix).or_default();
    let begin = all.partition_point(|other| other.rank < held.rank);
    let end = all.partition_point(|other| other.rank <= held.rank);
    let same = all[begin..end].iter().position(|other| other.via == held.via);
    let is_sure = match same {
        _ if is_answer => {
            all.insert(end, held);
            true
        }
        Some(same) if event.is_gone => {
            all.remove(begin + same);
            true
        }
        // A dump may overlap with events, which then repeat a removal.
        None if event.is_gone => begin == end || is_inet6 && take_out(all, begin..end, &held),
        _ if event.replaces && begin < end => {
            all[begin] = held;
            !is_inet6 || end - begin == 1
        }
        Some(_) => true,
        None if is_inet6 => put_inet6(all, begin..end, held),
        None => {
            // A route that isn't appended precedes those with the same metric.
            all.insert(if event.appends { end } else { begin }, held);
            true
        }
    };
    if all.is_empty() {
        family.remove(&prefix);
    }
    is_sure
}

/// IPv6 next hops with gateways and the same prefix and metric are one route, which the kernel
/// reports completely whenever a next hop is added. All others are separate routes.
fn put_inet6(all: &mut Vec<Held>, among: Range<usize>, held: Held) -> bool {
    let hops = held.hops();
    let grown = among.clone().find(|&at| all[at].hops().iter().any(|hop| hops.contains(hop)));
    if let Some(grown) = grown {
        all[grown] = held;
        return true;
    }
    // If a route uses other interfaces, it is unknown whether the new one extends it.
    let may_grow = |held: &Held| held.via.is_none() || !held.hops().is_empty();
    let is_sure = !may_grow(&held) || !all[among.clone()].iter().any(may_grow);
    all.insert(among.end, held);
    is_sure
}

/// Removes IPv6 next hops, which the kernel removes one by one without repeating the remaining
/// ones. Returns false if no route has all of them.
fn take_out(all: &mut Vec<Held>, among: Range<usize>, gone: &Held) -> bool {
    let gone = gone.hops();
    let has_all = |held: &Held| {
        let hops = held.hops();
        !gone.is_empty() && gone.iter().all(|hop| hops.contains(hop))
    };
    let Some(at) = among.into_iter().find(|&at| has_all(&all[at])) else { return false };
    if let Some(Via::Several(hops)) = &mut all[at].via {
        hops.retain(|(hop, _)| !gone.contains(&hop));
        match hops.len() {
            0 => drop(all.remove(at)),
            1 => all[at].via = hops.pop().map(|(hop, _)| hop),
            _ => {}
        }
    }
    true
}

impl Held {
    /// Next hops with an address.
    fn hops(&self) -> Vec<&Via> {
        match &self.via {
            Some(Via::Several(hops)) => hops.iter().map(|(hop, _)| hop).collect(),
            Some(hop) if hop.is_router() => vec![hop],
            _ => Vec::new(),
        }
    }
}

fn best<A: Address>(family: &Family<A>, prefix: Prefix<A>) -> Option<&Via> {
    family.get(&prefix)?.first()?.via.as_ref()
}

fn different<A: Address>(before: &Family<A>, now: &Family<A>) -> Vec<Prefix<A>> {
    let first = |family: &Family<A>, prefix| best(family, prefix).cloned();
    let all = before.keys().chain(now.keys().filter(|prefix| !before.contains_key(prefix)));
    all.copied().filter(|&prefix| first(before, prefix) != first(now, prefix)).collect()
}

/// False for prefixes that are never forwarded: 127/8, 169.254/16, 224/4.
fn is_routed4(prefix: Prefix<V4>) -> bool {
    let (V4(address), length) = (prefix.address(), prefix.length());
    !(length >= 8 && address >> 24 == 127
        || length >= 16 && address >> 16 == 0xa9fe
        || length >= 4 && address >> 28 == 0xe)
}

/// False for prefixes that are never forwarded: groups, link-local addresses, ::1.
fn is_routed6(prefix: Prefix<V6>) -> bool {
    let (V6(address), length) = (prefix.address(), prefix.length());
    !(length >= 8 && address >> 120 == 0xff
        || length >= 10 && address >> 118 == 0xfe80 >> 6
        || length > 64 && address >> 64 == 0)
}

#[cfg(test)]
mod tests;
