//! Flood of new flows in addition to the traffic of a trial.

use serde::{Deserialize, Serialize};

/// A flood of packets in the window of a trial, each from a new flow. The flood is counted
/// separately: the trial's own counts cover only the other traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloodTrial {
    /// Intended load in packets per second, each a new flow.
    pub load: u64,
    /// Packets that left the sender.
    pub offered: u64,
    /// Flood packets that arrived, intact or not.
    pub forwarded: u64,
    /// States in the device's table after the trial; `None` if the device does not report them, or
    /// keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<u64>,
}
