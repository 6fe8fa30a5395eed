//! What only packets tell of a laboratory: where its cables lead, and how much its
//! senders can do.
//!
//! Agents send on the hosts beside the DUT, over each cable; the DUT is asked for its
//! counters and told nothing. The only thing that stays on any host is a copy of fwdlab
//! (see [`crate::agent::program()`]).

use super::cable::{self, CableReport};
use super::ceiling::{self, CeilingReport};
use super::ends::{DutEnd, FarEnd};
use super::failed;
use super::link::link;
use crate::agent::{self, End, Own};
use crate::error::BenchError;
use crate::host::{Host, LocalHost, SshHost, SshSettings, facts};
use crate::probe::Probe;
use fwdlab_model::Lab;
use fwdlab_model::lab::{Cable, LabHost, Mac, Role, Side, System};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Identity of the first cable's packets; each has its own.
const FIRST_RUN_ID: u32 = 0x6c61_6200;

/// What was found by sending packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrafficReport {
    /// What stood in the way; usually nothing.
    pub obstacles: Vec<Probe>,
    /// Each cable, in the order of the file.
    pub cables: Vec<CableReport>,
    /// Each sender's interface, in the order of its cables.
    pub ceilings: Vec<CeilingReport>,
}

impl TrafficReport {
    /// All verdicts.
    pub fn probes(&self) -> impl Iterator<Item = &Probe> {
        let cables = self.cables.iter().map(|cable| &cable.probe);
        self.obstacles
            .iter()
            .chain(cables)
            .chain(self.ceilings.iter().map(|ceiling| &ceiling.probe))
    }

    /// True when everything works.
    pub fn is_fine(&self) -> bool {
        self.probes().all(|probe| probe.works)
    }
}

/// Sends packets along each cable, one after the other, and then as many as possible from
/// each sender.
pub fn traffic(lab: &Lab, settings: &SshSettings, own: Own<'_>) -> TrafficReport {
    let mut report = TrafficReport::default();
    let mut hosts: BTreeMap<&str, Reached> = BTreeMap::new();
    for described in &lab.hosts {
        match Reached::new(described, settings, own) {
            Ok(reached) => drop(hosts.insert(&described.name, reached)),
            Err(error) => report.obstacles.push(failed(format!("host {}", described.name), error)),
        }
    }
    let interfaces: BTreeSet<String> =
        lab.cables.iter().map(|cable| cable.dut.interface.clone()).collect();
    let interfaces: Vec<String> = interfaces.into_iter().collect();
    let mut run_id = FIRST_RUN_ID;
    let mut ceilings = Vec::new();
    for cable in &lab.cables {
        let (Some(near), Some(far)) =
            (hosts.get(cable.dut.host.as_str()), hosts.get(cable.far.host.as_str()))
        else {
            continue; // said above
        };
        let (far, dut) = match (far.far(cable), near.dut(cable, &interfaces)) {
            (Ok(far), Ok(dut)) => (far, dut),
            (Err(error), _) | (_, Err(error)) => {
                let name = format!("cable {} to {}", cable.far, cable.dut);
                report.obstacles.push(failed(name, error));
                continue;
            }
        };
        report.cables.push(cable::check(&far, &dut, run_id));
        run_id += 1;
        if side(lab, cable) == Some(Side::Sender) {
            ceilings.push((far, dut));
        }
    }
    for (far, dut) in &ceilings {
        report.ceilings.push(ceiling::measure(far, dut, run_id));
        run_id += 1;
    }
    report
}

fn side(lab: &Lab, cable: &Cable) -> Option<Side> {
    let host = lab.host(&cable.dut.host)?;
    let interface = host.interfaces.iter().find(|i| i.name == cable.dut.interface)?;
    Some(interface.side)
}

/// A host that is reached.
struct Reached<'a> {
    described: &'a LabHost,
    host: Box<dyn Host>,
    system: System,
    /// fwdlab's path; empty on the DUT, which needs none.
    program: String,
}

impl<'a> Reached<'a> {
    fn new(
        described: &'a LabHost,
        settings: &SshSettings,
        own: Own<'_>,
    ) -> Result<Reached<'a>, BenchError> {
        let host: Box<dyn Host> = match &described.ssh {
            None => Box::new(LocalHost),
            Some(destination) => Box::new(SshHost::connect(destination, settings.clone())?),
        };
        let found = facts(host.as_ref())?.system;
        let system = System::ALL.into_iter().find(|system| system.uname() == found);
        let system = system.ok_or_else(|| {
            BenchError::environment(format!("{found} is not known here"), "use Linux or FreeBSD")
        })?;
        let program = match described.is(Role::Dut) {
            true => String::new(),
            false => agent::program(host.as_ref(), own, None)?,
        };
        Ok(Reached { described, host, system, program })
    }

    fn far(&self, cable: &Cable) -> Result<FarEnd<'_>, BenchError> {
        let interface = cable.far.interface.clone();
        let mac = self.mac(&interface)?;
        let (host, program) = (self.host.as_ref(), self.program.clone());
        let cpus = self.described.cpus.clone();
        let end = End { host, program, interface, mac, cpus };
        Ok(FarEnd { name: cable.far.to_string(), end })
    }

    fn dut<'b>(
        &'b self,
        cable: &Cable,
        interfaces: &'b [String],
    ) -> Result<DutEnd<'b>, BenchError> {
        let interface = cable.dut.interface.clone();
        let mac = self.mac(&interface)?;
        let (host, system) = (self.host.as_ref(), self.system);
        Ok(DutEnd { name: cable.dut.to_string(), interface, mac, host, system, interfaces })
    }

    /// What the file says, else what the host says.
    fn mac(&self, interface: &str) -> Result<[u8; 6], BenchError> {
        let described = self.described.interfaces.iter().find(|i| i.name == interface);
        if let Some(mac) = described.and_then(|described| described.mac) {
            return Ok(mac.0);
        }
        let said = link(self.host.as_ref(), self.system, interface)?.mac.unwrap_or_default();
        let mac: Result<Mac, _> = said.parse();
        mac.map(|mac| mac.0).map_err(|error| {
            let name = self.host.name();
            BenchError::environment(
                format!("{interface} on {name} has the MAC `{said}`: {error}"),
                "take an Ethernet interface",
            )
        })
    }
}
