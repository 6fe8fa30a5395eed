//! Limits of a search.

use crate::fault::Fault;
use crate::goal::Goal;

/// Limits of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Min Load: the minimum load of a trial, in frames per second of one interface.
    pub min_load: u64,
    /// Max Load: the maximum load of a trial.
    pub max_load: u64,
    /// Maximum load that the link carries; `None` if unknown.
    pub link: Option<u64>,
    /// Maximum number of trials.
    pub trials: usize,
    /// Maximum sum of effective durations.
    pub time_ns: u64,
    /// Consecutive invalid trials after which the search gives up; before the first valid one, at
    /// most [`INVALID_AT_START`].
    pub invalid: usize,
}

/// Default maximum number of consecutive invalid trials.
pub const INVALID_MAX: usize = 3;

/// Invalid trials after which a search without a valid one gives up: it would measure the
/// instrument.
pub const INVALID_AT_START: usize = 10;

/// Share of the line rate by which a search may fall short and still end at it: as much as a sender
/// may leave unsent.
const SHORT_OF_LINE: f64 = 0.005;

impl Limits {
    /// Creates limits from `min_load` to `max_load`, with more trials and time than any sensible
    /// search needs.
    pub fn between(min_load: u64, max_load: u64) -> Limits {
        Limits {
            min_load,
            max_load,
            link: None,
            trials: 2_000,
            time_ns: 86_400 * 1_000_000_000,
            invalid: INVALID_MAX,
        }
    }

    /// True if the maximum load is what the link carries: there is no higher one to try.
    pub fn end_at_line(&self) -> bool {
        let is_all = |link: u64| self.max_load as f64 >= (1.0 - SHORT_OF_LINE) * link as f64;
        self.link.is_some_and(is_all)
    }

    pub(crate) fn faults(&self, goals: &[Goal]) -> Vec<Fault> {
        let (min, max) = (self.min_load, self.max_load);
        let mut faults = Vec::new();
        if min == 0 {
            faults.push(Fault::Loads("a least load of 0: nothing can be lost of nothing".into()));
        }
        if min >= max {
            faults.push(Fault::Loads(format!(
                "a least load ({min} frames/s) that is not below the greatest ({max} frames/s)"
            )));
        }
        if let Some(link) = self.link.filter(|link| max > *link) {
            faults.push(Fault::Loads(format!(
                "a greatest load ({max} frames/s) above what the link carries ({link} frames/s)"
            )));
        }
        for goal in goals {
            let frames = min as f64 * goal.initial_ns as f64 / 1e9;
            if frames < 1.0 && goal.initial_ns > 0 && min > 0 {
                let name = goal.name.clone();
                let what = format!(
                    "at the least load ({min} frames/s) its shortest trial ({} ns) sends no frame",
                    goal.initial_ns
                );
                faults.push(Fault::Goal { goal: name, what });
            }
            let step = min as f64 * goal.width;
            if step < 1.0 && goal.width > 0.0 && min > 0 {
                let name = goal.name.clone();
                let least = (1.0 / goal.width).ceil();
                let what = format!(
                    "a width of {} of the least load ({min} frames/s) is less than a frame a \
                     second: begin at {least} frames/s",
                    goal.width
                );
                faults.push(Fault::Goal { goal: name, what });
            }
        }
        if self.trials == 0 || self.time_ns == 0 || self.invalid == 0 {
            faults.push(Fault::Limits("no trials, or no time, are allowed".into()));
        }
        faults
    }
}
