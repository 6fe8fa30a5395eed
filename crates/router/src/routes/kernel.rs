//! Routes of the kernel's, as its netlink messages tell them.
//!
//! The kernel has several routes to one prefix, of which the first of the lowest metric
//! counts; its table of own addresses (`local`) comes before all others. What leads over
//! interfaces that aren't the router's is none of its routes, and is left out: so are
//! link-local prefixes, and groups.

use super::Via;
use crate::fib::{Address, Prefix, V4, V6};
use fwdlab_netio::netlink::{Hop, RouteEvent, RouteKind};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

/// Number of the kernel's table of own addresses.
const LOCAL: u32 = 255;

/// All routes of the kernel's that may be the router's.
#[derive(Clone, Debug, Default)]
pub struct KernelRoutes {
    table: u32,
    /// The router's interfaces by the numbers of the kernel's.
    interfaces: HashMap<u32, String>,
    inet: Family<V4>,
    inet6: Family<V6>,
}

/// Routes of one family, in the order in which they count.
type Family<A> = HashMap<Prefix<A>, Vec<Held>>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    rank: Rank,
    /// Where it leads, if that is somewhere of the router's.
    via: Option<Via>,
}

/// The lower, the sooner it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_of_table: bool,
    metric: u32,
}

/// Prefixes whose route may be another one now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Of IPv4, in no order, some perhaps several times.
    pub inet: Vec<Prefix<V4>>,
    /// Of IPv6, likewise.
    pub inet6: Vec<Prefix<V6>>,
    /// What was told doesn't say what the kernel has now: all has to be asked for.
    pub is_doubtful: bool,
}

impl KernelRoutes {
    /// None yet; those to come are of the kernel's table of this number. `interfaces` are the
    /// router's, by the numbers that the kernel has for them.
    pub fn new(table: u32, interfaces: HashMap<u32, String>) -> KernelRoutes {
        KernelRoutes { table, interfaces, ..KernelRoutes::default() }
    }

    /// Follows what has happened; `changed` gets the prefix, if it is one of the router's.
    pub fn hear(&mut self, event: &RouteEvent, changed: &mut Changed) {
        self.enter(event, changed, false);
    }

    /// Of an answer, which tells all of them (`is_answer`), each stands behind those before.
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

    /// Begins anew with all routes that there are; says which prefixes have another one than
    /// before.
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

    /// Where IPv4 packets to this prefix are to go.
    pub fn inet(&self, prefix: Prefix<V4>) -> Option<&Via> {
        best(&self.inet, prefix)
    }

    /// Where IPv6 packets to this prefix are to go.
    pub fn inet6(&self, prefix: Prefix<V6>) -> Option<&Via> {
        best(&self.inet6, prefix)
    }

    /// Prefixes that have a route, of both families.
    pub fn len(&self) -> usize {
        self.inet.len() + self.inet6.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn via(&self, event: &RouteEvent) -> Option<Via> {
        match event.kind {
            RouteKind::Way => self.way(&event.hops),
            RouteKind::Local => Some(Via::Host),
            RouteKind::Blackhole => Some(Via::Blackhole),
            RouteKind::Unreachable => Some(Via::Unreachable),
            RouteKind::Prohibit => Some(Via::Prohibit),
        }
    }

    fn way(&self, hops: &[Hop]) -> Option<Via> {
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
            // Where each host is on its own, flows are not spread.
            _ if all.iter().any(|(via, _)| matches!(via, Via::Link(_))) => {
                all.into_iter().map(|(via, _)| via).next()
            }
            _ => Some(Via::Several(all)),
        }
    }
}

/// Puts a route among those of its prefix as the kernel does. False when the kernel may have
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
        // What has been asked for since is told once more.
        None if event.is_gone => begin == end || is_inet6 && take_out(all, begin..end, &held),
        _ if event.replaces && begin < end => {
            all[begin] = held;
            !is_inet6 || end - begin == 1
        }
        Some(_) => true,
        None if is_inet6 => put_inet6(all, begin..end, held),
        None => {
            // A route that isn't appended stands before those of its metric.
            all.insert(if event.appends { end } else { begin }, held);
            true
        }
    };
    if all.is_empty() {
        family.remove(&prefix);
    }
    is_sure
}

/// Next hops of IPv6 with gateways that have prefix and metric in common are one route, of which
/// the kernel tells all whenever there is one more. All others stand beside each other.
fn put_inet6(all: &mut Vec<Held>, among: Range<usize>, held: Held) -> bool {
    let hops = held.hops();
    let grown = among.clone().find(|&at| all[at].hops().iter().any(|hop| hops.contains(hop)));
    if let Some(grown) = grown {
        all[grown] = held;
        return true;
    }
    // Of a route over other interfaces it isn't known whether this one has grown from it.
    let may_grow = |held: &Held| held.via.is_none() || !held.hops().is_empty();
    let is_sure = !may_grow(&held) || !all[among.clone()].iter().any(may_grow);
    all.insert(among.end, held);
    is_sure
}

/// Next hops of IPv6 go one by one; those that stay aren't told. False when none of the routes
/// has all of these.
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

/// False of prefixes that are never forwarded to: 127/8, 169.254/16, 224/4.
fn is_routed4(prefix: Prefix<V4>) -> bool {
    let (V4(address), length) = (prefix.address(), prefix.length());
    !(length >= 8 && address >> 24 == 127
        || length >= 16 && address >> 16 == 0xa9fe
        || length >= 4 && address >> 28 == 0xe)
}

/// Likewise: groups, link-local addresses, ::1.
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

    fn told(routes: &mut KernelRoutes, event: RouteEvent) -> String {
        let mut changed = Changed::default();
        routes.hear(&event, &mut changed);
        let inet = changed.inet.first().map(|&prefix| routes.inet(prefix));
        let via = inet.or_else(|| changed.inet6.first().map(|&prefix| routes.inet6(prefix)));
        via.flatten().map(Via::to_string).unwrap_or_default()
    }

    #[test]
    fn the_first_of_the_lowest_metric_counts() {
        let mut routes = routes();
        let near = event("10.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let far = event("10.0.0.0/8", 30, &[("192.0.2.9", 8)]);
        assert_eq!(told(&mut routes, far.clone()), "via 192.0.2.9%r1");
        assert_eq!(told(&mut routes, near.clone()), "via 192.0.2.1%r0");
        let beside = RouteEvent { appends: true, ..event("10.0.0.0/8", 20, &[("", 8)]) };
        assert_eq!(told(&mut routes, beside.clone()), "via 192.0.2.1%r0");
        assert_eq!(told(&mut routes, gone(near)), "dev r1");
        let other = RouteEvent { replaces: true, ..event("10.0.0.0/8", 20, &[("192.0.2.3", 8)]) };
        assert_eq!(told(&mut routes, other.clone()), "via 192.0.2.3%r1");
        assert_eq!(told(&mut routes, gone(other)), "via 192.0.2.9%r1");
        assert_eq!(told(&mut routes, gone(far)), "");
        assert!(routes.is_empty());
    }

    #[test]
    fn several_next_hops_and_own_addresses_are_followed() {
        let mut routes = routes();
        let both = event("2001:db8::/32", 20, &[("fe80::1", 7), ("fe80::2", 8), ("fe80::3", 9)]);
        assert_eq!(told(&mut routes, both), "via fe80::1%r0 via fe80::2%r1");
        let one = event("2001:db8::/32", 20, &[("fe80::2", 8)]);
        assert_eq!(told(&mut routes, one), "via fe80::2%r1");
        let local = |table| RouteEvent {
            kind: RouteKind::Local,
            table,
            hops: Vec::new(),
            ..event("10.255.0.1/32", 0, &[])
        };
        assert_eq!(
            told(&mut routes, event("10.255.0.1/32", 20, &[("192.0.2.1", 7)])),
            "via 192.0.2.1%r0"
        );
        assert_eq!(told(&mut routes, local(255)), "local");
        // Those of other tables, interfaces and scopes are none of the router's.
        assert_eq!(told(&mut routes, local(254)), "");
        assert_eq!(told(&mut routes, event("10.3.0.0/16", 0, &[("192.0.2.1", 99)])), "");
        for prefix in ["127.0.0.0/8", "224.0.0.0/4", "fe80::/64", "ff00::/8", "::1/128"] {
            let mut changed = Changed::default();
            routes.hear(&event(prefix, 0, &[("", 7)]), &mut changed);
            assert_eq!(changed, Changed::default(), "{prefix}");
        }
        assert_eq!(told(&mut routes, event("::/0", 0, &[("fe80::1", 7)])), "via fe80::1%r0");
    }

    /// Whether all has to be asked for.
    fn is_doubtful(routes: &mut KernelRoutes, event: &RouteEvent) -> bool {
        let mut changed = Changed::default();
        routes.hear(event, &mut changed);
        changed.is_doubtful
    }

    #[test]
    fn next_hops_of_inet6_go_one_by_one() {
        let prefix = "2001:db8::/32";
        let one = |hops: &[(&str, u32)]| event(prefix, 20, hops);
        let (a, b, c) = (("fe80::1", 7), ("fe80::2", 8), ("fe80::3", 7));
        let mut routes = routes();
        assert_eq!(
            told(&mut routes, one(&[a, b, c])),
            "via fe80::1%r0 via fe80::2%r1 via fe80::3%r0"
        );
        assert_eq!(told(&mut routes, gone(one(&[a]))), "via fe80::2%r1 via fe80::3%r0");
        // One that isn't known any more, or leads elsewhere.
        for unknown in [a, ("fe80::1", 99)] {
            assert!(is_doubtful(&mut routes, &gone(one(&[unknown]))), "{unknown:?}");
        }
        assert_eq!(told(&mut routes, gone(one(&[c]))), "via fe80::2%r1");
        assert!(!is_doubtful(&mut routes, &one(&[b, c])));
        // All together, in any order.
        assert_eq!(told(&mut routes, gone(one(&[c, b]))), "");
        assert!(routes.is_empty());
        assert!(!is_doubtful(&mut routes, &gone(one(&[c]))), "nothing is there to go");
    }

    #[test]
    fn routes_of_inet6_stand_beside_those_that_they_do_not_grow_from() {
        let mut routes = routes();
        let [near, far] = [7, 8].map(|interface| event("2001:db8::/64", 0, &[("", interface)]));
        assert_eq!(told(&mut routes, near.clone()), "dev r0");
        assert_eq!(told(&mut routes, far.clone()), "dev r0");
        assert_eq!(told(&mut routes, gone(near)), "dev r1");
        assert_eq!(told(&mut routes, gone(far)), "");
        // Of two gateways nobody said that they are one route, or that they aren't.
        let [near, far] = [("fe80::1", 7), ("fe80::2", 8)].map(|hop| event("::/0", 0, &[hop]));
        assert!(!is_doubtful(&mut routes, &near));
        assert!(is_doubtful(&mut routes, &far));
        assert_eq!(told(&mut routes, near), "via fe80::1%r0");
        let other = RouteEvent { replaces: true, ..event("::/0", 0, &[("fe80::3", 7)]) };
        assert!(is_doubtful(&mut routes, &other), "it may stand for both");
    }

    #[test]
    fn what_is_told_twice_is_held_once_and_only_what_matches_goes() {
        let mut routes = routes();
        let one = event("10.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let two = RouteEvent { appends: true, ..event("10.0.0.0/8", 20, &[("192.0.2.2", 7)]) };
        routes.begin_anew([&one, &two]);
        assert_eq!(told(&mut routes, one.clone()), "via 192.0.2.1%r0");
        let unknown = event("10.0.0.0/8", 20, &[("192.0.2.3", 7)]);
        assert!(is_doubtful(&mut routes, &gone(unknown)));
        assert_eq!(told(&mut routes, gone(one)), "via 192.0.2.2%r0");
        assert_eq!(told(&mut routes, gone(two)), "");
        assert!(routes.is_empty());
    }

    #[test]
    fn beginning_anew_tells_what_is_different() {
        let mut routes = routes();
        let stays = event("10.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let goes = event("11.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let comes = event("12.0.0.0/8", 20, &[("192.0.2.1", 7)]);
        let first = routes.begin_anew([&stays, &goes]);
        assert_eq!((first.inet.len(), routes.len()), (2, 2));
        let mut second = routes.begin_anew([&stays, &comes]).inet;
        second.sort();
        let texts: Vec<_> = second.iter().map(Prefix::to_string).collect();
        assert_eq!(texts, ["11.0.0.0/8", "12.0.0.0/8"]);
    }
}
