//! Tests of the kernel's routes.

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
        table: 254,
        length: length.parse().expect("a length"),
        metric,
        hops: hops.iter().map(hop).collect(),
        ..RouteEvent::new(address.parse().expect("an address"), RouteKind::Way)
    }
}

fn gone(event: RouteEvent) -> RouteEvent {
    RouteEvent { is_gone: true, ..event }
}

fn via_after(routes: &mut KernelRoutes, event: RouteEvent) -> String {
    let mut changed = Changed::default();
    routes.hear(&Event::Route(event), &mut changed);
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
        routes.hear(&Event::Route(event(prefix, 0, &[("", 7)])), &mut changed);
        assert_eq!(changed, Changed::default(), "{prefix}");
    }
    assert_eq!(via_after(&mut routes, event("::/0", 0, &[("fe80::1", 7)])), "via fe80::1%r0");
}

/// Returns true if all routes must be read again.
fn is_doubtful(routes: &mut KernelRoutes, event: &RouteEvent) -> bool {
    let mut changed = Changed::default();
    routes.hear(&Event::Route(event.clone()), &mut changed);
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
    routes.replace_all(&[one.clone(), two.clone()].map(Event::Route));
    assert_eq!(via_after(&mut routes, one.clone()), "via 192.0.2.1%r0");
    let unknown = event("10.0.0.0/8", 20, &[("192.0.2.3", 7)]);
    assert!(is_doubtful(&mut routes, &gone(unknown)));
    assert_eq!(via_after(&mut routes, gone(one)), "via 192.0.2.2%r0");
    assert_eq!(via_after(&mut routes, gone(two)), "");
    assert!(routes.is_empty());
}

#[test]
fn replace_all_returns_changed_prefixes() {
    let mut routes = routes();
    let kept = event("10.0.0.0/8", 20, &[("192.0.2.1", 7)]);
    let removed = event("11.0.0.0/8", 20, &[("192.0.2.1", 7)]);
    let added = event("12.0.0.0/8", 20, &[("192.0.2.1", 7)]);
    let first = routes.replace_all(&[kept.clone(), removed].map(Event::Route));
    assert_eq!((first.inet.len(), routes.len()), (2, 2));
    let mut second = routes.replace_all(&[kept, added].map(Event::Route)).inet;
    second.sort();
    let texts: Vec<_> = second.iter().map(Prefix::to_string).collect();
    assert_eq!(texts, ["11.0.0.0/8", "12.0.0.0/8"]);
}
