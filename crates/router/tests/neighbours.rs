//! Neighbours that are asked for and learnt while packets are forwarded.

mod support;

use etherparse::{SlicedPacket, TransportSlice};
use fwdlab_packet::{Family, checksum};
use fwdlab_router::path::{Class, Config, ForwardingPath, Gateway, Neighbours};
use support::*;

const SECOND: u64 = 1_000_000_000;
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 0x30];
const PEER: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xab, 9];
const OWN: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Both paths; the receiver's side is reached over this address, whose MAC is unknown.
fn configs(address: &str) -> [Config; 2] {
    ForwardingPath::ALL.map(|path| {
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
fn an_arp_request_is_sent_once_a_second_and_its_reply_learnt() {
    for config in configs("198.19.0.9") {
        let mut lab = lab_of(&config);
        let packet = udp(Family::Inet, 64);
        assert_eq!(lab.send(&packet).1, ["neighbour_unknown", "neighbours_asked"]);
        #[rustfmt::skip]
        let request = [
            &[0xff; 6][..], &FAR, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &FAR, &[198, 19, 0, 1], &[0; 6], &[198, 19, 0, 9], &[0; 18],
        ].concat();
        assert_eq!(lab.emitted(), [(1, request.clone())]);
        assert_eq!(lab.send_at(&packet, SECOND - 1).1, ["neighbour_unknown"]);
        // Another worker doesn't ask either.
        let mut second = lab_of(&config);
        assert_eq!(second.send_at(&packet, SECOND - 1).1, ["neighbour_unknown"]);
        let (_, names) = second.send_at(&packet, SECOND);
        assert_eq!(names, ["neighbour_unknown", "neighbours_asked"]);
        assert_eq!((lab.emitted(), second.emitted()), (vec![], vec![(1, request)]));

        // Replies to somebody else, and from another link, teach nothing.
        lab.send_from(1, &arp(2, FAR, [198, 19, 0, 77]), SECOND);
        lab.send_from(0, &arp(2, NEAR, [198, 18, 0, 1]), SECOND);
        assert_eq!(lab.send_at(&packet, SECOND).1, ["neighbour_unknown"]);
        let (out, names) = lab.send_from(1, &arp(2, FAR, [198, 19, 0, 1]), SECOND);
        assert_eq!((out, names), (None, vec!["slow_neighbour", "silent"]));
        assert_eq!(config.neighbours.learnt(hop(0)), Some(OTHER));
        for lab in [&mut lab, &mut second] {
            let (out, names) = lab.send_at(&packet, 9 * SECOND);
            assert_eq!(names, ["forwarded"]);
            assert_eq!(out.expect("it is sent").1[..12], [OTHER, FAR].concat());
            let snapshot = lab.counters.read();
            assert_eq!(snapshot.total(Class::Answer), snapshot.total(Class::Slow));
        }
    }
}

#[test]
fn who_asks_is_learnt_too() {
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
    // An option that nobody knows comes first.
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
fn a_solicitation_is_sent_and_the_advertisement_learnt() {
    for config in configs("fe80::ab09") {
        let mut lab = lab_of(&config);
        let packet = udp(Family::Inet6, 84);
        assert_eq!(lab.send(&packet).1, ["neighbour_unknown", "neighbours_asked"]);
        let [(1, asked)] = &lab.emitted()[..] else { panic!("one question") };
        assert_eq!(asked[..12], [0x33, 0x33, 0xff, 0, 0xab, 9, 2, 0, 0, 0, 0, 2]);
        assert_eq!((asked[21], &asked[22..38]), (255, &OWN[..]));
        assert_eq!(asked[38..54], [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0xab, 9]);
        assert_eq!((asked[54], &asked[62..78]), (135, &PEER[..]));
        assert_eq!(asked[78..], [1, 1, 2, 0, 0, 0, 0, 2]);
        let sliced = SlicedPacket::from_ethernet(asked).expect("etherparse reads it");
        let Some(TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("no ICMPv6") };
        let to = asked[38..54].try_into().expect("16 bytes");
        assert!(icmp.is_checksum_valid(OWN, to));

        let told = |lab: &mut Lab, frame: &[u8]| {
            lab.send_from(1, frame, 0);
            config.neighbours.learnt(hop(0))
        };
        let mut corrupt = discovery(136, 0x40, PEER, 2, OTHER);
        corrupt[60] ^= 1;
        assert_eq!(told(&mut lab, &corrupt), None);
        let mut routed = discovery(136, 0x40, PEER, 2, OTHER);
        routed[21] = 254;
        assert_eq!(told(&mut lab, &routed), None);
        assert_eq!(told(&mut lab, &discovery(136, 0x40, OWN, 2, OTHER)), None);
        assert_eq!(told(&mut lab, &discovery(136, 0x40, PEER, 1, OTHER)), None);
        assert_eq!(told(&mut lab, &discovery(136, 0x40, PEER, 2, OTHER)), Some(OTHER));
        let (out, names) = lab.send(&packet);
        assert_eq!(names, ["forwarded"]);
        assert_eq!(out.expect("it is sent").1[..6], OTHER);
        // Another MAC replaces it where the message says so, or a question is asked.
        assert_eq!(told(&mut lab, &discovery(136, 0x40, PEER, 2, SENDER)), Some(OTHER));
        assert_eq!(told(&mut lab, &discovery(136, 0x60, PEER, 2, SENDER)), Some(SENDER));
        assert_eq!(told(&mut lab, &discovery(135, 0, OWN, 1, OTHER)), Some(OTHER));
        assert_eq!(told(&mut lab, &discovery(135, 0, PEER, 1, SENDER)), Some(OTHER));
    }
}

#[test]
fn an_old_neighbour_is_asked_again_and_forgotten_when_it_is_silent() {
    for config in configs("198.19.0.9") {
        let [mut lab, mut second] = [lab_of(&config), lab_of(&config)];
        let packet = udp(Family::Inet, 64);
        lab.send_from(1, &arp(1, [0xff; 6], [198, 19, 0, 1]), SECOND);
        assert_eq!(lab.send_at(&packet, 1200 * SECOND).1, ["forwarded"]);
        assert_eq!(lab.emitted(), []);
        // Packets go on to the old MAC while it is asked for, by one worker.
        let (out, names) = lab.send_at(&packet, 1201 * SECOND);
        assert_eq!(
            (&out.expect("it is sent").1[..6], names),
            (&OTHER[..], vec!["forwarded", "neighbours_asked"])
        );
        let [(1, question)] = &lab.emitted()[..] else { panic!("one question") };
        assert_eq!(
            question[..22],
            [&[0xff; 6][..], &FAR, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat()
        );
        assert_eq!(second.send_at(&packet, 1201 * SECOND).1, ["forwarded"]);
        // The answer has the same MAC: for twenty minutes nobody asks.
        lab.send_from(1, &arp(2, FAR, [198, 19, 0, 1]), 1201 * SECOND);
        assert_eq!(lab.send_at(&packet, 2400 * SECOND).1, ["forwarded"]);
        assert_eq!(second.send_at(&packet, 2400 * SECOND).1, ["forwarded"]);
        for at in 2401..2404 {
            assert_eq!(lab.send_at(&packet, at * SECOND).1, ["forwarded", "neighbours_asked"]);
            assert_eq!(lab.send_at(&packet, at * SECOND + SECOND / 2).1, ["forwarded"]);
            assert_eq!(second.send_at(&packet, at * SECOND + SECOND / 2).1, ["forwarded"]);
        }
        // Three questions without answer: no worker knows it any more.
        assert_eq!(lab.send_at(&packet, 2404 * SECOND).1, ["neighbour_unknown"]);
        assert_eq!(second.send_at(&packet, 2404 * SECOND).1, ["neighbour_unknown"]);
        assert_eq!(config.neighbours.learnt(hop(0)), None);
        let (_, names) = second.send_at(&packet, 2405 * SECOND);
        assert_eq!(names, ["neighbour_unknown", "neighbours_asked"]);
        lab.send_from(1, &arp(2, FAR, [198, 19, 0, 1]), 2405 * SECOND);
        assert_eq!(second.send_at(&packet, 2406 * SECOND).1, ["forwarded"]);
    }
}

#[test]
fn neighbours_that_were_set_never_age() {
    for path in ForwardingPath::ALL {
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
