//! Experiments, plans and records of runs as plain data.
//!
//! `experiment.toml` is processed in two steps: [`spec`] contains the raw values (with the place of
//! every value), [`experiment`] their meaning, in terms of [`design`]. [`plan`] lists the runs in
//! order. [`profile`] describes CPU profiling of the DUT. [`record`] and [`warning`] are the
//! results of a run. [`log`] parses the output of other traffic generators, [`lab`] the file that
//! describes several machines, and [`bench_lab`] converts the configuration of another harness to
//! one.
//!
//! This crate does no I/O, reads no clock and is independent of the operating system: a plan is a
//! function of the file's text and the seed, nothing else.

pub mod assign;
pub mod bench_lab;
pub mod candidates;
pub mod design;
pub mod diagnostic;
pub mod experiment;
pub mod lab;
pub mod labels;
pub mod log;
pub mod natural;
pub mod plan;
pub mod profile;
pub mod record;
pub mod router;
pub mod schema;
pub mod settings;
pub mod shell;
pub mod spec;
pub mod suggest;
mod system;
pub mod units;
pub mod warning;
pub mod words;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use experiment::Experiment;
pub use lab::Lab;
pub use plan::{Plan, PlannedRun, Variant, load};
pub use profile::ProfilePlan;
pub use record::{Calibration, ProfileRecord, RunRecord};
pub use settings::Settings;
pub use warning::Warning;
