//! Statistics of runs: summaries, ministat's text, comparisons.
//!
//! The unit of replication is the run: every function that compares takes one
//! figure per run (or, in an [`alternation`], one effect per stream), never
//! the samples within a run as if they were replicates.
//!
//! - [`summary`]: median, mean, standard deviation, quantiles, their intervals.
//! - [`ministat`]: the text of ministat(1), byte for byte.
//! - [`comparison`]: result of a comparison and its single printed form.
//! - [`blocked`]: two variants in randomised complete blocks, or unblocked.
//! - [`builds`]: revisions compared by several builds each, whose layouts differ.
//! - [`stolen_time`]: time that was provably taken from the device.
//! - [`contention`]: evidence that other work changed the figure of a run.
//! - [`alternation`]: levels switched live within one stream.
//! - [`randomisation`], [`rank`]: the exact test and the robust secondary.
//! - [`family`]: adjustment for multiple comparisons.
//! - [`binomial`]: rates of events, with exact intervals.
//! - [`power`]: power of an experiment and its smallest detectable effect.
//! - [`sequential`]: stopping rules that control the error despite repeated looks.
//! - [`planning`]: number of blocks needed, before the experiment.
//! - [`diagnostics`]: drift, outliers, multimodality, bounds of the equipment.
//! - [`steady`](mod@steady): warm-up and steady state within one run.
//! - [`log_rule`]: a single figure for an imported log.
//! - [`change_points`](mod@change_points): level changes of a history.
//! - [`scalability`]: scaling of the rate with queues, cores, senders, workers.
//!
//! Deliberately out of scope: deletion of outliers (a slow start of the DUT is a finding).

pub mod alternation;
pub mod binomial;
pub mod blocked;
pub mod builds;
pub mod cformat;
pub mod change_points;
pub mod comparison;
pub mod contention;
pub mod diagnostics;
pub mod family;
mod linear;
pub mod log_rule;
pub mod ministat;
pub mod planning;
pub mod power;
mod random;
pub mod randomisation;
pub mod rank;
pub mod scalability;
pub mod sequential;
pub mod steady;
pub mod stolen_time;
mod student;
pub mod summary;

pub use alternation::compare_alternation;
pub use blocked::{BlockedRun, compare_blocked, compare_unblocked};
pub use builds::compare_builds;
pub use comparison::{
    Builds, Comparison, Criteria, Estimate, Layout, Method, Scope, Unanswerable, Verdict,
    adjust_family,
};
pub use family::Adjustment;
pub use scalability::{NoFit, Scalability, ScaledRun, fit_scalability};
pub use summary::Summary;
