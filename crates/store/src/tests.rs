//! Tests that need access to the connection: full disk, schema, durability.

use super::{Invocation, Store, StoreError};
use fwdlab_model::record::{Calibration, Environment};

fn calibration(trials: usize) -> Calibration {
    Calibration {
        testbed: "netns, open".into(),
        family: "inet".into(),
        frame_size: 64.into(),
        rates_pps: (0..trials).map(|i| i as f64).collect(),
        measured_at: "2024-03-05T10:00:01Z".into(),
    }
}

#[test]
fn full_disk_rolls_back_one_change_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.sqlite");
    let mut store = Store::open(&path).unwrap();
    store.insert_calibration(&calibration(3)).unwrap();
    let pages: i64 =
        store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.connection.pragma_query_value(None, "max_page_count", |_| Ok(())).unwrap();
    store
        .connection
        .query_row(&format!("PRAGMA max_page_count = {}", pages + 2), [], |_| Ok(()))
        .unwrap();

    let error = store.insert_calibration(&calibration(10_000)).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(error.to_string().contains("run.sqlite"), "{error}");
    assert_eq!(store.calibrations().unwrap(), [calibration(3)]);

    // With space available again, the same store can be written.
    store.connection.query_row("PRAGMA max_page_count = 100000", [], |_| Ok(())).unwrap();
    store.insert_calibration(&calibration(10_000)).unwrap();
    drop(store);
    let store = Store::open_read_only(&path).unwrap();
    assert_eq!(store.calibrations().unwrap(), [calibration(3), calibration(10_000)]);
}

#[test]
fn schema_document_explains_every_column() {
    let store = Store::memory().unwrap();
    let document = include_str!("schema.md");
    let mut statement = store
        .connection
        .prepare(
            "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
             WHERE t.type IN ('table', 'view')",
        )
        .unwrap();
    let columns: Vec<(String, String)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(columns.len() > 50, "{columns:?}");
    for (table, column) in columns {
        let headings = [format!("\n## {table}:"), format!("\n## {table}, a view:")];
        let section = headings.iter().find_map(|heading| document.split_once(heading));
        let section = section.unwrap_or_else(|| panic!("no {table}")).1;
        let section = section.split("\n## ").next().unwrap();
        let explained = section
            .lines()
            .filter(|line| line.starts_with("| "))
            .any(|line| line[2..].split(" | ").next().unwrap().split(", ").any(|c| c == column));
        assert!(explained, "{table}.{column} is not explained in schema.md");
    }
}

#[test]
fn durability_settings_match_module_documentation() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("run.sqlite")).unwrap();
    let pragma = |store: &Store, name: &str| -> String {
        store
            .connection
            .pragma_query_value(None, name, |row| {
                row.get::<_, String>(0).or_else(|_| row.get::<_, i64>(0).map(|n| n.to_string()))
            })
            .unwrap()
    };
    assert_eq!(pragma(&store, "journal_mode"), "wal");
    assert_eq!(pragma(&store, "synchronous"), "2", "FULL");
    assert_eq!(pragma(&store, "foreign_keys"), "1");
    assert_eq!(pragma(&store, "application_id"), "1719100524");
    assert_eq!(pragma(&store, "user_version"), "10");
    store.begin_invocation(&invocation(false)).unwrap();
    assert_eq!(pragma(&store, "synchronous"), "2", "measured: FULL");
    store.begin_invocation(&invocation(true)).unwrap();
    assert_eq!(pragma(&store, "synchronous"), "1", "simulated: NORMAL");
}

fn invocation(simulated: bool) -> Invocation {
    Invocation {
        started_at: "2024-03-05T10:00:00Z".into(),
        fwdlab_version: "0.1.0".into(),
        testbed: fwdlab_model::settings::TestbedKind::Sim,
        testbed_reason: "asked for".into(),
        simulated,
        bed: None,
        environment: Environment::default(),
    }
}

#[test]
fn invocation_ids_increase() {
    let mut store = Store::memory().unwrap();
    let invocation = invocation(true);
    assert_eq!(store.begin_invocation(&invocation).unwrap(), 1);
    assert_eq!(store.begin_invocation(&invocation).unwrap(), 2);
    assert_eq!(store.invocations().unwrap()[1].invocation, invocation);
    assert_eq!(store.environments().unwrap(), [Environment::default(), Environment::default()]);
}
