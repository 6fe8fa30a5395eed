//! Open Traffic Generator: a test server that implements the necessary part of HTTP.

use crate::bench::{ends, load, trial};
use crate::searches;
use fwdlab_bench::BenchError;
use fwdlab_bench::generator::{Generator, GeneratorHosts, Otg};
use fwdlab_bench::host::{Host, LocalHost};
use fwdlab_packet::Family;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use std::time::{Duration, Instant};

#[derive(Default)]
struct State {
    /// Share of the requested packets that it sends.
    share: f64,
    /// Forwarding capacity of the device behind its ports, frames per second; 0 means unlimited.
    capacity: f64,
    /// Frames of an earlier start that its receiver counts.
    stale: u64,
    /// True if 64-bit numbers are JSON numbers, not text.
    numbers: bool,
    /// True to answer every state request with an error.
    is_broken: bool,
    requests: Vec<(String, Value)>,
    rate: f64,
    started: Option<Instant>,
    sent: f64,
}

impl State {
    fn sent(&self) -> u64 {
        let running = self.started.map_or(0.0, |started| started.elapsed().as_secs_f64());
        (self.sent + running * self.rate * self.share) as u64
    }

    fn number(&self, number: u64) -> Value {
        if self.numbers { json!(number) } else { json!(number.to_string()) }
    }

    fn answer(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let sent = self.number(self.sent());
        let passed = match self.capacity {
            0.0 => 1.0,
            capacity => (capacity / (self.rate * self.share)).min(1.0),
        };
        let received = self.number((self.sent() as f64 * passed) as u64 + self.stale);
        let answer = match path {
            "/capabilities/version" => json!({ "api_spec_version": "1.61.0" }),
            "/config" if body["flows"][0]["size"]["fixed"] == 0 => json!(null),
            "/config" => {
                let rate = &body["flows"][0]["rate"];
                let pps = rate["pps"].as_str().and_then(|pps| pps.parse().ok());
                self.rate = pps.unwrap_or(10_000.0);
                json!({ "warnings": ["locations are not checked"] })
            }
            "/control/state" if self.is_broken => {
                let errors = ["port sender: link is down"];
                return (500, json!({ "code": 13, "kind": "internal", "errors": errors }));
            }
            "/control/state" => {
                match body["traffic"]["flow_transmit"]["state"].as_str() {
                    Some("start") => {
                        self.started = Some(Instant::now());
                        self.sent = 0.0;
                    }
                    Some("stop") => {
                        self.sent = self.sent() as f64;
                        self.started = None;
                    }
                    _ => return (400, json!({ "kind": "validation", "errors": [] })),
                }
                json!({ "warnings": [] })
            }
            "/monitor/metrics" if body["choice"] == "flow" => json!({
                "choice": "flow_metrics",
                "flow_metrics": [{
                    "name": "fwdlab", "port_tx": "sender", "loss": 0.0,
                    "transmit": if self.started.is_some() { "started" } else { "stopped" },
                    "frames_tx": sent, "frames_rx": received,
                }],
            }),
            "/monitor/metrics" => json!({
                "choice": "port_metrics",
                "port_metrics": [
                    { "name": "sender", "frames_tx": sent, "frames_rx": "0" },
                    { "name": "receiver", "frames_tx": "0", "frames_rx": received },
                ],
            }),
            _ => return (501, json!({ "code": 12, "kind": "validation", "errors": ["unknown"] })),
        };
        (200, answer)
    }
}

struct Server {
    state: Arc<Mutex<State>>,
    url: String,
}

impl Server {
    fn start(state: State) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(state));
        let server_state = state.clone();
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = server_state.clone();
                spawn(move || serve(stream, &state));
            }
        });
        Server { state, url }
    }

    /// Starts a server like [`Server::start`]; `None`, with a skip message, if curl is missing.
    fn start_if_curl(state: State) -> Option<Server> {
        if LocalHost.run(&["curl", "--version"], "").is_ok() {
            return Some(Server::start(state));
        }
        fwdlab_testdata::skip("curl is not installed");
        None
    }

    fn ends(&self) -> GeneratorHosts<'static> {
        let mut ends = ends(&LocalHost, &LocalHost);
        ends.server = Some(self.url.clone());
        (ends.sender_interface, ends.receiver_interface) = ("host:5555".into(), "eth2".into());
        ends
    }

    fn body(&self, path: &str) -> Value {
        let state = self.state.lock().expect("state");
        let request = state.requests.iter().find(|(requested, _)| requested == path);
        request.map(|(_, body)| body.clone()).unwrap_or_default()
    }

    fn states(&self) -> Vec<String> {
        let state = self.state.lock().expect("state");
        let states = state.requests.iter().filter(|(path, _)| path == "/control/state");
        let word =
            |body: &Value| body["traffic"]["flow_transmit"]["state"].as_str().map(str::to_owned);
        states.filter_map(|(_, body)| word(body)).collect()
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let header = header.trim().to_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (status, answer) = {
            let mut state = state.lock().expect("state");
            state.requests.push((path.clone(), body.clone()));
            state.answer(&path, &body)
        };
        let text = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        stream.write_all((head + &text).as_bytes()).ok()?;
    }
}

#[test]
fn trial_pushes_a_flow_and_reads_its_metrics() {
    for numbers in [false, true] {
        let Some(server) = Server::start_if_curl(State { share: 1.0, numbers, ..State::default() })
        else {
            return;
        };
        let load = load(Family::Inet, 3, 4, Some(20_000.0));
        let generator = Box::new(Otg::new(server.ends()).expect("a server"));
        let window = Duration::from_millis(500);
        let (observed, outcome) = trial(generator, &load, window).expect("a trial");
        let counted = outcome.counted;
        assert!(counted.sent >= 15_000 && counted.unsent == 0, "{outcome:?}");
        assert_eq!(counted.received, counted.sent);
        assert_eq!((observed.total.offered, observed.total.lost()), (counted.sent, 0));
        assert_eq!(observed.window.lost(), 0);
        assert_eq!(outcome.remarks, ["the server warns: locations are not checked"]);
        let names: Vec<&str> = outcome.counters.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["otg sender frames_tx", "otg receiver frames_rx"]);
        assert!(outcome.counters.iter().all(|c| c.expected == Some(counted.sent)));
        assert!(outcome.facts["otg flows"].starts_with("12 of 12"), "{:?}", outcome.facts);
        assert_eq!(server.states(), ["start", "stop"]);

        let config = server.body("/config");
        assert_eq!(config["ports"][0], json!({ "name": "sender", "location": "host:5555" }));
        let flow = &config["flows"][0];
        assert_eq!(flow["size"], json!({ "choice": "fixed", "fixed": 84 }), "with FCS");
        assert_eq!(flow["rate"], json!({ "choice": "pps", "pps": "20000" }));
        assert_eq!(flow["duration"]["fixed_seconds"]["seconds"], 20.0);
        let increment = json!({ "start": "198.19.1.0", "step": "0.0.0.1", "count": 4 });
        assert_eq!(flow["packet"][1]["ipv4"]["dst"]["increment"], increment);
        assert_eq!(flow["packet"][2]["udp"]["dst_port"]["value"], 7);
    }
}

#[test]
fn shortfalls_and_stale_frames_cause_remarks() {
    let Some(server) =
        Server::start_if_curl(State { share: 0.5, stale: 1_000_000, ..State::default() })
    else {
        return;
    };
    let load = load(Family::Inet6, 2, 4, Some(20_000.0));
    let generator = Box::new(Otg::new(server.ends()).expect("a server"));
    let window = Duration::from_millis(700);
    let (observed, outcome) = trial(generator, &load, window).expect("a trial");
    let has_remark = |words: &str| outcome.remarks.iter().any(|remark| remark.contains(words));
    assert!(has_remark("frames of an earlier start"), "{:?}", outcome.remarks);
    assert!(has_remark("were to be sent were not") && outcome.counted.unsent > 1000, "{outcome:?}");
    assert!(has_remark("the server may send only 4 of 8"), "{:?}", outcome.remarks);
    assert!(!observed.warnings.is_empty(), "more arrived than was sent");
    let packet = &server.body("/config")["flows"][0]["packet"];
    assert_eq!(packet[1]["ipv6"]["src"]["increment"]["step"], "::1");
}

#[test]
fn stalled_counters_cause_a_remark() {
    let Some(server) = Server::start_if_curl(State::default()) else { return };
    let load = load(Family::Inet, 1, 1, None);
    let generator = Box::new(Otg::new(server.ends()).expect("a server"));
    let (_, outcome) = trial(generator, &load, Duration::from_millis(3300)).expect("a trial");
    assert!(outcome.remarks.iter().any(|r| r.contains("counter did not move")), "{outcome:?}");
    assert_eq!(server.body("/config")["flows"][0]["rate"]["percentage"], 100.0);
}

#[test]
fn server_errors_are_reported_and_traffic_stops() {
    let Some(server) = Server::start_if_curl(State { is_broken: true, ..State::default() }) else {
        return;
    };
    let load = load(Family::Inet, 1, 1, None);
    let generator = Box::new(Otg::new(server.ends()).expect("a server"));
    let error = trial(generator, &load, Duration::from_millis(100)).expect_err("broken");
    let text = error.to_string();
    assert!(text.contains("internal: port sender: link is down"), "{text}");
    assert_eq!(server.states(), ["start", "stop"], "on the way out");

    let mut unreachable = server.ends();
    unreachable.server = Some("http://127.0.0.1:1".into());
    let mut generator = Otg::new(unreachable).expect("an address");
    assert!(matches!(generator.prepare(&load), Err(BenchError::Program { .. })));
    let error = Otg::new(ends(&LocalHost, &LocalHost)).err().expect("no server").to_string();
    assert!(error.contains("name its URL"), "{error}");
}

#[test]
fn search_finds_the_capacity() {
    let capacity = searches::CAPACITY;
    let state = State { share: 1.0, capacity, numbers: true, ..State::default() };
    let Some(server) = Server::start_if_curl(state) else { return };
    searches::finds_the_capacity(&|| Box::new(Otg::new(server.ends()).expect("a server")));
    let states = server.states();
    assert!(states.len() >= 8 && states.chunks(2).all(|pair| pair == ["start", "stop"]));
}

#[test]
fn search_with_a_slow_sender_finds_nothing() {
    let Some(server) = Server::start_if_curl(State { share: 0.5, ..State::default() }) else {
        return;
    };
    let generator = || Box::new(Otg::new(server.ends()).expect("a server")) as Box<dyn Generator>;
    searches::finds_nothing_by_a_sender_that_falls_short(&generator);
    searches::tells_no_delays("otg", generator());
}
