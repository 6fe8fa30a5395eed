//! Results published with the logs, and their reproduction from the runs' figures.
//!
//! - [`Readme`]: title, set-up, links and the quoted [`Block`]s of ministat.
//! - [`reproduce`]: prints a block again from the runs' figures, by every generation of ministat,
//!   and reports whether it is equal to the byte or how it differs.
//! - [`claims`]: claims of the text in words.
//! - [`lists`], [`tables`], [`plot`]: lists of values, tables of medians, gnuplot scripts.
//! - [`complete`]: all of these for a store.
//!
//! Sets are matched by their numbers, never by their legends: about half of the archive's legends
//! were rewritten by hand. Blocks outside of fences are ignored.

mod block;
mod claim;
pub mod lists;
pub mod plot;
mod printed;
mod readme;
mod reproduce;
mod reproductions;
pub mod tables;

pub use block::{Block, Difference, SetLine};
pub use claim::claims;
pub use printed::MedianRule;
pub use readme::{Link, LinkKind, Readme};
pub use reproduce::{LineDifference, Outcome, Reproduction, reproduce, with_tabs};
pub use reproductions::complete;
pub(crate) use reproductions::{in_published_order, reproductions};
