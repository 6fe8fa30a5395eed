//! Generator, router and sink over shared memory: no privileges, no kernel between
//! them. The router is a process of its own; generator and sink are a thread of this
//! one.
//!
//! At the maximum rate the generator fills the wires as far as they have room: nothing
//! is lost before the router, and the rate is what the router takes. With a rate the
//! packets that find a wire full are lost, as in a network card's receive ring.

use super::account::Account;
use super::asked::{Asked, awaited};
use super::doubts::{Pressure, doubts};
use super::evidence::Witness;
use super::netns::{now_text, observed_ns};
use super::profiling::Subject;
use super::stopwatch::Stopwatch;
use super::{Choice, Paths, Testbed, rate};
use crate::arrivals;
use crate::cpu::{self, Placement};
use crate::dut::linux::{Findings, mac};
use crate::dut::path::with_place;
use crate::dut::router::{self, RouterDut, Wires};
use crate::error::BenchError;
use crate::host::LocalHost;
use crate::lab::links::Links;
use crate::profiler::RawProfile;
use crate::trial::{self, Evidence, Moment, Observed, Order, Snapshot, SystemClock};
use crate::{Observer, Task, calibrate};
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{
    Arrivals, Calibration, Counts, DropPlace, ProfileRecord, ReceiverPlace, RunRecord, TrialRecord,
};
use fwdlab_model::router::RouterStats;
use fwdlab_model::settings::{Arrangement, DutKind, Settings};
use fwdlab_model::warning::Warning;
use fwdlab_packet::rss::queues_of_flows;
use fwdlab_packet::{Phase, Template};
use fwdlab_port::circuit::traffic::{Full, Traffic, TrafficConfig};
use fwdlab_port::circuit::{Circuit, SLOTS};
use fwdlab_port::{Receiver, affinity};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Where packets are lost before the router, with a rate.
const WIRE_FULL: &str = "wire full";

/// The testbed.
#[derive(Debug)]
pub struct Memory {
    paths: Paths,
    cpus: Vec<u16>,
    choice: Choice,
}

impl Memory {
    /// A testbed chosen for `reasons`.
    ///
    /// # Errors
    /// When there is no shared memory, or the plan has a DUT that is no program.
    pub fn open(plan: &Plan, paths: &Paths, reasons: Vec<String>) -> Result<Memory, BenchError> {
        let mut kinds = plan.variants.iter().map(|variant| variant.settings.dut.kind);
        if kinds.any(|kind| kind != DutKind::Router) {
            return Err(BenchError::Refused(
                "packets in memory reach no kernel: write dut.kind = \"router\"".into(),
            ));
        }
        Circuit::new(1)?;
        let choice = Choice { kind: "memory", simulated: false, reasons };
        Ok(Memory { paths: paths.clone(), cpus: affinity::allowed_cpus()?, choice })
    }

    fn place(&self, settings: &Settings) -> Placement {
        let testbed = &settings.testbed;
        cpu::place(&self.cpus, testbed.arrangement, 1, settings.dut.queues)
    }

    fn execute(
        &self,
        task: Task<'_>,
        placement: &Placement,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let variant = task.run.variants[0];
        let settings = &task.plan.variants[variant].settings;
        let run_id = task.plan.run_id(task.run.index);
        let started_at = now_text();
        let mut watch = Stopwatch::default();
        let mut findings = Findings::default();

        let (circuits, dut, before) = self.up(settings, placement, observer)?;
        router::record_facts(&before, &mut findings);

        watch.lap("configure");
        observer.step("traffic");
        let rate_pps = rate::of(&task, settings)?;
        let config = config(settings, placement, run_id, rate_pps, false);
        let mut traffic = MemoryTraffic::new(config, &circuits, placement, &dut.workers())?;
        // Generator and sink are one thread. Only where it has a CPU of its own is the
        // router's time its own.
        let (place, cpus) = match placement.arrangement {
            Arrangement::Open => (ReceiverPlace::Sender, &placement.senders[..]),
            Arrangement::Closed => (ReceiverPlace::Unknown, &[][..]),
        };
        let mut times = Account::open(&dut.workers(), &[], place, cpus);
        let dut = RefCell::new(dut);
        let full = traffic.traffic.full();
        let mut account = Asked {
            drops: &|| drops(&before, &dut, &full),
            states: &|| router::states(&dut.borrow_mut().stats().ok()?),
        };
        let mut cpu_times = Vec::new();
        let mut read_cpus = |moment| {
            if moment != Moment::Opening {
                times.read();
                let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
                cpu_times.push(cpu::times(&text));
            }
        };
        let order = Order {
            trial: &task.plan.trial,
            rate_pps,
            variant,
            alternation: None,
            at_window: &mut read_cpus,
            awaited: awaited(settings, 1),
            account: &mut account,
        };
        let observed = trial::run(&mut traffic, &SystemClock, order, observer)?;
        watch.skip(observed_ns(&task.plan.trial, &observed));
        watch.lap("arm, stop and drain");
        let mut dut = dut.into_inner();
        let after = dut.stats()?;
        let returned = traffic.traffic.returned();
        drop(traffic);
        dut.stop()?;
        watch.lap("take down");

        let counters = router::compare(&before, &after, observed.passed());
        let cpus = match cpu_times.as_slice() {
            [open, close] => cpu::difference(open, close, placement),
            _ => Vec::new(),
        };
        let mut warnings = observed.warnings.clone();
        if let Some(why) = &placement.fallback {
            let used = format!("{:?} arrangement", placement.arrangement).to_lowercase();
            warnings.push(Warning::Fallback { used, why: why.clone() });
        }
        warnings.extend(doubts(
            &observed,
            settings,
            placement,
            Pressure::Waits,
            &task,
            &counters,
            &cpus,
        ));
        let mut facts = findings.facts;
        facts.extend(facts_of(settings, placement));
        if returned > 0 {
            facts.insert("packets back to the sender".into(), returned.to_string());
        }
        Ok(RunRecord {
            run: task.run.index,
            block: task.run.block,
            variants: task.run.variants.clone(),
            run_id,
            started_at,
            trial: TrialRecord {
                device: times.since_first(),
                ..observed.into_record(counters, cpus)
            },
            facts,
            warnings,
            overhead_ns: watch.laps,
        })
    }

    fn execute_profile(
        &self,
        task: Task<'_>,
        plan: &ProfilePlan,
        placement: &Placement,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        let settings = &task.plan.variants[task.run.variants[0]].settings;
        let run_id = task.plan.run_id(task.run.index);
        let mut findings = Findings::default();
        let (circuits, dut, before) = self.up(settings, placement, observer)?;
        router::record_facts(&before, &mut findings);
        observer.step("arming perf");
        let rate_pps = rate::of(&task, settings)?;
        let config = config(settings, placement, run_id, rate_pps, false);
        let mut traffic = MemoryTraffic::new(config, &circuits, placement, &dut.workers())?;
        let file = std::env::temp_dir().join(format!("fwdlab-{}.perf", std::process::id()));
        let links = Links::of_namespaces();
        let subject = Subject {
            task,
            plan,
            host: &LocalHost,
            links: &links,
            placement,
            file: &file,
            ahead_ns: 0,
        };
        let (dut, full) = (RefCell::new(dut), traffic.traffic.full());
        let mut account = Asked {
            drops: &|| drops(&before, &dut, &full),
            states: &|| router::states(&dut.borrow_mut().stats().ok()?),
        };
        let sampled = subject.sample(&mut traffic, rate_pps, &mut account, observer)?;
        let mut dut = dut.into_inner();
        let drops = router::drops(&before, &dut.stats()?, sampled.observed.total, 0);
        let drops = with_place(drops, WIRE_FULL.into(), full.packets() as i64);
        drop(traffic);
        dut.stop()?;
        let mut facts = findings.facts;
        facts.extend(facts_of(settings, placement));
        Ok(subject.record(sampled, drops, facts, &|_| Vec::new()))
    }

    /// Wires, and a router along them with its first counters.
    fn up(
        &self,
        settings: &Settings,
        placement: &Placement,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<Circuit>, RouterDut, RouterStats), BenchError> {
        observer.step("wires");
        let circuits = circuits(settings)?;
        let paths = circuits.iter().map(|circuit| circuit.path().display().to_string()).collect();
        observer.step("configuring the DUT");
        let wires = Wires::Memory(paths);
        let setup = router::setup(settings, &placement.dut, &wires, &self.paths.experiment);
        let (dut, stats) = RouterDut::start(&LocalHost, &self.paths.program, &setup)?;
        Ok((circuits, dut, stats))
    }

    /// Generator straight into sink.
    fn without_dut(
        &self,
        settings: &Settings,
        placement: &Placement,
        trial: &Trial,
        run_id: u32,
        observer: &mut dyn Observer,
    ) -> Result<Observed, BenchError> {
        let circuits = circuits(settings)?;
        let config = config(settings, placement, run_id, None, true);
        let mut traffic = MemoryTraffic::new(config, &circuits, placement, &[])?;
        trial::plain(&mut traffic, trial, observer)
    }
}

/// Where packets were lost since `before`: in the router, or before it.
fn drops(before: &RouterStats, dut: &RefCell<RouterDut>, full: &Full) -> Option<Vec<DropPlace>> {
    let now = dut.borrow_mut().stats().ok()?;
    let drops = router::drops(before, &now, Counts::default(), 0);
    Some(with_place(drops, WIRE_FULL.into(), full.packets() as i64))
}

/// One wire for each queue.
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
    let flows = traffic.flows;
    let family = traffic.family;
    let frame_size = traffic.frame_size.0;
    let template = Template::new(family, frame_size, flows, run_id, mac::SENDER, mac::INGRESS);
    TrafficConfig {
        cpu: placement.senders[0],
        // As a network card's receive-side scaling has it.
        wires: queues_of_flows(&template, settings.dut.queues),
        template,
        rate_pps,
        timestamps: traffic.timestamps,
        arriving: (!bypass).then_some((mac::RECEIVER, mac::EGRESS)),
        bypass,
    }
}

fn facts_of(settings: &Settings, placement: &Placement) -> BTreeMap<String, String> {
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

impl Testbed for Memory {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn run(
        &mut self,
        task: Task<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let placement = self.place(&task.plan.variants[task.run.variants[0]].settings);
        affinity::pin_thread(&placement.control)?;
        let result = self.execute(task, &placement, observer);
        affinity::pin_thread(&self.cpus)?;
        result
    }

    fn calibrate(
        &mut self,
        plan: &Plan,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Calibration, BenchError> {
        let placement = self.place(settings);
        affinity::pin_thread(&placement.control)?;
        let key = self.calibration_key(settings);
        let ceiling = calibrate::measure(plan, settings, key, &mut |trial, run_id| {
            self.without_dut(settings, &placement, trial, run_id, observer)
        });
        affinity::pin_thread(&self.cpus)?;
        ceiling
    }

    fn profile(
        &mut self,
        task: Task<'_>,
        plan: &ProfilePlan,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        let placement = self.place(&task.plan.variants[task.run.variants[0]].settings);
        affinity::pin_thread(&placement.control)?;
        let result = self.execute_profile(task, plan, &placement, observer);
        affinity::pin_thread(&self.cpus)?;
        result
    }

    fn calibration_key(&self, settings: &Settings) -> String {
        calibrate::key("memory", "memory", "memory", settings)
    }
}

/// Generator and sink of one run, as the trial sees them.
struct MemoryTraffic {
    traffic: Traffic,
    witness: Witness,
}

impl MemoryTraffic {
    fn new(
        config: TrafficConfig,
        circuits: &[Circuit],
        placement: &Placement,
        workers: &[u32],
    ) -> Result<MemoryTraffic, BenchError> {
        let traffic = Traffic::new(config, circuits)?;
        let witness = Witness::new(placement, workers, &[traffic.task()]);
        Ok(MemoryTraffic { traffic, witness })
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

    fn snapshot(&mut self) -> Snapshot {
        let sent = self.traffic.sent();
        let received = self.traffic.received();
        Snapshot {
            sent,
            received: received.packets,
            damaged: received.faults.iter().sum(),
            foreign: received.foreign,
            unstamped: received.unstamped,
            other_frames: received.others,
            receiver_dropped: 0,
        }
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        self.traffic.stop();
        Ok(())
    }

    fn flows_seen(&mut self) -> Option<u32> {
        self.traffic.flows().map(|flows| flows.seen)
    }

    fn arrivals(&mut self) -> Arrivals {
        arrivals::found(&self.traffic, arrivals::checked_against(self.traffic.expected()))
    }

    fn evidence(&mut self) -> Evidence {
        self.witness.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_packet::{Family, Flows};

    #[test]
    fn every_wire_has_its_share_of_flows() {
        let flows = Flows { sources: 20, destinations: 100 };
        for family in [Family::Inet, Family::Inet6] {
            let template = Template::new(family, 84, flows, 1, mac::SENDER, mac::INGRESS);
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
