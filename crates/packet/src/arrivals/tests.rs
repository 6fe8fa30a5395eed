//! Frames as a router forwards them, and all faults.

use super::*;
use crate::Flows;
use crate::address::Family;
use crate::checksum;
use crate::size::FrameSize;
use crate::stream::Stream;
use crate::template::Template;

mod sampled;
mod translated;

const RUN_ID: u32 = 0x1234_5678;
const FROM: [u8; 6] = [2, 0, 0, 0, 0, 3];
const TO: [u8; 6] = [2, 0, 0, 0, 0, 4];
const FLOWS: Flows = Flows { sources: 3, destinations: 5 };

fn expected(family: Family, size: impl Into<FrameSize>, flows: Flows) -> Expected {
    Expected {
        template: Template::new(&Stream::new(family, size, flows), RUN_ID, [2; 6], [4; 6]),
        destination_mac: Some(TO),
        source_mac: Some(FROM),
        translated: None,
        hops: 1,
        senders: 2,
        timestamps: false,
        same_clock: false,
        sampled: false,
    }
}

fn arrivals(expected: &Expected) -> Arrivals {
    let flows = expected.template.flows().count();
    Arrivals::new(expected, Routes::Everywhere { flows, senders: expected.senders })
}

/// Returns the packet with this sequence number as a router forwards it.
fn packet(expected: &Expected, sender: u8, sequence: u32) -> Vec<u8> {
    stamped(
        expected,
        &Stamp {
            run_id: expected.template.run_id(),
            sender,
            phase: 1,
            flow: sequence % expected.template.flows().count(),
            sequence,
            time_ns: 0,
        },
    )
}

fn stamped(expected: &Expected, stamp: &Stamp) -> Vec<u8> {
    let template = &expected.template;
    let destinations = template.flows().destinations;
    let mut frame = template.frame(stamp.flow / destinations, stamp.flow % destinations, stamp);
    frame[0..6].copy_from_slice(&TO);
    frame[6..12].copy_from_slice(&FROM);
    match template.family() {
        Family::Inet => {
            frame[22] -= expected.hops;
            frame[24..26].fill(0);
            let check = checksum::finish(checksum::add(0, &frame[14..34]));
            frame[24..26].copy_from_slice(&check);
        }
        Family::Inet6 => frame[21] -= expected.hops,
    }
    frame
}

const KINDS: [(Family, u16); 4] =
    [(Family::Inet, 64), (Family::Inet, 300), (Family::Inet6, 84), (Family::Inet6, 301)];

#[test]
fn delay_differences_are_of_consecutive_packets_of_a_flow() {
    let flows = Flows { sources: 1, destinations: 3 };
    let expected =
        Expected { timestamps: true, same_clock: true, ..expected(Family::Inet, 64, flows) };
    let mut arrivals = arrivals(&expected);
    let delays = [
        [Some(100), Some(200), Some(300)],
        [Some(150), None, Some(290)],
        [Some(150), Some(900), Some(10)],
    ];
    for (sequence, delay) in (0..).zip(delays.into_iter().flatten()) {
        let Some(delay) = delay else { continue };
        let time_ns = 1_000_000 + 10_000 * sequence;
        let (run_id, flow) = (RUN_ID, sequence % 3);
        let stamp = Stamp { run_id, sender: 0, phase: 1, flow, sequence, time_ns };
        let frame = stamped(&expected, &stamp);
        // A duplicate has no delay, and so no difference.
        for _ in 0..2 {
            arrivals.take(&frame, frame.len(), time_ns + delay);
        }
    }
    assert_eq!(arrivals.counts().duplicates, [0, 8, 0, 0]);
    let found = arrivals.delays().expect("times of one clock");
    let differences = found.differences().expect("looked at");
    // The first flow has 50 and 0, the second none, the third 10 and 280.
    assert_eq!((differences.packets(), differences.sum_ns()), (4, 340));
    assert_eq!(differences.range_ns(), Some((0, 280)));
    assert_eq!((found.packets(), found.range_ns()), (8, Some((10, 900))));
}

#[test]
fn forwarded_packets_are_intact() {
    for (family, size) in KINDS {
        let expected = expected(family, size, FLOWS);
        let mut arrivals = arrivals(&expected);
        for sequence in 0..3000 {
            for sender in 0..2 {
                let frame = packet(&expected, sender, sequence);
                arrivals.take(&frame, frame.len(), 0);
            }
        }
        let length = u64::from(size) - 4;
        let in_full = arrivals.counts().in_full;
        let clean = Received {
            packets: [0, 6000, 0, 0],
            bytes: [0, 6000 * length, 0, 0],
            in_full,
            checked: 6000,
            ..Received::default()
        };
        assert_eq!(*arrivals.counts(), clean, "{family:?} {size}");
        match expected.template.bytes().len() {
            60 | 80 => assert_eq!(in_full, 6000),
            _ => assert!((1024 + 40..1024 + 115).contains(&in_full), "{in_full}"),
        }
        let flows = arrivals.flows().expect("followed");
        assert_eq!((flows.flows, flows.sent, flows.seen, flows.with_loss), (15, 15, 15, 0));
        assert!(!flows.lacks_flows());
    }
}

#[test]
fn flipped_bits_are_detected_and_stay_in_this_run() {
    for (family, size) in KINDS {
        let expected = expected(family, size, FLOWS);
        let mut arrivals = arrivals(&expected).looking_at_all();
        let frame = packet(&expected, 1, 7);
        for bit in 0..8 * frame.len() {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            arrivals.take(&flipped, flipped.len(), 0);
            let found: u64 = arrivals.counts().faults.iter().sum();
            assert_eq!(found, bit as u64 + 1, "{family:?} {size}: bit {bit} of {flipped:?}");
        }
        let counts = arrivals.counts();
        assert_eq!(counts.damaged.iter().sum::<u64>(), 8 * frame.len() as u64);
        assert_eq!((counts.total(), counts.foreign, counts.unstamped, counts.others), (0, 0, 0, 0));
        assert_eq!(counts.faults[Fault::DestinationMac as usize], 48);
        assert_eq!(counts.faults[Fault::SourceMac as usize], 48);
        assert_eq!(counts.faults[Fault::Ttl as usize], 8);
    }
}

#[test]
fn mix_packets_are_checked_for_their_lengths() {
    let mix = FrameSize::parse("genome:abgf").expect("letters").at_least(84);
    for family in [Family::Inet, Family::Inet6] {
        let expected = expected(family, mix, FLOWS);
        let mut arrivals = arrivals(&expected).looking_at_all();
        let mut bytes = 0;
        for sequence in 0..300 {
            let frame = packet(&expected, 0, sequence);
            bytes += frame.len() as u64;
            arrivals.take(&frame, frame.len(), 0);
        }
        let counts = *arrivals.counts();
        assert_eq!((counts.total(), counts.bytes[1]), (300, bytes), "{counts:?}");

        // An intact frame with another packet's size does not belong to this run.
        let turns = expected.template.size_turns();
        let mut other = expected.clone();
        let size = turns.size(&mix, 300);
        let sizes = mix.sizes().iter().copied().filter(|&other| other != size);
        for (other_size, found) in sizes.zip(1..) {
            other.template =
                Template::new(&Stream::new(family, other_size, FLOWS), RUN_ID, [2; 6], [4; 6]);
            let frame = packet(&other, 0, 300);
            arrivals.take(&frame, frame.len(), 0);
            assert_eq!(arrivals.counts().faults[Fault::Length as usize], found, "{other_size}");
        }

        // A flipped bit is attributed to its field, even if it changes the sequence number to one
        // that requires a different length.
        for sequence in 301..305 {
            let frame = packet(&expected, 0, sequence);
            let stamp = if family == Family::Inet { 42 } else { 62 };
            for bit in 0..8 * frame.len() {
                let mut flipped = frame.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let before = *arrivals.counts();
                arrivals.take(&flipped, flipped.len(), 0);
                let after = arrivals.counts();
                let found: u64 = after.faults.iter().sum();
                assert_eq!(found, before.faults.iter().sum::<u64>() + 1, "bit {bit}");
                if (stamp + 10..stamp + 14).contains(&(bit / 8)) {
                    let length = Fault::Length as usize;
                    assert_eq!(after.faults[length], before.faults[length], "bit {bit}");
                }
            }
        }
    }
}

#[test]
fn other_runs_are_foreign_and_other_frames_unstamped() {
    for (family, size) in KINDS {
        let ours = expected(family, size, FLOWS);
        let other = |size| {
            let mut other = expected(family, size, FLOWS);
            let to = other.template.clone();
            other.template =
                Template::new(&Stream::new(family, size, to.flows()), 99, [2; 6], [4; 6]);
            packet(&other, 0, 3)
        };
        let mut arrivals = arrivals(&ours).looking_at_all();
        for size in [size, 500] {
            let frame = other(size);
            arrivals.take(&frame, frame.len(), 0);
        }
        assert_eq!(arrivals.counts().foreign, 2, "{family:?} {size}");
        // Another run's identity with a wrong checksum, between this run's addresses.
        let mut frame = other(size);
        let last = frame.len() - 1;
        frame[last] ^= 0xff;
        arrivals.take(&frame, frame.len(), 0);
        assert_eq!(arrivals.counts().faults[Fault::Stamp as usize], 1, "{family:?} {size}");
        // No stamp, but a right checksum.
        let mut frame = packet(&ours, 0, 3);
        let stamp = expected::offsets(family).udp + 8;
        let check = stamp - 2;
        frame[stamp..stamp + 18].rotate_left(2);
        arrivals.take(&frame, frame.len(), 0);
        assert_eq!(arrivals.counts().unstamped, 1, "{family:?} {size}");
        frame[check] ^= 1;
        arrivals.take(&frame, frame.len(), 0);
        assert_eq!(arrivals.counts().faults[Fault::Stamp as usize], 2, "{family:?} {size}");
        // ARP, neighbour discovery, a short frame.
        let mut arp = vec![0xff; 42];
        arp[12..14].copy_from_slice(&[8, 6]);
        let mut solicitation = packet(&expected(Family::Inet6, 84, FLOWS), 0, 0);
        solicitation[20] = 58;
        solicitation[62..].fill(0);
        for frame in [arp, solicitation, vec![0; 14]] {
            arrivals.take(&frame, frame.len(), 0);
        }
        assert_eq!(arrivals.counts().others, 3, "{family:?} {size}");
        assert_eq!(arrivals.counts().unstamped, 1, "{family:?} {size}");
    }
}

#[test]
fn duplicates_and_late_packets_are_distinguished_per_flow() {
    for flows in [1, 15, 5000] {
        let range = Flows { sources: 1, destinations: flows };
        let expected = expected(Family::Inet, 64, range);
        let mut arrivals = arrivals(&expected);
        let mut take = |sequence: u32| {
            let frame = packet(&expected, 0, sequence);
            let before = *arrivals.counts();
            arrivals.take(&frame, frame.len(), 0);
            let now = arrivals.counts();
            assert_eq!(now.faults, [0; FAULTS], "{sequence} of {flows}");
            (
                now.packets[1] - before.packets[1],
                now.reordered[1] - before.reordered[1],
                now.duplicates[1] - before.duplicates[1],
            )
        };
        let (next, late, again) = ((1, 0, 0), (1, 1, 0), (0, 0, 1));
        assert_eq!(take(0), next);
        assert_eq!(take(0), again);
        assert_eq!(take(3 * flows), next, "two lost");
        assert_eq!(take(flows), late);
        assert_eq!(take(flows), again);
        assert_eq!(take(3 * flows), again);
        // Each flow has its own order.
        if flows > 1 {
            assert_eq!(take(1), next);
            assert_eq!(take(2 * flows + 1), next);
        }
        // Far beyond the remembered range: certainly late, and new as far as is known.
        assert_eq!(take(2_000 * 1024), next);
        assert_eq!(take(2 * flows), late);
    }
}

#[test]
fn last_65536_packets_are_remembered_for_any_number_of_flows() {
    for flows in [1, 15, 1024, 3000] {
        let expected = expected(Family::Inet, 64, Flows { sources: 1, destinations: flows });
        let mut arrivals = arrivals(&expected);
        let all: Vec<u32> = (0..70_000).collect();
        for &sequence in &all {
            let frame = packet(&expected, 0, sequence);
            arrivals.take(&frame, 60, 0);
        }
        for &sequence in &all[70_000 - 60 * 1024..] {
            let frame = packet(&expected, 0, sequence);
            arrivals.take(&frame, 60, 0);
        }
        assert_eq!(arrivals.counts().duplicates, [0, 60 * 1024, 0, 0], "{flows} flows");
        assert_eq!(arrivals.counts().packets, [0, 70_000, 0, 0], "{flows} flows");
    }
}

#[test]
fn sequence_wraps_after_four_billion_packets() {
    // Not a divisor of 2^32: the first round after the wrap begins at another flow.
    let expected = expected(Family::Inet, 64, FLOWS);
    let mut arrivals = arrivals(&expected);
    let mut at = 0u64;
    let mut processed = 0;
    while at < (1 << 32) + 100_000 {
        let stamp = Stamp {
            run_id: RUN_ID,
            sender: 0,
            phase: 1,
            flow: (at % 15) as u32,
            sequence: at as u32,
            time_ns: 0,
        };
        arrivals.take(&stamped(&expected, &stamp), 60, 0);
        processed += 1;
        // Quickly to just before the wrap, in steps that a loss could cause.
        at += if at < (1 << 32) - 30_000_000 { 15_000_001 } else { 10_007 };
    }
    assert_eq!(arrivals.counts().packets[1], processed);
    assert_eq!(arrivals.counts().faults, [0; FAULTS]);
}

#[test]
fn distant_sequence_needs_a_second_packet() {
    let expected = expected(Family::Inet, 64, Flows { sources: 1, destinations: 1 });
    let mut arrivals = arrivals(&expected);
    for sequence in [0, 1, 1 << 30, 2, 3, 1 << 30, (1 << 30) + 5, (1 << 30) + 6] {
        arrivals.take(&packet(&expected, 0, sequence), 60, 0);
    }
    assert_eq!(arrivals.counts().faults[Fault::Sequence as usize], 2);
    assert_eq!(arrivals.counts().packets[1], 6);
    assert_eq!(arrivals.counts().reordered[1], 0);
}

#[test]
fn losses_are_counted_per_flow() {
    let expected = expected(Family::Inet, 64, FLOWS);
    let mut arrivals = arrivals(&expected);
    for sequence in 0..1500u32 {
        let flow = sequence % 15;
        let lost = flow == 3 || flow == 4 && sequence >= 750 || sequence == 20;
        if !lost {
            arrivals.take(&packet(&expected, 0, sequence), 60, 0);
        }
    }
    let flows = arrivals.flows().expect("followed");
    assert_eq!((flows.sent, flows.seen, flows.with_loss, flows.missing), (15, 14, 3, 151));
    let worst = flows.worst.expect("a flow");
    assert_eq!((worst.flow, worst.sent, worst.arrived), (3, 100, 0));
    assert!(flows.lacks_flows(), "{flows:?}");
}

#[test]
fn flows_unseen_by_chance_are_not_missing() {
    // 95 of 100 lost at random: of 15 flows with 10 packets each some are never seen.
    let expected = expected(Family::Inet, 64, FLOWS);
    let mut arrivals = arrivals(&expected);
    for sequence in (0..150u32).filter(|sequence| sequence * 7919 % 100 < 5) {
        arrivals.take(&packet(&expected, 0, sequence), 60, 0);
    }
    let flows = arrivals.flows().expect("followed");
    assert!(flows.seen < 12 && !flows.lacks_flows(), "{flows:?}");
}

#[test]
fn impossible_sending_time_is_a_fault() {
    let second = 1_000_000_000u32;
    for same_clock in [false, true] {
        let timestamps = true;
        let expected = Expected { timestamps, same_clock, ..expected(Family::Inet, 64, FLOWS) };
        let mut arrivals = arrivals(&expected);
        let mut wrong = |sequence: u32, time_ns: u32, now_ns: u32| {
            let flow = sequence % 15;
            let stamp = Stamp { run_id: RUN_ID, sender: 0, phase: 1, flow, sequence, time_ns };
            let before = arrivals.counts().faults[Fault::Time as usize];
            arrivals.take(&stamped(&expected, &stamp), 60, now_ns);
            arrivals.counts().faults[Fault::Time as usize] > before
        };
        let begin = 2 * second + second / 2;
        assert!(!wrong(0, begin, begin + 9));
        assert!(!wrong(1, begin, begin + 9), "the same batch");
        assert!(wrong(2, 2 * second, begin + 9), "before the one sent earlier");
        assert!(!wrong(3, 3 * second, 3 * second + 9));
        assert!(!wrong(4, 3 * second + 10, 3 * second + 9000));
        // Only a receiver with the same clock can detect it.
        assert_eq!(wrong(5, 3 * second + 9100, 3 * second + 9000), same_clock, "of the future");
        // Neither a wrapped clock nor a silence is a clock that goes back.
        assert!(!wrong(6, u32::MAX - 5, u32::MAX - 4) && !wrong(7, 3, 20));
        assert!(!wrong(8, 3 * second + second / 2, 3 * second + second / 2 + 40));
        let old = (3 * second + second / 2).wrapping_add(3_100_000_000);
        assert_eq!(wrong(9, 3 * second + second / 2 + 1, old), same_clock, "of long ago");
    }
}
