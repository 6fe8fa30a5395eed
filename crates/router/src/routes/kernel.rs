//! The kernel's routes, followed through its netlink messages.
//!
//! The kernel may have several routes to one prefix, of which the first of the lowest metric is
//! used; its table of own addresses (`local`) precedes all others. Routes over interfaces that do
//! not belong to the router are ignored, as are link-local prefixes and groups.

use super::Via;
use crate::fib::{Address, Prefix, V4, V6};
use fwdlab_netio::netlink::{Hop, RouteEvent, RouteKind};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

/// Number of the kernel's table of own addresses.
const LOCAL: u32 = 255;

/// All kernel routes that may apply to the router.
#[derive(Clone, Debug, Default)]
pub struct KernelRoutes {
    table: u32,
    /// The router's interfaces by the kernel's interface numbers.
    interfaces: HashMap<u32, String>,
    inet: Family<V4>,
    inet6: Family<V6>,
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
    pub fn hear(&mut self, event: &RouteEvent, changed: &mut Changed) {
        self.enter(event, changed, false);
    }

    /// Adds or removes a route. Routes from a dump (`is_answer`) are appended in order.
    fn enter(&mut self, event: &RouteEvent, changed: &mut Changed, is_answer: bool) {
        let is_local = event.kind == RouteKind::Local;
        if event.table != if is_local { LOCAL } else { self.table } {
            return;
        }
        let held = Held {
            rank: Rank { is_of_table: !is_local, metric: event.metric },
            via: self.via(event),
        };
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

    /// Replaces all routes with a complete dump; returns the prefixes whose route has changed.
    pub fn begin_anew<'a>(&mut self, all: impl IntoIterator<Item = &'a RouteEvent>) -> Changed {
        let (table, interfaces) = (self.table, std::mem::take(&mut self.interfaces));
        let mut now = KernelRoutes::new(table, interfaces);
        let mut ignored = Changed::default();
        for event in all {
            now.enter(event, &mut ignored, true);
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

    fn via(&self, event: &RouteEvent) -> Option<Via> {
        match event.kind {
            RouteKind::Way => self.via_hops(&event.hops),
            RouteKind::Local => Some(Via::Host),
            RouteKind::Blackhole => Some(Via::Blackhole),
            RouteKind::Unreachable => Some(Via::Unreachable),
            RouteKind::Prohibit => Some(Via::Prohibit),
        }
    }

    fn via_hops(&self, hops: &[Hop]) -> Option<Via> {
        let one = |hop: &Hop| {
            let interface = self.interfaces.get(&hop.interface)?.clone();
            let via = match hop.gateway {
                Some(gateway) => Via::Scoped(gateway, interface),
                None => Via::Link(interface),
            };
            Some((via, u8::try_from(hop.weight).unwrap_or(u8::MAX)))
        };
        let mut all: Vec<(Via, u8)> = hops.iter().filter_map(one).collect();
        match all.len() {
            0 => None,
            1 => all.pop().map(|(via, _)| via),
            // Hosts of a link are resolved separately, so flows are not spread.
            _ if all.iter().any(|(via, _)| matches!(via, Via::Link(_))) => {
                all.into_iter().map(|(via, _)| via).next()
            }
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
            Some(hop @ Via::Scoped(..)) => vec![hop],
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
mod tests {
    use super::*;

    fn routes() -> KernelRoutes {
        let interfaces = [(7, "r0".to_owned()), (8, "r1".to_owned())];
        KernelRoutes::new(254, interfaces.into_iter().collect())
    }

    fn event(prefix: &str, metric: u32, hops: &[(&str, u32)]) -> RouteEvent {
        let (address, length) = prefix.split_once('/').expect("a length");
        let hop = |&(gateway, interface): &(&str, u32)| Hop {
            gateway: gateway.parse().ok(),
            interface,
            weight: 1,
        };
        RouteEvent {
            is_gone: false,
            replaces: false,
            appends: false,
            table: 254,
            address: address.parse().expect("an address"),
            length: length.parse().expect("a length"),
            metric,
            kind: RouteKind::Way,
            hops: hops.iter().map(hop).collect(),
        }
    }

    fn gone(event: RouteEvent) -> RouteEvent {
        RouteEvent { is_gone: true, ..event }
    }

    fn via_after(routes: &mut KernelRoutes, event: RouteEvent) -> String {
        let mut changed = Changed::default();
        routes.hear(&event, &mut changed);
        let inet = changed.inet.first().map(|&prefix| routes.inet(prefix));
        let via = inet.or_else(|| changed.inet6.first().map(|&prefix| routes.inet6(prefix)));
        via.flatten().map(Via::to_string).unwrap_or_default()
    }

    #[test]
    fn first_route_of_the_lowest_metric_wins() {
        let mut routes = routes();
        let near = event("10.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let far = event("10.0.0.0/8", 30, &[("192.0.2.9", 8)]);
        assert_eq!(via_after(&mut routes, far.clone()), "via 192.0.2.9%r1");
        assert_eq!(via_after(&mut routes, near.clone()), "via 192.0.2.1%r0");
        let appended = RouteEvent { appends: true, ..event("10.0.0.0/8", 20, &[("", 8)]) };
        assert_eq!(via_after(&mut routes, appended.clone()), "via 192.0.2.1%r0");
        assert_eq!(via_after(&mut routes, gone(near)), "dev r1");
        let other = RouteEvent { replaces: true, ..event("10.0.0.0/8", 20, &[("192.0.2.3", 8)]) };
        assert_eq!(via_after(&mut routes, other.clone()), "via 192.0.2.3%r1");
        assert_eq!(via_after(&mut routes, gone(other)), "via 192.0.2.9%r1");
        assert_eq!(via_after(&mut routes, gone(far)), "");
        assert!(routes.is_empty());
    }

    #[test]
    fn multipath_routes_and_own_addresses_are_tracked() {
        let mut routes = routes();
        let several = event("2001:db8::/32", 20, &[("fe80::1", 7), ("fe80::2", 8), ("fe80::3", 9)]);
        assert_eq!(via_after(&mut routes, several), "via fe80::1%r0 via fe80::2%r1");
        let one = event("2001:db8::/32", 20, &[("fe80::2", 8)]);
        assert_eq!(via_after(&mut routes, one), "via fe80::2%r1");
        let local = |table| RouteEvent {
            kind: RouteKind::Local,
            table,
            hops: Vec::new(),
            ..event("10.255.0.1/32", 0, &[])
        };
        assert_eq!(
            via_after(&mut routes, event("10.255.0.1/32", 20, &[("192.0.2.1", 7)])),
            "via 192.0.2.1%r0"
        );
        assert_eq!(via_after(&mut routes, local(255)), "local");
        // Routes of other tables, interfaces and scopes do not apply.
        assert_eq!(via_after(&mut routes, local(254)), "");
        assert_eq!(via_after(&mut routes, event("10.3.0.0/16", 0, &[("192.0.2.1", 99)])), "");
        for prefix in ["127.0.0.0/8", "224.0.0.0/4", "fe80::/64", "ff00::/8", "::1/128"] {
            let mut changed = Changed::default();
            routes.hear(&event(prefix, 0, &[("", 7)]), &mut changed);
            assert_eq!(changed, Changed::default(), "{prefix}");
        }
        assert_eq!(via_after(&mut routes, event("::/0", 0, &[("fe80::1", 7)])), "via fe80::1%r0");
    }

    /// Returns true if all routes must be read again.
    fn is_doubtful(routes: &mut KernelRoutes, event: &RouteEvent) -> bool {
        let mut changed = Changed::default();
        routes.hear(event, &mut changed);
        changed.is_doubtful
    }

    #[test]
    fn ipv6_next_hops_are_removed_one_by_one() {
        let prefix = "2001:db8::/32";
        let one = |hops: &[(&str, u32)]| event(prefix, 20, hops);
        let (a, b, c) = (("fe80::1", 7), ("fe80::2", 8), ("fe80::3", 7));
        let mut routes = routes();
        assert_eq!(
            via_after(&mut routes, one(&[a, b, c])),
            "via fe80::1%r0 via fe80::2%r1 via fe80::3%r0"
        );
        assert_eq!(via_after(&mut routes, gone(one(&[a]))), "via fe80::2%r1 via fe80::3%r0");
        // A next hop that is no longer known, or leads elsewhere.
        for unknown in [a, ("fe80::1", 99)] {
            assert!(is_doubtful(&mut routes, &gone(one(&[unknown]))), "{unknown:?}");
        }
        assert_eq!(via_after(&mut routes, gone(one(&[c]))), "via fe80::2%r1");
        assert!(!is_doubtful(&mut routes, &one(&[b, c])));
        // All together, in any order.
        assert_eq!(via_after(&mut routes, gone(one(&[c, b]))), "");
        assert!(routes.is_empty());
        assert!(!is_doubtful(&mut routes, &gone(one(&[c]))), "nothing is there to go");
    }

    #[test]
    fn unrelated_ipv6_routes_stay_separate() {
        let mut routes = routes();
        let [near, far] = [7, 8].map(|interface| event("2001:db8::/64", 0, &[("", interface)]));
        assert_eq!(via_after(&mut routes, near.clone()), "dev r0");
        assert_eq!(via_after(&mut routes, far.clone()), "dev r0");
        assert_eq!(via_after(&mut routes, gone(near)), "dev r1");
        assert_eq!(via_after(&mut routes, gone(far)), "");
        // Two gateways may or may not belong to one route.
        let [near, far] = [("fe80::1", 7), ("fe80::2", 8)].map(|hop| event("::/0", 0, &[hop]));
        assert!(!is_doubtful(&mut routes, &near));
        assert!(is_doubtful(&mut routes, &far));
        assert_eq!(via_after(&mut routes, near), "via fe80::1%r0");
        let other = RouteEvent { replaces: true, ..event("::/0", 0, &[("fe80::3", 7)]) };
        assert!(is_doubtful(&mut routes, &other), "it may stand for both");
    }

    #[test]
    fn repeated_events_add_nothing_and_removal_needs_a_match() {
        let mut routes = routes();
        let one = event("10.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let two = RouteEvent { appends: true, ..event("10.0.0.0/8", 20, &[("192.0.2.2", 7)]) };
        routes.begin_anew([&one, &two]);
        assert_eq!(via_after(&mut routes, one.clone()), "via 192.0.2.1%r0");
        let unknown = event("10.0.0.0/8", 20, &[("192.0.2.3", 7)]);
        assert!(is_doubtful(&mut routes, &gone(unknown)));
        assert_eq!(via_after(&mut routes, gone(one)), "via 192.0.2.2%r0");
        assert_eq!(via_after(&mut routes, gone(two)), "");
        assert!(routes.is_empty());
    }

    #[test]
    fn begin_anew_returns_changed_prefixes() {
        let mut routes = routes();
        let kept = event("10.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let removed = event("11.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let added = event("12.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let first = routes.begin_anew([&kept, &removed]);
        assert_eq!((first.inet.len(), routes.len()), (2, 2));
        let mut second = routes.begin_anew([&kept, &added]).inet;
        second.sort();
        let texts: Vec<_> = second.iter().map(Prefix::to_string).collect();
        assert_eq!(texts, ["11.0.0.0/8", "12.0.0.0/8"]);
    }
}
