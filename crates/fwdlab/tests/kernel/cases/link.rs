//! Ethernet, ARP and neighbour discovery.

use super::Cases;
use crate::packets::{arp, at, carrying6, changed, filler, sound6};
use crate::setup::SENDER;
use std::net::Ipv6Addr;

const NOTHING: &[&str] = &[];
const OWN: [u8; 4] = [198, 18, 0, 1];
const ASKING: [u8; 4] = [198, 18, 0, 2];

pub(super) fn add(cases: &mut Cases) {
    stations(cases);
    addresses(cases);
    solicitations(cases);
}

fn stations(c: &mut Cases) {
    let macs: [[u8; 6]; 4] =
        [[2, 0, 0, 0, 0, 9], [0xff; 6], [1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]];
    for mac in macs {
        c.alike(format!("IPv4 to MAC {mac:02x?}"), changed(c.inet(100), &[(0, &mac)]), NOTHING);
        c.alike(format!("IPv6 to MAC {mac:02x?}"), changed(c.inet6(100), &[(0, &mac)]), NOTHING);
    }
    let tagged = |c: &Cases, tag: [u8; 2]| {
        let mut frame = c.inet(100);
        frame.splice(12..12, [0x81, 0, tag[0], tag[1]]);
        frame
    };
    c.alike("VLAN 5", tagged(c, [0, 5]), NOTHING);
    c.apart("VLAN 0", tagged(c, [0x60, 0]), &["far inet"], NOTHING);
    c.alike("EtherType 88b5", filler(), NOTHING);
    c.alike("IEEE 802.3 length", changed(c.inet(100), &[(12, &[0, 46])]), NOTHING);
    c.alike("IPv4 as IPv6", changed(c.inet(100), &[(12, &[0x86, 0xdd])]), NOTHING);
    c.alike("IPv6 as IPv4", changed(c.inet6(100), &[(12, &[8, 0])]), NOTHING);
}

fn addresses(c: &mut Cases) {
    const REPLY: &[&str] = &["near arp 2"];
    c.alike("ARP request", arp(1, ASKING, OWN), REPLY);
    c.alike(
        "ARP request to the router alone",
        changed(arp(1, ASKING, OWN), &[(0, &[2, 0, 0, 0, 0, 1])]),
        REPLY,
    );
    c.alike("ARP probe", arp(1, [0; 4], OWN), REPLY);
    c.alike("ARP request for another host", arp(1, ASKING, [198, 18, 0, 8]), NOTHING);
    c.alike("ARP request for the far address", arp(1, ASKING, [198, 19, 0, 1]), NOTHING);
    c.alike("ARP reply", arp(2, ASKING, OWN), NOTHING);
    c.alike("ARP announcement", arp(1, ASKING, ASKING), NOTHING);
    let frame = changed(arp(1, ASKING, OWN), &[(15, &[6])]);
    c.apart("ARP of IEEE 802 hardware", frame, REPLY, NOTHING);
    c.alike("ARP of other hardware", changed(arp(1, ASKING, OWN), &[(15, &[7])]), NOTHING);
    c.alike("ARP cut short", arp(1, ASKING, OWN)[..40].to_vec(), NOTHING);
}

/// A solicitation to the group of the target, or to the target itself.
fn solicitation(c: &Cases, source: &str, target: &str, group: bool) -> Vec<u8> {
    let octets = |text: &str| text.parse::<Ipv6Addr>().expect("an address").octets();
    let target = octets(target);
    let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target);
    if source != "::" {
        message.extend([1, 1]);
        message.extend(SENDER);
    }
    let mut destination = target;
    let mut frame = carrying6(c.inet6(100), 58, &message);
    if group {
        destination = octets("ff02::1:ff00:0");
        destination[13..].copy_from_slice(&target[13..]);
        let mac = [0x33, 0x33, 0xff, target[13], target[14], target[15]];
        frame = changed(frame, &[(0, &mac)]);
    }
    let changes: [(usize, &[u8]); 3] =
        [(at::HOPS6, &[255]), (at::SOURCE6, &octets(source)), (at::DESTINATION6, &destination)];
    sound6(frame, &changes)
}

fn solicitations(c: &mut Cases) {
    const ADVERTISED: &[&str] = &["near icmp6 136/0"];
    for own in ["2001:2::1", "fe80::1"] {
        let frame = solicitation(c, "2001:2::2", own, true);
        c.alike(format!("solicitation of {own}"), frame, ADVERTISED);
        let frame = solicitation(c, "fe80::7", own, true);
        c.alike(format!("solicitation of {own} from a link-local address"), frame, ADVERTISED);
    }
    let frame = solicitation(c, "::", "2001:2::1", true);
    c.alike("solicitation from nobody", frame, ADVERTISED);
    let frame = solicitation(c, "2001:2::2", "2001:2::1", false);
    let fields = &["payload length", "quoted", "second word"];
    c.but("solicitation to the router alone", frame, ADVERTISED, fields);
    let frame = solicitation(c, "2001:2::2", "2001:2::8", true);
    c.alike("solicitation of another host", frame, NOTHING);
    let frame = changed(solicitation(c, "2001:2::2", "2001:2::1", true), &[(at::HOPS6, &[254])]);
    c.alike("solicitation from another link", frame, NOTHING);
    let frame = solicitation(c, "2001:2::2", "2001:2::1", true);
    let frame = changed(frame, &[(at::AFTER6 + 2, &[1, 1])]);
    c.alike("solicitation, checksum wrong", frame, NOTHING);
}
