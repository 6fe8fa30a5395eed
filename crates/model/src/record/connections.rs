//! The connections that a trial opens.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// Connections that a trial has opened with counted packets, each of another flow, beginning
/// with an empty table (RFC 9693, preliminary test phase).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Connections to be opened.
    pub wanted: u64,
    /// States in the device's table before the first packet; none where it doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states_before: Option<u64>,
    /// States when all packets had been sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<u64>,
    /// Packets that the sender gave up because it was late: the others were sent later than the
    /// load asks for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// States while they were opened: nanoseconds since the first packet, number. Empty where
    /// the device was not asked meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<(u64, u64)>,
    /// How long it then took to remove all of them, nanoseconds; none where that was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torn_down_ns: Option<u64>,
    /// How long the same took with an empty table, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_ns: Option<u64>,
}

impl Connections {
    /// States that the device's table gained; none where it doesn't tell.
    pub fn gained(&self) -> Option<u64> {
        Some(self.states?.saturating_sub(self.states_before?))
    }
}
