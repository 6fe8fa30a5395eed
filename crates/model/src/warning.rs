//! Warnings about a measurement. A warning contains its evidence, is stored with
//! the number and is shown wherever the number is.

use fwdlab_packet::arrivals::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A sample of packets that were checked in full, among all received ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckedSample {
    /// Number of packets checked before sampling began.
    pub first: u64,
    /// Sampling rate after that: one in this number.
    pub one_in: u64,
    /// Checked packets.
    pub checked: u64,
    /// Received packets of this run, intact or not.
    pub of: u64,
    /// Damaged packets among the checked ones.
    pub damaged: u64,
}

impl CheckedSample {
    /// Describes the checks in words.
    pub fn sentence(&self) -> String {
        let CheckedSample { first, one_in, checked, of, .. } = self;
        format!("{checked} of {of} packets were checked (the first {first} and one in {one_in})")
    }
}

/// A warning with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// The sender did not reach the intended load.
    Unsent {
        /// Intended packets in the window.
        intended: u64,
        /// Packets that left.
        offered: u64,
    },
    /// The result is within 10 % of the rate of sender and receiver without a DUT, or nothing was
    /// lost at the maximum rate in the open arrangement.
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
        /// Share of the window that the DUT waited for its CPUs, including steal, 0 to 1; `None` if
        /// the kernel does not report it.
        #[serde(default)]
        waited: Option<f64>,
    },
    /// Packets of another run arrived.
    Foreign {
        /// Number of packets.
        packets: u64,
    },
    /// More packets arrived than were sent.
    NotConserved {
        /// Sent packets.
        offered: u64,
        /// Received packets.
        forwarded: u64,
    },
    /// The DUT's own counters differ from fwdlab's counts by more than their accuracy.
    CounterMismatch {
        /// Counter.
        counter: String,
        /// Its increase.
        counted: u64,
        /// Expected increase by fwdlab's counts.
        expected: u64,
    },
    /// Wall clock and monotonic clock diverged during the run.
    ClockJump {
        /// Difference in nanoseconds.
        jump_ns: i64,
    },
    /// A setting read back differs from the configured value.
    NotVerified {
        /// Setting.
        setting: String,
        /// Configured value.
        wanted: String,
        /// Value found.
        found: String,
    },
    /// A fallback that is slower or less exact is in use.
    Fallback {
        /// The fallback.
        used: String,
        /// Reason.
        why: String,
    },
    /// Packets were still arriving when the drain ended.
    NotDrained {
        /// Length of the drain in nanoseconds.
        drain_ns: u64,
    },
    /// The receiver itself was too slow: packets that it dropped count as lost, although the DUT
    /// forwarded them.
    ReceiverDropped {
        /// Number of packets.
        packets: u64,
    },
    /// Some sent flows did not arrive.
    FlowsMissing {
        /// Flows that arrived.
        seen: u32,
        /// Flows sent.
        sent: u32,
    },
    /// A log of another tool contains, or lacks, important information.
    Log {
        /// The log's file.
        file: String,
        /// Line number, from 1; `None` for the log as a whole.
        line: Option<u64>,
        /// The information.
        what: String,
    },
    /// The testbed's receiver took CPU time of the device.
    ReceiverOnDevice {
        /// Receiver's share of the device's CPU time, 0 to 1; `None` if it cannot be separated.
        share: Option<f64>,
    },
    /// Queues of the DUT had no packet, although others of the same interface had some.
    IdleQueues {
        /// Interface.
        interface: String,
        /// `receive` or `transmit`.
        direction: String,
        /// The queues without a packet, from 0.
        idle: Vec<u16>,
        /// Total number of queues.
        queues: u16,
    },
    /// The window opened before every flow was present.
    OpenedEarly {
        /// Number of present flows.
        there: u64,
        /// Flows of the traffic.
        flows: u64,
        /// Meaning of "present", e.g. `flows had been received`.
        what: String,
        /// Length of the warm-up in nanoseconds.
        warmup_ns: u64,
    },
    /// After the maximum time of the drain, packets were neither received nor counted as dropped by
    /// the DUT: they count as lost.
    Unaccounted {
        /// Number of packets.
        packets: i64,
        /// Length of the drain in nanoseconds.
        drain_ns: u64,
    },
    /// Packets arrived with changes that a router must not make. They count as lost.
    Damaged {
        /// Number of packets.
        packets: u64,
        /// Packets that arrived intact.
        intact: u64,
        /// Damaged packets by fault.
        faults: BTreeMap<String, u64>,
        /// Checked sample; `None` if every packet was checked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample: Option<CheckedSample>,
    },
    /// Packets arrived more than once; each counts once.
    Duplicated {
        /// Number of surplus packets.
        packets: u64,
        /// Received packets, each counted once.
        arrived: u64,
    },
    /// Packets arrived after later ones of the same flow.
    Reordered {
        /// Number of packets.
        packets: u64,
        /// Received packets.
        arrived: u64,
    },
    /// UDP packets between the benchmark's addresses arrived that fwdlab did not send.
    Unstamped {
        /// Number of packets.
        packets: u64,
    },
    /// An earlier attempt at the run measured some of the trials: on another start of the device.
    Continued {
        /// Number of these trials.
        trials: u32,
        /// Wall clock at the start of that attempt, RFC 3339, UTC.
        started_at: String,
    },
}

impl Warning {
    /// Returns one sentence for the user.
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
            Warning::NotSteady { ratio } if !(100.0 * ratio).is_finite() => {
                "no steady state: nothing was forwarded in the first third of the window, and \
                 packets were in the last"
                    .to_owned()
            }
            Warning::NotSteady { ratio } => format!(
                "no steady state: the last third of the window ran at {:.1} % of the first",
                100.0 * ratio
            ),
            Warning::CpuContended { cpu, stolen, user, waited } => {
                let waited = waited.map_or(String::new(), |waited| {
                    format!("the DUT waited {:.1} % of the window; ", 100.0 * waited)
                });
                format!(
                    "CPU {cpu}: {waited}{:.1} % of the window stolen by the hypervisor, {:.1} % \
                     used by other programs",
                    100.0 * stolen,
                    100.0 * user
                )
            }
            Warning::Foreign { packets } => {
                format!("{packets} packets of another run reached the receiver")
            }
            Warning::NotConserved { offered, forwarded } => {
                format!("{forwarded} packets arrived of {offered} sent: the count can't be trusted")
            }
            Warning::CounterMismatch { counter, counted, expected } => {
                format!("{counter} reports {counted}; fwdlab counted {expected}")
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
            Warning::ReceiverOnDevice { share: Some(share) } => format!(
                "receiver and frame pool took {:.0} % of the DUT's CPU: effects on the rate are \
                 smaller than those on the device",
                100.0 * share
            ),
            Warning::ReceiverOnDevice { share: None } => {
                "receiver and frame pool share the DUT's CPU, how much of it can't be told: effects \
                 on the rate are smaller than those on the device"
                    .to_owned()
            }
            Warning::IdleQueues { interface, direction, idle, queues } => {
                let named: Vec<String> = idle.iter().map(u16::to_string).collect();
                format!(
                    "{} of {queues} {direction} queues of {interface} had no packet: {}",
                    idle.len(),
                    named.join(", ")
                )
            }
            Warning::OpenedEarly { there, flows, what, warmup_ns } => format!(
                "measuring began after {:.1} s of warm-up, when {there} of {flows} {what}",
                *warmup_ns as f64 / 1e9
            ),
            Warning::Unaccounted { packets, drain_ns } => format!(
                "{packets} packets were neither received nor counted as dropped by the device at \
                 the end of the drain of {:.1} s: they count as lost",
                *drain_ns as f64 / 1e9
            ),
            Warning::Damaged { .. } if self.is_translation() => {
                "every packet arrived with another source address than the declared path gives it \
                 (NAT?): none counts as forwarded; if the device translates to the address of its \
                 egress interface, write nat = \"source\" in [dut] or in the level, else remove it"
                    .to_owned()
            }
            Warning::Damaged { packets, intact, faults, sample: None } => format!(
                "{packets} packets arrived damaged ({}), {intact} intact: only these count as \
                 forwarded",
                faults_in_words(faults)
            ),
            Warning::Damaged { packets, intact, faults, sample: Some(sample) } => format!(
                "{packets} packets arrived damaged ({}), {intact} count as forwarded; {}, \
                 {} of these {} damaged ({:.3} %): what is damaged of the others counts as \
                 forwarded unless its stamp shows it; write checks = \"all\" in [traffic] to \
                 find it",
                faults_in_words(faults),
                sample.sentence(),
                sample.damaged,
                if sample.damaged == 1 { "is" } else { "are" },
                100.0 * sample.damaged as f64 / sample.checked.max(1) as f64
            ),
            Warning::Duplicated { packets, arrived } => format!(
                "{packets} packets arrived again after {arrived} had arrived: each counts once"
            ),
            Warning::Reordered { packets, arrived } => format!(
                "{packets} of {arrived} packets arrived after a later one of their flow ({:.3} %)",
                100.0 * *packets as f64 / (*arrived).max(1) as f64
            ),
            Warning::Unstamped { packets } => format!(
                "{packets} UDP packets between the benchmark's addresses reached the receiver \
                 without a stamp: somebody else sends there"
            ),
            Warning::Continued { trials, started_at } => format!(
                "{trials} of the trials were measured by an attempt that began at {started_at} and \
                 was cut short: the device was started again since"
            ),
        }
    }

    /// True if nearly every packet arrived with a different source address.
    pub fn is_translation(&self) -> bool {
        match self {
            Warning::Damaged { packets, intact, faults, .. } => {
                is_translated(*packets, *intact, faults)
            }
            _ => false,
        }
    }

    /// True if the number itself is unreliable (exit code 4). Damage is a finding about the device,
    /// and damaged packets are not part of the rate; if most packets are damaged, the rate
    /// represents only the others.
    pub fn is_fatal(&self) -> bool {
        match self {
            Warning::NotConserved { .. } | Warning::NotVerified { .. } => true,
            // The share of the checked packets, if only these are known.
            Warning::Damaged { sample: Some(sample), .. } => sample.damaged > sample.checked / 2,
            Warning::Damaged { packets, intact, .. } => packets > intact,
            _ => false,
        }
    }

    /// True if it concerns rates and CPU time, which are meaningless for an emulated device.
    pub fn is_of_time(&self) -> bool {
        matches!(
            self,
            Warning::NotSteady { .. }
                | Warning::CpuContended { .. }
                | Warning::GeneratorLimited { .. }
                | Warning::ClockJump { .. }
        )
    }
}

/// True if nearly all packets arrived with a different source address.
fn is_translated(packets: u64, intact: u64, faults: &BTreeMap<String, u64>) -> bool {
    let translated = faults.get(Fault::SourceAddress.name()).copied().unwrap_or(0);
    translated > 0 && translated.saturating_mul(100) >= (packets + intact).saturating_mul(99)
}

/// Returns the faults of packets, the most frequent first: `12 x ttl, 1 x payload`.
pub fn faults_in_words(faults: &BTreeMap<String, u64>) -> String {
    let mut all: Vec<(&String, &u64)> = faults.iter().collect();
    all.sort_by_key(|(_, packets)| std::cmp::Reverse(**packets));
    let words = all.iter().map(|(fault, packets)| format!("{packets} x {fault}"));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsteadiness_is_a_finite_percentage() {
        for ratio in [f64::MAX, f64::INFINITY, f64::NAN] {
            let sentence = Warning::NotSteady { ratio }.sentence();
            assert!(sentence.contains("nothing was forwarded in the first third"), "{sentence}");
        }
        let sentence = Warning::NotSteady { ratio: 1.25 }.sentence();
        assert!(sentence.ends_with("ran at 125.0 % of the first"), "{sentence}");
    }
}
