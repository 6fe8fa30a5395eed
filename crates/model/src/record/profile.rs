//! Record of a profile run, without its samples.

use super::Counts;
use crate::settings::Rate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run of a variant in which the DUT's CPUs were sampled: a measured one, or an extra one. All
/// times are nanoseconds of CLOCK_MONOTONIC, the clock of the samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileRecord {
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Index of the measured run; `None` for an extra run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// Number of the extra run within the variant, from 0.
    #[serde(default)]
    pub start: u16,
    /// Wall clock at the start, RFC 3339, UTC.
    pub started_at: String,
    /// Source of the samples, e.g. `perf, cpu-clock at 1999 Hz, frame pointers`.
    pub source: String,
    /// Event that triggered a sample.
    pub event: String,
    /// Sampling rate: samples per CPU and second.
    pub frequency_hz: u32,
    /// Method of finding callers.
    pub call_graph: String,
    /// The sampled CPUs.
    pub cpus: Vec<u16>,
    /// Intended load in the profile settings; `None` for the load of the measured runs, with which
    /// its rate is then compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Start and end of the window in which the packets of [`ProfileRecord::windows`] were sent.
    pub window_ns: (u64, u64),
    /// The parts of the window, in order.
    pub windows: Vec<ProfileWindow>,
    /// Latest start of sampling.
    pub sampled_from_ns: u64,
    /// Earliest end of sampling.
    pub sampled_to_ns: u64,
    /// Differences of counters over the window.
    pub counters: Vec<ProfileCounter>,
    /// Packets of the whole run, including the warm-up.
    pub total: Counts,
    /// Places where packets of the whole run that were not forwarded were lost. The last one is the
    /// rest that no counter explains; together they sum to [`Counts::lost`] of
    /// [`ProfileRecord::total`].
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
    /// Packets sent in this part.
    pub offered: u64,
    /// Packets received in this part.
    pub forwarded: u64,
}

/// A counter's difference over the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileCounter {
    /// Name, e.g. `instructions` or `softirq NET_RX`.
    pub name: String,
    /// The difference; `None` if it could not be counted.
    pub value: Option<u64>,
    /// Reason why it could not be counted; empty if it was.
    pub why_absent: String,
}

impl ProfileCounter {
    /// Creates a counter with a value.
    pub fn counted(name: impl Into<String>, value: u64) -> ProfileCounter {
        ProfileCounter { name: name.into(), value: Some(value), why_absent: String::new() }
    }

    /// Creates a counter that could not be read.
    pub fn absent(name: impl Into<String>, why: impl Into<String>) -> ProfileCounter {
        ProfileCounter { name: name.into(), value: None, why_absent: why.into() }
    }
}

/// A place on the DUT's path, and the packets lost there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropPlace {
    /// The place, in words.
    pub place: String,
    /// Packets. Negative only for the rest, if counters exceed the loss.
    pub packets: i64,
}
