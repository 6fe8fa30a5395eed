//! Configuration of an Open Traffic Generator that sends a load (its data model, 1.x).

use crate::{Load, mac};
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, flow_address};
use fwdlab_packet::template::{DESTINATION_PORT, SOURCE_PORT};
use serde_json::{Value, json};

/// Name of the only flow.
pub(super) const FLOW: &str = "fwdlab";
/// Names of the ports.
pub(super) const SENDER: &str = "sender";
/// See [`SENDER`].
pub(super) const RECEIVER: &str = "receiver";

/// A configuration of two ports, by location, and one flow.
pub(super) fn config(load: &Load, sender: &str, receiver: &str) -> Value {
    let (version, address) = match load.stream.family {
        Family::Inet => (
            "ipv4",
            json!({ "src": pattern(load, Side::Sender),
                                         "dst": pattern(load, Side::Receiver) }),
        ),
        Family::Inet6 => (
            "ipv6",
            json!({ "src": pattern(load, Side::Sender),
                                          "dst": pattern(load, Side::Receiver) }),
        ),
    };
    let rate = match load.rate_pps {
        // The API encodes 64-bit numbers as strings.
        Some(rate) => {
            let pps = (rate.round().max(1.0) as u64).to_string();
            json!({ "choice": "pps", "pps": pps })
        }
        None => json!({ "choice": "percentage", "percentage": 100.0 }),
    };
    let ethernet = json!({
        "src": value(json!(mac(load.source_mac))),
        "dst": value(json!(mac(load.next_hop_mac))),
    });
    let udp = json!({
        "src_port": value(json!(SOURCE_PORT)),
        "dst_port": value(json!(DESTINATION_PORT)),
    });
    let flow = json!({
        "name": FLOW,
        "tx_rx": { "choice": "port", "port": { "tx_name": SENDER, "rx_names": [RECEIVER] } },
        "packet": [
            { "choice": "ethernet", "ethernet": ethernet },
            { "choice": version, version: address },
            { "choice": "udp", "udp": udp },
        ],
        // Includes the FCS, like fwdlab's sizes.
        "size": { "choice": "fixed", "fixed": load.stream.frame_size.most() },
        "rate": rate,
        // A limit in case the controller dies.
        "duration": {
            "choice": "fixed_seconds",
            "fixed_seconds": { "seconds": load.at_most.as_secs_f64() },
        },
        "metrics": { "enable": true },
    });
    json!({
        "ports": [
            { "name": SENDER, "location": sender },
            { "name": RECEIVER, "location": receiver },
        ],
        "flows": [flow],
    })
}

/// Request to start or stop the flow.
pub(super) fn transmit(state: &str) -> Value {
    json!({
        "choice": "traffic",
        "traffic": {
            "choice": "flow_transmit",
            "flow_transmit": { "state": state, "flow_names": [FLOW] },
        },
    })
}

fn value(value: Value) -> Value {
    json!({ "choice": "value", "value": value })
}

fn pattern(load: &Load, side: Side) -> Value {
    let count = match side {
        Side::Sender => load.stream.flows.sources,
        Side::Receiver => load.stream.flows.destinations,
    };
    let first = flow_address(load.stream.family, side, 0).to_string();
    if count <= 1 {
        return value(json!(first));
    }
    let step = match load.stream.family {
        Family::Inet => "0.0.0.1",
        Family::Inet6 => "::1",
    };
    let increment = json!({ "start": first, "step": step, "count": count });
    json!({ "choice": "increment", "increment": increment })
}
