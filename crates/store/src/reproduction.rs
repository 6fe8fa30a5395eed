//! What an import found of the published texts in the runs' figures: computed once, at
//! import, and kept with the store. A report only lays it out.

use serde::{Deserialize, Serialize};

/// The published lists, blocks and tables, held against the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reproductions {
    /// Per variant whether the runs give its published list again, value by value; none
    /// where there is no list, or it can't be read.
    pub lists: Vec<Option<bool>>,
    /// The quoted blocks of ministat, in the order of the texts.
    pub blocks: Vec<ReproducedBlock>,
    /// The tables of medians that have rows.
    pub tables: Vec<ReproducedTable>,
    /// True when the published graph has an axis for the simple IMIX.
    pub imix_axis: bool,
    /// What was published and is not in the set, one sentence each.
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
    /// The block as it is printed from the runs' values; as published where that can't be.
    pub text: String,
    /// How the two compare.
    pub likeness: Likeness,
    /// The result, in one sentence.
    pub sentence: String,
    /// For each set of the block the variant whose figures it shows.
    pub members: Vec<Option<usize>>,
    /// What the block says of its sets.
    pub claims: Claims,
}

/// How a block compares with what is printed of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Likeness {
    /// Equal to the byte, blanks that stand for tabs aside.
    Equal,
    /// All sets are there, the text is another.
    Different,
    /// It could not be printed: sets without runs, or figures that can't be printed.
    Unmatched,
}

/// A published table of medians.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReproducedTable {
    /// Its file.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Rows that come out again.
    pub equal: usize,
    /// The result, in one sentence.
    pub sentence: String,
    /// Each row that does not come out again, with the reason.
    #[serde(default)]
    pub others: Vec<String>,
}

/// A claim about a variant against the first one. More packets are better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// It performs the same.
    Same,
    /// It is better.
    Better {
        /// By that much, in percent (positive).
        percent: Option<f64>,
    },
    /// It is worse.
    Worse {
        /// By that much, in percent (negative).
        percent: Option<f64>,
    },
    /// No difference was proven: says nothing about sameness.
    NotProven,
    /// Nothing is claimed.
    None,
}

/// The claims of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// What the sentence above it says.
    pub heading: Claim,
    /// What its tests say, for each set after the first.
    pub sets: Vec<Claim>,
}
