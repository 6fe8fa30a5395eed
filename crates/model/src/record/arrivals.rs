//! Results of the receiver's checks: damaged, duplicate and reordered packets.

use super::Counts;
use super::is_zero;
use crate::warning::CheckedSample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Faults of the packets of one run at the receiver, over the whole trial. What arrived
/// damaged or a second time is no part of [`super::Counts::forwarded`]; what arrived
/// damaged is part of what was lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrivals {
    /// How packets were looked at.
    pub checked: Checked,
    /// Packets of this run that arrived damaged.
    pub damaged: u64,
    /// Those of them that were sent in the window.
    pub damaged_in_window: u64,
    /// The damaged ones by what is wrong with them, e.g. `ttl`; without those that did not
    /// happen.
    pub faults: BTreeMap<String, u64>,
    /// Packets that had arrived before (RFC 5560).
    pub duplicates: u64,
    /// Those of them that were sent in the window.
    pub duplicates_in_window: u64,
    /// Reordered packets: arrived after a later one of their flow (RFC 4737).
    pub reordered: u64,
    /// Those of them that were sent in the window.
    pub reordered_in_window: u64,
    /// Frames that are no benchmark traffic at all, e.g. neighbour discovery.
    pub others: u64,
    /// Packets of which every byte was looked at.
    pub in_full: u64,
    /// Bytes without FCS of the packets of the window that arrived intact; 0 where nobody
    /// counted them.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_in_window: u64,
    /// Which packets were checked; none: every one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<CheckedSample>,
    /// What arrived of each flow; none where flows were not followed.
    pub flows: Option<FlowArrivals>,
    /// The part of all this that went from the receiver to the sender, of traffic in both
    /// directions; none where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Box<Reverse>>,
}

/// The reverse direction of traffic in both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reverse {
    /// Its packets of the window.
    pub window: Counts,
    /// Its packets of the whole trial.
    pub total: Counts,
    /// How they arrived.
    pub arrivals: Arrivals,
}

/// How packets were looked at when they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum Checked {
    /// They were counted by something else than fwdlab's receiver, or there were none.
    #[default]
    Nothing,
    /// Their stamp alone.
    Stamp,
    /// Headers, checksums, stamp and order of each, or stamp and order of each and the rest
    /// of a sample ([`Arrivals::sample`]); of the payload after the stamp, that
    /// of one of these in so many, and of all of the first thousand; 1: of each.
    Packets {
        /// One in so many.
        payload_one_in: u64,
    },
}

/// What arrived of all flows together, up to the last packet that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowArrivals {
    /// Flows of the run.
    pub flows: u32,
    /// Flows of which a packet was sent.
    pub sent: u32,
    /// Flows of which a packet arrived intact.
    pub seen: u32,
    /// Flows of which a packet is missing.
    pub with_loss: u32,
    /// Packets that are missing.
    pub missing: u64,
    /// The flow that misses most.
    pub worst: Option<WorstFlow>,
    /// How many flows would be unseen if packets were lost at random.
    pub unseen_by_chance: f64,
    /// More flows are unseen than chance explains: the device does not forward them.
    pub lacking: bool,
}

/// A flow and its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstFlow {
    /// Its number: source index x destinations + destination index.
    pub flow: u32,
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived intact.
    pub arrived: u64,
}
