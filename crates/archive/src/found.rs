//! Results of a scan: the files of one result set.

use std::path::PathBuf;

/// The files of one result set: one folder of raw logs, the results published with it, and the
/// configurations of its bench.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// The bench's folder. File names are relative to it.
    pub origin: PathBuf,
    /// Position of the set in the archive.
    pub place: Place,
    /// Logs, lists, tables, texts and pictures of the set, in the order of `ls` in the C locale.
    pub files: Vec<FoundFile>,
    /// The configuration trees of the bench (`configs/NAME/`), sorted by name.
    pub configurations: Vec<Tree>,
    /// Configurations of the harness (`bench-lab-*.config`) of the machine.
    pub lab: Vec<FoundFile>,
}

/// Position of a result set: `MACHINE/INTERFACE/TOPIC/results/LABEL`. Parts that the path does not
/// contain are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Machine under test, e.g. `Xeon_E5-2650_8Cores`.
    pub machine: String,
    /// Its network interface, e.g. `Chelsio_T540-CR`.
    pub interface: String,
    /// The bench, e.g. `hw.cxgbe.nXxq10g`.
    pub topic: String,
    /// The result, e.g. `fbsd10.2`.
    pub label: String,
}

impl Place {
    /// Returns true if this is the result of `other` with a patch: the same bench, and the other's
    /// label with a suffix, as in `fbsd16-n311215.D58513`. A release or a revision is not a patch.
    pub fn is_patch_of(&self, other: &Place) -> bool {
        let bench =
            |place: &Place| [&place.machine, &place.interface, &place.topic].map(String::clone);
        let suffix = self.label.strip_prefix(other.label.as_str());
        let suffix = suffix.and_then(|suffix| suffix.strip_prefix(['.', '-', '_', '+']));
        let is_revision = |suffix: &str| {
            suffix.trim_start_matches(['r', 'n']).starts_with(|c: char| c.is_ascii_digit())
        };
        !other.label.is_empty()
            && bench(self) == bench(other)
            && suffix.is_some_and(|suffix| !suffix.is_empty() && !is_revision(suffix))
    }
}

/// A file and its directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Path to open it by.
    pub path: PathBuf,
    /// Name below [`ResultSet::origin`], with `/` between the parts; starts with `../` for files
    /// outside that folder.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, nanoseconds since 1970; 0 if unknown.
    pub modified_ns: i64,
}

/// One configuration tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Its name, e.g. `pf-stateful` or `4`.
    pub name: String,
    /// Its files, sorted by name.
    pub files: Vec<FoundFile>,
}

impl FoundFile {
    /// Returns the last part of the name.
    pub fn base(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_patch_of_requires_the_same_bench_and_a_suffix() {
        let place = |topic: &str, label: &str| Place {
            topic: topic.to_owned(),
            label: label.to_owned(),
            ..Place::default()
        };
        let parent = place("x", "fbsd16-n311215");
        assert!(place("x", "fbsd16-n311215.D58513").is_patch_of(&parent));
        assert!(place("x", "fbsd16-n311215-patched").is_patch_of(&parent));
        for other in ["fbsd16-n311215", "fbsd16-n3112150", "fbsd16-n311215.", "fbsd16-n311215.2"] {
            assert!(!place("x", other).is_patch_of(&parent), "{other}");
        }
        assert!(!place("y", "fbsd16-n311215.D58513").is_patch_of(&parent));
        assert!(!place("x", "fbsd11-head.r287478").is_patch_of(&place("x", "fbsd11-head")));
        assert!(!place("x", "fbsd10.2").is_patch_of(&place("x", "fbsd10")));
    }
}
