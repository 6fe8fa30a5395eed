//! Errors of writing a report.

use crate::store::StoreError;
use std::path::PathBuf;

/// A report that could not be computed or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of the report can't be written.
    #[error(
        "can't write the report's {}: {source}; choose a directory that can be written with --output",
        path.display()
    )]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A value can't be written as JSON, which is a bug.
    #[error("JSON of the report: {0}")]
    Json(#[from] serde_json::Error),
    /// The picture can't be drawn, which is a bug.
    #[error("picture of the report: {0}")]
    Picture(String),
}
