//! Packets that leave where they came in, and the redirects to their senders.

use crate::support::*;
use etherparse::SlicedPacket;
use fwdlab_packet::{Family, checksum};
use fwdlab_router::path::{Class, Config, ForwardingPath, Gateway, Rate};
use proptest::prelude::*;

/// Both paths, with redirects. The sender's half is behind a router at 198.18.0.9.
fn configs() -> [Config; 2] {
    ForwardingPath::IN_PROCESS.map(|path| {
        let mut config = Config { path, redirects: true, ..config() };
        let gateway = Gateway { port: 0, address: "198.18.0.9".parse().expect("one") };
        config.neighbours.set_gateway(hop(1), gateway).expect("a low number");
        config
    })
}

/// From a host on the router's link to one behind the other router there.
fn detour() -> Vec<u8> {
    with(udp(Family::Inet, 100), &[(26, &[198, 18, 0, 7]), (30, &[198, 18, 5, 5])])
}

#[test]
fn packet_is_forwarded_and_its_sender_redirected() {
    for config in configs() {
        let mut lab = lab_of(&config);
        let sent = detour();
        let (out, names) = lab.send(&sent);
        assert_eq!(names, ["forwarded", "redirects_sent"]);
        let mut expected = sent.clone();
        expected[..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, 1]);
        assert_eq!(out, Some((0, with(expected, &[(22, &[63])]))));
        let [(0, message)] = &lab.emitted()[..] else { panic!("one message") };
        assert_sound(message);
        assert_eq!(message[..12], [2, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, 1]);
        assert_eq!(message[26..34], [198, 18, 0, 1, 198, 18, 0, 7]);
        assert_eq!((&message[34..36], &message[38..42]), (&[5, 1][..], &[198, 18, 0, 9][..]));
        assert_eq!(checksum::finish(checksum::add(0, &message[34..])), [0, 0]);
        assert_eq!(message[42..], sent[14..]);
    }
}

#[test]
fn redirects_go_only_to_neighbours_with_a_shorter_path() {
    let none = |lab: &mut Lab, frame: &[u8]| {
        let (out, names) = lab.send(frame);
        assert_eq!((out.map(|(port, _)| port), names), (Some(0), vec!["forwarded"]));
        assert_eq!(lab.emitted(), []);
    };
    for config in configs() {
        let mut lab = lab_of(&config);
        // From another link, from the target router itself, a later fragment, an error.
        none(&mut lab, &with(detour(), &[(26, &[198, 18, 1, 7])]));
        none(&mut lab, &with(detour(), &[(26, &[198, 18, 0, 9])]));
        none(&mut lab, &with(detour(), &[(20, &[0, 1])]));
        none(&mut lab, &with(detour(), &[(23, &[1]), (34, &[3])]));
        let mut lab = lab_of(&Config { redirects: false, ..config });
        none(&mut lab, &detour());
    }
}

/// From a host on the router's link to another one there.
fn detour6(size: u16) -> Vec<u8> {
    let mut frame = udp(Family::Inet6, size);
    frame[22..38].copy_from_slice(&[0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
    frame[38..54].copy_from_slice(&[0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8]);
    frame
}

#[test]
fn ipv6_redirects_come_from_a_link_local_address() {
    for config in configs() {
        for size in [84, 91, 1500] {
            let mut lab = lab_of(&config);
            let sent = detour6(size);
            let (out, names) = lab.send(&sent);
            assert_eq!((out.map(|(port, _)| port), names[1]), (Some(0), "redirects_sent"));
            let [(0, message)] = &lab.emitted()[..] else { panic!("one message") };
            assert_eq!((message[20], message[21], message[54]), (58, 255, 137));
            assert_eq!(message[22..38], [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            assert_eq!(message[38..54], sent[22..38]);
            // Target and destination are equal: the host is on the link.
            assert_eq!(message[62..94], [&sent[38..54], &sent[38..54]].concat());
            assert_eq!(message[94..102], [2, 1, 2, 0, 0, 0, 0, 0x10]);
            assert_eq!((message[102], usize::from(message[103]) * 8), (4, message.len() - 102));
            assert!(message.len() <= 14 + 1280);
            let quoted = (sent.len() - 14).min(1184);
            assert_eq!(message[110..110 + quoted], sent[14..14 + quoted]);
            let packet = SlicedPacket::from_ethernet(message).expect("etherparse reads it");
            let Some(etherparse::TransportSlice::Icmpv6(icmp)) = packet.transport else {
                panic!("no ICMPv6");
            };
            let address = |at: usize| message[at..at + 16].try_into().expect("16 bytes");
            assert!(icmp.is_checksum_valid(address(22), address(38)));
        }
        let mut elsewhere = detour6(84);
        elsewhere[29] = 1;
        let mut lab = lab_of(&config);
        assert_eq!(lab.send(&elsewhere).1, ["forwarded"]);
        let mut nameless = config.clone();
        nameless.interfaces[0].addresses.pop();
        assert_eq!(lab_of(&nameless).send(&detour6(84)).1, ["forwarded"]);
    }
}

#[test]
fn ipv6_redirects_name_the_other_router() {
    for mut config in configs() {
        let gateway = Gateway { port: 0, address: "fe80::9".parse().expect("one") };
        config.neighbours.set_gateway(hop(1), gateway).expect("a low number");
        let mut lab = lab_of(&config);
        let mut far = detour6(84);
        far[45] = 9;
        assert_eq!(lab.send(&far).1, ["forwarded", "redirects_sent"]);
        let [(0, message)] = &lab.emitted()[..] else { panic!("one message") };
        assert_eq!(message[62..78], [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(message[78..94], far[38..54]);
        // A next hop entry for the host itself gives the same redirect as the link.
        let gateway = Gateway { port: 0, address: "2001:2::8".parse().expect("one") };
        config.neighbours.set_gateway(hop(1), gateway).expect("a low number");
        let mut lab = lab_of(&config);
        assert_eq!(lab.send(&detour6(84)).1, ["forwarded", "redirects_sent"]);
        assert_eq!(
            lab.emitted()[0].1[62..94],
            [0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8].repeat(2)
        );
    }
}

#[test]
fn redirects_share_the_error_limit() {
    for config in configs() {
        let mut lab = lab_of(&Config { errors: Rate { per_second: 4, burst: 8 }, ..config });
        for _ in 0..2 {
            lab.send(&detour());
        }
        assert_eq!(lab.send(&detour()).1, ["forwarded", "redirects_limited"]);
        assert_eq!(lab.send(&with(detour(), &[(22, &[1])])).1, ["slow_expired", "limited"]);
        let snapshot = lab.counters.read();
        assert_eq!((snapshot.received(), snapshot.total(Class::Extra)), (4, 3));
        assert_eq!(lab.emitted().len(), 2);
    }
}

proptest! {
    #[test]
    fn fast_and_full_path_send_the_same_redirects(sent in prop::collection::vec(frames(), 1..64), host: u8) {
        let outcomes = configs().map(|config| {
            let generous = Rate { per_second: 0, burst: 1000 };
            let mut lab = lab_of(&Config { errors: generous, ..config });
            let outs: Vec<_> = sent.iter().map(|frame| {
                let mut frame = frame.clone();
                // Half of them come from the link and return to it.
                if frame.len() > 34 && frame[12..14] == [8, 0] && host < 128 {
                    frame[26..34].copy_from_slice(&[198, 18, 0, 2 + host, 198, 18, 3, 3]);
                }
                if frame.len() > 34 {
                    frame = with(frame, &[]);
                }
                let out = lab.send(&frame);
                (out, lab.emitted())
            }).collect();
            (outs, lab.counters.read())
        });
        prop_assert_eq!(&outcomes[0], &outcomes[1]);
    }
}
