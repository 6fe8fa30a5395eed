//! Frames compared with etherparse and with the sums of senders.

use super::*;
use crate::address::{Side, flow_address};
use crate::arrivals::{Expected, Pattern};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

fn template(family: Family, size: impl Into<FrameSize>) -> Template {
    let flows = Flows { sources: 1000, destinations: 1000 };
    Template::new(
        &Stream::new(family, size, flows),
        0xdead_beef,
        [2, 0, 0, 0, 0, 1],
        [2, 0, 0, 0, 0, 2],
    )
}

fn stamp(sequence: u32, flow: u32) -> Stamp {
    Stamp { run_id: 0xdead_beef, sender: 3, phase: 1, flow, sequence, time_ns: 77 }
}

fn check(family: Family, size: impl Into<FrameSize>, source: u32, destination: u32, sequence: u32) {
    let t = template(family, size);
    let stamp = stamp(sequence, t.flow(source, destination));
    let frame = t.frame(source, destination, &stamp);
    assert_eq!(frame.len(), t.length(sequence));
    assert_eq!(Stamp::parse_frame(&frame), Some(stamp));
    let packet = SlicedPacket::from_ethernet(&frame).expect("etherparse reads it");
    let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("not UDP") };
    let expected = match packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(
                IpAddr::V4(header.destination.into()),
                flow_address(family, Side::Receiver, destination)
            );
            udp.to_header().calc_checksum_ipv4(&header, udp.payload()).expect("checksum")
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header().to_header();
            assert_eq!(
                IpAddr::V6(header.source.into()),
                flow_address(family, Side::Sender, source)
            );
            udp.to_header().calc_checksum_ipv6(&header, udp.payload()).expect("checksum")
        }
        _ => panic!("neither IPv4 nor IPv6"),
    };
    assert_eq!(udp.checksum(), expected);

    // The constant sums plus the changing words give the same checksum.
    let mut sums = t.sums();
    if t.size().is_mix() {
        let lengths = Template::lengths_of(family, frame.len());
        sums.udp = checksum::add(checksum::add(sums.udp, &lengths.udp), &lengths.udp);
        sums.ip = checksum::add(sums.ip, &lengths.ip);
    }
    let (s, d) = t.bases();
    let changing = |sum: u32| {
        let sum = checksum::add(sum, &(s + source).to_be_bytes());
        checksum::add(sum, &(d + destination).to_be_bytes())
    };
    let at = t.stamp_offset();
    let udp_sum = checksum::add(changing(sums.udp), &frame[at + 6..at + 18]);
    let udp_check = checksum::finish(udp_sum);
    let field = &frame[t.udp_offset() + 6..t.udp_offset() + 8];
    assert!(field == udp_check || (udp_check == [0, 0] && field == [0xff, 0xff]));
    if family == Family::Inet {
        assert_eq!(frame[24..26], checksum::finish(changing(sums.ip)));
    }
}

proptest! {
    #[test]
    fn frames_are_correct(v6: bool, size in 84u16..=1518, source in 0u32..1000,
                          destination in 0u32..1000, sequence: u32) {
        let family = if v6 { Family::Inet6 } else { Family::Inet };
        check(family, size, source, destination, sequence);
    }
}

#[test]
fn frames_of_a_mix_are_correct() {
    let mix = FrameSize::parse("imix").expect("known");
    for sequence in 0..40 {
        check(Family::Inet, mix, 3, 7, sequence);
        check(Family::Inet6, mix.at_least(84), 3, 7, sequence);
    }
}

#[test]
fn flood_flows_are_distinct_from_each_other_and_the_traffic() {
    let t = template(Family::Inet, 64);
    for packets in [1, 999, 70_000, 3_000_000, FLOOD_FLOWS, u64::MAX] {
        let flood = t.flood(packets);
        let flows = u64::from(flood.flows().sources) * u64::from(flood.flows().destinations);
        assert!(flows >= packets.min(FLOOD_FLOWS) && flows < 1 << 24, "{packets}: {flows}");
        let Flows { sources, destinations } = flood.flows();
        assert!(sources <= MAX_ADDRESSES && destinations <= MAX_ADDRESSES, "{packets}");
    }
    for (family, size) in [(Family::Inet, 64), (Family::Inet6, 84)] {
        let t = template(family, size);
        let flood = t.flood(1000);
        let stamp = Stamp { run_id: flood.run_id(), ..stamp(7, 0) };
        let (traffic, other) = (t.frame(0, 0, &stamp), flood.frame(0, 0, &stamp));
        let udp = t.udp_offset();
        assert_ne!(traffic[udp..udp + 2], other[udp..udp + 2], "its port");
        assert_eq!((traffic.len(), &traffic[..udp]), (other.len(), &other[..udp]), "all else");
        assert!((t.run_id() ^ flood.run_id()).count_ones() > crate::arrivals::verify::NEAR_BITS);
        let packet = SlicedPacket::from_ethernet(&other).expect("etherparse reads it");
        let Some(TransportSlice::Udp(read)) = packet.transport else { panic!("not UDP") };
        let check = match packet.net {
            Some(NetSlice::Ipv4(ip)) => {
                let ip = ip.header().to_header();
                read.to_header().calc_checksum_ipv4(&ip, read.payload())
            }
            Some(NetSlice::Ipv6(ip)) => {
                let ip = ip.header().to_header();
                read.to_header().calc_checksum_ipv6(&ip, read.payload())
            }
            _ => panic!("neither IPv4 nor IPv6"),
        };
        assert_eq!(read.checksum(), check.expect("a checksum"));
    }
}

#[test]
fn frames_outside_the_address_plan_have_their_endpoints() {
    for (source, destination) in [("10.1.2.3", "192.0.2.255"), ("fd00::1:ffff", "2001:db8::9")] {
        let endpoints = Endpoints {
            source: source.parse().expect("an address"),
            destination: destination.parse().expect("an address"),
            source_port: 5000,
            destination_port: 6000,
            ttl: 9,
        };
        let family = if source.contains(':') { Family::Inet6 } else { Family::Inet };
        let flows = Flows { sources: 2, destinations: 3 };
        let stream = Stream { endpoints: Some(endpoints), ..Stream::new(family, 100u16, flows) };
        let t = Template::new(&stream, 7, [2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let stamp = Stamp { run_id: 7, ..stamp(5, 5) };
        let frame = t.frame(1, 2, &stamp);
        let packet = SlicedPacket::from_ethernet(&frame).expect("etherparse reads it");
        let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("not UDP") };
        assert_eq!((udp.source_port(), udp.destination_port()), (5000, 6000));
        let read = match packet.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header().to_header();
                let check = udp.to_header().calc_checksum_ipv4(&header, udp.payload());
                assert_eq!(header.header_checksum, header.calc_header_checksum());
                let addresses = [header.source, header.destination].map(IpAddr::from);
                (addresses, header.time_to_live, check.expect("a checksum"))
            }
            Some(NetSlice::Ipv6(ip)) => {
                let header = ip.header().to_header();
                let check = udp.to_header().calc_checksum_ipv6(&header, udp.payload());
                let addresses = [header.source, header.destination].map(IpAddr::from);
                (addresses, header.hop_limit, check.expect("a checksum"))
            }
            _ => panic!("neither IPv4 nor IPv6"),
        };
        let expected = match family {
            Family::Inet => ["10.1.2.4", "192.0.3.1"],
            Family::Inet6 => ["fd00::2:0", "2001:db8::b"],
        };
        let expected = expected.map(|text| text.parse::<IpAddr>().expect("an address"));
        assert_eq!(read, (expected, 9, udp.checksum()));
        assert_eq!(Stamp::parse_frame(&frame), Some(stamp));
        // A receiver behind one router accepts it, and no other time to live.
        let expected = |hops| Expected {
            template: t.clone(),
            destination_mac: None,
            source_mac: None,
            translated: None,
            hops,
            senders: 4,
            timestamps: true,
            same_clock: true,
            sampled: false,
        };
        let passes = |hops| Pattern::new(&expected(hops)).passes(&frame, frame.len(), true);
        assert_eq!(passes(0), Some(stamp), "{family}");
        assert_eq!(passes(1), None, "{family}");
    }
}

#[test]
fn smallest_frames_are_correct() {
    check(Family::Inet, 64, 19, 99, u32::MAX);
    check(Family::Inet6, 84, 19, 99, u32::MAX);
}
