//! What an import adds to a store: where the runs come from, what was read and
//! what was published with them.
//!
//! An imported store is made as a whole ([`Store::create_imported`]): it is
//! written beside its place and moved there when it is complete, so a crash
//! leaves the old one or the new one, never a part.

use super::atomic::StoreBuilder;
use super::{Invocation, Reproductions, Store, StoreError};
use fwdlab_model::Plan;
use fwdlab_model::record::RunRecord;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Everything that an import knows besides the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Import {
    /// Directory that was read, as it was named.
    pub origin: String,
    /// What holds for all runs, and for each variant.
    pub about: About,
    /// Every file that was met, sorted by path.
    pub sources: Vec<Source>,
    /// Texts and pictures published with the runs, sorted by path.
    pub documents: Vec<Document>,
}

/// What an import found out about a result set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
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
    /// What each configuration sets against the plain one: name and one line.
    #[serde(default)]
    pub configurations: Vec<(String, String)>,
    /// True when the published lists were made with the upper of two middle
    /// values as the median, as ministat had it before 2016.
    #[serde(default)]
    pub upper_median: bool,
    /// Lines for the list of the set-up, as published or as read from
    /// commands and configurations.
    pub setup: Vec<String>,
    /// Remarks on the whole set.
    pub notes: Vec<String>,
    /// What was published, held against the runs; none in stores of before it was kept.
    #[serde(default)]
    pub reproductions: Option<Reproductions>,
    /// The same bench without the patch that this set has; `None` if it was not imported together
    /// with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpatched: Option<Unpatched>,
}

/// The set of the same bench and revision without a patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unpatched {
    /// Its folder, e.g. `fbsd16-n311215`.
    pub label: String,
    /// Directory of its store, as seen from the directory of this one.
    pub store: String,
    /// Time of the latest change of its files, nanoseconds since 1970.
    pub newest_ns: i64,
    /// Its variants.
    pub groups: Vec<UnpatchedGroup>,
}

/// A variant of the set without the patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnpatchedGroup {
    /// Name in the files, which is the patched variant's.
    pub name: String,
    /// Figures of its runs by the archive's rule.
    pub values: Vec<f64>,
}

/// One variant of an imported set: the runs that share an `.info` file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Name in the files, e.g. `295802D5330.pf-statefull`.
    pub name: String,
    /// Name of the published list of its values, e.g. `pps.1`; none when
    /// nothing was published.
    pub published: Option<String>,
    /// Image or revision, as the `.info` has it.
    pub image: Option<String>,
    /// Configuration, likewise.
    pub configuration: Option<String>,
    /// Traffic (`inet4`, `inet6` ...), likewise.
    pub traffic: Option<String>,
    /// The device's `uname -a`.
    pub uname: Option<String>,
    /// Start as the harness wrote it.
    pub started: Option<String>,
    /// End as the harness wrote it.
    pub ended: Option<String>,
    /// What it changes against its baseline, in one line; empty when nothing
    /// is known.
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
    /// What became of it.
    pub status: Status,
    /// Why, or what was odd about it; empty when there is nothing to say.
    pub message: String,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Its content is in the store.
    Read,
    /// Of a kind that holds no results.
    Ignored,
    /// Should hold results and does not.
    Refused,
}

impl Status {
    const ALL: [Status; 3] = [Status::Read, Status::Ignored, Status::Refused];

    /// The name used in stores and reports.
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
    /// What it is.
    pub kind: DocumentKind,
    /// Index of the variant that it belongs to; none for the set as a whole.
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
    /// Instructions for gnuplot.
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

    /// The name used in stores.
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
    /// Makes the store at `path` from an import, in place of an imported one
    /// that is there already.
    ///
    /// # Errors
    /// [`StoreError::NotImported`] when a store of other runs is there,
    /// [`StoreError::NotAStore`] when another file is; [`StoreError::Locked`]
    /// and [`StoreError::NotWritable`] as [`Store::open`].
    pub fn create_imported(
        path: &Path,
        plan: &Plan,
        invocation: &Invocation,
        runs: &[RunRecord],
        import: &Import,
    ) -> Result<(), StoreError> {
        let mut whole = StoreBuilder::begin(path)?;
        if path.exists() && Store::open_read_only(path)?.import()?.is_none() {
            return Err(StoreError::NotImported { path: path.to_path_buf() });
        }
        let store = whole.store();
        store.adopt_plan(plan, "")?;
        store.begin_invocation(invocation)?;
        store.insert_runs(runs)?;
        store.insert_import(import)?;
        whole.finish()
    }

    /// What an import left in the store; none for runs of fwdlab's own.
    ///
    /// # Errors
    /// When the store can't be read.
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

    /// The files that an import read; none for runs of fwdlab's own.
    ///
    /// # Errors
    /// When the store can't be read.
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

    fn about(&self) -> Result<Option<(String, About)>, StoreError> {
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
