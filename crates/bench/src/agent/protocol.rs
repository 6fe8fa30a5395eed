//! Protocol between controller and agents: lines of JSON.
//!
//! Both sides begin with a [`Hello`]. The controller then sends orders, starting with
//! [`Order::Send`] or [`Order::Receive`], and the agent answers each with one line.

use crate::error::BenchError;
use fwdlab_model::record::{Arrivals, Latency};
use fwdlab_model::settings::Engine;
use fwdlab_packet::Stream;
use fwdlab_packet::stamp::PHASES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;
/// Version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// First line of both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the program.
    pub fwdlab: String,
    /// Version of the protocol.
    pub protocol: u32,
}

impl Hello {
    /// Versions of this program.
    pub fn own() -> Hello {
        Hello { fwdlab: VERSION.into(), protocol: PROTOCOL }
    }

    /// Fails unless the other side, named `peer`, has the same versions.
    ///
    /// # Errors
    /// [`BenchError::Environment`] with both versions.
    pub fn check(&self, peer: &str) -> Result<(), BenchError> {
        if *self == Hello::own() {
            return Ok(());
        }
        let Hello { fwdlab, protocol } = self;
        Err(BenchError::environment(
            format!(
                "{peer} is fwdlab {fwdlab} with protocol {protocol}, this is fwdlab {VERSION} \
                 with protocol {PROTOCOL}"
            ),
            "let the same fwdlab run on both machines",
        ))
    }
}

/// Order to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "lowercase")]
pub enum Order {
    /// Open senders, and wait. Answered by [`Answer::Ready`].
    Send(SendOrder),
    /// Open a receiver, and count from now on. Answered by [`Answer::Ready`].
    Receive(ReceiveOrder),
    /// Start sending.
    Start,
    /// Set the phase of packets sent from now on; the answer contains the time of the change.
    Phase {
        /// 0 to 2, see [`fwdlab_packet::Phase`].
        phase: u8,
    },
    /// Change the sending rate of this agent.
    Rate {
        /// Packets per second, above 0.
        rate_pps: f64,
    },
    /// Report the counters.
    Report {
        /// Include the number of flows.
        #[serde(default)]
        flows: bool,
    },
    /// Stop, report the final counters, exit.
    Stop,
}

/// Parameters of a sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendOrder {
    /// Interface.
    pub interface: String,
    /// Source MAC.
    pub source_mac: [u8; 6],
    /// Destination MAC of frames.
    pub next_hop_mac: [u8; 6],
    /// The packets.
    pub stream: Stream,
    /// Identity of the run.
    pub run_id: u32,
    /// Number of the first sending thread among the threads of all agents.
    pub first_number: u8,
    /// Packets per second of this agent; `None` for as fast as possible.
    pub rate_pps: Option<f64>,
    /// Packets that this agent sends; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Flow of the first packet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_flow: u32,
    /// Write the sending time into every packet.
    pub timestamps: bool,
    /// Mechanism.
    pub engine: Engine,
    /// CPU of each sending thread; if empty, one thread on a CPU that the agent chooses.
    pub cpus: Vec<u16>,
    /// Time after which the agent exits without an order, nanoseconds.
    pub at_most_ns: u64,
}

fn is_zero(flow: &u32) -> bool {
    *flow == 0
}

/// Parameters of a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiveOrder {
    /// Interface.
    pub interface: String,
    /// Identity of the run.
    pub run_id: u32,
    /// Number of flows to distinguish if packets are identified by their stamp alone; 0 for none.
    pub flows: u32,
    /// Expected packets; `None` if packets are identified by their stamp alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedPackets>,
    /// Mechanism: `packet`, or any other for XDP if it works and AF_PACKET if not.
    pub engine: Engine,
    /// CPUs of the receiving thread, if there is one; empty for any.
    pub cpus: Vec<u16>,
    /// Time after which the agent exits without an order, nanoseconds.
    pub at_most_ns: u64,
}

/// Expected packets at the receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedPackets {
    /// The packets.
    pub stream: Stream,
    /// Destination MAC of frames.
    pub destination_mac: [u8; 6],
    /// Source MAC of frames; `None` for any.
    pub source_mac: Option<[u8; 6]>,
    /// Source address that the device gives every packet; `None` if packets keep theirs.
    #[serde(default)]
    pub translated: Option<IpAddr>,
    /// Routers on the path.
    pub hops: u8,
    /// Sending threads of all senders, 1 to 16.
    pub senders: u8,
    /// Every packet contains its sending time.
    pub timestamps: bool,
    /// All senders are on the receiver's host, so sending times are from the receiver's clock.
    #[serde(default)]
    pub same_clock: bool,
    /// A receiver in the kernel checks a sample.
    #[serde(default)]
    pub sampled: bool,
}

/// Answer of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum Answer {
    /// Senders or receiver are open.
    Ready {
        /// Mechanisms in use, by name.
        facts: BTreeMap<String, String>,
    },
    /// A sender's counters.
    Sent(Sent),
    /// A receiver's counters.
    Received(Box<Received>),
    /// The agent exits with an error.
    Failed {
        /// Description of the fault.
        what: String,
        /// Next step for the user; may be empty.
        next: String,
    },
}

/// A sender's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Time of the reading, nanoseconds of the agent's monotonic clock.
    pub at_ns: u64,
    /// Packets sent, by phase.
    pub packets: [u64; PHASES],
    /// Packets not sent because the sender was late.
    pub missed: u64,
}

/// A receiver's counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Time of the reading, nanoseconds of the agent's monotonic clock.
    pub at_ns: u64,
    /// Intact packets of this run, each counted once, by their sending phase.
    pub packets: [u64; PHASES],
    /// Bytes of this run's packets without FCS.
    pub bytes: u64,
    /// Packets of other runs.
    pub foreign: u64,
    /// Packets without a stamp.
    pub unstamped: u64,
    /// Frames that are not test traffic.
    #[serde(default)]
    pub others: u64,
    /// Packets that the receiver dropped.
    pub dropped: u64,
    /// Number of distinct flows, if requested and counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Packets of this run that arrived damaged.
    #[serde(default)]
    pub damaged: u64,
    /// Results of the receiver's checks, if flows were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Delays of the window's packets, if flows were requested and senders and receiver share a
    /// clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Latency>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_mismatch_error_names_both_versions() {
        Hello::own().check("the agent").expect("the same");
        for other in [
            Hello { protocol: PROTOCOL + 1, ..Hello::own() },
            Hello { fwdlab: "9.9.9".into(), ..Hello::own() },
        ] {
            let error = other.check("the agent on far").expect_err("another").to_string();
            assert!(error.starts_with("the agent on far is fwdlab "), "{error}");
            assert!(error.contains(VERSION) && error.contains("next step: "), "{error}");
        }
    }

    #[test]
    fn orders_and_answers_are_json_lines() {
        let phase = Order::Phase { phase: 1 };
        let line = serde_json::to_string(&phase).expect("JSON");
        assert_eq!(line, r#"{"order":"phase","phase":1}"#);
        let report: Order = serde_json::from_str(r#"{"order":"report"}"#).expect("an order");
        assert_eq!(report, Order::Report { flows: false });
        let sent = Answer::Sent(Sent { at_ns: u64::MAX, packets: [1, 2, 3, 0], missed: 4 });
        let line = serde_json::to_string(&sent).expect("JSON");
        assert_eq!(serde_json::from_str::<Answer>(&line).expect("an answer"), sent);
        assert!(!line.contains('\n'));
    }

    #[test]
    fn missing_fields_of_older_versions_have_defaults() {
        let line = r#"{"order":"receive","interface":"r0","run_id":7,"flows":16,"engine":"auto","cpus":[],"at_most_ns":9}"#;
        let Ok(Order::Receive(order)) = serde_json::from_str(line) else { panic!("an order") };
        assert_eq!((order.expected, order.flows), (None, 16));
        let line = r#"{"answer":"received","at_ns":1,"packets":[1,2,3,0],"bytes":60,"foreign":0,"unstamped":0,"dropped":0,"flows":5}"#;
        let Ok(Answer::Received(received)) = serde_json::from_str(line) else {
            panic!("an answer")
        };
        assert_eq!((received.flows, received.damaged, received.arrivals), (Some(5), 0, None));
    }
}
