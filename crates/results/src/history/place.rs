//! Order of revisions across numbering schemes.

use fwdlab_model::natural::natural;
use std::cmp::Ordering;

/// Position of a revision in the order of revisions. Kinds of different numbering follow each other
/// in the order of the variants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Subversion revision number.
    Subversion(u64),
    /// Number of Git commits including merged branches, as of late 2020.
    AllCommits(u64),
    /// Number of Git commits on a branch.
    Commits(u64),
    /// Version numbers, then their suffix.
    Version(Vec<u64>, Suffix),
    /// A date, as text that sorts by time.
    Date(String),
    /// Any other text.
    Text(Suffix),
}

impl Place {
    /// Returns true if both are numbered in the same way, so that their order is known. FreeBSD's
    /// commit counts continue its Subversion numbers.
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

    /// Returns true if the numbers order two points across branches.
    pub(super) fn is_of_one_numbering(&self, other: &Place) -> bool {
        !matches!(self, Place::Commits(_))
            && std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Text in which digits compare as numbers and release candidates precede the release: `-rc2`,
/// nothing, `-rc10` sort as `-rc2`, `-rc10`, nothing.
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
