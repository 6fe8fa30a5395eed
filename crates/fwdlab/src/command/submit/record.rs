//! What was handed in, kept beside the shares.

use anyhow::{Context, Result};
use fwdlab_model::Plan;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Version of the file.
const VERSION: u32 = 1;

/// A submission: which plan, in how many shares, and the jobs of the last time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    /// Hash of the plan.
    pub(super) plan: String,
    /// How many shares it is divided into; that never changes, as their stores are of these.
    pub(super) shares: u32,
    /// Numbers of the jobs that were handed in last.
    pub(super) jobs: Vec<String>,
}

impl Record {
    /// One of nothing handed in yet.
    pub(super) fn new(plan: &Plan, shares: u32) -> Record {
        Record { version: VERSION, plan: plan.hash.clone(), shares, jobs: Vec::new() }
    }

    /// Its file in the directory of the shares.
    pub(super) fn path(shares: &Path) -> PathBuf {
        shares.join("submission.json")
    }

    /// What is kept in the directory of the shares, if anything is.
    ///
    /// # Errors
    /// When it can't be read, or is of another version.
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
        // The version first: another one may lack what is read here.
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if json["version"] != VERSION {
            let why = format!("its version is {}, not {VERSION}", json["version"]);
            return Err(unreadable(why).into());
        }
        let record = serde_json::from_value(json).map_err(|error| unreadable(error.to_string()))?;
        Ok(Some(record))
    }

    /// Keeps it: the whole file or the old one, also after a crash.
    ///
    /// # Errors
    /// When it can't be written.
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
