//! Skip records written by `crates/testdata/src/skip.rs`: lines of program, test, kind and reason,
//! separated by tabs.

use std::fs;
use std::path::Path;

/// A test that reported that it could not run, or only in part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Skip {
    /// Name of the reporting thread, which is the test's name.
    pub(crate) test: String,
    /// True if only a part was skipped.
    pub(crate) is_part: bool,
    pub(crate) reason: String,
}

/// Parses the records of a program. An invalid line is an error of the helper; it becomes a skip
/// without a test, which the summary reports as a failure.
pub(crate) fn parse(text: &str) -> Vec<Skip> {
    let record = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
        [_, test, kind @ ("skipped" | "reduced"), reason] => {
            Skip { test: test.to_owned(), is_part: kind == "reduced", reason: reason.to_owned() }
        }
        _ => Skip {
            test: String::new(),
            is_part: false,
            reason: format!("not a skip record: {line}"),
        },
    };
    let mut skips: Vec<Skip> = text.lines().map(record).collect();
    // A test may call its helper several times.
    skips.sort();
    skips.dedup();
    skips
}

/// Reads the records in a file; empty if no test created it.
pub(crate) fn read(path: &Path) -> Vec<Skip> {
    parse(&fs::read_to_string(path).unwrap_or_default())
}

/// Returns the reason why a test did not run.
pub(crate) fn reason<'a>(skips: &'a [Skip], test: &str) -> Option<&'a str> {
    let mut all = skips.iter().filter(|skip| skip.test == test && !skip.is_part);
    all.next().map(|skip| skip.reason.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_removes_duplicate_records() {
        let text = "vm-1\ta::b\tskipped\tno QEMU\nvm-1\ta::b\tskipped\tno QEMU\n\
                    vm-1\ta::c\treduced\tno ksh\n";
        let skips = parse(text);
        assert_eq!(skips.len(), 2);
        assert_eq!(reason(&skips, "a::b"), Some("no QEMU"));
        assert_eq!(reason(&skips, "a::c"), None);
    }

    #[test]
    fn parse_turns_an_invalid_line_into_a_skip_without_test() {
        for line in ["a::b\tskipped\tno QEMU", "vm-1\ta::b\tpassed\tno QEMU", "x"] {
            let [skip] = &parse(line)[..] else { panic!("{line}") };
            assert!(skip.test.is_empty() && skip.reason.contains(line), "{skip:?}");
        }
    }
}
