//! Behaviour of the simulated device.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[testbed.sim]`: behaviour of the simulated device. Its true rate is computed from these numbers
/// and the variant's settings, never from measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimSettings {
    /// Packets per second that the device forwards in the base variant.
    pub capacity_pps: f64,
    /// Coefficient of variation between runs (0.01 = 1 %).
    pub noise: f64,
    /// Share of the noise's variance that is an AR(1) drift from run to run (0 to 1).
    pub drift: f64,
    /// Lag-1 correlation of that drift.
    pub phi: f64,
    /// Coefficient of variation of intervals within a run.
    pub jitter: f64,
    /// Loss ratio below capacity (RFC 2544 frame loss), 0 to 1.
    pub loss: f64,
    /// Packets that the device buffers while more arrive than it forwards; the default adds nothing
    /// to a plan's hash.
    #[serde(default, skip_serializing_if = "SimSettings::is_none")]
    pub buffer: u32,
    /// Capacity from the receiver to the sender, as a share of the capacity in the other direction,
    /// for traffic in both directions; the default adds nothing to a plan's hash.
    #[serde(default = "SimSettings::alike", skip_serializing_if = "SimSettings::is_alike")]
    pub reverse: f64,
    /// Maximum rate of the simulated sender, in packets per second.
    pub ceiling_pps: f64,
    /// Line rate of its links in bits per second on the medium (L1); `None` adds nothing to a
    /// plan's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_speed_bps: Option<u64>,
    /// The table of its stateful firewall; the default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "SimTable::is_default")]
    pub table: SimTable,
    /// Factor on the capacity by "setting=label", e.g. "firewall=stateful" = 0.8.
    pub effect: BTreeMap<String, f64>,
    /// True: a run takes its real time; false: it returns immediately.
    pub realtime: bool,
    /// Share of the runs that are degraded from start to end, 0 to 0.5. The default of this and the
    /// next adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "SimSettings::is_clean")]
    pub contamination: f64,
    /// Share of the capacity that a degraded run loses, 0 to 0.99.
    #[serde(default = "SimSettings::depth", skip_serializing_if = "SimSettings::is_depth")]
    pub contamination_depth: f64,
}

impl SimSettings {
    fn is_none(packets: &u32) -> bool {
        *packets == 0
    }

    fn alike() -> f64 {
        1.0
    }

    fn is_alike(reverse: &f64) -> bool {
        *reverse == Self::alike()
    }

    fn is_clean(contamination: &f64) -> bool {
        *contamination == 0.0
    }

    fn depth() -> f64 {
        0.04
    }

    fn is_depth(depth: &f64) -> bool {
        *depth == Self::depth()
    }
}

impl Default for SimSettings {
    /// A device about as fast as one core of a virtual machine, and slightly steadier.
    fn default() -> Self {
        Self {
            capacity_pps: 1.6e6,
            noise: 0.02,
            drift: 0.0,
            phi: 0.9,
            jitter: 0.03,
            loss: 0.0,
            reverse: Self::alike(),
            ceiling_pps: 5e6,
            link_speed_bps: None,
            effect: BTreeMap::new(),
            realtime: false,
            buffer: 0,
            table: SimTable::default(),
            contamination: 0.0,
            contamination_depth: Self::depth(),
        }
    }
}

/// Connection table of a simulated stateful firewall.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimTable {
    /// Maximum number of connections.
    pub states: u32,
    /// Connections per second that it sets up, in the base variant.
    pub establishment_pps: f64,
    /// Connections per second that it removes.
    pub tear_down_pps: f64,
}

impl SimTable {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for SimTable {
    /// A table of Linux's size, with rates of a similar magnitude.
    fn default() -> Self {
        Self { states: 262_144, establishment_pps: 400e3, tear_down_pps: 2e6 }
    }
}
