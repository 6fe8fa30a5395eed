//! Stored counts: one JSON file per kernel, family and frame size, written after each feature. A
//! kernel that was built again under the same name gets another file.

use super::catalogue::Feature;
use crate::command::counted_guest::{Subject, TrafficArguments};
use crate::error::CliError;
use anyhow::{Context, Result};
use fwdlab_model::record::Executed;
use fwdlab_results::counts::Foreground;
use fwdlab_results::store::WriterLock;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Version of the files.
const VERSION: u32 = 2;

/// Counts of a kernel with all features so far.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(in crate::command) struct PriceList {
    version: u32,
    /// Identity of the kernel's file.
    pub(super) file: KernelFile,
    /// Release and build that the kernel reports; empty before its first boot.
    pub(super) release: String,
    pub(super) build: String,
    /// The traffic, as the options of the command.
    pub(super) traffic: String,
    /// Boots in which features were counted.
    pub(in crate::command) boots: Vec<Plain>,
    /// Features by name.
    pub(super) features: BTreeMap<String, Row>,
}

/// Identity of a kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct KernelFile {
    /// The name that was given.
    pub(super) name: String,
    /// Hash of the sizes and times of its image and modules.
    pub(super) fingerprint: String,
}

/// Counts of plain forwarding in one boot, instructions per packet.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(in crate::command) struct Plain {
    /// Before any feature.
    pub(in crate::command) first: Executed,
    /// Packets sent while counting, and the number lost of them.
    #[serde(default)]
    pub(in crate::command) sent: u64,
    #[serde(default)]
    pub(in crate::command) lost: u64,
    /// After a feature was removed, with its name: checks that plain forwarding is restored.
    pub(super) checks: Vec<(String, f64)>,
    /// Features after whose removal the guest did not forward as before.
    pub(super) traces: Vec<String>,
}

/// Largest difference between two counts of plain forwarding, as a ratio, that is no trace of a
/// feature: totals of one boot repeat within it.
const TRACE: f64 = 0.01;

impl Plain {
    pub(super) fn new(first: &Executed, (sent, lost): (u64, u64)) -> Plain {
        Plain { first: first.clone(), sent, lost, checks: Vec::new(), traces: Vec::new() }
    }

    /// Records a count after a feature was removed; returns true if plain forwarding is restored.
    pub(super) fn check(&mut self, feature: &Feature, executed: &Executed) -> bool {
        let after = total(executed);
        self.checks.push((feature.name.clone(), after));
        let is_restored = (after / total(&self.first) - 1.0).abs() <= TRACE;
        if !is_restored {
            self.traces.push(feature.name.clone());
        }
        is_restored
    }
}

/// Instructions per packet, background excluded.
pub(super) fn total(executed: &Executed) -> f64 {
    Foreground::of([executed]).total(executed).map_or(0.0, |total| total.instructions)
}

/// A feature's result.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(in crate::command) struct Row {
    /// [`Feature::declaration`] at the time of counting.
    pub(super) declaration: String,
    pub(in crate::command) outcome: Outcome,
}

/// Counts with a feature, or the reason for their absence.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(in crate::command) enum Outcome {
    /// It was counted.
    Counted {
        /// Plain forwarding immediately before.
        plain: Box<Executed>,
        executed: Box<Executed>,
        /// Packets sent while counting, and the number lost of them.
        sent: u64,
        lost: u64,
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
    pub(in crate::command) fn row(&self, feature: &Feature) -> Option<&Row> {
        self.features.get(&feature.name).filter(|row| row.declaration == feature.declaration())
    }

    /// Stores a feature's result.
    pub(super) fn add(&mut self, feature: &Feature, outcome: Outcome) {
        let row = Row { declaration: feature.declaration(), outcome };
        self.features.insert(feature.name.clone(), row);
    }
}

/// The file of a kernel's list, with its contents.
pub(in crate::command) struct Stored {
    pub(super) path: PathBuf,
    pub(in crate::command) list: PriceList,
    /// Features that could not be counted this time, with the number of attempts and the last
    /// reason.
    pub(in crate::command) failures: BTreeMap<String, (u32, String)>,
}

/// Attempts to count a feature.
const ATTEMPTS: u32 = 2;

impl Stored {
    /// Opens the list of a kernel below `directory`; an empty one if the file is missing. Another
    /// kernel of the same name has another file.
    ///
    /// # Errors
    /// If a file can't be read, or was counted with other traffic.
    pub(in crate::command) fn open(
        directory: &Path,
        subject: &Subject,
        traffic: &TrafficArguments,
    ) -> Result<Stored> {
        let file = identity(subject)?;
        let KernelFile { name, fingerprint } = &file;
        let TrafficArguments { family, frame_size, .. } = traffic;
        let name = format!("{name}.{fingerprint}.{family}-{frame_size}.json");
        Stored::at(directory.join(name), PriceList::new(file, traffic.text()))
    }

    /// Reads the list at `path`; returns `empty` if the file is missing, or belongs to another
    /// kernel.
    pub(super) fn at(path: PathBuf, empty: PriceList) -> Result<Stored> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Stored::new(path, empty));
            }
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let of_other_version = |text: &str| {
            let found: Option<serde_json::Value> = serde_json::from_str(text).ok();
            found.is_some_and(|found| found["version"].is_u64() && found["version"] != VERSION)
        };
        if of_other_version(&text) {
            return Ok(Stored::new(path, empty));
        }
        let list: PriceList = serde_json::from_str(&text).map_err(|error| {
            CliError::Mistake(format!(
                "{}: not a list of prices: {error}\n  next step: move the file away",
                path.display()
            ))
        })?;
        if list.file != empty.file {
            return Ok(Stored::new(path, empty));
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
        Ok(Stored::new(path, list))
    }

    /// Locks the list against other processes, and reads it again: another process may have written
    /// to it.
    ///
    /// # Errors
    /// If another process counts this kernel, or the file can't be read.
    pub(super) fn lock(&mut self) -> Result<WriterLock> {
        let lock = WriterLock::acquire_with_directory(&self.path)?;
        let PriceList { file, traffic, .. } = self.list.clone();
        self.list = Stored::at(self.path.clone(), PriceList::new(file, traffic))?.list;
        Ok(lock)
    }

    fn new(path: PathBuf, list: PriceList) -> Stored {
        Stored { path, list, failures: BTreeMap::new() }
    }

    /// The features without a result that may be tried.
    pub(in crate::command) fn missing<'f>(&self, features: &'f [Feature]) -> Vec<&'f Feature> {
        let may_be_tried = |feature: &Feature| {
            self.failures.get(&feature.name).is_none_or(|(attempts, _)| *attempts < ATTEMPTS)
        };
        let is_missing = |feature: &&Feature| self.list.row(feature).is_none();
        features.iter().filter(is_missing).filter(|feature| may_be_tried(feature)).collect()
    }

    /// Stores a feature's result.
    pub(super) fn add(&mut self, feature: &Feature, outcome: Outcome) {
        self.failures.remove(&feature.name);
        self.list.add(feature, outcome);
    }

    /// Records that a feature could not be counted; returns true after the last attempt.
    pub(super) fn add_failure(&mut self, feature: &Feature, why: String) -> bool {
        let failure = self.failures.entry(feature.name.clone()).or_default();
        *failure = (failure.0 + 1, why);
        failure.0 >= ATTEMPTS
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
        let part = self.path.with_extension(format!("{}.part", std::process::id()));
        let text = serde_json::to_string(&self.list)?;
        fs::write(&part, text).with_context(fail)?;
        fs::rename(&part, &self.path).with_context(fail)
    }
}

/// Identity of a kernel.
///
/// # Errors
/// If one of its files can't be read.
fn identity(subject: &Subject) -> Result<KernelFile> {
    let mut hasher = Sha256::new();
    for file in subject.files()? {
        // Modules may be links to files of packages that are not installed.
        let Ok(meta) = fs::metadata(&file) else { continue };
        let modified = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let name = file.file_name().unwrap_or_default().as_encoded_bytes();
        hasher.update(name);
        // The numbers have a fixed length, so different files never are the same bytes.
        hasher.update(meta.len().to_le_bytes());
        hasher.update(modified.map_or(0, |at| at.as_secs()).to_le_bytes());
    }
    let fingerprint = hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(KernelFile { name: subject.name.clone(), fingerprint })
}
