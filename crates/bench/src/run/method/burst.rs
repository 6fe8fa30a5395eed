//! The longest burst that a device forwards without loss (RFC 2544, section 26.4; RFC 9004).

use super::{Kind, Trials, Wish};
use crate::error::BenchError;
use fwdlab_model::record::OwnTrial;
use fwdlab_search::{Longest, Trial as SearchTrial};

/// Duration of the longest burst in seconds, unless the file sets its length (RFC 2544, 26.4).
const LONGEST_S: f64 = 2.0;
/// Initial burst length: a driver's batch.
const FIRST: u64 = 64;
/// Maximum number of attempts at a burst while other work had the device's CPU.
const SPOILED: usize = 10;
/// Interval for checking whether a burst is sent, nanoseconds.
const LOOK_NS: u64 = 5_000_000;

impl Trials<'_, '_> {
    pub(super) fn bursts(
        &mut self,
        repeats: u32,
        max_frames: Option<u64>,
        own: &OwnTrial,
    ) -> Result<(), BenchError> {
        let fastest = own.offered_pps();
        let longest = max_frames.unwrap_or((LONGEST_S * fastest) as u64).max(1);
        (self.record.min_load, self.record.max_load) = (1, longest);
        let mut guess = FIRST;
        for _ in 0..repeats {
            let mut search = Longest::new(guess, longest);
            while let Some(frames) = search.next() {
                let Some(is_whole) = self.burst(frames, fastest)? else { return Ok(()) };
                search.record(frames, is_whole);
            }
            guess = search.found().map_or(guess, |found| found.frames.max(1));
        }
        Ok(())
    }

    /// Sends a burst until its result is due to the device; `None` if every attempt was spoiled, or
    /// the trial ids of the run are used up.
    fn burst(&mut self, frames: u64, fastest: f64) -> Result<Option<bool>, BenchError> {
        for _ in 0..SPOILED {
            if self.is_full() {
                return Ok(None);
            }
            let request = SearchTrial { load: fastest.round() as u64, duration_ns: LOOK_NS };
            let kind = Kind::Burst(frames);
            let wish = Wish { asked: request, kind, warmup_ns: 0, slice_ns: LOOK_NS };
            let trial = self.take(wish, |trials, wish| Ok(trials.observe(wish)?.0))?;
            let is_whole = trial.is_whole();
            self.report(is_whole.clone().err(), None);
            if let Ok(is_whole) = is_whole {
                return Ok(Some(is_whole));
            }
        }
        Ok(None)
    }
}
