//! Forecast of the rest of a search: the search continues on devices that are simulated from its
//! trials so far. Devices differ in the trials that they need by a factor of ten, above all by the
//! width of the border between loads with and without loss; so an estimate needs some trials first.

use crate::controller::{Search, Step};
use crate::estimate;
use crate::simulated::Random;
use crate::trial::{Measured, Outcome, Output, Trial};
use crate::trials::Trials;

/// Number of simulated searches; the median is used.
const SEARCHES: u64 = 7;
/// Trials nearest to a load that represent it.
const NEAREST: usize = 6;
/// Loss ratio above which a trial shows the capacity, and not only that packets are lost.
const OVERLOADED: f64 = 0.01;

/// Traffic of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Effective duration of the valid trials so far, in nanoseconds.
    pub done_ns: u64,
    /// Expected duration of the remaining trials, in nanoseconds.
    pub left_ns: u64,
}

impl Forecast {
    /// Returns the remaining traffic over the traffic so far.
    pub fn ratio(&self) -> f64 {
        self.left_ns as f64 / self.done_ns.max(1) as f64
    }
}

impl Search {
    /// Forecasts the rest of the search; `None` before the first valid trial. Deterministic.
    pub fn forecast(&self) -> Option<Forecast> {
        let (trials, done_ns) = self.valid_trials();
        let device = Replica::of(trials)?;
        let mut lefts: Vec<u64> =
            (1..=SEARCHES).map(|seed| continued(self, &device, seed)).collect();
        lefts.sort_unstable();
        Some(Forecast { done_ns, left_ns: lefts[lefts.len() / 2] })
    }
}

/// Continues a copy of the search; returns the duration of its further trials.
fn continued(search: &Search, device: &Replica, seed: u64) -> u64 {
    let (mut search, mut random, mut left_ns) = (search.clone(), Random::new(seed), 0_u64);
    while let Step::Measure(trial) = search.next() {
        let output = device.measure(trial, &mut random);
        left_ns = left_ns.saturating_add(output.effective_ns);
        search.record(Outcome::Valid(output));
    }
    left_ns
}

/// A device that behaves as in trials of the real one.
struct Replica {
    /// Trials by load.
    trials: Vec<Measured>,
    /// Capacity in frames per second, as far as it is known.
    capacity: f64,
}

impl Replica {
    /// Creates the device; `None` without trials.
    fn of(trials: &Trials) -> Option<Replica> {
        let width = trials.goals().iter().map(|goal| goal.width).fold(f64::INFINITY, f64::min);
        let highest = trials.loads().last()?.0 as f64;
        let rate = estimate::capacity(trials, width).map(|found| found.rate);
        let mut by_load = trials.all().to_vec();
        by_load.sort_by_key(|measured| measured.trial.load);
        Some(Replica { trials: by_load, capacity: rate.unwrap_or(highest) })
    }

    fn measure(&self, trial: Trial, random: &mut Random) -> Output {
        let similar = self.near(trial.load);
        let at = (random.uniform() * similar.len() as f64) as usize;
        let loss_ratio = similar.get(at).map_or(0.0, |one| self.loss(one, trial.load as f64));
        Output { loss_ratio: loss_ratio.clamp(0.0, 1.0), effective_ns: trial.duration_ns }
    }

    /// Returns the trials nearest to a load.
    fn near(&self, load: u64) -> &[Measured] {
        let distance = |at: usize| self.trials[at].trial.load.abs_diff(load);
        let after = self.trials.partition_point(|measured| measured.trial.load < load);
        let (mut first, mut end) = (after, after);
        while end - first < NEAREST.min(self.trials.len()) {
            let is_below =
                first > 0 && (end == self.trials.len() || distance(first - 1) <= distance(end));
            if is_below {
                first -= 1;
            } else {
                end += 1;
            }
        }
        &self.trials[first..end]
    }

    /// Returns the loss at a load if the device behaves as in a trial at another load.
    fn loss(&self, like: &Measured, load: f64) -> f64 {
        let overload = |capacity: f64| (1.0 - capacity / load).max(0.0);
        let (seen, ratio) = (like.trial.load as f64, like.output.loss_ratio);
        match ratio {
            ratio if ratio >= OVERLOADED => overload(like.forwarding_rate()),
            // A trial without loss shows only that the capacity is higher.
            0.0 => overload(self.capacity.max(seen)),
            ratio => ratio.max(overload(self.capacity)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Device, Law};
    use crate::{Goal, Limits};

    fn search() -> Search {
        let goals = ["ndr", "pdr"].map(|name| Goal::preset(name).expect("a preset")).to_vec();
        Search::new(goals, Limits::between(20_000, 2_000_000)).expect("a search")
    }

    /// Returns the medians over many devices: the forecasts after some trials, over the actual
    /// duration of the search.
    fn ratios<const N: usize>(law: Law, after: [usize; N]) -> [f64; N] {
        let mut all: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
        for seed in 0..60 {
            let (mut search, mut device) = (search(), Device::new(law, seed));
            let mut forecasts = Vec::new();
            while let Step::Measure(trial) = search.next() {
                search.record(device.measure(trial));
                let at = after.iter().position(|number| *number == device.trials);
                forecasts.extend(at.zip(search.forecast()));
            }
            let actual_ns = search.valid_trials().1 as f64;
            for (at, Forecast { done_ns, left_ns }) in forecasts {
                all[at].push((done_ns + left_ns) as f64 / actual_ns);
            }
        }
        all.map(|mut found| {
            found.sort_by(f64::total_cmp);
            found[found.len() / 2]
        })
    }

    #[test]
    fn forecast_is_near_the_duration_of_the_search() {
        let exact = Law::exact(1e6);
        for (name, law) in [
            ("shaper", Law { buffer_s: 0.007, ..exact }),
            ("noise", Law { sigma: 0.005, ..exact }),
            ("border of 5 %", Law { border: 0.05, ..exact }),
            ("border of 20 %", Law { border: 0.2, ..exact }),
        ] {
            let found = ratios(law, [10, 15, 25]);
            assert!(found.iter().all(|ratio| (0.77..1.3).contains(ratio)), "{name}: {found:?}");
        }
    }

    #[test]
    fn forecast_starts_with_the_first_trial_and_ends_at_zero() {
        let (mut search, mut device) = (search(), Device::new(Law::exact(1e6), 1));
        assert_eq!(search.forecast(), None);
        while let Step::Measure(trial) = search.next() {
            search.record(device.measure(trial));
            let forecast = search.forecast().expect("a forecast");
            assert_eq!(Some(forecast), search.forecast(), "it is deterministic");
        }
        let done_ns = search.valid_trials().1;
        assert_eq!(search.forecast(), Some(Forecast { done_ns, left_ns: 0 }));
    }
}
