//! Several ways down a trie beside each other.
//!
//! A lookup ends after as many steps as its route is deep: the end of a loop that
//! no CPU predicts, and while it waits for memory nothing else is done. Taking a step
//! of each lookup in turn, and remembering in a word which go on, avoids both. (In a
//! list of lanes, where each is written would depend on what was found before; the
//! CPU then reads nothing ahead of such a write, and all is lost.)
//!
//! It pays for the many steps of a radix tree. Multi-bit tries have so few that the
//! CPU looks past the end of one lookup by itself: there it was measured to cost.

/// Lookups beside each other.
pub(crate) const LANES: usize = 16;

/// Asks `begins` for each of `count` lanes (at most [`LANES`]) whether there is a way
/// to go, then calls `step` for those in turn until it has answered `false` for each.
#[inline(always)]
pub(crate) fn in_turn(
    count: usize,
    mut begins: impl FnMut(usize) -> bool,
    mut step: impl FnMut(usize) -> bool,
) {
    let mut open = 0_u32;
    for lane in 0..count {
        open |= u32::from(begins(lane % LANES)) << lane;
    }
    while open != 0 {
        let mut left = open;
        while left != 0 {
            let lane = left.trailing_zeros() as usize % LANES;
            left &= left - 1;
            open ^= u32::from(!step(lane)) << lane;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_takes_its_own_number_of_steps() {
        for count in 0..=LANES {
            let wanted = |lane: usize| (lane * 7) % 5;
            let mut taken = [0; LANES];
            in_turn(
                count,
                |lane| wanted(lane) > 0,
                |lane| {
                    taken[lane] += 1;
                    taken[lane] < wanted(lane)
                },
            );
            for (lane, taken) in taken.into_iter().enumerate() {
                assert_eq!(taken, if lane < count { wanted(lane) } else { 0 });
            }
        }
    }
}
