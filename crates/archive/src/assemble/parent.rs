//! The baseline of a patched set: the same bench at the same revision.

use super::journal::Journal;
use super::{Group, groups};
use crate::found::{FoundFile, ResultSet};
use fwdlab_results::store::{UnpatchedGroup, UnpatchedSet};

/// The set without the patch.
#[derive(Clone, Copy, Debug)]
pub struct Parent<'a> {
    /// The set.
    pub set: &'a ResultSet,
    /// Directory of its store, relative to the directory of the patched set's store.
    pub store: &'a str,
}

impl Parent<'_> {
    /// Returns the time of the latest change of its files, nanoseconds since 1970.
    pub(crate) fn newest_ns(&self) -> i64 {
        self.set.files.iter().map(|file| file.modified_ns).max().unwrap_or(0)
    }

    /// Reads the figures of its groups by the archive's rule.
    pub(super) fn read(
        &self,
        upper: bool,
        read: &impl Fn(&FoundFile) -> std::io::Result<Vec<u8>>,
    ) -> UnpatchedSet {
        let sorted = groups::sort(&self.set.files);
        // The parent's own import reports faults in its files.
        let mut journal = Journal::of(&sorted);
        let groups = sorted.groups.iter();
        let groups = groups.filter_map(|(name, raw)| Group::read(name, raw, read, &mut journal));
        UnpatchedSet {
            label: self.set.place.label.clone(),
            store: self.store.to_owned(),
            newest_ns: self.newest_ns(),
            groups: groups
                .map(|group| UnpatchedGroup {
                    name: group.identity.name.clone(),
                    values: group.figures.values(upper),
                })
                .collect(),
        }
    }
}
