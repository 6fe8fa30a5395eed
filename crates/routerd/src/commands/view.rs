//! Content of answers, for programs (JSON) and for tables.

use fwdlab_router::firewall::{Connection, Phase};
use fwdlab_router::path::{KnownNeighbour, Reachability};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The part of any answer that reports a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Reason why the command failed; `None` if it succeeded.
    pub error: Option<String>,
}

/// An answer that is a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table<R> {
    /// The rows.
    pub rows: Vec<R>,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighbourRow {
    /// Interface that leads to it.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC, if known.
    pub mac: Option<String>,
    /// `static`, `reachable`, `stale`, `delay`, `probe`, `incomplete` or `unknown` (RFC 4861).
    pub state: String,
    /// Seconds since its last answer; `None` if there was none.
    pub answered_seconds: Option<f64>,
}

impl NeighbourRow {
    pub(super) fn new(interface: String, known: KnownNeighbour, now_ns: u64) -> NeighbourRow {
        NeighbourRow {
            interface,
            address: known.gateway.address,
            mac: known.mac.map(mac),
            state: reachability(known.reachability).into(),
            answered_seconds: known.answered_ns.map(|time| seconds(now_ns, time)),
        }
    }
}

/// States of connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct States {
    /// Number of selected states, of which the rows may be a part.
    pub total: u64,
    /// The rows.
    pub rows: Vec<StateRow>,
}

/// State of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateRow {
    /// Address of the initiator.
    pub source: IpAddr,
    /// Port of the initiator; for ICMP the identifier.
    pub source_port: u16,
    /// Address of the responder.
    pub destination: IpAddr,
    /// Port of the responder; for ICMP the identifier.
    pub destination_port: u16,
    /// Protocol number.
    pub protocol: u8,
    /// `first`, `single`, `multiple`, `opening`, `established`, `closing` or `closed`.
    pub phase: String,
    /// Seconds since the last packet.
    pub idle_seconds: f64,
    /// Packets from the initiator, and to it.
    pub packets: [u64; 2],
    /// Bytes from the initiator, and to it, from the IP header on.
    pub bytes: [u64; 2],
}

impl StateRow {
    pub(super) fn new(connection: &Connection, now_ns: u64) -> StateRow {
        let ([source, destination], [source_port, destination_port]) =
            (connection.ends, connection.marks);
        let phase = match connection.phase {
            Phase::First => "first",
            Phase::Single => "single",
            Phase::Multiple => "multiple",
            Phase::Opening => "opening",
            Phase::Established => "established",
            Phase::Closing => "closing",
            Phase::Closed => "closed",
        };
        StateRow {
            source,
            source_port,
            destination,
            destination_port,
            protocol: connection.protocol,
            phase: phase.into(),
            idle_seconds: seconds(now_ns, connection.last_ns),
            packets: connection.packets,
            bytes: connection.bytes,
        }
    }
}

/// Number of states that a command removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killed {
    /// The number.
    pub killed: u64,
}

/// Treatment of packets to an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routes {
    /// The address.
    pub address: IpAddr,
    /// Prefix of the route; `None` if the router does not know it, as without a `[host]`.
    pub prefix: Option<String>,
    /// Destination of the route, as text; `None` if there is no route.
    pub via: Option<String>,
    /// `set-up`, `link` or `kernel`; `None` if the router does not know it.
    pub source: Option<String>,
    /// Next hops with an address; none if the route ends here.
    pub rows: Vec<RouteRow>,
}

/// A next hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteRow {
    /// Interface that leads to it.
    pub interface: Option<String>,
    /// Its address.
    pub next_hop: Option<IpAddr>,
    /// Share of flows among several next hops.
    pub weight: u64,
    /// False if its link has no carrier.
    pub has_carrier: Option<bool>,
    /// Its MAC, if known.
    pub mac: Option<String>,
    /// State of the MAC, as in [`NeighbourRow::state`].
    pub state: Option<String>,
}

/// A rule of the firewall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Line of the rule; `None` for the policy.
    pub line: Option<u64>,
    /// The rule.
    pub rule: String,
    /// Packets that matched it; later packets of its states are not among them.
    pub packets: u64,
    /// Bytes of these packets, from the IP header on.
    pub bytes: u64,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceRow {
    /// Its name.
    pub name: String,
    /// `up`, `no carrier` or `gone`.
    pub state: String,
    /// Its MAC.
    pub mac: String,
    /// Its MTU in bytes.
    pub mtu: u16,
    /// Its addresses with the prefix lengths.
    pub addresses: Vec<String>,
    /// Received frames.
    pub received: u64,
    /// Sent frames.
    pub sent: u64,
    /// Frames that it had no room to send.
    pub lost: u64,
    /// Frames that it lost before they were received.
    pub missed: u64,
}

/// Text of a MAC.
pub(super) fn mac(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Name of a neighbour's state.
pub(super) fn reachability(state: Reachability) -> &'static str {
    match state {
        Reachability::Unknown => "unknown",
        Reachability::Incomplete => "incomplete",
        Reachability::Stale => "stale",
        Reachability::Delay => "delay",
        Reachability::Probe => "probe",
        Reachability::Reachable => "reachable",
        Reachability::Static => "static",
    }
}

/// Seconds since a time, with one decimal.
fn seconds(now_ns: u64, time_ns: u64) -> f64 {
    (now_ns.saturating_sub(time_ns) / 100_000_000) as f64 / 10.0
}
