//! Reads a file of any kind.

use super::error::CompareError;
use super::input::Input;
use super::peers::{self, Choice};
use super::{figures, stored};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The first bytes of every SQLite file (<https://www.sqlite.org/fileformat.html>).
const SQLITE: &[u8] = b"SQLite format 3\0";

/// True unless the file at `path` is certainly no store: an empty one may be.
///
/// # Errors
/// Fails if the file cannot be read.
pub(super) fn may_be_store(path: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(SQLITE.len() as u64).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == SQLITE)
}

/// Reads the file at `path` and detects its kind; `choice` selects from files of other tools.
pub(super) fn read(path: &Path, choice: Choice<'_>) -> Result<Input, CompareError> {
    let failed = |source| CompareError::Read { path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    (&mut file).take(SQLITE.len() as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes == SQLITE {
        return stored::read(path);
    }
    file.read_to_end(&mut bytes).map_err(failed)?;
    let Ok(text) = String::from_utf8(bytes) else {
        let next = "give a text file with one figure per run, a runs.csv or a store";
        return Err(CompareError::input(path, None, "is neither text nor a store", next));
    };
    of_text(path, &text, choice)
}

/// Reads a text as the contents of the file at `path`.
pub(super) fn of_text(path: &Path, text: &str, choice: Choice<'_>) -> Result<Input, CompareError> {
    match peers::input(path, text, choice)? {
        Some(input) => Ok(input),
        None => figures::read(path, text),
    }
}
