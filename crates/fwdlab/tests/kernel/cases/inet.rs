//! IPv4.

use super::Cases;
use crate::packets::{at, carrying, changed, icmp, sound, with_options};

const ON: &[&str] = &["far inet"];
const NOTHING: &[&str] = &[];
const EXPIRED: &[&str] = &["near icmp 11/0"];
const TOO_BIG: &[&str] = &["near icmp 3/4"];
/// The far side's MTU splits 1500 bytes into two fragments.
const CUT: &[&str] = &["far inet at 0+", "far inet at 1256"];

const NEARBY: [u8; 4] = [198, 18, 5, 5];
const OWN: [u8; 4] = [198, 18, 0, 1];
const OWN_FAR: [u8; 4] = [198, 19, 0, 1];

pub(super) fn add(cases: &mut Cases) {
    forwarded(cases);
    too_big(cases);
    broken(cases);
    options(cases);
    martians(cases);
    local(cases);
    redirects(cases);
}

fn forwarded(c: &mut Cases) {
    for size in [64, 65, 128, 256, 512, 1024, 1280, 1298] {
        c.alike(format!("{size} bytes"), c.inet(size), ON);
    }
    let back = sound(c.inet(1518), &[(at::DESTINATION, &NEARBY)]);
    c.alike("1518 bytes, to the side they came from", back, &["near inet"]);
    for ttl in [2, 255] {
        c.alike(format!("TTL {ttl}"), sound(c.inet(100), &[(at::TTL, &[ttl])]), ON);
    }
    for ttl in [0, 1] {
        c.alike(format!("TTL {ttl}"), sound(c.inet(100), &[(at::TTL, &[ttl])]), EXPIRED);
    }
    c.alike("TTL 1, 1518 bytes", sound(c.inet(1518), &[(at::TTL, &[1])]), EXPIRED);
    for tos in [1, 2, 3, 0xb8, 0x2a, 0xff] {
        let frame = sound(c.inet(100), &[(at::TOS, &[tos])]);
        c.alike(format!("type of service {tos:02x}"), frame, ON);
    }
    let frame = sound(c.inet(100), &[(at::TOS, &[0xb8]), (at::TTL, &[1])]);
    c.but("TTL 1, type of service b8", frame, EXPIRED, &["dscp"]);
    for flags in [0x00, 0x80, 0xc0] {
        let frame = sound(c.inet(100), &[(at::ID, &[0xbe, 0xef]), (at::FLAGS, &[flags])]);
        c.alike(format!("flags {flags:02x} and identification"), frame, ON);
    }
    for (name, flags) in [("first", [0x20, 0]), ("middle", [0x20, 9]), ("last", [0, 18])] {
        let frame = sound(c.inet(134), &[(at::ID, &[0xbe, 0xef]), (at::FLAGS, &flags)]);
        let kinds: &[&str] = match name {
            "first" => &["far inet at 0+"],
            "middle" => &["far inet at 72+"],
            _ => &["far inet at 144"],
        };
        c.alike(format!("{name} fragment"), frame, kinds);
    }
    let frame = sound(c.inet(134), &[(at::FLAGS, &[0x20, 0]), (at::TTL, &[1])]);
    c.alike("first fragment, TTL 1", frame, EXPIRED);
    let frame = sound(c.inet(134), &[(at::FLAGS, &[0, 18]), (at::TTL, &[1])]);
    c.alike("last fragment, TTL 1", frame, NOTHING);
    c.alike("UDP checksum 0", changed(c.inet(100), &[(at::AFTER + 6, &[0, 0])]), ON);
    c.alike("UDP checksum wrong", changed(c.inet(100), &[(at::AFTER + 6, &[1, 1])]), ON);
    let syn = [0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
    c.alike("TCP SYN", carrying(c.inet(100), 6, &syn), ON);
    c.alike("protocol 200", carrying(c.inet(100), 200, &[7; 30]), ON);
    c.alike("no payload", carrying(c.inet(100), 17, &[]), ON);
    c.alike("echo request", carrying(c.inet(100), 1, &icmp(8, 0)), ON);
    let frame = sound(carrying(c.inet(100), 1, &icmp(8, 0)), &[(at::TTL, &[1])]);
    c.alike("echo request, TTL 1", frame, EXPIRED);
    let frame = sound(carrying(c.inet(100), 1, &icmp(3, 1)), &[(at::TTL, &[1])]);
    c.alike("ICMP error, TTL 1", frame, NOTHING);
    for size in [64, 1518] {
        let frame = sound(c.inet(size), &[(at::DESTINATION, &[203, 0, 113, 5])]);
        c.alike(format!("no route, {size} bytes"), frame, &["near icmp 3/0"]);
    }
    let frame =
        sound(carrying(c.inet(100), 1, &icmp(11, 0)), &[(at::DESTINATION, &[203, 0, 113, 5])]);
    c.alike("ICMP error, no route", frame, NOTHING);
}

fn too_big(c: &mut Cases) {
    for size in [1299, 1518] {
        c.alike(format!("{size} bytes, not to be cut"), c.inet(size), TOO_BIG);
    }
    let frame = sound(carrying(c.inet(64), 1, &[&icmp(3, 1)[..], &[7; 1300]].concat()), &[]);
    c.alike("ICMP error too big", frame, NOTHING);
    let free = |frame| sound(frame, &[(at::ID, &[0xab, 0xcd]), (at::FLAGS, &[0])]);
    c.alike("1518 bytes", free(c.inet(1518)), CUT);
    c.alike("1299 bytes", free(c.inet(1299)), CUT);
    let frame = sound(c.inet(1518), &[(at::FLAGS, &[0x20, 0])]);
    c.alike("first fragment too big", frame, &["far inet at 0+", "far inet at 1256+"]);
    let frame = sound(c.inet(1518), &[(at::FLAGS, &[0, 185])]);
    c.alike("last fragment too big", frame, &["far inet at 1480+", "far inet at 2736"]);
    let frame = sound(c.inet(1518), &[(at::TOS, &[0x2b]), (at::FLAGS, &[0])]);
    c.alike("type of service of fragments", frame, CUT);
    let copied = free(with_options(c.inet(1400), &[0x94, 4, 0, 0]));
    c.alike("copied option in fragments", copied, &["far inet at 0+", "far inet at 1256"]);
    let other = free(with_options(c.inet(1400), &[0x1e, 4, 0, 0]));
    let fields = &["header checksum", "options", "total length", "version and header length"];
    c.but("other option in fragments", other, CUT, fields);
}

fn broken(c: &mut Cases) {
    let frame = changed(c.inet(100), &[(at::CHECKSUM, &[1, 1])]);
    c.alike("header checksum wrong", frame, NOTHING);
    for first in [0x05, 0x35, 0x55, 0x65] {
        let frame = sound(c.inet(100), &[(at::IP, &[first])]);
        c.alike(format!("version {}", first >> 4), frame, NOTHING);
    }
    for first in [0x40, 0x44] {
        let frame = sound(c.inet(100), &[(at::IP, &[first])]);
        c.alike(format!("header of {} words", first & 15), frame, NOTHING);
    }
    c.alike("header beyond the packet", sound(c.inet(64), &[(at::IP, &[0x4f])]), NOTHING);
    for total in [0, 19, 83, 1500] {
        let length = u16::to_be_bytes(total);
        let frame = sound(c.inet(100), &[(at::LENGTH, &length)]);
        c.alike(format!("total length {total}"), frame, NOTHING);
    }
    for total in [20, 40, 81] {
        let length = u16::to_be_bytes(total);
        let frame = sound(c.inet(100), &[(at::LENGTH, &length)]);
        c.alike(format!("total length {total}"), frame, ON);
    }
    let mut frame = c.inet(100);
    frame.truncate(at::IP + 19);
    c.alike("half a header", frame, NOTHING);
    let mut frame = c.inet(100);
    frame.truncate(at::IP);
    c.alike("no header", frame, NOTHING);
}

fn options(c: &mut Cases) {
    c.alike("nothing", with_options(c.inet(100), &[1, 1, 1, 1]), ON);
    c.alike("end", with_options(c.inet(100), &[1, 0, 0, 0]), ON);
    c.alike("unknown", with_options(c.inet(100), &[0x1e, 4, 1, 2]), ON);
    c.alike("router alert", with_options(c.inet(100), &[0x94, 4, 0, 0]), ON);
    let room = [7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    c.alike("record route", with_options(c.inet(100), &room), ON);
    let half = [7, 11, 8, 10, 0, 0, 1, 0, 0, 0, 0, 0];
    c.alike("record route, one taken", with_options(c.inet(100), &half), ON);
    let full = [7, 7, 8, 10, 0, 0, 1, 0];
    c.alike("record route, full", with_options(c.inet(100), &full), ON);
    let time = [0x44, 8, 5, 0, 0, 0, 0, 0];
    c.but("timestamp", with_options(c.inet(100), &time), ON, &["header checksum", "options"]);
    let full = [0x44, 8, 9, 0, 1, 2, 3, 4];
    let fields = &["header checksum", "options"];
    c.but("timestamp, full", with_options(c.inet(100), &full), ON, fields);
    let expired = sound(with_options(c.inet(100), &[1, 1, 1, 1]), &[(at::TTL, &[1])]);
    c.alike("nothing, TTL 1", expired, EXPIRED);
    let expired = sound(with_options(c.inet(100), &room), &[(at::TTL, &[1])]);
    let fields = &["options", "quoted", "total length", "version and header length"];
    c.but("record route, TTL 1", expired, EXPIRED, fields);
    for kind in [0x83, 0x89] {
        let route = [kind, 7, 4, 198, 19, 5, 5, 0];
        let frame = with_options(c.inet(100), &route);
        c.apart(format!("source route {kind:02x}"), frame, NOTHING, &["near icmp 3/5"]);
    }
    const WRONG: &[&str] = &["near icmp 12/0"];
    for option in [&[1, 1, 1, 7][..], &[7, 7, 3, 0, 0, 0, 0, 0], &[7, 2, 4, 0]] {
        let frame = with_options(c.inet(100), option);
        c.alike(format!("wrong option {option:02x?}"), frame, WRONG);
    }
    for option in [[7, 0, 4, 0], [7, 40, 4, 0], [0x44, 1, 5, 0]] {
        let frame = with_options(c.inet(100), &option);
        c.but(format!("wrong length of option {option:02x?}"), frame, WRONG, &["second word"]);
    }
}

fn martians(c: &mut Cases) {
    let sources: [[u8; 4]; 5] = [[127, 0, 0, 1], [0, 0, 0, 0], [224, 0, 0, 5], [255; 4], OWN];
    for source in sources {
        let frame = sound(c.inet(100), &[(at::SOURCE, &source)]);
        c.alike(format!("from {source:?}"), frame, NOTHING);
    }
    for source in [[0, 1, 2, 3], [240, 1, 2, 3], [169, 254, 1, 2], [198, 18, 0, 255]] {
        let frame = sound(c.inet(100), &[(at::SOURCE, &source)]);
        c.apart(format!("from {source:?}"), frame, ON, NOTHING);
    }
    let destinations: [[u8; 4]; 7] = [
        [127, 0, 0, 1],
        [0, 0, 0, 0],
        [224, 0, 0, 5],
        [239, 1, 2, 3],
        [255; 4],
        [198, 18, 0, 255],
        [198, 19, 0, 255],
    ];
    for destination in destinations {
        let frame = sound(c.inet(100), &[(at::DESTINATION, &destination)]);
        c.alike(format!("to {destination:?}"), frame, NOTHING);
    }
    for destination in [[240, 1, 2, 3], [169, 254, 1, 2], [198, 19, 0, 0]] {
        let frame = sound(c.inet(100), &[(at::DESTINATION, &destination)]);
        c.apart(format!("to {destination:?}"), frame, ON, NOTHING);
    }
    let frame = sound(c.inet(100), &[(at::DESTINATION, &[0, 1, 2, 3])]);
    c.apart("to 0.1.2.3", frame, &["near icmp 3/0"], NOTHING);
}

fn local(c: &mut Cases) {
    let to = |frame, own: [u8; 4]| sound(frame, &[(at::FLAGS, &[0]), (at::DESTINATION, &own)]);
    let ping = |c: &Cases| carrying(c.inet(100), 1, &icmp(8, 0));
    for own in [OWN, OWN_FAR] {
        c.alike(format!("echo request to {own:?}"), to(ping(c), own), &["near icmp 0/0"]);
    }
    let frame = sound(to(ping(c), OWN), &[(at::TTL, &[1])]);
    c.alike("echo request to the router, TTL 1", frame, &["near icmp 0/0"]);
    let frame = sound(to(ping(c), OWN), &[(at::TOS, &[0xb8])]);
    c.alike("echo request to the router, type of service b8", frame, &["near icmp 0/0"]);
    let frame = sound(ping(c), &[(at::DESTINATION, &OWN)]);
    c.but("echo request to the router, not to be cut", frame, &["near icmp 0/0"], &["flags"]);
    let frame = changed(to(ping(c), OWN), &[(at::AFTER + 2, &[1, 1])]);
    c.alike("echo request to the router, checksum wrong", frame, NOTHING);
    let frame = to(carrying(c.inet(100), 1, &icmp(0, 0)), OWN);
    c.alike("echo to the router", frame, NOTHING);
    let frame = to(ping(c), [198, 18, 0, 255]);
    c.alike("echo request to everybody", frame, NOTHING);
    let frame = changed(to(c.inet(100), OWN), &[(at::AFTER + 6, &[0, 0])]);
    c.apart("UDP to the router", frame, &["near icmp 3/3"], NOTHING);
    let syn = [0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
    let frame = to(carrying(c.inet(100), 6, &syn), OWN);
    c.alike("TCP SYN to the router, checksum wrong", frame, NOTHING);
}

fn redirects(c: &mut Cases) {
    const TOLD: &[&str] = &["near icmp 5/1", "near inet"];
    const BACK: &[&str] = &["near inet"];
    let between = |c: &Cases, source: &[u8], destination: &[u8]| {
        sound(c.inet(100), &[(at::SOURCE, source), (at::DESTINATION, destination)])
    };
    let (one, two) = ([198, 18, 0, 7], [198, 18, 0, 2]);
    let quoted = &["quoted"];
    c.but("better by another router", between(c, &one, &[192, 0, 2, 5]), TOLD, quoted);
    c.but("better straight", between(c, &two, &[198, 18, 0, 8]), TOLD, quoted);
    c.alike("not from this link", between(c, &[198, 18, 9, 9], &[192, 0, 2, 5]), BACK);
    let frame = between(c, &[198, 18, 0, 9], &[192, 0, 2, 5]);
    c.apart("from that router", frame, TOLD, BACK);
    let frame = between(c, &[198, 18, 0, 8], &[198, 18, 0, 8]);
    c.apart("from that host", frame, TOLD, BACK);
}
