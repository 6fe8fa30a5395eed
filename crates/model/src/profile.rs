//! `[profile]`: CPU profiles, sampled in the windows of the measured runs, and in extra runs.
//!
//! Measured runs are sampled at a rate whose cost is too small to show in a run, and all of them
//! alike; extra runs are never measurements. Therefore these settings are not part of the plan's
//! hash.

use crate::settings::Rate;
use fwdlab_packet::named;
use serde::{Deserialize, Serialize};

/// Profiling of a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfilePlan {
    /// Samples per CPU and second in the windows of the measured runs; 0 for none.
    pub sampling_hz: u32,
    /// Length of a profile run's window, nanoseconds.
    pub duration_ns: u64,
    /// Equal parts of that window, whose differences give intervals.
    pub windows: u16,
    /// Profile runs of each variant: starts of the device, whose differences give intervals if
    /// there are two or more. With 0 a variant is profiled once if none of its measured runs was
    /// sampled.
    pub starts: u16,
    /// Intended load of profile runs; `None` if it is the traffic's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Samples per CPU and second in profile runs.
    pub frequency_hz: u32,
    /// Event that triggers a sample.
    pub event: Event,
    /// Method of finding callers.
    pub call_graph: CallGraph,
    /// Draw the sampled function at the root instead of on top.
    pub icicle: bool,
    /// Table of subsystems by function, in place of the built-in one.
    pub subsystems: Option<Subsystems>,
}

impl Default for ProfilePlan {
    fn default() -> ProfilePlan {
        ProfilePlan {
            sampling_hz: 199,
            duration_ns: 5_000_000_000,
            windows: 5,
            starts: 0,
            rate: None,
            frequency_hz: 1999,
            event: Event::Auto,
            call_graph: CallGraph::Auto,
            icicle: false,
            subsystems: None,
        }
    }
}

/// A file that maps functions to subsystems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subsystems {
    /// Path as in the experiment.
    pub file: String,
    /// Its text.
    pub text: String,
}

named! {
    /// Event that triggers a sample, by its name in `perf list`.
    pub enum Event default Auto {
        /// Cycles if the machine counts them, else the CPU's clock.
        Auto = "auto",
        /// Cycles of the CPU.
        Cycles = "cycles",
        /// A timer of the kernel. It does not fire while interrupts are off.
        CpuClock = "cpu-clock",
        /// Retired instructions.
        Instructions = "instructions",
        /// Misses of the last-level cache.
        CacheMisses = "cache-misses",
        /// Mispredicted branches.
        BranchMisses = "branch-misses",
    }
}

named! {
    /// Method of finding the callers of a sampled function.
    pub enum CallGraph default Auto {
        /// The same as `fp`.
        Auto = "auto",
        /// Frame pointers (for the kernel: its own unwinder).
        Fp = "fp",
        /// Copies of the stack, unwound later with debugging information: for programs without
        /// frame pointers.
        Dwarf = "dwarf",
    }
}
