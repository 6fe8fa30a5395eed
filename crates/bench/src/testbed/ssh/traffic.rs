//! What sends and counts in a laboratory, whichever generator it is.

use super::rack::{Rack, Reached};
use crate::agent::{AgentLoad, AgentTraffic, End};
use crate::error::BenchError;
use crate::lab::links::{Links, Peer};
use crate::trial::Traffic;
use fwdlab_model::lab::Role;
use fwdlab_model::plan::Trial;
use fwdlab_model::settings::{Family, GeneratorKind, Settings};
use fwdlab_packet::template::FlowRange;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time beside a trial's phases after which whatever sends ends by itself.
const LEEWAY: Duration = Duration::from_secs(60);

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// Of the variant.
    pub(super) settings: &'a Settings,
    /// Identity of the run.
    pub(super) run_id: u32,
    /// Packets per second of all senders together; none for as fast as possible.
    pub(super) rate_pps: Option<f64>,
    /// Phases: whatever is left alone ends some time after them.
    pub(super) trial: &'a Trial,
}

/// Senders and receiver that are ready.
pub(super) enum Armed<'a> {
    /// fwdlab's own.
    Agents(AgentTraffic<'a>),
}

/// Makes them ready.
///
/// # Errors
/// When one of them can't be.
pub(super) fn arm<'a>(
    rack: &'a Rack,
    links: &Links,
    wanted: &Wanted<'_>,
) -> Result<Armed<'a>, BenchError> {
    match wanted.settings.traffic.generator {
        GeneratorKind::Fwdlab => Ok(Armed::Agents(agents(rack, links, wanted)?)),
        other => Err(BenchError::Refused(format!(
            "generator = \"{}\" does not run in laboratories yet: take \"fwdlab\"",
            other.name()
        ))),
    }
}

impl Armed<'_> {
    /// As a trial drives it.
    pub(super) fn as_traffic(&mut self) -> &mut dyn Traffic {
        match self {
            Armed::Agents(agents) => agents,
        }
    }

    /// What is used, by name.
    pub(super) fn facts(&self) -> BTreeMap<String, String> {
        match self {
            Armed::Agents(agents) => agents.facts(),
        }
    }
}

fn agents<'a>(
    rack: &'a Rack,
    links: &Links,
    wanted: &Wanted<'_>,
) -> Result<AgentTraffic<'a>, BenchError> {
    let (traffic, trial) = (&wanted.settings.traffic, wanted.trial);
    let threads = usize::from(wanted.settings.testbed.senders.max(1));
    let mut senders = Vec::new();
    for peer in &links.ingress.peers {
        let reached = rack.named(&peer.host)?;
        let (sending, _) = cpus(reached, threads);
        senders.push((end(reached, peer, sending), links.ingress.mac));
    }
    let peer = links.egress.peers.first();
    let peer = peer.ok_or_else(|| BenchError::Refused("the laboratory has no receiver".into()))?;
    let reached = rack.named(&peer.host)?;
    let receiver = end(reached, peer, cpus(reached, threads).1);
    let load = AgentLoad {
        family: match traffic.family {
            Family::Inet => fwdlab_packet::Family::Inet,
            Family::Inet6 => fwdlab_packet::Family::Inet6,
        },
        frame_size: traffic.frame_size.0,
        flows: FlowRange {
            sources: traffic.flows.sources,
            destinations: traffic.flows.destinations,
        },
        run_id: wanted.run_id,
        rate_pps: wanted.rate_pps,
        timestamps: traffic.timestamps,
        engine: wanted.settings.testbed.engine,
        at_most: Duration::from_nanos(trial.warmup_ns + trial.duration_ns + trial.drain_ns)
            + LEEWAY,
    };
    AgentTraffic::arm(&senders, &receiver, &load)
}

fn end<'a>(reached: &'a Reached, peer: &Peer, cpus: Vec<u16>) -> End<'a> {
    End {
        host: reached.host(),
        program: reached.program.clone(),
        interface: peer.interface.clone(),
        mac: peer.mac,
        cpus,
    }
}

/// CPUs that send and CPUs that receive on a host, of those that the file names: the first
/// ones send, one a thread, where it does both.
fn cpus(reached: &Reached, threads: usize) -> (Vec<u16>, Vec<u16>) {
    let (host, all) = (&reached.described, &reached.described.cpus);
    let sending: Vec<u16> = all.iter().copied().take(threads).collect();
    match (host.is(Role::Sender), host.is(Role::Receiver)) {
        (true, true) => {
            let receiving = all.iter().copied().skip(threads).collect();
            (sending, receiving)
        }
        _ => (sending, all.clone()),
    }
}
