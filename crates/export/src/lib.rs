//! Stores as tables for queries over thousands of them: Parquet files in folders by bed and period,
//! which DuckDB and similar programs read as one table.
//!
//! [`tables`] defines tables and columns; [`rows`] fills them from one store; [`columns`] writes
//! and reads a table's files; `pack` combines the rows of many stores into one file per table,
//! since each opened file costs a reader time; `manifest` records which files contain which stores.
//! [`Export`] leads from one state of the tables, a *generation*, to the next: readers always find
//! a complete one. Stores remain authoritative: nothing is moved, and deleted tables can be
//! exported again.

mod bed;
pub mod columns;
mod generation;
mod manifest;
mod pack;
pub mod read;
pub mod rows;
pub mod tables;

pub use generation::{CURRENT, Export, ExportSummary, Limits};
pub use read::{Part, StoreReading, Task};

use fwdlab_results::store::StoreError;
use std::path::{Path, PathBuf};

/// Version of the tables. It increases if a column changes its meaning or disappears, or the file
/// layout changes. New columns and tables do not change it.
pub const VERSION: u32 = 2;

/// Reason why an export failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be written.
    #[error("can't write {}: {why}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the system or the format.
        why: String,
    },
    /// Exported tables cannot be read.
    #[error("can't read {}: {why}; remove the tables and export all of them anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Error of the system or the format.
        why: String,
    },
    /// Another process writes to the directory.
    #[error("another export writes into {}: wait until it has ended", directory.display())]
    Busy {
        /// The directory of the tables.
        directory: PathBuf,
    },
    /// Two stores have the same name.
    #[error(
        "the tables have {} as `{store}` already, and {} would be the same: export the directory \
         above both, or into another one", known.display(), path.display()
    )]
    Taken {
        /// The name.
        store: String,
        /// The store in the tables.
        known: PathBuf,
        /// The other store.
        path: PathBuf,
    },
}

/// Returns the error for a failed write to `path`.
fn failed(path: &Path, why: &dyn std::error::Error) -> ExportError {
    ExportError::Write { path: path.to_owned(), why: why.to_string() }
}
