//! New flows that came beside the traffic of a trial.

use serde::{Deserialize, Serialize};

/// A flood of packets in the window of a trial, each of a flow of its own. They are counted apart:
/// the trial's own counts are of the traffic beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloodTrial {
    /// Intended load, packets per second: of so many new flows.
    pub load: u64,
    /// Packets that left the sender.
    pub offered: u64,
    /// Those of them that arrived. Whether they were intact is not looked at.
    pub forwarded: u64,
    /// States in the device's table after the trial; none where it doesn't tell, or keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<u64>,
}
