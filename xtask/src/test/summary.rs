//! Summary at the end of a run: times, skips by reason, failures, counts.

use super::tally::{Run, Tally};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines of a failure's message that the summary repeats: first and last ones.
const FIRST_LINES: usize = 6;
const LAST_LINES: usize = 14;

/// Returns the summary. Its last line is `N passed, N failed, N skipped`.
pub(crate) fn summary(runs: &[Run]) -> String {
    let tallies: Vec<Tally> = runs.iter().map(Run::tally).collect();
    let all = || runs.iter().zip(&tallies);
    let mut text = times(runs, &tallies);
    let skipped = all().map(|(run, tally)| (run, &tally.skipped));
    text += &by_reason("skipped", skipped);
    let reduced = all().map(|(run, tally)| (run, &tally.reduced));
    text += &by_reason("passed, but one part was left out", reduced);
    text += &failures(all());
    let count = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
    let _ = writeln!(
        text,
        "\n{} passed, {} failed, {} skipped",
        count(|tally| tally.passed),
        count(|tally| tally.failed.len()),
        count(|tally| tally.skipped.len()),
    );
    text
}

/// Formats wall-clock and processor time of each program, longest first.
fn times(runs: &[Run], tallies: &[Tally]) -> String {
    let mut rows: Vec<(&Run, &Tally)> = runs.iter().zip(tallies).collect();
    rows.sort_by_key(|(run, _)| std::cmp::Reverse(run.wall));
    let mut text = "\n  wall s    cpu s  passed  failed  skipped  program\n".to_owned();
    for (run, tally) in rows {
        let _ = writeln!(
            text,
            "{:>8.1} {:>8.1} {:>7} {:>7} {:>8}  {}",
            run.wall.as_secs_f64(),
            run.cpu.as_secs_f64(),
            tally.passed,
            tally.failed.len(),
            tally.skipped.len(),
            run.name,
        );
    }
    text
}

/// Groups tests by reason, most frequent first; empty without tests.
fn by_reason<'a>(
    title: &str,
    tests: impl Iterator<Item = (&'a Run, &'a Vec<(String, String)>)>,
) -> String {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (run, tests) in tests {
        for (test, reason) in tests {
            groups.entry(reason).or_default().push(format!("{}: {test}", run.name));
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let mut text = String::new();
    for (index, (reason, tests)) in groups.into_iter().enumerate() {
        if index == 0 {
            let _ = write!(text, "\n{title}:\n");
        }
        let _ = writeln!(text, "  {} because: {reason}", tests.len());
        for test in tests {
            let _ = writeln!(text, "      {test}");
        }
    }
    text
}

fn failures<'a>(all: impl Iterator<Item = (&'a Run, &'a Tally)>) -> String {
    let mut text = String::new();
    for (run, tally) in all {
        for (test, lines) in &tally.failed {
            if text.is_empty() {
                text += "\nfailed:\n";
            }
            let _ = match *test == run.name {
                true => writeln!(text, "  {test}"),
                false => writeln!(text, "  {}: {test}", run.name),
            };
            for line in shorten(lines) {
                let _ = writeln!(text, "      {}", line.chars().take(400).collect::<String>());
            }
        }
    }
    text
}

/// Returns the first and the last lines of a long message. The last lines matter because
/// `assert_eq!` prints its values there.
fn shorten(lines: &[String]) -> Vec<&str> {
    let all = lines.iter().map(String::as_str);
    match lines.len().checked_sub(FIRST_LINES + LAST_LINES) {
        None | Some(0 | 1) => all.collect(),
        Some(middle) => {
            let last = all.clone().skip(FIRST_LINES + middle);
            all.take(FIRST_LINES).chain(["[...]"]).chain(last).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::libtest::Listing;
    use super::super::skips::parse;
    use super::*;
    use std::time::Duration;

    fn run(name: &str, output: &str, records: &str, error: Option<&str>) -> Run {
        let mut listing = Listing::default();
        for line in output.lines() {
            listing.read(line);
        }
        Run {
            name: name.to_owned(),
            listing,
            skips: parse(records),
            error: error.map(str::to_owned),
            wall: Duration::from_millis(1500),
            cpu: Duration::from_millis(2500),
        }
    }

    #[test]
    fn summary_ends_with_counts_of_all_programs() {
        let failing = include_str!("recorded/failing.txt");
        let crashing = include_str!("recorded/crashing.txt");
        let records = "p\ttests::skips\tskipped\tno moon\n";
        let one = run("one", failing, records, Some("exit code 101"));
        let two = run("two", crashing, "", Some("signal 6"));
        let text = summary(&[one, two]);
        assert_eq!(text.lines().last(), Some("3 passed, 3 failed, 3 skipped"), "{text}");
        assert!(text.contains("  1 because: no moon\n      one: tests::skips\n"), "{text}");
        assert!(text.contains("  1 because: ignored: needs a moon\n"), "{text}");
        assert!(text.contains("\n  two\n      ended without a result line (signal 6)"), "{text}");
        assert!(text.contains("one: tests::compares\n      thread"), "{text}");
        assert!(text.contains("     1.5      2.5       2       2        3  one\n"), "{text}");
    }

    #[test]
    fn shorten_keeps_the_end_of_a_long_message() {
        let lines: Vec<String> = (1..=40).map(|line| line.to_string()).collect();
        let short = shorten(&lines);
        assert_eq!(short.len(), FIRST_LINES + 1 + LAST_LINES);
        assert_eq!((short[5], short[6], short[7], short[20]), ("6", "[...]", "27", "40"));
        assert_eq!(shorten(&lines[..21]).len(), 21);
        assert_eq!(shorten(&lines[..3]), ["1", "2", "3"]);
    }

    #[test]
    fn summary_lists_nothing_if_all_tests_pass() {
        let ok = "test a ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n";
        let text = summary(&[run("one", ok, "", None)]);
        assert_eq!(text.lines().last(), Some("1 passed, 0 failed, 0 skipped"));
        assert!(!text.contains("because") && !text.contains("failed:"), "{text}");
    }
}
