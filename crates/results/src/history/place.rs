//! Where revisions stand among others, by the way in which they are numbered.

use fwdlab_model::natural::natural;
use std::cmp::Ordering;

/// Where a revision stands among others; kinds of different numbering follow
/// each other in the order of the kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Revision number of Subversion.
    Subversion(u64),
    /// Number of commits in Git with those of merged branches, as of late 2020.
    AllCommits(u64),
    /// Number of commits in Git, of a branch.
    Commits(u64),
    /// Numbers of a version, then what follows them.
    Version(Vec<u64>, Suffix),
    /// A date, as text that sorts by time.
    Date(String),
    /// Anything else.
    Text(Suffix),
}

impl Place {
    /// True when the two are numbered in one way, so that their order is known:
    /// FreeBSD's commit counts went on where its numbers of Subversion ended.
    pub(super) fn is_comparable(&self, other: &Place) -> bool {
        use Place::{AllCommits, Commits, Subversion};
        match (self, other) {
            (
                Subversion(_) | AllCommits(_) | Commits(_),
                Subversion(_) | AllCommits(_) | Commits(_),
            ) => true,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// True for numbers that say the order of two points whatever the branches.
    pub(super) fn is_of_one_numbering(&self, other: &Place) -> bool {
        !matches!(self, Place::Commits(_))
            && std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Text in which numbers count as numbers and candidates for a release come
/// before it: `-rc2`, nothing, `-rc10` are in the order `-rc2`, `-rc10`, nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suffix(pub(super) String);

impl Ord for Suffix {
    fn cmp(&self, other: &Suffix) -> Ordering {
        let is_final = |suffix: &Suffix| {
            let text = suffix.0.trim_start_matches(['-', '.', '~']).to_ascii_lowercase();
            !["rc", "beta", "alpha", "pre"].iter().any(|early| text.starts_with(early))
        };
        is_final(self)
            .cmp(&is_final(other))
            .then_with(|| natural(&self.0, &other.0))
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Suffix {
    fn partial_cmp(&self, other: &Suffix) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
