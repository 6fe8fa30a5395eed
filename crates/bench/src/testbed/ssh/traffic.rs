//! Senders and receiver in a laboratory, with any generator.

use super::rack::Rack;
use crate::agent::{AgentLoad, AgentTraffic, End};
use crate::error::BenchError;
use crate::generator::{self, GeneratorHosts, Load, Outcome};
use crate::host::connected::ConnectedHost;
use crate::links::{Links, Peer};
use crate::path::Path;
use crate::testbed::TrafficRequest;
use crate::trial::CountedTraffic;
use crate::trial::{Traffic, longest_ns};
use fwdlab_model::lab::Role;
use fwdlab_model::plan::Trial;
use fwdlab_model::settings::{GeneratorKind, Rewrites, Settings, TrafficSettings};
use fwdlab_packet::{Stream, Template};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time after a trial's phases at which unattended senders stop.
const LEEWAY: Duration = Duration::from_secs(60);

/// Armed senders and receiver.
pub(super) enum Armed<'a> {
    /// fwdlab's own agents.
    Agents(Box<AgentTraffic<'a>>),
    /// An external generator.
    Counted(&'static str, Box<CountedTraffic<'a>>),
}

/// Arms senders and receiver.
///
/// # Errors
/// Returns an error if one of them fails.
pub(super) fn arm<'a>(
    rack: &'a Rack,
    links: &Links,
    request: &TrafficRequest<'_>,
) -> Result<Armed<'a>, BenchError> {
    if request.flood.is_some() {
        return Err(BenchError::Refused(
            "no host of a laboratory sends a flood beside the traffic\n  next step: kind = \
             \"netns\" or \"memory\" in [testbed]"
                .into(),
        ));
    }
    match request.settings.traffic.generator {
        GeneratorKind::Fwdlab => Ok(Armed::Agents(Box::new(agents(rack, links, request)?))),
        other => {
            let (ends, load) = external(rack, links, request)?;
            let generator = generator::open(other, ends)?;
            let counted = CountedTraffic::new(generator, &load)?;
            Ok(Armed::Counted(other.name(), Box::new(counted)))
        }
    }
}

impl Armed<'_> {
    /// Returns them as the traffic of a trial.
    pub(super) fn as_traffic(&mut self) -> &mut dyn Traffic {
        match self {
            Armed::Agents(agents) => agents.as_mut(),
            Armed::Counted(_, counted) => counted.as_mut(),
        }
    }

    /// Mechanisms and versions in use, by name.
    pub(super) fn facts(&self) -> BTreeMap<String, String> {
        match self {
            Armed::Agents(agents) => agents.facts(),
            Armed::Counted(_, counted) => {
                let edges = counted.capabilities().edges.describe();
                BTreeMap::from([("window's edges".to_owned(), edges)])
            }
        }
    }

    /// Ends everything, and returns remarks and facts in addition to the counts.
    ///
    /// # Errors
    /// Returns an error if the generator fails at the end.
    pub(super) fn end(self) -> Result<Outcome, BenchError> {
        match self {
            Armed::Agents(_) => Ok(Outcome::default()),
            Armed::Counted(name, counted) => {
                let mut outcome = counted.finish()?;
                let facts = std::mem::take(&mut outcome.facts).into_iter();
                outcome.facts =
                    facts.map(|(key, value)| (format!("{name} {key}"), value)).collect();
                Ok(outcome)
            }
        }
    }
}

/// Hosts and load of an external generator, which has one sender.
fn external<'a>(
    rack: &'a Rack,
    links: &Links,
    request: &TrafficRequest<'_>,
) -> Result<(GeneratorHosts<'a>, Load), BenchError> {
    let traffic = &request.settings.traffic;
    if request.limit.is_some() {
        return Err(BenchError::Refused(format!(
            "generator = \"{}\" is not asked for counted bursts: leave `generator` out",
            traffic.generator.name()
        )));
    }
    let [peer] = links.ingress.peers.as_slice() else {
        return Err(BenchError::Refused(format!(
            "generator = \"{}\" sends from one host: the laboratory has two senders",
            traffic.generator.name()
        )));
    };
    let threads = usize::from(request.settings.testbed.senders.max(1));
    let far = links.egress.peers.first();
    let far = far.ok_or_else(|| BenchError::Refused("the laboratory has no receiver".into()))?;
    let (sender, receiver) = (rack.named(&peer.host)?, rack.named(&far.host)?);
    let ends = GeneratorHosts {
        sender: sender.host(),
        sender_interface: peer.interface.clone(),
        sender_cpus: cpus(sender, threads).0,
        receiver: receiver.host(),
        receiver_interface: far.interface.clone(),
        receiver_cpus: cpus(receiver, threads).1,
        server: server(traffic, sender),
        options: traffic.generator_options.clone(),
    };
    let next_hop_mac = next_hop(request.settings, links);
    // The generator takes addresses and ports from the template, and the frame size separately.
    // Plans with a mix of frame sizes are limited to fwdlab's own generator.
    let bytes = traffic.frame_size.most();
    let size = bytes.max(Template::smallest_frame(traffic.family));
    let stream = Stream { frame_size: size.into(), ..traffic.stream() };
    let template = Template::new(&stream, request.run_id, peer.mac, next_hop_mac);
    let load = Load {
        template,
        stream: Stream { frame_size: bytes.into(), ..stream },
        source_mac: peer.mac,
        next_hop_mac,
        rate_pps: request.rate_pps,
        at_most: at_most(request.trial),
    };
    Ok((ends, load))
}

/// Address of a generator's server: by default the sending host at the generator's usual port.
fn server(traffic: &TrafficSettings, sender: &ConnectedHost) -> Option<String> {
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

/// Destination MAC of test frames: the DUT's, or the receiver's if the DUT is a bridge.
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
    request: &TrafficRequest<'_>,
) -> Result<AgentTraffic<'a>, BenchError> {
    let traffic = &request.settings.traffic;
    let threads = usize::from(request.settings.testbed.senders.max(1));
    let mut senders = Vec::new();
    for peer in &links.ingress.peers {
        let reached = rack.named(&peer.host)?;
        let (sending, _) = cpus(reached, threads);
        senders.push((end(reached, peer, sending), next_hop(request.settings, links)));
    }
    let peer = links.egress.peers.first();
    let peer = peer.ok_or_else(|| BenchError::Refused("the laboratory has no receiver".into()))?;
    let reached = rack.named(&peer.host)?;
    let receiver = end(reached, peer, cpus(reached, threads).1);
    let path = Path::new(request.settings, links)?;
    let load = AgentLoad {
        stream: path.sent,
        arriving: path.arriving,
        run_id: request.run_id,
        rate_pps: request.rate_pps,
        limit: request.limit,
        timestamps: traffic.timestamps,
        sampled: traffic.checks.is_sample(request.rate_pps),
        engine: request.settings.testbed.engine,
        hops: u8::from(request.settings.dut.rewrites() == Rewrites::Route),
        // A bridge does not change the MAC addresses of the senders.
        last_mac: match request.settings.dut.rewrites() {
            Rewrites::Route | Rewrites::Mac => Some(links.egress.mac),
            Rewrites::None => None,
        },
        translated: path.translated,
        at_most: at_most(request.trial),
    };
    AgentTraffic::arm(&senders, &receiver, &load)
}

fn end<'a>(reached: &'a ConnectedHost, peer: &Peer, cpus: Vec<u16>) -> End<'a> {
    End {
        host: reached.host(),
        program: reached.program.clone(),
        interface: peer.interface.clone(),
        mac: peer.mac,
        cpus,
    }
}

/// Sending and receiving CPUs of a host, from the lab file. If the host does both, the first ones
/// send, one per thread.
fn cpus(reached: &ConnectedHost, threads: usize) -> (Vec<u16>, Vec<u16>) {
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
