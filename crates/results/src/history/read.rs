//! Reading stores for a history, many at a time.

use super::date::{day_of_build, iso};
use super::place::Place;
use super::releases;
use super::revision::Revision;
use crate::facts::{ARCHIVE, named};
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

/// Day of the source or the build of a store as a whole, and what stores without one are sorted
/// by: whatever has a number of Git is of after FreeBSD's move to it.
pub(crate) fn made(
    environment: &Environment,
    started_at: &str,
) -> (Option<String>, Option<String>) {
    let place = own_revision(environment, started_at).place;
    let built = || named(environment, ARCHIVE, "uname").and_then(day_of_build);
    let made = releases::day_of(&place).or_else(built).map(iso);
    let sorted = match place {
        Place::AllCommits(_) | Place::Commits(_) => Some(iso(releases::GIT_BEGINS)),
        _ => None,
    };
    (made.clone(), made.or(sorted))
}

/// The revision of a store as a whole.
pub(super) fn own_revision(environment: &Environment, started_at: &str) -> Revision {
    let archived = |name| named(environment, ARCHIVE, name);
    if let Some(text) = archived("revision") {
        return Revision::of(text);
    }
    if let Some(label) = archived("label") {
        return Revision::of_archive(label, archived("uname").unwrap_or_default());
    }
    match named(environment, "kernel", "release") {
        Some(release) => Revision::of_version(release),
        None => Revision::of_time(started_at),
    }
}
