//! Input of a comparison: variants and metadata of a file of any kind.

use super::error::CompareError;
use crate::label::Label;
use crate::quantity::Quantity;
use crate::report::analysis::RunResult;
use crate::stats::BlockedRun;
use crate::stats::alternation::Slice;
use crate::stats::sequential::Mode;
use fwdlab_model::labels::some_of;
use fwdlab_model::record::Executed;
use fwdlab_model::{Plan, suggest};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Kinds of input files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One value per run, one variant.
    List,
    /// Lines with named columns.
    Table,
    /// A store of fwdlab.
    Store,
    /// Results of another tool.
    Peer,
}

/// An input file.
#[derive(Debug)]
pub(super) struct Input {
    /// Path given by the user.
    pub(super) path: PathBuf,
    /// Short name that distinguishes it from the other inputs.
    pub(super) name: String,
    /// Kind of the file.
    pub(super) kind: Kind,
    /// Variants, at least one.
    pub(super) variants: Vec<Variant>,
    /// True if the blocks of the runs are those of an experiment, not only run numbers.
    pub(super) has_blocks: bool,
    /// Metadata of the experiment, if known.
    pub(super) origin: Option<Origin>,
    /// Origin of the values, if known.
    pub(super) label: Option<Label>,
    /// The plan. `None` unless the file is a store.
    pub(super) plan: Option<Plan>,
    /// Streams of an alternation; empty unless the file is a store.
    pub(super) streams: Vec<Stream>,
    /// Named beds of the measurement.
    pub(super) beds: Vec<String>,
    /// Remarks.
    pub(super) notes: Vec<String>,
    /// Meaning of the values in results of another tool. `None` for other files.
    pub(super) peer: Option<Peer>,
}

/// Results of another tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Peer {
    /// Name of the tool.
    pub(super) tool: String,
    /// Meaning of each variant's values.
    pub(super) benchmarks: Vec<Identity>,
}

/// Meaning of a variant's values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Identity {
    /// Quantity of the values.
    pub(super) quantity: Quantity,
    /// Title of the values, e.g. `bits per second received`.
    pub(super) title: String,
    /// Name of the benchmark in the file. `None` if the format has no names.
    pub(super) name: Option<String>,
    /// True if the name identifies the measurement, so that two names are not comparable.
    pub(super) is_identified: bool,
}

impl Identity {
    /// Name of the benchmark if it identifies the measurement.
    pub(super) fn benchmark(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.is_identified)
    }
}

/// Metadata of an experiment.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// Index of each variant's baseline. `None` for a baseline.
    pub(super) baselines: Vec<Option<usize>>,
    /// Confidence in percent that the experiment specifies.
    pub(super) confidence: f64,
    /// Margin of equivalence that the experiment specifies, as a ratio.
    pub(super) margin: f64,
    /// Rule that may have stopped the experiment early, and the maximum number of blocks.
    pub(super) stop: Option<(Mode, u32)>,
    /// True if a run has a warning that invalidates all numbers.
    pub(super) is_distrusted: bool,
}

/// Runs of one variant.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// Label of the variant.
    pub(super) label: String,
    /// One value per included run, in the order of the file.
    pub(super) runs: Vec<BlockedRun>,
    /// All runs with all their data, also those left out of verdicts; empty unless the file is a
    /// store.
    pub(super) known: Vec<RunResult>,
    /// Instructions executed in the counted runs of `known`; empty unless the file is a store of counts.
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
    /// Variants that alternated.
    pub(super) variants: Vec<usize>,
    /// Slices of the variants.
    pub(super) slices: Vec<Slice>,
}

impl Input {
    /// Finds the variant with this label.
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

    /// Label of a list: the file name without its last extension.
    pub(super) fn stem(path: &Path) -> String {
        path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }
}
