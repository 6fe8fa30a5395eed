//! The shipped experiments answer their questions.

use crate::support::Lab;
use fwdlab_testdata::{Expectation, expectations};
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

/// Files without a model of their effect are checked against the real device only, by
/// `cargo xtask experiments`.
#[test]
fn shipped_experiment_stays_in_its_range_in_simulation() {
    let lab = Lab::new("");
    let mut checked = 0;
    for path in experiments() {
        let text = std::fs::read_to_string(&path).expect("a file");
        let expected = expectations(&text).expect("expectations");
        if expected.is_empty() || !text.contains("[testbed.sim") {
            continue;
        }
        let path = path.to_string_lossy();
        let command = ["run", &path, "--testbed", "sim", "--no-report", "--quiet", "--json"];
        let json = lab.fwdlab(&command).expect(0).json();
        for one in expected {
            let Expectation::Range { label, low, high } = one else { continue };
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
