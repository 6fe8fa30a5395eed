//! Input of a comparison: variants and metadata of a file of any kind.

use super::error::CompareError;
use crate::label::Label;
use crate::report::analysis::RunResult;
use crate::stats::BlockedRun;
use crate::stats::alternation::Slice;
use crate::stats::sequential::Mode;
use fwdlab_model::labels::some_of;
use fwdlab_model::record::Executed;
use fwdlab_model::{Plan, suggest};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One figure per run, one variant.
    List,
    /// Lines with named columns.
    Table,
    /// A store of fwdlab.
    Store,
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Input {
    /// As the user named it.
    pub(super) path: PathBuf,
    /// Short name that distinguishes it from the other inputs.
    pub(super) name: String,
    /// Kind of the file.
    pub(super) kind: Kind,
    /// Its variants, at least one.
    pub(super) variants: Vec<Variant>,
    /// True when the runs' blocks are those of an experiment, and not just
    /// their numbers.
    pub(super) has_blocks: bool,
    /// Metadata of the experiment, if known.
    pub(super) origin: Option<Origin>,
    /// Origin of its figures, if known.
    pub(super) label: Option<Label>,
    /// The plan; of a store only.
    pub(super) plan: Option<Plan>,
    /// Streams of an alternation; of a store only.
    pub(super) streams: Vec<Stream>,
    /// The beds that it was measured on, where they have names.
    pub(super) beds: Vec<String>,
    /// Remarks.
    pub(super) notes: Vec<String>,
}

/// Metadata of an experiment.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// For each variant the index of its baseline; none for a baseline.
    pub(super) baselines: Vec<Option<usize>>,
    /// Confidence in percent that the experiment asks for.
    pub(super) confidence: f64,
    /// Margin of equivalence that it asks for, as a ratio.
    pub(super) margin: f64,
    /// The rule that may have stopped it early, and the most blocks.
    pub(super) stop: Option<(Mode, u32)>,
    /// True if one of its runs has a warning by which no number can be trusted.
    pub(super) is_distrusted: bool,
}

/// One variant's runs.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// Its label.
    pub(super) label: String,
    /// One figure per run, in the order of the file.
    pub(super) runs: Vec<BlockedRun>,
    /// The same runs with what is known of each; of a store only, else empty.
    pub(super) known: Vec<RunResult>,
    /// What the same runs executed, by run; of a store of counts only, else empty.
    pub(super) executed: Vec<Executed>,
}

impl Variant {
    pub(super) fn values(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.pps).collect()
    }
}

/// A stream of an alternation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stream {
    /// The variants that alternated.
    pub(super) variants: Vec<usize>,
    /// Their slices.
    pub(super) slices: Vec<Slice>,
}

impl Input {
    /// The variant called `label`.
    pub(super) fn variant(&self, label: &str) -> Result<usize, CompareError> {
        if self.kind == Kind::List {
            let what = format!("this file holds one list of figures and no variant `{label}`");
            let next = "leave out the colon and what follows it";
            return Err(CompareError::input(&self.path, None, what, next));
        }
        if let Some(index) = self.variants.iter().position(|variant| variant.label == label) {
            return Ok(index);
        }
        let labels = self.variants.iter().map(|variant| variant.label.as_str());
        let what = format!("there is no variant `{label}`");
        let next = match suggest::nearest(label, labels.clone()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("its variants are {}", some_of(labels)),
        };
        Err(CompareError::input(&self.path, None, what, next))
    }

    /// The label of a list: the file's name without its last extension.
    pub(super) fn stem(path: &Path) -> String {
        path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }
}
