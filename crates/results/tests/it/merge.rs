//! Merges stores of shares, or fails with a reason and writes nothing.

use crate::support::{firewall, invocation, plan, record};
use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::store::{Invocation, MergeError, Store, StoreError, merge, merge_anew};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Three variants in four blocks.
fn whole() -> Plan {
    plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 4)
}

/// A store in `directory` with these runs of the plan, measured on `bed`.
fn share(directory: &Path, name: &str, plan: &Plan, bed: Option<&str>, runs: &[u32]) -> PathBuf {
    let path = directory.join(name).join("run.sqlite");
    let mut store = Store::open(&path).unwrap();
    store.adopt_plan(plan, "version = 1\n").unwrap();
    let bed = bed.map(str::to_owned);
    let bed_invocation = Invocation { bed, ..invocation(plan.base.testbed.kind) };
    // The first invocation has no runs and is dropped.
    store.begin_invocation(&bed_invocation).unwrap();
    store.begin_invocation(&bed_invocation).unwrap();
    for &run in runs {
        store.insert_run(&record(plan, run)).unwrap();
    }
    path
}

/// Result of merging `from`.
fn merge_shares(directory: &TempDir, from: &[PathBuf], partial: bool) -> Result<Store, MergeError> {
    let to = directory.path().join("out/run.sqlite");
    merge(from, &to, partial).map(|_| Store::open_read_only(&to).unwrap())
}

/// File names in the output directory.
fn written(directory: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(directory.path().join("out"));
    let names = entries.into_iter().flatten().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn merge_of_shares_equals_a_single_store() {
    let (directory, plan) = (TempDir::new().unwrap(), whole());
    let (even, odd): (Vec<u32>, Vec<u32>) = (0..12).partition(|run| (run / 3) % 2 == 0);
    let shares = [
        share(directory.path(), "b", &plan, Some("rack2"), &odd),
        share(directory.path(), "a", &plan, Some("rack1"), &even),
        share(directory.path(), "none", &plan, Some("rack3"), &[]),
    ];
    let contents = merge_shares(&directory, &shares, false).unwrap().contents().unwrap();
    assert_eq!(contents.plan, plan);
    let alone: Vec<_> = (0..12).map(|run| record(&plan, run)).collect();
    assert_eq!(contents.runs, alone);
    assert_eq!(contents.invocations.len(), 2, "those with runs");
    assert_eq!(contents.beds(), [Some("rack1"), Some("rack2")]);
    for (run, bed) in contents.runs.iter().zip(contents.run_beds()) {
        assert_eq!(bed, Some(if even.contains(&run.run) { "rack1" } else { "rack2" }));
    }
    assert_eq!(written(&directory), ["run.sqlite"]);
}

#[test]
fn merge_rejects_incomplete_or_different_stores() {
    let (directory, plan) = (TempDir::new().unwrap(), whole());
    let a = share(directory.path(), "a", &plan, None, &[0, 1, 2, 3, 4, 5]);
    let b = share(directory.path(), "b", &plan, None, &[6, 7, 8, 9, 10, 11]);
    let again = share(directory.path(), "again", &plan, None, &[7]);
    let error_of = |from: &[&PathBuf]| {
        let from: Vec<PathBuf> = from.iter().map(|path| (*path).clone()).collect();
        let error = merge_shares(&directory, &from, false).unwrap_err();
        assert_eq!(written(&directory), Vec::<String>::new(), "{error}");
        error.to_string()
    };

    let twice = error_of(&[&a, &b, &again]);
    assert!(twice.starts_with("run 7 (block 2) is in "), "{twice}");
    assert!(twice.contains("b/run.sqlite") && twice.contains("again/run.sqlite"), "{twice}");

    let missing = error_of(&[&a]);
    assert!(missing.starts_with("6 of 12 runs are in none of the 1 stores: run 6 (block 2), "));

    let mut longer = whole();
    longer.trial.duration_ns += 1_000_000_000;
    let other = share(directory.path(), "other", &longer.sealed(), None, &[6]);
    let plans = error_of(&[&a, &other]);
    assert!(plans.contains("other/run.sqlite holds another plan"), "{plans}");

    let mut pretended = Store::open(&directory.path().join("sim/run.sqlite")).unwrap();
    pretended.adopt_plan(&plan, "").unwrap();
    pretended.begin_invocation(&invocation(TestbedKind::Sim)).unwrap();
    pretended.insert_run(&record(&plan, 6)).unwrap();
    let testbeds = error_of(&[&a, &pretended.path().to_path_buf()]);
    assert!(testbeds.contains("was measured on testbed netns"), "{testbeds}");

    let absent = error_of(&[&a, &directory.path().join("absent/run.sqlite")]);
    assert!(absent.contains("absent/run.sqlite doesn't exist"), "{absent}");
}

#[test]
fn merge_partial_does_not_replace_a_store() {
    let (directory, plan) = (TempDir::new().unwrap(), whole());
    let shares = [share(directory.path(), "a", &plan, Some("rack1"), &[0, 1, 2])];
    let store = merge_shares(&directory, &shares, true).unwrap();
    assert_eq!(store.missing_runs(&plan).unwrap().len(), 9);
    let error = merge_shares(&directory, &shares, true).unwrap_err();
    assert!(matches!(error, MergeError::Exists { .. }), "{error}");
    // The merged store accepts further runs.
    drop(store);
    let mut store = Store::open(&directory.path().join("out/run.sqlite")).unwrap();
    store.adopt_plan(&plan, "version = 1\n").unwrap();
    store.begin_invocation(&invocation(TestbedKind::Netns)).unwrap();
    store.insert_run(&record(&plan, 3)).unwrap();
}

#[test]
fn merge_anew_rejects_a_locked_store_and_keeps_the_old_one() {
    let (directory, plan) = (TempDir::new().unwrap(), whole());
    let all: Vec<u32> = (0..12).collect();
    let from = [share(directory.path(), "a", &plan, None, &all)];
    let to = directory.path().join("out/run.sqlite");
    assert_eq!(merge_anew(&from, &to, false).unwrap().1, None, "nothing was there");
    let busy = Store::open(&to).unwrap();
    for is_anew in [true, false] {
        let error = match is_anew {
            true => merge_anew(&from, &to, false).unwrap_err(),
            false => merge(&from, &to, false).unwrap_err(),
        };
        let is_kept = match error {
            MergeError::Store(StoreError::Locked { .. }) => is_anew,
            MergeError::Exists { .. } => !is_anew,
            _ => false,
        };
        assert!(is_kept, "{error}");
    }
    drop(busy);
    let backup = directory.path().join("out/run.sqlite.1");
    assert_eq!(merge_anew(&from, &to, false).unwrap().1, Some(backup.clone()));
    for store in [&to, &backup] {
        assert_eq!(Store::open_read_only(store).unwrap().recorded_runs().unwrap().len(), 12);
    }
}

#[test]
fn merge_ignores_leftovers_of_a_crash() {
    let (directory, plan) = (TempDir::new().unwrap(), whole());
    let shares = [share(directory.path(), "a", &plan, None, &(0..12).collect::<Vec<u32>>())];
    std::fs::create_dir(directory.path().join("out")).unwrap();
    std::fs::write(directory.path().join("out/run.sqlite.part"), "half").unwrap();
    assert_eq!(
        merge_shares(&directory, &shares, false).unwrap().recorded_runs().unwrap().len(),
        12
    );
    assert_eq!(written(&directory), ["run.sqlite"]);
}
