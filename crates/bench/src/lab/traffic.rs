//! `lab check --traffic`: verifies a laboratory's cabling and measures the senders'
//! ceilings by sending packets.
//!
//! Agents send on the other hosts, over each cable; on the DUT only counters are read. The hosts
//! are leased during the check: its packets would disturb other measurements. Nothing remains on
//! any host but a copy of fwdlab (see [`crate::agent::program()`]).

use super::cable::{self, CableReport};
use super::cable_ends::{DutEnd, FarEnd};
use super::ceiling::{self, CeilingReport};
use super::{failed, mac_of};
use crate::agent::{self, End, ThisProgram};
use crate::error::BenchError;
use crate::host::SshSettings;
use crate::host::connected::ConnectedHost;
use crate::lease::Leases;
use crate::probe::Probe;
use fwdlab_model::Lab;
use fwdlab_model::lab::{Cable, Role, Side};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Run id of the first cable's packets; each cable has its own.
const FIRST_RUN_ID: u32 = 0x6c61_6200;

/// Results of the check with packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrafficReport {
    /// Errors that prevented checks; usually empty.
    pub obstacles: Vec<Probe>,
    /// Results of each cable, in the order of the file.
    pub cables: Vec<CableReport>,
    /// Results of each sender's interface, in the order of its cables.
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

    /// True if everything works.
    pub fn is_fine(&self) -> bool {
        self.probes().all(|probe| probe.works)
    }
}

/// Sends packets along each cable in turn, and then as many as possible from each sender, until
/// `stopped`.
///
/// # Errors
/// Fails if another controller holds a host ([`BenchError::Held`]), or if leases are unavailable.
pub fn traffic(
    lab: &Lab,
    settings: &SshSettings,
    own: ThisProgram<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<TrafficReport, BenchError> {
    let mut report = TrafficReport::default();
    let mut hosts: BTreeMap<&str, ConnectedHost> = BTreeMap::new();
    for described in &lab.hosts {
        match ConnectedHost::connect(described, settings) {
            Ok(connected) => drop(hosts.insert(&described.name, connected)),
            Err(error) => report.obstacles.push(failed(format!("host {}", described.name), error)),
        }
    }
    // Leases the reachable hosts: a controller that needs all hosts then cannot take any of them.
    let leases = Leases::take_even_sick(hosts.values(), lab)?;
    hosts.retain(|name, connected| {
        // The DUT needs no program.
        if connected.described.is(Role::Dut) {
            return true;
        }
        match agent::program(connected.host(), own, None) {
            Ok(program) => connected.program = program,
            Err(error) => {
                report.obstacles.push(failed(format!("host {name}"), error));
                return false;
            }
        }
        true
    });
    let interfaces: BTreeSet<String> =
        lab.cables.iter().map(|cable| cable.dut.interface.clone()).collect();
    let interfaces: Vec<String> = interfaces.into_iter().collect();
    let mut run_id = FIRST_RUN_ID;
    let mut ceilings = Vec::new();
    // True while this process holds the hosts.
    let may_continue = |report: &mut TrafficReport| match leases.renew() {
        Ok(()) => !stopped(),
        Err(error) => {
            report.obstacles.push(failed("leases".to_owned(), error));
            false
        }
    };
    for cable in &lab.cables {
        let (Some(near), Some(far)) =
            (hosts.get(cable.dut.host.as_str()), hosts.get(cable.far.host.as_str()))
        else {
            continue; // reported above
        };
        if !may_continue(&mut report) {
            return Ok(report);
        }
        let (far, dut) = match (far_end(far, cable), dut_end(near, cable, &interfaces)) {
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
        if !may_continue(&mut report) {
            break;
        }
        report.ceilings.push(ceiling::measure(far, dut, run_id));
        run_id += 1;
    }
    Ok(report)
}

fn side(lab: &Lab, cable: &Cable) -> Option<Side> {
    let host = lab.host(&cable.dut.host)?;
    let interface = host.interfaces.iter().find(|i| i.name == cable.dut.interface)?;
    Some(interface.side)
}

/// Far end of a cable; `far` is its host.
fn far_end<'a>(far: &'a ConnectedHost, cable: &Cable) -> Result<FarEnd<'a>, BenchError> {
    let interface = cable.far.interface.clone();
    let mac = mac(far, &interface)?;
    let (program, cpus) = (far.program.clone(), far.described.cpus.clone());
    let end = End { host: far.host(), program, interface, mac, cpus };
    Ok(FarEnd { name: cable.far.to_string(), end })
}

/// End of a cable at the DUT.
fn dut_end<'a>(
    dut: &'a ConnectedHost,
    cable: &Cable,
    interfaces: &'a [String],
) -> Result<DutEnd<'a>, BenchError> {
    let interface = cable.dut.interface.clone();
    let (mac, system) = (mac(dut, &interface)?, dut.system);
    Ok(DutEnd { name: cable.dut.to_string(), interface, mac, host: dut.host(), system, interfaces })
}

/// MAC from the lab file, otherwise the one that the host reports.
fn mac(connected: &ConnectedHost, interface: &str) -> Result<[u8; 6], BenchError> {
    let described = connected.described.interfaces.iter().find(|i| i.name == interface);
    match described.and_then(|described| described.mac) {
        Some(mac) => Ok(mac.0),
        None => mac_of(connected.host(), connected.system, interface),
    }
}
