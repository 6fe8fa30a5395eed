//! Results of the receiver's checks: damaged, duplicate and reordered packets.

use super::Counts;
use super::is_zero;
use crate::warning::CheckedSample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Faults of a run's packets at the receiver, over the whole trial. Damaged packets and duplicates
/// are not part of [`super::Counts::forwarded`]; damaged packets are part of the loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrivals {
    /// Extent of the checks.
    pub checked: Checked,
    /// Damaged packets of this run.
    pub damaged: u64,
    /// Damaged packets that were sent in the window.
    pub damaged_in_window: u64,
    /// Damaged packets by fault, e.g. `ttl`; without faults that did not occur.
    pub faults: BTreeMap<String, u64>,
    /// Packets that had arrived before (RFC 5560).
    pub duplicates: u64,
    /// Duplicates that were sent in the window.
    pub duplicates_in_window: u64,
    /// Reordered packets: arrived after a later one of their flow (RFC 4737).
    pub reordered: u64,
    /// Reordered packets that were sent in the window.
    pub reordered_in_window: u64,
    /// Frames that are not benchmark traffic, e.g. neighbour discovery.
    pub others: u64,
    /// Packets of which every byte was checked.
    pub in_full: u64,
    /// Bytes without FCS of the packets of the window that arrived intact; 0 if not counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_in_window: u64,
    /// Checked sample; `None` if every packet was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<CheckedSample>,
    /// Arrivals per flow; `None` if flows were not followed.
    pub flows: Option<FlowArrivals>,
    /// The part of all this from the receiver to the sender, for traffic in both directions; `None`
    /// for one direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Box<Reverse>>,
}

/// The reverse direction of traffic in both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reverse {
    /// Its packets of the window.
    pub window: Counts,
    /// Its packets of the whole trial.
    pub total: Counts,
    /// Arrivals of these packets.
    pub arrivals: Arrivals,
}

/// Extent of the checks of received packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum Checked {
    /// None: another receiver counted them, or there were none.
    #[default]
    Nothing,
    /// Only the stamp.
    Stamp,
    /// Headers, checksums, stamp and order of each packet; or stamp and order of each and the rest
    /// of a sample ([`Arrivals::sample`]). The payload after the stamp is checked in full for the
    /// first thousand of these packets, then for one in `payload_one_in`.
    Packets {
        /// One in this number; 1 for every packet.
        payload_one_in: u64,
    },
}

/// Arrivals of all flows together, up to the last packet that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowArrivals {
    /// Flows of the run.
    pub flows: u32,
    /// Flows with at least one sent packet.
    pub sent: u32,
    /// Flows with at least one intact packet.
    pub seen: u32,
    /// Flows with missing packets.
    pub with_loss: u32,
    /// Missing packets.
    pub missing: u64,
    /// The flow with the most missing packets.
    pub worst: Option<WorstFlow>,
    /// Expected number of unseen flows if packets were lost at random.
    pub unseen_by_chance: f64,
    /// True if more flows are unseen than chance explains: the device does not forward them.
    pub lacking: bool,
}

/// A flow and its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstFlow {
    /// Flow number: source index x destinations + destination index.
    pub flow: u32,
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived intact.
    pub arrived: u64,
}
