//! Executes plans: builds the testbed, configures the DUT, sends traffic, counts packets.
//!
//! [`Runner::open`] chooses and opens a [`Testbed`]; [`Runner::run`] executes one planned run
//! and returns its record. Storing and evaluating records is left to other crates.
//!
//! Seams, each with a real and a simulated side: [`host::Host`] (run programs,
//! read and write files), [`trial::Traffic`] and [`trial::Clock`] (send, count,
//! wait), [`Testbed`] as a whole.

pub mod agent;
mod arrivals;
pub mod calibrate;
mod engines;
pub mod environment;
pub mod lab;
pub mod lease;
mod path;
pub mod probe;
pub mod profiler;
mod report;
mod run;
pub mod testbed;
pub mod trial;
pub mod wiring;

pub use fwdlab_dut as dut;
pub use fwdlab_dut::{cpu, journal, links};
pub use fwdlab_generator as generator;
pub use fwdlab_host as host;
pub use fwdlab_host::error::BenchError;
pub use fwdlab_host::{error, schedstat};
pub use run::{Runner, Sampled};
pub use testbed::{Choice, Testbed};

use fwdlab_model::plan::{Plan, PlannedRun};
use fwdlab_model::record::Checkpoint;
pub use report::TrialReport;

/// Observer of a run: a progress bar, a log, a test.
pub trait Observer {
    /// Called when a step begins, e.g. `namespaces`, `routes`, `traffic`.
    fn step(&mut self, _name: &str) {}

    /// Receives the rates since the last call, several times a second while traffic flows.
    fn live(&mut self, _live: &Live) {}

    /// Called when a trial of a method has ended.
    fn trial(&mut self, _report: &TrialReport) {}

    /// Receives a note; each note is sent once.
    fn note(&mut self, _text: &str) {}

    /// Called when trial `number`, from 0, is a checkpoint of the run. Later checkpoints of the run
    /// become void.
    fn checkpoint(&mut self, _number: u32, _checkpoint: &Checkpoint) {}

    /// Polled often; `true` ends the run with [`BenchError::Interrupted`].
    fn cancelled(&self) -> bool {
        false
    }
}

/// Live rates while traffic flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// Time since the traffic began, nanoseconds.
    pub at_ns: u64,
    /// Expected time from the start of the traffic to the end of the window, nanoseconds.
    pub total_ns: u64,
    /// Offered load, packets per second.
    pub offered_pps: f64,
    /// Forwarding rate, packets per second.
    pub forwarded_pps: f64,
    /// Current variant.
    pub variant: usize,
}

/// An observer that does nothing.
#[derive(Debug, Default)]
pub struct NoopObserver;

impl Observer for NoopObserver {}

/// One run to execute.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The plan that contains the run.
    pub plan: &'a Plan,
    /// The run.
    pub run: &'a PlannedRun,
    /// Ceiling without DUT in packets per second, if calibrated: the base of rates in percent and
    /// of the generator-limited warning.
    pub ceiling_pps: Option<f64>,
}
