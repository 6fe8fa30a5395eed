//! Doubts about a measurement. A warning is a value: it carries its evidence,
//! travels with the number into the store and is shown wherever the number is.

use serde::{Deserialize, Serialize};

/// A doubt with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// The sender did not reach the intended load.
    Unsent {
        /// Packets asked for in the window.
        intended: u64,
        /// Packets that left.
        offered: u64,
    },
    /// The result lies within 10 % of what sender and receiver reach without a DUT,
    /// or nothing was lost at the maximum rate in the open arrangement.
    GeneratorLimited {
        /// Forwarded, packets per second.
        forwarded_pps: f64,
        /// Ceiling without DUT, packets per second.
        ceiling_pps: f64,
    },
    /// The first and the last third of the window differ.
    NotSteady {
        /// Ratio of the last third's median rate to the first third's.
        ratio: f64,
    },
    /// Other work, or the hypervisor, took CPU time of a measured CPU.
    CpuContended {
        /// CPU number.
        cpu: u16,
        /// Share of the window that the hypervisor stole, 0 to 1.
        stolen: f64,
        /// Share of the window that user programs ran on a CPU of the DUT, 0 to 1.
        user: f64,
    },
    /// Packets of another run arrived.
    Foreign {
        /// How many.
        packets: u64,
    },
    /// More packets arrived than were sent.
    NotConserved {
        /// Sent.
        offered: u64,
        /// Arrived.
        forwarded: u64,
    },
    /// The DUT's own counters disagree with ours by more than their accuracy.
    CounterMismatch {
        /// Counter.
        counter: String,
        /// Its increase.
        counted: u64,
        /// What ours say.
        expected: u64,
    },
    /// Wall clock and monotonic clock went apart during the run.
    ClockJump {
        /// Difference in nanoseconds.
        jump_ns: i64,
    },
    /// A setting did not read back as it was written.
    NotVerified {
        /// Setting.
        setting: String,
        /// Value asked for.
        wanted: String,
        /// Value found.
        found: String,
    },
    /// Something slower or less exact is used in place of what was asked for.
    Fallback {
        /// What is used.
        used: String,
        /// Why.
        why: String,
    },
    /// Packets were still arriving when the drain ended.
    NotDrained {
        /// Length of the drain in nanoseconds.
        drain_ns: u64,
    },
    /// The receiver itself was too slow: what it dropped counts as lost, though
    /// the DUT forwarded it.
    ReceiverDropped {
        /// How many.
        packets: u64,
    },
    /// Not every flow that was sent arrived.
    FlowsMissing {
        /// Flows that arrived.
        seen: u32,
        /// Flows sent.
        sent: u32,
    },
    /// A log of another tool says something that has to be known, or lacks it.
    Log {
        /// The log's file.
        file: String,
        /// Number of the line, from 1; none for the log as a whole.
        line: Option<u64>,
        /// What.
        what: String,
    },
}

impl Warning {
    /// One sentence for a person.
    pub fn sentence(&self) -> String {
        use crate::units::format_pps;
        match self {
            Warning::Unsent { intended, offered } => format!(
                "the sender left {} of {intended} intended packets unsent ({:.2} %)",
                intended.saturating_sub(*offered),
                100.0 * intended.saturating_sub(*offered) as f64 / (*intended).max(1) as f64
            ),
            Warning::GeneratorLimited { forwarded_pps, ceiling_pps } => format!(
                "generator-limited: forwarded {} where sender and receiver reach {} without a DUT",
                format_pps(*forwarded_pps),
                format_pps(*ceiling_pps)
            ),
            Warning::NotSteady { ratio } => format!(
                "no steady state: the last third of the window ran at {:.1} % of the first",
                100.0 * ratio
            ),
            Warning::CpuContended { cpu, stolen, user } => format!(
                "CPU {cpu} was taken away for {:.1} % of the window by the hypervisor and for \
                 {:.1} % by other programs",
                100.0 * stolen,
                100.0 * user
            ),
            Warning::Foreign { packets } => {
                format!("{packets} packets of another run reached the receiver")
            }
            Warning::NotConserved { offered, forwarded } => {
                format!("{forwarded} packets arrived of {offered} sent: the count can't be trusted")
            }
            Warning::CounterMismatch { counter, counted, expected } => {
                format!("{counter} says {counted}, ours say {expected}")
            }
            Warning::ClockJump { jump_ns } => {
                format!("the wall clock jumped by {:.3} s during the run", *jump_ns as f64 / 1e9)
            }
            Warning::NotVerified { setting, wanted, found } => {
                format!("{setting} was set to {wanted} and reads back as {found}")
            }
            Warning::Fallback { used, why } => format!("fallback to {used}: {why}"),
            Warning::NotDrained { drain_ns } => format!(
                "packets still arrived at the end of the drain of {:.1} s",
                *drain_ns as f64 / 1e9
            ),
            Warning::ReceiverDropped { packets } => format!(
                "the receiver dropped {packets} packets that the DUT forwarded: they count as lost"
            ),
            Warning::FlowsMissing { seen, sent } => format!("{seen} of {sent} flows arrived"),
            Warning::Log { file, line: Some(line), what } => format!("{file}:{line}: {what}"),
            Warning::Log { file, line: None, what } => format!("{file}: {what}"),
        }
    }

    /// True when the number itself can't be trusted (exit code 4).
    pub fn is_fatal(&self) -> bool {
        matches!(self, Warning::NotConserved { .. } | Warning::NotVerified { .. })
    }
}
