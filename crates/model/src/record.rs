//! Record of a run: raw observations, never a summary.

mod arrivals;
mod checkpoint;
mod connections;
mod device;
mod executed;
mod flood;
mod given_up;
mod latency;
mod method;
mod opening;
mod profile;
pub mod queues;

pub use arrivals::{Arrivals, Checked, FlowArrivals, Reverse, WorstFlow};
pub use checkpoint::{Checkpoint, OwnTrial};
pub use connections::Connections;
pub use device::{DeviceTime, ReceiverPlace};
pub use executed::{Executed, ExecutedFunction, ExecutedStacks, Misses};
pub use flood::FloodTrial;
pub use latency::{Floor, Latency, LatencyTrial};
pub use method::{MethodRecord, MethodTrial, Reset, tolerated};
pub use opening::{DrainEnd, Opening};
pub use profile::{DropPlace, ProfileCounter, ProfileRecord, ProfileWindow};

use crate::units::FrameSize;
use crate::warning::Warning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A run: one start of the DUT in one variant, with its trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Index of the run in the plan.
    pub run: u32,
    /// Block (stream in an alternation).
    pub block: u32,
    /// Variants measured; one, except in an alternation.
    pub variants: Vec<usize>,
    /// Identity in the stamp of every packet of this run.
    pub run_id: u32,
    /// Wall clock at the start, RFC 3339, UTC.
    pub started_at: String,
    /// The trial.
    pub trial: TrialRecord,
    /// Further trials on the same start of the device; `None` if the run has one trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodRecord>,
    /// Facts of this run: settings read back, sender, CPU placement.
    pub facts: BTreeMap<String, String>,
    /// Warnings, with their evidence.
    pub warnings: Vec<Warning>,
    /// Time spent outside the traffic, by step, in nanoseconds, in order.
    pub overhead_ns: Vec<(String, u64)>,
}

/// Counts of one phase of a trial, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Packets that provably left the sender.
    pub offered: u64,
    /// Packets of this run that arrived at the receiver intact, each counted once.
    pub forwarded: u64,
}

impl Counts {
    /// Offered minus forwarded, including packets that arrived damaged. Negative only if a count is
    /// wrong, which a warning then reports.
    pub fn lost(self) -> i64 {
        (self.offered as i64).saturating_sub(self.forwarded as i64)
    }
    /// Returns the counts without a part.
    pub fn without(self, part: Counts) -> Counts {
        Counts {
            offered: self.offered.saturating_sub(part.offered),
            forwarded: self.forwarded.saturating_sub(part.forwarded),
        }
    }
    /// Returns lost over offered; 0 if nothing was offered.
    pub fn loss_ratio(self) -> f64 {
        if self.offered == 0 { 0.0 } else { self.lost() as f64 / self.offered as f64 }
    }
}

/// Observations of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Measured length of the window in nanoseconds.
    pub window_ns: u64,
    /// Intended packets in the window; `None` at the maximum rate.
    pub intended: Option<u64>,
    /// Packets sent in the window, and those of them that arrived (also during the drain: every
    /// packet contains the phase in which it was sent).
    pub window: Counts,
    /// The same over the whole trial, including the warm-up.
    pub total: Counts,
    /// Packets at the receiver with another run's identity.
    pub foreign: u64,
    /// UDP packets between the benchmark's addresses without a stamp. Other traffic is in
    /// [`Arrivals::others`].
    pub unstamped: u64,
    /// Sent flows that were seen at the receiver; `None` if not counted.
    pub flows_seen: Option<u32>,
    /// Time until the last packets had drained, in nanoseconds.
    pub drain_ns: u64,
    /// Raw samples of the window, in order.
    pub samples: Vec<Sample>,
    /// Counters of the DUT: differences over the whole trial, by name.
    pub counters: Vec<Counter>,
    /// CPU time during the window.
    pub cpus: Vec<CpuTime>,
    /// Results of the receiver's checks: damage, duplicates, order.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// CPU time of device and receiver.
    #[serde(default)]
    pub device: DeviceTime,
    /// Flows and states when the window opened, and packets unaccounted for at the end.
    #[serde(default)]
    pub opening: Opening,
    /// Instructions executed by the device in the window; `None` if not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed: Option<Executed>,
}

/// One raw sample of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Start, in nanoseconds after the opening of the window.
    pub at_ns: u64,
    /// Measured length in nanoseconds.
    pub duration_ns: u64,
    /// Packets that left the sender.
    pub offered: u64,
    /// Packets that arrived at the receiver.
    pub forwarded: u64,
    /// Time stolen by the hypervisor from the DUT's CPUs, in nanoseconds (the kernel's resolution
    /// is 10 ms).
    pub stolen_ns: u64,
    /// Time that the device's threads ran on a CPU, in nanoseconds, summed over threads
    /// (`/proc/PID/schedstat`); `None` if the kernel does not report it.
    #[serde(default)]
    pub ran_ns: Option<u64>,
    /// Run delay of the device's threads while other programs had their CPU, in nanoseconds, summed
    /// over CPUs; `None` if the kernel does not report it.
    #[serde(default)]
    pub waited_ns: Option<u64>,
    /// Run delay of the sender's threads, including steal of their CPUs, in nanoseconds; `None` if
    /// the kernel does not report it.
    #[serde(default)]
    pub sender_waited_ns: Option<u64>,
    /// Current variant (in an alternation; otherwise the run's).
    pub variant: usize,
    /// Number of the slice of an alternation, from 0; 0 otherwise.
    pub slice: u32,
    /// False while a switch settles: the sample is not counted.
    pub valid: bool,
}

/// A DUT counter over the trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Name, e.g. `d0 rx_packets`.
    pub name: String,
    /// Value before.
    pub before: u64,
    /// Value after.
    pub after: u64,
    /// Expected increase from fwdlab's counts; `None` if they imply nothing about it.
    pub expected: Option<u64>,
}

impl Counter {
    /// Returns the increase over the trial.
    pub fn delta(&self) -> u64 {
        self.after.wrapping_sub(self.before)
    }
}

/// Packets at the receive ring of the DUT in a trial, by its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Packets that the DUT took from the ring.
    pub taken_in: u64,
    /// Packets dropped because the ring was full.
    pub dropped: u64,
}

impl Ring {
    /// Name of the counter of all packets that arrived at an interface's ring, after the
    /// interface's name.
    pub const ALL: &str = " rx_packets + rx_dropped";

    /// Returns the ring of the ingress interface; `None` if the counters do not include both
    /// values.
    pub fn of(counters: &[Counter]) -> Option<Ring> {
        let ingress = counters.iter().find_map(|counter| counter.name.strip_suffix(Ring::ALL))?;
        let delta = |what: &str| {
            let name = format!("{ingress} {what}");
            counters.iter().find(|counter| counter.name == name).map(Counter::delta)
        };
        let taken_in = delta("rx_packets")?;
        Some(Ring { taken_in, dropped: delta("rx_dropped").unwrap_or(0) })
    }
}

/// CPU time of one CPU during the window, in nanoseconds (`/proc/stat`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// CPU number.
    pub cpu: u16,
    /// Role: `sender`, `dut`, `sender+dut`, `receiver` or `other`.
    pub role: String,
    /// User and nice.
    pub user_ns: u64,
    /// System.
    pub system_ns: u64,
    /// Interrupts and softirqs.
    pub softirq_ns: u64,
    /// Idle and waiting.
    pub idle_ns: u64,
    /// Stolen by the hypervisor.
    pub stolen_ns: u64,
}

/// Ceiling: the rate of sender and receiver without a DUT, on the same testbed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Calibration key: testbed, arrangement, engine, senders.
    pub testbed: String,
    /// `inet` or `inet6`.
    pub family: String,
    /// Frame size with FCS.
    pub frame_size: FrameSize,
    /// Rates of the trials, packets per second.
    pub rates_pps: Vec<f64>,
    /// Wall clock, RFC 3339, UTC.
    pub measured_at: String,
}

impl Calibration {
    /// Returns the median of the trials (mean of the two middle ones for an even number).
    pub fn median_pps(&self) -> f64 {
        let mut sorted = self.rates_pps.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        match n {
            0 => f64::NAN,
            _ if n % 2 == 1 => sorted[n / 2],
            _ => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }
}

/// Environment of one invocation: section -> name -> value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment(pub BTreeMap<String, BTreeMap<String, String>>);
