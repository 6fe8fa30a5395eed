//! Any server of the Open Traffic Generator API (<https://otg.dev>), over HTTP.
//!
//! Ports are named by the server's location strings. Frame sizes include the FCS, as in fwdlab.
//! Each packet field varies independently, so both addresses advance in lockstep. The flow's
//! counters are cross-checked with the ports' counters. The API does not report the age of
//! counters, so readings wait until they change. The option `insecure` accepts any certificate.

mod config;
pub mod http;

use super::flow_pattern::FlowPattern;
use super::load_check::LoadCheck;
use super::{
    Capabilities, Counted, Edges, Generator, GeneratorHosts, Load, Outcome, until_changed,
};
use config::{FLOW, RECEIVER, SENDER, config, transmit};
use fwdlab_host::error::BenchError;
use fwdlab_model::record::Counter;
use http::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Time limit for one answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Assumed maximum refresh interval of counters; the API does not specify one.
const UPDATE_MS: u32 = 1000;

/// A flow between two ports of a server.
pub struct Otg<'a> {
    ends: GeneratorHosts<'a>,
    server: Server,
    timeout: Duration,
    has_begun: bool,
    has_metrics: bool,
    is_sending: bool,
    load_check: LoadCheck,
    outcome: Outcome,
}

impl<'a> Otg<'a> {
    /// Creates the generator without sending a request.
    ///
    /// # Errors
    /// Fails if no server is named.
    pub fn new(ends: GeneratorHosts<'a>) -> Result<Otg<'a>, BenchError> {
        let Some(url) = &ends.server else {
            let why = "an Open Traffic Generator is a server: name its URL, e.g. https://host:8443";
            return Err(BenchError::Refused(why.into()));
        };
        let verified = !ends.options.iter().any(|option| option == "insecure");
        let server = Server::new(url, TIMEOUT, verified);
        Ok(Otg {
            ends,
            server,
            timeout: TIMEOUT,
            has_begun: false,
            has_metrics: false,
            is_sending: false,
            load_check: LoadCheck::open(None, Duration::ZERO),
            outcome: Outcome::default(),
        })
    }

    /// The metric of this kind with the name `name`.
    fn metric(&self, kind: &str, names: &str, name: &str) -> Result<Option<Value>, BenchError> {
        let request = json!({ "choice": kind, kind: { names: [name] } });
        let answer = self.server.post("/monitor/metrics", &request)?;
        let metrics = answer[format!("{kind}_metrics")].as_array().cloned().unwrap_or_default();
        Ok(metrics.into_iter().find(|metric| metric["name"] == name))
    }

    fn flow(&self) -> Result<Option<Value>, BenchError> {
        self.metric("flow", "flow_names", FLOW)
    }

    /// Waits until the flow's transmission has one of these states.
    fn wait_for(&self, states: &[&str]) -> Result<(), BenchError> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let flow = self.flow()?;
            let state = flow.as_ref().and_then(|flow| flow["transmit"].as_str());
            // Reporting the state is optional for servers.
            if state.is_none_or(|state| states.contains(&state)) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(BenchError::Program {
                    command: "OTG's flow_transmit".into(),
                    host: self.ends.server.clone().unwrap_or_default(),
                    why: format!("the flow is still {}", state.unwrap_or("silent")),
                });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Generator for Otg<'_> {
    fn name(&self) -> &'static str {
        "otg"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { paced: true, inet6: true, edges: Edges::Reported(UPDATE_MS) }
    }

    fn prepare(&mut self, load: &Load) -> Result<(), BenchError> {
        let facts = &mut self.outcome.facts;
        // Old servers do not report versions.
        if let Ok(version) = self.server.get("/capabilities/version") {
            facts.insert("otg version".into(), version.to_string());
        }
        let pattern = FlowPattern::Lockstep;
        facts.insert("otg flows".into(), pattern.describe(load.stream.flows));
        let requested = FlowPattern::Nested.flows(load.stream.flows);
        if pattern.flows(load.stream.flows) < requested {
            self.outcome.remarks.push(format!(
                "the server may send only {}: choose numbers of sources and destinations without \
                 a common divisor",
                pattern.describe(load.stream.flows)
            ));
        }
        let (sender, receiver) = (&self.ends.sender_interface, &self.ends.receiver_interface);
        let answer = self.server.post("/config", &config(load, sender, receiver))?;
        let warnings = answer["warnings"].as_array().cloned().unwrap_or_default();
        let warnings = warnings.iter().filter_map(Value::as_str);
        self.outcome.remarks.extend(warnings.map(|text| format!("the server warns: {text}")));
        self.load_check = LoadCheck::open(load.rate_pps, Duration::from_secs(3));
        Ok(())
    }

    fn start(&mut self) -> Result<(), BenchError> {
        self.is_sending = true;
        self.server.post("/control/state", &transmit("start"))?;
        // Counters restart from zero at a start; before it they belong to another run.
        self.has_begun = true;
        self.load_check.begin();
        Ok(())
    }

    fn counted(&mut self) -> Result<Counted, BenchError> {
        if !self.has_begun {
            return Ok(Counted::default());
        }
        let flow = self.flow()?.unwrap_or(Value::Null);
        self.has_metrics |= flow.get("frames_tx").is_some();
        let sent = number(&flow, "frames_tx");
        self.load_check.saw(sent);
        Ok(Counted {
            sent,
            received: number(&flow, "frames_rx"),
            receiver_dropped: 0,
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
        let stopped = self.server.post("/control/state", &transmit("stop"));
        self.load_check.end();
        stopped?;
        self.is_sending = false;
        self.wait_for(&["stopped"])
    }

    fn finish(&mut self) -> Result<Outcome, BenchError> {
        self.stop()?;
        let counted = self.counted()?;
        let mut outcome = std::mem::take(&mut self.outcome);
        if !self.has_metrics {
            outcome
                .remarks
                .push("the server told nothing of the flow: no frame was counted".into());
        }
        for (port, name, expected) in
            [(SENDER, "frames_tx", counted.sent), (RECEIVER, "frames_rx", counted.received)]
        {
            if let Some(metric) = self.metric("port", "port_names", port)? {
                let after = number(&metric, name);
                let name = format!("otg {port} {name}");
                let expected = Some(expected);
                outcome.counters.push(Counter { name, before: 0, after, expected });
            }
        }
        if counted.received > counted.sent {
            outcome.remarks.push(format!(
                "the flow received {} frames of {} sent: frames of an earlier start are counted",
                counted.received, counted.sent
            ));
        }
        outcome.remarks.extend(self.load_check.remarks(counted.sent, None));
        outcome.counted = counted;
        Ok(outcome)
    }
}

impl Drop for Otg<'_> {
    fn drop(&mut self) {
        if self.is_sending {
            let _ = self.server.post("/control/state", &transmit("stop"));
        }
    }
}

/// Reads a 64-bit number by its name: string or number. 0 if missing.
pub fn number(metric: &Value, name: &str) -> u64 {
    let value = &metric[name];
    let text = || value.as_str().and_then(|text| text.trim().parse().ok());
    value.as_u64().or_else(text).or_else(|| value.as_f64().map(|v| v as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_parsed_from_strings_and_numbers() {
        let metric = json!({ "a": "18446744073709551615", "b": 7, "c": 7.9, "d": null, "e": "x" });
        let numbers = ["a", "b", "c", "d", "e", "f"].map(|name| number(&metric, name));
        assert_eq!(numbers, [u64::MAX, 7, 7, 0, 0, 0]);
    }

    #[test]
    fn error_text_is_extracted_from_the_answer() {
        let text = r#"{"code":400,"kind":"validation","errors":["flow 1: no rate",{"x":1}]}"#;
        assert_eq!(http::complaint(text), "validation: flow 1: no rate; {\"x\":1}");
        assert_eq!(http::complaint("<html>"), "<html>");
    }

    proptest! {
        #[test]
        fn parsers_accept_any_answer(text: String) {
            let _ = http::complaint(&text);
            let _ = number(&json!({ "a": text }), "a");
        }
    }
}
