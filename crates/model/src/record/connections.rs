//! Connections opened by a trial.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// Connections that a trial opened with counted packets, each of another flow, beginning with an
/// empty table (RFC 9693, preliminary test phase).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Connections to open.
    pub wanted: u64,
    /// States in the device's table before the first packet; `None` if the device does not report
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states_before: Option<u64>,
    /// States after all packets had been sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<u64>,
    /// Packets that the sender skipped because it was late: the others were sent later than the
    /// load requires.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// States during the opening: nanoseconds since the first packet, number. Empty if the device
    /// was not queried in that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<(u64, u64)>,
    /// Time to remove all of them afterwards, in nanoseconds; `None` if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torn_down_ns: Option<u64>,
    /// Time of the same removal with an empty table, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_ns: Option<u64>,
}

impl Connections {
    /// Returns the states that the device's table gained; `None` if the device does not report
    /// them.
    pub fn gained(&self) -> Option<u64> {
        Some(self.states?.saturating_sub(self.states_before?))
    }
}
