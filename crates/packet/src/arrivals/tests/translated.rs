//! Packets with the device's source address.

use super::*;

const DEVICE: [u8; 4] = [198, 19, 0, 1];

fn translating(size: u16) -> Expected {
    let flows = Flows { sources: 3, destinations: 5 };
    Expected { translated: Some(DEVICE), ..expected(Family::Inet, size, flows) }
}

fn translate(frame: &mut [u8], port: u16) {
    fwdlab_testdata::translate_source(frame, DEVICE, port);
}

#[test]
fn translated_packets_are_intact() {
    for size in [64, 300] {
        let expected = translating(size);
        let mut arrivals = arrivals(&expected);
        for sequence in 0..3000 {
            let mut frame = packet(&expected, 1, sequence);
            translate(&mut frame, 1024 + sequence as u16);
            arrivals.take(&frame, frame.len(), 0);
        }
        let counts = arrivals.counts();
        assert_eq!((counts.packets, counts.damaged), ([0, 3000, 0, 0], [0; 4]), "{counts:?}");
        let flows = arrivals.flows().expect("followed");
        assert_eq!((flows.seen, flows.with_loss), (15, 0));
    }
}

#[test]
fn flipped_bits_of_translated_packets_are_detected() {
    let expected = translating(64);
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

#[test]
fn untranslated_packets_have_a_wrong_source_address() {
    let expected = translating(64);
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
