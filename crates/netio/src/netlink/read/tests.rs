//! Tests of reading messages.

use super::super::next_hop::{NEXT_HOP_MESSAGE, NextHopObject};
use super::super::route::*;
use super::*;
use crate::netlink::message::{Writer, messages};

/// Writes a route message with these attributes.
fn route(kind: u16, flags: u16, head: [u8; ROUTE], rest: &[(u16, &[u8])]) -> Vec<u8> {
    let mut writer = Writer::new(kind, flags, 0);
    writer.put(&head);
    rest.iter().for_each(|(kind, value)| writer.attribute(*kind, value));
    writer.finish()
}

fn event(bytes: &[u8]) -> Result<Option<Event>, Malformed> {
    read(&messages(bytes).next().expect("a message").expect("whole"))
}

/// Returns `struct rtmsg` of a family, length and type, in table `main`.
fn head(family: i32, length: u8, kind: u8) -> [u8; ROUTE] {
    [family as u8, length, 0, 0, 254, 16, 0, kind, 0, 0, 0, 0]
}

const V4: i32 = libc::AF_INET;
const V6: i32 = libc::AF_INET6;

#[test]
fn read_returns_route_with_next_hops() {
    let rest: [(u16, &[u8]); 5] = [
        (RTA_DST, &[10, 1, 0, 0]),
        (RTA_GATEWAY, &[192, 0, 2, 7]),
        (RTA_OIF, &4u32.to_ne_bytes()),
        (RTA_PRIORITY, &20u32.to_ne_bytes()),
        (RTA_TABLE, &1000u32.to_ne_bytes()),
    ];
    let bytes = route(RTM_NEWROUTE, NLM_F_REPLACE, head(V4, 16, 1), &rest);
    let gateway = Some("192.0.2.7".parse().expect("one"));
    let expected = RouteEvent {
        replaces: true,
        table: 1000,
        length: 16,
        metric: 20,
        hops: vec![Hop { gateway, interface: 4, weight: 1 }],
        ..RouteEvent::new("10.1.0.0".parse().expect("one"), RouteKind::Way)
    };
    assert_eq!(event(&bytes), Ok(Some(Event::Route(expected))));
    let via6 = [&(V6 as u16).to_ne_bytes()[..], &[0x20; 16]].concat();
    let rest: [(u16, &[u8]); 2] = [(RTA_VIA, &via6), (RTA_OIF, &4u32.to_ne_bytes())];
    let Ok(Some(Event::Route(found))) = event(&route(RTM_DELROUTE, 0, head(V4, 0, 1), &rest))
    else {
        panic!("a route");
    };
    assert!(found.is_gone && found.hops[0].gateway.is_some_and(|via| via.is_ipv6()));
    for (kind, expected) in
        [(6, RouteKind::Blackhole), (7, RouteKind::Unreachable), (8, RouteKind::Prohibit)]
    {
        let bytes = route(RTM_NEWROUTE, 0, head(V6, 32, kind), &[(RTA_DST, &[0x20; 16])]);
        let Ok(Some(Event::Route(found))) = event(&bytes) else { panic!("a route") };
        assert_eq!((found.kind, found.hops), (expected, Vec::new()));
    }
}

fn hop(flags: u8, weight: u8, interface: u32, gateway: [u8; 4]) -> Vec<u8> {
    let [a, b, c, d] = gateway;
    let interface = interface.to_ne_bytes();
    [&[16, 0, flags, weight][..], &interface, &[8, 0, RTA_GATEWAY as u8, 0, a, b, c, d]].concat()
}

#[test]
fn read_skips_dead_next_hops() {
    let hops = [
        hop(0, 0, 3, [192, 0, 2, 1]),
        hop(1, 0, 4, [192, 0, 2, 2]),
        hop(0, 255, 5, [192, 0, 2, 3]),
    ]
    .concat();
    let bytes = route(RTM_NEWROUTE, 0, head(V4, 0, 1), &[(RTA_MULTIPATH, &hops)]);
    let Ok(Some(Event::Route(found))) = event(&bytes) else { panic!("a route") };
    let found: Vec<_> = found.hops.iter().map(|hop| (hop.interface, hop.weight)).collect();
    assert_eq!(found, [(3, 1), (5, 256)]);
    // All links without carrier: the route stays.
    let down = [hop(16, 0, 3, [192, 0, 2, 1]), hop(17, 0, 4, [192, 0, 2, 2])].concat();
    let bytes = route(RTM_NEWROUTE, 0, head(V4, 0, 1), &[(RTA_MULTIPATH, &down)]);
    let Ok(Some(Event::Route(found))) = event(&bytes) else { panic!("a route") };
    assert_eq!(found.hops.iter().map(|hop| hop.interface).collect::<Vec<_>>(), [3]);
    // A single next hop has its flags in the route's.
    for (flag, expected) in [(1u8, 0), (17, 0), (16, 1), (0, 1)] {
        let mut head = head(V4, 0, 1);
        head[8..].copy_from_slice(&u32::from(flag).to_ne_bytes());
        let rest: [(u16, &[u8]); 1] = [(RTA_OIF, &4u32.to_ne_bytes())];
        let found = event(&route(RTM_NEWROUTE, 0, head, &rest));
        let Ok(Some(Event::Route(found))) = found else { panic!("a route") };
        assert_eq!(found.hops.len(), expected, "flags {flag}");
    }
    for cut in 1..hops.len() {
        let rest: [(u16, &[u8]); 1] = [(RTA_MULTIPATH, &hops[..cut])];
        let cut_short = event(&route(RTM_NEWROUTE, 0, head(V4, 0, 1), &rest));
        assert_eq!(cut_short.is_err(), cut % 16 != 0, "{cut}");
    }
}

#[test]
fn read_ignores_unsupported_and_rejects_malformed_routes() {
    let cloned = [V6 as u8, 128, 0, 0, 254, 0, 0, 1, 0, 2, 0, 0];
    assert_eq!(event(&route(RTM_NEWROUTE, 0, cloned, &[])), Ok(None));
    assert_eq!(event(&route(RTM_NEWROUTE, 0, head(7, 0, 1), &[])), Ok(None));
    assert_eq!(event(&route(RTM_NEWROUTE, 0, head(V4, 0, 3), &[])), Ok(None));
    assert!(event(&route(RTM_NEWROUTE, 0, head(V4, 33, 1), &[])).is_err());
    assert!(event(&route(RTM_NEWROUTE, 0, head(V4, 8, 1), &[(RTA_DST, &[1; 3])])).is_err());
    assert!(event(&route(RTM_NEWROUTE, 0, head(V4, 8, 1), &[(RTA_OIF, &[1])])).is_err());
    for kind in [NLMSG_ERROR, RTM_NEWROUTE, RTM_NEWLINK, RTM_DELLINK] {
        assert!(event(&Writer::new(kind, 0, 0).finish()).is_err(), "{kind}");
    }
    assert_eq!(event(&Writer::new(99, 0, 0).finish()), Ok(None));
}

/// Arbitrary bytes cause no panic, and reading ends.
#[test]
fn read_accepts_arbitrary_bytes() {
    let hops = hop(0, 0, 3, [192, 0, 2, 1]);
    let whole = route(RTM_NEWROUTE, 0, head(V4, 0, 1), &[(RTA_MULTIPATH, &hops)]);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..200_000 {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let at = seed as usize % bytes.len();
            bytes[at] = (seed >> 32) as u8;
        }
        bytes.truncate(seed as usize >> 8 & 127);
        let read = messages(&bytes).map(|message| message.and_then(|m| read(&m)));
        assert!(read.count() <= 1 + bytes.len() / 16);
    }
}

#[test]
fn read_returns_link_name_and_carrier() {
    let mut writer = Writer::new(RTM_NEWLINK, 0, 0);
    let [flags, index] = [(IFF_UP | IFF_LOWER_UP).to_ne_bytes(), 9u32.to_ne_bytes()];
    writer.put(&[&[0; 4][..], &index, &flags, &[0; 4]].concat());
    writer.attribute(IFLA_IFNAME, b"eth1\0");
    writer.attribute(IFLA_CARRIER_DOWN_COUNT, &3u32.to_ne_bytes());
    let (name, is_up, has_carrier, carrier_losses) = ("eth1".into(), true, true, 3);
    let state = LinkState { index: 9, name, is_up, has_carrier, carrier_losses };
    assert_eq!(event(&writer.finish()), Ok(Some(Event::Link(state))));
}

/// Parts that a router must not omit are named, or belong to the route.
#[test]
fn read_returns_limits_and_unsupported_parts() {
    let found = |head: [u8; ROUTE], rest: &[(u16, &[u8])]| {
        let Ok(Some(Event::Route(found))) = event(&route(RTM_NEWROUTE, 0, head, rest)) else {
            panic!("a route");
        };
        found
    };
    let mut from = head(V6, 0, 1);
    from[2] = 64;
    let address = "fd77::".parse::<std::net::Ipv6Addr>().expect("one");
    let source = found(from, &[(RTA_SRC, &address.octets())]).source;
    assert_eq!(source, Some((address.into(), 64)));
    let mut low_delay = head(V4, 8, 1);
    low_delay[3] = 0x10;
    assert_eq!(found(low_delay, &[]).unsupported, Some(Unsupported::TypeOfService(0x10)));
    let encapsulation = Some(Unsupported::Encapsulation);
    assert_eq!(found(head(V4, 8, 1), &[(RTA_ENCAP, &[])]).unsupported, encapsulation);
    let mut hop = hop(0, 0, 3, [192, 0, 2, 1]);
    hop[0] += 8;
    hop.extend([8, 0, RTA_ENCAP_TYPE as u8, 0, 1, 0, 0, 0]);
    let several = found(head(V4, 8, 1), &[(RTA_MULTIPATH, &hop)]);
    assert_eq!((several.hops.len(), several.unsupported), (1, encapsulation));
    assert_eq!(found(head(V4, 8, 9), &[]).kind, RouteKind::Throw);
    assert_eq!(found(head(V4, 8, 1), &[(RTA_NH_ID, &7u32.to_ne_bytes())]).object, Some(7));
    for (locks, is_locked) in [(0u32, false), (1 << RTAX_MTU, true)] {
        let metric =
            |kind: u16, value: u32| [&[8, 0, kind as u8, 0][..], &value.to_ne_bytes()[..]].concat();
        let metrics = [metric(RTAX_LOCK, locks), metric(RTAX_MTU, 1300)].concat();
        let limit = found(head(V4, 8, 1), &[(RTA_METRICS, &metrics)]).mtu;
        assert_eq!(limit, Some(RouteMtu { bytes: 1300, is_locked }));
    }
}

#[test]
fn read_returns_next_hop_objects() {
    let object = |flags: u32, rest: &[(u16, &[u8])]| {
        let mut writer = Writer::new(RTM_NEWNEXTHOP, 0, 0);
        let mut head = [V4 as u8, 0, 0, 0, 0, 0, 0, 0];
        head[4..].copy_from_slice(&flags.to_ne_bytes());
        writer.put(&head);
        writer.attribute(1, &7u32.to_ne_bytes());
        rest.iter().for_each(|(kind, value)| writer.attribute(*kind, value));
        match event(&writer.finish()) {
            Ok(Some(Event::NextHop(found))) if found.number == 7 => Ok(found.object),
            other => Err(other),
        }
    };
    let gateway = Some("192.0.2.7".parse().expect("one"));
    let hop = Hop { gateway, interface: 4, weight: 1 };
    let rest: [(u16, &[u8]); 2] = [(5, &4u32.to_ne_bytes()), (6, &[192, 0, 2, 7])];
    for (flags, is_usable) in [(0, true), (1 << 4, false)] {
        let expected = NextHopObject::Hop { hop, is_usable, is_encapsulated: false };
        assert_eq!(object(flags, &rest), Ok(expected));
    }
    let encapsulated = object(0, &[rest[0], rest[1], (7, &[1, 0])]).expect("a next hop");
    assert!(matches!(encapsulated, NextHopObject::Hop { is_encapsulated: true, .. }));
    assert_eq!(object(0, &[(4, &[])]), Ok(NextHopObject::Blackhole));
    let member = |number: u32, weight: u8| [&number.to_ne_bytes()[..], &[weight, 0, 0, 0]].concat();
    let members = [member(3, 0), member(4, 2)].concat();
    assert_eq!(object(0, &[(2, &members)]), Ok(NextHopObject::Group(vec![(3, 1), (4, 3)])));
    assert!(object(0, &[(2, &members[..9])]).is_err());
    let bytes = Writer::new(RTM_NEWNEXTHOP, 0, 0).finish();
    assert!(event(&bytes).is_err(), "{NEXT_HOP_MESSAGE} bytes are missing");
}
