//! Stores as tables for programs that ask questions over thousands of them: Parquet files in
//! folders by bed and day, which DuckDB and its kin read as one table.
//!
//! [`tables`] says which tables and columns there are; [`rows`] fills them from one store;
//! [`mod@write`] writes them. A store gives one file a table, whose name is made of the store's
//! place, so that an export that is done again replaces files and adds none. Stores stay the
//! truth: nothing is moved, and nothing is read back.

mod bed;
pub mod rows;
pub mod tables;
pub mod write;

use fwdlab_results::catalogue::Entry;
use fwdlab_results::store::{Store, StoreError, UNNAMED};
use std::path::{Path, PathBuf};

/// Version of the tables: it grows when a column changes its meaning or goes. New columns and
/// tables leave it as it is.
pub const VERSION: u32 = 1;

/// Why a store was not exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// It can't be read.
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
}

/// What was exported of one store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Runs.
    pub runs: usize,
    /// Files.
    pub files: usize,
    /// Bytes of these files.
    pub bytes: u64,
}

/// Exports the store at `path`, which lies below `root`, into `directory`. None where all of
/// it is of an earlier day than `since` (`2026-01-31`), or its day is unknown and `since` asks
/// for one.
///
/// # Errors
/// When the store can't be read, or a file can't be written.
pub fn export(
    path: &Path,
    root: &Path,
    directory: &Path,
    since: Option<&str>,
) -> Result<Option<Exported>, ExportError> {
    let contents = Store::open_read_only(path)?.contents()?;
    let entry = Entry::of(path, root, &contents);
    let place = rows::Place::of(&entry, &contents);
    let newest = contents.runs.iter().filter_map(|run| run.started_at.get(..10)).max();
    let newest = newest.filter(|day| !day.is_empty()).unwrap_or(&place.day);
    if since.is_some_and(|since| newest < since) {
        return Ok(None);
    }
    let mut exported = Exported { runs: contents.runs.len(), ..Exported::default() };
    let mut write = |place: &rows::Place, tables: Vec<(&tables::Table, Vec<rows::Row>)>| {
        for (table, rows) in tables {
            let file = write::place(directory, table, place);
            // Without rows too: a reader of all files of a table finds at least its columns.
            exported.bytes += write::file(&file, table, &rows)?;
            exported.files += 1;
        }
        Ok::<(), ExportError>(())
    };
    if contents.beds().len() < 2 {
        write(&place, rows::of(&entry, &place, &contents))?;
        return Ok(Some(exported));
    }
    for part in rows::by_bed(&contents) {
        let entry = Entry::of(path, root, &part);
        let mut place = rows::Place::of(&entry, &part);
        if part.bed_names().next().is_none() {
            // Not the laboratory's name, which may be that of another part.
            place.bed = UNNAMED.to_owned();
        }
        // A bed's part of an experiment has no verdict of its own.
        let mut tables = rows::of(&entry, &place, &part);
        tables.iter_mut().filter(|(t, _)| t.name == rows::VERDICTS).for_each(|(_, r)| r.clear());
        write(&place, tables)?;
    }
    let (place, tables) = rows::of_all_beds(&place, &contents);
    write(&place, tables)?;
    Ok(Some(exported))
}
