//! Comparison of an import's published texts with the runs' results: computed once at import and
//! kept in the store. A report only formats it.

use serde::{Deserialize, Serialize};

/// The published lists, blocks and tables, compared with the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reproductions {
    /// For each variant, true if the runs reproduce its published list value by value; `None` if
    /// there is no list or it can't be read.
    pub lists: Vec<Option<bool>>,
    /// The quoted blocks of ministat, in the order of the texts.
    pub blocks: Vec<ReproducedBlock>,
    /// The tables of medians that have rows.
    pub tables: Vec<ReproducedTable>,
    /// True if the published graph has an axis for the simple IMIX.
    pub imix_axis: bool,
    /// Published results that are not in the set, one sentence each.
    pub missing: Vec<String>,
}

/// A quoted block of ministat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReproducedBlock {
    /// The document that it is in.
    pub document: String,
    /// The text above it.
    pub heading: String,
    /// Its line in the document, from 1.
    pub line: usize,
    /// The block printed from the runs' values; the published text if that is impossible.
    pub text: String,
    /// Result of comparing the two.
    pub likeness: Likeness,
    /// The result, in one sentence.
    pub sentence: String,
    /// For each set of the block, the variant whose results it contains.
    pub members: Vec<Option<usize>>,
    /// The block's claims about its sets.
    pub claims: Claims,
}

/// Likeness of a published block and the block printed from the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Likeness {
    /// Equal to the byte, except spaces in place of tabs.
    Equal,
    /// All sets are there, but the text differs.
    Different,
    /// The block could not be printed: sets without runs, or values that can't be printed.
    Unmatched,
}

/// A published table of medians.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReproducedTable {
    /// Its file.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Rows that the runs reproduce.
    pub equal: usize,
    /// The result, in one sentence.
    pub sentence: String,
    /// Each row that the runs don't reproduce, with the reason.
    #[serde(default)]
    pub others: Vec<String>,
}

/// A published claim about a variant relative to the first one. More packets are better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// The performance is the same.
    Same,
    /// The variant is better.
    Better {
        /// Difference in percent (positive).
        percent: Option<f64>,
    },
    /// The variant is worse.
    Worse {
        /// Difference in percent (negative).
        percent: Option<f64>,
    },
    /// No difference was proven, which doesn't mean equality.
    NotProven,
    /// Nothing is claimed.
    None,
}

/// The claims of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// Claim of the sentence above the block.
    pub heading: Claim,
    /// Claims of its tests, one for each set after the first.
    pub sets: Vec<Claim>,
}
