//! What was published with the logs, and whether the runs' figures say the same.
//!
//! - [`Readme`]: title, set-up, links and the quoted [`Block`]s of ministat.
//! - [`reproduce`]: a block printed anew from the runs' figures, by every
//!   generation of ministat; equal to the byte or how it differs.
//! - [`claims`]: what the text says in words.
//! - [`lists`], [`tables`], [`plot`]: lists of values, tables of medians, gnuplot
//!   scripts.
//! - [`complete`]: all of it for a store.
//!
//! Sets are found by their numbers, never by their legends: about half of the
//! archive's legends were rewritten by hand. Blocks outside of fences are left
//! alone.

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
