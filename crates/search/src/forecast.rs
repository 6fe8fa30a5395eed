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
/// Highest load without any loss, as a share of the lowest tried load, if trials there lose packets.
const LOSSLESS: f64 = 0.9;

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
    /// Trials with loss, by load.
    lossy: Vec<Measured>,
    /// Share of trials with loss at each tried load, ascending in both.
    shares: Vec<(f64, f64)>,
    /// Capacity in frames per second, as far as it is known.
    capacity: f64,
}

impl Replica {
    /// Creates the device; `None` without trials.
    fn of(trials: &Trials) -> Option<Replica> {
        let width = trials.goals().iter().map(|goal| goal.width).fold(f64::INFINITY, f64::min);
        let highest = trials.loads().last()?.0 as f64;
        let rate = estimate::capacity(trials, width).map(|found| found.rate);
        let by_load = trials.loads().flat_map(|(_, at)| at.iter().copied());
        let lossy = by_load.filter(|measured| measured.output.loss_ratio > 0.0).collect();
        Some(Replica { lossy, shares: shares(trials), capacity: rate.unwrap_or(highest) })
    }

    fn measure(&self, trial: Trial, random: &mut Random) -> Output {
        let load = trial.load as f64;
        let is_lossy = random.uniform() < self.share(load);
        let similar = self.near(trial.load);
        let at = (random.uniform() * similar.len() as f64) as usize;
        let like = similar.get(at).filter(|_| is_lossy);
        let loss_ratio = like.map_or(0.0, |like| self.loss(like, load));
        Output { loss_ratio: loss_ratio.clamp(0.0, 1.0), effective_ns: trial.duration_ns }
    }

    /// Returns the share of trials at a load that lose packets: on a line between tried loads, and
    /// falling to 0 below the lowest one.
    fn share(&self, load: f64) -> f64 {
        let after = self.shares.partition_point(|(tried, _)| *tried < load);
        let Some(&(upper, above)) = self.shares.get(after) else { return 1.0 };
        let (lower, below) =
            self.shares[..after].last().copied().unwrap_or((LOSSLESS * upper, 0.0));
        below + (above - below) * ((load - lower) / (upper - lower)).clamp(0.0, 1.0)
    }

    /// Returns the trials with loss nearest to a load.
    fn near(&self, load: u64) -> &[Measured] {
        let distance = |at: usize| self.lossy[at].trial.load.abs_diff(load);
        let after = self.lossy.partition_point(|measured| measured.trial.load < load);
        let (mut first, mut end) = (after, after);
        while end - first < NEAREST.min(self.lossy.len()) {
            let is_below =
                first > 0 && (end == self.lossy.len() || distance(first - 1) <= distance(end));
            if is_below {
                first -= 1;
            } else {
                end += 1;
            }
        }
        &self.lossy[first..end]
    }

    /// Returns the loss at a load if the device behaves as in a trial at another load.
    fn loss(&self, like: &Measured, load: f64) -> f64 {
        let overload = |capacity: f64| (1.0 - capacity / load).max(0.0);
        match like.output.loss_ratio {
            ratio if ratio >= OVERLOADED => overload(like.forwarding_rate()),
            ratio => ratio.max(overload(self.capacity)),
        }
    }
}

/// Returns the share of trials with loss at each load: the likeliest shares that do not fall as the
/// load rises (isotonic regression by pooling adjacent violators).
fn shares(trials: &Trials) -> Vec<(f64, f64)> {
    // Neighbouring loads with one share, their lossy trials and all trials.
    let mut pools: Vec<(Vec<f64>, f64, f64)> = Vec::new();
    for (load, at) in trials.loads() {
        let lossy = at.iter().filter(|measured| measured.output.loss_ratio > 0.0).count();
        let mut pool = (vec![load as f64], lossy as f64, at.len() as f64);
        while let Some(lower) = pools.pop_if(|lower| lower.1 / lower.2 >= pool.1 / pool.2) {
            let loads = [lower.0, pool.0].concat();
            pool = (loads, lower.1 + pool.1, lower.2 + pool.2);
        }
        pools.push(pool);
    }
    let shares = pools.into_iter().map(|(loads, lossy, all)| (loads, lossy / all));
    shares.flat_map(|(loads, share)| loads.into_iter().map(move |load| (load, share))).collect()
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
    fn ratios<const N: usize>(law: Law, after: [usize; N], devices: u64) -> [f64; N] {
        let mut all: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
        for seed in 0..devices {
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
            ("border of 20 % below", Law { border: 0.2, border_middle: 0.9, ..exact }),
        ] {
            // Searches below the capacity take four times the trials, and their forecasts differ less.
            let devices = if law.border_middle < 1.0 { 15 } else { 60 };
            let found = ratios(law, [10, 15, 25], devices);
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
