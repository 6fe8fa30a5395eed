//! Errors of a store: each message names the file and the next step.

use fwdlab_model::settings::TestbedKind;
use std::path::PathBuf;

/// A store that can't be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store belongs to another plan.
    #[error(
        "{} holds another plan: \"{stored_title}\" (hash {stored_hash}), not \"{title}\" (hash {hash}). \
         {}Choose another directory, or give --fresh, which moves the old store aside",
        path.display(),
        differing(differences)
    )]
    OtherPlan {
        /// The store.
        path: PathBuf,
        /// Title of the plan in the store.
        stored_title: Box<str>,
        /// Hash of the plan in the store.
        stored_hash: Box<str>,
        /// Title of the current plan.
        title: Box<str>,
        /// Hash of the current plan.
        hash: Box<str>,
        /// The differences, stored and current; empty if unknown.
        differences: Box<str>,
    },
    /// The store's runs come from another testbed.
    #[error(
        "{} holds runs of testbed \"{stored}\", this invocation uses \"{testbed}\", and the two can't be \
         compared; choose another directory, or give --fresh, which moves the old store aside",
        path.display()
    )]
    OtherTestbed {
        /// The store.
        path: PathBuf,
        /// Testbed of the runs in the store.
        stored: TestbedKind,
        /// Testbed of this invocation.
        testbed: TestbedKind,
    },
    /// Another process writes to the store.
    #[error(
        "{} is being written by {}; wait until it ends (you can still read the store)",
        path.display(), writer(*pid)
    )]
    Locked {
        /// The store.
        path: PathBuf,
        /// The writing process; `None` if the lock file contains no process ID.
        pid: Option<u32>,
    },
    /// There is no such file.
    #[error("{} doesn't exist; `fwdlab run` makes one", path.display())]
    Missing {
        /// The store.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a store of fwdlab; it was left as it is: choose another file", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The store was written by a newer program.
    #[error(
        "{} has schema version {found}, this fwdlab knows versions up to {known}; use a newer fwdlab",
        path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Version of the store.
        found: i64,
        /// Newest version that this program knows.
        known: i64,
    },
    /// The store was written by a program of before the first release.
    #[error(
        "{} has schema version {found}, this fwdlab reads version {known}\n  next step: measure again with --fresh, \
         which moves it aside",
        path.display()
    )]
    Older {
        /// The store.
        path: PathBuf,
        /// Version of the store.
        found: i64,
        /// Version that this program reads.
        known: i64,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged ({reason}); recover what is left with `sqlite3 FILE .recover`, or give --fresh, \
         which moves it aside",
        path.display()
    )]
    Damaged {
        /// The store.
        path: PathBuf,
        /// The damage that was found.
        reason: String,
    },
    /// The disk is full.
    #[error(
        "no space left for {}: the last change was undone and everything before it is kept; \
         make room and run again, it goes on where it stopped",
        path.display()
    )]
    Full {
        /// The store.
        path: PathBuf,
    },
    /// The file or its directory can't be written.
    #[error("can't write {}: {reason}; check the permissions of the file and its directory", path.display())]
    NotWritable {
        /// The store.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The destination of an import is a store of fwdlab's own measurements.
    #[error("{} holds runs that fwdlab measured itself; it was left as it is: name another file", path.display())]
    NotImported {
        /// The store.
        path: PathBuf,
    },
    /// The run has been recorded before.
    #[error("run {run} is already in {} (started {started_at}); it is kept and the new record refused", path.display())]
    DuplicateRun {
        /// The store.
        path: PathBuf,
        /// Index of the run.
        run: u32,
        /// Start of the run that is kept.
        started_at: String,
    },
    /// The record doesn't belong to the plan.
    #[error("run {run} (block {block}, variants {variants:?}) is not in the plan of {}", path.display())]
    NotPlanned {
        /// The store.
        path: PathBuf,
        /// Index of the run.
        run: u32,
        /// Its block.
        block: u32,
        /// Its variants.
        variants: Vec<usize>,
    },
    /// The store contains no plan yet.
    #[error("{} holds no plan yet; start the experiment with `fwdlab run`", path.display())]
    NoPlan {
        /// The store.
        path: PathBuf,
    },
    /// A run can only be recorded within an invocation.
    #[error("no invocation was begun on {}, so its runs would lack their environment", path.display())]
    NoInvocation {
        /// The store.
        path: PathBuf,
    },
    /// A value can't be written in a way that reads back.
    #[error("{what} in {} can't be read or written: {source}", path.display())]
    Value {
        /// The store.
        path: PathBuf,
        /// The kind of value.
        what: String,
        /// The reason.
        source: serde_json::Error,
    },
    /// A file system operation failed.
    #[error("can't {action} {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation.
        action: &'static str,
        /// The reason.
        source: std::io::Error,
    },
    /// Any other SQLite error.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The store.
        path: PathBuf,
        /// The reason.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Classifies an SQLite error of the store at `path`.
    pub(crate) fn of(path: &std::path::Path, source: rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode as Code;
        let path = path.to_path_buf();
        match source.sqlite_error_code() {
            Some(Code::DiskFull) => StoreError::Full { path },
            Some(Code::NotADatabase) => StoreError::NotAStore { path },
            Some(Code::DatabaseCorrupt) => StoreError::Damaged { path, reason: source.to_string() },
            Some(Code::ReadOnly | Code::CannotOpen | Code::PermissionDenied) => {
                StoreError::NotWritable { path, reason: source.to_string() }
            }
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => {
                StoreError::Locked { path, pid: None }
            }
            _ => StoreError::Sqlite { path, source },
        }
    }
}

fn writer(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

/// Formats the differences as a sentence; empty if none are known.
fn differing(differences: &str) -> String {
    if differences.is_empty() {
        String::new()
    } else {
        format!("Stored and asked: {differences}. ")
    }
}
