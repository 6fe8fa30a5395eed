//! Reads stores for a history, many at a time.

use super::date::{day_of_build, iso};
use super::place::Place;
use super::releases;
use super::revision::Revision;
use crate::facts::{ARCHIVE, named, revision};
use crate::report::analysis::Figures;
use crate::store::{Contents, Store, StoreError};
use fwdlab_model::record::Environment;
use std::path::Path;

/// The parts of a store that a history needs.
pub struct HistoryInput {
    pub(super) contents: Contents,
    pub(super) figures: Figures,
}

impl HistoryInput {
    /// Reads the store at `path`.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn of(path: &Path) -> Result<HistoryInput, StoreError> {
        let store = Store::open_read_only(path)?;
        let (mut contents, figures) = Figures::of_store(&store)?;
        contents.invocations = store.invocations()?;
        // The samples are no longer needed: only their figures are.
        contents.runs.clear();
        Ok(HistoryInput { contents, figures })
    }
}

/// Date of the software of a store, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SoftwareDate {
    /// Day of the source or the build of the store as a whole.
    pub(crate) made: Option<String>,
    /// The day used for sorting; a revision with a Git commit number sorts after FreeBSD's move to
    /// Git.
    pub(crate) sorted: Option<String>,
    /// Number of commits on a Git branch.
    pub(crate) commits: Option<u64>,
}

/// Date of the software of a store of the archive.
pub(crate) fn made(environment: &Environment, started_at: &str) -> SoftwareDate {
    let place = own_revision(environment, started_at, true).place;
    let built = || named(environment, ARCHIVE, "uname").and_then(day_of_build);
    let made = releases::day_of(&place).or_else(built).map(iso);
    let sorted = match place {
        Place::AllCommits(_) | Place::Commits(_) => Some(iso(releases::GIT_BEGINS)),
        _ => None,
    };
    let commits = match place {
        Place::Commits(number) => Some(number),
        _ => None,
    };
    SoftwareDate { sorted: made.clone().or(sorted), made, commits }
}

/// Revision of a store as a whole: the user's, else the archive's, else the kernel's, else the
/// time. A simulated device and the software router have no kernel.
pub(super) fn own_revision(
    environment: &Environment,
    started_at: &str,
    has_kernel: bool,
) -> Revision {
    if let Some(text) = revision(environment) {
        return Revision::of_name(text, started_at);
    }
    let archived = |name| named(environment, ARCHIVE, name);
    if let Some(text) = archived("revision") {
        return Revision::of(text);
    }
    if let Some(label) = archived("label") {
        return Revision::of_archive(label, archived("uname").unwrap_or_default());
    }
    match named(environment, "kernel", "release").filter(|_| has_kernel) {
        Some(release) => Revision::of_version(release),
        None => Revision::of_time(started_at),
    }
}
