//! Messages of the router itself: errors, and answers to requests.

use crate::support::*;
use etherparse::{Icmpv4Type, Icmpv6Type, NetSlice, SlicedPacket, TransportSlice};
use fwdlab_packet::{Family, checksum};
use fwdlab_router::path::Rate;

/// The ICMP message in a frame to the sender: its header and the bytes after it, after etherparse
/// has verified all checksums.
fn icmp(frame: &[u8]) -> ([u8; 8], Vec<u8>) {
    assert_sound(frame);
    assert_eq!((&frame[..6], &frame[6..12]), (&SENDER[..], &NEAR[..]));
    let packet = SlicedPacket::from_ethernet(frame).expect("etherparse reads it");
    let bytes = match (packet.transport, packet.net) {
        (Some(TransportSlice::Icmpv4(icmp)), _) => {
            let again = match icmp.icmp_type() {
                Icmpv4Type::Unknown { .. } => panic!("unknown type"),
                known => known.calc_checksum(icmp.payload()),
            };
            assert_eq!(icmp.checksum(), again);
            icmp.slice().to_vec()
        }
        (Some(TransportSlice::Icmpv6(icmp)), Some(NetSlice::Ipv6(ip))) => {
            let (source, destination) = (ip.header().source(), ip.header().destination());
            assert!(icmp.is_checksum_valid(source, destination));
            assert!(!matches!(icmp.icmp_type(), Icmpv6Type::Unknown { .. }));
            icmp.slice().to_vec()
        }
        other => panic!("no ICMP: {other:?}"),
    };
    (bytes[..8].try_into().expect("a header"), bytes[8..].to_vec())
}

fn answer(frame: &[u8]) -> Vec<u8> {
    let (out, names) = lab().send(frame);
    assert!(names.contains(&"answered"), "{names:?}");
    let (port, frame) = out.expect("an answer");
    assert_eq!(port, 0);
    frame
}

fn silence(frame: &[u8]) {
    let (out, names) = lab().send(frame);
    assert_eq!((out, names.last()), (None, Some(&"silent")), "{names:?}");
}

#[test]
fn errors_have_type_code_mtu_and_quote() {
    let inet = |changes: &[(usize, &[u8])]| with(udp(Family::Inet, 64), changes);
    let inet6 = |changes: &[(usize, &[u8])]| with(udp(Family::Inet6, 84), changes);
    let big = |family| udp(family, 1500);
    let cases = [
        (inet(&[(22, &[1])]), [11, 0, 0, 0]),
        (inet(&[(30, &[192, 0, 2, 1])]), [3, 0, 0, 0]),
        (big(Family::Inet), [3, 4, 5, 0]),
        (inet6(&[(21, &[1])]), [3, 0, 0, 0]),
        (inet6(&[(38, &[0x20, 1, 0x0d, 0xb8])]), [1, 0, 0, 0]),
        (big(Family::Inet6), [2, 0, 5, 0]),
    ];
    for (frame, [kind, code, high, low]) in cases {
        let answer = answer(&frame);
        let (header, quoted) = icmp(&answer);
        assert_eq!([header[0], header[1], header[6], header[7]], [kind, code, high, low]);
        let most = if frame[12] == 8 { 576 - 28 } else { 1280 - 48 };
        assert_eq!(quoted, frame[14..frame.len().min(14 + most)]);
        // From the interface's own address to the packet's source.
        match frame[12] {
            8 => assert_eq!(answer[26..34], [198, 18, 0, 1, 198, 18, 1, 1]),
            _ => assert_eq!(answer[38..54], frame[22..38]),
        }
    }
}

#[test]
fn errors_to_link_local_senders_have_a_link_local_source() {
    let link_local = |last| [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let beyond = with(udp(Family::Inet6, 84), &[(22, &link_local(7))]);
    let answer = answer(&beyond);
    assert_eq!((&answer[54..56], &answer[22..38]), (&[1, 2][..], &link_local(1)[..]));
    assert_eq!(answer[38..54], link_local(7));
    assert_eq!(lab().send(&beyond).1, ["slow_beyond_scope", "answered"]);
    // Neither address is on the other's link.
    let frame = with(beyond, &[(38, &link_local(9))]);
    assert_eq!(lab().reason(&frame), "ipv6_destination");
}

#[test]
fn time_exceeded_has_expected_bytes() {
    #[rustfmt::skip]
    let sent = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x10, 8, 0,
        0x45, 0, 0, 28, 0, 0, 0, 0, 1, 17, 0x2b, 0xa9, 198, 18, 1, 1, 198, 19, 1, 2,
        0xc0, 0x20, 0, 7, 0, 8, 0, 0,
    ];
    let sent = with(sent.to_vec(), &[]);
    let answer = answer(&sent);
    #[rustfmt::skip]
    let expected = [
        2, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, 1, 8, 0,
        0x45, 0xc0, 0, 56, 0, 0, 0x40, 0, 64, 1, 0xac, 0xde, 198, 18, 0, 1, 198, 18, 1, 1,
        11, 0, 0x34, 0xd0, 0, 0, 0, 0,
    ];
    assert_eq!(answer[..42], expected);
    assert_eq!(answer[42..], sent[14..]);
}

#[test]
fn errors_and_later_fragments_cause_no_errors() {
    let expired = |changes: &[(usize, &[u8])]| {
        let frame = with(udp(Family::Inet, 64), &[(22, &[1])]);
        with(frame, changes)
    };
    silence(&expired(&[(20, &[0, 1])]));
    silence(&expired(&[(23, &[1]), (34, &[3])]));
    silence(&expired(&[(23, &[1]), (34, &[11])]));
    answer(&expired(&[(23, &[1]), (34, &[8])]));
    answer(&expired(&[(20, &[0x20, 0])]));
    let expired6 = |changes: &[(usize, &[u8])]| {
        let frame = with(udp(Family::Inet6, 84), &[(21, &[1])]);
        with(frame, changes)
    };
    silence(&expired6(&[(20, &[58]), (54, &[1])]));
    silence(&expired6(&[(20, &[58]), (54, &[137])]));
    answer(&expired6(&[(20, &[58]), (54, &[128])]));
    // After other headers: options, then ICMPv6; a fragment that isn't the first.
    silence(&expired6(&[(20, &[60]), (54, &[58, 0, 0, 0, 0, 0, 0, 0, 3])]));
    answer(&expired6(&[(20, &[60]), (54, &[58, 0, 0, 0, 0, 0, 0, 0, 128])]));
    silence(&expired6(&[(20, &[44]), (54, &[17, 0, 0, 8])]));
    answer(&expired6(&[(20, &[44]), (54, &[17, 0, 0, 1])]));
}

#[test]
fn arp_answers_only_own_addresses() {
    #[rustfmt::skip]
    let mut request = vec![
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0x10, 8, 6,
        0, 1, 8, 0, 6, 4, 0, 1,
        2, 0, 0, 0, 0, 0x10, 198, 18, 0, 2,
        0, 0, 0, 0, 0, 0, 198, 18, 0, 1,
    ];
    #[rustfmt::skip]
    let mut expected = vec![
        2, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, 1, 8, 6,
        0, 1, 8, 0, 6, 4, 0, 2,
        2, 0, 0, 0, 0, 1, 198, 18, 0, 1,
        2, 0, 0, 0, 0, 0x10, 198, 18, 0, 2,
    ];
    expected.resize(60, 0);
    assert_eq!(answer(&request), expected);
    request[41] = 7;
    silence(&request);
    // Another interface's address.
    request[38..42].copy_from_slice(&[198, 19, 0, 1]);
    silence(&request);
    request.truncate(41);
    assert_eq!(lab().reason(&request), "arp_invalid");
}

/// An ICMPv6 message to a MAC, with its checksum.
fn icmp6(mac: [u8; 6], from: [u8; 16], to: [u8; 16], limit: u8, message: &[u8]) -> Vec<u8> {
    let mut frame = [&mac[..], &SENDER, &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend([0, message.len() as u8, 58, limit]);
    frame.extend([from, to].concat());
    frame.extend(message);
    let sum = checksum::add(checksum::add(0, &frame[22..]), &[0, message.len() as u8, 0, 58]);
    frame[56..58].copy_from_slice(&checksum::finish(sum));
    frame
}

const OWN: [u8; 16] = [0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const FAR_ADDRESS: [u8; 16] = [0x20, 1, 0, 2, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const PEER: [u8; 16] = [0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

#[test]
fn solicitations_get_advertisements() {
    let group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 1];
    let mac = [0x33, 0x33, 0xff, 0, 0, 1];
    let message = |target: [u8; 16]| [&[135, 0, 0, 0, 0, 0, 0, 0][..], &target].concat();
    let advertisement = answer(&icmp6(mac, PEER, group, 255, &message(OWN)));
    let (header, rest) = icmp(&advertisement);
    assert_eq!((header[0], header[1], header[4]), (136, 0, 0xe0));
    assert_eq!(rest, [&OWN[..], &[2, 1], &NEAR].concat());
    assert_eq!(advertisement[21], 255);
    assert_eq!(advertisement[22..54], [OWN, PEER].concat());
    // A unicast solicitation, and one without a source address.
    answer(&icmp6(NEAR, PEER, OWN, 255, &message(OWN)));
    let to_all = answer(&icmp6(mac, [0; 16], group, 255, &message(OWN)));
    assert_eq!((to_all[38], to_all[53], to_all[58]), (0xff, 1, 0xa0));
    assert_eq!(to_all[..6], [0x33, 0x33, 0, 0, 0, 1]);
    // Another host's address, a packet from another link, a wrong checksum.
    silence(&icmp6(mac, PEER, group, 255, &message(PEER)));
    silence(&icmp6(mac, PEER, group, 254, &message(OWN)));
    let mut corrupt = icmp6(mac, PEER, group, 255, &message(OWN));
    corrupt[57] ^= 1;
    silence(&corrupt);
}

/// An echo request to the far address, in a frame of this size with FCS.
fn own_echo(family: Family, size: u16) -> Vec<u8> {
    let mut frame = udp(family, size);
    frame[..6].copy_from_slice(&FAR);
    let message = if family == Family::Inet { 34 } else { 54 };
    frame[message..message + 4].copy_from_slice(&[8, 0, 0, 0]);
    let mut sum = 0;
    if family == Family::Inet6 {
        frame[20] = 58;
        frame[message] = 128;
        frame[38..54].copy_from_slice(&FAR_ADDRESS);
        sum = checksum::add(checksum::add(0, &frame[22..54]), &[0, 58]);
        sum = checksum::add(sum, &((frame.len() - message) as u32).to_be_bytes());
    }
    let sum = checksum::finish(checksum::add(sum, &frame[message..]));
    frame[message + 2..message + 4].copy_from_slice(&sum);
    with(frame, if family == Family::Inet { &[(23, &[1]), (30, &[198, 19, 0, 1])] } else { &[] })
}

#[test]
fn echo_replies_return_the_payload() {
    let mut request = with(udp(Family::Inet, 64), &[(23, &[1]), (30, &[198, 18, 0, 1])]);
    request[34..38].copy_from_slice(&[8, 0, 0, 0]);
    let check = checksum::finish(checksum::add(0, &request[34..]));
    request[36..38].copy_from_slice(&check);
    let (header, rest) = icmp(&answer(&request));
    assert_eq!((header[0], &header[4..]), (0, &request[38..42]));
    assert_eq!(rest, request[42..]);
    request[50] ^= 1;
    silence(&request);
    silence(&with(udp(Family::Inet, 64), &[(30, &[198, 18, 0, 1])]));

    let message = [128, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7];
    let (header, rest) = icmp(&answer(&icmp6(NEAR, PEER, OWN, 9, &message)));
    assert_eq!((header[0], &header[4..], &rest[..]), (129, &message[4..8], &message[8..]));
    // Longer than the far link's MTU: the link carries no such echo.
    for family in [Family::Inet, Family::Inet6] {
        for (size, answer) in [(1298, "answered"), (1299, "silent")] {
            let sent = own_echo(family, size);
            let (_, names) = lab().send_from(1, &sent, 0);
            assert_eq!(names, ["slow_local", answer], "{size}");
        }
    }
    let classed = with(icmp6(NEAR, PEER, OWN, 9, &message), &[(14, &[0x6b, 0x8f, 0xff, 0xff])]);
    assert_eq!(answer(&classed)[14..18], [0x6b, 0x80, 0, 0]);
}

#[test]
fn errors_and_answers_have_separate_limits() {
    // A receiver gets a quarter.
    let rate = Rate { per_second: 4, burst: 8 };
    let mut lab = lab_of(&fwdlab_router::path::Config { errors: rate, ..config() });
    let expired = with(udp(Family::Inet, 64), &[(22, &[1])]);
    let mut sent = |now| lab.send_at(&expired, now).0.is_some();
    assert_eq!([sent(0), sent(0), sent(0)], [true, true, false]);
    assert_eq!([sent(1_000_000_000), sent(1_000_000_001)], [true, false]);
    let (out, _) = lab.send_at(&icmp6(NEAR, PEER, OWN, 9, &[128, 0, 0, 0, 0, 0, 0, 0]), 0);
    assert!(out.is_some());
    let names: Vec<_> = lab.counters.read().iter().map(|(r, n)| (r.name(), n)).collect();
    assert_eq!(names[..2], [("slow_local", 1), ("slow_expired", 5)]);
    assert_eq!(names[2..], [("answered", 4), ("limited", 2)]);
}
