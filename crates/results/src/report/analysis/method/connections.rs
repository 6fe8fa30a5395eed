//! How fast connections were removed, and how many the table held (RFC 9693).

use super::{MethodRun, burst};
use crate::report::analysis::variants::SummaryResult;
use crate::stats::summary::median;
use fwdlab_model::record::{Connections, MethodRecord, MethodTrial};
use fwdlab_search::Burst;
use serde::Serialize;

/// What became of the table in a run's trials.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunConnections {
    /// Tables that were filled and emptied.
    removals: Vec<Removal>,
    /// The most connections that were all held, each time that it was searched for.
    pub held: Vec<Burst>,
    /// Trials that say nothing of the device.
    invalid: usize,
}

/// A table that was filled and emptied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Removal {
    /// Connections that were removed.
    connections: u64,
    /// How long it took, seconds.
    seconds: f64,
    /// How long the same took with an empty table, seconds.
    empty_s: f64,
}

/// How fast a variant removed connections, over all trials of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct TeardownRate {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Connections in the table, at least.
    pub connections: Option<u64>,
    /// Connections removed a second, without the time that an empty table takes; none where a
    /// full one does not take clearly longer.
    pub rate: Option<SummaryResult>,
    /// Connections removed a second at least, with that time: the median over the trials.
    pub at_least: Option<f64>,
    /// Median seconds that an empty table takes.
    pub empty_s: Option<f64>,
    /// Trials whose table was not full.
    pub invalid: usize,
}

/// How many connections a variant held, over all searches of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Held {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// The most connections that were all held; none if no search came to its end.
    pub connections: Option<SummaryResult>,
    /// Searches in which all that were opened were held: the table may take more.
    pub at_least: usize,
    /// The most states that the device told of at any time; none where it doesn't tell.
    pub most_states: Option<u64>,
    /// Connections a second at which it was filled, of the first trial.
    pub rate: Option<u64>,
    /// Trials that say nothing of the device.
    pub invalid: usize,
}

/// Share of the wanted connections that a table must hold when it is emptied.
const FULL: f64 = 0.9;
/// How many times as long as an empty table a full one must take, the median over the trials:
/// below that the difference is the noise of asking for it.
const CLEARLY: f64 = 1.5;

/// What a run's trials say of the table that they filled.
pub(super) fn of_run(record: &MethodRecord) -> RunConnections {
    let mut found = RunConnections { held: burst::longest(record), ..RunConnections::default() };
    for trial in &record.trials {
        let times = |opened: &Connections| Some((opened.torn_down_ns?, opened.empty_ns?));
        match trial.connections.as_ref().and_then(times) {
            None => found.invalid += usize::from(trial.is_whole().is_err()),
            Some(times) => match removal(trial, times) {
                Some(removal) => found.removals.push(removal),
                None => found.invalid += 1,
            },
        }
    }
    found
}

/// The removal of a table that was about full, as the device told or as all packets arrived.
fn removal(trial: &MethodTrial, (torn_down_ns, empty_ns): (u64, u64)) -> Option<Removal> {
    let opened = trial.connections.as_ref()?;
    let arrived = || matches!(trial.is_whole(), Ok(true)).then_some(opened.wanted);
    let connections = opened.states.or_else(arrived)?;
    let is_full = connections as f64 >= FULL * opened.wanted as f64;
    let [seconds, empty_s] = [torn_down_ns, empty_ns].map(|ns| ns as f64 / 1e9);
    is_full.then_some(Removal { connections, seconds, empty_s })
}

/// A variant over its runs; none without one.
pub(super) fn torn_down(
    (variant, label): (usize, &str),
    runs: &[MethodRun],
) -> Option<TeardownRate> {
    let own = || runs.iter().filter(|run| run.variant == variant).map(|run| &run.connections);
    own().next()?;
    let each: Vec<&Removal> = own().flat_map(|run| &run.removals).collect();
    let of = |get: &dyn Fn(&Removal) -> f64| each.iter().map(|one| get(one)).collect::<Vec<f64>>();
    let rates = of(&|one| one.connections as f64 / (one.seconds - one.empty_s));
    let ratios = of(&|one| one.seconds / one.empty_s);
    let is_clear = median(&ratios).is_some_and(|ratio| ratio >= CLEARLY);
    let longer: Vec<f64> = rates.into_iter().filter(|rate| *rate > 0.0).collect();
    Some(TeardownRate {
        variant,
        label: label.to_owned(),
        connections: each.iter().map(|one| one.connections).min(),
        rate: SummaryResult::of(&longer).filter(|_| is_clear),
        at_least: median(&of(&|one| one.connections as f64 / one.seconds)),
        empty_s: median(&of(&|one| one.empty_s)),
        invalid: own().map(|run| run.invalid).sum(),
    })
}

/// A variant over its runs; none without one.
pub(super) fn held((variant, label): (usize, &str), runs: &[MethodRun]) -> Option<Held> {
    let own: Vec<&MethodRun> = runs.iter().filter(|run| run.variant == variant).collect();
    let first = own.first()?;
    let found: Vec<Burst> = own.iter().flat_map(|run| run.connections.held.clone()).collect();
    let numbers: Vec<f64> = found.iter().map(|found| found.frames as f64).collect();
    let looks = own.iter().flat_map(|run| &run.points).flat_map(|point| &point.states);
    Some(Held {
        variant,
        label: label.to_owned(),
        connections: SummaryResult::of(&numbers),
        at_least: found.iter().filter(|found| found.is_most).count(),
        most_states: looks.map(|&(_, states)| states).max(),
        rate: first.points.first().map(|point| point.load),
        invalid: own.iter().map(|run| run.connections.invalid).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(states: u64, torn_down_ns: u64) -> MethodTrial {
        let opened = Connections {
            wanted: 1000,
            states_before: Some(0),
            states: Some(states),
            torn_down_ns: Some(torn_down_ns),
            empty_ns: Some(2_000_000),
            ..Connections::default()
        };
        MethodTrial {
            load: 1000,
            window_ns: 1_000_000_000,
            offered: 1000,
            forwarded: 1000,
            connections: Some(opened),
            ..MethodTrial::default()
        }
    }

    /// What trials say, each of so many states that are removed in so many nanoseconds.
    fn found(trials: &[(u64, u64)]) -> TeardownRate {
        let trials = trials.iter().map(|&(states, ns)| filled(states, ns)).collect();
        let record = MethodRecord { trials, ..MethodRecord::default() };
        let run = MethodRun { connections: of_run(&record), ..MethodRun::of((0, "x"), 0) };
        torn_down((0, "x"), &[run]).expect("a run")
    }

    #[test]
    fn full_tables_are_timed_without_what_an_empty_one_takes() {
        let row = found(&[(1000, 12_000_000), (990, 11_900_000), (899, 12_000_000)]);
        let rate = row.rate.expect("a rate");
        assert_eq!((rate.n, row.invalid), (2, 1), "one was not full");
        let is_close = |rate: f64| (rate / 1e5 - 1.0).abs() < 1e-9;
        assert!(is_close(rate.min) && is_close(rate.max), "{rate:?}");
        assert_eq!((row.connections, row.empty_s), (Some(990), Some(0.002)));
    }

    #[test]
    fn what_takes_no_longer_than_an_empty_table_is_not_made_a_rate() {
        let row = found(&[(1000, 2_100_000), (1000, 1_900_000), (1000, 2_500_000)]);
        assert!(row.rate.is_none(), "{row:?}");
        let at_least = row.at_least.expect("a median");
        assert!((at_least * 0.0021 / 1000.0 - 1.0).abs() < 1e-9, "{row:?}");
    }
}
