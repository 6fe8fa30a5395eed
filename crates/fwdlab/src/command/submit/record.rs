//! Record of a submission, stored next to the shares.

use anyhow::{Context, Result};
use fwdlab_model::Plan;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Version of the file.
const VERSION: u32 = 1;

/// A submission: its plan, the number of shares, and the jobs of the last submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    /// Hash of the plan.
    pub(super) plan: String,
    /// Number of shares; it never changes, since their stores depend on it.
    pub(super) shares: u32,
    /// Ids of the jobs that were submitted last.
    pub(super) jobs: Vec<String>,
}

impl Record {
    /// Creates a record without jobs.
    pub(super) fn new(plan: &Plan, shares: u32) -> Record {
        Record { version: VERSION, plan: plan.hash.clone(), shares, jobs: Vec::new() }
    }

    /// Path of the record in the directory of the shares.
    pub(super) fn path(shares: &Path) -> PathBuf {
        shares.join("submission.json")
    }

    /// Reads the record in the directory of the shares; `None` if there is none.
    ///
    /// # Errors
    /// If it can't be read, or has another version.
    pub(super) fn read(shares: &Path) -> Result<Option<Record>> {
        let path = Record::path(shares);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("reading {}", path.display()))?,
        };
        let unreadable = |why: String| {
            crate::error::CliError::Environment(format!(
                "{} can't be read: {why}\n  next step: see with squeue that none of the experiment's \
                 jobs is in the queue, then give --fresh, which keeps what is there aside",
                path.display()
            ))
        };
        // The version is checked first: another version may lack fields that are read here.
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if json["version"] != VERSION {
            let why = format!("its version is {}, not {VERSION}", json["version"]);
            return Err(unreadable(why).into());
        }
        let record = serde_json::from_value(json).map_err(|error| unreadable(error.to_string()))?;
        Ok(Some(record))
    }

    /// Writes the record atomically: after a crash the file is either the new or the old one.
    ///
    /// # Errors
    /// If it can't be written.
    pub(super) fn write(&self, shares: &Path) -> Result<()> {
        let path = Record::path(shares);
        let part = path.with_extension("part");
        let text = serde_json::to_string_pretty(self)?;
        let write = || {
            let mut file = fs::File::create(&part)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&part, &path)
        };
        write().with_context(|| format!("writing {}", path.display()))
    }
}
