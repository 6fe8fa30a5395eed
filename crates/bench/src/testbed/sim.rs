//! A simulated device of known capacity, noise, drift and loss.
//!
//! The whole program runs on it, without privileges and deterministically: the same seed gives the
//! same packets. Reports can be compared with [`truth_pps`], which is computed from the experiment
//! alone.
//!
//! The capacity of a run is the truth times the factor that [`RunLaw`] draws for it. Within a run,
//! every 5 ms vary by `jitter`.

mod delays;
mod law;
mod traffic;

pub use law::RunLaw;

use super::bidirectional::Bidirectional;
use super::{Armed, Choice, Endpoints, Parts, Plain, Rig, RigLocation, Testbed, TrafficRequest};
use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::dut::{Dut, Loss, Reading, Totals};
use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use crate::links::Links;
use crate::profiler::simulated::Simulated;
use crate::profiler::{Profiler, Sampling};
use crate::testbed::LoadModel;
use crate::testbed::cpu_times::CpuTimes;
use crate::trial::{Clock, OpeningConditions, SystemClock};
use crate::{Observer, Task, calibrate};
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::record::{Calibration, Counter, CpuTime, DropPlace, Latency};
use fwdlab_model::settings::{Directions, Family, Firewall, Settings, TestbedKind};
use fwdlab_model::units::{LINE_RATE, line_pps, line_rate_text};
use fwdlab_model::warning::Warning;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use traffic::SimTraffic;

/// Time for which one random value of the jitter applies.
const STEP_NS: u64 = 5_000_000;
/// Time to remove the connections of an empty table, nanoseconds.
const ASKING_NS: u64 = 2_000_000;

/// The testbed.
#[derive(Debug)]
pub struct Sim {
    choice: Choice,
    /// State of the random law: each run continues from the one before.
    law: Option<RunLaw>,
}

impl Sim {
    /// Returns a simulated testbed, chosen for `reasons`.
    pub fn new(reasons: Vec<String>) -> Sim {
        Sim { choice: Choice { kind: TestbedKind::Sim, simulated: true, reasons }, law: None }
    }
}

/// Capacity of the simulated device in a variant, packets per second from the sender to the
/// receiver.
///
/// An `effect` of the experiment counts for its level; a level without one, and every setting
/// outside the factors, has a built-in effect of plausible size.
pub fn truth_pps(plan: &Plan, variant: usize) -> f64 {
    let capacity = plan.sim_capacity_pps(variant);
    let (effects, variant) = (&plan.base.testbed.sim.effect, &plan.variants[variant]);
    let declared = |name: &str| {
        let setting = variant.settings.all().into_iter().find(|setting| setting.name() == name);
        let value = setting.map(|setting| setting.value());
        let factor = plan.factors.iter().position(|factor| factor.name == name);
        let label = factor.map(|n| plan.factors[n].levels[variant.levels[n]].label.clone());
        [value, label].into_iter().flatten().any(|v| effects.contains_key(&format!("{name}={v}")))
    };
    let built_in = |name: &str, effect: f64| if declared(name) { 1.0 } else { effect };
    let settings = &variant.settings;
    let family = if settings.traffic.family == Family::Inet6 { 0.9 } else { 1.0 };
    capacity
        * built_in("firewall", firewall_effect(&settings.dut.firewall))
        * built_in("family", family)
        * built_in("queues", queue_effect(settings.dut.queues))
}

fn firewall_effect(firewall: &Firewall) -> f64 {
    match firewall {
        Firewall::None => 1.0,
        Firewall::Stateless => 0.93,
        Firewall::Stateful => 0.72,
        // 300 ns per packet without rules, 10 ns for the hook, 9 ns per rule.
        Firewall::Rules(count) => 300.0 / (310.0 + 9.0 * f64::from(*count)),
        Firewall::Ruleset { .. } => 0.9,
    }
}

/// Universal Scalability Law with contention .1 and coherency .02, relative to one queue: a peak
/// near 7 queues.
fn queue_effect(queues: u16) -> f64 {
    let n = f64::from(queues.max(1));
    n / (1.0 + 0.1 * (n - 1.0) + 0.02 * n * (n - 1.0))
}

/// Joint ceiling of the simulated senders.
fn ceiling_pps(settings: &Settings) -> f64 {
    sender_pps(settings) * f64::from(settings.traffic.directions.count())
}

/// Ceiling of one simulated sender: at most the rate of its link.
fn sender_pps(settings: &Settings) -> f64 {
    let sim = &settings.testbed.sim;
    let frame = settings.traffic.frame_size;
    sim.link_speed_bps.map_or(sim.ceiling_pps, |bps| sim.ceiling_pps.min(line_pps(bps, frame)))
}

/// A clock that jumps ahead instead of waiting, or waits in real time.
#[derive(Clone, Debug)]
struct SimClock {
    now: Rc<Cell<u64>>,
    realtime: bool,
}

impl Clock for SimClock {
    fn now_ns(&self) -> u64 {
        self.now.get()
    }

    fn sleep_until(&self, deadline_ns: u64) -> u64 {
        let wait = deadline_ns.saturating_sub(self.now.get());
        if self.realtime {
            std::thread::sleep(std::time::Duration::from_nanos(wait));
        }
        self.now.set(self.now.get() + wait);
        self.now.get()
    }

    fn wall_ns(&self) -> i64 {
        self.now.get() as i64
    }
}

impl Testbed for Sim {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn place(&self, _settings: &Settings) -> Placement {
        Placement::of_dut(vec![0])
    }

    fn stand<'a>(
        &'a mut self,
        task: Task<'a>,
        _observer: &mut dyn Observer,
    ) -> Result<Box<dyn Rig + 'a>, BenchError> {
        let plan = task.plan;
        let first = task.run.variants[0];
        let sim = &plan.variants[first].settings.testbed.sim;
        let seed = plan.design.seed;
        let law = self.law.take().unwrap_or_else(|| RunLaw::new(sim, seed));
        let law = self.law.insert(law.at(sim, seed, task.run.index));
        let noise = law.factor();
        let clock = SimClock { now: Rc::new(Cell::new(0)), realtime: sim.realtime };
        let capacity = Rc::new(Cell::new(truth_pps(plan, first) * noise));
        let received: [Rc<Cell<u64>>; 2] = Default::default();
        let states = Rc::new(Cell::new(0.0));
        Ok(Box::new(SimRig {
            dut: SimDut {
                plan,
                noise,
                capacity: capacity.clone(),
                received: received.clone(),
                states: states.clone(),
                clock: clock.clone(),
            },
            ends: SimEnds { task, clock, capacity, received, states },
            links: Links::of_namespaces(),
            placement: Placement::of_dut(vec![0]),
        }))
    }

    fn calibrate(
        &mut self,
        _plan: &Plan,
        settings: &Settings,
        _observer: &mut dyn Observer,
    ) -> Result<Calibration, BenchError> {
        Ok(Calibration {
            testbed: self.calibration_key(settings),
            family: settings.traffic.family.name().into(),
            frame_size: settings.traffic.frame_size,
            rates_pps: vec![ceiling_pps(settings)],
            measured_at: SystemClock.wall_text(),
        })
    }

    /// Sender and receiver alone behave like a device whose capacity is their ceiling.
    fn floor(
        &self,
        (settings, trial, _): (&Settings, &Trial, u32),
        rate_pps: f64,
        _observer: &mut dyn Observer,
    ) -> Result<Option<Latency>, BenchError> {
        let packets = (rate_pps * trial.duration_ns as f64 / 1e9) as u64;
        let (flows, ceiling) = (settings.traffic.flows.count(), sender_pps(settings));
        Ok(Latency::of(&delays::delays(packets, flows, rate_pps, ceiling)))
    }

    fn calibration_key(&self, settings: &Settings) -> String {
        calibrate::key("sim", "simulated sender", "simulated receiver", settings)
    }
}

/// One run of the device.
struct SimRig<'a> {
    dut: SimDut<'a>,
    ends: SimEnds<'a>,
    links: Links,
    placement: Placement,
}

impl Rig for SimRig<'_> {
    fn parts(&mut self) -> Result<Parts<'_>, BenchError> {
        Ok(Parts {
            host: &LocalHost,
            machine: &LocalHost,
            dut: &mut self.dut,
            links: &self.links,
            placement: &self.placement,
            ends: &self.ends,
            clock: &self.ends.clock,
            // The sender offers the intended load, up to the ceiling.
            pressure: LoadModel::Backpressured,
            reach: RigLocation::Here { simulated: true },
            perf_file: Path::new(""),
        })
    }

    fn down(self: Box<Self>) -> Result<Vec<Warning>, BenchError> {
        Ok(Vec::new())
    }
}

/// The device: a capacity.
struct SimDut<'a> {
    plan: &'a Plan,
    /// Random factor on the capacity of this run.
    noise: f64,
    /// Capacity now, packets per second; shared with the traffic.
    capacity: Rc<Cell<f64>>,
    /// Packets forwarded, by direction.
    received: [Rc<Cell<u64>>; 2],
    /// Connections in its table.
    states: Rc<Cell<f64>>,
    clock: SimClock,
}

impl Dut for SimDut<'_> {
    fn configure(
        &mut self,
        _host: &dyn Host,
        _settings: &Settings,
        _placement: &Placement,
        _findings: &mut Findings,
    ) -> Result<(), BenchError> {
        Ok(())
    }

    fn switch(
        &mut self,
        _host: &dyn Host,
        _from: &Settings,
        to: &Settings,
    ) -> Result<(), BenchError> {
        // Variants may differ in their label alone, which has its own effect.
        let mut variants = self.plan.variants.iter();
        if let Some(next) = variants.position(|variant| std::ptr::eq(&variant.settings, to)) {
            self.capacity.set(truth_pps(self.plan, next) * self.noise);
        }
        Ok(())
    }

    fn read(&mut self, _host: &dyn Host) -> Result<Reading, BenchError> {
        let packets = self.received.iter().map(|direction| direction.get()).sum::<u64>();
        // With traffic in both directions, the counters of both interfaces.
        let machine = match self.received[1].get() {
            0 => ["d0 rx_packets", "d1 tx_packets"],
            _ => ["d0 + d1 rx_packets", "d0 + d1 tx_packets"],
        };
        let machine = machine.map(|name| (name.to_owned(), packets)).into();
        Ok(Reading { machine, ..Reading::default() })
    }

    fn states(&mut self, _host: &dyn Host, settings: &Settings) -> Option<u64> {
        let is_stateful = settings.dut.firewall == Firewall::Stateful;
        // Fractions of packets leave fractions of states.
        is_stateful.then(|| self.states.get().round() as u64)
    }

    fn forget_states(
        &mut self,
        _host: &dyn Host,
        settings: &Settings,
    ) -> Result<Option<String>, BenchError> {
        if settings.dut.firewall != Firewall::Stateful {
            return Ok(None);
        }
        let seconds = self.states.replace(0.0) / settings.testbed.sim.table.tear_down_pps;
        let now = self.clock.now_ns();
        self.clock.sleep_until(now + ASKING_NS + (seconds * 1e9) as u64);
        Ok(Some("a simulated command".into()))
    }

    fn cpu_times(&self, _host: &dyn Host) -> Vec<CpuTime> {
        Vec::new()
    }

    fn compare(&self, before: &Reading, after: &Reading, totals: Totals) -> Vec<Counter> {
        let counters = after.machine.iter().map(|(name, &after)| Counter {
            name: name.clone(),
            before: before.machine.get(name).copied().unwrap_or(0),
            after,
            expected: Some(totals.passed.forwarded),
        });
        counters.collect()
    }

    fn drops(&self, loss: &Loss<'_>) -> Vec<DropPlace> {
        // The device does not report drops while traffic flows.
        if loss.total.lost() == 0 {
            return Vec::new();
        }
        let place = |place: &str, packets| DropPlace { place: place.to_owned(), packets };
        vec![place("the simulated device", loss.total.lost()), place("no counter tells", 0)]
    }
}

/// Simulated sender and receiver.
struct SimEnds<'a> {
    task: Task<'a>,
    clock: SimClock,
    capacity: Rc<Cell<f64>>,
    received: [Rc<Cell<u64>>; 2],
    states: Rc<Cell<f64>>,
}

impl Endpoints for SimEnds<'_> {
    fn arm<'a>(
        &'a self,
        request: &TrafficRequest<'_>,
        _findings: &mut Findings,
    ) -> Result<(Box<dyn Armed + 'a>, CpuTimes), BenchError> {
        let (seed, run) = (self.task.plan.design.seed, self.task.run.index);
        let random = law::jitter(seed, run);
        let armed: Box<dyn Armed> = match request.settings.traffic.directions {
            Directions::One => Box::new(Plain(SimTraffic::new(request, self, random))),
            Directions::Both => {
                let half = request.half();
                let forth = Plain(SimTraffic::new(&half, self, random));
                let random = law::jitter(seed.wrapping_add(1), run);
                let back = Plain(SimTraffic::new(&half, self, random).back(self));
                Box::new(Bidirectional::new(Box::new(forth), Box::new(back)))
            }
        };
        Ok((armed, CpuTimes::none()))
    }

    fn awaited(&self, _settings: &Settings) -> OpeningConditions {
        OpeningConditions::default()
    }

    fn known_ceiling_pps(&self, settings: &Settings) -> Option<f64> {
        Some(ceiling_pps(settings))
    }

    fn facts(&self, settings: &Settings) -> BTreeMap<String, String> {
        let ends = ["sender", "receiver"].map(|end| (end.to_owned(), "simulated".to_owned()));
        let speed = settings.testbed.sim.link_speed_bps;
        let speed = speed.map(|bps| (LINE_RATE.to_owned(), line_rate_text(bps)));
        ends.into_iter().chain(speed).collect()
    }

    fn profiler<'a>(
        &self,
        _host: &'a dyn Host,
        clock: &'a dyn Fn() -> u64,
        plan: &Sampling,
        _cpus: &[u16],
        _file: &Path,
        settings: &Settings,
    ) -> Box<dyn Profiler + 'a> {
        let has_firewall = settings.dut.firewall != Firewall::None;
        Box::new(Simulated::new(clock, plan, has_firewall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_effect_replaces_the_built_in_one() {
        let text = r#"
version = 1
[testbed]
kind = "sim"
[testbed.sim]
capacity = "1Mpps"
effect = { "firewall=stateful" = 0.5 }
[[factor]]
name = "set"
levels = [
  { label = "plain" },
  { label = "tracked", firewall = "stateful" },
  { label = "filtered", firewall = "stateless", family = "inet6" },
]
"#;
        let plan = fwdlab_model::load("x.toml", text, &|_| Err("no files".into()))
            .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        let truth: Vec<f64> = (0..3).map(|v| (truth_pps(&plan, v) / 1e3).round()).collect();
        assert_eq!(truth, [1000.0, 500.0, 837.0]);
    }

    #[test]
    fn queue_effect_peaks_at_seven_queues() {
        let best = (1..=16).max_by(|&a, &b| queue_effect(a).total_cmp(&queue_effect(b)));
        assert_eq!(best, Some(7));
        assert_eq!(queue_effect(1), 1.0);
    }

    #[test]
    fn clock_jumps_to_the_deadline() {
        let clock = SimClock { now: Rc::new(Cell::new(5)), realtime: false };
        assert_eq!(clock.sleep_until(100), 100);
        assert_eq!(clock.sleep_until(50), 100);
    }
}
