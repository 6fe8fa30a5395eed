//! Answers with counters. The API writes 64-bit numbers as text.

use crate::LINE_BYTES;
use crate::config::Config;
use crate::transmission::{Counted, Transmission};
use crate::wires::Link;
use serde_json::{Value, json};

/// Percentiles of the details.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Metric of a flow.
pub(crate) fn flow(config: &Config, at: usize, transmission: Option<&Transmission>) -> Value {
    let flow = &config.flows[at];
    let counted = transmission.map(Transmission::counted).unwrap_or_default();
    let bytes = u64::from(flow.size);
    let line = u64::from(u32::from(flow.size) + LINE_BYTES);
    let mut metric = json!({
        "name": flow.name,
        "port_tx": config.ports[flow.tx].name,
        "port_rx": config.ports[flow.rx].name,
        "transmit": transmit(counted.is_sending),
        "frames_tx": text(counted.sent),
        "frames_rx": text(counted.received),
        "bytes_tx": text(counted.sent * bytes),
        "bytes_rx": text(counted.received * bytes),
        "frames_tx_rate": counted.sent_rate,
        "frames_rx_rate": counted.received_rate,
    });
    for (way, rate) in [("tx", counted.sent_rate), ("rx", counted.received_rate)] {
        let (bytes, line) = (rate * bytes as f64, rate * line as f64);
        metric[format!("{way}_l1_rate_bps")] = (8.0 * line).into();
        metric[format!("{way}_rate_bytes")] = bytes.into();
        metric[format!("{way}_rate_bps")] = (8.0 * bytes).into();
        metric[format!("{way}_rate_kbps")] = (8.0 * bytes / 1e3).into();
        metric[format!("{way}_rate_mbps")] = (8.0 * bytes / 1e6).into();
    }
    if flow.metrics.loss {
        metric["loss"] = loss(&counted).into();
    }
    if let Some(delays) = transmission
        .filter(|_| flow.metrics.latency)
        .and_then(|transmission| transmission.arrivals().delays)
    {
        metric["latency"] = json!({
            "minimum_ns": f64::from(delays.min_ns),
            "maximum_ns": f64::from(delays.max_ns),
            "average_ns": delays.mean_ns(),
        });
    }
    metric
}

/// Metric of a port: the sum of its flows.
pub(crate) fn port(
    config: &Config,
    at: usize,
    transmissions: &[Option<Transmission>],
    link: Link,
) -> Value {
    let port = &config.ports[at];
    // Packets, bytes and their rates, sent and received.
    let (mut packets, mut bytes) = ([0; 2], [0; 2]);
    let (mut packet_rates, mut byte_rates) = ([0.0; 2], [0.0; 2]);
    let mut is_sending = false;
    for (flow, transmission) in config.flows.iter().zip(transmissions) {
        let Some(counted) = transmission.as_ref().map(Transmission::counted) else { continue };
        is_sending |= flow.tx == at && counted.is_sending;
        let ways = [
            (flow.tx, counted.sent, counted.sent_rate),
            (flow.rx, counted.received, counted.received_rate),
        ];
        for (way, (port, count, rate)) in ways.into_iter().enumerate() {
            if port == at {
                packets[way] += count;
                bytes[way] += count * u64::from(flow.size);
                packet_rates[way] += rate;
                byte_rates[way] += rate * f64::from(flow.size);
            }
        }
    }
    let mut metric = json!({
        "name": port.name,
        "location": port.location,
        "link": if link.is_up { "up" } else { "down" },
        "capture": "stopped",
        "transmit": transmit(is_sending),
    });
    for (way, name) in ["tx", "rx"].into_iter().enumerate() {
        metric[format!("frames_{name}")] = text(packets[way]);
        metric[format!("bytes_{name}")] = text(bytes[way]);
        metric[format!("frames_{name}_rate")] = packet_rates[way].into();
        metric[format!("bytes_{name}_rate")] = byte_rates[way].into();
    }
    if let Some(speed) = link.speed {
        metric["speed"] = text(speed);
    }
    metric
}

/// Counters of a flow that the model has no fields for.
pub(crate) fn details(name: &str, transmission: Option<&Transmission>) -> Value {
    let Some(transmission) = transmission else { return json!({ "name": name }) };
    let counted = transmission.counted();
    let arrivals = transmission.arrivals();
    let percentiles = |delays: &fwdlab_model::record::Latency| {
        let of = |percent: f64| {
            let delay = delays.quantile_ns(percent / 100.0)?;
            Some(json!({ "percent": percent, "delay_ns": delay }))
        };
        PERCENTILES.into_iter().filter_map(of).collect::<Vec<Value>>()
    };
    json!({
        "name": name,
        "frames_tx": counted.sent,
        "frames_rx": counted.received,
        "frames_missed": transmission.missed(),
        "frames_damaged": arrivals.damaged,
        "faults": arrivals.arrivals.as_ref().map(|found| &found.faults),
        "frames_duplicate": arrivals.arrivals.as_ref().map(|found| found.duplicates),
        "frames_reordered": arrivals.arrivals.as_ref().map(|found| found.reordered),
        "frames_dropped_by_receiver": arrivals.dropped,
        "flows_seen": arrivals.flows,
        "latency_percentiles": arrivals.delays.as_ref().map(percentiles),
    })
}

/// Warnings of a stopped flow.
pub(crate) fn doubts(name: &str, transmission: &Transmission) -> Vec<String> {
    let arrivals = transmission.arrivals();
    let faults = arrivals.arrivals.as_ref().map(|found| &found.faults);
    let faults: Vec<String> = faults
        .into_iter()
        .flatten()
        .map(|(fault, packets)| format!("{packets} x {fault}"))
        .collect();
    let counts = [
        (transmission.missed(), "frames were not sent because the sender was late".to_owned()),
        (arrivals.damaged, format!("frames arrived damaged ({})", faults.join(", "))),
        (arrivals.dropped, "frames were lost by the receiver itself".to_owned()),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, what)| format!("flow `{name}`: {count} {what}")).collect()
}

fn loss(counted: &Counted) -> f64 {
    match counted.sent {
        0 => 0.0,
        sent => 100.0 * sent.saturating_sub(counted.received) as f64 / sent as f64,
    }
}

fn transmit(is_sending: bool) -> &'static str {
    if is_sending { "started" } else { "stopped" }
}

fn text(count: u64) -> Value {
    count.to_string().into()
}
