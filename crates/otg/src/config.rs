//! Configurations: ports and flows.

use crate::LINE_BYTES;
use crate::node::{Faults, Node};
use crate::packet::{Headers, headers};
use fwdlab_packet::{Stream, Template};
use serde_json::Value;

/// Largest frame with FCS in bytes.
const FRAME_MAX: u64 = 1518;
/// Default frame size of the model.
const FRAME: u64 = 64;
/// Default rate of the model in packets per second.
const PPS: f64 = 1000.0;
/// Default gap of the model in bytes.
const GAP: u64 = 12;

/// A configuration that can be carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Config {
    pub(crate) ports: Vec<Port>,
    pub(crate) flows: Vec<Flow>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) name: String,
    /// Name of the interface.
    pub(crate) location: String,
}

/// A flow from one port to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flow {
    pub(crate) name: String,
    /// Index of the sending port.
    pub(crate) tx: usize,
    /// Index of the receiving port.
    pub(crate) rx: usize,
    pub(crate) headers: Headers,
    /// Bytes of a frame with FCS.
    pub(crate) size: u16,
    pub(crate) rate: Rate,
    pub(crate) duration: Duration,
    pub(crate) metrics: Metrics,
}

/// Rate of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    /// Packets per second.
    Packets(f64),
    /// Bits per second of the line.
    LineBits(f64),
    /// Share of the line; 1 is the maximum rate of the sender.
    Share(f64),
}

/// End of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Duration {
    Continuous,
    Packets(u64),
    Seconds(f64),
}

/// Metrics of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    pub(crate) is_enabled: bool,
    pub(crate) loss: bool,
    pub(crate) latency: bool,
}

impl Flow {
    /// The packets.
    pub(crate) fn stream(&self) -> Stream {
        let Headers { family, flows, endpoints, .. } = self.headers;
        Stream { endpoints: Some(endpoints), ..Stream::new(family, self.size, flows) }
    }

    /// Bits of a frame on the line.
    pub(crate) fn line_bits(&self) -> f64 {
        f64::from((u32::from(self.size) + LINE_BYTES) * 8)
    }
}

/// Reads a configuration.
///
/// # Errors
/// Every part that is not supported or not valid, with its path.
pub(crate) fn parse(body: &Value) -> Result<Config, Faults> {
    let mut faults = Faults::new();
    let root = Node::root(body);
    root.only(&["ports", "flows", "options"], &mut faults);
    options(&root, &mut faults);
    let ports: Vec<Option<Port>> =
        root.items("ports", &mut faults).iter().map(|node| port(node, &mut faults)).collect();
    let ports: Vec<Port> = ports.into_iter().flatten().collect();
    let nodes = root.items("flows", &mut faults);
    let flows: Vec<Option<Flow>> =
        nodes.iter().map(|node| flow(node, &ports, &mut faults)).collect();
    let flows: Vec<Flow> = flows.into_iter().flatten().collect();
    let names = ports.iter().map(|port| &port.name).chain(flows.iter().map(|flow| &flow.name));
    let mut names: Vec<&String> = names.collect();
    names.sort();
    for twice in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        faults.push(format!("name: `{}` is used twice", twice[0]));
    }
    if faults.is_empty() { Ok(Config { ports, flows }) } else { Err(faults) }
}

fn options(root: &Node<'_>, faults: &mut Faults) {
    let Some(options) = root.get("options") else { return };
    options.only(&["port_options"], faults);
    if let Some(ports) = options.get("port_options") {
        // Nothing is preempted: interfaces have no owner.
        ports.only(&["location_preemption", "data_integrity"], faults);
        if ports.is_set("data_integrity", faults) {
            ports.fault_at("data_integrity", faults, "is not supported");
        }
    }
}

fn port(node: &Node<'_>, faults: &mut Faults) -> Option<Port> {
    node.only(&["name", "location"], faults);
    let name = node.required("name", faults).and_then(|name| name.text(faults));
    let location = node.required("location", faults).and_then(|name| name.text(faults));
    Some(Port { name: name?.to_owned(), location: location?.to_owned() })
}

fn flow(node: &Node<'_>, ports: &[Port], faults: &mut Faults) -> Option<Flow> {
    node.only(&["name", "tx_rx", "packet", "size", "rate", "duration", "metrics"], faults);
    let name = node.required("name", faults).and_then(|name| name.text(faults));
    let ends = node.required("tx_rx", faults).and_then(|node| ends(&node, ports, faults));
    let headers = headers(node, faults);
    let least = headers.map_or(FRAME, |headers| Template::smallest_frame(headers.family).into());
    let size = match node.get("size") {
        Some(size) => fixed_size(&size, least, faults),
        None if least > FRAME => {
            node.fault_at("size.fixed", faults, format!("is required, at least {least}"));
            None
        }
        None => Some(FRAME),
    };
    let rate = node.get("rate").map_or(Some(Rate::Packets(PPS)), |rate| self::rate(&rate, faults));
    let duration =
        node.get("duration").map_or(Some(Duration::Continuous), |node| duration(&node, faults));
    let metrics = node.get("metrics").map_or(Metrics::default(), |node| metrics(&node, faults));
    let (tx, rx) = ends?;
    Some(Flow {
        name: name?.to_owned(),
        tx,
        rx,
        headers: headers?,
        size: size? as u16,
        rate: rate?,
        duration: duration?,
        metrics,
    })
}

/// Indices of the sending and the receiving port.
fn ends(node: &Node<'_>, ports: &[Port], faults: &mut Faults) -> Option<(usize, usize)> {
    node.only(&["choice", "port"], faults);
    node.choice(&["port"], "port", faults)?;
    let port = node.required("port", faults)?;
    port.only(&["tx_name", "rx_names", "rx_name"], faults);
    let tx = port.required("tx_name", faults).and_then(|name| index(&name, ports, faults));
    let names = port.items("rx_names", faults);
    let rx = match (port.get("rx_name"), names.as_slice()) {
        (Some(name), []) => index(&name, ports, faults),
        (None, [name]) => index(name, ports, faults),
        _ => {
            port.fault_at("rx_names", faults, "exactly one port is supported");
            None
        }
    };
    Some((tx?, rx?))
}

/// Index of a port by its name.
fn index(name: &Node<'_>, ports: &[Port], faults: &mut Faults) -> Option<usize> {
    let text = name.text(faults)?;
    let found = ports.iter().position(|port| port.name == text);
    if found.is_none() {
        name.fault(faults, format!("there is no port `{text}`"));
    }
    found
}

fn fixed_size(node: &Node<'_>, least: u64, faults: &mut Faults) -> Option<u64> {
    node.only(&["choice", "fixed"], faults);
    node.choice(&["fixed"], "fixed", faults)?;
    match node.get("fixed") {
        Some(fixed) => fixed.whole(least, FRAME_MAX, faults),
        None => Some(FRAME.max(least)),
    }
}

fn rate(node: &Node<'_>, faults: &mut Faults) -> Option<Rate> {
    let kinds = ["pps", "bps", "kbps", "mbps", "gbps", "percentage"];
    node.only(&["choice", "pps", "bps", "kbps", "mbps", "gbps", "percentage"], faults);
    let choice = node.choice(&kinds, "pps", faults)?;
    if choice == "percentage" {
        let percent = node.get(choice).map_or(Some(100.0), |node| node.number(faults))?;
        if !(percent > 0.0 && percent <= 100.0) {
            node.fault_at("percentage", faults, "must be above 0 and at most 100");
        }
        return Some(Rate::Share(percent / 100.0));
    }
    // Defaults of the model: 1000 pps, 1 Gbit/s.
    let (least, default, unit) = match choice {
        "pps" => (1, 1000, 1.0),
        "bps" => (672, 1_000_000_000, 1.0),
        "kbps" => (1, 1_000_000, 1e3),
        "mbps" => (1, 1000, 1e6),
        _ => (1, 1, 1e9),
    };
    let number =
        node.get(choice).map_or(Some(default), |node| node.whole(least, 1 << 53, faults))?;
    Some(match choice {
        "pps" => Rate::Packets(number as f64),
        _ => Rate::LineBits(number as f64 * unit),
    })
}

fn duration(node: &Node<'_>, faults: &mut Faults) -> Option<Duration> {
    let kinds = ["continuous", "fixed_packets", "fixed_seconds"];
    node.only(&["choice", "continuous", "fixed_packets", "fixed_seconds"], faults);
    let choice = node.choice(&kinds, "continuous", faults)?;
    let Some(inner) = node.get(choice) else {
        return Some(match choice {
            "continuous" => Duration::Continuous,
            "fixed_packets" => Duration::Packets(1),
            _ => Duration::Seconds(1.0),
        });
    };
    inner.only(&["gap", "delay", "packets", "seconds"], faults);
    if let Some(gap) = inner.get("gap") {
        gap.whole(GAP, GAP, faults);
    }
    if let Some(delay) = inner.get("delay") {
        let kinds = ["bytes", "nanoseconds", "microseconds"];
        delay.only(&["choice", "bytes", "nanoseconds", "microseconds"], faults);
        for part in kinds.iter().filter_map(|kind| delay.get(kind)) {
            if part.number(faults).is_some_and(|delay| delay > 0.0) {
                part.fault(faults, "a delay is not supported");
            }
        }
    }
    match choice {
        "continuous" => Some(Duration::Continuous),
        "fixed_packets" => {
            let packets = inner.get("packets");
            let most = u64::from(u32::MAX);
            packets.map_or(Some(1), |node| node.whole(1, most, faults)).map(Duration::Packets)
        }
        _ => {
            let seconds = inner.get("seconds");
            seconds.map_or(Some(1.0), |node| node.number(faults)).map(Duration::Seconds)
        }
    }
}

fn metrics(node: &Node<'_>, faults: &mut Faults) -> Metrics {
    node.only(&["enable", "loss", "latency", "timestamps"], faults);
    if node.is_set("timestamps", faults) {
        node.fault_at("timestamps", faults, "is not supported");
    }
    let latency = node.get("latency").is_some_and(|latency| {
        latency.only(&["enable", "mode"], faults);
        if let Some(mode) = latency.get("mode")
            && mode.text(faults).is_some_and(|mode| mode != "store_forward")
        {
            mode.fault(faults, "only `store_forward` is supported");
        }
        latency.is_set("enable", faults)
    });
    let is_enabled = node.is_set("enable", faults);
    let loss = node.is_set("loss", faults);
    Metrics { is_enabled, loss, latency }
}
