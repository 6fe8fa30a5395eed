//! What a new thing of a kind touches beside its own folder.
//!
//! For each kind of thing that is added now and then, one that is there stands as an
//! example: the source files that name it, its own left out, are the places that the next
//! one needs too. They may become fewer, never more.

use super::{Finding, program};
use crate::house::House;

/// A thing that is there.
struct Example {
    /// What it is one of.
    kind: &'static str,
    /// How source text names it.
    names: &'static [&'static str],
    /// Its own files and folders.
    own: &'static [&'static str],
    /// Other source files that may name it.
    most: usize,
}

/// An example of each kind. CONTRIBUTING.md tells what to do in those places.
const EXAMPLES: [Example; 5] = [
    Example {
        kind: "a setting",
        names: &["harvest_mask"],
        // Devices that have it, and what reads it of an archive.
        own: &["crates/bench/src/dut/", "crates/archive/"],
        most: 3,
    },
    Example {
        kind: "a kind of device",
        names: &["DutKind::Command", "CommandDut"],
        own: &["crates/bench/src/dut/command.rs", "crates/model/src/settings/command.rs"],
        most: 3,
    },
    Example {
        kind: "a generator",
        names: &["GeneratorKind::Otg", "otg::"],
        own: &["crates/bench/src/generator/otg/"],
        most: 3,
    },
    Example {
        kind: "a statistic",
        names: &["rank::", "mod rank;"],
        own: &["crates/stats/src/rank.rs"],
        most: 3,
    },
    Example {
        kind: "an output form",
        names: &["csv::render", "mod csv;"],
        own: &["crates/results/src/document/form/csv.rs"],
        most: 1,
    },
];

/// A new thing touches as few places as those of its kind that are there.
pub(super) fn touches(house: &House) -> Vec<Finding> {
    EXAMPLES.iter().flat_map(|example| offends(house, example)).collect()
}

fn offends(house: &House, example: &Example) -> Option<Finding> {
    let places = places(house, example);
    let (kind, names) = (example.kind, example.names.join(" or "));
    let what = match places.len() {
        0 => format!("{kind}: nothing names {names} any more; take another example"),
        n if n > example.most => {
            format!("{kind} touches {n} files, {} were enough: {}", example.most, places.join(", "))
        }
        _ => return None,
    };
    Some(Finding::new("xtask/src/rules/touches.rs", 0, what))
}

/// Source files that name it and are not its own; what tests say does not count.
fn places<'a>(house: &'a House, example: &Example) -> Vec<&'a str> {
    let is_source = |path: &str| {
        path.starts_with("crates/")
            && path.contains("/src/")
            && path.ends_with(".rs")
            && !path.contains("tests")
    };
    house
        .files
        .iter()
        .filter(|file| is_source(&file.path))
        .filter(|file| !example.own.iter().any(|own| file.path.starts_with(own)))
        .filter(|file| {
            let code = program(&file.text);
            let mut lines = code.lines().map(|line| line.split("//").next().unwrap_or(line));
            lines.any(|line| example.names.iter().any(|name| line.contains(name)))
        })
        .map(|file| file.path.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: Example =
        Example { kind: "a device", names: &["Kind::New"], own: &["crates/b/src/new/"], most: 1 };

    #[test]
    fn places_beyond_the_limit_are_named_and_tests_are_free() {
        let own = ("crates/b/src/new/mod.rs", "Kind::New");
        let one = ("crates/b/src/mod.rs", "// Kind::New\nKind::New => x,");
        let tested = ("crates/b/src/t.rs", "x\n#[cfg(test)]\nmod tests {\nKind::New\n}\n");
        let house = House::of(&[own, one, tested]);
        assert_eq!(offends(&house, &DEVICE), None);
        let house = House::of(&[own, one, ("crates/c/src/x.rs", "if k == Kind::New {}")]);
        let finding = offends(&house, &DEVICE).expect("a finding").to_string();
        assert!(
            finding.ends_with(
                "a device touches 2 files, 1 were enough: crates/b/src/mod.rs, crates/c/src/x.rs"
            ),
            "{finding}"
        );
        let gone = offends(&House::of(&[own]), &DEVICE).expect("a finding").to_string();
        assert!(gone.contains("take another example"), "{gone}");
    }
}
