//! What sends and counts in a laboratory, whichever generator it is.

use super::rack::Rack;
use crate::agent::{AgentLoad, AgentTraffic, End};
use crate::error::BenchError;
use crate::generator::{self, CountedTraffic, Ends, Load, Outcome};
use crate::lab::reached::Reached;
use crate::links::{Links, Peer};
use crate::testbed::Wanted;
use crate::trial::{Traffic, longest_ns};
use fwdlab_model::lab::Role;
use fwdlab_model::plan::Trial;
use fwdlab_model::settings::{GeneratorKind, Rewrites, Settings, TrafficSettings};
use fwdlab_packet::Template;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time beside a trial's phases after which whatever sends ends by itself.
const LEEWAY: Duration = Duration::from_secs(60);

/// Senders and receiver that are ready.
pub(super) enum Armed<'a> {
    /// fwdlab's own.
    Agents(Box<AgentTraffic<'a>>),
    /// Somebody else's.
    Counted(&'static str, Box<CountedTraffic<'a>>),
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
        GeneratorKind::Fwdlab => Ok(Armed::Agents(Box::new(agents(rack, links, wanted)?))),
        other => {
            let (ends, load) = others(rack, links, wanted)?;
            let generator = generator::open(other, ends)?;
            let counted = CountedTraffic::new(generator, &load)?;
            Ok(Armed::Counted(other.name(), Box::new(counted)))
        }
    }
}

impl Armed<'_> {
    /// As a trial drives it.
    pub(super) fn as_traffic(&mut self) -> &mut dyn Traffic {
        match self {
            Armed::Agents(agents) => agents.as_mut(),
            Armed::Counted(_, counted) => counted.as_mut(),
        }
    }

    /// What is used, by name.
    pub(super) fn facts(&self) -> BTreeMap<String, String> {
        match self {
            Armed::Agents(agents) => agents.facts(),
            Armed::Counted(_, counted) => {
                let edges = counted.capabilities().edges.told();
                BTreeMap::from([("window's edges".to_owned(), edges)])
            }
        }
    }

    /// Ends everything, and tells what there was to tell beside the counts.
    ///
    /// # Errors
    /// What the generator met at the end.
    pub(super) fn end(self) -> Result<Outcome, BenchError> {
        match self {
            Armed::Agents(_) => Ok(Outcome::default()),
            Armed::Counted(name, counted) => {
                let mut outcome = counted.finish()?;
                let own = std::mem::take(&mut outcome.facts).into_iter();
                outcome.facts = own.map(|(key, value)| (format!("{name} {key}"), value)).collect();
                Ok(outcome)
            }
        }
    }
}

/// The ends and the load of a generator that is not ours. It has one sender.
fn others<'a>(
    rack: &'a Rack,
    links: &Links,
    wanted: &Wanted<'_>,
) -> Result<(Ends<'a>, Load), BenchError> {
    let traffic = &wanted.settings.traffic;
    let [peer] = links.ingress.peers.as_slice() else {
        return Err(BenchError::Refused(format!(
            "generator = \"{}\" sends from one host: the laboratory has two senders",
            traffic.generator.name()
        )));
    };
    let threads = usize::from(wanted.settings.testbed.senders.max(1));
    let far = links.egress.peers.first();
    let far = far.ok_or_else(|| BenchError::Refused("the laboratory has no receiver".into()))?;
    let (sender, receiver) = (rack.named(&peer.host)?, rack.named(&far.host)?);
    let ends = Ends {
        sender: sender.host(),
        sender_interface: peer.interface.clone(),
        sender_cpus: cpus(sender, threads).0,
        receiver: receiver.host(),
        receiver_interface: far.interface.clone(),
        receiver_cpus: cpus(receiver, threads).1,
        server: server(traffic, sender),
        options: traffic.generator_options.clone(),
    };
    let (family, flows) = (traffic.family, wanted.settings.traffic.flows);
    let next_hop_mac = next_hop(wanted.settings, links);
    // It takes addresses and ports from the frame, and the size from beside it.
    let size = traffic.frame_size.0.max(Template::smallest_frame(family));
    let template = Template::new(family, size, flows, wanted.run_id, peer.mac, next_hop_mac);
    let load = Load {
        template,
        family,
        frame_size: traffic.frame_size.0,
        flows,
        source_mac: peer.mac,
        next_hop_mac,
        rate_pps: wanted.rate_pps,
        at_most: at_most(wanted.trial),
    };
    Ok((ends, load))
}

/// Where a generator that is a server listens: on the sending host, at its usual port,
/// where the experiment does not say it.
fn server(traffic: &TrafficSettings, sender: &Reached) -> Option<String> {
    if !traffic.generator_server.is_empty() {
        return Some(traffic.generator_server.clone());
    }
    let destination = sender.described.ssh.as_deref().unwrap_or("127.0.0.1");
    let host = destination.strip_prefix("ssh://").unwrap_or(destination);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    match traffic.generator {
        GeneratorKind::Trex => Some(format!("{host}:4501")),
        GeneratorKind::Otg => Some(format!("https://{host}:8443")),
        _ => None,
    }
}

/// Whom packets are sent to: the DUT, or the receiver where the DUT is a bridge.
fn next_hop(settings: &Settings, links: &Links) -> [u8; 6] {
    let receiver = links.egress.peers.first().map(|peer| peer.mac);
    match settings.dut.rewrites() {
        Rewrites::Route | Rewrites::Mac => links.ingress.mac,
        Rewrites::None => receiver.unwrap_or(links.ingress.mac),
    }
}

fn at_most(trial: &Trial) -> Duration {
    Duration::from_nanos(longest_ns(trial)) + LEEWAY
}

fn agents<'a>(
    rack: &'a Rack,
    links: &Links,
    wanted: &Wanted<'_>,
) -> Result<AgentTraffic<'a>, BenchError> {
    let traffic = &wanted.settings.traffic;
    let threads = usize::from(wanted.settings.testbed.senders.max(1));
    let mut senders = Vec::new();
    for peer in &links.ingress.peers {
        let reached = rack.named(&peer.host)?;
        let (sending, _) = cpus(reached, threads);
        senders.push((end(reached, peer, sending), next_hop(wanted.settings, links)));
    }
    let peer = links.egress.peers.first();
    let peer = peer.ok_or_else(|| BenchError::Refused("the laboratory has no receiver".into()))?;
    let reached = rack.named(&peer.host)?;
    let receiver = end(reached, peer, cpus(reached, threads).1);
    let load = AgentLoad {
        family: traffic.family,
        frame_size: traffic.frame_size.0,
        flows: wanted.settings.traffic.flows,
        run_id: wanted.run_id,
        rate_pps: wanted.rate_pps,
        timestamps: traffic.timestamps,
        engine: wanted.settings.testbed.engine,
        hops: u8::from(wanted.settings.dut.rewrites() == Rewrites::Route),
        // A bridge leaves the MAC addresses of one or more senders as they are.
        last_mac: match wanted.settings.dut.rewrites() {
            Rewrites::Route | Rewrites::Mac => Some(links.egress.mac),
            Rewrites::None => None,
        },
        at_most: at_most(wanted.trial),
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
