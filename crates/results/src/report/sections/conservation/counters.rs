//! The DUT's counters compared with the testbed's counts.

use crate::document::table::Cell;
use crate::document::{Block, Table};
use crate::store::Contents;
use fwdlab_model::record::queues::parse_name;
use serde::Serialize;
use std::collections::BTreeMap;

/// A counter of the DUT over all runs.
#[derive(Clone, Debug, Serialize)]
pub struct CounterCheck {
    /// Name.
    pub name: String,
    /// Its increase over all trials.
    pub counted: u64,
    /// Expected increase by the testbed's counts: packets offered for a receive counter, packets
    /// forwarded for a transmit counter, otherwise `None`.
    pub expected: Option<u64>,
    /// Counted minus expected.
    pub difference: Option<i64>,
    /// The largest absolute difference in a single run.
    pub largest_in_a_run: Option<u64>,
}

/// Returns the DUT's counters over all runs, by name.
pub(super) fn counters(contents: &Contents) -> Vec<CounterCheck> {
    let mut checks: BTreeMap<&str, CounterCheck> = BTreeMap::new();
    for run in &contents.runs {
        // Queue counters are reported by variant.
        let by_queue = |name: &str| parse_name(name).is_some();
        for counter in run.trial.counters.iter().filter(|counter| !by_queue(&counter.name)) {
            let expected = counter.expected;
            let check = checks.entry(&counter.name).or_insert_with(|| CounterCheck {
                name: counter.name.clone(),
                counted: 0,
                expected: expected.map(|_| 0),
                difference: expected.map(|_| 0),
                largest_in_a_run: expected.map(|_| 0),
            });
            check.counted = check.counted.wrapping_add(counter.delta());
            if let Some(expected) = expected {
                let difference = counter.delta().wrapping_sub(expected).cast_signed();
                check.expected = check.expected.map(|sum| sum.wrapping_add(expected));
                check.difference = check.difference.map(|sum| sum.wrapping_add(difference));
                check.largest_in_a_run =
                    check.largest_in_a_run.map(|largest| largest.max(difference.unsigned_abs()));
            }
        }
    }
    checks.into_values().collect()
}

/// Returns a table with one row per counter; nothing without counters.
pub(super) fn table(rows: &[CounterCheck]) -> Vec<Block> {
    if rows.is_empty() {
        return Vec::new();
    }
    let table = Table::of(rows)
        .words("counter", |c| Cell::text(&c.name))
        .numbers("counted", |c| Cell::count(c.counted))
        .numbers("ours", |c| Cell::count(c.expected))
        .numbers("difference", |c| Cell::count(c.difference))
        .numbers("largest in a run", |c| Cell::count(c.largest_in_a_run));
    let text = "The counters of the device under test against ours, all runs together:";
    vec![Block::text(text), table.block()]
}
