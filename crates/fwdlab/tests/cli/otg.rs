//! `fwdlab otg`: flows through a kernel that forwards between two interfaces of one namespace.

use crate::support::is_root;
use fwdlab_bench::host::{Host, LocalHost};
use fwdlab_netio::NetNs;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fwdlab");
/// Section of the document with the script.
const DOCUMENT: &str = include_str!("../../../../docs/GENERATORS.md");
/// Frames of each flow.
const FRAMES: u64 = 500;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A tester with the interfaces `a` and `b`, a router between them, and the server in the tester's
/// namespace.
struct Tester {
    tester: String,
    router: String,
    server: Child,
    /// Address, port and prefix of the server.
    at: String,
}

impl Drop for Tester {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        for name in [&self.tester, &self.router] {
            let _ = LocalHost.run(&["ip", "netns", "del", name], "");
        }
    }
}

/// Creates the namespaces and their links.
fn wire(tester: &str, router: &str) -> Result<(), fwdlab_bench::BenchError> {
    LocalHost.run(
        &["ip", "-batch", "-"],
        &format!(
            "netns add {tester}\nnetns add {router}\n\
             link add name a address 02:00:00:00:00:0a netns {tester} type veth \
             peer name ra address 02:00:00:00:00:1a netns {router}\n\
             link add name b address 02:00:00:00:00:0b netns {tester} type veth \
             peer name rb address 02:00:00:00:00:1b netns {router}\n"
        ),
    )?;
    let up = "link set lo up\naddr add 10.1.0.2/24 dev a\naddr add 10.2.0.2/24 dev b\n\
              link set dev a up\nlink set dev b up\n";
    LocalHost.run(&["ip", "-n", tester, "-batch", "-"], up)?;
    let up = "addr add 10.1.0.1/24 dev ra\naddr add 10.2.0.1/24 dev rb\n\
              addr add fd00:1::1/64 dev ra nodad\naddr add fd00:2::1/64 dev rb nodad\n\
              link set ra up\nlink set rb up\n\
              neigh add 10.1.0.2 lladdr 02:00:00:00:00:0a dev ra\n\
              neigh add 10.2.0.2 lladdr 02:00:00:00:00:0b dev rb\n\
              neigh add fd00:1::2 lladdr 02:00:00:00:00:0a dev ra\n\
              route add 198.51.100.0/24 via 10.2.0.2\n";
    LocalHost.run(&["ip", "-n", router, "-batch", "-"], up)?;
    for setting in ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] {
        LocalHost.run(&["ip", "netns", "exec", router, "sysctl", "-qw", setting], "")?;
    }
    Ok(())
}

impl Tester {
    /// `None` if namespaces can't be created here; the test is then skipped.
    fn new(arguments: &[&str]) -> Option<Tester> {
        if !is_root("namespaces of a tester need root") {
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let [tester, router] =
            ["tester", "router"].map(|role| format!("otg-{}-{number}-{role}", std::process::id()));
        if let Err(error) = wire(&tester, &router) {
            fwdlab_testdata::skip(&format!("no network namespaces here: {error}"));
            return None;
        }
        let mut server = Command::new("ip")
            .args(["netns", "exec", &tester, PROGRAM, "otg"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = server.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("its address");
        let at = line.trim().strip_prefix("http://").expect("an address").to_owned();
        Some(Tester { tester, router, server, at })
    }

    /// Sends a request from the tester's namespace; returns the status and the body.
    fn request(&self, method: &str, path: &str, head: &str, body: &str) -> (u16, Value) {
        let (at, prefix) = self.at.split_once('/').unwrap_or((&self.at, ""));
        let slash = if prefix.is_empty() { "" } else { "/" };
        let request = format!(
            "{method} {slash}{prefix}{path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{head}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let port = at.rsplit(':').next().expect("a port").to_owned();
        let namespace = NetNs::open(&self.tester).expect("the namespace");
        let text = namespace.run(move || {
            let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("a server");
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
            stream.write_all(request.as_bytes()).expect("a server that reads");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("an answer");
            Ok(text)
        });
        let text = text.expect("a thread");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), serde_json::from_str(body).expect("JSON"))
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        let json = "Content-Type: application/json\r\n";
        let (status, answer) = self.request("POST", path, json, &body.to_string());
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    fn transmit(&self, state: &str) -> Value {
        let transmit = json!({ "choice": "flow_transmit", "flow_transmit": { "state": state } });
        self.post("/control/state", &json!({ "choice": "traffic", "traffic": transmit }))
    }

    /// Metrics of all flows by name, once all have stopped and their frames have had time to
    /// arrive.
    fn flows(&self) -> Vec<Value> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let metrics = self.post("/monitor/metrics", &json!({ "choice": "flow" }));
            let flows = metrics["flow_metrics"].as_array().expect("flows").clone();
            let is_over = |flow: &Value| {
                flow["transmit"] == "stopped" && flow["frames_rx"] == flow["frames_tx"]
            };
            if flows.iter().all(is_over) || Instant::now() > deadline {
                return flows;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn value(value: &str) -> Value {
    json!({ "choice": "value", "value": value })
}

/// A flow from `tx` to `rx` to the router's MAC ending in `mac`, with addresses of `version`.
fn flow(name: &str, ends: [&str; 2], mac: &str, version: &str, addresses: [Value; 2]) -> Value {
    let [tx, rx] = ends;
    let [source, destination] = addresses;
    json!({
        "name": name,
        "tx_rx": { "choice": "port", "port": { "tx_name": tx, "rx_names": [rx] } },
        "packet": [
            { "choice": "ethernet", "ethernet": { "dst": value(&format!("02:00:00:00:00:{mac}")) } },
            { "choice": version, version: { "src": source, "dst": destination } },
            { "choice": "udp", "udp": {
                "src_port": { "choice": "value", "value": 5000 },
                "dst_port": { "choice": "value", "value": 6000 },
            } },
        ],
        "size": { "choice": "fixed", "fixed": 128 },
        "rate": { "choice": "pps", "pps": "1000" },
        "duration": { "choice": "fixed_packets", "fixed_packets": { "packets": FRAMES } },
        "metrics": { "enable": true, "loss": true, "latency": { "enable": true } },
    })
}

fn config(flows: &[Value]) -> Value {
    let port = |name: &str| json!({ "name": name, "location": name });
    json!({ "ports": [port("a"), port("b")], "flows": flows })
}

#[test]
fn flows_through_a_kernel_are_counted_frame_by_frame() {
    let Some(tester) = Tester::new(&["--listen", "127.0.0.1:0"]) else { return };
    let range = json!({
        "choice": "increment",
        "increment": { "start": "198.51.100.1", "step": "0.0.0.1", "count": 8 },
    });
    let there = [value("10.1.0.2"), range];
    let also = [value("10.1.0.9"), value("10.2.0.2")];
    let back = [value("fd00:2::2"), value("fd00:1::2")];
    // Two flows arrive at one port, one at the other.
    let flows = [
        flow("there", ["a", "b"], "1a", "ipv4", there),
        flow("also", ["a", "b"], "1a", "ipv4", also),
        flow("back", ["b", "a"], "1b", "ipv6", back),
    ];
    assert_eq!(tester.post("/config", &config(&flows)), json!({ "warnings": [] }));
    tester.transmit("start");
    let metrics = tester.flows();
    let details = tester.request("GET", "/fwdlab/flows", "", "").1;
    for (flow, name) in metrics.iter().zip(["there", "also", "back"]) {
        let frames = json!(FRAMES.to_string());
        assert_eq!((&flow["name"], &flow["frames_tx"]), (&json!(name), &frames), "{details:#}");
        assert_eq!(
            (&flow["frames_rx"], &flow["loss"]),
            (&frames, &json!(0.0)),
            "{flow:#} {details:#}"
        );
        assert_eq!(flow["bytes_rx"], json!((FRAMES * 128).to_string()));
        let [least, mean, most] = ["minimum_ns", "average_ns", "maximum_ns"]
            .map(|name| flow["latency"][name].as_f64().expect("a delay"));
        assert!(0.0 < least && least <= mean && mean <= most && most < 3e9, "{flow}");
    }
    let ports = tester.post("/monitor/metrics", &json!({ "choice": "port" }));
    let frames = |port: usize, name: &str| ports["port_metrics"][port][name].clone();
    let (one, two) = (json!(FRAMES.to_string()), json!((2 * FRAMES).to_string()));
    assert_eq!((frames(0, "frames_tx"), frames(0, "frames_rx")), (two.clone(), one.clone()));
    assert_eq!((frames(1, "frames_tx"), frames(1, "frames_rx")), (one, two));
    assert_eq!((frames(0, "link"), frames(0, "transmit")), (json!("up"), json!("stopped")));
    assert_eq!(tester.transmit("stop"), json!({ "warnings": [] }), "{details:#}");
}

#[test]
fn frames_that_the_path_changes_are_lost_and_named() {
    // The server expects a switch, so the router's MACs are damage.
    let Some(tester) = Tester::new(&["--listen", "127.0.0.1:0", "--hops", "0"]) else { return };
    let there = [value("10.1.0.2"), value("10.2.0.2")];
    let flow = flow("there", ["a", "b"], "1a", "ipv4", there);
    tester.post("/config", &config(&[flow]));
    tester.transmit("start");
    let sent = || tester.post("/monitor/metrics", &json!({ "choice": "flow" }));
    let deadline = Instant::now() + Duration::from_secs(60);
    while sent()["flow_metrics"][0]["transmit"] == "started" && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    let metric = &sent()["flow_metrics"][0];
    assert_eq!((&metric["frames_rx"], &metric["loss"]), (&json!("0"), &json!(100.0)), "{metric}");
    let warnings = tester.transmit("stop")["warnings"].to_string();
    assert!(
        warnings.contains("frames arrived damaged (") && warnings.contains("destination-mac"),
        "{warnings}"
    );
}

#[test]
fn server_refuses_foreign_requests() {
    let Some(mut tester) = Tester::new(&["--listen", "0.0.0.0:0"]) else { return };
    let (_, token) = tester.at.split_once('/').expect("a token");
    assert_eq!(token.len(), 32);
    let (status, version) = tester.request("GET", "/capabilities/version", "", "");
    assert_eq!((status, version["app_version"].is_string()), (200, true));
    let form = "Content-Type: text/plain\r\n";
    assert_eq!(tester.request("POST", "/config", form, "{}").0, 415, "as a page's form sends it");
    tester.at.replace_range(tester.at.len() - 1.., "x");
    assert_eq!(tester.request("GET", "/config", "", "").0, 403);
}

/// A Python with snappi: `FWDLAB_SNAPPI`, else `python3` if it has the module.
fn python() -> Option<String> {
    let python = std::env::var("FWDLAB_SNAPPI").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", "import snappi"]).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    let next = "pip install snappi, or FWDLAB_SNAPPI=PYTHON";
    fwdlab_testdata::skip(&format!("{python} has no snappi ({next})"));
    None
}

#[test]
fn documented_snappi_script_drives_two_flows() {
    let Some(python) = python() else { return };
    let Some(tester) = Tester::new(&["--listen", "127.0.0.1:0"]) else { return };
    let script = DOCUMENT.split("```python\n").nth(1).expect("a script");
    let script = script.split("```").next().expect("its end");
    let script = script.replace("http://127.0.0.1:8443", &format!("http://{}", tester.at));
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &tester.tester, &python, "-c", &script]);
    let output = command.output().expect("python");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{errors}");
    // Name, sent, received, loss, delays.
    for (line, name) in text.lines().zip(["there", "back"]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..4], [name, "5000", "5000", "0.0"], "{text}{errors}");
        let delays: Vec<f64> = words[4..].iter().map(|word| word.parse().expect("us")).collect();
        assert!(delays.len() == 3 && delays.is_sorted() && delays[0] > 0.0, "{text}");
    }
    assert_eq!(text.lines().count(), 2, "{text}");
}
