//! The store: one SQLite file per experiment, with raw observations only.
//!
//! Medians, tests and pictures are computed on reading, so every report can be rebuilt from the
//! store alone ([`Store::contents`]). Each run is one transaction: a crash at any instant loses at
//! most the run in progress, and of a run with several trials only the trial in progress
//! ([`Store::checkpoints`]). `schema.md` explains the tables column by column.
//!
//! One process writes (a kernel lock keeps others out), and any number read at the same time. This
//! module deliberately leaves out statistics, clocks (the caller passes every time), and the
//! deletion of measurements, except checkpoints whose run is stored.
//!
//! SQLite runs in WAL mode (<https://www.sqlite.org/wal.html>), so readers never block the writer.
//! A finished run survives the end of the process, whatever the cause. A measured run also survives
//! a power failure (`synchronous = FULL`): it cost seconds to minutes, and one more flush falls
//! between two runs, never into a measured window. A power failure may lose the last simulated runs
//! (`NORMAL`): the store stays consistent, and the same runs are simulated again.

mod atomic;
mod checkpoint;
mod error;
mod import;
pub mod label;
mod lists;
mod lock;
mod merge;
mod overview;
pub mod plans;
mod profile;
mod read;
mod reproduction;
mod schema;
mod write;

#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use import::{
    Document, DocumentKind, Group, Import, ImportMetadata, Source, Status, UnpatchedGroup,
    UnpatchedSet,
};
pub use lock::WriterLock;
pub use merge::{MergeError, Merged, merge, merge_anew};
pub use overview::Overview;
pub use profile::{ASKED, StoredProfile};
pub use read::{Contents, StoredInvocation, UNNAMED};
pub use reproduction::{Claim, Claims, Likeness, ReproducedBlock, ReproducedTable, Reproductions};
pub use write::kind_of;

use fwdlab_model::Plan;
use fwdlab_model::record::Environment;
use fwdlab_model::settings::TestbedKind;
use lock::with_suffix;
use rusqlite::{Connection, OpenFlags};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that a statement waits for another connection. Readers don't block the writer in WAL mode,
/// so this covers only recovery and checkpoints.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open store.
#[derive(Debug)]
pub struct Store {
    // Declared before the lock, so that the connection is closed first.
    connection: Connection,
    path: PathBuf,
    invocation: Option<i64>,
    /// The plan's runs by index, with block and variants; read on first use.
    planned: Option<HashMap<u32, (u32, Vec<usize>)>>,
    lock: Option<WriterLock>,
}

/// One start of the program, recorded with its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Wall-clock time, RFC 3339, UTC.
    pub started_at: String,
    /// Version of fwdlab, with its revision if known.
    pub fwdlab_version: String,
    /// Testbed in use.
    pub testbed: TestbedKind,
    /// Reason for choosing this testbed, for display.
    pub testbed_reason: String,
    /// True if no packets are sent.
    pub simulated: bool,
    /// Environment of the program.
    pub environment: Environment,
    /// Name of the bed that the runs were measured on; `None` if it was not named.
    pub bed: Option<String>,
}

impl Store {
    /// Opens the store at `path` for writing. Creates it and its directory if they don't exist.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process writes to it, and [`StoreError::NotAStore`],
    /// [`StoreError::Newer`], [`StoreError::Damaged`] or [`StoreError::NotWritable`] if the file is
    /// unusable. A refused file is not changed.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let lock = WriterLock::acquire_with_directory(path)?;
        let open = || {
            let mut connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            schema::check(&connection, path)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "foreign_keys", true)?;
            schema::create(&mut connection)?;
            Ok(connection)
        };
        let connection = open().map_err(|failure: Failure| failure.at(path))?;
        Ok(Store {
            connection,
            path: path.to_path_buf(),
            invocation: None,
            planned: None,
            lock: Some(lock),
        })
    }

    /// Opens the store at `path` for reading, even while another process writes to it or if the
    /// directory is not writable.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if it doesn't exist; otherwise as for [`Store::open`].
    pub fn open_read_only(path: &Path) -> Result<Store, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { path: path.to_path_buf() });
        }
        let connection = match read_only(path, false) {
            // SQLite can't create the shared memory of WAL mode in a read-only directory. Without a
            // log no process is writing, so the file can be read as immutable.
            Err(Failure::Sqlite(_)) if !has_log(path) => read_only(path, true),
            other => other,
        }
        .map_err(|failure| failure.at(path))?;
        Ok(Store {
            connection,
            path: path.to_path_buf(),
            invocation: None,
            planned: None,
            lock: None,
        })
    }

    /// Creates a store in memory.
    ///
    /// # Errors
    /// If SQLite can't allocate memory.
    pub fn memory() -> Result<Store, StoreError> {
        let path = PathBuf::from(":memory:");
        let open = || {
            let mut connection = Connection::open_in_memory()?;
            connection.pragma_update(None, "foreign_keys", true)?;
            schema::create(&mut connection)?;
            Ok(connection)
        };
        let connection = open().map_err(|failure: Failure| failure.at(&path))?;
        Ok(Store { connection, path, invocation: None, planned: None, lock: None })
    }

    /// Returns the file of this store; `:memory:` for a store in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the indices of the planned runs that are not in the store, in order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn missing_runs(&self, plan: &Plan) -> Result<Vec<u32>, StoreError> {
        let recorded = self.recorded_runs()?;
        Ok(plan.runs.iter().map(|run| run.index).filter(|i| !recorded.contains(i)).collect())
    }

    fn failed(&self, source: rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, source)
    }
}

/// Renames the store at `path` (and SQLite's files next to it) to the first free name of
/// `<path>.1`, `<path>.2` ... and returns that name. Deletes nothing.
///
/// # Errors
/// [`StoreError::Missing`] if it doesn't exist, [`StoreError::Locked`] if another process writes to
/// it, [`StoreError::Io`] if it can't be renamed.
pub fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_path_buf() });
    }
    let _lock = WriterLock::acquire(path)?;
    move_aside(path)
}

/// As [`set_aside`], for a caller that holds the store's lock.
fn move_aside(path: &Path) -> Result<PathBuf, StoreError> {
    // Checkpoint the log first, so that the store is one file and one rename moves it. A file that
    // is not a database is only renamed.
    if let Ok(connection) = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        && schema::is_store(&connection)
    {
        let _ = connection.pragma_query(None, "wal_checkpoint", |_| Ok(()));
    }
    let aside = (1_u32..)
        .map(|n| with_suffix(path, &format!(".{n}")))
        .find(|candidate| !candidate.exists())
        .unwrap_or_else(|| with_suffix(path, ".old"));
    for suffix in ["", "-wal", "-shm"] {
        let from = with_suffix(path, suffix);
        if from.exists() {
            std::fs::rename(&from, with_suffix(&aside, suffix))
                .map_err(|source| StoreError::Io { path: from, action: "set aside", source })?;
        }
    }
    Ok(aside)
}

fn read_only(path: &Path, immutable: bool) -> Result<Connection, Failure> {
    // A connection stays on one thread, so a mutex per value would be useless.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if immutable {
        let flags = flags | OpenFlags::SQLITE_OPEN_URI;
        Connection::open_with_flags(format!("file:{}?immutable=1", uri_path(path)), flags)?
    } else {
        Connection::open_with_flags(path, flags)?
    };
    connection.busy_timeout(BUSY_TIMEOUT)?;
    schema::check(&connection, path)?;
    schema::check_not_empty(&connection, path)?;
    Ok(connection)
}

/// Escapes the special characters of a URI file name (<https://www.sqlite.org/uri.html>, section
/// 3.1).
fn uri_path(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

fn has_log(path: &Path) -> bool {
    std::fs::metadata(with_suffix(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Internal error: either a [`StoreError`] or an SQLite error that is not yet classified.
#[derive(Debug)]
enum Failure {
    Store(StoreError),
    Sqlite(rusqlite::Error),
}

impl Failure {
    fn at(self, path: &Path) -> StoreError {
        match self {
            Failure::Store(error) => error,
            Failure::Sqlite(error) => StoreError::of(path, error),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Sqlite(error)
    }
}
