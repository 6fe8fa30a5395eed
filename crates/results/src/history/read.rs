//! Reading stores for a history, many at a time.

use super::date::{day_of_build, iso};
use super::place::Place;
use super::releases;
use super::revision::Revision;
use crate::facts::{ARCHIVE, named, revision};
use crate::report::analysis::Figures;
use crate::store::{Contents, Store, StoreError};
use fwdlab_model::record::Environment;
use std::path::Path;

/// What a history needs of a store.
pub struct StoreRead {
    pub(super) contents: Contents,
    pub(super) figures: Figures,
}

impl StoreRead {
    /// That of the store at `path`.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn of(path: &Path) -> Result<StoreRead, StoreError> {
        let store = Store::open_read_only(path)?;
        let (mut contents, figures) = Figures::of_store(&store)?;
        contents.invocations = store.invocations()?;
        // Samples have said what they had to say.
        contents.runs.clear();
        Ok(StoreRead { contents, figures })
    }
}

/// When the software of a store was made, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// Day of the source or the build of the store as a whole.
    pub(crate) made: Option<String>,
    /// The day that it is sorted by: whatever has a number of Git is of after FreeBSD's move
    /// to it.
    pub(crate) sorted: Option<String>,
    /// Its count of commits on a branch of Git.
    pub(crate) commits: Option<u64>,
}

/// When the software of a store of the archive was made.
pub(crate) fn made(environment: &Environment, started_at: &str) -> Made {
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
    Made { sorted: made.clone().or(sorted), made, commits }
}

/// The revision of a store as a whole: the one that the user gave, else of the archive or of
/// the kernel, else the time. A simulated device and the software router have no kernel.
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
