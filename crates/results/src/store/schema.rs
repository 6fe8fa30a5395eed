//! Versions of the schema, and recognition of stores among other files.

use super::{Failure, StoreError};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// The application ID in SQLite's header that marks stores of fwdlab ("fwdl" in ASCII).
pub(super) const APPLICATION_ID: i64 = 0x6677_646c;

/// One step per version of the schema: step `n` migrates version `n` to `n + 1`. New steps are
/// appended; a released step never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
    concat!(
        "CREATE VIEW listed AS SELECT run, ",
        include_str!("lists.sql"),
        "FROM run r;",
        include_str!("schema-7.sql")
    ),
    include_str!("schema-8.sql"),
    include_str!("schema-9.sql"),
    include_str!("schema-10.sql"),
];

/// Newest version of the schema that this program knows.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Refuses files that aren't stores, and stores of a newer program. Doesn't write.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), Failure> {
    if !is_empty(connection)? && pragma(connection, "application_id")? != APPLICATION_ID {
        return Err(StoreError::NotAStore { path: path.to_path_buf() }.into());
    }
    let found = pragma(connection, "user_version")?;
    if found > VERSION {
        return Err(StoreError::Newer { path: path.to_path_buf(), found, known: VERSION }.into());
    }
    Ok(())
}

/// Refuses an empty file, which is fine for writing but useless for reading.
pub(super) fn check_not_empty(connection: &Connection, path: &Path) -> Result<(), Failure> {
    if is_empty(connection)? {
        return Err(StoreError::NoPlan { path: path.to_path_buf() }.into());
    }
    Ok(())
}

/// Returns true if the connection's file is a store of any version.
pub(super) fn is_store(connection: &Connection) -> bool {
    pragma(connection, "application_id").is_ok_and(|id| id == APPLICATION_ID)
}

/// Migrates the schema to [`VERSION`], one transaction per step.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Failure> {
    for version in pragma(connection, "user_version")?..VERSION {
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        step.execute_batch(MIGRATIONS[version as usize])?;
        step.pragma_update(None, "application_id", APPLICATION_ID)?;
        step.pragma_update(None, "user_version", version + 1)?;
        step.commit()?;
    }
    Ok(())
}

/// Adds a temporary view with the lists in the rows of runs to a store older than version 7, which
/// can't be migrated because it is opened read-only.
pub(super) fn list_runs(connection: &Connection) -> rusqlite::Result<()> {
    let lists = match version(connection)? {
        7.. => return Ok(()),
        4.. => include_str!("lists.sql").to_owned(),
        _ => include_str!("lists.sql")
            .replace("ran_ns, waited_ns, sender_waited_ns", "NULL, NULL, NULL"),
    };
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.execute_batch(&format!("CREATE TEMP VIEW run AS SELECT *, {lists} FROM main.run r"))
}

/// Returns the version of the connection's schema.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    pragma(connection, "user_version")
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}
