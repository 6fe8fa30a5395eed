//! Warm-up and steady state of real runs.
//!
//! Logs of pkt-gen have one line of rates a second. What is expected of each was read from
//! its lines by eye. The repository has the rates of those; a larger set of logs may lie
//! beside it.

use fwdlab_results::stats::steady::{SteadyOptions, steady};
use fwdlab_testdata::{FixtureLog, larger};
use std::ops::RangeInclusive;

/// Packets per second, line by line.
fn rates(log: &str) -> Vec<f64> {
    log.lines()
        .filter(|line| line.contains(" main_thread ["))
        .filter_map(|line| {
            let (before, _) = line.split_once(" pps (")?;
            before.rsplit(' ').next()?.parse().ok()
        })
        .collect()
}

/// Logs by the beginning of their names, and the second in which the steady
/// state may begin.
const EXPECTED: &[(&str, RangeInclusive<usize>)] = &[
    // Traffic starts while the log already runs.
    ("02-", 3..=3),
    ("36-", 3..=3),
    ("38-", 2..=2),
    ("61-", 2..=2),
    ("62-", 2..=2),
    // Fast at first, 3 to 7 % slower within a quarter of the run.
    ("11-", 10..=16),
    ("25-", 6..=12),
    // Nothing for six seconds, then 3 % too fast for twelve.
    ("22-", 16..=21),
    // At its rate from the first second on, but for single ones.
    ("03-", 0..=0),
    ("05-", 0..=0),
    ("06-", 0..=0),
    ("12-", 0..=0),
    ("13-", 0..=0),
    ("15-", 0..=0),
    ("21-", 0..=0),
    ("27-", 0..=0),
    ("30-", 0..=0),
    ("32-", 0..=0),
    ("34-", 0..=0),
    ("39-", 0..=0),
    ("43-", 0..=0),
    ("48-", 0..=0),
];

#[test]
fn real_runs_settle_where_a_person_says() {
    let of = |log: FixtureLog| (format!("{}-", log.number), log.text);
    assert_eq!(judged(fwdlab_testdata::logs().into_iter().map(of)), EXPECTED.len());
    let Some(folder) = larger("conformance/logs") else { return };
    let logs = std::fs::read_dir(&folder).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        std::fs::read_to_string(&path).ok().map(|log| (name, log))
    });
    assert_eq!(judged(logs), EXPECTED.len());
}

/// How many of these logs, by name and text, settle where they should.
fn judged(logs: impl Iterator<Item = (String, String)>) -> usize {
    let mut judged = 0;
    for (name, log) in logs {
        let rates = rates(&log);
        // The last second of a log is a part of one.
        let options = SteadyOptions { ignore_last: true, ..SteadyOptions::default() };
        let found = steady(&rates, options);
        if rates.len() <= 20 {
            assert_eq!(found, None, "{name}");
        }
        let Some((_, from)) = EXPECTED.iter().find(|(start, _)| name.starts_with(start)) else {
            continue;
        };
        let found = found.unwrap_or_else(|| panic!("{name} isn't judged"));
        assert!(from.contains(&found.from) && found.reached, "{name}: {found:?}");
        judged += 1;
    }
    judged
}
