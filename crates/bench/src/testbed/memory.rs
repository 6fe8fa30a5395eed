//! Generator, router and sink connected by shared memory: no privileges, no kernel in the packet
//! path. The router is a separate process; generator and sink are one thread of this process.
//!
//! At the maximum rate the generator waits for free slots: nothing is lost before the router, and
//! the rate is the router's capacity. At a paced rate, packets that find a wire full are lost, as
//! in the receive ring of a network card.

use super::steal::StealMonitor;
use super::traffic::snapshot;
use super::{
    Armed, Choice, Endpoints, Parts, Paths, Rig, RigLocation, Testbed, TrafficRequest,
    bidirectional,
};
use crate::arrivals;
use crate::cpu::{self, Placement};
use crate::dut::findings::Findings;
use crate::dut::program::WIRE_FULL;
use crate::dut::router::Wires;
use crate::dut::undo::Undo;
use crate::dut::{self, Dut, DutContext, Reading};
use crate::error::BenchError;
use crate::generator::Outcome;
use crate::host::LocalHost;
use crate::links::{Links, mac};
use crate::testbed::LoadModel;
use crate::testbed::cpu_times::CpuTimes;
use crate::testbed::rig::awaited;
use crate::trial::{self, Evidence, Observed, OpeningConditions, Snapshot, SystemClock};
use crate::{Observer, Task, calibrate};
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::record::{Arrivals, Latency, ReceiverPlace};
use fwdlab_model::settings::{Arrangement, Directions, DutKind, Settings, TestbedKind};
use fwdlab_model::warning::Warning;
use fwdlab_netio::circuit::traffic::{
    DirectionCounters, FullWireCounter, ReverseTraffic, Traffic, TrafficConfig,
};
use fwdlab_netio::circuit::{Circuit, SLOTS};
use fwdlab_netio::{Flood, Receiver, affinity};
use fwdlab_packet::rss::queues_of_flows;
use fwdlab_packet::{Phase, Template, stamp::PHASES};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The testbed.
#[derive(Debug)]
pub struct Memory {
    paths: Paths,
    cpus: Vec<u16>,
    links: Links,
    /// The wires of the current run.
    wires: Wires,
    choice: Choice,
}

impl Memory {
    /// Opens the testbed, which was chosen for `reasons`.
    ///
    /// # Errors
    /// Returns an error if there is no shared memory, or a DUT of the plan is not a program.
    pub fn open(plan: &Plan, paths: &Paths, reasons: Vec<String>) -> Result<Memory, BenchError> {
        let mut kinds = plan.variants.iter().map(|variant| variant.settings.dut.kind);
        if kinds.any(|kind| kind != DutKind::Router) {
            return Err(BenchError::Refused(
                "packets in memory reach no kernel: write dut.kind = \"router\"".into(),
            ));
        }
        Circuit::new(1)?;
        let choice = Choice { kind: TestbedKind::Memory, simulated: false, reasons };
        let (cpus, links) = (affinity::allowed_cpus()?, Links::of_namespaces());
        Ok(Memory { paths: paths.clone(), cpus, links, wires: Wires::Sockets, choice })
    }
}

impl Memory {
    /// Runs one trial of the generator straight into the sink.
    fn bypassed(
        &self,
        (settings, trial, run_id): (&Settings, &Trial, u32),
        rate_pps: Option<f64>,
        observer: &mut dyn Observer,
    ) -> Result<(Observed, Option<Latency>), BenchError> {
        let (circuits, placement) = (circuits(settings)?, &self.place(settings));
        let config = config(settings, placement, run_id, rate_pps, true);
        let mut traffic = MemoryTraffic::new(config, &circuits, placement, &[])?;
        let observed = trial::plain(&mut traffic, trial, rate_pps, observer)?;
        let delays = trial::Traffic::delays(&mut traffic);
        Ok((observed, delays))
    }
}

/// Creates one wire for each queue.
fn circuits(settings: &Settings) -> Result<Vec<Circuit>, BenchError> {
    (0..settings.dut.queues).map(|_| Ok(Circuit::new(SLOTS)?)).collect()
}

fn config(
    settings: &Settings,
    placement: &Placement,
    run_id: u32,
    rate_pps: Option<f64>,
    bypass: bool,
) -> TrafficConfig {
    let traffic = &settings.traffic;
    let template = Template::new(&traffic.stream(), run_id, mac::SENDER, mac::INGRESS);
    // The packets back are like answers to the packets forth.
    let back = (traffic.directions == Directions::Both).then(|| {
        let template = template.answers(mac::RECEIVER, mac::EGRESS);
        ReverseTraffic {
            wires: queues_of_flows(&template, settings.dut.queues),
            template,
            arriving: (!bypass).then_some((mac::SENDER, mac::INGRESS)),
        }
    });
    TrafficConfig {
        cpu: placement.senders[0],
        // Like receive-side scaling of a network card.
        wires: queues_of_flows(&template, settings.dut.queues),
        template,
        rate_pps,
        timestamps: traffic.timestamps,
        arriving: (!bypass).then_some((mac::RECEIVER, mac::EGRESS)),
        bypass,
        flood: None,
        back,
    }
}

impl Testbed for Memory {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn place(&self, settings: &Settings) -> Placement {
        let testbed = &settings.testbed;
        cpu::place(&self.cpus, testbed.arrangement, 1, settings.dut.queues)
    }

    fn stand<'a>(
        &'a mut self,
        task: Task<'a>,
        observer: &mut dyn Observer,
    ) -> Result<Box<dyn Rig + 'a>, BenchError> {
        let settings = &task.plan.variants[task.run.variants[0]].settings;
        observer.step("wires");
        let circuits = circuits(settings)?;
        let paths = circuits.iter().map(|circuit| circuit.path().display().to_string());
        self.wires = Wires::Memory(paths.collect());
        let placement = self.place(settings);
        let context = DutContext {
            links: &self.links,
            experiment: &self.paths.experiment,
            program: &self.paths.program,
            keeper: &Undo,
            wires: &self.wires,
        };
        Ok(Box::new(MemoryRig {
            dut: dut::open(settings.dut.kind, context),
            links: &self.links,
            perf_file: std::env::temp_dir().join(format!("fwdlab-{}.perf", std::process::id())),
            ends: MemoryEnds { circuits, placement, full: RefCell::new(None) },
        }))
    }

    fn without_dut(
        &self,
        settings: &Settings,
        trial: &Trial,
        run_id: u32,
        observer: &mut dyn Observer,
    ) -> Result<Observed, BenchError> {
        Ok(self.bypassed((settings, trial, run_id), None, observer)?.0)
    }

    fn floor(
        &self,
        (settings, trial, run_id): (&Settings, &Trial, u32),
        rate_pps: f64,
        observer: &mut dyn Observer,
    ) -> Result<Option<Latency>, BenchError> {
        Ok(self.bypassed((settings, trial, run_id), Some(rate_pps), observer)?.1)
    }

    fn calibration_key(&self, settings: &Settings) -> String {
        calibrate::key("memory", "memory", "memory", settings)
    }
}

/// The router and its wires.
struct MemoryRig<'a> {
    dut: Box<dyn Dut + 'a>,
    links: &'a Links,
    perf_file: PathBuf,
    ends: MemoryEnds,
}

impl Rig for MemoryRig<'_> {
    fn parts(&mut self) -> Result<Parts<'_>, BenchError> {
        Ok(Parts {
            host: &LocalHost,
            machine: &LocalHost,
            dut: self.dut.as_mut(),
            links: self.links,
            placement: &self.ends.placement,
            ends: &self.ends,
            clock: &SystemClock,
            pressure: LoadModel::Backpressured,
            reach: RigLocation::Here { simulated: false },
            perf_file: &self.perf_file,
        })
    }

    fn down(self: Box<Self>) -> Result<Vec<Warning>, BenchError> {
        Ok(Vec::new())
    }
}

/// Generator and sink.
struct MemoryEnds {
    circuits: Vec<Circuit>,
    placement: Placement,
    /// Packets lost on full wires, for the traffic armed last.
    full: RefCell<Option<FullWireCounter>>,
}

impl Endpoints for MemoryEnds {
    fn arm<'a>(
        &'a self,
        request: &TrafficRequest<'_>,
        _findings: &mut Findings,
    ) -> Result<(Box<dyn Armed + 'a>, CpuTimes), BenchError> {
        let placement = &self.placement;
        if request.limit.is_some() {
            return Err(BenchError::Refused(
                "in memory the generator waits for free slots: no burst is too long".into(),
            ));
        }
        let mut config =
            config(request.settings, placement, request.run_id, request.rate_pps, false);
        config.flood = request.flood.map(|flood| {
            let flood = Flood::beside(&config.template, flood.packets, flood.rate_pps);
            flood.over_queues(request.settings.dut.queues)
        });
        let traffic = MemoryTraffic::new(config, &self.circuits, placement, request.threads)?;
        *self.full.borrow_mut() = Some(traffic.traffic.full());
        // Generator and sink are one thread. The router's CPU time is attributable only if that
        // thread has a dedicated CPU.
        let (place, cpus) = match placement.arrangement {
            Arrangement::Open => (ReceiverPlace::Sender, &placement.senders[..]),
            Arrangement::Closed => (ReceiverPlace::Unknown, &[][..]),
        };
        Ok((Box::new(traffic), CpuTimes::open(request.threads, &[], place, cpus)))
    }

    fn awaited(&self, settings: &Settings) -> OpeningConditions {
        awaited(settings, 1)
    }

    fn complete(&self, reading: &mut Reading, _dut: &dyn Dut) {
        let full = self.full.borrow().as_ref().map_or(0, FullWireCounter::packets);
        reading.machine.insert(WIRE_FULL.to_owned(), full);
    }

    fn facts(&self, settings: &Settings) -> BTreeMap<String, String> {
        let placement = &self.placement;
        BTreeMap::from([
            ("sender".into(), "memory".to_owned()),
            ("receiver".into(), "memory".to_owned()),
            ("wires".into(), format!("{} of {SLOTS} batches", settings.dut.queues)),
            ("sender CPUs".into(), format!("{:?}", placement.senders)),
            ("dut CPUs".into(), format!("{:?}", placement.dut)),
            ("control CPUs".into(), format!("{:?}", placement.control)),
            ("arrangement".into(), format!("{:?}", placement.arrangement).to_lowercase()),
        ])
    }
}

/// Generator and sink of one run, as seen by a trial.
struct MemoryTraffic {
    traffic: Traffic,
    monitor: StealMonitor,
    /// Flood in addition to the traffic.
    flood: Option<Flood>,
    /// Last snapshot of the reverse direction.
    reverse: Snapshot,
}

impl MemoryTraffic {
    fn new(
        config: TrafficConfig,
        circuits: &[Circuit],
        placement: &Placement,
        workers: &[u32],
    ) -> Result<MemoryTraffic, BenchError> {
        let flood = config.flood.clone();
        let traffic = Traffic::new(config, circuits)?;
        let monitor = StealMonitor::new(placement, workers, &[traffic.task()]);
        Ok(MemoryTraffic { traffic, monitor, flood, reverse: Snapshot::default() })
    }
}

impl Armed for MemoryTraffic {
    fn traffic(&mut self) -> &mut dyn trial::Traffic {
        self
    }

    fn end(self: Box<Self>) -> Result<Outcome, BenchError> {
        let mut outcome = Outcome::default();
        let returned = self.traffic.returned();
        if returned > 0 {
            outcome.facts.insert("packets back to the sender".into(), returned.to_string());
        }
        Ok(outcome)
    }
}

impl trial::Traffic for MemoryTraffic {
    fn start(&mut self) -> Result<(), BenchError> {
        self.traffic.start();
        Ok(())
    }

    fn set_phase(&mut self, phase: Phase) {
        self.traffic.set_phase(phase);
    }

    fn set_rate(&mut self, rate_pps: f64) -> Result<(), BenchError> {
        self.traffic.set_rate(rate_pps);
        Ok(())
    }

    fn snapshot(&mut self) -> Snapshot {
        // Arrivals are read first: a flood must not seem to arrive before it was sent.
        let received = |direction: &DirectionCounters<'_>| snapshot([0; PHASES], direction);
        let directions = self.traffic.ways();
        let mut all: Vec<Snapshot> = directions.iter().map(received).collect();
        for (snapshot, direction) in all.iter_mut().zip(&directions) {
            snapshot.sent = direction.sent();
        }
        self.reverse = all.get(1).copied().unwrap_or_default();
        let snapshot = all.into_iter().reduce(bidirectional::sum).unwrap_or_default();
        self.flood.as_ref().map_or(snapshot, |flood| snapshot.beside_flood(flood.sent()))
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        self.traffic.stop();
        Ok(())
    }

    fn flows_seen(&mut self) -> Option<u32> {
        let seen = |direction: &DirectionCounters<'_>| direction.flows().map(|flows| flows.seen);
        // A flow counts as seen once it has arrived in all directions.
        self.traffic.ways().iter().map(seen).min().flatten()
    }

    fn arrivals(&mut self) -> Arrivals {
        let arrived = |direction: &DirectionCounters<'_>| {
            arrivals::found(direction, arrivals::checked_against(direction.expected()))
        };
        let mut directions = self.traffic.ways().into_iter();
        let forth = directions.next().map(|direction| arrived(&direction)).unwrap_or_default();
        match directions.next() {
            Some(back) => bidirectional::together(
                forth,
                bidirectional::reverse(&self.reverse, arrived(&back)),
            ),
            None => forth,
        }
    }

    fn delays(&mut self) -> Option<Latency> {
        Latency::of(&self.traffic.delays()?)
    }

    fn evidence(&mut self) -> Evidence {
        self.monitor.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_packet::{Family, Flows, Stream};

    #[test]
    fn flows_spread_over_all_wires() {
        let flows = Flows { sources: 20, destinations: 100 };
        for family in [Family::Inet, Family::Inet6] {
            let template =
                Template::new(&Stream::new(family, 84, flows), 1, mac::SENDER, mac::INGRESS);
            for queues in [1, 2, 4, 8] {
                let wires = queues_of_flows(&template, queues);
                for queue in 0..queues {
                    let share = wires.iter().filter(|&&wire| wire == queue).count();
                    let fair = 2000 / usize::from(queues);
                    assert!((fair / 2..=fair * 2).contains(&share), "{family:?} {queues}: {share}");
                }
            }
        }
    }
}
