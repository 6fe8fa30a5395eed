//! TRex: a test server that implements ZMTP and responds like TRex.

use crate::bench::{ends, load, trial};
use crate::searches;
use fwdlab_bench::BenchError;
use fwdlab_bench::generator::{Generator, GeneratorHosts, Trex};
use fwdlab_bench::host::LocalHost;
use fwdlab_packet::Family;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// Counters of earlier runs: the server never resets its counters.
const EARLIER: u64 = 1_000_000_000_000;

#[derive(Default)]
struct State {
    /// Share of the requested packets that it sends.
    share: f64,
    /// Forwarding capacity of the device behind its ports, packets per second, without drops at the
    /// receiver; 0 means unlimited, and the receiver drops a tenth.
    capacity: f64,
    /// True if another user owns the port.
    is_taken: bool,
    /// Method whose requests it accepts but never answers.
    mute: Option<&'static str>,
    calls: Vec<(String, Value)>,
    rate: f64,
    started: Option<Instant>,
    sent: f64,
    tickets: u32,
}

impl State {
    fn sent(&self) -> u64 {
        let running = self.started.map_or(0.0, |started| started.elapsed().as_secs_f64());
        (self.sent + running * self.rate * self.share) as u64
    }

    /// Packets received and dropped by the receiver.
    fn arrived(&self) -> (u64, u64) {
        let sent = self.sent();
        match self.capacity {
            0.0 => (sent - sent / 10, sent / 10),
            capacity => ((sent as f64 * (capacity / (self.rate * self.share)).min(1.0)) as u64, 0),
        }
    }

    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let port = params["port_id"].as_u64();
        Ok(match method {
            "api_sync_v2" => json!({ "api_h": "a1" }),
            _ if params["api_h"] != "a1" => return Err(json!({ "code": -32000 })),
            "get_version" => json!({ "version": "v3.06" }),
            "get_system_info" => json!({ "core_type": "Xeon", "ports": [
                { "index": 0, "hw_mac": "02:00:00:00:00:99", "pci_addr": "0000:05:00.0" },
                { "index": 1, "hw_mac": "02:00:00:00:00:01", "pci_addr": "0000:05:00.1" },
            ]}),
            "acquire" if self.is_taken && params["force"] != true => {
                let why = "port is already owned by 'somebody'";
                return Err(json!({ "code": -32000, "message": "failed", "specific_err": why }));
            }
            "acquire" => json!("h4nd1e"),
            "get_port_stats" if port == Some(1) => {
                // Large numbers may be floating-point numbers.
                json!({ "opackets": (EARLIER + self.sent()) as f64, "oerrors": 0, "ipackets": 3 })
            }
            "get_port_stats" => {
                let (received, dropped) = self.arrived();
                json!({ "ipackets": EARLIER + received, "ierrors": dropped })
            }
            "get_global_stats" => json!({ "m_total_queue_full": 7 }),
            "get_port_status" => {
                json!({ "state": if self.started.is_some() { "TX" } else { "STREAMS" } })
            }
            _ if params["handler"] != "h4nd1e" => {
                return Err(json!({ "code": -32000, "message": "no handler" }));
            }
            "add_stream" => {
                self.rate = params["stream"]["mode"]["rate"]["value"].as_f64().unwrap_or(0.0);
                json!({})
            }
            "start_traffic" => {
                self.started = Some(Instant::now());
                json!({ "multiplier": 1.0 })
            }
            // The first two queries find it unfinished, the third done.
            "stop_traffic" => {
                self.tickets = 2;
                let why = "ticket number is: 42";
                return Err(json!({ "code": -32002, "message": "wip", "specific_err": why }));
            }
            "remove_all_streams" | "release" => json!({}),
            _ => return Err(json!({ "code": -32601, "message": "unknown method" })),
        })
    }

    fn ticket(&mut self) -> Result<Value, Value> {
        self.tickets -= 1;
        match self.tickets {
            0 => {
                self.sent = self.sent() as f64;
                self.started = None;
                Ok(json!({}))
            }
            1 => Err(json!({ "code": -32002, "message": "wip" })),
            _ => Err(json!({ "code": -32001, "message": "try again" })),
        }
    }
}

struct Server {
    state: Arc<Mutex<State>>,
    address: String,
}

impl Server {
    fn start(state: State) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(Mutex::new(state));
        let server_state = state.clone();
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = server_state.clone();
                spawn(move || serve(stream, &state));
            }
        });
        Server { state, address }
    }

    fn ends(&self) -> GeneratorHosts<'static> {
        let mut ends = ends(&LocalHost, &LocalHost);
        ends.server = Some(self.address.clone());
        ends.receiver_interface = "0000:05:00.0".into();
        ends
    }

    fn methods(&self) -> Vec<String> {
        let state = self.state.lock().expect("state");
        state.calls.iter().map(|(method, _)| method.clone()).collect()
    }

    fn params(&self, method: &str) -> Value {
        let state = self.state.lock().expect("state");
        let call = state.calls.iter().find(|(called, _)| called == method);
        call.map(|(_, params)| params.clone()).unwrap_or_default()
    }
}

/// Runs the server's side of ZMTP 3.1 (a peer answers a newer greeting with its own version).
fn serve(mut stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10], greeting[11]) = (0xff, 0x7f, 3, 1);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting).ok()?;
    stream.read_exact(&mut greeting).ok()?;
    assert_eq!(greeting[10..17], *b"\x03\x00NULL\0");
    let (flags, ready) = frame(&mut stream)?;
    assert_eq!((flags, &ready[..25]), (4, &b"\x05READY\x0bSocket-Type\0\0\0\x03REQ"[..25]));
    stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REP").ok()?;
    loop {
        assert_eq!(frame(&mut stream)?, (1, Vec::new()), "the empty delimiter");
        let (flags, body) = frame(&mut stream)?;
        assert_eq!(flags & !2, 0, "one frame");
        let request: Value = serde_json::from_slice(&body).expect("JSON");
        let method = request["method"].as_str().expect("a method").to_owned();
        let result = {
            let mut state = state.lock().expect("state");
            state.calls.push((method.clone(), request["params"].clone()));
            if state.mute == Some(method.as_str()) {
                continue;
            }
            match method.as_str() {
                "get_async_results" => {
                    assert_eq!(request["params"]["ticket_id"], 42);
                    state.ticket()
                }
                _ => state.answer(&method, &request["params"]),
            }
        };
        let answer = match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }),
        };
        let mut body = answer.to_string().into_bytes();
        if method == "get_system_info" {
            body = compress(&body);
        }
        let mut message = vec![1, 0, 2];
        message.extend((body.len() as u64).to_be_bytes());
        message.extend(body);
        stream.write_all(&message).ok()?;
    }
}

fn frame(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut flags = [0];
    stream.read_exact(&mut flags).ok()?;
    let mut length = [0; 8];
    let at = if flags[0] & 2 == 0 { 7 } else { 0 };
    stream.read_exact(&mut length[at..]).ok()?;
    let mut body = vec![0; u64::from_be_bytes(length) as usize];
    stream.read_exact(&mut body).ok()?;
    Some((flags[0], body))
}

/// Encodes zlib data of stored blocks (RFC 1950, 1951), preceded by TRex's magic.
fn compress(text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xab, 0xe8, 0x5c, 0xea];
    bytes.extend((text.len() as u32).to_be_bytes());
    bytes.extend([0x78, 0x01, 1]);
    let length = text.len() as u16;
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    bytes.extend(text);
    let (mut a, mut b) = (1u32, 0u32);
    for byte in text {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    bytes.extend((b << 16 | a).to_be_bytes());
    bytes
}

fn good() -> State {
    State { share: 1.0, ..State::default() }
}

#[test]
fn trial_acquires_and_releases_a_port() {
    let server = Server::start(good());
    let load = load(Family::Inet, 20, 100, Some(50_000.0));
    let generator = Box::new(Trex::new(server.ends()).expect("a server"));
    let window = Duration::from_millis(600);
    let (observed, outcome) = trial(generator, &load, window).expect("a trial");
    let counted = outcome.counted;
    assert!((30_000..1_000_000).contains(&counted.sent), "{counted:?}");
    assert_eq!(counted.received, counted.sent - counted.sent / 10);
    assert_eq!((counted.receiver_dropped, counted.unsent), (counted.sent / 10, 0));
    assert_eq!(observed.total.offered, counted.sent);
    assert!((observed.window.offered as f64 / observed.window_ns as f64 * 1e9 - 5e4).abs() < 2.5e4);
    assert_eq!(outcome.facts["trex version"], "v3.06");
    assert_eq!(outcome.facts["trex ports"], "1 sends, 0 receives");
    assert!(outcome.facts["trex flows"].contains("the other is drawn"), "{:?}", outcome.facts);
    assert!(outcome.remarks.is_empty(), "{:?}", outcome.remarks);

    let methods = server.methods();
    let position = |name: &str| methods.iter().position(|m| m == name).expect(name);
    let calls = [
        "api_sync_v2",
        "get_system_info",
        "acquire",
        "remove_all_streams",
        "add_stream",
        "get_port_stats",
        "start_traffic",
        "stop_traffic",
        "get_async_results",
        "release",
    ];
    assert!(calls.windows(2).all(|pair| position(pair[0]) < position(pair[1])), "{methods:?}");
    assert_eq!(methods.last().map(String::as_str), Some("release"));
    let stream = &server.params("add_stream")["stream"];
    assert_eq!(stream["flags"], 3, "the packet's own MACs");
    assert_eq!(stream["mode"]["type"], "continuous");
    // 80 bytes: no FCS.
    assert_eq!(stream["packet"]["binary"].as_str().map(str::len), Some(108));
    assert_eq!(stream["vm"]["instructions"].as_array().map(Vec::len), Some(5));
    let start = server.params("start_traffic");
    assert_eq!((&start["duration"], &start["mul"]["type"]), (&json!(20.0), &json!("raw")));
    assert_eq!(server.params("get_async_results")["api_h"], "a1");
}

#[test]
fn shortfall_with_ipv6_causes_a_remark() {
    let server = Server::start(State { share: 0.5, ..State::default() });
    let load = load(Family::Inet6, 1, 4, Some(50_000.0));
    let generator = Box::new(Trex::new(server.ends()).expect("a server"));
    let window = Duration::from_millis(800);
    let (_, outcome) = trial(generator, &load, window).expect("a trial");
    assert!(outcome.counted.unsent > 10_000, "{outcome:?}");
    assert!(outcome.remarks[0].contains("were to be sent were not"), "{:?}", outcome.remarks);
}

#[test]
fn stalled_counters_cause_a_remark() {
    let server = Server::start(State::default());
    let load = load(Family::Inet, 1, 1, Some(50_000.0));
    let generator = Box::new(Trex::new(server.ends()).expect("a server"));
    let (_, outcome) = trial(generator, &load, Duration::from_millis(2500)).expect("a trial");
    let remarks = &outcome.remarks;
    assert!(remarks.iter().any(|r| r.contains("counter did not move")), "{remarks:?}");
}

fn prepare(ends: GeneratorHosts<'_>) -> Result<(), BenchError> {
    let mut generator = Trex::new(ends)?.timeout(Duration::from_secs(3));
    generator.prepare(&load(Family::Inet, 1, 1, None))
}

#[test]
fn foreign_port_is_acquired_by_force_only() {
    let server = Server::start(State { is_taken: true, ..good() });
    let error = prepare(server.ends()).expect_err("taken").to_string();
    assert!(error.contains("already owned by 'somebody'"), "{error}");
    let mut ends = server.ends();
    ends.options = vec!["force".into()];
    prepare(ends).expect("taken by force");
    assert_eq!(server.methods().last().map(String::as_str), Some("release"), "on the way out");
    let mut ends = server.ends();
    ends.receiver_interface = "ix9".into();
    let error = prepare(ends).expect_err("no such port").to_string();
    assert!(error.contains("no port ix9; it has 0 (02:00:00:00:00:99), 1 ("), "{error}");
}

#[test]
fn unresponsive_server_is_reported_and_the_port_released() {
    let server = Server::start(State { mute: Some("add_stream"), ..good() });
    let error = prepare(server.ends()).expect_err("mute").to_string();
    assert!(error.contains("add_stream") && error.contains("no answer in time"), "{error}");
    let methods = server.methods();
    assert!(methods.ends_with(&["remove_all_streams".into(), "release".into()]), "{methods:?}");
    let mut unreachable = server.ends();
    unreachable.server = Some("127.0.0.1:1".into());
    let error = prepare(unreachable).expect_err("nobody");
    assert!(matches!(error, BenchError::Environment { .. }), "{error}");
    let error = Trex::new(ends(&LocalHost, &LocalHost)).err().expect("no server").to_string();
    assert!(error.contains("host:port"), "{error}");
}

#[test]
fn death_in_the_window_is_reported() {
    let server = Server::start(State { mute: Some("get_port_status"), ..good() });
    let load = load(Family::Inet, 1, 1, Some(1000.0));
    let generator = Trex::new(server.ends()).expect("a server").timeout(Duration::from_secs(3));
    let error = trial(Box::new(generator), &load, Duration::from_millis(200));
    let error = error.expect_err("mute").to_string();
    assert!(error.contains("get_port_status"), "{error}");
    assert_eq!(server.methods().last().map(String::as_str), Some("release"));
}

/// Starts a server whose device has the capacity [`searches::CAPACITY`].
fn server_with_device(share: f64) -> Server {
    Server::start(State { share, capacity: searches::CAPACITY, ..State::default() })
}

#[test]
fn search_finds_the_capacity() {
    let server = server_with_device(1.0);
    searches::finds_the_capacity(&|| Box::new(Trex::new(server.ends()).expect("a server")));
    let methods = server.methods();
    let count = |name: &str| methods.iter().filter(|method| *method == name).count();
    assert!(count("start_traffic") >= 4 && count("start_traffic") == count("release"));
}

#[test]
fn search_with_a_slow_sender_finds_nothing() {
    // The device forwards more than the server can send in any trial.
    let server = Server::start(State { share: 0.5, capacity: 1e9, ..State::default() });
    let generator = || Box::new(Trex::new(server.ends()).expect("a server")) as Box<dyn Generator>;
    searches::finds_nothing_by_a_sender_that_falls_short(&generator);
    searches::tells_no_delays("trex", generator());
}
