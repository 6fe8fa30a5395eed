//! Commands to a running router, one line each, and their answers.

mod selection;
pub mod view;

use super::firewall::{rules, written_rules};
use super::{FORGETTING, Running};
use fwdlab_model::router::RouterStats;
use fwdlab_netio::clock;
use fwdlab_router::firewall::Connection;
use fwdlab_router::path::{Gateway, KnownNeighbour};
use selection::Selection;
use serde::Serialize;
use std::net::IpAddr;
use view::{
    Answer, InterfaceRow, Killed, NeighbourRow, RouteRow, Routes, Rule, StateRow, States, Table,
};

/// Maximum number of states that an answer lists by default.
const STATES: usize = 1000;

/// Commands, for messages.
const EXPECTED: &str = "expected stats, show, flush, kill, set, route, reload or forget";

impl Running {
    /// Executes a command; the answer is one line of JSON.
    ///
    /// # Errors
    /// The reason why the command failed. The router continues unchanged.
    pub fn obey(&mut self, line: &str) -> Result<String, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["stats"] | ["show", "counters"] => json(&self.stats()),
            ["show", "neighbours"] => json(&Table { rows: self.neighbours(None)? }),
            ["show", "neighbours", name] => json(&Table { rows: self.neighbours(Some(name))? }),
            ["show", "states", ref rest @ ..] => json(&self.states(rest)?),
            ["show", "route", address] => json(&self.routes_to(address)?),
            ["show", "rules"] => json(&Table { rows: self.rules()? }),
            ["show", "interfaces"] => json(&Table { rows: self.interface_rows() }),
            ["flush", "neighbours"] => self.flush(None),
            ["flush", "neighbours", what] => self.flush(Some(what)),
            ["forget"] | ["flush", "states"] => {
                self.forget_states().map_err(|error| error.to_string())?;
                self.done()
            }
            ["kill", "states", ref rest @ ..] => json(&self.kill(rest)?),
            ["set", interface, "addresses", ref rest @ ..] => {
                self.set_addresses(interface, rest)?;
                self.done()
            }
            ["route", ..] => {
                let change = line.trim_start().strip_prefix("route").unwrap_or_default();
                self.change_route(change)?;
                self.done()
            }
            ["reload", ..] => {
                let setup = line.trim_start().strip_prefix("reload").unwrap_or_default();
                let setup = serde_json::from_str(setup).map_err(|error| error.to_string())?;
                let late = self.reload(&setup).map_err(|error| format!("{error:#}"))?;
                late.map_or_else(|| self.done(), Err)
            }
            _ => Err(EXPECTED.into()),
        }
    }

    /// The answer to a command that failed.
    pub fn failure(&self, error: String) -> String {
        let stats = RouterStats { error: Some(error), ..self.stats() };
        json(&stats).unwrap_or_default()
    }

    /// The answer to a command that changes the router: the counters.
    fn done(&self) -> Result<String, String> {
        json(&self.stats())
    }

    /// Number of an interface.
    fn port(&self, name: &str) -> Result<u8, String> {
        let at = self.interfaces.iter().position(|interface| interface == name);
        let port = at.and_then(|at| u8::try_from(at).ok());
        port.ok_or_else(|| format!("there is no interface `{name}`; show interfaces lists them"))
    }

    fn name(&self, port: u8) -> String {
        self.interfaces.get(usize::from(port)).cloned().unwrap_or_default()
    }

    fn neighbours(&self, interface: Option<&str>) -> Result<Vec<NeighbourRow>, String> {
        let port = interface.map(|name| self.port(name)).transpose()?;
        let now_ns = clock::monotonic_ns();
        let all = self.locked().neighbours.list(now_ns);
        let of_port = |known: &KnownNeighbour| port.is_none_or(|port| known.gateway.port == port);
        let row =
            |known: KnownNeighbour| NeighbourRow::new(self.name(known.gateway.port), known, now_ns);
        Ok(all.into_iter().filter(of_port).map(row).collect())
    }

    fn states(&self, words: &[&str]) -> Result<States, String> {
        let selection = Selection::parse(words)?;
        let wall = self.wall.as_ref().ok_or("there are no firewall rules, and so no states")?;
        let now_ns = clock::monotonic_ns();
        let selects = |connection: &Connection| selection.contains(connection.ends);
        let most = selection.limit.unwrap_or(STATES);
        let selected = wall.connections(&selects, most, now_ns).ok_or(OWN_STATES)?;
        let mut rows: Vec<StateRow> =
            selected.some.iter().map(|connection| StateRow::new(connection, now_ns)).collect();
        rows.sort_by_key(|row| {
            (row.source, row.source_port, row.destination, row.destination_port, row.protocol)
        });
        Ok(States { total: selected.total as u64, rows })
    }

    fn kill(&self, words: &[&str]) -> Result<Killed, String> {
        let selection = Selection::parse(words)?;
        if selection.is_everything() || selection.limit.is_some() {
            return Err("expected `kill states from PREFIX`, `to PREFIX`, or both".into());
        }
        let wall = self.wall.as_ref().ok_or("there are no firewall rules, and so no states")?;
        let selects = |connection: &Connection| selection.contains(connection.ends);
        let removed = wall.remove(&selects, FORGETTING).ok_or(OWN_STATES)?;
        self.invalidate_flows();
        if !removed.is_complete {
            return Err(format!(
                "{} states are removed, but a worker did not discard its cache within {FORGETTING:?}",
                removed.count
            ));
        }
        Ok(Killed { killed: removed.count as u64 })
    }

    fn routes_to(&self, address: &str) -> Result<Routes, String> {
        let address: IpAddr = address.parse().map_err(|_| format!("`{address}` is no address"))?;
        let routing = self.locked();
        let now_ns = clock::monotonic_ns();
        let mut rows = Vec::new();
        let found = routing.explain(address)?;
        for (hop, weight) in found.hops {
            let known = hop.and_then(|Gateway { port, address }| {
                let all = routing.neighbours.list(now_ns);
                let is_it = |known: &KnownNeighbour| {
                    (known.gateway.port, known.gateway.address) == (port, address)
                };
                all.into_iter().find(is_it)
            });
            rows.push(RouteRow {
                interface: hop.map(|hop| self.name(hop.port)),
                next_hop: hop.map(|hop| hop.address),
                weight,
                has_carrier: hop.map(|hop| !routing.neighbours.is_down(hop.port)),
                mac: known.and_then(|known| known.mac).map(view::mac),
                state: known.map(|known| view::reachability(known.reachability).to_owned()),
            });
        }
        Ok(Routes { address, prefix: found.prefix, via: found.via, source: found.source, rows })
    }

    fn rules(&self) -> Result<Vec<Rule>, String> {
        let Some(wall) = &self.wall else { return Ok(Vec::new()) };
        let interfaces = self.locked().interfaces().to_vec();
        let parsed = rules(&self.setup, &interfaces).map_err(|error| error.to_string())?;
        let Some((ruleset, _)) = parsed else { return Ok(Vec::new()) };
        let stats = wall.stats();
        let mut written = written_rules(&self.setup);
        let mut all: Vec<Rule> = Vec::new();
        for (at, rule) in ruleset.rules.iter().enumerate() {
            let written = written.next();
            let counts = stats.rules.get(at).copied().unwrap_or_default();
            all.push(Rule {
                line: written.map(|(line, _)| line as u64),
                rule: written.map_or_else(|| rule.to_string(), |(_, text)| text.to_owned()),
                packets: counts.packets,
                bytes: counts.bytes,
            });
        }
        let policy = match ruleset.policy {
            fwdlab_router::firewall::Action::Pass => "default pass",
            fwdlab_router::firewall::Action::Block => "default block",
        };
        let (packets, bytes) = (stats.policy.packets, stats.policy.bytes);
        all.push(Rule { line: None, rule: policy.into(), packets, bytes });
        Ok(all)
    }

    fn interface_rows(&self) -> Vec<InterfaceRow> {
        let gone: Vec<String> = self.gone().map(str::to_owned).collect();
        let stats = self.stats();
        let routing = self.locked();
        let row = |(at, named): (usize, &super::NamedInterface)| {
            let counts = stats.interfaces.get(at).cloned().unwrap_or_default();
            let port = u8::try_from(at).unwrap_or(u8::MAX);
            let state = match () {
                () if gone.contains(&named.name) => "gone",
                () if routing.neighbours.is_down(port) => "no carrier",
                () => "up",
            };
            let address = |&(address, length): &(IpAddr, u8)| format!("{address}/{length}");
            InterfaceRow {
                name: named.name.clone(),
                state: state.into(),
                mac: view::mac(named.interface.mac),
                mtu: named.interface.mtu,
                addresses: named.interface.addresses.iter().map(address).collect(),
                received: counts.received,
                sent: counts.sent,
                lost: counts.lost,
                missed: counts.missed,
            }
        };
        routing.interfaces().iter().enumerate().map(row).collect()
    }

    /// Forgets learnt MACs: all MACs, or the MACs of an interface or an address.
    fn flush(&self, what: Option<&str>) -> Result<String, String> {
        let ports = 0..u8::try_from(self.interfaces.len()).unwrap_or(u8::MAX);
        match what.map(|what| (what, what.parse::<IpAddr>())) {
            None => ports.for_each(|port| self.locked().neighbours.forget(port)),
            Some((_, Ok(address))) => {
                let routing = self.locked();
                let forget = |port| routing.neighbours.forget_one(&Gateway { port, address });
                if !ports.map(forget).fold(false, |any, known| any | known) {
                    return Err(format!("no MAC of {address} is known"));
                }
            }
            Some((name, Err(_))) => drop(self.forget_hosts(self.port(name)?)),
        }
        self.done()
    }

    /// Replaces an interface's addresses by a reload with otherwise the same set-up.
    fn set_addresses(&mut self, interface: &str, addresses: &[&str]) -> Result<(), String> {
        let port = self.port(interface)?;
        let mut setup = self.setup.clone();
        let entry = &mut setup.interfaces[usize::from(port)];
        entry.addresses = addresses.iter().map(|&address| address.to_owned()).collect();
        let late = self.reload(&setup).map_err(|error| format!("{error:#}"))?;
        late.map_or(Ok(()), Err)
    }
}

const OWN_STATES: &str =
    "with `state = \"per_worker\"` or `\"none\"` other threads do not see states; use `sharded`";

fn json(answer: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}

/// An answer with an error.
pub fn error_of(answer: &str) -> Option<String> {
    serde_json::from_str::<Answer>(answer).ok().and_then(|answer| answer.error)
}
