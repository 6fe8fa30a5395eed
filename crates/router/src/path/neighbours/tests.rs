//! Tests of neighbours without frames.

use super::*;

fn hop(number: NextHop) -> Hop {
    Hop { number, host: None, mtu: u16::MAX }
}

#[test]
fn entries_are_indexed_by_next_hop() {
    let number = |n| NextHop::new(n).expect("a number");
    let neighbour = Neighbour { port: 0, mac: [2; 6] };
    let mut neighbours = Neighbours::new();
    neighbours.set(number(2), neighbour).expect("a low number");
    assert_eq!(neighbours.get(number(2)), Some(&neighbour));
    assert_eq!(neighbours.get(number(1)), None);
    assert_eq!(neighbours.get(number(3)), None);
    let high = neighbours.set(number(NUMBER_MAX + 1), neighbour);
    assert_eq!(high, Err(NumberTooHigh(NUMBER_MAX + 1)));
    let interface = Interface { mac: [4; 6], mtu: 1500, addresses: Vec::new() };
    let links = neighbours.links(&[interface]);
    assert_eq!(links[2].macs, [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4]);
    assert_eq!((links[1].mtu, links[2].mtu), (0, 1500));
    let address = "198.18.0.9".parse().expect("one");
    let gateway = Gateway { port: 0, address };
    neighbours.set_gateway(number(2), gateway).expect("a low number");
    neighbours.set_gateway(number(0), gateway).expect("a low number");
    assert_eq!(neighbours.gateway(number(2)), Some(&gateway));
    assert_eq!((neighbours.get(number(0)), neighbours.get(number(2))), (None, Some(&neighbour)));
    assert_eq!((neighbours.iter().count(), neighbours.ports().count()), (1, 3));
    let reference = neighbours.clone().reference(number(2)).expect("an entry");
    assert_eq!(Arc::strong_count(&reference), 2, "clones count the same references");
}

#[test]
fn clones_share_learnt_macs_and_request_once_a_second() {
    let [known, unresolved, other] = [0, 1, 2].map(|n| NextHop::new(n).expect("a number"));
    let gateway = |last| Gateway { port: 0, address: [198, 18, 0, last].into() };
    let mut neighbours = Neighbours::new();
    let fixed = Neighbour { port: 0, mac: [2; 6] };
    neighbours.set(known, fixed).expect("a low number");
    neighbours.set_gateway(known, gateway(8)).expect("a low number");
    neighbours.set_gateway(unresolved, gateway(9)).expect("a low number");
    let clone = neighbours.clone();
    const SECOND: u64 = 1_000_000_000;
    assert_eq!(neighbours.to_be_asked(hop(known), 0), None);
    assert_eq!(neighbours.to_be_asked(hop(other), 0), None);
    assert_eq!(neighbours.to_be_asked(hop(unresolved), 0), Some(gateway(9)));
    assert_eq!(clone.to_be_asked(hop(unresolved), SECOND - 1), None);
    assert_eq!(clone.to_be_asked(hop(unresolved), SECOND), Some(gateway(9)));
    let before = clone.changes();
    // Another port, another address, invalid MACs.
    neighbours.learn(Gateway { port: 1, ..gateway(9) }, [4; 6], (Manner::Replaces, true), 0);
    neighbours.learn(gateway(7), [4; 6], (Manner::Replaces, true), 0);
    neighbours.learn(gateway(9), [5; 6], (Manner::Replaces, true), 0);
    neighbours.learn(gateway(9), [0; 6], (Manner::Replaces, true), 0);
    assert_eq!((clone.changes(), clone.learnt(unresolved)), (before, None));
    neighbours.learn(gateway(9), [4; 6], (Manner::Confirms, true), 0);
    neighbours.learn(gateway(9), [6; 6], (Manner::Confirms, true), 0);
    assert_eq!(clone.learnt(unresolved), Some([4; 6]));
    assert_eq!(clone.to_be_asked(hop(unresolved), 9 * SECOND), None);
    neighbours.learn(gateway(8), [6; 6], (Manner::Replaces, true), 0);
    let interface = Interface { mac: [8; 6], mtu: 1500, addresses: Vec::new() };
    let mut links = [Link::UNKNOWN; 2];
    clone.renew(&mut links, &[interface]);
    assert_eq!(links[0].macs, [2, 2, 2, 2, 2, 2, 8, 8, 8, 8, 8, 8]);
    assert_eq!(links[1].macs, [4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8]);
}

#[test]
fn list_contains_answers_and_no_announcements() {
    const SECOND: u64 = 1_000_000_000;
    let gateway = |last| Gateway { port: 0, address: [198, 18, 0, last].into() };
    let mut neighbours = Neighbours::new();
    for last in [8, 9, 10] {
        let number = NextHop::new(last.into()).expect("a number");
        neighbours.set_gateway(number, gateway(last)).expect("a low number");
    }
    neighbours.learn(gateway(8), [4; 6], (Manner::Begins, true), 100 * SECOND);
    neighbours.learn(gateway(9), [6; 6], (Manner::Begins, false), 100 * SECOND);
    let listed = neighbours.list(101 * SECOND);
    let listed = listed.iter().map(|known| (known.reachability, known.answered_ns));
    let expected = [
        (Reachability::Reachable, Some(100 * SECOND)),
        (Reachability::Stale, None),
        (Reachability::Unknown, None),
    ];
    assert_eq!(listed.collect::<Vec<_>>(), expected);
}

#[test]
fn stale_macs_are_probed_after_use_and_forgotten_without_answer() {
    const SECOND: u64 = 1_000_000_000;
    let [fixed, used, unused] = [0, 1, 2].map(|n| NextHop::new(n).expect("a number"));
    let gateway = |last| Gateway { port: 0, address: [198, 18, 0, last].into() };
    let mut neighbours = Neighbours::new();
    neighbours.set(fixed, Neighbour { port: 0, mac: [2; 6] }).expect("a low number");
    for (next_hop, last) in [(fixed, 8), (used, 9), (unused, 10)] {
        neighbours.set_gateway(next_hop, gateway(last)).expect("a low number");
    }
    let other = neighbours.clone();
    let interfaces = [Interface { mac: [8; 6], mtu: 1500, addresses: Vec::new() }];
    let age = |of: &Neighbours, second| of.age(second * SECOND, (second - 1) * SECOND);
    let has_links = |of: &Neighbours| {
        [fixed, used, unused].map(|number| of.links(&interfaces)[number.number() as usize].mtu > 0)
    };
    let probes = Aged { requests: vec![(gateway(9), [4; 6])], ..Aged::default() };
    for last in 8..=10 {
        neighbours.learn(gateway(last), [4; 6], (Manner::Replaces, true), 100 * SECOND);
    }
    // Neither a contradiction that must not override nor a repetition is an answer.
    neighbours.learn(gateway(9), [6; 6], (Manner::Confirms, true), 115 * SECOND);
    neighbours.learn(gateway(9), [4; 6], (Manner::Begins, false), 116 * SECOND);
    assert_eq!(
        [99, 129].map(|second| age(&neighbours, second)),
        [Aged::default(), Aged::default()]
    );
    assert_eq!(has_links(&neighbours), [true; 3]);
    // Every worker notices the next use.
    assert!(age(&neighbours, 130).is_newly_stale && age(&other, 130).is_newly_stale);
    assert_eq!(has_links(&other), [true, false, false]);
    let entry = other.reference(used).expect("an entry");
    assert_eq!([130, 130, 134].map(|second| entry.use_at(second * SECOND)), [true, false, false]);
    assert_eq!(has_links(&neighbours), [true, true, false]);
    assert_eq!((age(&neighbours, 134), age(&neighbours, 135)), (Aged::default(), probes));
    assert_eq!(age(&other, 135), Aged::default(), "each second once");
    assert_eq!(age(&other, 136).requests.len(), 1);
    neighbours.learn(gateway(9), [4; 6], (Manner::Repeats, true), 137 * SECOND);
    assert_eq!(age(&other, 137), Aged::default());
    // Unanswered this time.
    assert!(age(&other, 167).is_newly_stale && entry.use_at(168 * SECOND));
    let changes = other.changes();
    for second in 173..176 {
        assert_eq!(age(&neighbours, second).requests.len(), 1);
        assert_eq!((other.learnt(used), other.changes()), (Some([4; 6]), changes));
    }
    assert_eq!(age(&neighbours, 176), Aged::default());
    assert_eq!((other.learnt(used), other.changes()), (None, changes + 1));
    assert_eq!(other.to_be_asked(hop(used), 177 * SECOND), Some(gateway(9)));
    // Announced without an answer: doubted from the beginning.
    neighbours.learn(gateway(9), [6; 6], (Manner::Begins, false), 177 * SECOND);
    assert_eq!(has_links(&other), [true, true, false]);
    assert!(age(&other, 178).is_newly_stale && entry.use_at(178 * SECOND));
    assert_eq!(age(&other, 183).requests, [(gateway(9), [6; 6])]);
    // The unused one is forgotten without a request; the static one is never doubted.
    assert_eq!(age(&other, 1299).requests.len(), 1);
    assert_eq!(other.learnt(unused), Some([4; 6]));
    age(&other, 1300);
    assert_eq!((other.learnt(unused), other.learnt(fixed)), (None, Some([4; 6])));
    neighbours.forget(0);
    assert_eq!(has_links(&neighbours), [true, false, false]);
}
