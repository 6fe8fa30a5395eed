//! Rules `local`: packets to the router's host that are disguised as fragments, or behind chains of
//! extension headers.

use crate::support::walled::{SECOND, SYN, Spec, TCP, Walled, tcp};
use crate::support::*;
use fwdlab_router::firewall::StateConfig;
use fwdlab_router::path::{Config, ForwardingPath};
use std::collections::BTreeMap;

const HOST: u8 = 2;
const ENDS: [[&str; 2]; 2] = [["198.18.0.5", "198.18.0.1"], ["2001:2::5", "2001:2::1"]];
/// Destination options that only pad.
const PADDING: [u8; 8] = [60, 0, 1, 4, 0, 0, 0, 0];

fn configs() -> [Config; 2] {
    ForwardingPath::IN_PROCESS.map(|path| Config {
        path,
        host_ports: vec![Some(HOST), None],
        ..config()
    })
}

/// A segment to a port of the host, with 12 bytes of options and 16 of data.
fn segment([from, to]: [&str; 2], port: u16, flags: u8) -> Spec {
    let mut packet = tcp((from, 40_000), (to, port), flags);
    packet.payload[12] = 0x80;
    packet.payload.extend([1; 12 + 16]);
    packet
}

/// A fragment of a packet: these bytes of its contents.
fn piece(packet: &Spec, begin: usize, end: usize) -> Spec {
    let mut part = packet.clone();
    let more = end < packet.payload.len();
    part.payload = packet.payload[begin..end.min(packet.payload.len())].to_vec();
    part.fragment = Some((begin as u16 / 8, more));
    part
}

/// A packet behind this many headers of destination options.
fn behind_options(packet: &Spec, headers: usize) -> Spec {
    let mut chain = PADDING.repeat(headers);
    if let Some(last) = chain.len().checked_sub(8) {
        chain[last] = packet.protocol;
    }
    let protocol = if headers > 0 { 60 } else { packet.protocol };
    let payload = [&chain[..], &packet.payload].concat();
    Spec { protocol, payload, ..packet.clone() }
}

/// Sequences of packets in which a host may find a segment with these flags to port 22.
fn disguises(flags: u8) -> Vec<Vec<Spec>> {
    let mut all = Vec::new();
    for ends in ENDS {
        let (target, decoy) = (segment(ends, 22, flags), segment(ends, 80, flags));
        let (six, whole) = (ends[0].contains(':'), target.payload.len());
        all.push(vec![target.clone()]);
        for cut in [8, 16, 24, 32, 40] {
            let (first, rest) = (piece(&target, 0, cut), piece(&target, cut, whole));
            all.push(vec![first.clone(), rest.clone()]);
            all.push(vec![rest.clone(), first.clone()]);
            // Another first fragment, before, between and after.
            let other = piece(&decoy, 0, cut);
            all.push(vec![other.clone(), first.clone(), rest.clone()]);
            all.push(vec![first.clone(), other.clone(), rest.clone()]);
            all.push(vec![other.clone(), rest.clone(), first]);
            // The target header covers the decoy's.
            all.push(vec![other, piece(&target, 0, whole - 8), rest]);
        }
        all.push(vec![piece(&decoy, 0, 24), piece(&target, 8, 16), piece(&target, 16, whole)]);
        for headers in (1..=40).filter(|_| six) {
            all.push(vec![behind_options(&target, headers)]);
            let long = behind_options(&target, headers);
            let end = long.payload.len();
            for cut in [8, 8 * headers, 8 * headers + 8] {
                all.push(vec![piece(&long, 0, cut), piece(&long, cut, end)]);
            }
        }
    }
    all
}

/// Contents of the packets that the host puts together from frames, in which either the first or
/// the last bytes win.
fn put_together(frames: &[Vec<u8>], last_wins: bool) -> Vec<Vec<u8>> {
    let (mut whole, mut parts) = (Vec::new(), BTreeMap::<usize, u8>::new());
    let (mut end, mut protocol) = (None, TCP);
    for frame in frames {
        let is_inet = frame[12] == 8;
        let (offset, more, at, next) = match (is_inet, frame[20]) {
            (true, high) => {
                let field = usize::from(high & 0x1f) << 8 | usize::from(frame[21]);
                (field * 8, high & 0x20 != 0, 34, frame[23])
            }
            (false, 44) => {
                let field = usize::from(frame[56]) << 8 | usize::from(frame[57]);
                (field & !7, field & 1 != 0, 62, frame[54])
            }
            (false, next) => (0, false, 54, next),
        };
        let contents = &frame[at..];
        if offset == 0 && !more {
            whole.push(without_options(next, contents));
            continue;
        }
        if offset == 0 {
            protocol = next;
        }
        for (place, &byte) in (offset..).zip(contents) {
            if last_wins || !parts.contains_key(&place) {
                parts.insert(place, byte);
            }
        }
        if !more {
            end = Some(offset + contents.len());
        }
    }
    let bytes: Vec<u8> = parts.values().copied().collect();
    if end == Some(bytes.len()) && parts.keys().copied().eq(0..bytes.len()) {
        whole.push(without_options(protocol, &bytes));
    }
    whole
}

fn without_options(mut next: u8, mut contents: &[u8]) -> Vec<u8> {
    while next == 60 && contents.len() >= 8 {
        next = contents[0];
        contents = &contents[8..];
    }
    contents.to_vec()
}

/// True if the host gets a segment to port 22.
fn is_reached(lab: &mut Walled, packets: &[Spec]) -> bool {
    let mut got = Vec::new();
    for packet in packets {
        let mut frames = [packet.frame()];
        lab.router.process(&mut frames, SECOND);
        got.extend(frames.iter().filter(|f| f.egress() == Some(HOST)).map(|f| f.whole().to_vec()));
    }
    lab.router.flush();
    let found = [false, true].map(|last_wins| put_together(&got, last_wins)).concat();
    found.iter().any(|contents| contents.get(2..4) == Some(&[0, 22]))
}

#[test]
fn local_rules_hold_against_disguised_segments() {
    let states = StateConfig::default();
    for config in configs() {
        let open =
            |packets: &Vec<Spec>| is_reached(&mut Walled::of(&config, "pass in", &states), packets);
        let all = disguises(SYN);
        let count = all.iter().filter(|packets| open(packets)).count();
        assert!(count > all.len() / 2, "{count} of {} are segments to port 22", all.len());
        for rules in [
            "block local proto tcp from any to any port 22",
            "pass in\npass local proto udp\nblock local proto tcp all",
            "block local proto tcp all flags S/SA",
            "pass in keep state\nblock local proto tcp from any port 40000 to any",
            "pass local proto tcp from any to any port 80\nblock local proto tcp",
        ] {
            for packets in &all {
                let mut lab = Walled::of(&config, rules, &states);
                assert!(!is_reached(&mut lab, packets), "{rules}: {packets:?}");
            }
        }
    }
}

#[test]
fn passed_segments_in_fragments_reach_the_host() {
    let rules = "block local proto tcp from any to any port 80\npass local";
    for config in configs() {
        for ends in ENDS {
            let mut lab = Walled::of(&config, rules, &StateConfig::default());
            let (passed, blocked) = (segment(ends, 22, SYN), segment(ends, 80, SYN));
            let whole = passed.payload.len();
            assert!(is_reached(&mut lab, &[piece(&passed, 0, 32), piece(&passed, 32, whole)]));
            if ends[0].contains(':') {
                assert!(is_reached(&mut lab, &[behind_options(&passed, 8)]));
            }
            // The same identification again: the verdict on the latest first fragment counts.
            let later = [piece(&blocked, 0, 32), piece(&passed, 32, whole)];
            assert!(!is_reached(&mut lab, &later));
            let names = |lab: &Walled, name| {
                lab.counters.read().iter().find(|(r, _)| r.name() == name).map_or(0, |(_, n)| n)
            };
            assert_eq!(names(&lab, "firewall"), 2, "a blocked first fragment and its follower");
            is_reached(&mut lab, &[piece(&blocked, 0, 8)]);
            assert_eq!(names(&lab, "firewall_unreadable"), 1);
        }
    }
}
