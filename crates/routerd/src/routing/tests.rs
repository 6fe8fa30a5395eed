use super::*;
use fwdlab_model::router::{HostSetup, InterfaceSetup, RouterSetup};
use fwdlab_netio::netlink::{Hop, RouteEvent, RouteKind};

fn routing(host: bool) -> Routing {
    let setup = RouterSetup {
        routes: vec!["198.18.0.0/16 via 192.0.2.1".into()],
        interfaces: vec![InterfaceSetup {
            name: "r0".into(),
            mac: Some("02:00:00:00:00:01".into()),
            addresses: vec!["192.0.2.254/24".into()],
            ..InterfaceSetup::default()
        }],
        circuits: vec!["x".into()],
        host: host.then(HostSetup::default),
        ..RouterSetup::default()
    };
    crate::prepare(&setup, &[]).expect("a router").routing
}

fn via(routing: &Routing, address: &str) -> String {
    let address = V4::from_ip(address.parse().expect("one")).expect("IPv4");
    let mut hops = [None];
    routing.inet.lookup_batch(&[address], &mut hops);
    let via = hops[0].and_then(|hop| routing.next_hops.via(hop));
    via.map(Via::to_string).unwrap_or_default()
}

#[test]
fn change_adds_and_deletes_routes() {
    for host in [false, true] {
        let mut routing = routing(host);
        routing.change("add 198.19.1.0/24 via 192.0.2.9").expect("a next hop on the link");
        routing.change("delete 198.18.0.0/16").expect("a prefix");
        assert_eq!(via(&routing, "198.19.1.1"), "via 192.0.2.9");
        assert_eq!(via(&routing, "198.18.1.1"), "");
        let last = routing.next_hops.get(&Via::Address("192.0.2.9".parse().expect("one")));
        assert!(last.is_some_and(|last| routing.neighbours.gateway(last).is_some()));
        let wrong = [
            "add 198.18.0.0/16",
            "add x via 192.0.2.1",
            "add 10.0.0.0/8 via 10.9.9.9",
            "add 10.0.0.0/8 via 192.0.2.5 via 10.9.9.9",
            "add 10.0.0.0/8 via 192.0.2.5 via fe80::1%nowhere",
        ];
        for wrong in wrong {
            assert!(routing.change(wrong).is_err(), "{wrong}");
        }
        assert_eq!(via(&routing, "10.1.1.1"), "", "a refused route is not installed");
        // A next hop of refused routes.
        routing.change("add 10.0.0.0/8 via 192.0.2.5").expect("a next hop on the link");
        let hop = routing.next_hops.get(&Via::Address("192.0.2.5".parse().expect("one")));
        assert!(hop.is_some_and(|hop| routing.neighbours.gateway(hop).is_some()));
        if host {
            let gone = routing.change("delete 198.18.0.0/16");
            assert_eq!(gone, Err("198.18.0.0/16: no such route".to_owned()));
        }
        routing.change("add default via 192.0.2.9").expect("a next hop on the link");
        assert_eq!(via(&routing, "203.0.113.1"), "via 192.0.2.9");
        routing.change("delete default").expect("the only one");
        assert_eq!(via(&routing, "203.0.113.1"), "");
    }
}

#[test]
fn set_up_routes_precede_kernel_routes_and_those_precede_links() {
    let mut routing = routing(true);
    let kernel = KernelRoutes::new(254, [(7, "r0".to_owned())].into_iter().collect());
    routing.follow(kernel).expect("no routes yet");
    let event = |prefix: &str, length, gateway: &str| {
        let hop = Hop { gateway: gateway.parse().ok(), interface: 7, weight: 1 };
        Event::Route(RouteEvent {
            table: 254,
            length,
            metric: 20,
            hops: vec![hop],
            ..RouteEvent::new(prefix.parse().expect("one"), RouteKind::Way)
        })
    };
    let events = [
        event("198.18.0.0", 16, "192.0.2.7"),
        event("10.0.0.0", 8, "192.0.2.7"),
        event("192.0.2.0", 24, "192.0.2.8"),
    ];
    routing.hear(&events).expect("routes");
    assert_eq!(via(&routing, "198.18.1.1"), "via 192.0.2.1");
    assert_eq!(via(&routing, "10.1.1.1"), "via 192.0.2.7%r0");
    assert_eq!(via(&routing, "192.0.2.66"), "via 192.0.2.8%r0");
    routing.change("delete 198.18.0.0/16").expect("a prefix");
    assert_eq!(via(&routing, "198.18.1.1"), "via 192.0.2.7%r0");
    routing.replace_all(&events[1..2]).expect("routes");
    assert_eq!(via(&routing, "198.18.1.1"), "");
    assert_eq!(via(&routing, "192.0.2.66"), "dev r0");
    assert_eq!(via(&routing, "10.1.1.1"), "via 192.0.2.7%r0");
}

/// Several times as many next hops as a peer of BGP may announce come and go: their numbers, and
/// the memory of their neighbours, are used again.
#[test]
fn numbers_of_next_hops_are_given_back() {
    const EACH: u32 = 20_000;
    let mut routing = routing(true);
    let kernel = KernelRoutes::new(254, [(7, "r0".to_owned())].into_iter().collect());
    routing.follow(kernel).expect("no routes yet");
    let event = |number: u32, is_gone| {
        let gateway = Some((0x0b00_0000 + number).to_be_bytes().into());
        Event::Route(RouteEvent {
            is_gone,
            table: 254,
            length: 32,
            hops: vec![Hop { gateway, interface: 7, weight: 1 }],
            ..RouteEvent::new((0x1400_0000 + number).to_be_bytes().into(), RouteKind::Way)
        })
    };
    for round in 0..4 {
        for is_gone in [false, true] {
            let numbers = round * EACH..(round + 1) * EACH;
            let all: Vec<Event> = numbers.map(|number| event(number, is_gone)).collect();
            for some in all.chunks(500) {
                routing.hear(some).expect("routes");
            }
            let address = IpAddr::from((0x1400_0007 + round * EACH).to_be_bytes()).to_string();
            assert_eq!(via(&routing, &address).is_empty(), is_gone, "{round}");
        }
        routing.retired.iter_mut().for_each(|(since, _)| *since -= GRACE);
    }
    let total = routing.next_hops.vias().len();
    assert!(total < 3 * EACH as usize, "{total} numbers");
}
