//! CPU profiles: samples the DUT's CPUs while it forwards.
//!
//! A [`Profiler`] gets ready before traffic flows, samples between
//! [`Profiler::start`] and [`Profiler::stop`], and is read out when the traffic has
//! ended. Whatever fails becomes a remark with the next step, never an error: a
//! profile that can't be had takes nothing from the measurement. Samples are kept as
//! `perf script` prints them; who reads, folds and draws them is not this crate's
//! business.

mod hints;
pub mod perf;
pub mod pmclog;
pub mod pmcstat;
pub mod probe;
pub mod simulated;

pub use hints::remark_on;
pub use perf::Perf;
pub use pmcstat::Pmcstat;

use fwdlab_model::profile::{CallGraph, Event, ProfilePlan};
use fwdlab_model::record::ProfileCounter;

/// Parameters of a profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Samples per CPU and second.
    pub frequency_hz: u32,
    /// Event that triggers a sample.
    pub event: Event,
    /// Method to find callers.
    pub call_graph: CallGraph,
    /// True to read the machine's counters in addition to the samples.
    pub counts: bool,
}

impl From<&ProfilePlan> for Sampling {
    /// Sampling of a plan's profile runs.
    fn from(plan: &ProfilePlan) -> Sampling {
        Sampling {
            frequency_hz: plan.frequency_hz,
            event: plan.event,
            call_graph: plan.call_graph,
            counts: true,
        }
    }
}

/// A sampling profiler.
pub trait Profiler {
    /// Starts sampling.
    fn start(&mut self);

    /// Stops sampling. Fast, as traffic is still flowing.
    fn stop(&mut self);

    /// Reads the samples; may take long.
    fn finish(self: Box<Self>) -> RawProfile;
}

/// Raw samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawProfile {
    /// Samples in the form of `perf script` with the fields [`perf::FIELDS`], times
    /// in seconds of CLOCK_MONOTONIC; empty when there are none.
    pub text: String,
    /// Profiler and options, in words.
    pub source: String,
    /// What triggered a sample.
    pub event: String,
    /// How callers were found.
    pub call_graph: String,
    /// Sampling was on from here at the latest, nanoseconds of CLOCK_MONOTONIC; 0
    /// when it never was.
    pub sampled_from_ns: u64,
    /// Sampling was on until here at the least.
    pub sampled_to_ns: u64,
    /// What was counted meanwhile on the same CPUs.
    pub counters: Vec<ProfileCounter>,
    /// Remarks and errors, each with the next step.
    pub remarks: Vec<String>,
}

/// Samples of a text in the form of `perf script`, and how much of them has names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Samples.
    pub samples: usize,
    /// Those that a program, not the kernel, was running in.
    pub in_programs: usize,
    /// Frames of the kernel.
    pub kernel_frames: usize,
    /// Frames of the kernel whose function is unknown.
    pub unknown_kernel_frames: usize,
}

impl Census {
    /// Counts a text. A sample is a line that does not begin with white space; a
    /// frame of the kernel has an address in the upper half.
    pub fn of(text: &str) -> Census {
        let mut census = Census::default();
        let mut is_innermost = false;
        for line in text.lines().filter(|line| !line.is_empty()) {
            if !line.starts_with([' ', '\t']) {
                census.samples += 1;
                is_innermost = true;
                continue;
            }
            let mut words = line.split_whitespace();
            let is_kernel = words.next().is_some_and(|a| a.len() == 16 && a.starts_with("ffff"));
            census.in_programs += usize::from(is_innermost && !is_kernel);
            is_innermost = false;
            if is_kernel {
                census.kernel_frames += 1;
                census.unknown_kernel_frames += usize::from(words.next() == Some("[unknown]"));
            }
        }
        census
    }

    /// True when the kernel keeps its functions' names to itself.
    pub fn lacks_symbols(self) -> bool {
        self.kernel_frames > 0 && self.unknown_kernel_frames * 10 > self.kernel_frames
    }
}

#[cfg(test)]
mod tests;
