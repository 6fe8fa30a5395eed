//! A simulated device of known capacity, noise, drift and loss.
//!
//! The whole program runs on it, without privileges and deterministically: the same
//! seed gives the same packets. Reports can be checked against [`truth_pps`], which is
//! computed from the experiment alone.
//!
//! One run's capacity is the truth times the factor that [`RunLaw`] draws for it.
//! Within a run, every 5 ms vary by `jitter`.

mod delays;
mod law;

pub use law::RunLaw;

use super::{Armed, Choice, Ends, Parts, Plain, Reach, Rig, Testbed, Wanted};
use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::dut::{Dut, Loss, Reading, Totals};
use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use crate::links::Links;
use crate::profiler::Profiler;
use crate::profiler::simulated::Simulated;
use crate::testbed::LoadModel;
use crate::testbed::account::Account;
use crate::trial::{Awaited, Clock, Evidence, Snapshot, SystemClock, Traffic};
use crate::{Observer, Task, calibrate};
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{Calibration, Counter, CpuTime, DropPlace, Latency};
use fwdlab_model::settings::{Family, Firewall, Settings, TestbedKind};
use fwdlab_model::warning::Warning;
use fwdlab_packet::Phase;
use rand_xoshiro::Xoshiro256StarStar;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// Time for which one random value of the jitter applies.
const STEP_NS: u64 = 5_000_000;

/// The testbed.
#[derive(Debug)]
pub struct Sim {
    choice: Choice,
    /// State of the random law: each run continues from the one before.
    law: Option<RunLaw>,
}

impl Sim {
    /// A simulated testbed, chosen for `reasons`.
    pub fn new(reasons: Vec<String>) -> Sim {
        Sim { choice: Choice { kind: TestbedKind::Sim, simulated: true, reasons }, law: None }
    }
}

/// The capacity that the simulated device has in a variant, packets per second.
///
/// An `effect` of the experiment counts for its level; a level without one, and
/// every setting outside the factors, has a built-in effect of plausible size.
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
        // 300 ns a packet without rules, 10 ns for the hook, 9 ns a rule.
        Firewall::Rules(count) => 300.0 / (310.0 + 9.0 * f64::from(*count)),
        Firewall::Ruleset { .. } => 0.9,
    }
}

/// Universal Scalability Law with contention .1 and coherency .02, as ratio to
/// one queue: a peak near 7 queues.
fn queue_effect(queues: u16) -> f64 {
    let n = f64::from(queues.max(1));
    n / (1.0 + 0.1 * (n - 1.0) + 0.02 * n * (n - 1.0))
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

struct SimTraffic {
    clock: SimClock,
    /// Current capacity without jitter; shared with the code that switches levels.
    capacity_pps: Rc<Cell<f64>>,
    /// Packets forwarded, shared with the device.
    through: Rc<Cell<u64>>,
    offered_pps: f64,
    ceiling_pps: f64,
    loss: f64,
    jitter: f64,
    random: Xoshiro256StarStar,
    /// Packets after which it sends no more.
    limit: Option<u64>,
    /// Room in the device, packets, and how much of it is taken.
    buffer: f64,
    kept: f64,
    sending: bool,
    phase: usize,
    seen_ns: u64,
    /// End of the current jitter step.
    step_end_ns: u64,
    factor: f64,
    // Fractions of packets are carried over.
    sent: [f64; 4],
    received: [f64; 4],
}

impl SimTraffic {
    fn advance(&mut self) {
        let now = self.clock.now_ns();
        while self.sending && self.seen_ns < now {
            if self.seen_ns >= self.step_end_ns {
                self.factor = (1.0 + self.jitter * law::normal(&mut self.random)).max(0.05);
                self.step_end_ns = self.seen_ns + STEP_NS;
            }
            let until = now.min(self.step_end_ns);
            let seconds = (until - self.seen_ns) as f64 / 1e9;
            let capacity = self.capacity_pps.get() * self.factor;
            let sent: f64 = self.sent.iter().sum();
            let left = self.limit.map_or(f64::INFINITY, |limit| limit as f64 - sent);
            let offered = (self.offered_pps * seconds).min(left.max(0.0));
            // What a burst brings in a part of a step leaves at the device's own pace.
            let seconds = if offered < self.offered_pps * seconds {
                offered / self.offered_pps
            } else {
                seconds
            };
            let wanted = offered * (1.0 - self.loss);
            let passed = wanted.min(capacity * seconds);
            // What is kept is forwarded later: it counts as soon as it is sure to be.
            let room = (self.buffer - self.kept).max(0.0);
            let kept = (wanted - passed).min(room);
            self.kept = (self.kept + kept - (capacity * seconds - passed)).max(0.0);
            self.sent[self.phase] += offered;
            self.received[self.phase] += passed + kept;
            self.seen_ns = until;
        }
        self.seen_ns = now;
    }
}

impl Traffic for SimTraffic {
    fn start(&mut self) -> Result<(), BenchError> {
        self.seen_ns = self.clock.now_ns();
        self.sending = true;
        Ok(())
    }

    fn set_phase(&mut self, phase: Phase) {
        self.advance();
        self.phase = phase as usize;
    }

    fn set_rate(&mut self, rate_pps: f64) -> Result<(), BenchError> {
        self.advance();
        self.offered_pps = rate_pps.min(self.ceiling_pps);
        Ok(())
    }

    fn snapshot(&mut self) -> Snapshot {
        self.advance();
        let sent = self.sent.map(|packets| packets.ceil() as u64);
        // A packet of which a part was forwarded was not, unless nothing is lost at all.
        let arrived = |phase: usize| match self.received[phase] {
            all if all == self.sent[phase] => sent[phase],
            some => some.floor() as u64,
        };
        let received = std::array::from_fn(arrived);
        self.through.set(received.iter().sum());
        Snapshot { sent, received, ..Snapshot::default() }
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        self.advance();
        self.sending = false;
        Ok(())
    }

    fn flows_seen(&mut self) -> Option<u32> {
        None
    }

    fn delays(&mut self) -> Option<Latency> {
        let packets = self.received[Phase::Window as usize] as u64;
        Latency::of(&delays::delays(packets, self.offered_pps, self.capacity_pps.get()))
    }

    fn evidence(&mut self) -> Evidence {
        Evidence::default()
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
        let received = Rc::new(Cell::new(0));
        Ok(Box::new(SimRig {
            dut: SimDut { plan, noise, capacity: capacity.clone(), received: received.clone() },
            ends: SimEnds { task, clock, capacity, received },
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
            frame_size: settings.traffic.frame_size.0,
            rates_pps: vec![settings.testbed.sim.ceiling_pps],
            measured_at: SystemClock.wall_text(),
        })
    }

    /// Its sender and receiver alone are a device of their own ceiling.
    fn floor(
        &self,
        (settings, trial, _): (&Settings, &Trial, u32),
        rate_pps: f64,
        _observer: &mut dyn Observer,
    ) -> Result<Option<Latency>, BenchError> {
        let packets = (rate_pps * trial.duration_ns as f64 / 1e9) as u64;
        Ok(Latency::of(&delays::delays(packets, rate_pps, settings.testbed.sim.ceiling_pps)))
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
            // It offers the intended load, at most the ceiling.
            pressure: LoadModel::Backpressured,
            reach: Reach::Here { simulated: true },
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
    /// Packets forwarded.
    received: Rc<Cell<u64>>,
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
        // Variants may differ in nothing but their label, which has an effect of its own.
        let mut variants = self.plan.variants.iter();
        if let Some(next) = variants.position(|variant| std::ptr::eq(&variant.settings, to)) {
            self.capacity.set(truth_pps(self.plan, next) * self.noise);
        }
        Ok(())
    }

    fn read(&mut self, _host: &dyn Host) -> Result<Reading, BenchError> {
        let names = ["d0 rx_packets", "d1 tx_packets"];
        let machine = names.map(|name| (name.to_owned(), self.received.get())).into();
        Ok(Reading { machine, ..Reading::default() })
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
        // It does not report drops while traffic flows.
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
    received: Rc<Cell<u64>>,
}

impl Ends for SimEnds<'_> {
    fn arm<'a>(
        &'a self,
        wanted: &Wanted<'_>,
        _findings: &mut Findings,
    ) -> Result<(Box<dyn Armed + 'a>, Account), BenchError> {
        let sim = &wanted.settings.testbed.sim;
        let traffic = SimTraffic {
            clock: self.clock.clone(),
            capacity_pps: self.capacity.clone(),
            through: self.received.clone(),
            offered_pps: wanted.rate_pps.unwrap_or(sim.ceiling_pps).min(sim.ceiling_pps),
            ceiling_pps: sim.ceiling_pps,
            loss: sim.loss,
            jitter: sim.jitter,
            random: law::jitter(self.task.plan.design.seed, self.task.run.index),
            limit: wanted.limit,
            buffer: f64::from(sim.buffer),
            kept: 0.0,
            sending: false,
            phase: 0,
            seen_ns: 0,
            step_end_ns: 0,
            factor: 1.0,
            sent: [0.0; 4],
            received: [0.0; 4],
        };
        Ok((Box::new(Plain(traffic)), Account::none()))
    }

    fn awaited(&self, _settings: &Settings) -> Awaited {
        Awaited::default()
    }

    fn known_ceiling_pps(&self, settings: &Settings) -> Option<f64> {
        Some(settings.testbed.sim.ceiling_pps)
    }

    fn facts(&self, _settings: &Settings) -> BTreeMap<String, String> {
        ["sender", "receiver"].map(|end| (end.to_owned(), "simulated".to_owned())).into()
    }

    fn profiler<'a>(
        &self,
        _host: &'a dyn Host,
        clock: &'a dyn Fn() -> u64,
        plan: &ProfilePlan,
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
    fn a_declared_effect_takes_the_place_of_the_built_in_one() {
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
    fn queues_peak_and_fall() {
        let best = (1..=16).max_by(|&a, &b| queue_effect(a).total_cmp(&queue_effect(b)));
        assert_eq!(best, Some(7));
        assert_eq!(queue_effect(1), 1.0);
    }

    #[test]
    fn the_clock_jumps_to_where_it_waits_for() {
        let clock = SimClock { now: Rc::new(Cell::new(5)), realtime: false };
        assert_eq!(clock.sleep_until(100), 100);
        assert_eq!(clock.sleep_until(50), 100);
    }
}
