//! Errors of comparisons: each message names the place and the next step.

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
        /// What is wrong.
        what: String,
        /// What the user can do.
        next: String,
    },
    /// A file has invalid contents.
    #[error("{}: {what}; {next}", Place(path, *line))]
    Input {
        /// The file as the user named it.
        path: PathBuf,
        /// The line, from 1, where it is one line's fault.
        line: Option<usize>,
        /// What is wrong.
        what: String,
        /// What the user can do.
        next: String,
    },
    /// A file can't be read.
    #[error("can't read {}: {source}; check its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A store can't be read.
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

/// A file, with its line where there is one: `a.pps:3`.
struct Place<'a>(&'a Path, Option<usize>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())?;
        self.1.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}
