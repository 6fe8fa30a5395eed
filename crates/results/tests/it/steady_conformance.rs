//! Warm-up and steady state of real runs.
//!
//! Logs of pkt-gen have one line of rates per second. The expected results were read from the lines
//! manually. The repository contains the rates of these logs; a larger set of logs may be next to
//! it.

use fwdlab_results::stats::steady::{SteadyOptions, steady};
use fwdlab_testdata::{FixtureLog, larger};
use std::ops::RangeInclusive;

/// Packets per second, by line.
fn rates(log: &str) -> Vec<f64> {
    log.lines()
        .filter(|line| line.contains(" main_thread ["))
        .filter_map(|line| {
            let (before, _) = line.split_once(" pps (")?;
            before.rsplit(' ').next()?.parse().ok()
        })
        .collect()
}

/// Name prefix of each log, and the range of seconds in which the steady state may begin.
const EXPECTED: &[(&str, RangeInclusive<usize>)] = &[
    // Traffic starts after the log.
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
    // Steady from the first second on, except for single seconds.
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
fn steady_agrees_with_manual_reading_of_logs() {
    let of = |log: FixtureLog| (format!("{}-", log.number), log.text);
    assert_eq!(check_logs(fwdlab_testdata::logs().into_iter().map(of)), EXPECTED.len());
    let Some(folder) = larger("conformance/logs") else { return };
    let logs = std::fs::read_dir(&folder).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        std::fs::read_to_string(&path).ok().map(|log| (name, log))
    });
    assert_eq!(check_logs(logs), EXPECTED.len());
}

/// Checks these logs, given by name and text, and returns the number of expected results.
fn check_logs(logs: impl Iterator<Item = (String, String)>) -> usize {
    let mut checked = 0;
    for (name, log) in logs {
        let rates = rates(&log);
        // The last second of a log is incomplete.
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
        checked += 1;
    }
    checked
}
