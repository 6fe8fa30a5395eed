//! Packets through a router: frames sent and counters.

use crate::support::*;
use fwdlab_netio::frame::LONGEST;
use fwdlab_packet::Family;
use fwdlab_router::path::{
    Class, ConfigError, Counters, Firewall, Frame, MTU_MAX, NoFirewall, Router,
};
use proptest::prelude::*;
use std::sync::Arc;

#[test]
fn ipv4_forwarding_rewrites_macs_ttl_and_checksum() {
    #[rustfmt::skip]
    let sent = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x10, 8, 0, // to NEAR from SENDER
        0x45, 0, 0, 30, 0, 0, 0x40, 0, 64, 17, 0xac, 0xa6, 198, 18, 1, 1, 198, 19, 1, 2,
        0xc0, 0x20, 0, 7, 0, 10, 0, 0, 1, 2,
    ];
    let mut expected = sent;
    expected[..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x20, 2, 0, 0, 0, 0, 2]);
    expected[22] = 63;
    expected[24..26].copy_from_slice(&[0xad, 0xa6]);
    let (out, names) = lab().send(&sent);
    assert_eq!((out, names), (Some((1, expected.to_vec())), vec!["forwarded"]));
    // Padding of the smallest frame stays, bytes beyond it are removed.
    let padded = [&sent[..], &[0xee; 100]].concat();
    let (out, _) = lab().send(&padded);
    assert_eq!(out.map(|(_, frame)| frame.len()), Some(60));
}

#[test]
fn ipv6_forwarding_rewrites_macs_and_hop_limit() {
    let sent = udp(Family::Inet6, 84);
    let mut expected = sent.clone();
    expected[..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x20, 2, 0, 0, 0, 0, 2]);
    expected[21] = 63;
    let (out, names) = lab().send(&sent);
    assert_eq!((out, names), (Some((1, expected)), vec!["forwarded"]));
}

#[test]
fn invalid_ethernet_and_ipv4_frames_have_distinct_reasons() {
    let sound = || udp(Family::Inet, 64);
    let set = |at: usize, bytes: &[u8]| with(sound(), &[(at, bytes)]);
    let mut corrupt = sound();
    corrupt[24] ^= 1;
    let cases: &[(&str, Vec<u8>)] = &[
        ("ethernet_short", sound()[..13].to_vec()),
        ("other_mac", set(5, &[9])),
        ("link_broadcast", set(0, &[0xff; 6])),
        ("ether_type", set(12, &[0x88, 0xcc])),
        ("arp_invalid", with(sound(), &[(0, &[0xff; 6]), (12, &[8, 6]), (14, &[0, 6])])),
        ("ipv4_truncated", sound()[..33].to_vec()),
        ("ipv4_truncated", set(14, &[0x4f])[..60].to_vec()),
        ("ipv4_version", set(14, &[0x55])),
        ("ipv4_header_length", set(14, &[0x44])),
        ("ipv4_total_length", set(16, &[0, 19])),
        ("ipv4_total_length", set(16, &[0, 47])),
        ("ipv4_checksum", corrupt),
        ("ipv4_source", set(26, &[0, 1, 2, 3])),
        ("ipv4_source", set(26, &[127, 0, 0, 1])),
        ("ipv4_source", set(26, &[224, 0, 0, 1])),
        ("ipv4_source", set(26, &[255; 4])),
        ("ipv4_source", set(26, &[169, 254, 1, 1])),
        ("ipv4_source", set(26, &[198, 19, 0, 1])),
        ("ipv4_source", set(26, &[198, 18, 0, 255])),
        ("ipv4_destination", set(30, &[0, 1, 2, 3])),
        ("ipv4_destination", set(30, &[127, 0, 0, 1])),
        ("ipv4_destination", set(30, &[239, 1, 2, 3])),
        ("ipv4_destination", set(30, &[255; 4])),
        ("ipv4_destination", set(30, &[198, 19, 0, 255])),
        ("neighbour_unknown", set(30, &[203, 0, 113, 1])),
        ("ipv4_fragment", with(udp(Family::Inet, 1500), &[(20, &[0x1f, 0x60])])),
    ];
    let mut lab = lab();
    for (name, frame) in cases {
        // These frames end before their headers' stated length.
        let cut = if *name == "ipv4_truncated" && frame.len() == 60 { 40 } else { frame.len() };
        assert_eq!(lab.reason(&frame[..cut]), *name);
    }
    let snapshot = lab.counters.read();
    assert_eq!(snapshot.total(Class::Dropped), cases.len() as u64);
}

#[test]
fn invalid_ipv6_packets_have_distinct_reasons() {
    let sound = || udp(Family::Inet6, 84);
    let set = |at: usize, bytes: &[u8]| with(sound(), &[(at, bytes)]);
    let cases: &[(&str, Vec<u8>)] = &[
        ("ipv6_truncated", sound()[..53].to_vec()),
        ("ipv6_version", set(14, &[0x40])),
        ("ipv6_length", set(18, &[0, 27])),
        ("ipv6_source", set(22, &[0; 16])),
        ("ipv6_source", set(22, &[0xff, 2])),
        ("ipv6_source", set(22, &[0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
        ("ipv6_destination", set(38, &[0xff, 0x0e])),
        ("ipv6_destination", set(38, &[0; 16])),
        ("ipv6_destination", set(38, &[0xfe, 0xbf])),
        ("link_broadcast", set(0, &[0x33, 0x33])),
    ];
    let mut lab = lab();
    for (name, frame) in cases {
        assert_eq!(lab.reason(frame), *name);
    }
}

#[test]
fn headers_with_options_are_forwarded() {
    let mut options = udp(Family::Inet, 100);
    options[34..38].copy_from_slice(&[1, 1, 1, 0]);
    let (out, names) = lab().send(&with(options, &[(14, &[0x46])]));
    assert_eq!(names, ["forwarded"]);
    assert_sound(&out.expect("it is sent").1);
}

#[test]
fn firewall_drops_packets_in_and_out() {
    /// Passes even places in, and every fourth out.
    struct Even;
    impl Firewall for Even {
        fn incoming(&mut self, _: &[Frame], among: u64, _: u64) -> u64 {
            among & 0x5555_5555_5555_5555
        }
        fn outgoing(&mut self, batch: &[Frame], among: u64, _: u64) -> u64 {
            assert!(batch.iter().step_by(2).all(|frame| frame.egress() == Some(1)));
            among & 0x1111_1111_1111_1111
        }
    }
    let counters = Counters::new(1);
    let tally = counters.tally(0).expect("a worker");
    let mut inet = fwdlab_router::fib::Radix::new();
    fwdlab_router::fib::Fib::insert(&mut inet, "0.0.0.0/0".parse().expect("one"), hop(0));
    let inet6 = fwdlab_router::fib::Radix::new();
    let mut router = Router::new(&config(), Arc::new(inet), Arc::new(inet6), Even, tally)
        .expect("a sound set-up");
    let frame = Frame::of(0, &udp(Family::Inet, 64)).expect("it fits");
    let mut batch = vec![frame; 201];
    router.process(&mut batch, 0);
    router.no_room(1);
    router.flush();
    let seen: Vec<_> = counters.read().iter().map(|(reason, n)| (reason.name(), n)).collect();
    assert_eq!(seen, [("forwarded", 50), ("firewall", 150), ("no_room", 1)]);
    let right = |at: usize, frame: &Frame| frame.egress().is_some() == (at % 64).is_multiple_of(4);
    assert!(batch.iter().enumerate().all(|(at, frame)| right(at, frame)));
}

#[test]
fn invalid_configurations_are_refused() {
    let error = |change: &dyn Fn(&mut fwdlab_router::path::Config)| {
        let mut config = config();
        change(&mut config);
        let tally = Counters::new(1).tally(0).expect("a worker");
        let inet = Arc::new(fwdlab_router::fib::Radix::new());
        let inet6 = Arc::new(fwdlab_router::fib::Radix::new());
        Router::new(&config, inet, inet6, NoFirewall, tally).err()
    };
    assert_eq!(error(&|_| {}), None);
    let mtu = MTU_MAX + 1;
    assert_eq!(error(&|c| c.interfaces[1].mtu = mtu), Some(ConfigError::Mtu { port: 1, mtu }));
    assert_eq!(error(&|c| c.interfaces[0].mac[0] = 1), Some(ConfigError::GroupMac(0)));
    assert_eq!(error(&|c| c.interfaces.truncate(1)), Some(ConfigError::NeighbourPort(1)));
    let long = error(&|c| c.interfaces[0].addresses[0].1 = 33);
    assert!(matches!(long, Some(ConfigError::PrefixLength { length: 33, .. })), "{long:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_counted_once_and_sent_frames_are_valid(
        sent in prop::collection::vec(frames(), 1..150),
        ingress in 0u8..3,
    ) {
        // Bytes in a buffer after the frame change nothing.
        let results = [0x00, 0xff].map(|garbage| {
            let mut lab = lab();
            let mut batch: Vec<Frame> = sent.iter().map(|bytes| {
                let mut frame = Frame::of(0, &[garbage; LONGEST]).expect("it fits");
                frame.receive(ingress, bytes).expect("it fits");
                frame
            }).collect();
            lab.router.process(&mut batch, 1);
            lab.router.flush();
            let snapshot = lab.counters.read();
            assert_eq!(snapshot.received(), sent.len() as u64);
            assert_eq!(snapshot.total(Class::Answer), snapshot.total(Class::Slow));
            let out: Vec<_> =
                batch.iter().filter_map(|frame| Some((frame.egress()?, frame.whole().to_vec()))).collect();
            (snapshot, out)
        });
        for (_, frame) in &results[0].1 {
            assert_sound(frame);
        }
        prop_assert_eq!(&results[0], &results[1]);
    }
}
