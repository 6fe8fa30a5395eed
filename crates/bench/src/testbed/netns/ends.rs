//! Senders and receiver in the namespaces next to the DUT.

use super::{Netns, receiver, spread};
use crate::arrivals;
use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::dut::{Dut, Reading, counters, queues};
use crate::engines::{open_receiver, open_sender};
use crate::error::BenchError;
use crate::host::{Host, LocalHost, NamespaceHost};
use crate::links::{EGRESS, INGRESS, mac};
use crate::path::Path;
use crate::testbed::cpu_times::CpuTimes;
use crate::testbed::rig::awaited;
use crate::testbed::steal::StealMonitor;
use crate::testbed::traffic::NetnsTraffic;
use crate::testbed::{Armed, Endpoints, TrafficRequest, bidirectional};
use crate::trial::OpeningConditions;
use crate::wiring::Wiring;
use fwdlab_model::record::ReceiverPlace;
use fwdlab_model::record::queues::{Direction, counter_name};
use fwdlab_model::settings::{Directions, Engine, Rewrites, Settings};
use fwdlab_netio::sender::{self, Counted};
use fwdlab_netio::{Flood, SenderConfig, Watch};
use fwdlab_packet::arrivals::Expected;
use fwdlab_packet::{Template, Turns};
use std::collections::BTreeMap;

/// Frames per batch at the maximum rate. Chosen by trial of 8 to 256: smaller batches pay more for
/// flushing, larger ones gain nothing measurable.
const BATCH: u32 = 64;

/// Both ends of a run.
pub(super) struct NetnsEnds<'a> {
    pub(super) testbed: &'a Netns,
    pub(super) wiring: Wiring,
    pub(super) placement: Placement,
    /// The sender's namespace, which counts frames that found the DUT's ring full.
    pub(super) sender: NamespaceHost,
    /// The receiver's namespace, which counts frames of the reverse direction.
    pub(super) receiver: NamespaceHost,
    /// True if packets flow in both directions.
    pub(super) is_both: bool,
}

impl Netns {
    /// Arms senders and receivers of `wiring`, of each direction; `threads` forward.
    pub(in crate::testbed) fn arm_all(
        &self,
        wiring: &Wiring,
        placement: &Placement,
        request: &TrafficRequest<'_>,
    ) -> Result<Vec<NetnsTraffic>, BenchError> {
        Ok(match request.settings.traffic.directions {
            Directions::One => {
                vec![self.arm(wiring, placement, request, StreamDirection::Forth)?]
            }
            Directions::Both => {
                let half = request.half();
                let arm = |direction| self.arm(wiring, placement, &half, direction);
                vec![arm(StreamDirection::Forth)?, arm(StreamDirection::Back)?]
            }
        })
    }

    /// Arms senders and receiver of one direction.
    fn arm(
        &self,
        wiring: &Wiring,
        placement: &Placement,
        request: &TrafficRequest<'_>,
        direction: StreamDirection,
    ) -> Result<NetnsTraffic, BenchError> {
        let TrafficRequest { settings, run_id, rate_pps, limit, threads, flood, .. } = *request;
        let traffic = &settings.traffic;
        let has_dut = wiring.dut.is_some() || wiring.has_guest;
        let (next_hop, last_hop, hops) = match settings.dut.rewrites() {
            Rewrites::Route if has_dut => (mac::INGRESS, mac::EGRESS, 1),
            Rewrites::Mac if has_dut => (mac::INGRESS, mac::EGRESS, 0),
            Rewrites::Route | Rewrites::Mac | Rewrites::None => (mac::RECEIVER, mac::SENDER, 0),
        };
        let path = Path::new(settings, &self.links)?;
        let path = if has_dut { path } else { path.direct() };
        let forth = |stream| Template::new(stream, run_id, mac::SENDER, next_hop);
        let (sent, arriving) = (forth(&path.sent), forth(&path.arriving));
        // In the reverse direction all addresses are swapped: the receiver answers the packets that
        // it receives, and the answers return from the address that the packets were sent to.
        let (template, expected, translated, to, from) = match direction {
            StreamDirection::Forth => {
                (sent, arriving, path.translated, (mac::RECEIVER, last_hop), "g0")
            }
            StreamDirection::Back => {
                let back = |template: Template| template.answers(mac::RECEIVER, last_hop);
                (back(arriving), back(sent), None, (mac::SENDER, next_hop), "r0")
            }
        };
        let flows = template.flows();
        let (sending, receiving, at) = match direction {
            StreamDirection::Forth => (&wiring.sender, &wiring.receiver, "r0"),
            StreamDirection::Back => (&wiring.receiver, &wiring.sender, "g0"),
        };
        let watch = Watch::Packets(Box::new(Expected {
            template: expected,
            destination_mac: Some(to.0),
            source_mac: Some(to.1),
            translated,
            hops,
            senders: placement.senders.len() as u8,
            timestamps: traffic.timestamps,
            same_clock: true,
            sampled: traffic.checks.is_sample(rate_pps),
        }));
        let receiver = open_receiver(self.receiving, receiving, at, &watch, &placement.dut)?;
        let turns_of = |template: &Template| {
            let turns = match self.is_spread(settings) {
                true => spread::turns(template, settings.dut.queues, placement.senders.len()),
                false => Vec::new(),
            };
            turns.into_iter()
        };
        let mut turns = turns_of(&template);
        let flood = flood.map(|flood| Flood::beside(&template, flood.packets, flood.rate_pps));
        let mut flood_turns = flood.iter().flat_map(|flood| turns_of(flood.template()));
        // Both streams of a sender may catch up simultaneously.
        let streams = placement.senders.len() * (1 + usize::from(flood.is_some()));
        let counted = |number: usize, turns: Option<&Turns>| {
            let all = Counted::packets(limit?);
            Some(match turns {
                Some(turns) => Counted::packets(turns.own_of_first(all.packets)),
                None => all.share(number, placement.senders.len(), flows.count()),
            })
        };
        let senders = placement
            .senders
            .iter()
            .enumerate()
            .map(|(number, &cpu)| {
                let spread = turns.next();
                open_sender(
                    self.engine(settings),
                    &SenderConfig {
                        namespace: sending.clone(),
                        interface: from.into(),
                        cpu,
                        number: number as u8,
                        template: template.clone(),
                        rate_pps: sender::share_of_rate(rate_pps, placement.senders.len()),
                        limit: counted(number, spread.as_ref()),
                        burst: sender::burst(streams),
                        timestamps: traffic.timestamps,
                        spread,
                        batch: BATCH,
                        yields: traffic.directions == Directions::Both,
                        flood: flood.as_ref().map(|flood| {
                            flood.share(number, placement.senders.len(), flood_turns.next())
                        }),
                    },
                )
            })
            .collect::<Result<Vec<_>, _>>()?;
        let checked = arrivals::checked(&watch);
        let sending: Vec<u32> = senders.iter().filter_map(|sender| sender.task()).collect();
        let monitor = StealMonitor::new(placement, threads, &sending);
        Ok(NetnsTraffic {
            senders,
            sent: [0; 4],
            missed: 0,
            receiver,
            checked,
            witness: monitor,
            flood,
        })
    }
}

/// Frames that found the ring behind an end's `interface` full, as counted in its namespace.
pub(in crate::testbed) fn refused(end: &NamespaceHost, interface: &str) -> u64 {
    let text = end.get("/proc/thread-self/net/dev").unwrap_or_default();
    let counters = counters::interface_counters(&text, [interface, interface]);
    let name = format!("{interface} tx_dropped");
    counters.into_iter().filter(|(other, _)| *other == name).map(|(_, n)| n).sum()
}

impl NetnsEnds<'_> {
    /// Live frames vanish without a trace if the interface that they go to does not poll, and a
    /// virtual one polls only with GRO (`veth_xdp_xmit`). A command of the file may have switched it
    /// off.
    ///
    /// # Errors
    /// If that is so.
    fn refuse_deaf_interface(&self, settings: &Settings) -> Result<(), BenchError> {
        let has_commands = !settings.dut.hooks.setup.is_empty();
        let Some(dut) = self.wiring.dut.as_ref().filter(|_| has_commands) else { return Ok(()) };
        if self.testbed.engine(settings) != Engine::Xdp {
            return Ok(());
        }
        // They go in one direction: in two, other engines send.
        let show = ["ip", "netns", "exec", dut.name(), "ethtool", "-k", INGRESS];
        let features = LocalHost.run(&show, "")?;
        match features.lines().any(|line| line == "generic-receive-offload: off") {
            false => Ok(()),
            true => Err(BenchError::Refused(format!(
                "{INGRESS} does not receive XDP live frames after `setup`, because its generic \
                 receive offload is off; next step: write engine = \"xsk\" in [testbed], or give \
                 --set testbed.engine=xsk"
            ))),
        }
    }
}

/// A direction of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamDirection {
    /// From the sender to the receiver.
    Forth,
    /// From the receiver to the sender.
    Back,
}

/// Excludes threads that share the senders' CPUs because of the traffic itself from the senders'
/// lost time: the receivers' `polling` threads, and the senders of the other direction.
fn exclude_own_threads(armed: &mut [NetnsTraffic], polling: &[u32]) {
    let tasks: Vec<Vec<u32>> = armed
        .iter()
        .map(|traffic| traffic.senders.iter().filter_map(|sender| sender.task()).collect())
        .collect();
    for (number, traffic) in armed.iter_mut().enumerate() {
        let others = tasks.iter().enumerate().filter(|(other, _)| *other != number);
        let others = others.flat_map(|(_, tasks)| tasks).copied();
        let threads: Vec<u32> = polling.iter().copied().chain(others).collect();
        if !threads.is_empty() {
            traffic.witness.receiver_beside_senders(&threads);
        }
    }
}

impl Endpoints for NetnsEnds<'_> {
    fn arm<'a>(
        &'a self,
        request: &TrafficRequest<'_>,
        findings: &mut Findings,
    ) -> Result<(Box<dyn Armed + 'a>, CpuTimes), BenchError> {
        let (wiring, placement) = (&self.wiring, &self.placement);
        let is_both = request.settings.traffic.directions == Directions::Both;
        self.refuse_deaf_interface(request.settings)?;
        if request.timed {
            let armed = self.testbed.arm_all(wiring, placement, request)?;
            receiver::poll_at_once(wiring, findings);
            let place = receiver::place(&[], placement);
            return Ok((
                bidirectional::through_device(armed, request.settings),
                CpuTimes::open(request.threads, &[], place, &[]),
            ));
        }
        let mut armed = self.testbed.arm_all(wiring, placement, request)?;
        let polling = receiver::poll_or_say(wiring, placement, is_both, findings);
        let place = receiver::place(&polling, placement);
        let polls_on_senders = place == ReceiverPlace::Sender;
        exclude_own_threads(&mut armed, if polls_on_senders { &polling } else { &[] });
        let polled_on = if polling.is_empty() { &[] } else { &placement.receiver[..] };
        let times = CpuTimes::open(request.threads, &polling, place, polled_on);
        Ok((bidirectional::through_device(armed, request.settings), times))
    }

    fn awaited(&self, settings: &Settings) -> OpeningConditions {
        awaited(settings, self.testbed.rounds(settings, &self.placement))
    }

    fn complete(&self, reading: &mut Reading, dut: &dyn Dut) {
        // Veth always counts a frame that finds the ring full at the sender's end; at the DUT's end
        // only live frames (`veth_xmit`, `veth_xdp_xmit`), together with frames that an XDP program
        // dropped after they were received: the program reports those itself.
        let mut add = |lost: u64, interface: &str| {
            let dropped = reading.machine.entry(format!("{interface} rx_dropped")).or_default();
            *dropped = if dut.is_program() { lost } else { lost.max(*dropped) };
        };
        add(refused(&self.sender, "g0"), INGRESS);
        if self.is_both {
            add(refused(&self.receiver, "r0"), EGRESS);
        }
        // Veth counts the packets of a transmit queue at the receiving peer, queue by queue.
        let peer = ["ip", "netns", "exec", self.wiring.receiver.name(), "ethtool", "-S", "r0"];
        let text = LocalHost.run(&peer, "").unwrap_or_default();
        let sent = queues::packets(&text).into_iter();
        let sent = sent.filter(|((direction, _), _)| *direction == Direction::Receive);
        let of_dut = |queue| counter_name(EGRESS, Direction::Transmit, queue);
        reading.machine.extend(sent.map(|((_, queue), n)| (of_dut(queue), n)));
    }

    fn lost_at_receiver(&self, before: &Reading, after: &Reading) -> Option<u64> {
        // A veth counts on its own end the frames that its peer's ring refuses. If the device
        // itself polls the receiver's end, a full ring has other causes.
        let names = &receiver::REFUSED[..if self.is_both { 2 } else { 1 }];
        let dropped = |reading: &Reading| {
            names.iter().map(|name| reading.machine.get(*name).copied()).sum::<Option<u64>>()
        };
        let polls_elsewhere = !self.placement.receiver.is_empty();
        polls_elsewhere.then(|| Some(dropped(after)?.saturating_sub(dropped(before)?)))?
    }

    fn facts(&self, settings: &Settings) -> BTreeMap<String, String> {
        let (testbed, placement) = (self.testbed, &self.placement);
        BTreeMap::from([
            ("sender".into(), testbed.sender(settings).to_owned()),
            ("receiver".into(), testbed.receiver().to_owned()),
            ("receive queues".into(), testbed.filled_by(settings).to_owned()),
            ("sender CPUs".into(), format!("{:?}", placement.senders)),
            ("dut CPUs".into(), format!("{:?}", placement.dut)),
            ("control CPUs".into(), format!("{:?}", placement.control)),
            ("arrangement".into(), format!("{:?}", placement.arrangement).to_lowercase()),
        ])
    }
}
