//! Import data of a store: the origin of the runs, the files that were read, and the results
//! published with them.
//!
//! [`Store::create_imported`] creates the store atomically: it writes a temporary file and renames
//! it when it is complete, so a crash leaves the old store or the new one, never a partial one.

use super::atomic::StoreBuilder;
use super::{Invocation, Reproductions, Store, StoreError};
use fwdlab_model::Plan;
use fwdlab_model::record::RunRecord;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Everything in an import except the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Import {
    /// Directory that was read, as given by the user.
    pub origin: String,
    /// Metadata of the whole set and of each variant.
    pub about: ImportMetadata,
    /// Every file found, sorted by path.
    pub sources: Vec<Source>,
    /// Texts and pictures published with the runs, sorted by path.
    pub documents: Vec<Document>,
}

/// Metadata of an imported result set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportMetadata {
    /// Machine under test as the archive's folders name it, e.g.
    /// `Xeon_E5-2650_8Cores`; empty when unknown.
    pub machine: String,
    /// Its network interface, e.g. `Chelsio_T540-CR`; empty when unknown.
    pub interface: String,
    /// The bench's folder, e.g. `hw.cxgbe.nXxq10g`; empty when unknown.
    pub topic: String,
    /// The result's folder, e.g. `fbsd10.2`.
    pub label: String,
    /// The variants, in the order of the plan.
    pub groups: Vec<Group>,
    /// Description of each configuration relative to the plain one: name and one line.
    #[serde(default)]
    pub configurations: Vec<(String, String)>,
    /// True if the published lists use the upper of two middle values as the median, as ministat
    /// did before 2016.
    #[serde(default)]
    pub upper_median: bool,
    /// Lines of the set-up list, as published or as read from commands and configurations.
    pub setup: Vec<String>,
    /// Remarks on the whole result set.
    pub notes: Vec<String>,
    /// Comparison of the published results with the runs; `None` in stores that predate it.
    #[serde(default)]
    pub reproductions: Option<Reproductions>,
    /// The same bench without the patch of this set; `None` if it was not imported together with
    /// this set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpatched: Option<UnpatchedSet>,
}

/// The set of the same bench and revision without a patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnpatchedSet {
    /// Its folder, e.g. `fbsd16-n311215`.
    pub label: String,
    /// Directory of its store, as seen from the directory of this one.
    pub store: String,
    /// Time of the latest change of its files, nanoseconds since 1970.
    pub newest_ns: i64,
    /// Its variants.
    pub groups: Vec<UnpatchedGroup>,
}

/// A variant of the unpatched set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnpatchedGroup {
    /// Name in the files, equal to the patched variant's name.
    pub name: String,
    /// Results of its runs, by the archive's rule.
    pub values: Vec<f64>,
}

/// One variant of an imported set: the runs that share an `.info` file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Name in the files, e.g. `295802D5330.pf-statefull`.
    pub name: String,
    /// Name of the published list of its values, e.g. `pps.1`; `None` if nothing was published.
    pub published: Option<String>,
    /// Image or revision in the `.info` file.
    pub image: Option<String>,
    /// Configuration in the `.info` file.
    pub configuration: Option<String>,
    /// Traffic (`inet4`, `inet6` ...) in the `.info` file.
    pub traffic: Option<String>,
    /// The device's `uname -a`.
    pub uname: Option<String>,
    /// Start time as the harness wrote it.
    pub started: Option<String>,
    /// End time as the harness wrote it.
    pub ended: Option<String>,
    /// Its change from the baseline, in one line; empty if unknown.
    pub changes: String,
}

/// One file of the source tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path below [`Import::origin`].
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Time of the last change, nanoseconds since 1970.
    pub modified_ns: i64,
    /// Result of reading it.
    pub status: Status,
    /// Reason for the status or remark on the file; empty if there is none.
    pub message: String,
}

/// Result of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The store contains its content.
    Read,
    /// A kind of file without results.
    Ignored,
    /// A kind of file with results, but without a readable one.
    Refused,
}

impl Status {
    const ALL: [Status; 3] = [Status::Read, Status::Ignored, Status::Refused];

    /// Returns the name used in stores and reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Read => "read",
            Status::Ignored => "ignored",
            Status::Refused => "refused",
        }
    }
}

/// A text or picture published with the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Path below [`Import::origin`].
    pub path: String,
    /// Kind of document.
    pub kind: DocumentKind,
    /// Index of its variant; `None` for a document of the whole set.
    pub variant: Option<usize>,
    /// The file's bytes.
    pub content: Vec<u8>,
}

/// Kinds of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    /// The published text.
    Readme,
    /// One value per run (`.pps`).
    List,
    /// Medians with their range (`.data`).
    Table,
    /// A gnuplot script.
    Plot,
    /// A published picture other than a flame graph.
    Picture,
    /// A published flame graph (SVG).
    FlameGraph,
    /// Folded stacks.
    Stacks,
    /// A call graph of pmcstat(8).
    CallGraph,
    /// A file of a configuration tree.
    Configuration,
    /// A configuration of the harness.
    Lab,
}

impl DocumentKind {
    const ALL: [DocumentKind; 10] = [
        DocumentKind::Readme,
        DocumentKind::List,
        DocumentKind::Table,
        DocumentKind::Plot,
        DocumentKind::Picture,
        DocumentKind::FlameGraph,
        DocumentKind::Stacks,
        DocumentKind::CallGraph,
        DocumentKind::Configuration,
        DocumentKind::Lab,
    ];

    /// Returns the name used in stores.
    pub fn name(self) -> &'static str {
        match self {
            DocumentKind::Readme => "readme",
            DocumentKind::List => "list",
            DocumentKind::Table => "table",
            DocumentKind::Plot => "plot",
            DocumentKind::Picture => "picture",
            DocumentKind::FlameGraph => "flame-graph",
            DocumentKind::Stacks => "stacks",
            DocumentKind::CallGraph => "call-graph",
            DocumentKind::Configuration => "configuration",
            DocumentKind::Lab => "lab",
        }
    }
}

impl Store {
    /// Creates the store at `path` from an import. Replaces an existing imported store.
    ///
    /// # Errors
    /// [`StoreError::NotImported`] if a store of other runs exists there, [`StoreError::NotAStore`]
    /// if another file does; [`StoreError::Locked`] and [`StoreError::NotWritable`] as for
    /// [`Store::open`].
    pub fn create_imported(
        path: &Path,
        plan: &Plan,
        invocation: &Invocation,
        runs: &[RunRecord],
        import: &Import,
    ) -> Result<(), StoreError> {
        let mut builder = StoreBuilder::begin(path)?;
        if path.exists() && Store::open_read_only(path)?.import()?.is_none() {
            return Err(StoreError::NotImported { path: path.to_path_buf() });
        }
        let store = builder.store();
        store.adopt_plan(plan, "")?;
        store.begin_invocation(invocation)?;
        store.insert_runs(runs)?;
        store.insert_import(import)?;
        builder.finish()
    }

    /// Returns the import; `None` for runs that fwdlab measured itself.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn import(&self) -> Result<Option<Import>, StoreError> {
        let Some((origin, about)) = self.about()? else { return Ok(None) };
        let documents = self.rows("SELECT * FROM document ORDER BY path", |row| {
            let kind: String = row.get("kind")?;
            let kind = DocumentKind::ALL.into_iter().find(|known| known.name() == kind);
            Ok(Document {
                path: row.get("path")?,
                kind: kind.unwrap_or(DocumentKind::Picture),
                variant: row.get::<_, Option<i64>>("variant")?.map(|variant| variant as usize),
                content: row.get("content")?,
            })
        })?;
        Ok(Some(Import { origin, about, sources: self.sources()?, documents }))
    }

    /// Returns the files that an import read; empty for runs that fwdlab measured itself.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn sources(&self) -> Result<Vec<Source>, StoreError> {
        self.rows("SELECT * FROM source ORDER BY path", |row| {
            let status: String = row.get("status")?;
            let status = Status::ALL.into_iter().find(|known| known.name() == status);
            Ok(Source {
                path: row.get("path")?,
                size: row.get::<_, i64>("size")?.cast_unsigned(),
                modified_ns: row.get("modified_ns")?,
                status: status.unwrap_or(Status::Ignored),
                message: row.get("message")?,
            })
        })
    }

    fn about(&self) -> Result<Option<(String, ImportMetadata)>, StoreError> {
        let row: Option<(String, String)> = self
            .connection
            .query_row("SELECT origin, json FROM import", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(|e| self.failed(e))?;
        row.map(|(origin, json)| Ok((origin, self.parse_json("what is imported", &json)?)))
            .transpose()
    }

    fn insert_import(&mut self, import: &Import) -> Result<(), StoreError> {
        let json = self.to_json("what is imported", &import.about)?;
        self.transaction(|tx| {
            tx.execute(
                "INSERT INTO import (id, origin, json) VALUES (1, ?, ?)",
                params![import.origin, json],
            )?;
            let mut insert = tx.prepare(
                "INSERT INTO source (path, size, modified_ns, status, message) \
                 VALUES (?, ?, ?, ?, ?)",
            )?;
            for source in &import.sources {
                insert.execute(params![
                    source.path,
                    source.size.cast_signed(),
                    source.modified_ns,
                    source.status.name(),
                    source.message
                ])?;
            }
            let mut insert = tx.prepare(
                "INSERT INTO document (path, kind, variant, content) VALUES (?, ?, ?, ?)",
            )?;
            for document in &import.documents {
                let variant = document.variant.map(|variant| variant as i64);
                let kind = document.kind.name();
                insert.execute(params![document.path, kind, variant, document.content])?;
            }
            Ok(())
        })
    }
}
