//! The house rules that a program can check. ARCHITECTURE.md gives the reasons.
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

/// Finds what offends in a house.
type Rule = fn(&SourceTree) -> Vec<Finding>;

/// Every rule with its name.
const RULES: &[(&str, Rule)] = &[
    ("crate graph", graph::dependencies),
    ("outside crates kept where they belong", graph::outside),
    ("modules form no circles", circles::circles),
    ("unsafe in crates/netio only", sources::unsafe_code),
    ("model and packet are pure", sources::purity),
    ("skips go through one helper", sources::skips),
    ("no documentation tests", sources::documentation_tests),
    ("files stay short", sources::length),
    ("no paths of a machine", places::machine_paths),
    ("no other registry", places::registries),
    ("one version everywhere", versions::versions),
    ("every crate is on the map", documents::crates_on_the_map),
    ("every experiment says what it is for", documents::experiments_explained),
    ("documents point at things that exist", documents::references),
    ("documents name commands that exist", documents::commands),
    ("the map names tests that exist", documents::tests),
];

/// Something against a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// From 1; 0 for the file as a whole.
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

/// Holds the repository against all rules and prints what offends.
pub(crate) fn check(root: &Path) -> Result<()> {
    let house = SourceTree::read(root)?;
    let mut offences = 0;
    for (name, rule) in RULES {
        let findings = rule(&house);
        println!("{name}: {}", if findings.is_empty() { "kept" } else { "BROKEN" });
        for finding in &findings {
            println!("  {finding}");
        }
        offences += findings.len();
    }
    match offences {
        0 => Ok(()),
        n => bail!("{n} offences against the house rules"),
    }
}

/// Lines with their numbers, from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, line)| (i + 1, line))
}

/// A file up to its tests.
fn program(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or(text, |end| match text[end..].find('{') {
        // `mod tests;` stands above more of the program.
        Some(open) if !text[end..end + open].contains(';') => &text[..end],
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_keeps_its_rules() {
        let house = match SourceTree::read(&crate::root()) {
            Ok(house) => house,
            Err(error) => {
                return fwdlab_testdata::skip(&format!("the house rules: {error:#}"));
            }
        };
        assert!(house.files.len() > 100, "only {} files were read", house.files.len());
        let findings: Vec<String> = RULES
            .iter()
            .flat_map(|(name, rule)| rule(&house).into_iter().map(move |f| format!("{name}: {f}")))
            .collect();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
