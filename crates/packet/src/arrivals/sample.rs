//! Selection of the packets that a receiver checks if it does not check all.
//!
//! The stamp of every packet is read: run, phase, sender, flow, order. The rest (MACs, TTL, lengths
//! and fields of the headers, checksums, addresses, payload, sending time) is compared with the
//! sent values in the first [`FIRST_CHECKED`] packets of a run that a receiver, or one of its CPUs,
//! sees, and in one of [`CHECKED_ONE_IN`] after that. It is also checked whenever the stamp is not
//! the expected stamp of the next packet of its flow (this run's id, an existing sender and flow,
//! the phase of the packet before, the sender's newest round or the next one): a damaged stamp is
//! detected whether its packet was chosen or not. Only the sample detects a wrong sending time, and
//! a change that turns the stamp into another one that is due (the same flow's of the next round,
//! or another sender's): the other packet then shows as a duplicate.
//!
//! The choice is drawn from the number of earlier frames and the run's id, for 64 frames at a time
//! and before any of them arrives. It cannot depend on the content of a frame, so packets of every
//! flow, queue and kind of damage are chosen alike. Numbers are mixed as in hashes, because a
//! periodic choice could keep step with the flows.

/// Packets of a run, per CPU of the receiver, that are all checked before sampling begins.
pub const FIRST_CHECKED: u64 = 1 << 16;
/// Sampling rate after that: one in this number.
pub const CHECKED_ONE_IN: u64 = 4;
/// Packets of a run whose payload is checked from end to end before sampling begins.
pub const FIRST_IN_FULL: u64 = 1024;
/// Sampling of later packets: if packets have payload after the stamp, one in this number of the
/// checked ones is checked from end to end.
pub const PAYLOAD_ONE_IN: u64 = 64;

/// Returns a random number for the `n`th item of a run.
#[inline]
pub fn draw(run_id: u32, n: u64) -> u64 {
    let x = (u64::from(run_id) << 32 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    // With one round fewer, consecutive numbers above 2^39 have equal halves.
    let x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 32
}

/// Returns which of the 64 frames from the nth on are checked, the first in the lowest bit. Each
/// bit of both numbers is random; one in four is set in both.
#[inline]
pub fn chosen(run_id: u32, n: u64) -> u64 {
    draw(run_id, !(n >> 5)) & draw(run_id, !(n >> 5) - 1)
}

/// True if the whole payload of the nth frame is checked, if the frame is checked.
#[inline]
pub fn is_whole(run_id: u32, n: u64) -> bool {
    draw(run_id, n) >> (64 - PAYLOAD_ONE_IN.trailing_zeros()) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Flows, queues and senders take turns; bursts and time are runs of neighbours. The choice
        /// favours none of them. Six standard deviations.
        #[test]
        fn choice_is_independent_of_flow_queue_and_time(
            run_id: u32,
            turns in prop_oneof![1..5000u64, (0..24u32).prop_map(|bits| 1 << bits)],
            turn: u64,
            begin in 0..1u64 << 40,
            payload: bool,
        ) {
            const DRAWN: u64 = 50_000;
            let is_chosen = |n| {
                let n = begin + turn % turns + n;
                let is_checked = chosen(run_id, n & !63) >> (n & 63) & 1 == 1;
                is_checked && (!payload || is_whole(run_id, n))
            };
            let many = CHECKED_ONE_IN * if payload { PAYLOAD_ONE_IN } else { 1 };
            let chance = 1.0 / many as f64;
            let near = |found: usize, chance: f64| {
                let n = DRAWN as f64;
                (found as f64 - n * chance).abs() < 6.0 * (n * chance * (1.0 - chance)).sqrt()
            };
            let chosen: Vec<bool> = (0..DRAWN).map(|n| is_chosen(n * turns)).collect();
            let found = chosen.iter().filter(|&&chosen| chosen).count();
            prop_assert!(near(found, chance), "{found} of one in {turns}");
            // The choice of one packet is independent of the next one of its flow, or of all.
            for ahead in [1, turns] {
                let next = (0..DRAWN).map(|n| is_chosen(n * turns + ahead));
                let pairs = chosen.iter().zip(next).filter(|&(&one, next)| one && next).count();
                prop_assert!(near(pairs, chance * chance), "{pairs} and the one {ahead} after it");
            }
        }
    }

    /// Input on which the property above once failed: 3967 of both, 3125 expected.
    #[test]
    fn halves_of_a_number_are_independent() {
        const BEGIN: u64 = 1_005_869_629_437 + 4;
        let is_chosen = |n: u64| chosen(0, (BEGIN + n) & !63) >> ((BEGIN + n) & 63) & 1 == 1;
        let pairs = (0..50_000).filter(|n| is_chosen(n * 32) && is_chosen(n * 32 + 32)).count();
        assert!((pairs as f64 - 3125.0).abs() < 6.0 * (3125.0_f64 * 15.0 / 16.0).sqrt(), "{pairs}");
    }
}
