//! Neighbours that are requested and learnt while packets are forwarded.

use crate::support::*;
use etherparse::{SlicedPacket, TransportSlice};
use fwdlab_packet::{Family, checksum};
use fwdlab_router::path::{
    Class, Config, ForwardingPath, Gateway, Neighbour, Neighbours, Rate, ReversePath, Special,
};

const SECOND: u64 = 1_000_000_000;
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 0x30];
const PEER: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xab, 9];
const OWN: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Counters of a packet that waits, and of one that triggers a request.
const WAITS: [&str; 2] = ["slow_waiting", "silent"];
const REQUESTED: [&str; 3] = ["slow_waiting", "silent", "neighbours_asked"];

/// Both paths; the receiver's side is reached through this address, whose MAC is unknown.
fn configs(address: &str) -> [Config; 2] {
    ForwardingPath::IN_PROCESS.map(|path| {
        let gateway = Gateway { port: 1, address: address.parse().expect("one") };
        let mut neighbours = Neighbours::new();
        neighbours.set_gateway(hop(0), gateway).expect("a low number");
        Config { neighbours, path, ..config() }
    })
}

/// An ARP packet of the other router about itself.
fn arp(operation: u8, to: [u8; 6], target: [u8; 4]) -> Vec<u8> {
    let mut frame = [&to[..], &OTHER, &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation], &OTHER].concat();
    frame.extend([198, 19, 0, 9]);
    frame.extend(FAR);
    frame.extend(target);
    frame
}

#[test]
fn arp_requests_are_sent_once_a_second_and_replies_learnt() {
    for config in configs("198.19.0.9") {
        let mut lab = lab_of(&config);
        let packet = udp(Family::Inet, 64);
        assert_eq!(lab.send(&packet).1, REQUESTED);
        #[rustfmt::skip]
        let request = [
            &[0xff; 6][..], &FAR, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &FAR, &[198, 19, 0, 1], &[0; 6], &[198, 19, 0, 9], &[0; 18],
        ].concat();
        assert_eq!(lab.emitted(), [(1, request.clone())]);
        assert_eq!(lab.send_at(&packet, SECOND - 1).1, WAITS);
        // Another worker does not repeat the request.
        let mut second = lab_of(&config);
        assert_eq!(second.send_at(&packet, SECOND - 1).1, WAITS);
        let (_, names) = second.send_at(&packet, SECOND);
        assert_eq!(names, REQUESTED);
        assert_eq!((lab.emitted(), second.emitted()), (vec![], vec![(1, request)]));

        // Replies to another host, and from another link, are not learnt.
        lab.send_from(1, &arp(2, FAR, [198, 19, 0, 77]), SECOND);
        lab.send_from(0, &arp(2, NEAR, [198, 18, 0, 1]), SECOND);
        assert_eq!(lab.send_at(&packet, SECOND).1, WAITS);
        let (out, names) = lab.send_from(1, &arp(2, FAR, [198, 19, 0, 1]), SECOND);
        assert_eq!((out, names), (None, vec!["slow_neighbour", "silent", "waited_sent"]));
        let sent = lab.emitted();
        assert!(sent.len() == 3 && sent.iter().all(|(_, frame)| frame[..6] == OTHER), "{sent:?}");
        assert_eq!(config.neighbours.learnt(hop(0)), Some(OTHER));
        for lab in [&mut lab, &mut second] {
            let (out, names) = lab.send_at(&packet, 9 * SECOND);
            assert_eq!(names[0], "forwarded");
            assert_eq!(out.expect("it is sent").1[..12], [OTHER, FAR].concat());
            let snapshot = lab.counters.read();
            assert_eq!(snapshot.total(Class::Answer), snapshot.total(Class::Slow));
        }
    }
}

#[test]
fn senders_of_requests_are_learnt() {
    for config in configs("198.19.0.9") {
        let mut lab = lab_of(&config);
        lab.send_from(1, &arp(1, [0xff; 6], [198, 19, 0, 77]), 0);
        assert_eq!(config.neighbours.learnt(hop(0)), None);
        let (out, names) = lab.send_from(1, &arp(1, [0xff; 6], [198, 19, 0, 1]), 0);
        assert_eq!((out.map(|(port, _)| port), names[1]), (Some(1), "answered"));
        assert_eq!(lab.send(&udp(Family::Inet, 64)).1, ["forwarded"]);
    }
}

/// A neighbour discovery message from the other router to the far interface.
fn discovery(kind: u8, flags: u8, target: [u8; 16], option: u8, mac: [u8; 6]) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
    message.extend(target);
    // An unknown option comes first.
    message.extend([99, 1, 0, 0, 0, 0, 0, 0, option, 1]);
    message.extend(mac);
    let length = message.len() as u8;
    let mut frame = [&FAR[..], &mac, &[0x86, 0xdd, 0x60, 0, 0, 0, 0, length, 58, 255]].concat();
    frame.extend([PEER, OWN].concat());
    frame.extend(message);
    let sum = checksum::add(checksum::add(0, &frame[22..]), &[0, length, 0, 58]);
    frame[56..58].copy_from_slice(&checksum::finish(sum));
    frame
}

#[test]
fn solicitations_are_sent_and_advertisements_learnt() {
    for config in configs("fe80::ab09") {
        let mut lab = lab_of(&config);
        let packet = udp(Family::Inet6, 84);
        assert_eq!(lab.send(&packet).1, REQUESTED);
        let [(1, request)] = &lab.emitted()[..] else { panic!("one question") };
        assert_eq!(request[..12], [0x33, 0x33, 0xff, 0, 0xab, 9, 2, 0, 0, 0, 0, 2]);
        assert_eq!((request[21], &request[22..38]), (255, &OWN[..]));
        assert_eq!(request[38..54], [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0xab, 9]);
        assert_eq!((request[54], &request[62..78]), (135, &PEER[..]));
        assert_eq!(request[78..], [1, 1, 2, 0, 0, 0, 0, 2]);
        let sliced = SlicedPacket::from_ethernet(request).expect("etherparse reads it");
        let Some(TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("no ICMPv6") };
        let to = request[38..54].try_into().expect("16 bytes");
        assert!(icmp.is_checksum_valid(OWN, to));

        let learnt_after = |lab: &mut Lab, frame: &[u8]| {
            lab.send_from(1, frame, 0);
            config.neighbours.learnt(hop(0))
        };
        let mut corrupt = discovery(136, 0x40, PEER, 2, OTHER);
        corrupt[60] ^= 1;
        assert_eq!(learnt_after(&mut lab, &corrupt), None);
        let mut routed = discovery(136, 0x40, PEER, 2, OTHER);
        routed[21] = 254;
        assert_eq!(learnt_after(&mut lab, &routed), None);
        assert_eq!(learnt_after(&mut lab, &discovery(136, 0x40, OWN, 2, OTHER)), None);
        assert_eq!(learnt_after(&mut lab, &discovery(136, 0x40, PEER, 1, OTHER)), None);
        assert_eq!(learnt_after(&mut lab, &discovery(136, 0x40, PEER, 2, OTHER)), Some(OTHER));
        let (out, names) = lab.send(&packet);
        assert_eq!(names, ["forwarded"]);
        assert_eq!(out.expect("it is sent").1[..6], OTHER);
        // Another MAC replaces it if the message has the override flag, or is a request.
        assert_eq!(learnt_after(&mut lab, &discovery(136, 0x40, PEER, 2, SENDER)), Some(OTHER));
        assert_eq!(learnt_after(&mut lab, &discovery(136, 0x60, PEER, 2, SENDER)), Some(SENDER));
        assert_eq!(learnt_after(&mut lab, &discovery(135, 0, OWN, 1, OTHER)), Some(OTHER));
        assert_eq!(learnt_after(&mut lab, &discovery(135, 0, PEER, 1, SENDER)), Some(OTHER));
    }
}

/// Neighbour unreachability detection (RFC 4861 section 7.3), for both families: a neighbour in use
/// that no longer answers is detected within a minute.
#[test]
fn silent_neighbours_are_detected_within_a_minute() {
    for (address, family) in [("198.19.0.9", Family::Inet), ("fe80::ab09", Family::Inet6)] {
        let is_inet = family == Family::Inet;
        let answer = || match is_inet {
            true => arp(2, FAR, [198, 19, 0, 1]),
            false => discovery(136, 0x60, PEER, 2, OTHER),
        };
        for config in configs(address) {
            let [mut lab, mut second] = [lab_of(&config), lab_of(&config)];
            let packet = udp(family, 84);
            lab.send_at(&packet, 100 * SECOND);
            lab.emitted();
            lab.send_from(1, &answer(), 100 * SECOND);
            assert_eq!(lab.emitted().len(), 1, "the packet that waited");
            // Used all the time: queried at its MAC, and confirmed by its answers.
            let mut requests = 0;
            for half in 202..360 {
                let now = half * SECOND / 2;
                for lab in [&mut lab, &mut second] {
                    let (out, names) = lab.send_at(&packet, now);
                    assert_eq!((names[0], &out.expect("sent").1[..6]), ("forwarded", &OTHER[..]));
                }
                for (port, request) in [lab.emitted(), second.emitted()].concat() {
                    assert_eq!((port, &request[..12]), (1, &[OTHER, FAR].concat()[..]));
                    let asked = if is_inet { &request[38..42] } else { &request[38..54] };
                    assert_eq!(asked, if is_inet { &[198, 19, 0, 9][..] } else { &PEER });
                    lab.send_from(1, &answer(), now);
                    requests += 1;
                }
            }
            assert_eq!(requests, 2, "one of two workers asks, every 35 s or so");
            // Without answers it is forgotten by all.
            let (mut requests, mut at) = (0, 180);
            while lab.send_at(&packet, at * SECOND).1[0] == "forwarded" {
                assert_eq!(second.send_at(&packet, at * SECOND).1[0], "forwarded");
                requests += lab.emitted().len() + second.emitted().len();
                at += 1;
            }
            assert_eq!(requests, 3);
            assert!((180..240).contains(&at), "{at}");
            assert_eq!(second.send_at(&packet, at * SECOND).1[0], "slow_waiting");
            assert_eq!(config.neighbours.learnt(hop(0)), None);
            // Then the request goes to the whole link, and another MAC may answer.
            lab.emitted();
            lab.send_at(&packet, (at + 2) * SECOND);
            let emitted = lab.emitted();
            assert!(emitted.iter().any(|(_, frame)| frame[0] & 1 == 1), "{emitted:?}");
            lab.send_from(1, &answer(), (at + 2) * SECOND);
            assert_eq!(lab.send_at(&packet, (at + 2) * SECOND).1[0], "forwarded");
        }
    }
}

/// The same for hosts of a link; unused ones get no requests.
#[test]
fn silent_hosts_of_a_link_are_detected_within_a_minute() {
    for mut lab in specials(&Special::Link(1)) {
        let to = |last| with(udp(Family::Inet, 64), &[(30, &[198, 19, 1, last])]);
        for last in [2, 3] {
            lab.send_at(&to(last), 100 * SECOND);
            let answer = announcement(2, OTHER, [198, 19, 1, last], [198, 19, 0, 1]);
            lab.send_from(1, &answer, 100 * SECOND);
        }
        lab.emitted();
        let mut at = 101;
        while lab.send_at(&to(2), at * SECOND).1[0] == "forwarded" {
            at += 1;
        }
        assert!((130..160).contains(&at), "{at}");
        let requests = lab.emitted();
        let unicast = requests.iter().filter(|(_, frame)| frame[..6] == OTHER);
        assert!(unicast.clone().all(|(_, frame)| frame[38..42] == [198, 19, 1, 2]));
        assert_eq!(unicast.count(), 3);
        assert_eq!(lab.send_at(&to(3), at * SECOND).1[0], "forwarded");
    }
}

/// A host that answers for all addresses of its link costs no other link its new hosts, nor the
/// other family, nor its own link.
#[test]
fn one_host_with_many_addresses_leaves_places_for_others() {
    let mut lab = specials(&Special::Link(1)).into_iter().next().expect("the fast path");
    let own = [198, 19, 0, 1];
    let packet = |to: [u8; 4]| with(udp(Family::Inet, 64), &[(30, &to)]);
    for number in 0..6000u64 {
        let now = 100 * SECOND + number * SECOND / 1000;
        let [.., a, b] = (number + 4096).to_be_bytes();
        lab.send_at(&packet([198, 19, a, b]), now);
        lab.send_from(1, &announcement(2, OTHER, [198, 19, a, b], own), now);
        lab.emitted();
        // A host in use stays reachable, or is resolved again immediately.
        if number % 10 == 0 {
            lab.send_at(&packet([198, 19, 1, 2]), now);
            let asked = lab.emitted();
            if !asked.is_empty() {
                lab.send_from(1, &announcement(2, OTHER, [198, 19, 1, 2], own), now);
                lab.emitted();
            }
            assert_eq!(lab.send_at(&packet([198, 19, 1, 2]), now).1, ["forwarded"], "{number}");
        }
    }
    let now = 107 * SECOND;
    let resolved = |lab: &mut Lab, packet: &[u8], answer: &[u8]| {
        assert_eq!(lab.send_at(packet, now).1, REQUESTED);
        lab.emitted();
        lab.send_from(1, answer, now);
        assert_eq!(lab.emitted().len(), 1, "the packet that waited");
        assert_eq!(lab.send_at(packet, now).1, ["forwarded"]);
    };
    resolved(&mut lab, &packet([198, 19, 2, 2]), &announcement(2, OTHER, [198, 19, 2, 2], own));
    let six = with(udp(Family::Inet6, 84), &[(38, &PEER)]);
    let six = with(six, &[(38, &[0x20, 1, 0, 2, 0, 0, 0x80, 0])]);
    let target: [u8; 16] = six[38..54].try_into().expect("16 bytes");
    resolved(&mut lab, &six, &discovery(136, 0x60, target, 2, OTHER));
}

#[test]
fn solicited_advertisements_to_groups_are_ignored() {
    for config in configs("fe80::ab09") {
        let mut lab = lab_of(&config);
        let learnt_from = |lab: &mut Lab, flags| {
            let mut frame = discovery(136, flags, PEER, 2, OTHER);
            frame[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 1]);
            let all_nodes = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
            frame[38..54].copy_from_slice(&all_nodes);
            frame[56..58].fill(0);
            let sum = checksum::add(checksum::add(0, &frame[22..]), &[0, frame[19], 0, 58]);
            frame[56..58].copy_from_slice(&checksum::finish(sum));
            lab.send_from(1, &frame, 0);
            config.neighbours.learnt(hop(0))
        };
        assert_eq!(learnt_from(&mut lab, 0x60), None);
        assert_eq!(learnt_from(&mut lab, 0x20), Some(OTHER), "unsolicited");
    }
}

#[test]
fn static_neighbours_never_age() {
    for path in ForwardingPath::IN_PROCESS {
        let mut config = Config { path, ..config() };
        let gateway = Gateway { port: 1, address: "198.19.0.9".parse().expect("one") };
        config.neighbours.set_gateway(hop(0), gateway).expect("a low number");
        let mut lab = lab_of(&config);
        for year in 0..3 {
            let (out, names) = lab.send_at(&udp(Family::Inet, 64), year * 31_536_000 * SECOND);
            assert_eq!(names, ["forwarded"]);
            assert_eq!(out.expect("it is sent").1[..6], RECEIVER);
        }
        assert_eq!(lab.emitted(), []);
    }
}

/// A broadcast ARP packet of a host about itself.
fn announcement(operation: u8, mac: [u8; 6], sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation], &mac].concat();
    frame.extend(sender);
    frame.extend([0; 6]);
    frame.extend(target);
    frame
}

/// Both paths; the first next hop is not a neighbour.
fn specials(special: &Special) -> [Lab; 2] {
    ForwardingPath::IN_PROCESS.map(|path| {
        let mut config = Config { path, ..config() };
        config.neighbours.set_special(hop(0), special.clone()).expect("a low number");
        lab_of(&config)
    })
}

#[test]
fn hosts_of_a_link_are_resolved_by_their_own_address() {
    const HOST: [u8; 4] = [198, 19, 1, 2];
    for mut lab in specials(&Special::Link(1)) {
        let packet = with(udp(Family::Inet, 64), &[(30, &HOST)]);
        assert_eq!(lab.send(&packet).1, REQUESTED);
        let [(1, request)] = &lab.emitted()[..] else { panic!("one question") };
        assert_eq!((&request[20..22], &request[38..42]), (&[0, 1][..], &HOST[..]));
        // At least three packets wait (RFC 4861 section 7.2.2), and leave in order.
        let order: Vec<Vec<u8>> = (2..6).map(|ttl| with(packet.clone(), &[(22, &[ttl])])).collect();
        for packet in &order {
            assert_eq!(lab.send(packet).1, WAITS);
        }
        // Answers of hosts that were not requested are ignored.
        lab.send_from(1, &announcement(2, SENDER, [198, 19, 1, 77], [198, 19, 0, 1]), 5);
        assert_eq!(lab.emitted(), []);
        lab.send_from(1, &announcement(2, OTHER, HOST, [198, 19, 0, 1]), 6);
        let sent = lab.emitted();
        let ttls: Vec<u8> = sent.iter().map(|(_, frame)| frame[22]).collect();
        assert_eq!(ttls, [packet[22] - 1, 1, 2, 3, 4]);
        for (_, frame) in &sent {
            assert_sound(frame);
            assert_eq!(frame[..12], [OTHER, FAR].concat());
        }
        // The host announces another MAC to all (RFC 826, RFC 5227).
        lab.send_from(1, &announcement(1, RECEIVER, HOST, HOST), 7);
        let (out, names) = lab.send_at(&packet, 8);
        assert_eq!((&out.expect("it is sent").1[..6], names), (&RECEIVER[..], vec!["forwarded"]));
        // An announcement on the other link is ignored.
        lab.send_from(0, &announcement(1, OTHER, HOST, HOST), 9);
        assert_eq!(lab.send_at(&packet, 9).0.expect("it is sent").1[..6], RECEIVER);
    }
}

#[test]
fn unresolved_packets_cause_unreachable_errors() {
    for family in [Family::Inet, Family::Inet6] {
        for mut lab in specials(&Special::Link(1)) {
            let packet = udp(family, 84);
            assert_eq!(lab.send(&packet).1, REQUESTED);
            for (second, requests) in [(1, 2), (2, 1)] {
                lab.router.rest(second * SECOND);
                assert_eq!(lab.emitted().len(), requests, "{family:?}, second {second}");
            }
            lab.router.rest(3 * SECOND);
            lab.router.flush();
            let [(0, error)] = &lab.emitted()[..] else { panic!("one answer") };
            let code = if family == Family::Inet { &error[34..36] } else { &error[54..56] };
            assert_eq!(code, if family == Family::Inet { [3, 1] } else { [1, 3] });
            assert_eq!(error[..6], SENDER);
            // The next packet starts over.
            assert_eq!(lab.send_at(&packet, 4 * SECOND).1, REQUESTED);
        }
    }
}

#[test]
fn flows_are_spread_over_next_hops_by_weight() {
    for family in [Family::Inet, Family::Inet6] {
        for path in ForwardingPath::IN_PROCESS {
            let mut config = Config { path, ..config() };
            for (number, last) in [(20, 1), (21, 2)] {
                let neighbour = Neighbour { port: 1, mac: [2, 0, 0, 0, 9, last] };
                config.neighbours.set(hop(number), neighbour).expect("a low number");
            }
            let several = Special::Several([20, 20, 20, 21].map(hop).into());
            config.neighbours.set_special(hop(0), several).expect("a low number");
            let mut lab = lab_of(&config);
            let mut counts = [0; 2];
            let at = if family == Family::Inet { 34 } else { 54 };
            for port in 0..400u16 {
                let packet = with(udp(family, 84), &[(at, &port.to_be_bytes())]);
                let mac = |lab: &mut Lab| lab.send(&packet).0.expect("it is sent").1[5];
                let first = mac(&mut lab);
                assert_eq!(mac(&mut lab), first, "a flow has one way");
                counts[usize::from(first) - 1] += 1;
            }
            assert!((260..340).contains(&counts[0]), "{counts:?}");
        }
    }
}

#[test]
fn special_routes_drop_or_reject_packets() {
    for (special, inet, inet6) in [
        (Special::Blackhole, None, None),
        (Special::Unreachable, Some([3, 1]), Some([1, 0])),
        (Special::Prohibit, Some([3, 13]), Some([1, 1])),
    ] {
        for mut lab in specials(&special) {
            let out = lab.send(&udp(Family::Inet, 64)).0.map(|(_, frame)| [frame[34], frame[35]]);
            assert_eq!(out, inet, "{special:?}");
            let out = lab.send(&udp(Family::Inet6, 84)).0.map(|(_, frame)| [frame[54], frame[55]]);
            assert_eq!(out, inet6, "{special:?}");
        }
    }
}

#[test]
fn reverse_path_filter_checks_sources() {
    for (mode, [own, other, nowhere]) in [
        (ReversePath::Off, ["forwarded"; 3]),
        (ReversePath::Loose, ["forwarded", "forwarded", "reverse_path"]),
        (ReversePath::Strict, ["forwarded", "reverse_path", "reverse_path"]),
    ] {
        for path in ForwardingPath::IN_PROCESS {
            let config = Config { path, reverse_paths: vec![mode], ..config() };
            let mut lab = lab_of(&config);
            let from = |source: [u8; 4]| with(udp(Family::Inet, 64), &[(26, &source)]);
            let from6 = |source: [u8; 8]| with(udp(Family::Inet6, 84), &[(22, &source)]);
            let mut name = |frame: &[u8]| lab.send(frame).1[0];
            assert_eq!(name(&from([198, 18, 3, 3])), own, "{mode:?}");
            assert_eq!(name(&from([198, 19, 3, 3])), other, "{mode:?}");
            assert_eq!(name(&from([192, 0, 2, 3])), nowhere, "{mode:?}");
            assert_eq!(name(&from6([0x20, 1, 0, 2, 0, 0, 0, 1])), own, "{mode:?}");
            assert_eq!(name(&from6([0x20, 1, 0, 2, 0, 0, 0x80, 1])), other, "{mode:?}");
            assert_eq!(name(&from6([0x20, 2, 0, 2, 0, 0, 0, 1])), nowhere, "{mode:?}");
        }
    }
}

/// Requests at one port don't use up another port's limit, nor one kind another kind's.
#[test]
fn answers_are_limited_by_port_and_kind() {
    let rate = Rate { per_second: 1, burst: 2 };
    let config = Config { answers: rate, ..config() };
    let mut lab = lab_of(&config);
    let near = announcement(1, SENDER, [198, 18, 0, 9], [198, 18, 0, 1]);
    let far = announcement(1, OTHER, [198, 19, 0, 9], [198, 19, 0, 1]);
    let answers: Vec<bool> = (0..3).map(|_| lab.send(&near).0.is_some()).collect();
    assert_eq!(answers, [true, true, false]);
    assert!(lab.send_from(1, &far, 0).0.is_some());
    let solicitation = discovery(135, 0, OWN, 1, OTHER);
    assert!(lab.send_from(1, &solicitation, 0).0.is_some());
}

/// RFC 4007: an address of one link does not belong to the router on another.
#[test]
fn link_local_addresses_are_local_to_their_link() {
    let own_of_far = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    let to = |port: usize, mac: [u8; 6]| {
        let frame = with(udp(Family::Inet6, 84), &[(0, &mac), (38, &own_of_far)]);
        let (_, names) = lab().send_from(port as u8, &frame, 0);
        names[0]
    };
    assert_eq!(to(1, FAR), "slow_local");
    assert_eq!(to(0, NEAR), "ipv6_destination");
    // A neighbour on the near link may use the same address: its packets are accepted.
    let frame = with(udp(Family::Inet6, 84), &[(22, &own_of_far)]);
    assert_eq!(lab().send(&frame).1[0], "slow_beyond_scope");
}
