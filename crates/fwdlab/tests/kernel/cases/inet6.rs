//! IPv6.

use super::Cases;
use crate::packets::{at, carrying6, changed, sound6, sum6};
use fwdlab_packet::checksum;
use std::net::Ipv6Addr;

const ON: &[&str] = &["far inet6"];
const NOTHING: &[&str] = &[];
const EXPIRED: &[&str] = &["near icmp6 3/0"];
const NO_ROUTE: &[&str] = &["near icmp6 1/0"];
const TOO_BIG: &[&str] = &["near icmp6 2/0"];
const ICMP: u8 = 58;

const OWN: &str = "2001:2::1";
const OWN_FAR: &str = "2001:2:0:8000::1";

pub(super) fn add(cases: &mut Cases) {
    forwarded(cases);
    extensions(cases);
    broken(cases);
    martians(cases);
    local(cases);
    redirects(cases);
}

fn address(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().expect("an address").octets()
}

fn to(frame: Vec<u8>, destination: &str) -> Vec<u8> {
    changed(frame, &[(at::DESTINATION6, &address(destination))])
}

fn from(frame: Vec<u8>, source: &str) -> Vec<u8> {
    changed(frame, &[(at::SOURCE6, &address(source))])
}

/// An ICMPv6 message: type, code, second word, 40 bytes.
fn icmp(frame: Vec<u8>, kind: u8, code: u8) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0x12, 0x34, 0, 7];
    message.extend(1..=40);
    sound6(carrying6(frame, ICMP, &message), &[])
}

fn forwarded(c: &mut Cases) {
    for size in [84, 128, 256, 512, 1024, 1280, 1298] {
        c.alike(format!("IPv6: {size} bytes"), c.inet6(size), ON);
    }
    let back = to(c.inet6(1518), "2001:2:0:5::5");
    c.alike("IPv6: 1518 bytes, to the side they came from", back, &["near inet6"]);
    for hops in [2, 255] {
        let frame = changed(c.inet6(100), &[(at::HOPS6, &[hops])]);
        c.alike(format!("hop limit {hops}"), frame, ON);
    }
    for hops in [0, 1] {
        let frame = changed(c.inet6(100), &[(at::HOPS6, &[hops])]);
        c.alike(format!("hop limit {hops}"), frame, EXPIRED);
    }
    let frame = changed(c.inet6(1518), &[(at::HOPS6, &[1])]);
    c.alike("hop limit 1, 1518 bytes", frame, EXPIRED);
    for class in [1, 2, 3, 0xb8, 0xff] {
        let bytes = [0x60 | class >> 4, class << 4 | 0xa, 0xbc, 0xde];
        let frame = changed(c.inet6(100), &[(at::IP, &bytes)]);
        c.alike(format!("traffic class {class:02x}, flow label"), frame, ON);
    }
    let frame = changed(c.inet6(100), &[(at::IP, &[0x6b, 0x8a]), (at::HOPS6, &[1])]);
    c.alike("hop limit 1, traffic class b8", frame, EXPIRED);
    for size in [84, 1518] {
        let frame = to(c.inet6(size), "2001:3::1");
        c.alike(format!("IPv6: no route, {size} bytes"), frame, NO_ROUTE);
    }
    for size in [1299, 1518] {
        c.alike(format!("IPv6: {size} bytes, too big"), c.inet6(size), TOO_BIG);
    }
    c.alike("IPv6: UDP checksum 0", changed(c.inet6(100), &[(at::AFTER6 + 6, &[0, 0])]), ON);
    let syn = [0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
    c.alike("IPv6: TCP SYN", carrying6(c.inet6(100), 6, &syn), ON);
    c.alike("IPv6: nothing inside", carrying6(c.inet6(100), 59, &[]), ON);
    let expiring = |frame| changed(frame, &[(at::HOPS6, &[1])]);
    c.alike("ICMPv6 echo request, hop limit 1", expiring(icmp(c.inet6(100), 128, 0)), EXPIRED);
    c.alike("ICMPv6 error, hop limit 1", expiring(icmp(c.inet6(100), 1, 0)), NOTHING);
    c.alike("ICMPv6 error, no route", to(icmp(c.inet6(100), 3, 0), "2001:3::1"), NOTHING);
    let frame = expiring(icmp(c.inet6(100), 137, 0));
    c.apart("ICMPv6 redirect, hop limit 1", frame, EXPIRED, NOTHING);
}

fn extensions(c: &mut Cases) {
    let udp = [0x30, 0x39, 0, 9, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let behind = |head: &[u8]| [head, &udp[..]].concat();
    let padding = [17, 0, 1, 4, 0, 0, 0, 0];
    c.alike("hop-by-hop padding", carrying6(c.inet6(100), 0, &behind(&padding)), ON);
    c.alike("destination options", carrying6(c.inet6(100), 60, &behind(&padding)), ON);
    let routing = [17, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    c.alike("routing header", carrying6(c.inet6(100), 43, &behind(&routing)), ON);
    for (name, offset) in [("first", [0, 1]), ("middle", [0, 9]), ("last", [0, 8])] {
        let head = [17, 0, offset[0], offset[1], 0, 0, 0, 5];
        let frame = carrying6(c.inet6(100), 44, &behind(&head));
        c.alike(format!("IPv6: {name} fragment"), frame, ON);
    }
    let head = [17, 0, 0, 1, 0, 0, 0, 5];
    let frame = changed(carrying6(c.inet6(100), 44, &behind(&head)), &[(at::HOPS6, &[1])]);
    c.alike("IPv6: first fragment, hop limit 1", frame, EXPIRED);
    let head = [17, 0, 0, 8, 0, 0, 0, 5];
    let frame = changed(carrying6(c.inet6(100), 44, &behind(&head)), &[(at::HOPS6, &[1])]);
    c.apart("IPv6: last fragment, hop limit 1", frame, EXPIRED, NOTHING);
    let payload = [&[17, 0, 0, 8, 0, 0, 0, 5][..], &[7; 1400]].concat();
    c.alike("IPv6: last fragment, too big", carrying6(c.inet6(100), 44, &payload), TOO_BIG);
    let jumbo = carrying6(c.inet6(100), 0, &behind(&[17, 0, 0xc2, 4, 0, 0, 0, 24]));
    let frame = changed(jumbo, &[(at::LENGTH6, &[0, 0])]);
    c.apart("jumbogram that is none", frame, &["near icmp6 4/0"], NOTHING);
    let unknown = [17, 0, 0x9e, 4, 0, 0, 0, 0];
    let frame = carrying6(c.inet6(100), 0, &behind(&unknown));
    c.apart("hop-by-hop option that asks for an error", frame, &["near icmp6 4/2"], ON);
    let unknown = [17, 0, 0x1e, 4, 0, 0, 0, 0];
    c.alike("hop-by-hop option to skip", carrying6(c.inet6(100), 0, &behind(&unknown)), ON);
}

fn broken(c: &mut Cases) {
    for first in [0x00, 0x40, 0x50, 0x70] {
        let frame = changed(c.inet6(100), &[(at::IP, &[first])]);
        c.alike(format!("IPv6: version {}", first >> 4), frame, NOTHING);
    }
    let frame = changed(c.inet6(100), &[(at::LENGTH6, &[0, 43])]);
    c.alike("IPv6: payload beyond the frame", frame, NOTHING);
    let frame = changed(c.inet6(100), &[(at::LENGTH6, &[0, 30])]);
    c.alike("IPv6: payload shorter than the frame", frame, ON);
    let mut frame = c.inet6(100);
    frame.truncate(at::AFTER6 - 1);
    c.alike("IPv6: half a header", frame, NOTHING);
}

fn martians(c: &mut Cases) {
    for source in ["::1", "::", "ff02::1", "ff0e::5"] {
        c.alike(format!("from {source}"), from(c.inet6(100), source), NOTHING);
    }
    let frame = from(c.inet6(100), "fe80::7");
    c.alike("from fe80::7", frame, &["near icmp6 1/2"]);
    for source in ["::5", "::ffff:198.18.1.1"] {
        c.apart(format!("from {source}"), from(c.inet6(100), source), ON, NOTHING);
    }
    c.apart(format!("from {OWN}"), from(c.inet6(100), OWN), &["far own6 17"], NOTHING);
    for destination in ["::1", "ff01::1", "ff02::1", "ff02::5", "ff0e::5", "ff00::1"] {
        c.alike(format!("to {destination}"), to(c.inet6(100), destination), NOTHING);
    }
    for destination in ["::", "::5", "::ffff:198.19.1.1"] {
        let frame = to(c.inet6(100), destination);
        c.apart(format!("to {destination}"), frame, NO_ROUTE, NOTHING);
    }
    let frame = to(c.inet6(100), "fe80::9");
    c.apart("to fe80::9", frame, &["near inet6"], NOTHING);
}

fn local(c: &mut Cases) {
    const ECHO: &[&str] = &["near icmp6 129/0"];
    for own in [OWN, OWN_FAR] {
        let frame = icmp(to(c.inet6(100), own), 128, 0);
        c.alike(format!("ICMPv6 echo request to {own}"), frame, ECHO);
    }
    let frame = icmp(to(c.inet6(100), "2001:2::"), 128, 0);
    c.alike("ICMPv6 echo request to the routers of a link", frame, ECHO);
    for (group, last) in [("ff02::1", 1), ("ff02::2", 2)] {
        let frame = icmp(to(c.inet6(100), group), 128, 0);
        let frame = changed(frame, &[(0, &[0x33, 0x33, 0, 0, 0, last])]);
        c.alike(format!("ICMPv6 echo request to {group}"), frame, ECHO);
    }
    let frame = icmp(from(to(c.inet6(100), "fe80::1"), "fe80::7"), 128, 0);
    c.alike("ICMPv6 echo request between link-local addresses", frame, ECHO);
    let frame = changed(icmp(to(c.inet6(100), OWN), 128, 0), &[(at::HOPS6, &[1])]);
    c.alike("ICMPv6 echo request to the router, hop limit 1", frame, ECHO);
    let frame = changed(icmp(to(c.inet6(100), OWN), 128, 0), &[(at::IP, &[0x6b, 0x80])]);
    c.alike("ICMPv6 echo request to the router, traffic class b8", frame, ECHO);
    let frame = changed(icmp(to(c.inet6(100), OWN), 128, 0), &[(at::AFTER6 + 2, &[1, 1])]);
    c.alike("ICMPv6 echo request to the router, checksum wrong", frame, NOTHING);
    let mut frame = changed(to(c.inet6(100), OWN), &[(at::AFTER6 + 6, &[0, 0])]);
    let sum = checksum::finish(sum6(&frame, 17));
    frame[at::AFTER6 + 6..at::AFTER6 + 8].copy_from_slice(&sum);
    c.apart("IPv6: UDP to the router", frame, &["near icmp6 1/4"], NOTHING);
}

fn redirects(c: &mut Cases) {
    const TOLD: &[&str] = &["near icmp6 137/0", "near inet6"];
    const BACK: &[&str] = &["near inet6"];
    let between =
        |c: &Cases, size, source, destination| from(to(c.inet6(size), destination), source);
    c.alike("IPv6: better by another router", between(c, 98, "2001:2::7", "2001:db8::5"), TOLD);
    c.alike("IPv6: better straight", between(c, 98, "2001:2::2", "2001:2::8"), TOLD);
    let fields = &["payload length", "quoted"];
    c.but(
        "IPv6: redirect that is filled up",
        between(c, 101, "2001:2::7", "2001:db8::6"),
        TOLD,
        fields,
    );
    let frame = between(c, 1518, "2001:2::7", "2001:db8::7");
    c.alike("IPv6: redirect about 1500 bytes", frame, TOLD);
    let frame = between(c, 98, "2001:2:0:9::9", "2001:db8::8");
    c.alike("IPv6: not from this link", frame, BACK);
    let frame = between(c, 98, "2001:2::7", "2001:2:0:5::5");
    c.alike("IPv6: better by a router without link-local address", frame, BACK);
    let frame = between(c, 98, "fe80::9", "2001:db8::9");
    c.apart("IPv6: from that router", frame, TOLD, &["near icmp6 1/2"]);
}
