//! Rate of one machine and configuration over revisions: `fwdlab history`.
//!
//! Stores become points (one variant at one revision). Points of one machine and configuration
//! become a series in the order of revisions, and each series is divided where its level changes
//! ([`crate::stats::change_points`]). A change has a size, an interval and the two revisions to run
//! again: a search found it, so only new runs of both confirm it.
//!
//! The unit is the point: one build and its starts. Runs of one point share the layout of their
//! code, so they are not replicates of the revision.
//!
//! [`Collector`] reads stores, [`History`] is the result, and [`History::document`] renders it. Out
//! of scope: repeating runs, and querying a repository about revisions.

mod agreement;
mod changes;
mod collect;
mod date;
mod document;
mod draw;
mod ordered;
mod place;
mod read;
mod releases;
mod results;
mod revision;

pub use collect::Collector;
pub(crate) use date::rfc3339;
pub use read::HistoryInput;
pub(crate) use read::{SoftwareDate, made};
pub use results::{
    Agreement, Change, Counts, Detection, Direction, History, Outlier, PointResult, Segment,
    SeriesResult,
};
pub(crate) use revision::{minute, short_revision};
