//! The generator: requests, flows in transmission.

use crate::config::{self, Config};
use crate::metrics;
use crate::node::{Faults, Node};
use crate::transmission::{Place, Transmission};
use crate::wires::{Options, Wires};
use fwdlab_bench::error::BenchError;
use fwdlab_netio::clock;
use serde_json::{Value, json};

/// Version of the data model that was read.
const MODEL: &str = "1.62.0";
/// Distance of run ids: they differ in many bits, so that a damaged packet is of no other flow.
const RUN_IDS: u32 = 0x9e37_79b9;

/// Answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// JSON.
    pub body: Value,
}

/// A refused or failed request.
enum Failure {
    Refused(Faults),
    Failed(String),
}

/// A traffic generator with the API of the Open Traffic Generator.
pub struct Generator {
    wires: Box<dyn Wires>,
    options: Options,
    /// The configuration as posted.
    posted: Value,
    config: Config,
    /// One per flow. `None` before its first start.
    transmissions: Vec<Option<Transmission>>,
    run_id: u32,
}

impl Generator {
    /// Creates a generator without a configuration.
    pub fn new(wires: Box<dyn Wires>, options: Options) -> Generator {
        Generator {
            wires,
            options,
            posted: json!({}),
            config: Config::default(),
            transmissions: Vec::new(),
            run_id: clock::monotonic_ns() as u32,
        }
    }

    /// Answers a request; `path` has no query.
    pub fn answer(&mut self, method: &str, path: &str, body: &[u8]) -> Answer {
        let answered = match (method, path) {
            ("GET", "/config") => Ok(self.posted.clone()),
            ("GET", "/capabilities/version") => Ok(version()),
            ("GET", "/fwdlab/flows") => Ok(self.details()),
            ("POST", "/config") => parsed(body).and_then(|body| self.configure(body)),
            ("POST", "/control/state") => parsed(body).and_then(|body| self.control(&body)),
            ("POST", "/monitor/metrics") => parsed(body).and_then(|body| self.metrics(&body)),
            (
                _,
                "/config" | "/config/append" | "/config/delete" | "/control/action"
                | "/monitor/states" | "/monitor/capture",
            ) => Err(Failure::Refused(vec![format!("{method} {path} is not supported")])),
            _ => {
                let what = format!("there is no {method} {path}");
                return Answer { status: 404, body: error(404, "validation", &[what]) };
            }
        };
        match answered {
            Ok(body) => Answer { status: 200, body },
            Err(Failure::Refused(faults)) => {
                Answer { status: 400, body: error(400, "validation", &faults) }
            }
            Err(Failure::Failed(what)) => {
                Answer { status: 500, body: error(500, "internal", &[what]) }
            }
        }
    }

    /// Ends flows whose packets or time are used up; to be called every few milliseconds.
    ///
    /// # Errors
    /// Fails if a sender has failed.
    pub fn tick(&mut self) -> Result<(), BenchError> {
        let ticked = self.transmissions.iter_mut().flatten().map(Transmission::tick);
        ticked.fold(Ok(()), Result::and)
    }

    fn configure(&mut self, body: Value) -> Result<Value, Failure> {
        let config = config::parse(&body).map_err(Failure::Refused)?;
        let mut faults = Faults::new();
        for (at, port) in config.ports.iter().enumerate() {
            if let Err(error) = self.wires.mac(&port.location) {
                faults.push(format!("ports[{at}].location: {error}"));
            }
        }
        if !faults.is_empty() {
            return Err(Failure::Refused(faults));
        }
        // Dropping senders ends their traffic.
        self.transmissions = config.flows.iter().map(|_| None).collect();
        (self.config, self.posted) = (config, body);
        Ok(json!({ "warnings": [] }))
    }

    fn control(&mut self, body: &Value) -> Result<Value, Failure> {
        let mut faults = Faults::new();
        let request = transmit(&Node::root(body), &mut faults);
        let names = self.config.flows.iter().map(|flow| flow.name.as_str()).collect::<Vec<_>>();
        let chosen = request.map(|(state, flows)| (state, indices(&flows, &names, &mut faults)));
        let Some((state, chosen)) = chosen.filter(|_| faults.is_empty()) else {
            return Err(Failure::Refused(faults));
        };
        let warnings = match state {
            "start" => self.start(&chosen)?,
            _ => self.stop(&chosen)?,
        };
        Ok(json!({ "warnings": warnings }))
    }

    /// Starts flows together, after all of their receivers and senders are open.
    fn start(&mut self, flows: &[usize]) -> Result<Vec<String>, Failure> {
        let mut warnings = Vec::new();
        let mut opened = Vec::new();
        let cpus = self.wires.cpus();
        for &at in flows {
            let flow = &self.config.flows[at];
            if self.transmissions[at].as_ref().is_some_and(Transmission::is_sending) {
                warnings.push(format!("flow `{}` is sending already", flow.name));
                continue;
            }
            // The receiver of the last start leaves the interface.
            self.transmissions[at] = None;
            self.run_id = self.run_id.wrapping_add(RUN_IDS);
            let place = Place {
                tx: &self.config.ports[flow.tx].location,
                rx: &self.config.ports[flow.rx].location,
                run_id: self.run_id,
                is_shared: self.config.flows.iter().filter(|other| other.rx == flow.rx).count() > 1,
                // The last CPU first: interrupts prefer the first.
                cpu: cpus.iter().rev().cycle().nth(at).copied(),
            };
            let transmission = Transmission::open(flow, &place, self.wires.as_ref(), &self.options)
                .map_err(|error| match error {
                    BenchError::Refused(why) => Failure::Refused(vec![why]),
                    other => Failure::Failed(format!("flow `{}`: {other}", flow.name)),
                })?;
            opened.push((at, transmission));
        }
        for (at, mut transmission) in opened {
            transmission.start();
            self.transmissions[at] = Some(transmission);
        }
        Ok(warnings)
    }

    fn stop(&mut self, flows: &[usize]) -> Result<Vec<String>, Failure> {
        let (mut warnings, mut failed) = (Vec::new(), None);
        for &at in flows {
            let name = &self.config.flows[at].name;
            let Some(transmission) = &mut self.transmissions[at] else { continue };
            // The others are stopped as well.
            if let Err(error) = transmission.stop() {
                failed.get_or_insert(Failure::Failed(format!("flow `{name}`: {error}")));
            }
            warnings.extend(metrics::doubts(name, transmission));
        }
        failed.map_or(Ok(warnings), Err)
    }

    fn metrics(&mut self, body: &Value) -> Result<Value, Failure> {
        let mut faults = Faults::new();
        let root = Node::root(body);
        root.only(&["choice", "port", "flow"], &mut faults);
        let choice = root.choice(&["port", "flow"], "port", &mut faults);
        let request = choice.and_then(|choice| root.get(choice));
        let (config, transmissions) = (&self.config, &self.transmissions);
        let (names, list, columns): (Vec<&str>, _, _) = match choice {
            Some("flow") => {
                let names = config.flows.iter().map(|flow| flow.name.as_str()).collect();
                (names, "flow_names", "metric_names")
            }
            _ => {
                let names = config.ports.iter().map(|port| port.name.as_str()).collect();
                (names, "port_names", "column_names")
            }
        };
        let mut chosen: Vec<usize> = (0..names.len()).collect();
        let mut kept = Vec::new();
        if let Some(request) = request {
            request.only(&[list, columns], &mut faults);
            chosen = indices(&request.items(list, &mut faults), &names, &mut faults);
            let columns = request.items(columns, &mut faults);
            kept = columns.iter().filter_map(|name| name.text(&mut faults)).collect();
        }
        if !faults.is_empty() {
            return Err(Failure::Refused(faults));
        }
        let only = |mut metric: Value| {
            if let Some(members) = metric.as_object_mut().filter(|_| !kept.is_empty()) {
                members.retain(|name, _| name == "name" || kept.contains(&name.as_str()));
            }
            metric
        };
        if choice == Some("flow") {
            let enabled = chosen.into_iter().filter(|&at| config.flows[at].metrics.is_enabled);
            let metric = |at: usize| metrics::flow(config, at, transmissions[at].as_ref());
            let metrics: Vec<Value> = enabled.map(metric).map(only).collect();
            return Ok(json!({ "choice": "flow_metrics", "flow_metrics": metrics }));
        }
        let metric = |at: usize| {
            let link = self.wires.link(&config.ports[at].location);
            metrics::port(config, at, transmissions, link)
        };
        let metrics: Vec<Value> = chosen.into_iter().map(metric).map(only).collect();
        Ok(json!({ "choice": "port_metrics", "port_metrics": metrics }))
    }

    /// Everything that fwdlab counts and the model has no fields for.
    fn details(&self) -> Value {
        let flows = self.config.flows.iter().zip(&self.transmissions);
        flows
            .map(|(flow, transmission)| metrics::details(&flow.name, transmission.as_ref()))
            .collect()
    }
}

/// State to set, and names of flows.
fn transmit<'v>(root: &Node<'v>, faults: &mut Faults) -> Option<(&'static str, Vec<Node<'v>>)> {
    root.only(&["choice", "traffic"], faults);
    root.required("choice", faults)?;
    root.choice(&["traffic"], "traffic", faults)?;
    let traffic = root.required("traffic", faults)?;
    traffic.only(&["choice", "flow_transmit"], faults);
    traffic.choice(&["flow_transmit"], "flow_transmit", faults)?;
    let transmit = traffic.required("flow_transmit", faults)?;
    transmit.only(&["state", "flow_names"], faults);
    let text = transmit.required("state", faults)?;
    let state = text.text(faults)?;
    let known = ["start", "stop"].into_iter().find(|known| *known == state);
    if known.is_none() {
        text.fault(faults, format!("`{state}` is not supported; supported: start, stop"));
    }
    let names = transmit.items("flow_names", faults);
    Some((known?, names))
}

/// Indices of names; all for none.
fn indices(requested: &[Node<'_>], names: &[&str], faults: &mut Faults) -> Vec<usize> {
    if requested.is_empty() {
        return (0..names.len()).collect();
    }
    let index = |node: &Node<'_>| {
        let text = node.text(faults)?;
        let found = names.iter().position(|name| *name == text);
        if found.is_none() {
            node.fault(faults, format!("there is no `{text}` in the configuration"));
        }
        found
    };
    requested.iter().filter_map(index).collect()
}

fn parsed(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::Refused(vec![format!("the body: is no JSON: {error}")]))
}

fn version() -> Value {
    json!({
        "api_spec_version": MODEL,
        "sdk_version": "",
        "app_version": concat!("fwdlab ", env!("CARGO_PKG_VERSION")),
    })
}

/// Body of an error.
fn error(code: u16, kind: &str, errors: &[String]) -> Value {
    json!({ "code": code, "kind": kind, "errors": errors })
}
