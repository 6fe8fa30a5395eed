//! A TRex server in stateless mode, controlled over its JSON-RPC: no Python is needed.
//!
//! Ports are named by their MAC, PCI address or number. The server's counters are never reset, so
//! the first reading is subtracted. Its packet sizes exclude the FCS. A port is acquired, and
//! released on every exit path; the option `force` takes it from another user. Traffic stops after
//! the load's maximum duration. Source: TRex stateless RPC; the pitfalls are described in its
//! issues 442 and 1212.

pub mod rpc;
mod stream;
pub mod zmtp;

use super::load_check::LoadCheck;
use super::{
    Capabilities, Counted, Edges, Generator, GeneratorHosts, Load, Outcome, mac, until_changed,
};
use fwdlab_host::error::BenchError;
use fwdlab_model::record::Counter;
use rpc::Rpc;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Time limit for one answer, including work in progress.
const TIMEOUT: Duration = Duration::from_secs(10);
/// User name under which ports are acquired.
const USER: &str = "fwdlab";
/// The only profile.
const PROFILE: &str = "_";
/// Assumed maximum refresh interval of the server's counters; it is not documented.
const UPDATE_MS: u32 = 1000;

/// A server, one port that sends and one that receives.
pub struct Trex<'a> {
    ends: GeneratorHosts<'a>,
    server: String,
    timeout: Duration,
    rpc: Option<Rpc>,
    ports: (u64, u64),
    handler: Option<Value>,
    at_most: Duration,
    is_sending: bool,
    before: Ports,
    load_check: LoadCheck,
    outcome: Outcome,
}

/// Counters of the sending and the receiving port, and of the whole server.
#[derive(Clone, Copy, Debug, Default)]
struct Ports {
    sent: u64,
    not_sent: u64,
    received: u64,
    not_received: u64,
    queue_full: u64,
}

impl<'a> Trex<'a> {
    /// Creates the generator without sending a request.
    ///
    /// # Errors
    /// Fails if no server is named.
    pub fn new(ends: GeneratorHosts<'a>) -> Result<Trex<'a>, BenchError> {
        let Some(server) = ends.server.clone() else {
            let why = "TRex is a server: name it as host:port (its RPC port is 4501)";
            return Err(BenchError::Refused(why.into()));
        };
        let server = if server.contains(':') { server } else { format!("{server}:4501") };
        Ok(Trex {
            ends,
            server,
            timeout: TIMEOUT,
            rpc: None,
            ports: (0, 0),
            handler: None,
            at_most: Duration::ZERO,
            is_sending: false,
            before: Ports::default(),
            load_check: LoadCheck::open(None, Duration::ZERO),
            outcome: Outcome::default(),
        })
    }

    /// Sets the time limit for one answer.
    pub fn timeout(mut self, timeout: Duration) -> Trex<'a> {
        self.timeout = timeout;
        self
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, BenchError> {
        match &mut self.rpc {
            Some(rpc) => rpc.call(method, params),
            None => Err(BenchError::Refused("TRex must be prepared before it is called".into())),
        }
    }

    /// Calls a method for the acquired port.
    fn call_port(&mut self, method: &str, more: Value) -> Result<Value, BenchError> {
        let mut params = json!({ "handler": self.handler, "port_id": self.ports.0 });
        if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
            params.extend(more);
        }
        self.call(method, params)
    }

    fn read(&mut self) -> Result<Ports, BenchError> {
        let (sender, receiver) = self.ports;
        let sending = self.call("get_port_stats", json!({ "port_id": sender }))?;
        let receiving = self.call("get_port_stats", json!({ "port_id": receiver }))?;
        Ok(Ports {
            sent: number(&sending, "opackets"),
            not_sent: number(&sending, "oerrors"),
            received: number(&receiving, "ipackets"),
            not_received: number(&receiving, "ierrors"),
            queue_full: 0,
        })
    }

    fn queue_full(&mut self) -> u64 {
        let stats = self.call("get_global_stats", json!({}));
        stats.map_or(0, |stats| number(&stats, "m_total_queue_full"))
    }

    /// Waits until the port has stopped sending.
    fn wait_idle(&mut self) -> Result<(), BenchError> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let port = self.ports.0;
            let status = self.call("get_port_status", json!({ "port_id": port }))?;
            if status["state"].as_str() != Some("TX") {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(BenchError::Program {
                    command: "TRex's stop_traffic".into(),
                    host: self.server.clone(),
                    why: "the port still sends".into(),
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Releases the port.
    fn release(&mut self) {
        if self.handler.is_none() {
            return;
        }
        if std::mem::take(&mut self.is_sending) {
            self.call_port_with_retry("stop_traffic", json!({ "profile_id": PROFILE }));
        }
        self.call_port_with_retry("remove_all_streams", json!({ "profile_id": PROFILE }));
        self.call_port_with_retry("release", json!({}));
        self.handler = None;
    }

    /// Sends an order and ignores its result; after an error it retries once on a new connection,
    /// because a connection with a late answer is unusable.
    fn call_port_with_retry(&mut self, method: &str, params: Value) {
        if self.call_port(method, params.clone()).is_err() {
            self.rpc = Rpc::open(&self.server, self.timeout).ok();
            let _ = self.call_port(method, params);
        }
    }
}

impl Generator for Trex<'_> {
    fn name(&self) -> &'static str {
        "trex"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { paced: true, inet6: true, edges: Edges::Reported(UPDATE_MS) }
    }

    fn prepare(&mut self, load: &Load) -> Result<(), BenchError> {
        self.rpc = Some(Rpc::open(&self.server, self.timeout)?);
        if let Ok(version) = self.call("get_version", json!({})) {
            let version = version["version"].as_str().unwrap_or("unknown").to_owned();
            self.outcome.facts.insert("trex version".into(), version);
        }
        let system = self.call("get_system_info", json!({}))?;
        let receiver = find(&system, &self.ends.receiver_interface, &self.server)?;
        let sender = match find(&system, &self.ends.sender_interface, &self.server) {
            Ok(port) => port,
            Err(_) => find(&system, &mac(load.source_mac), &self.server)?,
        };
        self.ports = (sender, receiver);
        let force = self.ends.options.iter().any(|option| option == "force");
        let session = std::process::id();
        let params = json!({
            "port_id": sender, "user": USER, "session_id": session, "force": force,
        });
        self.handler = Some(self.call("acquire", params)?);
        self.call_port("remove_all_streams", json!({ "profile_id": PROFILE }))?;
        let (stream, pattern) = stream::stream(load);
        let params = json!({ "profile_id": PROFILE, "stream_id": 1, "stream": stream });
        self.call_port("add_stream", params)?;
        let facts = &mut self.outcome.facts;
        facts.insert("trex ports".into(), format!("{sender} sends, {receiver} receives"));
        facts.insert("trex flows".into(), pattern.describe(load.stream.flows));
        if let Some(core) = system["core_type"].as_str() {
            facts.insert("trex machine".into(), core.to_owned());
        }
        self.before = Ports { queue_full: self.queue_full(), ..self.read()? };
        self.load_check = LoadCheck::open(load.rate_pps, Duration::from_secs(2));
        self.at_most = load.at_most;
        Ok(())
    }

    fn start(&mut self) -> Result<(), BenchError> {
        let params = json!({
            "profile_id": PROFILE,
            "mul": { "type": "raw", "op": "abs", "value": 1.0 },
            "duration": self.at_most.as_secs_f64(),
            "force": false,
            "core_mask": u64::MAX,
        });
        self.is_sending = true;
        self.call_port("start_traffic", params)?;
        self.load_check.begin();
        Ok(())
    }

    fn counted(&mut self) -> Result<Counted, BenchError> {
        let (now, before) = (self.read()?, self.before);
        let sent = now.sent.saturating_sub(before.sent);
        self.load_check.saw(sent);
        Ok(Counted {
            sent,
            received: now.received.saturating_sub(before.received),
            receiver_dropped: now.not_received.saturating_sub(before.not_received),
            unsent: self.load_check.unsent(sent, None),
        })
    }

    fn fresh(&mut self) -> Result<Counted, BenchError> {
        until_changed(Duration::from_millis(UPDATE_MS.into()), || self.counted())
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        if !self.is_sending {
            return Ok(());
        }
        let stopped = self.call_port("stop_traffic", json!({ "profile_id": PROFILE }));
        self.load_check.end();
        stopped?;
        self.is_sending = false;
        self.wait_idle()
    }

    fn finish(&mut self) -> Result<Outcome, BenchError> {
        self.stop()?;
        let counted = self.counted()?;
        let (now, queue_full) = (self.read()?, self.queue_full());
        let mut outcome = std::mem::take(&mut self.outcome);
        let before = self.before;
        for (name, before, after) in [
            ("trex oerrors", before.not_sent, now.not_sent),
            ("trex ierrors", before.not_received, now.not_received),
            ("trex queue full", before.queue_full, queue_full),
        ] {
            outcome.counters.push(Counter { name: name.into(), before, after, expected: None });
        }
        outcome.remarks.extend(self.load_check.remarks(counted.sent, None));
        outcome.counted = counted;
        self.release();
        Ok(outcome)
    }
}

impl Drop for Trex<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// Reads a counter by its name; large ones may be floating-point numbers or strings. 0 if missing.
pub fn number(stats: &Value, name: &str) -> u64 {
    let value = &stats[name];
    let text = || value.as_str().and_then(|text| text.parse().ok());
    value.as_u64().or_else(|| value.as_f64().map(|number| number as u64)).or_else(text).unwrap_or(0)
}

/// Finds the port with this number, or with this MAC or PCI address in any field, in an answer to
/// `get_system_info`.
///
/// # Errors
/// Lists the existing ports.
pub fn find(system: &Value, name: &str, server: &str) -> Result<u64, BenchError> {
    let nothing = Vec::new();
    let ports = system["ports"].as_array().unwrap_or(&nothing);
    let matches = |port: &&Value| {
        port["index"].as_u64().map(|index| index.to_string()).as_deref() == Some(name)
            || port.as_object().is_some_and(|port| {
                let mut texts = port.values().filter_map(Value::as_str);
                texts.any(|text| text.eq_ignore_ascii_case(name))
            })
    };
    if let Some(index) = ports.iter().find(matches).and_then(|port| port["index"].as_u64()) {
        return Ok(index);
    }
    let known = ports.iter().map(|port| {
        let address = ["hw_mac", "src_mac", "macaddr", "pci_addr"];
        let address = address.iter().find_map(|name| port[*name].as_str()).unwrap_or("?");
        format!("{} ({address})", port["index"])
    });
    let known = known.collect::<Vec<_>>().join(", ");
    Err(BenchError::environment(
        format!("TRex at {server} has no port {name}; it has {known}"),
        "name its ports in lab.toml by MAC, PCI address or number",
    ))
}
