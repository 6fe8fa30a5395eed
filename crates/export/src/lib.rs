//! Stores as tables for programs that ask questions over thousands of them: Parquet files in
//! folders by bed and period, which DuckDB and its kin read as one table.
//!
//! [`tables`] says which tables and columns there are; [`rows`] fills them from one store;
//! [`columns`] writes and reads a table's files; `pack` has the rows of many stores in one file
//! of each table, since a reader pays for each file that it opens; `manifest` says which stores
//! are in which files. [`Export`] leads from one state of the tables, a *generation*, to the
//! next: what a reader finds is one of them, never a part. Stores stay the truth: nothing is
//! moved, and tables that are removed can be had anew.

mod bed;
pub mod columns;
mod generation;
mod manifest;
mod pack;
pub mod read;
pub mod rows;
pub mod tables;

pub use generation::{CURRENT, Export, Exported, Limits};
pub use read::{Part, Read, Task};

use fwdlab_results::store::StoreError;
use std::path::{Path, PathBuf};

/// Version of the tables: it grows when a column changes its meaning or goes, or files are
/// laid out otherwise. New columns and tables leave it as it is.
pub const VERSION: u32 = 2;

/// Why something was not exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file can't be written.
    #[error("can't write {}: {why}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system or the format says.
        why: String,
    },
    /// Tables that were written can't be read any more.
    #[error("can't read {}: {why}; remove the tables and export all of them anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the system or the format says.
        why: String,
    },
    /// Another process writes there.
    #[error("another export writes into {}: wait until it has ended", directory.display())]
    Busy {
        /// The directory of the tables.
        directory: PathBuf,
    },
    /// Two stores of one name.
    #[error(
        "the tables have {} as `{store}` already, and {} would be the same: export the directory \
         above both, or into another one", known.display(), path.display()
    )]
    Taken {
        /// The name.
        store: String,
        /// The store that is there.
        known: PathBuf,
        /// The other one.
        path: PathBuf,
    },
}

/// An error of writing `path`.
fn failed(path: &Path, why: &dyn std::error::Error) -> ExportError {
    ExportError::Write { path: path.to_owned(), why: why.to_string() }
}
