//! Stored counts: one JSON file per kernel, family and frame size, written after each feature.

use super::catalogue::Feature;
use crate::command::counted_guest::{Subject, TrafficArguments};
use crate::error::CliError;
use anyhow::{Context, Result};
use fwdlab_model::record::Executed;
use fwdlab_results::counts::Foreground;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Version of the files.
const VERSION: u32 = 1;

/// Counts of a kernel with all features so far.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(super) struct PriceList {
    version: u32,
    /// Identity of the kernel's file.
    pub(super) file: KernelFile,
    /// Release and build that the kernel reports; empty before its first boot.
    pub(super) release: String,
    pub(super) build: String,
    /// The traffic, as the options of the command.
    pub(super) traffic: String,
    /// Boots in which features were counted.
    pub(super) boots: Vec<Plain>,
    /// Features by name.
    pub(super) features: BTreeMap<String, Row>,
}

/// Identity of a kernel's file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct KernelFile {
    pub(super) name: String,
    /// Length in bytes.
    pub(super) length: u64,
    /// Time of its last change, seconds since 1970.
    pub(super) modified: u64,
}

/// Counts of plain forwarding in one boot.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(super) struct Plain {
    /// Before any feature.
    pub(super) first: Executed,
    /// After a feature was removed, with its name: checks that plain forwarding is restored.
    pub(super) checks: Vec<(String, f64)>,
}

/// Largest difference between two counts of plain forwarding, as a ratio, that is no trace of a
/// feature: totals of one boot repeat within it.
const TRACE: f64 = 0.01;

impl Plain {
    /// True if a later count of plain forwarding shows traces of a feature.
    pub(super) fn is_trace(&self, after: f64) -> bool {
        (after / total(&self.first) - 1.0).abs() > TRACE
    }
}

/// Instructions per packet, background excluded.
pub(super) fn total(executed: &Executed) -> f64 {
    Foreground::of([executed]).total(executed).map_or(0.0, |total| total.instructions)
}

/// A feature's result.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(super) struct Row {
    /// [`Feature::declaration`] at the time of counting.
    pub(super) declaration: String,
    pub(super) outcome: Outcome,
}

/// Counts with a feature, or the reason for their absence.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    /// It was counted.
    Counted {
        executed: Executed,
        /// Packets sent while counting, and the number lost of them.
        sent: u64,
        lost: u64,
        /// Index of the boot.
        boot: usize,
    },
    /// The kernel or this machine does not have it.
    Absent { why: String },
}

impl PriceList {
    /// A list without counts.
    pub(super) fn new(file: KernelFile, traffic: String) -> PriceList {
        let (release, build) = (String::new(), String::new());
        let (boots, features) = (Vec::new(), BTreeMap::new());
        PriceList { version: VERSION, file, release, build, traffic, boots, features }
    }

    /// The result of a feature, if it was counted as it is declared now.
    pub(super) fn row(&self, feature: &Feature) -> Option<&Row> {
        self.features.get(&feature.name).filter(|row| row.declaration == feature.declaration())
    }

    /// Stores a feature's result.
    pub(super) fn add(&mut self, feature: &Feature, outcome: Outcome) {
        let row = Row { declaration: feature.declaration(), outcome };
        self.features.insert(feature.name.clone(), row);
    }
}

/// The file of a kernel's list, with its contents.
pub(super) struct Stored {
    path: PathBuf,
    pub(super) list: PriceList,
}

impl Stored {
    /// Opens the list of a kernel below `directory`; an empty one if the file is missing, or if the
    /// kernel's file has changed.
    ///
    /// # Errors
    /// If a file can't be read, or was counted with other traffic.
    pub(super) fn open(
        directory: &Path,
        subject: &Subject,
        traffic: &TrafficArguments,
    ) -> Result<Stored> {
        let file = identity(subject);
        let name = format!("{}.{}-{}.json", file.name, traffic.family, traffic.frame_size);
        Stored::at(directory.join(name), PriceList::new(file, traffic.text()))
    }

    /// Reads the list at `path`; returns `empty` if the file is missing, or belongs to another
    /// kernel.
    pub(super) fn at(path: PathBuf, empty: PriceList) -> Result<Stored> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Stored { path, list: empty });
            }
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let list: PriceList = serde_json::from_str(&text).map_err(|error| {
            CliError::Mistake(format!(
                "{}: not a list of prices: {error}\n  next step: move the file away",
                path.display()
            ))
        })?;
        if list.version != VERSION || list.file != empty.file {
            return Ok(Stored { path, list: empty });
        }
        if list.traffic != empty.traffic {
            return Err(CliError::Mistake(format!(
                "{}: counted with {}, not with {}\n  next step: give the same options, or another \
                 directory with --out",
                path.display(),
                list.traffic,
                empty.traffic
            ))
            .into());
        }
        Ok(Stored { path, list })
    }

    /// The features without a result.
    pub(super) fn missing<'f>(&self, features: &'f [Feature]) -> Vec<&'f Feature> {
        features.iter().filter(|feature| self.list.row(feature).is_none()).collect()
    }

    /// Writes the list: completely or not at all.
    ///
    /// # Errors
    /// If it can't be written.
    pub(super) fn save(&self) -> Result<()> {
        let fail = || format!("{}: the counts can't be written there", self.path.display());
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory).with_context(fail)?;
        }
        let part = self.path.with_extension("part");
        let text = serde_json::to_string(&self.list)?;
        fs::write(&part, text).with_context(fail)?;
        fs::rename(&part, &self.path).with_context(fail)
    }
}

/// Identity of a kernel's file; of an installed kernel only its name is known.
fn identity(subject: &Subject) -> KernelFile {
    let name = subject.name.clone();
    let Ok(meta) = fs::metadata(&subject.path) else {
        return KernelFile { name, ..KernelFile::default() };
    };
    let modified = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let modified = modified.unwrap_or_default().as_secs();
    KernelFile { name, length: meta.len(), modified }
}
