//! `[profile]`: where the CPU's time goes, found out in extra runs of each variant.
//!
//! Such a run is never a measurement: what is asked for here touches no number of
//! the experiment, and so is no part of its hash.

use serde::{Deserialize, Serialize};

/// How a variant is profiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilePlan {
    /// Length of the sampled window, nanoseconds.
    pub duration_ns: u64,
    /// Equal parts of the window, from whose differences intervals are made.
    pub windows: u16,
    /// Profile runs of each variant: starts of the device, from whose differences
    /// intervals are made where there are two or more.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub starts: u16,
    /// Samples of each CPU in a second.
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
            duration_ns: 5_000_000_000,
            windows: 5,
            starts: 1,
            frequency_hz: 1999,
            event: Event::Auto,
            call_graph: CallGraph::Auto,
            icicle: false,
            subsystems: None,
        }
    }
}

fn one() -> u16 {
    1
}

// What was asked of profiles in stores from before there were several starts reads as
// it is written today.
fn is_one(starts: &u16) -> bool {
    *starts == 1
}

/// A file that says which function belongs to which subsystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subsystems {
    /// Path as written.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// What triggers a sample, by its name in `perf list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Cycles where the machine counts them, else the CPU's clock.
    #[default]
    Auto,
    /// Cycles of the CPU.
    Cycles,
    /// A timer of the kernel. It does not fire while interrupts are off.
    CpuClock,
    /// Retired instructions.
    Instructions,
    /// Misses of the last cache.
    CacheMisses,
    /// Branches foretold wrongly.
    BranchMisses,
}

impl Event {
    /// The name used in files and by perf.
    pub fn name(self) -> &'static str {
        match self {
            Event::Auto => "auto",
            Event::Cycles => "cycles",
            Event::CpuClock => "cpu-clock",
            Event::Instructions => "instructions",
            Event::CacheMisses => "cache-misses",
            Event::BranchMisses => "branch-misses",
        }
    }
}

/// How the callers of a sampled function are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallGraph {
    /// The kernel's own unwinder and frame pointers: what `fp` is.
    #[default]
    Auto,
    /// Frame pointers (for the kernel: its own unwinder).
    Fp,
    /// Copies of the stack, unwound with debugging information afterwards: for
    /// programs without frame pointers.
    Dwarf,
}

impl CallGraph {
    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            CallGraph::Auto => "auto",
            CallGraph::Fp => "fp",
            CallGraph::Dwarf => "dwarf",
        }
    }
}
