//! Tests of the store's public interface: storage, errors, crash recovery.

use crate::support;
use crate::support::{fill, firewall, full_store, invocation, plan, record, store};
use fwdlab_model::record::{Calibration, Checkpoint, MethodTrial};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::units::FrameSize;
use fwdlab_model::{Plan, Warning};
use fwdlab_results::store::{Store, StoreError, set_aside};
use proptest::prelude::*;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn small_plan() -> Plan {
    plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 3)
}

#[test]
fn store_reads_back_exactly() {
    let plan = small_plan();
    let contents = full_store(&plan).contents().unwrap();
    assert_eq!(contents.plan, plan);
    assert_eq!(contents.experiment, "version = 1\n");
    assert_eq!(contents.runs.len(), 9);
    for (index, run) in contents.runs.iter().enumerate() {
        assert_eq!(run, &record(&plan, index as u32));
    }
    assert_eq!(contents.run_invocations, [1; 9]);
    assert_eq!(contents.invocations[0].invocation, invocation(TestbedKind::Netns));
    assert_eq!(contents.calibrations[0].rates_pps, [7_100_000.25, 7_120_000.5, 7_090_000.125]);
    assert_eq!(contents.calibrations[1].family, "inet6");
}

#[test]
fn counters_keep_all_64_bits() {
    let plan = small_plan();
    let mut run = record(&plan, 0);
    run.trial.counters[0].before = u64::MAX;
    run.trial.counters[0].after = 41;
    run.trial.intended = Some(u64::MAX - 1);
    run.warnings.push(Warning::NotSteady { ratio: 0.1 + 0.2 });
    let mut store = store(&plan, []);
    store.insert_run(&run).unwrap();
    assert_eq!(store.runs().unwrap(), [run]);
    assert_eq!(store.runs().unwrap()[0].trial.counters[0].delta(), 42);
}

#[test]
fn insert_run_rejects_values_that_do_not_read_back() {
    let plan = small_plan();
    let mut run = record(&plan, 0);
    run.warnings.push(Warning::NotSteady { ratio: f64::NAN });
    let mut store = store(&plan, []);
    let error = store.insert_run(&run).unwrap_err();
    assert!(matches!(error, StoreError::Value { .. }), "{error}");
    assert_eq!(store.missing_runs(&plan).unwrap().len(), 9);
}

#[test]
fn checkpoints_last_until_their_run_is_stored() {
    let plan = small_plan();
    let mut store = store(&plan, []);
    let checkpoint = |load: u64| Checkpoint {
        started_at: "2024-03-05T10:00:00.000Z".into(),
        request: format!("{load}"),
        trial: MethodTrial { load, ..MethodTrial::default() },
        ..Checkpoint::default()
    };
    for (number, load) in (0..).zip([500, 400, 300]) {
        store.insert_checkpoint(2, number, &checkpoint(load)).unwrap();
    }
    store.insert_checkpoint(4, 0, &checkpoint(7)).unwrap();
    assert_eq!(store.checkpoints(2).unwrap(), [500, 400, 300].map(checkpoint));
    // A different trial invalidates the later ones.
    store.insert_checkpoint(2, 1, &checkpoint(410)).unwrap();
    assert_eq!(store.checkpoints(2).unwrap(), [500, 410].map(checkpoint));
    assert_eq!(store.unfinished_trials().unwrap(), 3);
    assert_eq!(store.missing_runs(&plan).unwrap().len(), 9, "a checkpoint is no run");
    assert_eq!(store.contents().unwrap().runs, []);
    store.insert_run(&record(&plan, 2)).unwrap();
    assert_eq!(store.checkpoints(2).unwrap(), []);
    assert_eq!(store.checkpoints(4).unwrap(), [checkpoint(7)]);
}

#[test]
fn insert_run_rejects_a_duplicate_and_keeps_the_first() {
    let plan = small_plan();
    let mut store = store(&plan, [2]);
    let mut again = record(&plan, 2);
    again.trial.window.forwarded = 1;
    let error = store.insert_run(&again).unwrap_err();
    assert!(matches!(error, StoreError::DuplicateRun { run: 2, .. }), "{error}");
    assert_eq!(store.runs().unwrap(), [record(&plan, 2)]);
}

#[test]
fn insert_run_rejects_a_run_outside_the_plan() {
    let plan = small_plan();
    let mut store = store(&plan, []);
    let mut run = record(&plan, 0);
    run.block = 2;
    let error = store.insert_run(&run).unwrap_err();
    assert!(matches!(error, StoreError::NotPlanned { run: 0, block: 2, .. }), "{error}");
}

#[test]
fn insert_run_requires_an_invocation() {
    let plan = small_plan();
    let mut store = Store::memory().unwrap();
    store.adopt_plan(&plan, "").unwrap();
    let error = store.insert_run(&record(&plan, 0)).unwrap_err();
    assert!(matches!(error, StoreError::NoInvocation { .. }), "{error}");
}

#[test]
fn adopt_plan_rejects_another_plan_with_a_next_step() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    let first = small_plan();
    let mut second = plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 5);
    second.title = "Something else".into();
    let mut store = Store::open(&path).unwrap();
    fill(&mut store, &first, [0, 1]);
    let message = store.adopt_plan(&second, "").unwrap_err().to_string();
    for part in [&first.title, &first.hash, &second.title, &second.hash] {
        assert!(message.contains(part.as_str()), "{part} is missing in: {message}");
    }
    assert!(message.contains("run.sqlite") && message.contains("--fresh"), "{message}");

    drop(store);
    let backup = set_aside(&path).unwrap();
    assert_eq!(backup, directory.path().join("run.sqlite.1"));
    let mut store = Store::open(&path).unwrap();
    store.adopt_plan(&second, "").unwrap();
    assert_eq!(Store::open_read_only(&backup).unwrap().runs().unwrap().len(), 2);
    drop(store);
    assert_eq!(set_aside(&path).unwrap(), directory.path().join("run.sqlite.2"));
}

/// Earlier versions included the name in the hash.
#[test]
fn adopt_plan_recognises_a_plan_with_an_old_hash() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    let requested = small_plan().sealed();
    let mut store = Store::open(&path).unwrap();
    let before = Plan { hash: "0123456789abcdef".into(), ..requested.clone() };
    fill(&mut store, &before, [0, 1]);
    store.adopt_plan(&requested, "").unwrap();
    let renamed = Plan { name: "another name".into(), ..requested.clone() }.sealed();
    assert_eq!(renamed.hash, requested.hash);
    let mut other = requested;
    other.trial.duration_ns += 1;
    assert!(store.adopt_plan(&other.sealed(), "").is_err());
}

#[test]
fn begin_invocation_rejects_another_testbed() {
    let plan = small_plan();
    let mut store = store(&plan, [0]);
    let error = store.begin_invocation(&invocation(TestbedKind::Sim)).unwrap_err();
    assert!(matches!(error, StoreError::OtherTestbed { .. }), "{error}");
    store.begin_invocation(&invocation(TestbedKind::Netns)).unwrap();
}

#[test]
fn second_writer_is_rejected_and_readers_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    let plan = small_plan();
    let mut writer = Store::open(&path).unwrap();
    fill(&mut writer, &plan, [0]);
    let error = Store::open(&path).unwrap_err();
    let pid = std::process::id();
    assert!(matches!(error, StoreError::Locked { pid: Some(p), .. } if p == pid), "{error}");
    assert!(matches!(set_aside(&path).unwrap_err(), StoreError::Locked { .. }));

    let reader = Store::open_read_only(&path).unwrap();
    assert_eq!(reader.contents().unwrap().runs.len(), 1);
    writer.insert_run(&record(&plan, 1)).unwrap();
    assert_eq!(reader.contents().unwrap().runs.len(), 2);
    drop((writer, reader));
    Store::open(&path).expect("the lock ends with its holder");
    assert_eq!(names(directory.path()), ["run.sqlite"], "nothing is left beside the store");
}

#[test]
fn reader_cannot_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    let plan = small_plan();
    fill(&mut Store::open(&path).unwrap(), &plan, [0]);
    let mut reader = Store::open_read_only(&path).unwrap();
    let error = reader.begin_invocation(&invocation(TestbedKind::Netns)).unwrap_err();
    assert!(matches!(error, StoreError::NotWritable { .. }), "{error}");
}

#[test]
fn store_of_another_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    drop(Store::open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    for error in [Store::open(&path).unwrap_err(), Store::open_read_only(&path).unwrap_err()] {
        assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
        assert!(error.to_string().contains("use a newer fwdlab"), "{error}");
    }
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 9).unwrap();
    drop(connection);
    for error in [Store::open(&path).unwrap_err(), Store::open_read_only(&path).unwrap_err()] {
        assert!(matches!(error, StoreError::Older { found: 9, .. }), "{error}");
        assert!(error.to_string().contains("--fresh"), "{error}");
    }
}

#[test]
fn open_rejects_a_foreign_file_and_keeps_it_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "these are notes, long enough to fill a header".repeat(10)).unwrap();
    let other = directory.path().join("other.sqlite");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    for path in [text, other] {
        let before = std::fs::read(&path).unwrap();
        for error in [Store::open(&path).unwrap_err(), Store::open_read_only(&path).unwrap_err()] {
            assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[test]
fn damaged_store_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    let plan = small_plan();
    fill(&mut Store::open(&path).unwrap(), &plan, 0..9);
    let mut bytes = std::fs::read(&path).unwrap();
    let length = bytes.len();
    bytes[4096..length].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let error = Store::open_read_only(&path).and_then(|store| store.contents()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    let backup = set_aside(&path).expect("a damaged store can be moved aside");
    assert_eq!(std::fs::metadata(backup).unwrap().len() as usize, length);
}

#[test]
fn missing_and_unwritable_paths_are_reported() {
    let error = Store::open_read_only(Path::new("/nowhere/run.sqlite")).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    assert!(matches!(set_aside(Path::new("/nowhere/run.sqlite")), Err(StoreError::Missing { .. })));
    // A directory in which not even root can create a file.
    let error = Store::open(Path::new("/proc/self/run.sqlite")).unwrap_err();
    assert!(matches!(error, StoreError::NotWritable { .. }), "{error}");
    assert!(error.to_string().contains("/proc/self/run.sqlite"), "{error}");
}

#[test]
fn empty_store_has_no_contents() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    assert!(matches!(Store::memory().unwrap().contents(), Err(StoreError::NoPlan { .. })));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(Store::open_read_only(&path), Err(StoreError::NoPlan { .. })));
    Store::open(&path).expect("an empty file becomes a store");
}

#[test]
fn executed_instructions_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    let plan = small_plan();
    let mut store = Store::open(&path).unwrap();
    fill(&mut store, &plan, [0]);
    let counted = support::counted(&plan, 1, &[("ip_forward", &[126.0, 127.5], false)]);
    store.insert_run(&counted).unwrap();
    assert_eq!(store.runs().unwrap()[1], counted);
    assert_eq!(store.runs().unwrap()[0].trial.executed, None);
    let figures = store.figures_only(|_| false).unwrap();
    assert_eq!(figures.runs[1].trial.executed, counted.trial.executed);
}

/// A writer killed in the middle loses at most the run in progress.
#[test]
fn a_killed_writer_loses_no_finished_run() {
    const CHILD: &str = "FWDLAB_TEST_KILLED_STORE";
    let plan = plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 200);
    if let Some(path) = std::env::var_os(CHILD) {
        let mut store = Store::open(Path::new(&path)).unwrap();
        fill(&mut store, &plan, []);
        for run in &plan.runs {
            store.insert_run(&record(&plan, run.index)).unwrap();
            println!("recorded {}", run.index);
        }
        std::thread::sleep(std::time::Duration::from_secs(60));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::a_killed_writer_loses_no_finished_run", "--nocapture"])
        .env(CHILD, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("recorded 6")));
    assert!(
        matches!(Store::open(&path), Err(StoreError::Locked { pid: Some(p), .. }) if p == child.id())
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let last = lines.filter(|line| line.starts_with("recorded ")).last();
    let acknowledged: u32 = last.map_or(6, |line| line[9..].parse().unwrap());

    assert!(path.with_extension("sqlite-wal").exists(), "the log was left behind");
    let reader = Store::open_read_only(&path).unwrap();
    assert!(reader.recorded_runs().unwrap().len() as u32 > acknowledged);
    drop(reader);
    let mut store = Store::open(&path).expect("the lock ended with the process");
    let missing = store.missing_runs(&plan).unwrap();
    assert!(missing[0] > acknowledged, "{} after {acknowledged}", missing[0]);
    for (run, index) in store.runs().unwrap().iter().zip(0..) {
        assert_eq!(run, &record(&plan, index));
    }
    store.adopt_plan(&plan, "version = 1\n").unwrap();
    store.begin_invocation(&invocation(TestbedKind::Netns)).unwrap();
    store.insert_run(&record(&plan, missing[0])).unwrap();
    assert_eq!(store.missing_runs(&plan).unwrap(), missing[1..]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn missing_runs_are_the_complement_of_recorded_runs(recorded in prop::collection::vec(any::<bool>(), 9)) {
        let plan = small_plan();
        let kept: Vec<u32> = (0..9).filter(|&i| recorded[i as usize]).collect();
        let absent: Vec<u32> = (0..9).filter(|&i| !recorded[i as usize]).collect();
        // In any order of insertion.
        let store = store(&plan, kept.iter().rev().copied());
        prop_assert_eq!(store.missing_runs(&plan).unwrap(), absent);
        prop_assert_eq!(store.runs().unwrap().iter().map(|r| r.run).collect::<Vec<_>>(), kept);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The ceiling of a mix of frame sizes is not the ceiling of one size.
#[test]
fn calibrations_distinguish_mixes_from_sizes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    let plan = small_plan();
    let mut store = Store::open(&path).unwrap();
    fill(&mut store, &plan, [0]);
    let fixed = store.calibrations().unwrap();
    drop(store);
    let mut store = Store::open(&path).unwrap();
    let mix = FrameSize::parse("imix").expect("known");
    let mixed = Calibration { frame_size: mix, ..fixed[0].clone() };
    store.insert_calibration(&mixed).unwrap();
    let found = store.calibrations().unwrap();
    assert_eq!(found.last(), Some(&mixed));
    assert_eq!(found[..fixed.len()], fixed);
}
