//! Packs: all rows of some stores that belong to one bed and one period, in one file per table.
//!
//! Files of a pack never change. To change a pack, it is read and written under a name that no
//! generation has used.

use crate::columns::Columns;
use crate::manifest::PackEntry;
use crate::tables::{TABLES, Table};
use crate::{ExportError, failed};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Rows of some stores.
#[derive(Debug)]
pub(crate) struct Pack {
    /// Bed.
    pub bed: String,
    /// Period.
    pub period: String,
    /// Names of the stores.
    pub stores: BTreeSet<String>,
    /// Rows of all tables together.
    pub rows: usize,
    held: Held,
}

#[derive(Debug)]
enum Held {
    /// A set of columns for each table.
    Memory(Vec<Columns>),
    /// The generation's directory, and the files of this pack in it.
    Files(PathBuf, PackEntry),
}

impl Pack {
    /// Creates a pack in memory from one set of columns per table.
    pub(crate) fn new(bed: &str, period: &str, store: &str, tables: Vec<Columns>) -> Pack {
        Pack {
            bed: bed.to_owned(),
            period: period.to_owned(),
            stores: BTreeSet::from([store.to_owned()]),
            rows: tables.iter().map(Columns::rows).sum(),
            held: Held::Memory(tables),
        }
    }

    /// Creates a pack without rows, for tables without any.
    pub(crate) fn empty() -> Pack {
        let unknown = "unknown".to_owned();
        let held = Held::Memory(TABLES.iter().map(Columns::new).collect());
        Pack { bed: unknown.clone(), period: unknown, stores: BTreeSet::new(), rows: 0, held }
    }

    /// Refers to the files of a pack in a generation.
    pub(crate) fn of_files(generation: &Path, packed: &PackEntry) -> Pack {
        Pack {
            bed: packed.bed.clone(),
            period: packed.period.clone(),
            stores: packed.stores.clone(),
            rows: packed.rows,
            held: Held::Files(generation.to_owned(), packed.clone()),
        }
    }

    /// Returns true if the rows are in files, not in memory.
    pub(crate) fn is_in_files(&self) -> bool {
        matches!(self.held, Held::Files(..))
    }

    /// Appends the rows of another pack of the same bed and period; all are in memory afterwards.
    /// Files of the generation under construction are removed.
    pub(crate) fn append(&mut self, other: Pack, making: &Path) -> Result<(), ExportError> {
        let current = std::mem::replace(&mut self.held, Held::Memory(Vec::new()));
        let mut tables = current.load(making)?;
        for (table, more) in tables.iter_mut().zip(other.held.load(making)?) {
            table.append(more);
        }
        self.held = Held::Memory(tables);
        self.rows += other.rows;
        self.stores.extend(other.stores);
        Ok(())
    }

    /// Removes the rows of these stores; `None` if no row is left.
    pub(crate) fn without(
        mut self,
        gone: &BTreeSet<String>,
        making: &Path,
    ) -> Result<Option<Pack>, ExportError> {
        if self.stores.is_disjoint(gone) {
            return Ok(Some(self));
        }
        self.stores.retain(|store| !gone.contains(store));
        if self.stores.is_empty() {
            return Ok(None);
        }
        let tables = self.held.load(making)?.into_iter();
        let tables: Vec<Columns> =
            tables.map(|table| table.kept(|store| !gone.contains(store))).collect();
        self.rows = tables.iter().map(Columns::rows).sum();
        Ok(Some(Pack { held: Held::Memory(tables), ..self }))
    }

    /// Puts the pack into a generation. Writes rows in memory under `name`; reuses files of this or
    /// another generation unchanged.
    pub(crate) fn put(self, generation: &Path, name: &str) -> Result<PackEntry, ExportError> {
        let (file, tables) = match &self.held {
            Held::Memory(_) => (name, None),
            Held::Files(from, packed) => (packed.file.as_str(), Some((from, packed))),
        };
        let packed = PackEntry {
            bed: self.bed,
            period: self.period,
            file: file.to_owned(),
            rows: self.rows,
            stores: self.stores,
        };
        let Some((from, before)) = tables else {
            let Held::Memory(tables) = self.held else { return Ok(packed) };
            for (table, columns) in TABLES.iter().zip(tables) {
                // Tables without rows are written too, so that readers always find the columns.
                let path = packed.path(generation, table);
                let write = |columns: Columns| -> Result<(), Box<dyn std::error::Error>> {
                    fs::create_dir_all(path.parent().unwrap_or(&path))?;
                    Ok(fs::write(&path, columns.sorted().file()?)?)
                };
                write(columns).map_err(|why| failed(&path, why.as_ref()))?;
            }
            return Ok(packed);
        };
        for table in &TABLES {
            let (old, new) = (before.path(from, table), packed.path(generation, table));
            let put = || {
                fs::create_dir_all(new.parent().unwrap_or(&new))?;
                if from == generation {
                    return fs::rename(&old, &new);
                }
                // Files of packs never change, so generations can share them by hard links. If the
                // file system has none, the file is copied.
                fs::hard_link(&old, &new).or_else(|_| fs::copy(&old, &new).map(drop))
            };
            put().map_err(|why| failed(&new, &why))?;
        }
        Ok(packed)
    }
}

impl Held {
    fn load(self, making: &Path) -> Result<Vec<Columns>, ExportError> {
        match self {
            Held::Memory(tables) => Ok(tables),
            Held::Files(generation, packed) => {
                let read = |table: &'static Table| {
                    let path = packed.path(&generation, table);
                    let columns = Columns::read(&path, table).map_err(|why| {
                        ExportError::Damaged { path: path.clone(), why: why.to_string() }
                    })?;
                    if generation == making {
                        fs::remove_file(&path).map_err(|why| failed(&path, &why))?;
                    }
                    Ok(columns)
                };
                TABLES.iter().map(read).collect()
            }
        }
    }
}

impl PackEntry {
    /// Returns the path of a table's file, in folders that readers interpret as columns.
    pub(crate) fn path(&self, generation: &Path, table: &Table) -> PathBuf {
        let folder = generation.join(table.name).join(format!("bed={}", self.bed));
        folder.join(format!("period={}", self.period)).join(&self.file)
    }

    /// Returns the size of its files in bytes; `None` if one is missing.
    pub(crate) fn bytes(&self, generation: &Path) -> Option<u64> {
        let bytes = |table| Some(fs::metadata(self.path(generation, table)).ok()?.len());
        TABLES.iter().map(bytes).sum()
    }
}
