//! The store: one SQLite file per experiment, holding raw observations only.
//!
//! Medians, tests and pictures are computed on reading, so every report can be
//! rebuilt from the store alone ([`Store::contents`]). Each run is one
//! transaction: a crash at any instant loses at most the run in progress, and of a run with
//! further trials the trial in progress ([`Store::checkpoints`]).
//! The tables are explained column by column in `schema.md`.
//!
//! One process writes (a lock held by the kernel keeps others out), any number
//! read meanwhile. What this module deliberately leaves out: statistics,
//! clocks (every time is given by the caller), and deleting anything that was measured, except
//! checkpoints whose run is stored.
//!
//! SQLite runs in WAL mode (<https://www.sqlite.org/wal.html>), so that readers
//! never stop the writer. A finished run outlives the process, however that ends.
//! Across a power failure, too, where it was measured (`synchronous = FULL`): it
//! cost seconds to minutes, and one more flush falls between two runs, never into
//! a measured window. Of simulated runs (`NORMAL`) a power failure may take the
//! last ones: the store stays whole, and they are simulated again, the same.

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
    About, Document, DocumentKind, Group, Import, Source, Status, Unpatched, UnpatchedGroup,
};
pub use merge::{MergeError, Merged, merge, merge_anew};
pub use overview::Overview;
pub use profile::{ASKED, StoredProfile};
pub use read::{Contents, StoredInvocation, UNNAMED};
pub use reproduction::{Claim, Claims, Likeness, ReproducedBlock, ReproducedTable, Reproductions};
pub use write::kind_of;

use fwdlab_model::Plan;
use fwdlab_model::record::Environment;
use fwdlab_model::settings::TestbedKind;
use lock::{WriterLock, with_suffix};
use rusqlite::{Connection, OpenFlags};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a statement waits for another connection's. Readers don't block the
/// writer in WAL mode, so this covers only recovery and checkpoints.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open store.
#[derive(Debug)]
pub struct Store {
    // Declared before the lock: the connection is closed first.
    connection: Connection,
    path: PathBuf,
    invocation: Option<i64>,
    /// The plan's runs by index, with block and variants, once they are needed.
    planned: Option<HashMap<u32, (u32, Vec<usize>)>>,
    lock: Option<WriterLock>,
}

/// One start of the program, as it is recorded with its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Wall clock, RFC 3339, UTC.
    pub started_at: String,
    /// Version of fwdlab, with its revision when known.
    pub fwdlab_version: String,
    /// Testbed in use.
    pub testbed: TestbedKind,
    /// Why this testbed was chosen, for a person.
    pub testbed_reason: String,
    /// True when no packet is really sent.
    pub simulated: bool,
    /// The surroundings.
    pub environment: Environment,
    /// The bed that the runs were measured on, as it was named; none where it was not.
    pub bed: Option<String>,
}

impl Store {
    /// Opens the store at `path` for writing, and makes it (with its directory)
    /// when there is none.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process writes to it, and
    /// [`StoreError::NotAStore`], [`StoreError::Newer`], [`StoreError::Damaged`]
    /// or [`StoreError::NotWritable`] for what is wrong with the file; a file
    /// that is refused is left as it is.
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

    /// Opens the store at `path` for reading, also while another process writes
    /// to it, and also in a directory that can't be written.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none; else as [`Store::open`].
    pub fn open_read_only(path: &Path) -> Result<Store, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { path: path.to_path_buf() });
        }
        let connection = match read_only(path, false) {
            // SQLite can't make the shared memory of WAL mode in a directory
            // that can't be written. Without a log nobody is writing either, so
            // the file may be read as if it never changed.
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

    /// A store that lives in memory only.
    ///
    /// # Errors
    /// When SQLite can't get memory.
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

    /// The file of this store; `:memory:` for one in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Indices of the runs that `plan` asks for and the store lacks, in order.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn missing_runs(&self, plan: &Plan) -> Result<Vec<u32>, StoreError> {
        let recorded = self.recorded_runs()?;
        Ok(plan.runs.iter().map(|run| run.index).filter(|i| !recorded.contains(i)).collect())
    }

    fn failed(&self, source: rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, source)
    }
}

/// Moves the store at `path` (and what SQLite keeps beside it) to the first free
/// of `<path>.1`, `<path>.2` ... and returns that name. Nothing is deleted.
///
/// # Errors
/// [`StoreError::Missing`] when there is none, [`StoreError::Locked`] when
/// another process writes to it, [`StoreError::Io`] when it can't be renamed.
pub fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_path_buf() });
    }
    let _lock = WriterLock::acquire(path)?;
    move_aside(path)
}

/// The same for whoever has the store's lock.
fn move_aside(path: &Path) -> Result<PathBuf, StoreError> {
    // Brings the log home first, so that the store is one file and one rename
    // moves it. A file that is no database is moved as it is.
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
    // A connection stays on one thread: a lock per value would be in vain.
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

/// Escapes what means something in a URI file name
/// (<https://www.sqlite.org/uri.html>, section 3.1).
fn uri_path(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

fn has_log(path: &Path) -> bool {
    std::fs::metadata(with_suffix(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Inside this module either a store's own error or one of SQLite's that still
/// has to be told apart.
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
