//! Requests with interfaces that exist only here.

use super::{Answer, Generator, Link, Options, Wires};
use fwdlab_bench::agent::protocol::{ReceiveOrder, SendOrder};
use fwdlab_bench::agent::{serve_receive, serve_send};
use fwdlab_bench::error::BenchError;
use fwdlab_model::record::Checked;
use fwdlab_model::settings::Engine;
use fwdlab_netio::{NetioError, Receiver, Sender};
use fwdlab_packet::Phase;
use fwdlab_packet::arrivals::{Delays, FlowSummary, Received};
use fwdlab_packet::stamp::PHASES;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Interfaces `a` and `b`. A sender sends 1000 packets with each reading; one in four is lost.
#[derive(Clone, Default)]
struct Fake {
    sent: Arc<AtomicU64>,
    orders: Arc<Mutex<Vec<(SendOrder, ReceiveOrder)>>>,
    receive: Arc<Mutex<Option<ReceiveOrder>>>,
}

impl Wires for Fake {
    fn mac(&self, interface: &str) -> Result<[u8; 6], BenchError> {
        match interface {
            "a" => Ok([2, 0, 0, 0, 0, 1]),
            "b" => Ok([2, 0, 0, 0, 0, 2]),
            other => Err(BenchError::Refused(format!("there is no {other}"))),
        }
    }

    fn link(&self, interface: &str) -> Link {
        Link { is_up: interface == "a", speed: (interface == "a").then_some(10_000_000_000) }
    }

    fn senders(&self, order: &SendOrder) -> Result<serve_send::Opened, BenchError> {
        let receive = self.receive.lock().expect("a lock").take().expect("a receiver first");
        self.orders.lock().expect("a lock").push((order.clone(), receive));
        let sender = FakeSender { sent: self.sent.clone(), limit: order.limit };
        Ok((vec![Box::new(sender)], BTreeMap::new()))
    }

    fn receiver(&self, order: &ReceiveOrder) -> Result<serve_receive::Opened, BenchError> {
        *self.receive.lock().expect("a lock") = Some(order.clone());
        self.sent.store(0, Ordering::Relaxed);
        let receiver = Box::new(FakeReceiver(self.sent.clone()));
        Ok((receiver, BTreeMap::new(), Checked::Packets { payload_one_in: 1 }))
    }

    fn cpus(&self) -> Vec<u16> {
        vec![0, 1]
    }
}

struct FakeSender {
    sent: Arc<AtomicU64>,
    limit: Option<u64>,
}

impl FakeSender {
    fn send(&self, packets: u64) -> [u64; PHASES] {
        let sent = self.sent.fetch_add(packets, Ordering::Relaxed) + packets;
        let sent = sent.min(self.limit.unwrap_or(u64::MAX));
        self.sent.store(sent, Ordering::Relaxed);
        [0, sent, 0, 0]
    }
}

impl Sender for FakeSender {
    fn set_phase(&self, _: Phase) {}
    fn sent(&self) -> [u64; PHASES] {
        self.send(1000)
    }
    fn missed(&self) -> u64 {
        3
    }
    fn set_rate(&self, _: f64) {}
    fn start(&self) {}
    fn halt(self: Box<Self>) -> Result<[u64; PHASES], NetioError> {
        Ok(self.send(0))
    }
}

struct FakeReceiver(Arc<AtomicU64>);

impl Receiver for FakeReceiver {
    fn received(&self) -> Received {
        let packets = self.0.load(Ordering::Relaxed) * 3 / 4;
        Received { packets: [0, packets, 0, 0], ..Received::default() }
    }
    fn flows(&self) -> Option<FlowSummary> {
        None
    }
    fn delays(&self) -> Option<Delays> {
        let mut delays = Delays::default();
        (0..100).for_each(|delay| delays.add(1000 + 10 * delay));
        Some(delays)
    }
    fn dropped(&self) -> u64 {
        0
    }
}

fn generator() -> (Generator, Fake) {
    let fake = Fake::default();
    let options = Options { hops: 1, engine: Engine::Auto };
    (Generator::new(Box::new(fake.clone()), options), fake)
}

/// A flow as snappi writes it.
fn flow() -> Value {
    let value = |value: Value| json!({ "choice": "value", "value": value });
    json!({
        "name": "f1",
        "tx_rx": { "choice": "port", "port": { "tx_name": "p1", "rx_names": ["p2"] } },
        "packet": [
            { "choice": "ethernet", "ethernet": { "dst": value(json!("02:00:00:00:00:09")) } },
            { "choice": "ipv4", "ipv4": {
                "src": value(json!("10.1.0.2")),
                "dst": { "choice": "increment",
                         "increment": { "start": "10.2.0.2", "step": "0.0.0.1", "count": 300 } },
            } },
            { "choice": "udp", "udp": { "src_port": value(json!(5000)), "dst_port": value(json!(6000)) } },
        ],
        "size": { "choice": "fixed", "fixed": 128 },
        "rate": { "choice": "pps", "pps": "1000" },
        "duration": { "choice": "fixed_packets", "fixed_packets": { "packets": 5000, "gap": 12 } },
        "metrics": { "enable": true, "loss": true, "latency": { "enable": true, "mode": "store_forward" } },
    })
}

fn config(flows: Value) -> Value {
    json!({
        "ports": [{ "name": "p1", "location": "a" }, { "name": "p2", "location": "b" }],
        "flows": flows,
        "captures": [], "options": { "port_options": { "location_preemption": true } },
    })
}

fn post(generator: &mut Generator, path: &str, body: &Value) -> Answer {
    generator.answer("POST", path, body.to_string().as_bytes())
}

#[track_caller]
fn accepted(generator: &mut Generator, path: &str, body: &Value) -> Value {
    let Answer { status, body } = post(generator, path, body);
    assert_eq!(status, 200, "{body}");
    body
}

/// Errors of a configuration with this flow.
#[track_caller]
fn refused(flow: Value) -> String {
    let Answer { status, body } = post(&mut generator().0, "/config", &config(json!([flow])));
    assert_eq!((status, &body["kind"], &body["code"]), (400, &json!("validation"), &json!(400)));
    let errors = body["errors"].as_array().expect("errors");
    errors.iter().map(|error| error.as_str().expect("a text")).collect::<Vec<_>>().join("\n")
}

/// The flow with the value at a JSON pointer replaced or added.
fn with(pointer: &str, value: Value) -> Value {
    let mut flow = flow();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    match flow.pointer_mut(parent).expect("a parent") {
        Value::Array(values) => values[name.parse::<usize>().expect("a number")] = value,
        parent => parent[name] = value,
    }
    flow
}

fn transmit(state: &str) -> Value {
    let transmit = json!({ "state": state, "flow_names": ["f1"] });
    let traffic = json!({ "choice": "flow_transmit", "flow_transmit": transmit });
    json!({ "choice": "traffic", "traffic": traffic })
}

#[test]
fn flow_is_sent_as_configured_and_counted() {
    let (mut generator, fake) = generator();
    let config = config(json!([flow()]));
    accepted(&mut generator, "/config", &config);
    assert_eq!(generator.answer("GET", "/config", b"").body, config);
    accepted(&mut generator, "/control/state", &transmit("start"));
    let (send, receive) = fake.orders.lock().expect("a lock")[0].clone();
    assert_eq!((send.interface.as_str(), receive.interface.as_str()), ("a", "b"));
    assert_eq!((send.source_mac[5], send.next_hop_mac[5]), (1, 9));
    assert_eq!((send.rate_pps, send.limit, send.timestamps), (Some(1000.0), Some(5000), true));
    let endpoints = send.stream.endpoints();
    assert_eq!(endpoints.destination.to_string(), "10.2.0.2");
    assert_eq!((endpoints.source_port, endpoints.destination_port), (5000, 6000));
    assert_eq!((send.stream.flows.count(), send.stream.frame_size.most()), (300, 128));
    let expected = receive.expected.expect("whole packets");
    assert_eq!((expected.stream, expected.hops), (send.stream, 1));
    assert_eq!((expected.destination_mac[5], receive.run_id), (2, send.run_id));

    let request = json!({ "choice": "flow", "flow": { "flow_names": ["f1"] } });
    let metric = |generator: &mut Generator| {
        accepted(generator, "/monitor/metrics", &request)["flow_metrics"][0].clone()
    };
    let running = metric(&mut generator);
    assert_eq!((&running["transmit"], &running["name"]), (&json!("started"), &json!("f1")));
    while metric(&mut generator)["transmit"] == "started" {
        generator.tick().expect("a sender");
    }
    let ended = metric(&mut generator);
    assert_eq!((&ended["frames_tx"], &ended["frames_rx"]), (&json!("5000"), &json!("3750")));
    assert_eq!((&ended["bytes_tx"], &ended["loss"]), (&json!("640000"), &json!(25.0)));
    let latency = json!({ "minimum_ns": 1000.0, "maximum_ns": 1990.0, "average_ns": 1495.0 });
    assert_eq!(ended["latency"], latency);
    let details = &generator.answer("GET", "/fwdlab/flows", b"").body[0];
    assert_eq!((&details["frames_missed"], &details["frames_rx"]), (&json!(3), &json!(3750)));
    let median = details["latency_percentiles"][0]["delay_ns"].as_f64().expect("a median");
    assert!((1480.0..1510.0).contains(&median), "{details}");

    let stopped = accepted(&mut generator, "/control/state", &transmit("stop"));
    let late = "flow `f1`: 3 frames were not sent because the sender was late";
    assert_eq!(stopped["warnings"], json!([late]));
    let ports = json!({ "choice": "port", "port": { "column_names": ["frames_tx", "link"] } });
    let ports = accepted(&mut generator, "/monitor/metrics", &ports);
    let expected = json!([
        { "name": "p1", "frames_tx": "5000", "link": "up" },
        { "name": "p2", "frames_tx": "0", "link": "down" },
    ]);
    assert_eq!(ports["port_metrics"], expected);
    // The next start counts from 0.
    accepted(&mut generator, "/control/state", &transmit("start"));
    assert_ne!(metric(&mut generator)["frames_tx"], "5000");
}

#[test]
fn rates_are_of_the_line() {
    let pps = |rate: Value| {
        let (mut generator, fake) = generator();
        let flow = with("/rate", rate);
        accepted(&mut generator, "/config", &config(json!([flow])));
        accepted(&mut generator, "/control/state", &transmit("start"));
        let orders = fake.orders.lock().expect("a lock");
        orders[0].0.rate_pps
    };
    // 128 bytes and 20 of the line are 1184 bits.
    assert_eq!(pps(json!({ "choice": "bps", "bps": 1_184_000 })), Some(1000.0));
    assert_eq!(pps(json!({ "choice": "kbps", "kbps": "1184" })), Some(1000.0));
    assert_eq!(pps(json!({ "choice": "gbps", "gbps": 1 })), Some(1e9 / 1184.0));
    // Half of 10 Gbit/s.
    let half = pps(json!({ "choice": "percentage", "percentage": 50.0 }));
    assert_eq!(half, Some(5e9 / 1184.0));
    assert_eq!(pps(json!({ "choice": "percentage", "percentage": 100 })), None);
}

#[test]
fn defaults_are_of_the_model() {
    let (mut generator, fake) = generator();
    let mut flow = flow();
    for name in ["size", "rate", "duration", "metrics"] {
        flow.as_object_mut().expect("an object").remove(name);
    }
    accepted(&mut generator, "/config", &config(json!([flow])));
    accepted(&mut generator, "/control/state", &transmit("start"));
    let (send, _) = fake.orders.lock().expect("a lock")[0].clone();
    let size = send.stream.frame_size.most();
    assert_eq!((size, send.rate_pps, send.limit), (64, Some(1000.0), None));
    assert!(!send.timestamps);
    // Metrics are off.
    let metrics = accepted(&mut generator, "/monitor/metrics", &json!({ "choice": "flow" }));
    assert_eq!(metrics["flow_metrics"], json!([]));
}

#[test]
fn flows_to_one_port_share_it() {
    let (mut generator, fake) = generator();
    let second = with("/name", json!("f2"));
    accepted(&mut generator, "/config", &config(json!([flow(), second])));
    let all = json!({ "choice": "flow_transmit", "flow_transmit": { "state": "start" } });
    let all = json!({ "choice": "traffic", "traffic": all });
    accepted(&mut generator, "/control/state", &all);
    let orders = fake.orders.lock().expect("a lock").clone();
    let engines: Vec<Engine> = orders.iter().map(|(_, receive)| receive.engine).collect();
    assert_eq!(engines, [Engine::Packet, Engine::Packet]);
    assert_ne!(orders[0].0.run_id, orders[1].0.run_id);
    assert_eq!((&orders[0].0.cpus[..], &orders[1].0.cpus[..]), (&[1][..], &[0][..]));
}

#[test]
fn unsupported_parts_are_refused_by_their_path() {
    for (pointer, value, expected) in [
        ("/size", json!({ "choice": "random" }), "flows[0].size.choice: `random` is not supported"),
        ("/size/fixed", json!(63), "flows[0].size.fixed: is no whole number from 64 to 1518"),
        ("/egress_packet", json!([{}]), "flows[0].egress_packet: is not supported"),
        ("/payload", json!({ "choice": "fixed" }), "flows[0].payload: is not supported"),
        ("/rate/pps", json!(0), "flows[0].rate.pps: is no whole number from 1"),
        ("/duration", json!({ "choice": "burst" }), "flows[0].duration.choice: `burst`"),
        (
            "/duration/fixed_packets/gap",
            json!(20),
            "flows[0].duration.fixed_packets.gap: is no whole number from 12 to 12",
        ),
        ("/metrics/timestamps", json!(true), "flows[0].metrics.timestamps: is not supported"),
        (
            "/metrics/latency/mode",
            json!("cut_through"),
            "flows[0].metrics.latency.mode: only `store_forward`",
        ),
        ("/tx_rx/choice", json!("device"), "flows[0].tx_rx.choice: `device` is not supported"),
        ("/tx_rx/port/tx_name", json!("p9"), "flows[0].tx_rx.port.tx_name: there is no port `p9`"),
        ("/tx_rx/port/rx_names", json!(["p1", "p2"]), "rx_names: exactly one port"),
        (
            "/packet/1/ipv4/priority",
            json!({ "choice": "dscp" }),
            "flows[0].packet[1].ipv4.priority: is not supported",
        ),
        (
            "/packet/1/ipv4/src",
            json!({ "choice": "random" }),
            "flows[0].packet[1].ipv4.src.choice: `random` is not supported; supported: value",
        ),
        (
            "/packet/1/ipv4/dst/increment/step",
            json!("0.0.1.0"),
            "flows[0].packet[1].ipv4.dst.increment.step: is not supported, only 0.0.0.1",
        ),
        (
            "/packet/1/ipv4/dst/increment/start",
            json!("255.255.255.0"),
            "flows[0].packet[1].ipv4: the addresses go beyond the last one",
        ),
        (
            "/packet/1/ipv4/src",
            json!({ "choice": "increment", "increment": { "start": "10.0.0.1", "count": 4 } }),
            "flows[0].packet[1].ipv4: src and dst may both count up only if",
        ),
        ("/packet/1/ipv4/dst", json!(null), "flows[0].packet[1].ipv4.dst: is required"),
        (
            "/packet/2/udp/checksum",
            json!({ "choice": "generated", "generated": "bad" }),
            "flows[0].packet[2].udp.checksum.generated: only `good` is supported",
        ),
        (
            "/packet/2",
            json!({ "choice": "tcp", "tcp": {} }),
            "flows[0].packet[2].choice: `tcp` is not supported; supported: udp",
        ),
        (
            "/packet/0/ethernet/dst",
            json!({ "choice": "auto" }),
            "flows[0].packet[0].ethernet.dst.choice: `auto` is not supported",
        ),
        ("/packet/0/ethernet/dst", json!(null), "flows[0].packet[0].ethernet.dst: is required"),
        ("/packet", json!([]), "flows[0].packet: needs three headers"),
        ("/name", json!("p1"), "name: `p1` is used twice"),
    ] {
        let errors = refused(with(pointer, value));
        assert!(errors.contains(expected), "{pointer}: no {expected:?} in\n{errors}");
    }
    // All at the same time.
    let mut flow = with("/size/fixed", json!(1));
    flow["rate"] = json!({ "choice": "pps", "pps": 0 });
    assert_eq!(refused(flow).lines().count(), 2);
}

#[test]
fn unsupported_requests_are_refused_by_their_path() {
    let (mut generator, _) = generator();
    let mut errors = |method: &str, path: &str, body: Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = generator.answer(method, path, body.as_bytes());
        (answer.status, answer.body["errors"][0].as_str().unwrap_or_default().to_owned())
    };
    for (method, path, body, status, expected) in [
        ("POST", "/config", json!({ "devices": [{}, {}] }), 400, "devices: is not supported"),
        ("POST", "/config", json!({ "lags": [1] }), 400, "lags: is not supported"),
        (
            "POST",
            "/config",
            json!({ "ports": [{ "name": "p", "location": "c" }] }),
            400,
            "ports[0].location: there is no c",
        ),
        ("POST", "/config", json!([1]), 400, "the body: is no object"),
        ("POST", "/config", Value::Null, 400, "the body: is no JSON"),
        ("PATCH", "/config", json!({}), 400, "PATCH /config is not supported"),
        ("POST", "/monitor/states", json!({}), 400, "POST /monitor/states is not supported"),
        (
            "POST",
            "/control/state",
            json!({ "choice": "protocol" }),
            400,
            "choice: `protocol` is not supported",
        ),
        ("POST", "/control/state", transmit("pause"), 400, "traffic.flow_transmit.state: `pause`"),
        (
            "POST",
            "/control/state",
            transmit("start"),
            400,
            "traffic.flow_transmit.flow_names[0]: there is no `f1` in the configuration",
        ),
        ("POST", "/monitor/metrics", json!({ "choice": "bgpv4" }), 400, "choice: `bgpv4`"),
        (
            "POST",
            "/monitor/metrics",
            json!({ "choice": "flow", "flow": { "tagged_metrics": { "include": true } } }),
            400,
            "flow.tagged_metrics: is not supported",
        ),
        ("GET", "/", Value::Null, 404, "there is no GET /"),
    ] {
        let (found, error) = errors(method, path, body);
        assert_eq!(found, status, "{method} {path}: {error}");
        assert!(error.contains(expected), "{method} {path}: no {expected:?} in {error}");
    }
    let answer = generator.answer("GET", "/capabilities/version", b"");
    assert!(answer.body["app_version"].as_str().expect("a version").starts_with("fwdlab "));
}

#[test]
fn refused_configuration_changes_nothing() {
    let (mut generator, _) = generator();
    let good = config(json!([flow()]));
    accepted(&mut generator, "/config", &good);
    accepted(&mut generator, "/control/state", &transmit("start"));
    assert_eq!(post(&mut generator, "/config", &json!({ "lags": [1] })).status, 400);
    assert_eq!(generator.answer("GET", "/config", b"").body, good);
    let metrics = accepted(&mut generator, "/monitor/metrics", &json!({ "choice": "flow" }));
    assert_eq!(metrics["flow_metrics"][0]["transmit"], "started");
}
