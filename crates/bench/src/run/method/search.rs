//! Searches for the rates at which loss stays within the tolerance of each goal (RFC 9971).

use super::{Trials, Wish, greatest_load, surely};
use crate::error::BenchError;
use fwdlab_model::design::SearchMethod;
use fwdlab_model::record::{MethodTrial, OwnTrial, tolerated};
use fwdlab_model::units::format_pps;
use fwdlab_search::{Ending, Goal, Limits, Outcome, Search, Step, Trial};

/// Minimum load of a search, as a share of the maximum load.
const BELOW: f64 = 0.01;

/// Upper limit of consecutive invalid trials after which a search, or the timing of a share, gives
/// up: on a machine with shared CPUs, four of five may be invalid.
pub(super) const INVALID_IN_A_ROW: usize = 30;
/// Lower limit of these.
const INVALID_AT_LEAST: usize = 5;
/// Time that consecutive invalid trials may take before a search gives up, nanoseconds.
const INVALID_NS: u64 = 12_000_000_000;

/// Number of consecutive invalid trials after which a search with trials of up to `trial_ns` gives
/// up.
fn invalid_in_a_row(trial_ns: u64) -> usize {
    let trials = usize::try_from(INVALID_NS / trial_ns.max(1)).unwrap_or(usize::MAX);
    trials.clamp(INVALID_AT_LEAST, INVALID_IN_A_ROW)
}

/// Maximum load at which a search can show that a device forwards next to nothing: well above
/// `least`, the lowest load that the goals can distinguish, as far as the sender can offer it.
fn load_for_slow_device(least: u64, own: &OwnTrial, link: Option<u64>) -> u64 {
    (least as f64 / BELOW).min(surely(own, link)) as u64
}

impl Trials<'_, '_> {
    pub(super) fn search(
        &mut self,
        method: &SearchMethod,
        own: &OwnTrial,
    ) -> Result<(), BenchError> {
        self.search_by(method, own, Trials::steady, |trials, wish| Ok(trials.observe(wish)?.0))
    }

    /// Runs a search that requests trials by `wish` and carries them out by `measure`.
    pub(super) fn search_by(
        &mut self,
        method: &SearchMethod,
        own: &OwnTrial,
        wish: impl Fn(&Self, Trial) -> Wish,
        mut measure: impl FnMut(&mut Self, Wish) -> Result<MethodTrial, BenchError>,
    ) -> Result<(), BenchError> {
        let directions = self.directions();
        let least = method.goals.iter().map(Goal::least_load).max().unwrap_or(1);
        let (link, found) = (self.link, greatest_load(own, self.link));
        let max_load =
            self.up_to(method.max_load, found.max(load_for_slow_device(least, own, link)));
        let derived = ((max_load as f64 * BELOW) as u64).max(least);
        let min_load = method.min_load.map_or(derived, |load| load * directions);
        let limits = Limits {
            link,
            trials: method.max_trials as usize,
            time_ns: method.max_time_ns,
            invalid: invalid_in_a_row(
                method.goals.iter().map(|goal| goal.final_ns).max().unwrap_or_default(),
            ),
            ..Limits::between(min_load, max_load)
        };
        (self.record.min_load, self.record.max_load) = (min_load, max_load);
        let mut search = Search::new(method.goals.clone(), limits).map_err(|faults| {
            let why: Vec<String> = faults.iter().map(ToString::to_string).collect();
            let line = match link == Some(max_load) {
                true => ", the links' line rate",
                false => "",
            };
            BenchError::Refused(format!(
                "no search between {} and {}{line}: {}\n  next step: name other `min_load` and `max_load` \
                 in [method], or goals with longer trials or a greater width",
                format_pps(min_load as f64),
                format_pps(max_load as f64),
                why.join("; ")
            ))
        })?;
        let tolerated = tolerated(&method.goals);
        while let Step::Measure(trial) = search.next() {
            if self.is_full() {
                search.end(Ending::Trials);
                break;
            }
            let trial = self.take(wish(self, trial), &mut measure)?;
            let outcome = trial.outcome(tolerated);
            let fault = match &outcome {
                Outcome::Valid(_) => None,
                Outcome::Invalid(why) => Some(why.clone()),
            };
            search.record(outcome);
            self.report(fault, Some(&search));
        }
        self.record.ended = search.ending().cloned();
        if let Some(given_up) = self.record.given_up() {
            self.observer.note(&format!("the search is given up: {given_up}"));
        }
        let found = search.result().goals.into_iter().next();
        self.throughput = found.and_then(|goal| goal.conditional_throughput);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_gives_up_after_twelve_seconds_of_invalid_trials() {
        let trials = [100_000_000, 500_000_000, 1_000_000_000, 60_000_000_000, 0];
        assert_eq!(trials.map(invalid_in_a_row), [30, 24, 12, 5, 30]);
    }
}
