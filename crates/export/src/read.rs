//! Reads one store: its rows as columns, by bed.

use crate::columns::Columns;
use crate::manifest::{FileState, Known};
use crate::rows::{self, Row, StorePosition};
use crate::tables::Table;
use crate::{ExportError, failed};
use fwdlab_results::catalogue::Entry;
use fwdlab_results::store::{Store, UNNAMED};
use std::path::PathBuf;

/// A store to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Path of its file.
    pub path: PathBuf,
    /// The exported directory above it.
    pub root: PathBuf,
    /// Reads the store only if it has a run of this day or later (`2026-01-31`).
    pub since: Option<String>,
}

/// Result of reading a store.
#[derive(Debug)]
pub struct StoreReading {
    pub(crate) known: Known,
    pub(crate) parts: Vec<Part>,
}

/// The rows of one bed.
#[derive(Debug)]
pub struct Part {
    pub(crate) bed: String,
    /// Day; `unknown` without one.
    pub(crate) day: String,
    pub(crate) tables: Vec<Columns>,
}

impl Task {
    /// Returns the name of the store in the tables.
    pub(crate) fn store(&self) -> String {
        let directory = self.path.parent().unwrap_or(&self.path);
        let place = directory.strip_prefix(&self.root).unwrap_or(directory);
        if place.as_os_str().is_empty() { ".".to_owned() } else { place.display().to_string() }
    }

    /// Reads the store. The result has no rows if all runs are earlier than `since`, or of unknown
    /// age.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn read(&self) -> Result<StoreReading, ExportError> {
        let Task { path, root, since } = self;
        // Taken before reading, so that the next export notices later changes.
        let seen = FileState::of(path);
        let contents = Store::open_read_only(path)?.contents()?;
        let entry = Entry::of(path, root, &contents);
        let place = StorePosition::of(&entry, &contents);
        let newest = contents.runs.iter().filter_map(|run| run.started_at.get(..10)).max();
        let newest = newest.map(str::to_owned).or(place.day.clone());
        let known = Known {
            path: path.clone(),
            root: root.clone(),
            store: place.store.clone(),
            seen,
            newest,
            runs: contents.runs.len(),
            has_rows: true,
        };
        if known.is_older(since.as_deref()) {
            return Ok(StoreReading {
                known: Known { has_rows: false, ..known },
                parts: Vec::new(),
            });
        }
        let part = |place: &StorePosition, tables: Vec<(&'static Table, Vec<Row>)>| {
            let tables = tables.into_iter().map(|(table, rows)| Columns::of(table, rows));
            Ok::<Part, ExportError>(Part {
                bed: place.bed.clone(),
                day: place.day.clone().unwrap_or_else(|| "unknown".to_owned()),
                tables: tables.collect::<Result<_, _>>().map_err(|why| failed(path, &why))?,
            })
        };
        if contents.beds().len() < 2 {
            let parts = vec![part(&place, rows::of(&entry, &place, &contents))?];
            return Ok(StoreReading { known, parts });
        }
        let mut parts = Vec::new();
        for bed_contents in rows::by_bed(&contents) {
            let entry = Entry::of(path, root, &bed_contents);
            let mut place = StorePosition::of(&entry, &bed_contents);
            if bed_contents.bed_names().next().is_none() {
                // The laboratory's name may belong to another part.
                place.bed = UNNAMED.to_owned();
            }
            // One bed's part of an experiment has no separate verdict.
            let mut tables = rows::of(&entry, &place, &bed_contents);
            let verdicts = tables.iter_mut().filter(|(table, _)| table.name == rows::VERDICTS);
            verdicts.for_each(|(_, rows)| rows.clear());
            parts.push(part(&place, tables)?);
        }
        let (place, tables) = rows::of_all_beds(&place, &contents);
        parts.push(part(&place, tables)?);
        Ok(StoreReading { known, parts })
    }
}

impl Known {
    /// Returns true if the last run is earlier than `since`, or its day is unknown.
    pub(crate) fn is_older(&self, since: Option<&str>) -> bool {
        since.is_some_and(|since| self.newest.as_deref().is_none_or(|newest| newest < since))
    }
}
