//! Packs: all rows of some stores that are of one bed and one period, a file for each table.
//!
//! Files of a pack are never changed. A pack that has to become another is read, and written
//! under a name that no generation has used.

use crate::columns::Columns;
use crate::manifest::Packed;
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
    /// Rows of all tables.
    pub rows: usize,
    held: Held,
}

#[derive(Debug)]
enum Held {
    /// A set of columns for each table.
    Memory(Vec<Columns>),
    /// The files of this pack of this generation.
    Files(PathBuf, Packed),
}

impl Pack {
    /// Rows in memory: a set of columns for each table.
    pub(crate) fn new(bed: &str, period: &str, store: &str, tables: Vec<Columns>) -> Pack {
        Pack {
            bed: bed.to_owned(),
            period: period.to_owned(),
            stores: BTreeSet::from([store.to_owned()]),
            rows: tables.iter().map(Columns::rows).sum(),
            held: Held::Memory(tables),
        }
    }

    /// No rows, for tables without any.
    pub(crate) fn empty() -> Pack {
        let unknown = "unknown".to_owned();
        let held = Held::Memory(TABLES.iter().map(Columns::new).collect());
        Pack { bed: unknown.clone(), period: unknown, stores: BTreeSet::new(), rows: 0, held }
    }

    /// What is in the files of a generation.
    pub(crate) fn of_files(generation: &Path, packed: &Packed) -> Pack {
        Pack {
            bed: packed.bed.clone(),
            period: packed.period.clone(),
            stores: packed.stores.clone(),
            rows: packed.rows,
            held: Held::Files(generation.to_owned(), packed.clone()),
        }
    }

    /// True where it is in files, not in memory.
    pub(crate) fn is_in_files(&self) -> bool {
        matches!(self.held, Held::Files(..))
    }

    /// The rows of another pack of this bed and period as well; all are in memory then. Files of
    /// the generation in the making are removed.
    pub(crate) fn append(&mut self, other: Pack, making: &Path) -> Result<(), ExportError> {
        let own = std::mem::replace(&mut self.held, Held::Memory(Vec::new()));
        let mut tables = own.load(making)?;
        for (table, more) in tables.iter_mut().zip(other.held.load(making)?) {
            table.append(more);
        }
        self.held = Held::Memory(tables);
        self.rows += other.rows;
        self.stores.extend(other.stores);
        Ok(())
    }

    /// The same without these stores; none where nothing is left.
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

    /// Puts it into a generation: what is in memory is written under `name`, files of this or
    /// another generation are taken over as they are.
    pub(crate) fn put(self, generation: &Path, name: &str) -> Result<Packed, ExportError> {
        let (file, tables) = match &self.held {
            Held::Memory(_) => (name, None),
            Held::Files(from, packed) => (packed.file.as_str(), Some((from, packed))),
        };
        let packed = Packed {
            bed: self.bed,
            period: self.period,
            file: file.to_owned(),
            rows: self.rows,
            stores: self.stores,
        };
        let Some((from, before)) = tables else {
            let Held::Memory(tables) = self.held else { return Ok(packed) };
            for (table, columns) in TABLES.iter().zip(tables) {
                // Without rows too: a reader of all files of a table finds at least its columns.
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
                // Files of packs never change, so that generations may share them; where the
                // file system has no links, each has its own.
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

impl Packed {
    /// Its file of a table: in folders that readers take for columns.
    pub(crate) fn path(&self, generation: &Path, table: &Table) -> PathBuf {
        let folder = generation.join(table.name).join(format!("bed={}", self.bed));
        folder.join(format!("period={}", self.period)).join(&self.file)
    }

    /// Bytes of its files; none where one is missing.
    pub(crate) fn bytes(&self, generation: &Path) -> Option<u64> {
        let bytes = |table| Some(fs::metadata(self.path(generation, table)).ok()?.len());
        TABLES.iter().map(bytes).sum()
    }
}
