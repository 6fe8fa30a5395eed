//! `[profile]`: CPU profiles, sampled in the windows of the measured runs, and in extra runs.
//!
//! Measured runs are sampled so rarely that it costs less than a run can show, and all of them
//! alike; extra runs are never measurements. So these settings are not part of the plan's hash.

use crate::settings::Rate;
use fwdlab_packet::named;
use serde::{Deserialize, Serialize};

/// How a variant is profiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfilePlan {
    /// Samples per CPU and second in the windows of the measured runs; 0 samples none of them.
    pub sampling_hz: u32,
    /// Length of a profile run's window, nanoseconds.
    pub duration_ns: u64,
    /// Equal parts of that window, from whose differences intervals are made.
    pub windows: u16,
    /// Profile runs of each variant: starts of the device, from whose differences intervals are
    /// made if there are two or more. With 0 a variant is profiled once if none of its measured
    /// runs was sampled.
    pub starts: u16,
    /// Intended load of profile runs; `None` if it is the traffic's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Samples per CPU and second in profile runs.
    pub frequency_hz: u32,
    /// What triggers a sample.
    pub event: Event,
    /// How callers are found.
    pub call_graph: CallGraph,
    /// Draw what stands on top (the sampled function) at the root.
    pub icicle: bool,
    /// Table of subsystems by function, instead of the built-in one.
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

/// A file that says which function belongs to which subsystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subsystems {
    /// Path as written.
    pub file: String,
    /// Its text.
    pub text: String,
}

named! {
    /// What triggers a sample, by its name in `perf list`.
    pub enum Event default Auto {
        /// Cycles where the machine counts them, else the CPU's clock.
        Auto = "auto",
        /// Cycles of the CPU.
        Cycles = "cycles",
        /// A timer of the kernel. It does not fire while interrupts are off.
        CpuClock = "cpu-clock",
        /// Retired instructions.
        Instructions = "instructions",
        /// Misses of the last cache.
        CacheMisses = "cache-misses",
        /// Branches foretold wrongly.
        BranchMisses = "branch-misses",
    }
}

named! {
    /// How the callers of a sampled function are found.
    pub enum CallGraph default Auto {
        /// The kernel's own unwinder and frame pointers: what `fp` is.
        Auto = "auto",
        /// Frame pointers (for the kernel: its own unwinder).
        Fp = "fp",
        /// Copies of the stack, unwound with debugging information afterwards: for
        /// programs without frame pointers.
        Dwarf = "dwarf",
    }
}
