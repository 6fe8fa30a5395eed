//! The shipped experiments answer their questions.

use crate::support::Lab;
use std::path::{Path, PathBuf};

/// Shipped experiments, by their paths.
fn experiments() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let entries = std::fs::read_dir(folder).expect("experiments");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "toml")).collect();
    paths.sort();
    assert!(paths.len() > 40, "{paths:?}");
    paths
}

#[test]
fn shipped_experiment_plans_no_comparison_without_an_answer() {
    let lab = Lab::new("");
    for path in experiments() {
        let path = path.to_string_lossy();
        let planned = lab.fwdlab(&["plan", &path]).expect(0).stdout;
        assert!(!planned.contains("no answer:"), "{path}: {planned}");
    }
}

/// A line `# Range: LABEL LOW % to HIGH %` of a file: the expected difference.
fn ranges(text: &str) -> Vec<(String, f64, f64)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# Range: "));
    let read = |line: &str| -> Option<(String, f64, f64)> {
        let (low, high) = line.strip_suffix(" %")?.split_once(" % to ")?;
        let (label, low) = low.rsplit_once(' ')?;
        Some((label.to_owned(), low.parse().ok()?, high.parse().ok()?))
    };
    lines.map(|line| read(line).unwrap_or_else(|| panic!("`{line}` is no range"))).collect()
}

#[test]
fn shipped_experiment_stays_in_its_range_in_simulation() {
    let lab = Lab::new("");
    let mut checked = 0;
    for path in experiments() {
        let text = std::fs::read_to_string(&path).expect("a file");
        let ranges = ranges(&text);
        if ranges.is_empty() {
            continue;
        }
        let path = path.to_string_lossy();
        let command = ["run", &path, "--testbed", "sim", "--no-report", "--quiet", "--json"];
        let json = lab.fwdlab(&command).expect(0).json();
        for (label, low, high) in ranges {
            let mut compared = json["comparisons"].as_array().expect("comparisons").iter();
            let one = compared.find(|one| one["label"] == label.as_str());
            let ratio =
                one.and_then(|one| one["outcome"]["compared"]["comparison"]["ratio"].as_f64());
            let percent = 100.0 * (ratio.unwrap_or_else(|| panic!("{path}: no {label}")) - 1.0);
            assert!((low..=high).contains(&percent), "{path}: {label} {percent:.1} %");
            checked += 1;
        }
    }
    assert!(checked >= 2, "{checked}");
}
