//! Tests of flows and their next hops.

use super::*;

fn hops(numbers: &[u32]) -> Vec<NextHop> {
    numbers.iter().map(|&number| NextHop::new(number).expect("a number")).collect()
}

/// UDP in IPv4 from this port.
fn inet(port: u16) -> [u8; 60] {
    let mut bytes = [0u8; 60];
    bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
    bytes[23] = 17;
    bytes[34..36].copy_from_slice(&port.to_be_bytes());
    bytes
}

fn flow_of(bytes: &[u8]) -> u32 {
    flow(&Frame::of(0, bytes).expect("it fits"))
}

fn chosen(members: &[NextHop], flow: u32) -> u32 {
    member(members, flow, true, |_| true).expect("one").number()
}

#[test]
fn flows_spread_by_weight_and_fragments_follow_one_path() {
    let members = hops(&[1, 1, 1, 2]);
    let shares = (0..8000).filter(|&port| chosen(&members, flow_of(&inet(port))) == 1).count();
    assert!((5800..6200).contains(&shares), "{shares}");
    let mut bytes = inet(7);
    bytes[20] = 0x20;
    let first = flow_of(&bytes);
    (bytes[20], bytes[21], bytes[34]) = (0, 9, 77);
    assert_eq!(flow_of(&bytes), first);
}

/// Headers of any length, of which a frame has only the beginning in its first buffer.
#[test]
fn flow_of_long_headers_reads_no_further_than_the_buffer() {
    for length in 0..=255 {
        let mut bytes = vec![0u8; 9000];
        bytes[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
        bytes[20] = 60;
        for at in (54..8900).step_by(8) {
            bytes[at..at + 2].copy_from_slice(&[60, length]);
        }
        flow_of(&bytes);
    }
}

/// Of three next hops one goes: a third of the flows must move, and hash threshold moves a sixth
/// of all in addition at most (RFC 2992 section 4).
#[test]
fn few_flows_move_when_a_next_hop_goes() {
    let flows: Vec<u32> = (0..12_000).map(|port| flow_of(&inet(port))).collect();
    let moved = |after: &[u32]| {
        let (before, after) = (hops(&[1, 2, 3]), hops(after));
        let moves = |&&flow: &&u32| chosen(&before, flow) != chosen(&after, flow);
        flows.iter().filter(moves).count() as f64 / flows.len() as f64
    };
    for (after, expected) in [([1, 3], 1.0 / 3.0), ([2, 3], 0.5), ([1, 2], 0.5)] {
        let share = moved(&after);
        assert!((share - expected).abs() < 0.02, "{after:?}: {share}");
    }
}

#[test]
fn links_without_carrier_have_no_flows_unless_all_lack_it() {
    let members = hops(&[1, 2, 3]);
    let usable = |number: u32| {
        let all: Vec<u32> = (0..300).map(|port| flow_of(&inet(port))).collect();
        let is_usable = |hop: &NextHop| number == 0 || hop.number() == number;
        let chosen =
            all.iter().map(|&flow| member(&members, flow, false, is_usable).expect("one").number());
        chosen.collect::<std::collections::BTreeSet<u32>>()
    };
    assert_eq!(usable(2), [2].into());
    assert_eq!(usable(9), [1, 2, 3].into(), "all lack it");
    assert_eq!(usable(0), [1, 2, 3].into());
}

#[test]
fn flows_of_ipv6_have_labels_and_ports_behind_extension_headers() {
    let packet = |label: u8, port: u8, headers: &[u8], fragment: bool| {
        let mut bytes = vec![0u8; 54];
        bytes[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
        bytes[17] = label;
        let last = if fragment { 44 } else { 17 };
        bytes[20] = headers.first().copied().unwrap_or(last);
        for at in 0..headers.len() {
            let next = headers.get(at + 1).copied().unwrap_or(last);
            bytes.extend([next, 0, 0, 0, 0, 0, 0, 0]);
        }
        if fragment {
            bytes.extend([17, 0, 0, 1, 0, 0, 0, 9]);
        }
        bytes.extend([0, port, 0, 1, 0, 0, 0, 0]);
        flow_of(&bytes)
    };
    for headers in [&[][..], &[0], &[0, 60, 43]] {
        assert_ne!(packet(0, 1, headers, false), packet(0, 2, headers, false), "{headers:?}");
        assert_ne!(packet(0, 1, headers, false), packet(1, 1, headers, false), "{headers:?}");
    }
    assert_eq!(packet(1, 1, &[0], true), packet(1, 2, &[0], true));
    // A header that ends beyond the packet.
    let mut cut = vec![0u8; 54];
    cut[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
    (cut[20], cut[53]) = (0, 0);
    cut.extend([17, 255]);
    flow_of(&cut);
}
