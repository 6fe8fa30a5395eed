//! Rate limits of errors and answers during floods: other hosts keep theirs.

use crate::support::*;
use fwdlab_packet::Family;
use fwdlab_router::path::{Config, ForwardingPath};

/// Interval of 5,000 frames a second.
const INTERVAL_NS: u64 = 200_000;
/// Frames of the flood between two packets of another host.
const BETWEEN: u64 = 125;
/// Packets of the other host, in one second.
const PACKETS: u64 = 40;

/// Offsets of the source's last four bytes, of the destination's, and of the TTL.
fn fields(family: Family) -> [usize; 3] {
    if family == Family::Inet { [26, 30, 22] } else { [34, 50, 21] }
}

/// A packet that the far link is too small for, from a host of the near link.
fn too_big(family: Family) -> Vec<u8> {
    udp(family, 1400)
}

/// A frame of a flood, by its number.
type FloodFrame = fn(Family, u64) -> Vec<u8>;

/// Floods at port 0 in which every frame is answered with an error.
const FLOODS: [(&str, FloodFrame); 5] = [
    ("expiring packets of one host", |family, _| {
        let [source, _, ttl] = fields(family);
        with(udp(family, 84), &[(source, &[198, 18, 9, 9]), (ttl, &[1])])
    }),
    ("expiring packets of many hosts", |family, number| {
        let [source, _, ttl] = fields(family);
        let [.., a, b] = number.to_be_bytes();
        with(udp(family, 84), &[(source, &[198, 18, a, b]), (ttl, &[1])])
    }),
    ("large packets of one host", |family, _| {
        with(too_big(family), &[(fields(family)[0], &[198, 18, 9, 9])])
    }),
    ("large packets of many hosts", |family, number| {
        let [.., a, b] = number.to_be_bytes();
        with(too_big(family), &[(fields(family)[0], &[198, 18, a, b])])
    }),
    ("large packets with the host's address", |family, number| {
        let [.., a, b] = number.to_be_bytes();
        with(too_big(family), &[(fields(family)[1], &[198, 19, a, b])])
    }),
];

/// Number of answered packets of the other host while the flood arrives.
fn answered_during(lab: &mut Lab, flood: impl Fn(u64) -> Vec<u8>, packet: &[u8]) -> u64 {
    let mut answered = 0;
    for number in 0..PACKETS * BETWEEN {
        let now = number * INTERVAL_NS;
        lab.send_at(&flood(number), now);
        if number % BETWEEN == 0 {
            let (out, names) = lab.send_at(packet, now);
            let is_answered = names.contains(&"answered");
            assert_eq!(out.is_some(), is_answered);
            answered += u64::from(is_answered);
        }
    }
    answered
}

#[test]
fn path_mtu_discovery_survives_floods() {
    for path in ForwardingPath::IN_PROCESS {
        for (what, flood) in FLOODS {
            for (family, flooded) in [
                (Family::Inet, Family::Inet),
                (Family::Inet, Family::Inet6),
                (Family::Inet6, Family::Inet),
                (Family::Inet6, Family::Inet6),
            ] {
                let mut lab = lab_of(&Config { path, ..config() });
                let flood = |number| flood(flooded, number);
                let answered = answered_during(&mut lab, flood, &too_big(family));
                assert_eq!(answered, PACKETS, "{family:?} during {what} ({flooded:?})");
            }
        }
    }
}

/// One receiver gets a quarter of all errors: others are left some.
#[test]
fn errors_for_one_host_leave_some_for_another() {
    for family in [Family::Inet, Family::Inet6] {
        let mut lab = lab();
        let [source, _, ttl] = fields(family);
        let (_, one) = FLOODS[0];
        let packet = with(udp(family, 84), &[(source, &[198, 18, 7, 7]), (ttl, &[1])]);
        assert_eq!(answered_during(&mut lab, |n| one(family, n), &packet), PACKETS);
        let limited = lab.counters.read().iter().find(|(r, _)| r.name() == "limited");
        let sent = PACKETS * BETWEEN - limited.map_or(0, |(_, n)| n);
        assert!((200..=300).contains(&sent), "a quarter of 1,000 a second, not {sent}");
    }
}

fn arp_request(last: u8) -> Vec<u8> {
    let mac = [2, 0, 0, 0, 9, last];
    let mut frame = [&[0xff; 6][..], &mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &mac].concat();
    frame.extend([198, 18, 0, last, 0, 0, 0, 0, 0, 0, 198, 18, 0, 1]);
    frame
}

fn solicitation(last: u8) -> Vec<u8> {
    let (mut frame, own) = (udp(Family::Inet6, 90), [0x20, 1, 0, 2, 0, 0, 0, 0]);
    let address = |last| [&own[..], &[0, 0, 0, 0, 0, 0, 0, last]].concat();
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 9, last]);
    frame[18..22].copy_from_slice(&[0, 32, 58, 255]);
    frame[22..38].copy_from_slice(&address(last));
    frame[38..54].copy_from_slice(&address(1));
    frame[54..62].copy_from_slice(&[135, 0, 0, 0, 0, 0, 0, 0]);
    frame[62..78].copy_from_slice(&address(1));
    frame[78..86].copy_from_slice(&[1, 1, 2, 0, 0, 0, 9, last]);
    frame.truncate(86);
    let sum = fwdlab_packet::checksum::add(0, &frame[22..]);
    let sum = fwdlab_packet::checksum::add(sum, &[0, 32, 0, 58]);
    frame[56..58].copy_from_slice(&fwdlab_packet::checksum::finish(sum));
    frame
}

#[test]
fn one_asker_leaves_answers_for_others() {
    for ask in [arp_request, solicitation] {
        for first in [9, 100] {
            // One requester, and many.
            let flood = |number: u64| ask(first + (number % 150) as u8 * u8::from(first == 100));
            let answered = answered_during(&mut lab(), flood, &ask(7));
            assert_eq!(answered, PACKETS);
        }
        let mut lab = lab();
        answered_during(&mut lab, |_| ask(9), &ask(7));
        let limited = lab.counters.read().iter().find(|(r, _)| r.name() == "limited");
        assert!(limited.is_some_and(|(_, n)| n > 3000), "one asker is limited: {limited:?}");
    }
}
