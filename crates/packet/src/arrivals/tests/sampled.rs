//! A receiver that checks a sample.

use super::sample::{chosen, draw};
use super::*;

fn sampling(family: Family, size: u16) -> Expected {
    Expected { sampled: true, senders: 1, ..expected(family, size, FLOWS) }
}

/// Returns a receiver past the packets that are all checked, by repeating number 0.
fn after_the_first(expected: &Expected) -> Arrivals {
    let mut arrivals = arrivals(expected);
    let frame = packet(expected, 0, 0);
    (0..FIRST_CHECKED).for_each(|_| arrivals.take(&frame, frame.len(), 0));
    assert_eq!((arrivals.counts().checked, arrivals.counts().ours()), (65_536, 65_536));
    arrivals
}

fn flip(frame: &mut [u8], bit: usize) {
    frame[bit / 8] ^= 1 << (bit % 8);
}

#[test]
fn fault_in_each_of_the_first_packets_is_detected() {
    let expected = sampling(Family::Inet, 64);
    let mut arrivals = arrivals(&expected);
    for sequence in 0..FIRST_CHECKED as u32 {
        let mut frame = packet(&expected, 0, sequence);
        frame[22] ^= 1;
        arrivals.take(&frame, frame.len(), 0);
    }
    assert_eq!(arrivals.counts().faults[Fault::Ttl as usize], FIRST_CHECKED);
}

/// Three standard deviations on either side, with fixed seeds.
#[test]
fn sampled_damage_share_matches_true_share() {
    for (family, size) in KINDS {
        let expected = sampling(family, size);
        let mut arrivals = after_the_first(&expected);
        let before = *arrivals.counts();
        let (mut damaged, packets) = (0, 60_000);
        for sequence in 1..=packets {
            let mut frame = packet(&expected, 0, sequence);
            // Another run's numbers decide which packets are damaged.
            if (draw(99, u64::from(sequence)) >> 32).is_multiple_of(100) {
                damaged += 1;
                flip(&mut frame, 8 * expected::offsets(family).ttl);
            }
            arrivals.take(&frame, frame.len(), 0);
        }
        let counts = arrivals.counts();
        let checked = (counts.checked - before.checked) as f64;
        let found = counts.faults[Fault::Ttl as usize] as f64;
        let near = |found: f64, of: f64, share: f64| {
            (found - of * share).abs() < 3.0 * (of * share * (1.0 - share)).sqrt()
        };
        assert!(near(checked, f64::from(packets), 0.25), "{checked} checked");
        assert!(near(found, f64::from(damaged), 0.25), "{found} of {damaged} found");
        assert!(near(found, checked, 0.01), "{found} of {checked} checked");
        // Undetected damage counts as received, and nothing is counted twice.
        assert_eq!(counts.ours(), FIRST_CHECKED + u64::from(packets));
        assert_eq!(counts.total(), 1 + u64::from(packets) - found as u64);
        assert_eq!((counts.evident, counts.reordered), (0, [0; 4]));
    }
}

#[test]
fn fault_after_the_first_packets_is_detected() {
    let expected = sampling(Family::Inet6, 84);
    let mut arrivals = after_the_first(&expected);
    for sequence in 1..=400 {
        let mut frame = packet(&expected, 0, sequence);
        frame[0] ^= 2;
        arrivals.take(&frame, frame.len(), 0);
    }
    let found = arrivals.counts().faults[Fault::DestinationMac as usize];
    assert!((60..140).contains(&found), "{found} of 400");
}

#[test]
fn flipped_stamp_bits_are_detected_in_unsampled_packets() {
    for (family, size) in KINDS {
        let expected = sampling(family, size);
        let mut arrivals = after_the_first(&expected);
        let stamp = 8 * (expected::offsets(family).udp + 8);
        // The whole stamp except the time.
        let evident = stamp..stamp + 8 * 14;
        let (mut frames, mut sequence, mut unchosen) = (FIRST_CHECKED, 0, 0);
        for _ in 0..4 {
            // Excludes the payload, of which only part of the checked packets is checked.
            for bit in 0..stamp + 8 * 18 {
                sequence += 1;
                let intact = packet(&expected, 0, sequence);
                let mut frame = intact.clone();
                let is_chosen = chosen(RUN_ID, frames & !63) >> (frames & 63) & 1 == 1;
                frames += 2;
                flip(&mut frame, bit);
                let before = *arrivals.counts();
                arrivals.take(&frame, frame.len(), 0);
                let now = arrivals.counts();
                let found = now.damaged.iter().sum::<u64>() - before.damaged.iter().sum::<u64>();
                let must_be = is_chosen || evident.contains(&bit);
                assert_eq!(found == 1, must_be, "{family:?} {size}: bit {bit} of {frame:?}");
                assert_eq!(now.evident - before.evident, u64::from(must_be && !is_chosen));
                unchosen += u64::from(!is_chosen && evident.contains(&bit));
                arrivals.take(&intact, intact.len(), 0);
            }
        }
        let counts = arrivals.counts();
        assert!(unchosen > 200 && counts.evident == unchosen, "{unchosen}");
        assert_eq!((counts.foreign, counts.unstamped, counts.others), (0, 0, 0));
    }
}

#[test]
fn losses_duplicates_and_reordering_are_detected_in_all_packets() {
    let expected = sampling(Family::Inet, 64);
    let mut arrivals = after_the_first(&expected);
    let mut take = |sequence| arrivals.take(&packet(&expected, 0, sequence), 60, 0);
    for sequence in (1..30_001u32).filter(|sequence| sequence % 100 != 0) {
        match sequence % 1000 {
            // One packet of the same flow comes before it, and one comes twice.
            1 => take(sequence + 15),
            16 => take(sequence - 15),
            50 => (0..2).for_each(|_| take(sequence)),
            _ => take(sequence),
        }
    }
    let counts = arrivals.counts();
    assert_eq!(
        (counts.reordered[1], counts.duplicates[1] - FIRST_CHECKED + 1, counts.damaged),
        (30, 30, [0; 4])
    );
    assert_eq!(counts.total(), 1 + 30_000 - 300);
    assert!((7000..8000).contains(&(counts.checked - FIRST_CHECKED)), "{}", counts.checked);
    let flows = arrivals.flows().expect("followed");
    assert_eq!((flows.missing, flows.seen), (299, 15), "the last can't be seen");
}
