//! What is exported is what the store holds: every file is read back.

use fwdlab_export::tables::TABLES;
use fwdlab_export::{Exported, export};
use fwdlab_model::record::{Counter, Counts, Sample, TrialRecord};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{RunRecord, Warning};
use fwdlab_results::store::{Invocation, Store};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::path::{Path, PathBuf};

const EXPERIMENT: &str = "version = 1\ntitle = \"Rate, \u{e9}t\u{e9}\"\n[testbed]\nkind = \"sim\"\n\
                          [design]\nblocks = 2\n[[factor]]\nname = \"routes\"\nlevels = [2, 1000]\n";

/// A store in `directory` with a run for each planned one: run `n` forwards `1000 + n` packets
/// a second in four samples.
fn store(directory: &Path) -> PathBuf {
    std::fs::create_dir_all(directory).unwrap();
    let path = directory.join("run.sqlite");
    let plan = fwdlab_model::load("rate.toml", EXPERIMENT, &|_| Ok(Vec::new())).unwrap();
    let mut store = Store::open(&path).unwrap();
    store.adopt_plan(&plan, EXPERIMENT).unwrap();
    let invocation = Invocation {
        started_at: "2026-01-31T10:00:00.000Z".into(),
        bed: None,
        environment: Default::default(),
        fwdlab_version: "test".into(),
        testbed: TestbedKind::Sim,
        testbed_reason: String::new(),
        simulated: true,
    };
    store.begin_invocation(&invocation).unwrap();
    for run in &plan.runs {
        let forwarded = 1000 + u64::from(run.index);
        let sample = |at: u64| Sample {
            at_ns: at * 250_000_000,
            duration_ns: 250_000_000,
            offered: 500,
            forwarded: forwarded / 4,
            variant: run.variants[0],
            valid: true,
            ..Sample::default()
        };
        let trial = TrialRecord {
            window_ns: 1_000_000_000,
            window: Counts { offered: 2000, forwarded },
            total: Counts { offered: 2000, forwarded },
            samples: (0..4).map(sample).collect(),
            counters: vec![Counter {
                name: "d0 rx_packets".into(),
                before: 5,
                after: 2005,
                expected: None,
            }],
            ..TrialRecord::default()
        };
        let warnings = match run.index {
            1 => vec![Warning::Unstamped { packets: 3 }],
            _ => Vec::new(),
        };
        let record = RunRecord {
            run: run.index,
            block: run.block,
            variants: run.variants.clone(),
            run_id: run.index + 1,
            started_at: format!("2026-01-31T10:0{}:00.000Z", run.index),
            trial,
            warnings,
            ..RunRecord::default()
        };
        store.insert_run(&record).unwrap();
    }
    path
}

/// All rows of a table.
fn rows(directory: &Path, table: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut todo = vec![directory.join(table)];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        rows.extend(file.get_row_iter(None).unwrap().map(Result::unwrap));
    }
    rows
}

/// A cell by its column's name.
fn cell<'a>(row: &'a Row, name: &str) -> &'a Field {
    let found = row.get_column_iter().find(|(column, _)| *column == name);
    found.unwrap_or_else(|| panic!("no column {name}")).1
}

#[test]
fn every_figure_is_read_back_as_the_store_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let (root, target) = (directory.path().join("results"), directory.path().join("tables"));
    let path = store(&root.join("a/rate"));
    let contents = Store::open_read_only(&path).unwrap().contents().unwrap();
    let exported = export(&path, &root, &target, None).unwrap().unwrap();
    assert_eq!(exported.runs, contents.runs.len());
    let runs = rows(&target, "runs");
    assert_eq!(runs.len(), 4);
    for row in &runs {
        let Field::Long(run) = *cell(row, "run") else { panic!("{row:?}") };
        let record = contents.runs.iter().find(|record| i64::from(record.run) == run).unwrap();
        let Field::Long(forwarded) = *cell(row, "forwarded") else { panic!("{row:?}") };
        assert_eq!(forwarded, record.trial.window.forwarded as i64);
        assert_eq!(*cell(row, "mean_pps"), Field::Double(1000.0 + run as f64));
        assert_eq!(*cell(row, "intended_pps"), Field::Null);
        assert_eq!(*cell(row, "store"), Field::Str("a/rate".into()));
        assert_eq!(*cell(row, "warnings"), Field::Long(i64::from(run == 1)));
    }
    let samples = rows(&target, "samples");
    assert_eq!(samples.len(), 16);
    let forwarded = samples.iter().map(|row| match cell(row, "forwarded") {
        Field::Long(forwarded) => *forwarded,
        other => panic!("{other:?}"),
    });
    assert_eq!(forwarded.sum::<i64>(), 4 * (250 + 250 + 250 + 250));
    let counters = rows(&target, "counters");
    assert!(counters.iter().all(|row| *cell(row, "delta") == Field::Long(2000)));
    assert!(counters.iter().all(|row| *cell(row, "expected") == Field::Null));
    let [warning] = rows(&target, "warnings").try_into().unwrap();
    assert_eq!(*cell(&warning, "kind"), Field::Str("unstamped".into()));
    let settings = rows(&target, "settings");
    let level = |variant: i64| {
        let mut rows = settings.iter().filter(|row| *cell(row, "variant") == Field::Long(variant));
        let row = rows.find(|row| *cell(row, "name") == Field::Str("factor.routes".into()));
        cell(row.expect("the level"), "value").to_string()
    };
    assert_eq!([level(0), level(1)].map(|text| text.replace('"', "")), ["2", "1000"]);
    let [experiment] = rows(&target, "experiments").try_into().unwrap();
    assert_eq!(*cell(&experiment, "title"), Field::Str("Rate, \u{e9}t\u{e9}".into()));
    assert_eq!(*cell(&experiment, "real"), Field::Bool(false));
    assert_eq!(rows(&target, "verdicts").len(), 1);
    // Folders are columns to readers, and names of files begin with the store's.
    assert!(target.join("runs/bed=unknown/day=2026-01-31").is_dir());
}

#[test]
fn an_export_is_repeated_and_bounded_by_a_day() {
    let directory = tempfile::tempdir().unwrap();
    let (root, target) = (directory.path().join("results"), directory.path().join("tables"));
    let path = store(&root.join("rate"));
    let once = export(&path, &root, &target, None).unwrap().unwrap();
    let twice = export(&path, &root, &target, Some("2026-01-31")).unwrap().unwrap();
    assert_eq!(once, twice);
    assert_eq!(rows(&target, "runs").len(), 4);
    let elsewhere = directory.path().join("later");
    assert_eq!(export(&path, &root, &elsewhere, Some("2026-02-01")).unwrap(), None);
    assert!(!elsewhere.exists());
    // Two stores of names that are one when they are spelt for files.
    let other = store(&root.join("rate+"));
    let third = store(&root.join("rate-"));
    for path in [&other, &third] {
        assert!(export(path, &root, &target, None).unwrap().is_some_and(|e: Exported| e.files > 0));
    }
    assert_eq!(rows(&target, "runs").len(), 12);
    let why = export(&root.join("none/run.sqlite"), &root, &target, None).unwrap_err();
    assert!(why.to_string().contains("none"), "{why}");
}

#[test]
fn columns_have_names_of_their_own_and_are_explained() {
    let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/QUERIES.md");
    let text = std::fs::read_to_string(documents).unwrap();
    for table in &TABLES {
        assert!(text.contains(&format!("`{}`", table.name)), "{} is in no document", table.name);
        let mut names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        for column in table.columns {
            let row = format!("| `{}` |", column.name);
            assert!(text.contains(&row), "{} of {} is in no document", column.name, table.name);
        }
    }
}
