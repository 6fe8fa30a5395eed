//! CPU profiles: samples the DUT's CPUs while it forwards.
//!
//! A [`Profiler`] gets ready before traffic flows, samples between [`Profiler::start`] and
//! [`Profiler::stop`], and is read out when the traffic has ended. A failure becomes a remark with
//! the next step, never an error: a missing profile does not affect the measurement. Samples are
//! kept as `perf script` prints them; other crates read, fold and draw them.

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

    /// Stops sampling. Must be fast, because traffic is still flowing.
    fn stop(&mut self);

    /// Reads the samples; may take long.
    fn finish(self: Box<Self>) -> RawProfile;
}

/// Raw samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawProfile {
    /// Samples in the form of `perf script` with the fields [`perf::FIELDS`], times in seconds of
    /// CLOCK_MONOTONIC; empty if there are none.
    pub text: String,
    /// Profiler and options, in words.
    pub source: String,
    /// Event that triggered a sample.
    pub event: String,
    /// Method by which callers were found.
    pub call_graph: String,
    /// Latest start of sampling, nanoseconds of CLOCK_MONOTONIC; 0 if it never started.
    pub sampled_from_ns: u64,
    /// Earliest end of sampling.
    pub sampled_to_ns: u64,
    /// Counters of the same CPUs during that time.
    pub counters: Vec<ProfileCounter>,
    /// Remarks and errors, each with the next step.
    pub remarks: Vec<String>,
}

/// Numbers of samples and named frames in a text in the form of `perf script`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Number of samples.
    pub samples: usize,
    /// Samples taken in a program, not in the kernel.
    pub in_programs: usize,
    /// Frames of the kernel.
    pub kernel_frames: usize,
    /// Frames of the kernel whose function is unknown.
    pub unknown_kernel_frames: usize,
}

impl Census {
    /// Counts a text. A sample is a line that does not begin with white space; a frame of the
    /// kernel has an address in the upper half.
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

    /// Returns true if the kernel hides the names of its functions.
    pub fn lacks_symbols(self) -> bool {
        self.kernel_frames > 0 && self.unknown_kernel_frames * 10 > self.kernel_frames
    }
}

#[cfg(test)]
mod tests;
