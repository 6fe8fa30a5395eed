//! Errors of comparisons: each message has the location and the next step.

use crate::store::StoreError;
use std::fmt;
use std::path::{Path, PathBuf};

/// An error of a comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The request is invalid.
    #[error("{what}; {next}")]
    Question {
        /// Description of the error.
        what: String,
        /// Next step for the user.
        next: String,
    },
    /// A file has invalid contents.
    #[error("{}: {what}; {next}", Place(path, *line))]
    Input {
        /// Path given by the user.
        path: PathBuf,
        /// Line number, from 1. `None` if the error does not concern one line.
        line: Option<usize>,
        /// Description of the error.
        what: String,
        /// Next step for the user.
        next: String,
    },
    /// A file cannot be read.
    #[error("can't read {}: {source}; check its permissions", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CompareError {
    pub(super) fn question(what: impl Into<String>, next: impl Into<String>) -> CompareError {
        CompareError::Question { what: what.into(), next: next.into() }
    }

    pub(super) fn input(
        path: &Path,
        line: impl Into<Option<usize>>,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> CompareError {
        let (path, line) = (path.to_path_buf(), line.into());
        CompareError::Input { path, line, what: what.into(), next: next.into() }
    }
}

/// Description of the error that a reader used less than half of a file.
pub(super) fn mostly_left_out(kinds: &str, read: usize) -> String {
    format!("most of the file would be left out: {kinds}, with {read} read")
}

/// A file, with its line if known: `a.pps:3`.
struct Place<'a>(&'a Path, Option<usize>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())?;
        self.1.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}
