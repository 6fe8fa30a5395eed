//! Parses the output of a libtest program line by line.
//!
//! The format is libtest's default, `pretty`: <https://doc.rust-lang.org/rustc/tests/index.html>.
//! Its JSON output is unstable.

use std::collections::BTreeSet;

/// Result of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    Failed,
    /// Ignored by libtest, with the reason of `#[ignore = "..."]`; empty if it has none.
    Ignored(String),
}

/// Output of a program so far.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Tests with their results, in the order in which they ended.
    pub(crate) tests: Vec<(String, Outcome)>,
    /// Lines that explain each failed test: its panic, or otherwise its output.
    pub(crate) failures: Vec<(String, Vec<String>)>,
    /// Numbers of the program's result line; `None` before it.
    pub(crate) result: Option<Counts>,
    section: Section,
}

/// Numbers of a result line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
}

/// Part of the output that the next line belongs to.
#[derive(Debug, Default)]
enum Section {
    #[default]
    Tests,
    /// Output of the failed test last named in `failures`.
    Output {
        /// True after the lines that explain the failure.
        ended: bool,
    },
}

impl Listing {
    /// Reads a line; returns the test that ends with it, if any.
    pub(crate) fn read(&mut self, line: &str) -> Option<(&str, &Outcome)> {
        if let Some(name) = heading(line) {
            self.failures.push((name.to_owned(), Vec::new()));
            self.section = Section::Output { ended: false };
        } else if let Section::Output { ended } = &mut self.section {
            let is_end = |line: &str| line == "stack backtrace:" || line.starts_with("note: ");
            *ended |= is_end(line);
            if line == "failures:" {
                self.section = Section::Tests;
            } else if !*ended && let Some((_, lines)) = self.failures.last_mut() {
                add(lines, line);
            }
        } else if let Some(counts) = result(line) {
            self.result = Some(counts);
        } else {
            let (name, outcome) = test(line)?;
            self.tests.push((name.to_owned(), outcome));
            return self.tests.last().map(|(name, outcome)| (name.as_str(), outcome));
        }
        None
    }

    /// Returns the names of the tests with `outcome`.
    pub(crate) fn names(&self, outcome: &Outcome) -> BTreeSet<&str> {
        let tests = self.tests.iter().filter(|(_, other)| other == outcome);
        tests.map(|(name, _)| name.as_str()).collect()
    }
}

/// Adds a line of a failed test; its panic replaces earlier output.
fn add(lines: &mut Vec<String>, line: &str) {
    if line.contains(" panicked at ") {
        lines.clear();
    }
    if !line.trim().is_empty() {
        lines.push(line.to_owned());
    }
}

/// Parses `test NAME ... RESULT`; a test that must panic has the suffix ` - should panic`.
fn test(line: &str) -> Option<(&str, Outcome)> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    let outcome = match outcome.split_once(", ").unwrap_or((outcome, "")) {
        ("ok", _) => Outcome::Ok,
        ("FAILED", _) => Outcome::Failed,
        ("ignored", reason) => Outcome::Ignored(reason.to_owned()),
        _ => return None,
    };
    Some((name, outcome))
}

/// Parses `---- NAME stdout ----`.
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Parses `test result: ok. 3 passed; 1 failed; 0 ignored; ...`.
fn result(line: &str) -> Option<Counts> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |what: &str| {
        let part = numbers.split("; ").find_map(|part| part.strip_suffix(what));
        part.and_then(|number| number.trim().parse().ok())
    };
    Some(Counts {
        passed: number("passed")?,
        failed: number("failed")?,
        ignored: number("ignored")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(text: &str) -> Listing {
        let mut listing = Listing::default();
        for line in text.lines() {
            listing.read(line);
        }
        listing
    }

    #[test]
    fn read_parses_a_recorded_run() {
        let read = listing(include_str!("recorded/failing.txt"));
        assert_eq!(read.result, Some(Counts { passed: 3, failed: 2, ignored: 2 }));
        assert_eq!(
            read.names(&Outcome::Ok).into_iter().collect::<Vec<_>>(),
            ["tests::must_panic", "tests::passes", "tests::skips"]
        );
        assert_eq!(read.names(&Outcome::Failed).len(), 2);
        assert_eq!(read.names(&Outcome::Ignored("needs a moon".into())).len(), 1);
        let [(first, lines), (second, others)] = &read.failures[..] else {
            panic!("{:?}", read.failures)
        };
        assert_eq!(
            (first.as_str(), second.as_str()),
            ("tests::compares", "tests::returns_an_error")
        );
        assert!(lines[0].contains("panicked at src/lib.rs"), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("left: 2")), "{lines:?}");
        assert_eq!(lines.len(), 4, "the backtrace is left out: {lines:?}");
        // An error that a test returns is printed without a panic.
        assert_eq!(others[..], ["Error: \"no luck\""]);
    }

    #[test]
    fn read_of_a_crashed_program_has_no_result() {
        let read = listing(include_str!("recorded/crashing.txt"));
        assert_eq!((read.result, read.tests.len()), (None, 1));
    }

    #[test]
    fn test_ignores_printed_text() {
        for line in ["test ... ok?", "tests ... ok", "test x ... okay", "test result: fine"] {
            assert_eq!(test(line), None, "{line}");
            assert_eq!(result(line), None, "{line}");
        }
    }
}
