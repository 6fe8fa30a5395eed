//! The schema and its version; distinguishes a store from any other file.

use super::{Failure, StoreError};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// Marks the file as fwdlab's in SQLite's header ("fwdl" in ASCII).
pub(super) const APPLICATION_ID: i64 = 0x6677_646c;

/// The tables and views of a store.
const SCHEMA: &str = include_str!("schema.sql");

/// Version of the schema. Versions below it were never released.
pub(super) const VERSION: i64 = 10;

/// Refuses files that aren't stores, and stores of another version. Only reads.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), Failure> {
    if !is_empty(connection)? && pragma(connection, "application_id")? != APPLICATION_ID {
        return Err(StoreError::NotAStore { path: path.to_path_buf() }.into());
    }
    let (found, path) = (pragma(connection, "user_version")?, path.to_path_buf());
    match found {
        VERSION => Ok(()),
        found if found > VERSION => Err(StoreError::Newer { path, found, known: VERSION }.into()),
        // An empty file becomes a store.
        _ if is_empty(connection)? => Ok(()),
        found => Err(StoreError::Older { path, found, known: VERSION }.into()),
    }
}

/// Refuses an empty file, which is fine for writing and useless for reading.
pub(super) fn check_not_empty(connection: &Connection, path: &Path) -> Result<(), Failure> {
    if is_empty(connection)? {
        return Err(StoreError::NoPlan { path: path.to_path_buf() }.into());
    }
    Ok(())
}

/// True when the connection's file is marked as a store of any version.
pub(super) fn is_store(connection: &Connection) -> bool {
    pragma(connection, "application_id").is_ok_and(|id| id == APPLICATION_ID)
}

/// Makes an empty file a store, in one transaction.
pub(super) fn create(connection: &mut Connection) -> Result<(), Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if is_empty(&transaction)? {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(())
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}
