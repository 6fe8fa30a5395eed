//! Record of a profile run, apart from its samples.

use super::Counts;
use crate::settings::Rate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of a variant in which the DUT's CPUs were sampled: a measured one, or an extra one.
/// All times are nanoseconds of CLOCK_MONOTONIC, the clock of the samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileRecord {
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Index of the measured run; `None` if the run was an extra one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// Number of the extra run among the variant's, from 0.
    #[serde(default)]
    pub start: u16,
    /// Wall clock at the start, RFC 3339, UTC.
    pub started_at: String,
    /// Where the samples come from, e.g. `perf, cpu-clock at 1999 Hz, frame pointers`.
    pub source: String,
    /// What triggered a sample.
    pub event: String,
    /// Sampling rate: samples per CPU and second.
    pub frequency_hz: u32,
    /// How callers were found.
    pub call_graph: String,
    /// The CPUs that were sampled.
    pub cpus: Vec<u16>,
    /// Intended load that the profile states; none where it ran as the measured runs do,
    /// which its rate is then held against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Start and end of the window in which the packets of [`ProfileRecord::windows`]
    /// were sent.
    pub window_ns: (u64, u64),
    /// The parts of the window, in order.
    pub windows: Vec<ProfileWindow>,
    /// Sampling was on from here at the latest.
    pub sampled_from_ns: u64,
    /// Sampling was on until here at the least.
    pub sampled_to_ns: u64,
    /// Differences of counters over the window.
    pub counters: Vec<ProfileCounter>,
    /// Packets of the whole run, warm-up included.
    pub total: Counts,
    /// Where the packets of the whole run that were not forwarded were lost. The
    /// last place is the rest that no counter explains; all of them sum to
    /// [`Counts::lost`] of [`ProfileRecord::total`].
    pub drops: Vec<DropPlace>,
    /// Remarks and errors, each with the next step.
    pub remarks: Vec<String>,
    /// Facts of this run: settings read back, sender, CPU placement.
    pub facts: BTreeMap<String, String>,
}

/// One part of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileWindow {
    /// Start.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// Packets that left the sender in it.
    pub offered: u64,
    /// Packets that arrived at the receiver in it.
    pub forwarded: u64,
}

/// A counter's difference over the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileCounter {
    /// Name, e.g. `instructions` or `softirq NET_RX`.
    pub name: String,
    /// The difference; none when it could not be counted.
    pub value: Option<u64>,
    /// Why it could not be counted; empty when it was.
    pub why_absent: String,
}

impl ProfileCounter {
    /// A counter that was read.
    pub fn counted(name: impl Into<String>, value: u64) -> ProfileCounter {
        ProfileCounter { name: name.into(), value: Some(value), why_absent: String::new() }
    }

    /// A counter that could not be read.
    pub fn absent(name: impl Into<String>, why: impl Into<String>) -> ProfileCounter {
        ProfileCounter { name: name.into(), value: None, why_absent: why.into() }
    }
}

/// A place along the DUT's path, and the packets that were lost there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropPlace {
    /// The place, in words.
    pub place: String,
    /// Packets. Negative only for the rest, when counters say more than was lost.
    pub packets: i64,
}
