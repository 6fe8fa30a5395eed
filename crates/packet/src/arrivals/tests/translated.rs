//! Packets with addresses that the device translated.

use super::*;
use crate::stream::Endpoints;
use std::net::IpAddr;

const SIZES: [u16; 2] = [84, 300];

/// A device's address of the family.
fn device(family: Family) -> IpAddr {
    match family {
        Family::Inet => IpAddr::from([198, 19, 0, 1]),
        Family::Inet6 => IpAddr::from([0x2001, 2, 0, 0x8000, 0, 0, 0, 1]),
    }
}

fn translating(family: Family, size: u16) -> Expected {
    let flows = Flows { sources: 3, destinations: 5 };
    Expected { translated: Some(device(family)), ..expected(family, size, flows) }
}

/// Translates the source of a packet as a device does.
fn translate(frame: &mut [u8], port: u16) {
    let family = if frame[12] == 0x08 { Family::Inet } else { Family::Inet6 };
    fwdlab_testdata::translate_source(frame, device(family), port);
}

/// Source port that a device gives a flow.
fn port_of(sequence: u32) -> u16 {
    1024 + sequence as u16 % 15
}

#[test]
fn translated_packets_are_intact() {
    for (family, size) in Family::ALL.into_iter().flat_map(|f| SIZES.map(|size| (f, size))) {
        let expected = translating(family, size);
        let mut arrivals = arrivals(&expected);
        for sequence in 0..3000 {
            let mut frame = packet(&expected, 1, sequence);
            translate(&mut frame, port_of(sequence));
            arrivals.take(&frame, frame.len(), 0);
        }
        let counts = arrivals.counts();
        assert_eq!((counts.packets, counts.damaged), ([0, 3000, 0, 0], [0; 4]), "{counts:?}");
        let flows = arrivals.flows().expect("followed");
        assert_eq!((flows.seen, flows.with_loss), (15, 0));
    }
}

#[test]
fn mapping_that_changes_within_a_flow_is_named() {
    for family in Family::ALL {
        let expected = translating(family, 84);
        let mut arrivals = arrivals(&expected);
        for sequence in 0..3000 {
            let mut frame = packet(&expected, 1, sequence);
            // The device forgets the mapping of one flow at a time, and later of another.
            let forgotten = u16::from(sequence >= 1500 && sequence % 15 < 2);
            translate(&mut frame, port_of(sequence) + 100 * forgotten);
            arrivals.take(&frame, frame.len(), 0);
        }
        let counts = arrivals.counts();
        assert_eq!(counts.faults[Fault::Mapping as usize], 2, "{counts:?}");
        assert_eq!((counts.total(), counts.damaged), (2998, [0, 2, 0, 0]), "{counts:?}");
    }
}

#[test]
fn flipped_bits_of_translated_packets_are_detected() {
    for family in Family::ALL {
        let expected = translating(family, 84);
        let mut arrivals = arrivals(&expected).looking_at_all();
        let mut frame = packet(&expected, 1, 7);
        translate(&mut frame, 40_000);
        for bit in 0..8 * frame.len() {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            arrivals.take(&flipped, flipped.len(), 0);
        }
        let counts = arrivals.counts();
        assert_eq!((counts.total(), counts.foreign), (0, 0), "{counts:?}");
    }
}

#[test]
fn untranslated_packets_have_a_wrong_source_address() {
    for family in Family::ALL {
        let expected = translating(family, 84);
        let mut arrivals = arrivals(&expected);
        let frame = packet(&expected, 0, 3);
        arrivals.take(&frame, frame.len(), 0);
        // An address other than the device's.
        let mut other = frame.clone();
        translate(&mut other, 2000);
        other[29] = 7;
        arrivals.take(&other, other.len(), 0);
        let counts = arrivals.counts();
        assert_eq!(counts.faults[Fault::SourceAddress as usize], 2, "{counts:?}");
        assert_eq!(counts.total(), 0);
    }
}

#[test]
fn translated_destinations_are_compared_with_the_receiver() {
    for family in Family::ALL {
        let expected = expected(family, 84, Flows { sources: 3, destinations: 1 });
        let (target, target_port): (IpAddr, u16) = match family {
            Family::Inet => (IpAddr::from([203, 0, 113, 9]), 8080),
            Family::Inet6 => (IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 9]), 8080),
        };
        let planned = Endpoints::planned(family);
        let endpoints = Endpoints { destination: target, destination_port: target_port, ..planned };
        let stream = Stream { endpoints: Some(endpoints), ..Stream::new(family, 84, FLOWS) };
        let stream = Stream { flows: expected.template.flows(), ..stream };
        let template = Template::new(&stream, RUN_ID, [2; 6], [4; 6]);
        let sent = Expected { template, ..expected.clone() };
        for (address, port, fault) in [
            (planned.destination, planned.destination_port, None),
            (target, target_port, Some(Fault::DestinationAddress)),
            (planned.destination, target_port, Some(Fault::UdpHeader)),
            (device(family), planned.destination_port, Some(Fault::DestinationAddress)),
        ] {
            let mut arrivals = arrivals(&expected);
            for sequence in 0..30 {
                let mut frame = packet(&sent, 0, sequence);
                fwdlab_testdata::translate_destination(&mut frame, address, port);
                arrivals.take(&frame, frame.len(), 0);
            }
            let counts = arrivals.counts();
            let damaged = fault.map_or(0, |fault| counts.faults[fault as usize]);
            let total = if fault.is_some() { 30 } else { 0 };
            assert_eq!((damaged, counts.total()), (total, 30 - total), "{family} {fault:?}");
        }
    }
}
