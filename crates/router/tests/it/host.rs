//! The router's own host: which frames it gets, their rate limits, and their filtering.

use crate::support::walled::{SECOND, SYN, UDP, Walled, datagram, icmp, segment, spec, tcp};
use crate::support::*;
use fwdlab_router::firewall::{StateConfig, StateTable};
use fwdlab_router::path::{Config, ForwardingPath, HostRate, Rate, ReversePath, Special};

/// The host's ports, in addition to the interfaces'.
const HOST: [u8; 2] = [2, 3];

/// Configurations of both paths with a host.
fn configs() -> [Config; 2] {
    ForwardingPath::IN_PROCESS.map(|path| Config {
        path,
        host_ports: HOST.map(Some).to_vec(),
        host_rate: HostRate(Rate { per_second: 1, burst: 2 }),
        ..config()
    })
}

/// A packet to a group, or to the whole link, with the MAC of the group.
fn to_group(protocol: u8, mac: [u8; 6], group: &str, payload: &[u8]) -> Vec<u8> {
    let from = if group.contains(':') { "fe80::5" } else { "198.18.0.5" };
    let mut packet = spec(protocol, (from, 0), (group, 0), &[]);
    packet.payload = payload.to_vec();
    with(packet.bytes(), &[(0, &mac), (6, &SENDER)])
}

/// A frame that is not an IP packet.
fn other(mac: [u8; 6], kind: [u8; 2]) -> Vec<u8> {
    [&mac[..], &SENDER, &kind, &[0; 46]].concat()
}

fn arp(operation: u8) -> Vec<u8> {
    let mut frame = [&NEAR[..], &SENDER, &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation], &SENDER].concat();
    frame.extend([198, 18, 0, 5]);
    frame.extend(NEAR);
    frame.extend([198, 18, 0, 1]);
    frame
}

#[test]
fn host_gets_unanswered_frames_for_the_router() {
    let me = ("198.18.0.5", 40_000);
    let group4 = |last| [1, 0, 0x5e, 0, 0, last];
    let group6 = |last| [0x33, 0x33, 0, 0, 0, last];
    // Hop-by-hop options with a router alert, then an MLD message.
    let mld =
        |kind| [&[58, 0, 5, 2, 0, 0, 1, 0, kind, 0, 0, 0, 0, 0, 0, 0][..], &[0xff; 16]].concat();
    let whole = to_group(UDP, group4(9), "224.0.0.9", &[0; 20]);
    let to_host = |reason| vec![reason, "to_host"];
    let answered = |reason| vec![reason, "answered"];
    let cases: Vec<(&str, Vec<u8>, Vec<&str>)> = vec![
        ("BGP", tcp(me, ("198.18.0.1", 179), SYN).bytes(), to_host("slow_local")),
        ("ssh to the far address", tcp(me, ("198.19.0.1", 22), SYN).bytes(), to_host("slow_local")),
        ("an echo request", icmp("198.18.0.5", "198.18.0.1", 8, 1).bytes(), answered("slow_local")),
        ("an ARP request", arp(1), answered("slow_neighbour")),
        ("an ARP reply", arp(2), to_host("slow_neighbour")),
        ("OSPF", to_group(89, group4(5), "224.0.0.5", &[0; 20]), to_host("slow_group")),
        ("OSPFv3", to_group(89, group6(5), "ff02::5", &[0; 20]), to_host("slow_group")),
        ("DHCP", to_group(UDP, [255; 6], "255.255.255.255", &[0; 20]), to_host("slow_group")),
        ("RIP", whole.clone(), to_host("slow_group")),
        (
            "wrong checksum",
            {
                let mut cut = whole;
                cut[24] ^= 1;
                cut
            },
            vec!["link_broadcast"],
        ),
        ("a stream", to_group(UDP, group4(1), "239.1.1.1", &[0; 20]), vec!["link_broadcast"]),
        ("IGMPv2", to_group(2, group4(1), "239.1.1.1", &[0x16; 8]), to_host("slow_group")),
        ("a stream of IPv6", to_group(UDP, group6(1), "ff0e::1", &[0; 20]), vec!["link_broadcast"]),
        ("an MLD query", to_group(0, group6(1), "ff0e::1", &mld(130)), to_host("slow_group")),
        ("MLDv1", to_group(0, group6(1), "ff0e::1", &mld(131)), to_host("slow_group")),
        ("MLDv1, done", to_group(0, group6(2), "ff02::2", &mld(132)), to_host("slow_group")),
        ("other options", to_group(0, group6(1), "ff0e::1", &mld(128)), vec!["link_broadcast"]),
        ("cut options", to_group(0, group6(1), "ff0e::1", &mld(131)[..8]), vec!["link_broadcast"]),
        ("LLDP", other([1, 0x80, 0xc2, 0, 0, 14], [0x88, 0xcc]), to_host("slow_group")),
        ("IS-IS", other([1, 0x80, 0xc2, 0, 0, 20], [0, 46]), to_host("slow_group")),
        ("anything else", other([1, 0x80, 0xc2, 0, 0, 14], [0x88, 0xb5]), vec!["ether_type"]),
        ("not to a group", other(NEAR, [0x88, 0xcc]), vec!["ether_type"]),
        ("to another station", other([2; 6], [0x88, 0xcc]), vec!["other_mac"]),
    ];
    for config in configs() {
        let mut lab = lab_of(&config);
        for (at, (what, frame, expected)) in cases.iter().enumerate() {
            let (out, names) = lab.send_at(frame, 9 * SECOND * at as u64);
            assert_eq!(names, *expected, "{what}");
            let port = out.as_ref().map(|(port, _)| *port);
            let to = match names.get(1) {
                Some(&"to_host") => Some(HOST[0]),
                Some(_) => Some(0),
                None => None,
            };
            assert_eq!(port, to, "{what}");
            if to == Some(HOST[0]) {
                assert_eq!(out.expect("the frame").1, *frame, "{what}: as it came");
            }
        }
        // Without a host no frame is handed over.
        let mut lab = lab_of(&Config { host_ports: Vec::new(), ..config });
        for (what, frame, expected) in cases.iter().filter(|(.., names)| names.contains(&"to_host"))
        {
            let (out, names) = lab.send(frame);
            let is_group = expected[0] == "slow_group";
            let name = if is_group { ["link_broadcast", "ether_type"] } else { [expected[0]; 2] };
            assert!(out.is_none() && name.contains(&names[0]), "{what}: {names:?}");
        }
    }
}

/// Each kind at each port has a separate limit.
#[test]
fn frames_to_the_host_are_rate_limited() {
    for config in configs() {
        let mut lab = lab_of(&config);
        let local = tcp(("198.18.0.5", 1), ("198.18.0.1", 179), SYN).bytes();
        let group = to_group(89, [1, 0, 0x5e, 0, 0, 5], "224.0.0.5", &[0; 20]);
        let far = with(local.clone(), &[(0, &FAR)]);
        for frame in [&local, &group, &arp(2)] {
            let mut outcome = |now| lab.send_at(frame, now).1[1];
            assert_eq!(
                [outcome(0), outcome(0), outcome(0)],
                ["to_host", "to_host", "host_limited"]
            );
        }
        assert_eq!(lab.send_from(1, &far, 0).0.map(|(port, _)| port), Some(HOST[1]));
        assert_eq!(lab.send_at(&group, SECOND).1, ["slow_group", "to_host"]);
    }
}

/// Packets to the host's addresses are filtered by `in` rules first, then by `local` ones, whatever
/// their remaining TTL.
#[test]
fn packets_to_host_addresses_are_filtered_alike_with_any_ttl() {
    let bad = "198.18.0.5";
    for (rules, reverse_path, inet, inet6) in [
        ("pass in", ReversePath::Off, "to_host", "to_host"),
        ("block in from 198.18.0.5", ReversePath::Off, "firewall", "to_host"),
        ("block in inet6", ReversePath::Off, "to_host", "firewall"),
        ("block local from 198.18.0.5", ReversePath::Off, "firewall", "to_host"),
        ("default block\npass in inet", ReversePath::Off, "to_host", "firewall"),
        ("pass in keep state", ReversePath::Off, "to_host", "to_host"),
        ("pass in", ReversePath::Strict, "to_host", "reverse_path"),
    ] {
        for mut config in configs() {
            config.neighbours.set_special(hop(0), Special::Host).expect("a low number");
            config.reverse_paths = vec![reverse_path];
            // A source without a route back.
            let six = if reverse_path == ReversePath::Off { "2001:2::5" } else { "2001:9::5" };
            for ttl in [64, 2, 1, 0] {
                let mut lab = Walled::of(&config, rules, &StateConfig::default());
                let mut became = |source, to, place| {
                    let mut packet = datagram((source, 40_000), (to, 179));
                    packet.port = 0;
                    let frame = with(packet.bytes(), &[(place, &[ttl])]);
                    let before = lab.counters.read();
                    let mut frames = [fwdlab_router::path::Frame::of(0, &frame).expect("it fits")];
                    lab.router.process(&mut frames, 0);
                    lab.router.flush();
                    let after = lab.counters.read();
                    assert_eq!(after.received(), before.received() + 1);
                    let new = after.iter().filter(|&(reason, n)| n > before.get(reason));
                    let names: Vec<_> = new.map(|(reason, _)| reason.name()).collect();
                    let is_handed_over = frames[0].egress() == Some(HOST[0]);
                    assert_eq!(is_handed_over, names == ["slow_local", "to_host"], "{names:?}");
                    *names.last().expect("one")
                };
                assert_eq!(became(bad, "198.19.3.3", 22), inet, "{rules} {ttl}");
                assert_eq!(became(six, "2001:2:0:8000::9", 21), inet6, "{rules} {ttl}");
            }
        }
    }
}

/// Connections keep their states, whatever the new rules.
#[test]
fn connections_survive_a_reload_of_rules() {
    let (me, you) = (("198.18.0.5", 40_000), ("198.19.0.9", 80));
    for kind in [StateTable::Sharded, StateTable::Global, StateTable::PerWorker] {
        for config in configs() {
            let states = StateConfig { kind, ..StateConfig::default() };
            let mut lab = Walled::of(
                &config,
                "pass in on 0 proto tcp all flags S/SA keep state\nblock in",
                &states,
            );
            let begin = [
                segment(me, you, SYN, [100, 0], &[]),
                segment(you, me, SYN | 16, [900, 101], &[]),
                segment(me, you, 16, [101, 901], &[]),
            ];
            for packet in &begin {
                assert_eq!(lab.send(packet, 0), "forwarded");
            }
            let more = [
                segment(me, you, 16, [101, 901], &[7; 5]),
                segment(you, me, 16, [901, 106], &[7; 5]),
            ];
            let other = segment(("198.18.0.5", 40_001), you, SYN, [1, 0], &[]);
            for rules in ["block in", "block in\nblock out", "pass in", "block in"] {
                lab.reload(&config, rules, &states);
                for packet in &more {
                    assert_eq!(lab.send(packet, SECOND), "forwarded", "{rules}");
                }
                let expected = if rules == "pass in" { "forwarded" } else { "firewall" };
                assert_eq!(lab.send(&other, SECOND), expected, "{rules}");
            }
            // Not if the storage of states changes.
            lab.reload(&config, "block in", &StateConfig { limit: 7, ..states });
            assert_eq!(lab.send(&more[0], SECOND), "firewall");
        }
    }
}
