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
    /// True when most of it is executed by the idle device too: no cost of a packet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_background: bool,
}
