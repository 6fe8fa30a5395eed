//! Outcome of each file, and notes on the whole set.

use super::Refused;
use super::groups::Sorted;
use super::runs::FileFault;
use crate::found::{FoundFile, ResultSet};
use fwdlab_results::store::{Source, Status};
use std::collections::BTreeMap;

/// Collects outcomes while a set is read.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Files that should contain results but do not: name and reason.
    pub(super) refused: BTreeMap<String, String>,
    /// Files without results: name and reason.
    ignored: BTreeMap<String, String>,
    /// Files that were read with a remark: name and remark.
    remarked: BTreeMap<String, String>,
    /// Notes on the whole set.
    pub(super) notes: Vec<String>,
}

impl Journal {
    pub(super) fn of(sorted: &Sorted<'_>) -> Journal {
        let mut journal = Journal::default();
        for (file, why) in &sorted.refused {
            journal.refuse(file, why.clone());
        }
        journal
    }

    pub(super) fn refuse(&mut self, file: &FoundFile, why: String) {
        self.refused.insert(file.name.clone(), why);
    }

    pub(super) fn ignore(&mut self, file: &FoundFile, why: &str) {
        self.ignored.insert(file.name.clone(), why.to_owned());
    }

    pub(super) fn complain(&mut self, complaints: Vec<FileFault>) {
        for (name, why, refused) in complaints {
            let list = if refused { &mut self.refused } else { &mut self.remarked };
            list.insert(name, why);
        }
    }

    /// Returns every file of the set with its outcome.
    pub(super) fn sources(&self, set: &ResultSet) -> Vec<Source> {
        let trees = set.configurations.iter().flat_map(|tree| &tree.files);
        let mut sources: Vec<Source> = set
            .files
            .iter()
            .chain(trees)
            .chain(&set.lab)
            .map(|file| {
                let lists = [
                    (&self.refused, Status::Refused),
                    (&self.ignored, Status::Ignored),
                    (&self.remarked, Status::Read),
                ];
                let found = lists.iter().find_map(|(list, status)| {
                    list.get(&file.name).map(|message| (*status, message.clone()))
                });
                let (status, message) = found.unwrap_or((Status::Read, String::new()));
                Source {
                    path: file.name.clone(),
                    size: file.size,
                    modified_ns: file.modified_ns,
                    status,
                    message,
                }
            })
            .collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        sources.dedup_by(|a, b| a.path == b.path);
        sources
    }

    /// Returns the error for a set without a readable run.
    pub(super) fn refused(self, set: &ResultSet) -> Refused {
        let label = &set.place.label;
        let why = match self.refused.len() {
            0 => format!(
                "{label}: no receiver's log (bench.GROUP.ITERATION.receiver) and no search for the \
                 equilibrium; name the directory that holds them"
            ),
            n => format!("{label}: none of its runs can be read ({n} files refused)"),
        };
        Refused { why, files: self.refused.into_iter().collect() }
    }
}
