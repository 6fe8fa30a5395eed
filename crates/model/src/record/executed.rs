//! Instructions executed by the device.

use serde::{Deserialize, Serialize};

/// Instructions that an emulated device executed while it forwarded the packets of the window,
/// counted exactly, by function. All figures are per forwarded packet, without the instructions of
/// the idle device in the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Executed {
    /// Number of packets of each burst of the window.
    pub packets: Vec<u64>,
    /// Packets that the device found per poll.
    pub batch: u16,
    /// Batches that it did not find in a single poll, and the total number of batches.
    pub scattered: (u64, u64),
    /// Instructions of the idle device in the same time, per packet.
    pub background: f64,
    /// Functions, most expensive first; those with a negligible cost are omitted.
    pub functions: Vec<ExecutedFunction>,
    /// Instructions by call stack; `None` if call stacks were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<ExecutedStacks>,
    /// The modelled caches, in words; empty if none were modelled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caches: String,
}

/// Instructions per packet by call stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutedStacks {
    /// In folded form, `root;caller;function 12`, in thousandths of an instruction. The sum of a
    /// function's stacks equals its [`ExecutedFunction`]. Background is excluded.
    pub folded: String,
    /// Share (0 to 1) of the instructions with unknown callers.
    pub unknown_share: f64,
    /// Difference between stacks and functions in instructions, over all bursts: 0 unless there is
    /// an error.
    pub unaccounted: u64,
}

/// Misses of modelled caches, per packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Misses {
    /// Reads and writes of data.
    pub references: f64,
    /// Lines missing from the instruction cache.
    pub code: f64,
    /// Lines missing from the data cache.
    pub data: f64,
    /// Those of both that were also missing from the next-level cache.
    pub last: f64,
}

/// Instructions in one function, per packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutedFunction {
    /// Symbol of the function.
    pub name: String,
    /// Instructions in each burst.
    pub bursts: Vec<f64>,
    /// Atomic instructions among them, median over the bursts.
    pub atomics: f64,
    /// Bytes that repeated string instructions moved, median over the bursts.
    pub bytes: f64,
    /// Instructions that the idle device executes in it in the same time, per packet: median over
    /// the bursts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub idle: f64,
    /// True if the idle device executes most of it: not a cost of forwarding.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_background: bool,
    /// Misses of modelled caches, median over the bursts; `None` if none were modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<Misses>,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
