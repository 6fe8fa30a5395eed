//! Exports stores, reads every file back and compares it with the store.

use fwdlab_export::tables::TABLES;
use fwdlab_export::{CURRENT, Export, ExportError, ExportSummary, Limits};
use fwdlab_model::record::{Counter, Counts, Sample, TrialRecord};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{RunRecord, Warning};
use fwdlab_results::store::{Invocation, Store};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::path::{Path, PathBuf};

const EXPERIMENT: &str = "version = 1\ntitle = \"Rate, \u{e9}t\u{e9}\"\n[testbed]\nkind = \"sim\"\n\
                          [design]\nblocks = 2\n[[factor]]\nname = \"routes\"\nlevels = [2, 1000]\n";

/// Creates a store in `directory` with all planned runs: run `n` forwards `1000 + n` packets per
/// second in four samples.
fn store(directory: &Path) -> PathBuf {
    store_of(directory, "2026-01-31", 4)
}

/// Creates the same store for another day, with the first runs only.
fn store_of(directory: &Path, day: &str, runs: usize) -> PathBuf {
    std::fs::create_dir_all(directory).unwrap();
    let path = directory.join("run.sqlite");
    let plan = fwdlab_model::load("rate.toml", EXPERIMENT, &|_| Ok(Vec::new())).unwrap();
    let mut store = Store::open(&path).unwrap();
    store.adopt_plan(&plan, EXPERIMENT).unwrap();
    let invocation = Invocation {
        started_at: format!("{day}T10:00:00.000Z"),
        bed: None,
        environment: Default::default(),
        fwdlab_version: "test".into(),
        testbed: TestbedKind::Sim,
        testbed_reason: String::new(),
        simulated: true,
    };
    store.begin_invocation(&invocation).unwrap();
    for run in plan.runs.iter().take(runs) {
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
            started_at: format!("{day}T10:0{}:00.000Z", run.index),
            trial,
            warnings,
            ..RunRecord::default()
        };
        store.insert_run(&record).unwrap();
    }
    path
}

/// Exports the stores below `root`.
fn export_with(
    limits: Limits,
    stores: &[PathBuf],
    root: &Path,
    directory: &Path,
    since: Option<&str>,
) -> Result<ExportSummary, ExportError> {
    let mut export = Export::open(directory, limits)?;
    for task in export.tasks(stores, root, since)? {
        export.add(task.read()?)?;
    }
    export.finish()
}

fn export(
    stores: &[PathBuf],
    root: &Path,
    directory: &Path,
    since: Option<&str>,
) -> Result<ExportSummary, ExportError> {
    export_with(Limits::default(), stores, root, directory, since)
}

/// Returns the files of a table.
fn files(directory: &Path, table: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut todo = vec![directory.join(CURRENT).join(table)];
    while let Some(path) = todo.pop() {
        match path.is_dir() {
            true => todo.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path())),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

/// Returns all rows of all tables, sorted as text.
fn everything(directory: &Path) -> Vec<String> {
    let all = TABLES.iter().flat_map(|table| {
        let rows = rows(directory, table.name).into_iter();
        rows.map(|row| format!("{} {row}", table.name))
    });
    let mut all: Vec<String> = all.collect();
    all.sort();
    all
}

/// Sets the file's modification time to an hour ago, as for finished experiments.
fn age(path: &Path) {
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
}

/// Returns all rows of a table.
fn rows(directory: &Path, table: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut todo = files(directory, table);
    while let Some(path) = todo.pop() {
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        rows.extend(file.get_row_iter(None).unwrap().map(Result::unwrap));
    }
    rows
}

/// Returns a cell by its column's name.
fn cell<'a>(row: &'a Row, name: &str) -> &'a Field {
    let found = row.get_column_iter().find(|(column, _)| *column == name);
    found.unwrap_or_else(|| panic!("no column {name}")).1
}

#[test]
fn export_contains_every_figure_of_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let (root, target) = (directory.path().join("results"), directory.path().join("tables"));
    let path = store(&root.join("a/rate"));
    let contents = Store::open_read_only(&path).unwrap().contents().unwrap();
    let exported = export(&[path], &root, &target, None).unwrap();
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
    assert_eq!(*cell(&experiment, "day"), Field::Str("2026-01-31".into()));
    // Readers interpret folders as columns.
    assert!(target.join("current/runs/bed=unknown/period=2026-01").is_dir());
}

#[test]
fn export_rereads_only_changed_stores() {
    let directory = tempfile::tempdir().unwrap();
    let (root, target) = (directory.path().join("results"), directory.path().join("tables"));
    let stores = ["a", "b", "c"].map(|name| store(&root.join(name)));
    stores.iter().for_each(|path| age(path));
    let once = export(&stores, &root, &target, None).unwrap();
    assert_eq!((once.stores, once.read, once.runs), (3, 3, 12));
    // One file per table for all of them, sorted by store.
    assert_eq!(files(&target, "runs").len(), 1);
    let names: Vec<String> =
        rows(&target, "runs").iter().map(|row| cell(row, "store").to_string()).collect();
    assert!(names.is_sorted() && names.len() == 12, "{names:?}");
    let (all, before) = (everything(&target), target.join(CURRENT).read_link().unwrap());
    let twice = export(&stores, &root, &target, None).unwrap();
    assert_eq!((twice.read, twice.unchanged, twice.runs), (0, 3, 12));
    // Without changes the generation stays the same.
    assert_eq!(target.join(CURRENT).read_link().unwrap(), before);

    // One store is replaced: its rows are replaced. The previous generation still exists.
    std::fs::remove_file(&stores[1]).unwrap();
    store_of(&root.join("b"), "2026-01-31", 2);
    let third = export(&stores, &root, &target, None).unwrap();
    assert_eq!((third.read, third.unchanged, third.runs), (1, 2, 10));
    assert_eq!(files(&target, "runs").len(), 1);
    assert!(target.join(&before).join("runs").is_dir());
    let runs = rows(&target, "runs");
    let rows_of_b = runs.iter().filter(|row| *cell(row, "store") == Field::Str("b".into()));
    assert_eq!((runs.len(), rows_of_b.count()), (10, 2));

    // With the original store the tables are the original ones. A store changed moments ago is read
    // again.
    std::fs::remove_file(&stores[1]).unwrap();
    store(&root.join("b"));
    export(&stores, &root, &target, None).unwrap();
    assert_eq!(everything(&target), all);
    assert!(!target.join(&before).exists(), "two generations are kept");
    assert_eq!(export(&stores, &root, &target, None).unwrap().read, 1);

    // One store is deleted: its rows are removed, even though the call names only the others.
    std::fs::remove_dir_all(root.join("a")).unwrap();
    let gone = export(&stores[1..], &root, &target, None).unwrap();
    assert_eq!((gone.stores, gone.gone, gone.runs), (2, 1, 8));
    assert_eq!(rows(&target, "experiments").len(), 2);
}

#[test]
fn export_since_a_day_keeps_older_rows() {
    let directory = tempfile::tempdir().unwrap();
    let (root, target) = (directory.path().join("results"), directory.path().join("tables"));
    let old = store_of(&root.join("old"), "2025-12-24", 4);
    let new = store_of(&root.join("new"), "2026-01-31", 4);
    let both = [old.clone(), new];
    both.iter().for_each(|path| age(path));
    let since = Some("2026-01-01");
    let first = export(&both, &root, &target, since).unwrap();
    assert_eq!((first.stores, first.older, rows(&target, "runs").len()), (1, 1, 4));
    // The day of the old store is now known without reading it again.
    let again = Export::open(&target, Limits::default()).unwrap().tasks(&both, &root, since);
    assert_eq!(again.unwrap(), []);
    let all = export(&both, &root, &target, None).unwrap();
    assert_eq!((all.stores, all.read, rows(&target, "runs").len()), (2, 1, 8));
    let later = export(&both, &root, &target, Some("2026-02-01")).unwrap();
    assert_eq!((later.stores, rows(&target, "runs").len()), (2, 8));
    // No store of that day: tables without rows, which can still be queried.
    let other_root = directory.path().join("later");
    let none = export(&both, &root, &other_root, Some("2026-02-01")).unwrap();
    assert_eq!((none.stores, none.older), (0, 2));
    assert_eq!((files(&other_root, "runs").len(), rows(&other_root, "runs").len()), (1, 0));
    age(&old);
}

#[test]
fn export_packs_many_stores_into_few_files() {
    let directory = tempfile::tempdir().unwrap();
    let (root, target) = (directory.path().join("results"), directory.path().join("tables"));
    let days = ["2024-11-30", "2025-11-01", "2025-11-30", "2025-12-01", "2026-01-31", "2026-02-01"];
    let store = |(number, day): (usize, &&str)| store_of(&root.join(format!("s{number}")), day, 4);
    let stores: Vec<PathBuf> = days.iter().enumerate().map(store).collect();
    stores.iter().for_each(|path| age(path));
    let periods = |target: &Path| {
        let name = |path: &PathBuf| Some(path.parent()?.file_name()?.to_str()?.to_owned());
        let mut names: Vec<String> = files(target, "runs").iter().filter_map(name).collect();
        names.dedup();
        names
    };
    let whole = directory.path().join("whole");
    export(&stores, &root, &whole, None).unwrap();
    assert_eq!(periods(&whole).len(), 5);
    // One after the other: too many months become years.
    let expected = [1, 2, 2, 3, 3, 3];
    for (number, (path, folders)) in stores.iter().zip(expected).enumerate() {
        let limits = Limits { folders: 3, ..Limits::default() };
        let one = std::slice::from_ref(path);
        let exported = export_with(limits, one, &root, &target, None).unwrap();
        assert_eq!((exported.stores, exported.read), (number + 1, 1));
        assert_eq!(periods(&target).len(), folders, "{:?}", periods(&target));
    }
    assert_eq!(periods(&target), ["period=2024", "period=2025", "period=2026"]);
    assert_eq!(everything(&target), everything(&whole));
    // Small packs or little memory give more files with the same rows.
    for (pack, memory) in [(100, 4_000_000), (1_000_000, 100), (100, 100), (1, 1)] {
        let limits = Limits { folders: 1, pack, memory };
        let small = directory.path().join(format!("small-{pack}-{memory}"));
        export_with(limits, &stores[1..], &root, &small, None).unwrap();
        export_with(limits, &stores[..1], &root, &small, None).unwrap();
        assert_eq!(everything(&small), everything(&whole), "{pack} {memory}");
        assert_eq!(files(&small, "runs").len() > 1, pack < 1000);
        assert_eq!(periods(&small), ["period=all"]);
    }
}

#[test]
fn export_publishes_atomically_and_repairs_damage() {
    let directory = tempfile::tempdir().unwrap();
    let (root, target) = (directory.path().join("results"), directory.path().join("tables"));
    let stores = ["a", "b"].map(|name| store(&root.join(name)));
    stores.iter().for_each(|path| age(path));
    export(&stores[..1], &root, &target, None).unwrap();
    let all = everything(&target);
    // Dropped before its end: nothing of it remains, and the next export works.
    let mut export_of_two =
        Export::open(&target, Limits { memory: 1, ..Limits::default() }).unwrap();
    let busy = Export::open(&target, Limits::default()).unwrap_err();
    assert!(matches!(busy, ExportError::Busy { .. }), "{busy}");
    for task in export_of_two.tasks(&stores, &root, None).unwrap() {
        export_of_two.add(task.read().unwrap()).unwrap();
    }
    assert!(target.join(".unfinished").exists());
    drop(export_of_two);
    assert!(!target.join(".unfinished").exists());
    assert_eq!(everything(&target), all);
    // Killed: the next export removes its remains.
    std::fs::create_dir_all(target.join(".unfinished/runs")).unwrap();
    assert_eq!(export(&stores, &root, &target, None).unwrap().stores, 2);
    let all = everything(&target);
    // A missing file: its stores are read again.
    std::fs::remove_file(&files(&target, "samples")[0]).unwrap();
    let healed = export(&stores, &root, &target, None).unwrap();
    assert_eq!((healed.read, healed.unchanged), (2, 0));
    assert_eq!(everything(&target), all);
    // Another version wrote the tables: all stores are read again, including those that this call
    // does not name.
    let manifest = target.join(CURRENT).join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replacen("tables ", "tables of old ", 1)).unwrap();
    let repaired = export(&stores[..1], &root, &target, None).unwrap();
    assert_eq!((repaired.stores, repaired.read), (2, 2));
    assert_eq!(everything(&target), all);
    // A damaged file: the error names it and the remedy.
    std::fs::write(&files(&target, "samples")[0], "PAR1").unwrap();
    let third = store(&root.join("c"));
    let why = export(&[third], &root, &target, None).unwrap_err().to_string();
    assert!(why.contains("samples") && why.contains("anew"), "{why}");
}

#[test]
fn export_refuses_two_stores_of_one_name() {
    let directory = tempfile::tempdir().unwrap();
    let (root, target) = (directory.path().join("results"), directory.path().join("tables"));
    // Names that differ in one character.
    let stores = ["rate+", "rate-"].map(|name| store(&root.join(name)));
    assert_eq!(export(&stores, &root, &target, None).unwrap().stores, 2);
    // The same name below another directory.
    let other_root = directory.path().join("elsewhere");
    let other = store(&other_root.join("rate+"));
    let why = export(std::slice::from_ref(&other), &other_root, &target, None).unwrap_err();
    assert!(matches!(why, ExportError::Taken { .. }), "{why}");
    // The tree was moved there: the new store replaces the old one.
    std::fs::remove_dir_all(&root).unwrap();
    let moved = export(&[other], &other_root, &target, None).unwrap();
    assert_eq!((moved.stores, moved.read, moved.gone), (2, 1, 1));
    // The same store exported from a higher directory counts once.
    let above = directory.path();
    let path = other_root.join("rate+/run.sqlite");
    let renamed = export(&[path], above, &target, None).unwrap();
    let mut names: Vec<String> =
        rows(&target, "experiments").iter().map(|row| cell(row, "store").to_string()).collect();
    names.sort();
    assert_eq!(names, ["\"elsewhere/rate+\""], "{renamed:?}");
    let missing = [root.join("none/run.sqlite")];
    let why = export(&missing, &root, &target, None).unwrap_err();
    assert!(why.to_string().contains("none"), "{why}");
}

#[test]
fn columns_are_unique_and_documented() {
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
