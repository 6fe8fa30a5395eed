//! House rules that a program can check. ARCHITECTURE.md explains the reasons.
//!
//! A rule is a function from the files to its findings; [`RULES`] lists them.

mod circles;
mod documents;
mod graph;
mod places;
mod sources;
mod versions;

use crate::tree::SourceTree;
use anyhow::{Result, bail};
use std::fmt;
use std::path::Path;

/// Finds violations in a source tree.
type Rule = fn(&SourceTree) -> Vec<Finding>;

/// Every rule with its name.
const RULES: &[(&str, Rule)] = &[
    ("crate graph", graph::dependencies),
    ("external crates are used by allowed crates only", graph::outside),
    ("modules form no cycles", circles::circles),
    ("only crates/netio contains unsafe code", sources::unsafe_code),
    ("model, packet and search do no I/O", sources::purity),
    ("tests report skips through fwdlab_testdata", sources::skips),
    ("no documentation tests", sources::documentation_tests),
    ("source files are short", sources::length),
    ("no absolute paths of a machine", places::machine_paths),
    ("no registry but crates.io", places::registries),
    ("all files name the same version", versions::versions),
    ("ARCHITECTURE.md lists every crate", documents::crates_on_the_map),
    ("docs/SUMMARY.md lists every page", documents::pages_in_the_book),
    ("every experiment has a first comment", documents::experiments_explained),
    ("documents refer to existing files", documents::references),
    ("documents name existing commands", documents::commands),
    ("INVARIANTS.md names existing tests", documents::tests),
];

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Line from 1; 0 for the whole file.
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Checks the repository against all rules and prints the violations.
pub(crate) fn check(root: &Path) -> Result<()> {
    let tree = SourceTree::read(root)?;
    let mut violations = 0;
    for (name, rule) in RULES {
        let findings = rule(&tree);
        println!("{name}: {}", if findings.is_empty() { "ok" } else { "FAILED" });
        for finding in &findings {
            println!("  {finding}");
        }
        violations += findings.len();
    }
    match violations {
        0 => Ok(()),
        n => bail!("{n} violations of the house rules"),
    }
}

/// Returns lines with their numbers, from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, line)| (i + 1, line))
}

/// Returns a file's text up to its unit tests.
fn program(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or(text, |end| match text[end..].find('{') {
        // More code follows `mod tests;`.
        Some(open) if !text[end..end + open].contains(';') => &text[..end],
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_follows_all_rules() {
        let tree = match SourceTree::read(&crate::root()) {
            Ok(tree) => tree,
            Err(error) => {
                return fwdlab_testdata::skip(&format!("the house rules: {error:#}"));
            }
        };
        assert!(tree.files.len() > 100, "only {} files were read", tree.files.len());
        let findings: Vec<String> = RULES
            .iter()
            .flat_map(|(name, rule)| rule(&tree).into_iter().map(move |f| format!("{name}: {f}")))
            .collect();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
