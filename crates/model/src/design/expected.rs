//! Expected number of trials of a method, from which the duration of an experiment follows.

use super::method::{Method, SearchMethod, flood_loads};
use fwdlab_search::simulated::{Device, Law};
use fwdlab_search::{Limits, Search, Step};

/// Trials of a method in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Number of trials.
    pub trials: u32,
    /// Trials with the experiment's warm-up.
    pub warmed: u32,
    /// Traffic of all trials together, without these warm-ups, in nanoseconds.
    pub traffic_ns: u64,
}

/// Conditions of the trials in addition to the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Length of a trial unless the method has another, in nanoseconds.
    pub duration_ns: u64,
    /// Connections that a trial opens, if the method opens connections: one per flow.
    pub connections: u32,
    /// Additional trials for each trial of a search on a steady device.
    pub disturbed: u32,
}

/// Connections per second that a device sets up: a typical kernel's, on one CPU.
const CONNECTIONS: u64 = 300_000;
/// Trials of a search for the longest burst, or for the capacity of a table: the length doubles,
/// then the interval is halved to a thousandth.
const BURSTS: u32 = 12;
/// Length of a trial with a reset over the length of other trials.
const RESET: u64 = 5;
/// Capacity of the device that represents the unknown one, in packets per second.
const CAPACITY: f64 = 1e6;
/// Its scatter from trial to trial, as a ratio.
const SCATTER: f64 = 0.005;
/// Number of searched devices; the median is used.
const DEVICES: u64 = 5;
/// Range of loads of a search over the capacity: as wide as in a run.
const LOADS: (f64, f64) = (0.02, 2.0);

impl Expected {
    /// Returns trials of one length with warm-ups.
    fn warmed(trials: u32, each_ns: u64) -> Expected {
        Expected { trials, warmed: trials, traffic_ns: u64::from(trials).saturating_mul(each_ns) }
    }

    /// Returns trials of one length without warm-ups.
    fn cold(trials: u32, each_ns: u64) -> Expected {
        Expected { warmed: 0, ..Expected::warmed(trials, each_ns) }
    }

    fn times(self, factor: u32) -> Expected {
        Expected {
            trials: self.trials.saturating_mul(factor),
            warmed: self.warmed.saturating_mul(factor),
            traffic_ns: self.traffic_ns.saturating_mul(factor.into()),
        }
    }

    fn and(self, other: Expected) -> Expected {
        Expected {
            trials: self.trials.saturating_add(other.trials),
            warmed: self.warmed.saturating_add(other.warmed),
            traffic_ns: self.traffic_ns.saturating_add(other.traffic_ns),
        }
    }
}

impl Method {
    /// Returns the expected trials of a run. Searches are run on simulated devices.
    pub fn expected(&self, surroundings: Surroundings) -> Expected {
        let Surroundings { duration_ns, connections, disturbed } = surroundings;
        let opening_ns = u64::from(connections) * 1_000_000_000 / CONNECTIONS;
        match self {
            Method::Mlrsearch(search) => searched(search, disturbed),
            Method::Establishment(search) => {
                Expected::cold(searched(search, disturbed).trials, opening_ns)
            }
            Method::LossCurve { step, .. } => Expected::warmed(curve(*step), duration_ns),
            Method::Soak { trials } => Expected::warmed(*trials, duration_ns),
            Method::Flood { step, max_load } => {
                Expected::warmed(flood_loads(*step, *max_load).len() as u32, duration_ns)
            }
            Method::BackToBack { repeats, .. } => Expected::cold(BURSTS * repeats, 0),
            Method::SystemRecovery { repeats, overload_ns } => {
                Expected::cold(*repeats, overload_ns + duration_ns)
            }
            Method::Reset { repeats } => Expected::warmed(*repeats, RESET * duration_ns),
            Method::Delays { shares, repeats } => {
                Expected::warmed(shares.len() as u32 * repeats, duration_ns)
            }
            Method::TearDown { repeats } => Expected::cold(*repeats, 2 * opening_ns),
            Method::Capacity { repeats } => Expected::cold(BURSTS * repeats, 2 * opening_ns),
            Method::Rfc2544 { parts } | Method::Latency { parts } | Method::Rfc9693 { parts } => {
                let each = parts.iter().map(|part| part.expected(surroundings));
                each.fold(Expected::default(), Expected::and)
            }
        }
    }
}

/// Returns the trials of a loss curve: it begins at twice the rate of the device, and ends two
/// loads below it.
fn curve(step: f64) -> u32 {
    let lossy = (0.5 / step).ceil() as u32;
    (lossy + 2).min((1.0 / step).floor() as u32)
}

/// Returns the median number of trials of a search on simulated devices, with `disturbed`
/// additional ones for each, within the limits of the search.
fn searched(search: &SearchMethod, disturbed: u32) -> Expected {
    let mut found: Vec<Expected> =
        (1..=DEVICES).filter_map(|seed| on_device(search, seed)).collect();
    found.sort_unstable_by_key(|expected| expected.traffic_ns);
    let median = found.get(found.len() / 2).copied().unwrap_or_default();
    let all = median.times(1 + disturbed);
    let share = |limit: u64, value: u64| limit.min(value) as f64 / value.max(1) as f64;
    let trials = share(search.max_trials.into(), all.trials.into());
    let share = trials.min(share(search.max_time_ns, all.traffic_ns));
    let some = |trials: u32| (share * f64::from(trials)).round() as u32;
    Expected {
        trials: some(all.trials),
        warmed: some(all.warmed),
        traffic_ns: (share * all.traffic_ns as f64) as u64,
    }
}

/// Returns the trials of a search on one device; `None` if the search is impossible.
fn on_device(method: &SearchMethod, seed: u64) -> Option<Expected> {
    let [min, max] = [LOADS.0, LOADS.1].map(|load| (load * CAPACITY) as u64);
    let limits = Limits {
        trials: method.max_trials as usize,
        time_ns: method.max_time_ns,
        ..Limits::between(min, max)
    };
    let mut search = Search::new(method.goals.clone(), limits).ok()?;
    let mut device = Device::new(Law { sigma: SCATTER, ..Law::exact(CAPACITY) }, seed);
    let mut expected = Expected::default();
    while let Step::Measure(trial) = search.next() {
        expected = expected.and(Expected::warmed(1, trial.duration_ns));
        search.record(device.measure(trial));
    }
    Some(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_search::Goal;

    const USUAL: Surroundings =
        Surroundings { duration_ns: 1_000_000_000, connections: 60_000, disturbed: 0 };

    fn trials(goal: Goal) -> u32 {
        Method::Mlrsearch(SearchMethod::of(vec![goal])).expected(USUAL).trials
    }

    #[test]
    fn searches_take_the_trials_of_their_goals() {
        let ndr = Goal::preset("ndr").expect("a preset");
        let goals = vec![ndr.clone(), Goal::preset("pdr").expect("a preset")];
        let goals = Method::Mlrsearch(SearchMethod::of(goals)).expected(USUAL);
        // A device with a slight scatter takes 33 (docs/MLRSEARCH.md).
        assert!((33..=60).contains(&goals.trials), "{goals:?}");
        assert!(trials(ndr.clone()) < goals.trials);
        let short = Goal { sum_ns: ndr.sum_ns / 7, width: 0.02, ..ndr.clone() };
        assert!(trials(short) < trials(ndr) / 2);
    }

    #[test]
    fn suites_take_the_trials_of_their_parts() {
        let reset = Method::Reset { repeats: 3 };
        let bursts = Method::BackToBack { repeats: 10, max_frames: None };
        let suite = Method::Rfc2544 { parts: vec![reset, bursts] };
        let expected = Expected { trials: 123, warmed: 3, traffic_ns: 15_000_000_000 };
        assert_eq!(suite.expected(USUAL), expected);
        let filled = Method::TearDown { repeats: 5 }.expected(USUAL);
        assert_eq!(filled, Expected { trials: 5, warmed: 0, traffic_ns: 2_000_000_000 });
        let curve = Method::LossCurve { step: 0.1, max_load: None };
        assert_eq!(curve.expected(USUAL).trials, 7);
    }
}
