//! Counts what runs found: summaries, ministat's text, comparisons.
//!
//! The unit of replication is the run: every function that compares takes one
//! figure per run (or, in an [`alternation`], one effect per stream), never
//! the samples within a run as if they were replicates.
//!
//! - [`summary`]: median, mean, standard deviation, quantiles, their intervals.
//! - [`ministat`]: the text of ministat(1), byte for byte.
//! - [`comparison`]: what a comparison says and the only way it is printed.
//! - [`blocked`]: two variants in randomised complete blocks, or unblocked.
//! - [`alternation`]: levels switched live within one stream.
//! - [`mod@holm`]: many comparisons at once.
//! - [`diagnostics`]: did the runs drift.
//! - [`power`]: the smallest effect that an experiment finds.
//!
//! Deliberately left out: outlier deletion (a slow start of the DUT is a
//! finding) and stopping rules that look at the result.

pub mod alternation;
pub mod blocked;
mod cformat;
pub mod comparison;
pub mod diagnostics;
pub mod holm;
pub mod ministat;
pub mod power;
pub mod summary;

pub use alternation::compare_alternation;
pub use blocked::{BlockedRun, compare_blocked, compare_unblocked};
pub use comparison::{Comparison, Criteria, Layout, Scope, Unanswerable, Verdict};
pub use holm::{adjust_family, holm};
pub use summary::Summary;
