//! Search for the longest burst without loss (RFC 2544, section 26.4; RFC 9004).
//!
//! A burst that arrives completely is a lower bound, any other an upper bound. From a first guess
//! the length is doubled or halved until both bounds exist. Then the interval is halved until its
//! ends are neighbours or within a thousandth.

use serde::{Deserialize, Serialize};

/// Relative distance below which two bounds count as equal.
const RESOLUTION: f64 = 0.001;

/// A running search for the longest burst.
#[derive(Clone, Debug)]
pub struct Longest {
    guess: u64,
    most: u64,
    /// The longest burst so far that arrived completely; 0 before the first.
    whole: u64,
    /// The shortest burst that did not.
    lossy: Option<u64>,
}

/// The longest burst that arrived completely, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Length of the burst; 0 if no frame was ever received.
    pub frames: u64,
    /// True if no longer burst was tried: the device may take more.
    pub is_most: bool,
}

impl Longest {
    /// Searches bursts of up to `most` frames, beginning with `guess`.
    pub fn new(guess: u64, most: u64) -> Longest {
        let most = most.max(1);
        Longest { guess: guess.clamp(1, most), most, whole: 0, lossy: None }
    }

    /// Returns the next length to try, in frames; `None` when the search is finished.
    pub fn next(&self) -> Option<u64> {
        match (self.whole, self.lossy) {
            (0, None) => Some(self.guess),
            (whole, None) if whole >= self.most => None,
            (whole, None) => Some(whole.saturating_mul(2).min(self.most)),
            (0, Some(1)) => None,
            (0, Some(lossy)) => Some(lossy / 2),
            (whole, Some(lossy)) => {
                let width = lossy.saturating_sub(whole);
                let is_found = width <= 1 || (width as f64) < RESOLUTION * lossy as f64;
                (!is_found).then_some(whole + width / 2)
            }
        }
    }

    /// Records whether a burst of `frames` arrived completely.
    pub fn record(&mut self, frames: u64, is_whole: bool) {
        match is_whole {
            true => self.whole = self.whole.max(frames),
            false => self.lossy = Some(self.lossy.map_or(frames, |lossy| lossy.min(frames))),
        }
        // A device with varying buffer space may lose a burst that it took before: earlier
        // successes are then no longer valid.
        if self.lossy.is_some_and(|lossy| self.whole >= lossy) {
            self.whole = 0;
        }
    }

    /// Returns the result; `None` before the search is finished.
    pub fn found(&self) -> Option<Burst> {
        let is_over = self.next().is_none();
        is_over.then_some(Burst { frames: self.whole, is_most: self.lossy.is_none() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the number of tried bursts on a device that takes `room` frames, and the result.
    fn tried(guess: u64, most: u64, room: u64) -> (usize, Burst) {
        let mut search = Longest::new(guess, most);
        for tries in 0.. {
            let Some(frames) = search.next() else {
                return (tries, search.found().expect("it is over"));
            };
            assert!((1..=most).contains(&frames));
            search.record(frames, frames <= room);
        }
        unreachable!("it ends");
    }

    #[test]
    fn search_is_exact_and_faster_with_a_better_guess() {
        assert_eq!(tried(64, 100_000, 330), (12, Burst { frames: 330, is_most: false }));
        assert_eq!(tried(330, 100_000, 330).1.frames, 330);
        assert_eq!(tried(64, 100_000, 0), (7, Burst { frames: 0, is_most: false }));
        assert_eq!(tried(64, 1000, 5000), (5, Burst { frames: 1000, is_most: true }));
    }

    proptest! {
        #[test]
        fn result_is_within_resolution_of_the_room(guess in 1_u64..100_000, most in 1_u64..1_000_000,
                                     room in 0_u64..1_000_000) {
            let (tries, found) = tried(guess, most, room);
            let truth = room.min(most);
            prop_assert!(found.frames <= truth);
            prop_assert!((truth - found.frames) as f64 <= RESOLUTION * truth as f64 + 1.0);
            prop_assert_eq!(found.is_most, room >= most);
            prop_assert!(tries <= 45, "{}", tries);
        }

        #[test]
        fn search_ends_on_an_erratic_device(seed: u64, most in 1_u64..100_000) {
            let mut search = Longest::new(64, most);
            let mut state = seed | 1;
            let mut tries = 0;
            while let Some(frames) = search.next() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                search.record(frames, state >> 63 == 0);
                tries += 1;
                prop_assert!(tries <= 300);
            }
            prop_assert!(search.found().is_some());
        }
    }
}
