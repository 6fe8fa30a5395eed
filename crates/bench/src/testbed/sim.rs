//! A simulated device of known capacity, noise, drift and loss.
//!
//! The whole program runs with it, without privileges and without luck: the same
//! seed gives the same packets. What a report says can be held against
//! [`truth_pps`], which is computed from the experiment alone.
//!
//! One run's capacity is the truth times the factor that [`RunLaw`] draws for it.
//! Within a run, every 5 ms vary by `jitter`.

mod law;
mod profile;

pub use law::RunLaw;

use super::{Choice, Testbed};
use crate::error::BenchError;
use crate::profiler::RawProfile;
use crate::trial::{
    self, Alternation, Awaited, Clock, Evidence, Order, Snapshot, Traffic, Unasked,
};
use crate::{Observer, Task, calibrate};
use fwdlab_model::plan::Plan;
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{Calibration, Counter, ProfileRecord, RunRecord};
use fwdlab_model::settings::{Family, Firewall, Rate, Settings};
use fwdlab_model::warning::Warning;
use fwdlab_packet::Phase;
use rand_xoshiro::Xoshiro256StarStar;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Time for which one deviate of the jitter holds.
const STEP_NS: u64 = 5_000_000;

/// The testbed.
#[derive(Debug)]
pub struct Sim {
    choice: Choice,
}

impl Sim {
    /// A simulated testbed, chosen for `reasons`.
    pub fn new(reasons: Vec<String>) -> Sim {
        Sim { choice: Choice { kind: "sim", simulated: true, reasons } }
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

/// A clock that jumps to wherever it is told to wait for, or waits for real.
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
    /// Capacity now, without jitter; shared with whoever switches levels.
    capacity_pps: Rc<Cell<f64>>,
    offered_pps: f64,
    loss: f64,
    jitter: f64,
    random: Xoshiro256StarStar,
    sending: bool,
    phase: usize,
    seen_ns: u64,
    /// End of the step that the current deviate holds for.
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
            let forwarded = (self.offered_pps * (1.0 - self.loss)).min(capacity);
            self.sent[self.phase] += self.offered_pps * seconds;
            self.received[self.phase] += forwarded * seconds;
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

    fn snapshot(&mut self) -> Snapshot {
        self.advance();
        Snapshot {
            sent: self.sent.map(|packets| packets.ceil() as u64),
            received: self.received.map(|packets| packets.floor() as u64),
            ..Snapshot::default()
        }
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        self.advance();
        self.sending = false;
        Ok(())
    }

    fn flows_seen(&mut self) -> Option<u32> {
        None
    }

    fn evidence(&mut self) -> Evidence {
        Evidence::default()
    }
}

/// What one run of the device is made of.
struct SimRun {
    traffic: SimTraffic,
    clock: SimClock,
    /// Capacity now, packets per second; shared with the traffic.
    capacity: Rc<Cell<f64>>,
    /// The run's own factor.
    noise: f64,
    /// Intended load, packets per second; none for the maximum.
    intended: Option<f64>,
}

impl SimRun {
    fn new(task: &Task<'_>) -> SimRun {
        let plan = task.plan;
        let first = task.run.variants[0];
        let settings = &plan.variants[first].settings;
        let sim = &settings.testbed.sim;
        let mut law = RunLaw::new(sim, plan.design.seed);
        law.skip(task.run.index);
        let noise = law.factor();
        let clock = SimClock { now: Rc::new(Cell::new(0)), realtime: sim.realtime };
        let capacity = Rc::new(Cell::new(truth_pps(plan, first) * noise));
        let intended = intended_pps(settings);
        let traffic = SimTraffic {
            clock: clock.clone(),
            capacity_pps: capacity.clone(),
            offered_pps: intended.unwrap_or(sim.ceiling_pps).min(sim.ceiling_pps),
            loss: sim.loss,
            jitter: sim.jitter,
            random: law::jitter(plan.design.seed, task.run.index),
            sending: false,
            phase: 0,
            seen_ns: 0,
            step_end_ns: 0,
            factor: 1.0,
            sent: [0.0; 4],
            received: [0.0; 4],
        };
        SimRun { traffic, clock, capacity, noise, intended }
    }
}

impl Testbed for Sim {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn run(
        &mut self,
        task: Task<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let plan = task.plan;
        let first = task.run.variants[0];
        let sim = &plan.variants[first].settings.testbed.sim;
        let started_at = super::netns::now_text();
        let SimRun { mut traffic, clock, capacity, noise, intended } = SimRun::new(&task);
        observer.step("traffic (simulated)");
        let mut switch = |next: usize| {
            capacity.set(truth_pps(plan, next) * noise);
            Ok(())
        };
        let cycle = |number| task.plan.cycle(task.run, number);
        let order = Order {
            trial: &plan.trial,
            rate_pps: intended,
            variant: first,
            alternation: plan.design.alternate_ns.map(|slice_ns| Alternation {
                slice_ns,
                settle_ns: plan.design.settle_ns,
                length: task.run.variants.len() as u32,
                cycle: &cycle,
                switch: &mut switch,
            }),
            at_window: &mut |_| {},
            awaited: Awaited::default(),
            account: &mut Unasked,
        };
        let observed = trial::run(&mut traffic, &clock, order, observer)?;
        let mut warnings = observed.warnings.clone();
        let forwarded_pps = observed.window.forwarded as f64 * 1e9 / observed.window_ns as f64;
        if forwarded_pps > 0.9 * sim.ceiling_pps {
            let ceiling_pps = sim.ceiling_pps;
            warnings.push(Warning::GeneratorLimited { forwarded_pps, ceiling_pps });
        }
        let forwarded = observed.total.forwarded;
        let counter = |name: &str, after| {
            let expected = Some(forwarded);
            Counter { name: name.into(), before: 0, after, expected }
        };
        let counters =
            vec![counter("d0 rx_packets", forwarded), counter("d1 tx_packets", forwarded)];
        Ok(RunRecord {
            run: task.run.index,
            block: task.run.block,
            variants: task.run.variants.clone(),
            run_id: plan.run_id(task.run.index),
            started_at,
            trial: observed.into_record(counters, Vec::new()),
            facts: BTreeMap::from([
                ("sender".into(), "simulated".into()),
                ("receiver".into(), "simulated".into()),
            ]),
            warnings,
            overhead_ns: Vec::new(),
        })
    }

    fn profile(
        &mut self,
        task: Task<'_>,
        plan: &ProfilePlan,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        Sim::simulate_profile(task, plan, observer)
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
            measured_at: super::netns::now_text(),
        })
    }

    fn calibration_key(&self, settings: &Settings) -> String {
        calibrate::key("sim", "simulated sender", "simulated receiver", settings)
    }
}

fn intended_pps(settings: &Settings) -> Option<f64> {
    let traffic = &settings.traffic;
    match traffic.rate {
        Rate::Max => None,
        Rate::Pps(pps) => Some(pps),
        Rate::Bps(bps) => Some(bps / traffic.frame_size.l2_bits_per_second(1.0)),
        Rate::Ceiling(share) => Some(settings.testbed.sim.ceiling_pps * share),
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
    fn the_clock_is_where_it_slept_to_and_never_goes_back() {
        let clock = SimClock { now: Rc::new(Cell::new(5)), realtime: false };
        assert_eq!((clock.sleep_until(100), clock.now_ns()), (100, 100));
        assert_eq!((clock.sleep_until(50), clock.now_ns()), (100, 100));
    }
}
