//! Teardown rate of connections, and capacity of the connection table (RFC 9693).

use super::search::SearchOutcome;
use super::{MethodRun, burst, search};
use crate::document::table::Cell;
use crate::document::{Block, Table};
use crate::report::analysis::SummaryResult;
use crate::report::sections::cells::seconds;
use crate::stats::summary::median;
use fwdlab_model::record::{Connections, MethodRecord, MethodTrial};
use fwdlab_model::units::format_pps;
use fwdlab_search::Burst;
use serde::Serialize;

/// Connection results of a run's trials.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunConnections {
    /// Removals of full tables.
    removals: Vec<Removal>,
    /// The most connections that were all held, for each search.
    pub held: Vec<Burst>,
    /// Number of invalid trials.
    invalid: usize,
}

/// Removal of all connections of a full table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Removal {
    /// Number of removed connections.
    connections: u64,
    /// Duration in seconds.
    seconds: f64,
    /// Duration with an empty table, in seconds.
    empty_s: f64,
}

/// Teardown rate of a variant, over all trials of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct TeardownRate {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Fewest connections in the table.
    pub connections: Option<u64>,
    /// Connections removed per second, excluding the time for an empty table; `None` if a full
    /// table does not take clearly longer than an empty one.
    pub rate: Option<SummaryResult>,
    /// Lower bound of the connections removed per second, including that time: the median over the
    /// trials.
    pub at_least: Option<f64>,
    /// Median time for an empty table, seconds.
    pub empty_s: Option<f64>,
    /// Number of trials whose table was not full.
    pub invalid: usize,
}

/// Connection table capacity of a variant, over all searches of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct TableCapacity {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// The most connections that were all held; `None` if no search finished.
    pub connections: Option<SummaryResult>,
    /// Number of searches in which all opened connections were held: the capacity may be larger.
    pub at_least: usize,
    /// The most states that the device reported at any time; `None` if it does not report them.
    pub most_states: Option<u64>,
    /// Connections per second at which the first trial filled it.
    pub rate: Option<u64>,
    /// Number of invalid trials.
    pub invalid: usize,
}

/// Minimum ratio of held to requested connections for a full table.
const FULL: f64 = 0.9;
/// Minimum ratio of the times for a full and an empty table, median over the trials: below it the
/// difference is measurement noise.
const CLEARLY: f64 = 1.5;

/// Evaluates a run's trials.
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

/// Returns the removal of an almost full table, according to the device's states or if all packets
/// arrived.
fn removal(trial: &MethodTrial, (torn_down_ns, empty_ns): (u64, u64)) -> Option<Removal> {
    let opened = trial.connections.as_ref()?;
    let arrived = || matches!(trial.is_whole(), Ok(true)).then_some(opened.wanted);
    let connections = opened.states.or_else(arrived)?;
    let is_full = connections as f64 >= FULL * opened.wanted as f64;
    let [seconds, empty_s] = [torn_down_ns, empty_ns].map(|ns| ns as f64 / 1e9);
    is_full.then_some(Removal { connections, seconds, empty_s })
}

/// Summarises a variant's teardown over its runs; `None` without runs.
pub(super) fn torn_down(
    (variant, label): (usize, &str),
    runs: &[MethodRun],
) -> Option<TeardownRate> {
    let connections =
        || runs.iter().filter(|run| run.variant == variant).map(|run| &run.connections);
    connections().next()?;
    let each: Vec<&Removal> = connections().flat_map(|run| &run.removals).collect();
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
        invalid: connections().map(|run| run.invalid).sum(),
    })
}

/// Summarises a variant's table capacity over its runs; `None` without runs.
pub(super) fn held((variant, label): (usize, &str), runs: &[MethodRun]) -> Option<TableCapacity> {
    let variant_runs: Vec<&MethodRun> = runs.iter().filter(|run| run.variant == variant).collect();
    let first = variant_runs.first()?;
    let found: Vec<Burst> =
        variant_runs.iter().flat_map(|run| run.connections.held.clone()).collect();
    let numbers: Vec<f64> = found.iter().map(|found| found.frames as f64).collect();
    let states = variant_runs.iter().flat_map(|run| &run.points).flat_map(|point| &point.states);
    Some(TableCapacity {
        variant,
        label: label.to_owned(),
        connections: SummaryResult::of(&numbers),
        at_least: found.iter().filter(|found| found.is_most).count(),
        most_states: states.map(|&(_, count)| count).max(),
        rate: first.points.first().map(|point| point.load),
        invalid: variant_runs.iter().map(|run| run.connections.invalid).sum(),
    })
}

/// Returns a table of the establishment rates, with one row per variant and goal.
pub(super) fn establishment_table(rows: &[SearchOutcome]) -> Block {
    search::rates(rows, "set up a second")
        .numbers("forwarding rate", |row| Cell::rate(row.frmol))
        .words("regular", search::regular)
        .keys(&["regular", "runs"])
        .numbers("trials", |row| search::mean(row.trials))
        .numbers("invalid", |row| search::mean(row.invalid))
        .with_words(|row, line| {
            line.name = format!("{}, {}", row.label, row.goal);
            line.words.push(establishment_sentence(row));
        })
        .set(|table| table.name = Some("establishment-rate"))
        .block()
}

/// States the establishment rate, without the variant's name.
pub(super) fn establishment_sentence(row: &SearchOutcome) -> String {
    match row.regular.1 {
        0 => "no connections were opened".to_owned(),
        _ => match &row.throughput {
            Some(found) => format!(
                "{} connections a second are set up, {} (n = {}, {} to {})",
                per_second(found.median),
                row.goal,
                found.n,
                per_second(found.min),
                per_second(found.max)
            ),
            None => search::sentence(row),
        },
    }
}

/// Returns a table of the teardown rates, with one row per variant.
pub(super) fn teardown_table(rows: &[TeardownRate]) -> Block {
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("connections", |row| row.connections.map_or(Cell::None, Cell::count))
        .numbers("times", |row| Cell::count(row.rate.map_or(0, |found| found.n) as u64))
        .numbers("removed a second", |row| Cell::rate(row.rate.map(|found| found.median)))
        .numbers("minimum", |row| Cell::rate(row.rate.map(|found| found.min)))
        .numbers("maximum", |row| Cell::rate(row.rate.map(|found| found.max)))
        .numbers("with asking", |row| Cell::rate(row.at_least))
        .numbers("empty table", |row| seconds(row.empty_s))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .with_words(|row, line| line.words.push(teardown_sentence(row)))
        .set(|table| table.name = Some("tear-down-rate"))
        .block()
}

/// States the teardown rate, without the variant's name.
pub(super) fn teardown_sentence(row: &TeardownRate) -> String {
    let Some((rate, connections)) = row.rate.zip(row.connections) else {
        return match row.at_least {
            Some(rate) => format!(
                "at least {} connections a second are removed: a full table takes hardly longer \
                 than an empty one",
                per_second(rate)
            ),
            None => "no removal of a full table could be timed".to_owned(),
        };
    };
    format!(
        "{} connections a second are removed, of a table of {connections} (median of {})",
        per_second(rate.median),
        rate.n
    )
}

/// Formats a rate without its unit.
pub(super) fn per_second(rate: f64) -> String {
    format_pps(rate).replace("pps", "").trim_end().to_owned()
}

/// Returns a table of the capacities, with one row per variant.
pub(super) fn capacity_table(rows: &[TableCapacity]) -> Block {
    let count = |value: Option<f64>| value.map_or(Cell::None, |n| Cell::count(n as u64));
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("searches", |row| Cell::count(row.connections.map_or(0, |found| found.n) as u64))
        .numbers("held", move |row| count(row.connections.map(|found| found.median)))
        .numbers("minimum", move |row| count(row.connections.map(|found| found.min)))
        .numbers("maximum", move |row| count(row.connections.map(|found| found.max)))
        .numbers("at least", |row| Cell::count(row.at_least as u64))
        .numbers("most states", |row| row.most_states.map_or(Cell::None, Cell::count))
        .numbers("opened at", |row| Cell::rate(row.rate.map(|rate| rate as f64)))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .with_words(|row, line| line.words.push(capacity_sentence(row)))
        .set(|table| table.name = Some("table-capacity"))
        .block()
}

/// States the capacity, without the variant's name.
pub(super) fn capacity_sentence(row: &TableCapacity) -> String {
    match &row.connections {
        Some(found) => {
            let least = if row.at_least > 0 { "at least " } else { "" };
            format!("the table holds {least}{:.0} connections", found.median)
        }
        None => "no search for the table's capacity came to its end".to_owned(),
    }
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

    /// Evaluates trials, each with a number of states and the nanoseconds to remove them.
    fn teardown(trials: &[(u64, u64)]) -> TeardownRate {
        let trials = trials.iter().map(|&(states, ns)| filled(states, ns)).collect();
        let record = MethodRecord { trials, ..MethodRecord::default() };
        let run = MethodRun { connections: of_run(&record), ..MethodRun::of((0, "x"), 0) };
        torn_down((0, "x"), &[run]).expect("a run")
    }

    #[test]
    fn teardown_rate_excludes_time_of_empty_table() {
        let row = teardown(&[(1000, 12_000_000), (990, 11_900_000), (899, 12_000_000)]);
        let rate = row.rate.expect("a rate");
        assert_eq!((rate.n, row.invalid), (2, 1), "one was not full");
        let is_close = |rate: f64| (rate / 1e5 - 1.0).abs() < 1e-9;
        assert!(is_close(rate.min) && is_close(rate.max), "{rate:?}");
        assert_eq!((row.connections, row.empty_s), (Some(990), Some(0.002)));
    }

    #[test]
    fn teardown_as_fast_as_empty_table_has_no_rate() {
        let row = teardown(&[(1000, 2_100_000), (1000, 1_900_000), (1000, 2_500_000)]);
        assert!(row.rate.is_none(), "{row:?}");
        let at_least = row.at_least.expect("a median");
        assert!((at_least * 0.0021 / 1000.0 - 1.0).abs() < 1e-9, "{row:?}");
    }
}
