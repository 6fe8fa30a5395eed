//! What the device executed.

use serde::{Deserialize, Serialize};

/// Instructions that an emulated device executed while it forwarded the packets of the
/// window, counted exactly, by function. All figures are per packet that came out, without
/// what the idle device executes in as much time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Executed {
    /// Packets of each burst that the window was divided into.
    pub packets: Vec<u64>,
    /// Packets that the device found at once.
    pub batch: u16,
    /// Batches that it did not find at once, of so many.
    pub scattered: (u64, u64),
    /// Instructions of the idle device in as much time, a packet.
    pub background: f64,
    /// By function, dearest first; those that execute next to nothing are left out.
    pub functions: Vec<ExecutedFunction>,
    /// The same by stack of calls; none where they were not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<ExecutedStacks>,
    /// The caches that were modelled, in words; empty where none were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caches: String,
}

/// Instructions per packet by stack of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutedStacks {
    /// In folded form, `root;caller;function 12`, in thousandths of an instruction; a function's
    /// are together what [`ExecutedFunction`] says of it. Background is left out.
    pub folded: String,
    /// Share (0 to 1) of the instructions whose callers are not known.
    pub unknown_share: f64,
    /// Instructions by which stacks and functions differ, of all bursts: 0 unless something is
    /// wrong.
    pub unaccounted: u64,
}

/// What a model of caches missed, a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Misses {
    /// Reads and writes of data.
    pub references: f64,
    /// Lines that the cache of instructions had not.
    pub code: f64,
    /// Lines that the cache of data had not.
    pub data: f64,
    /// Of both, those that the cache behind them had not either.
    pub last: f64,
}

/// What the device executed in one function, a packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutedFunction {
    /// Its symbol.
    pub name: String,
    /// Instructions in each burst.
    pub bursts: Vec<f64>,
    /// Atomic instructions among them, median over the bursts.
    pub atomics: f64,
    /// Bytes that repeated string instructions moved, median over the bursts.
    pub bytes: f64,
    /// Instructions that the idle device executes in it in as much time, per packet: median over
    /// the bursts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub idle: f64,
    /// True if the idle device executes most of it: no cost of a packet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_background: bool,
    /// What modelled caches missed, median over the bursts; none where none were modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<Misses>,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
