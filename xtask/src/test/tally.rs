//! Counts of one program, from its output, its skip records and its exit status.

use super::libtest::{Listing, Outcome};
use super::skips::Skip;
use std::collections::BTreeSet;
use std::time::Duration;

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) listing: Listing,
    pub(crate) skips: Vec<Skip>,
    /// `None` for exit code 0, otherwise a description such as `signal 6`.
    pub(crate) error: Option<String>,
    pub(crate) wall: Duration,
    /// User and system time of the program and of the processes that it waited for.
    pub(crate) cpu: Duration,
}

/// Counts of a program's tests; the four kinds are disjoint.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    /// Tests, or the program itself, with their output.
    pub(crate) failed: Vec<(String, Vec<String>)>,
    /// Tests with their reasons.
    pub(crate) skipped: Vec<(String, String)>,
    /// Passed tests that skipped a part, with reasons.
    pub(crate) reduced: Vec<(String, String)>,
}

impl Run {
    /// Counts the results.
    pub(crate) fn tally(&self) -> Tally {
        let failed_names = self.listing.names(&Outcome::Failed);
        let mut tally = Tally { failed: self.failures(), ..Tally::default() };
        let mut skipped_by_name = BTreeSet::new();
        for skip in &self.skips {
            let test = skip.test.as_str();
            if failed_names.contains(test) {
                continue;
            }
            if !self.may_be_test(test) {
                let line = format!("skip reported by a thread that is not a test: {}", skip.reason);
                tally.failed.push((self.name.clone(), vec![line]));
            } else if skip.is_part {
                tally.reduced.push((skip.test.clone(), skip.reason.clone()));
            } else if skipped_by_name.insert(test) {
                tally.skipped.push((skip.test.clone(), skip.reason.clone()));
            }
        }
        tally.reduced.retain(|(test, _)| !skipped_by_name.contains(test.as_str()));
        let ended_ok = match self.listing.result {
            Some(counts) => counts.passed,
            None => self.listing.names(&Outcome::Ok).len(),
        };
        tally.passed = ended_ok.saturating_sub(skipped_by_name.len());
        for (test, outcome) in &self.listing.tests {
            if let Outcome::Ignored(reason) = outcome {
                let reason = format!("ignored: {reason}");
                tally.skipped.push((test.clone(), reason.trim_end_matches([':', ' ']).into()));
            }
        }
        tally
    }

    /// Returns the failed tests, and the program itself if its exit status contradicts them.
    fn failures(&self) -> Vec<(String, Vec<String>)> {
        let lines_of = |name: &str| {
            let mut all = self.listing.failures.iter().filter(|(other, _)| other == name);
            all.next().map(|(_, lines)| lines.clone()).unwrap_or_default()
        };
        let failed = self.listing.names(&Outcome::Failed);
        let mut failures: Vec<_> =
            failed.iter().map(|name| ((*name).to_owned(), lines_of(name))).collect();
        let has_failed_test = self.listing.result.is_some_and(|counts| counts.failed > 0);
        // A name garbled by other output still appears in the list of failures.
        for (name, lines) in &self.listing.failures {
            if !failed.contains(name.as_str()) {
                failures.push((name.clone(), lines.clone()));
            }
        }
        let why = match (&self.listing.result, &self.error) {
            (None, error) => {
                let error = error.as_deref().unwrap_or("exit code 0");
                Some(format!("ended without a result line ({error})"))
            }
            (Some(_), Some(error)) if !has_failed_test => Some(format!("no test failed, {error}")),
            (Some(_), None) if has_failed_test => Some("a test failed, exit code 0".to_owned()),
            _ => None,
        };
        if let Some(why) = why {
            let last = self.listing.tests.last();
            let last = last.map_or_else(|| "none".to_owned(), |(name, _)| name.clone());
            let ended = self.listing.tests.len();
            let line = format!("{why}; {ended} tests had ended, the last one was {last}");
            failures.push((self.name.clone(), vec![line]));
        }
        failures
    }

    /// Returns false if `test` is certainly not a test of this program: it is not listed, and no
    /// line of the list is missing.
    fn may_be_test(&self, test: &str) -> bool {
        let listed = self.listing.names(&Outcome::Ok);
        let is_complete = self.listing.result.is_some_and(|counts| counts.passed <= listed.len());
        listed.contains(test) || (!is_complete && !test.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::skips::parse;
    use super::*;

    const FAILING: &str = include_str!("recorded/failing.txt");
    const CRASHING: &str = include_str!("recorded/crashing.txt");

    fn run(output: &str, records: &str, error: Option<&str>) -> Tally {
        let mut listing = Listing::default();
        for line in output.lines() {
            listing.read(line);
        }
        let (wall, cpu) = Default::default();
        let (name, error) = ("program".to_owned(), error.map(str::to_owned));
        Run { name, listing, skips: parse(records), error, wall, cpu }.tally()
    }

    fn names(list: &[(String, String)]) -> Vec<&str> {
        list.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn tally_counts_a_recorded_skip_as_skipped() {
        let records = "p\ttests::skips\tskipped\tno moon\n";
        let without = run(FAILING, "", Some("exit code 101"));
        let with = run(FAILING, records, Some("exit code 101"));
        assert_eq!((without.passed, with.passed), (3, 2));
        assert_eq!(names(&with.skipped), ["tests::skips", "tests::sleeps", "tests::waits"]);
        assert_eq!(with.skipped[0].1, "no moon");
        assert_eq!(
            (with.skipped[1].1.as_str(), with.skipped[2].1.as_str()),
            ("ignored", "ignored: needs a moon")
        );
        assert_eq!((with.failed.len(), without.failed.len()), (2, 2));
    }

    #[test]
    fn tally_counts_a_reduced_test_as_passed() {
        let tally = run(FAILING, "p\ttests::passes\treduced\tno ksh\n", Some("exit code 101"));
        assert_eq!((tally.passed, names(&tally.reduced)), (3, vec!["tests::passes"]));
        let reduced_and_skipped =
            "p\ttests::passes\treduced\tno ksh\np\ttests::passes\tskipped\tno sh\n";
        let tally = run(FAILING, reduced_and_skipped, Some("exit code 101"));
        assert_eq!((tally.passed, tally.reduced.len(), tally.skipped.len()), (2, 0, 3));
    }

    #[test]
    fn tally_counts_a_failed_test_with_a_skip_as_failed() {
        let records = "p\ttests::compares\tskipped\tno moon\n";
        let tally = run(FAILING, records, Some("exit code 101"));
        assert_eq!((tally.passed, tally.failed.len(), tally.skipped.len()), (3, 2, 2));
    }

    #[test]
    fn tally_counts_a_crash_as_failure() {
        let tally = run(CRASHING, "", Some("signal: 6 (SIGABRT)"));
        assert_eq!(tally.passed, 1);
        let [(name, lines)] = &tally.failed[..] else { panic!("{tally:?}") };
        assert_eq!(name, "program");
        assert!(lines[0].contains("SIGABRT") && lines[0].contains("a_passes"), "{lines:?}");
    }

    #[test]
    fn tally_counts_a_contradicting_exit_status_as_failure() {
        let ok = "test a ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; \
                  0 filtered out; finished in 0.00s\n";
        assert_eq!(run(ok, "", None), Tally { passed: 1, ..Tally::default() });
        assert_eq!(run(ok, "", Some("exit code 3")).failed.len(), 1);
        assert_eq!(run(FAILING, "", None).failed.len(), 3);
        assert_eq!(run("", "", None).failed.len(), 1);
    }

    #[test]
    fn tally_counts_a_skip_on_another_thread_as_failure() {
        let tally = run(FAILING, "p\t?\tskipped\tno moon\n", Some("exit code 101"));
        assert_eq!((tally.passed, tally.failed.len()), (3, 3));
    }

    #[test]
    fn tally_counts_a_skip_with_a_garbled_line() {
        let garbled = FAILING.replace("test tests::skips ... ok", "test tests::skips ... hellook");
        let records = "p\ttests::skips\tskipped\tno moon\n";
        let tally = run(&garbled, records, Some("exit code 101"));
        assert_eq!((tally.passed, tally.failed.len(), tally.skipped.len()), (2, 2, 3));
    }
}
