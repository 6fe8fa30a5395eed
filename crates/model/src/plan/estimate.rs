//! Estimated duration of a plan. docs/PERFORMANCE.md compares estimates with
//! measured durations.

use super::{Plan, Variant};
use crate::design::Surroundings;
use crate::settings::{DutKind, Rate, Settings, TestbedKind};

/// Duration of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Number of runs.
    pub runs: usize,
    /// Time of one run, nanoseconds.
    pub run_ns: u64,
    /// Time of boots of guests and of ceilings, each once, in nanoseconds.
    pub once_ns: u64,
    /// Total time, in nanoseconds.
    pub total_ns: u64,
    /// True for searches whose time was not measured: they take more trials if the device's rate scatters, and if the
    /// instrument disturbs trials.
    pub is_open: bool,
}

/// Time that a testbed takes in addition to the traffic, in nanoseconds.
struct Costs {
    /// Each run: set-up, configuration, arming, drain, readings, tear-down.
    run_ns: u64,
    /// Each further trial of a method: arming, drain, readings.
    trial_ns: u64,
    /// Trials that noise and other programs add to each trial of a search on a steady device.
    disturbed: u32,
    /// Each boot of a guest.
    boot_ns: u64,
    /// Each ceiling.
    ceiling_ns: u64,
}

const MS: u64 = 1_000_000;
/// Additional trials for each trial of a search if sender, device and other programs share CPUs:
/// 110 to 490 instead of 15 to 17 were measured.
const DISTURBED: u32 = 10;
/// Time of a counted packet, as a share of its time by the trial's clock, which counts packets: a
/// batch of 32 takes about 10 ms.
const COUNTED: f64 = 0.3;
/// Time to add a route of a kernel and to remove it: `ip -batch` took 2.8 s for 100,000 and 25 s for
/// a million.
const KERNEL_ROUTE_NS: u64 = 25_000;
/// Time to add a route to the table of fwdlab's router.
const ROUTER_ROUTE_NS: u64 = 1_500;
/// Time per flow, times the logarithm of their number, until a packet of each flow has passed a
/// device that loses most of the offered load: 4 s for 100,000 flows and 21 s for a million were
/// measured.
const FLOW_NS: f64 = 2_000.0;
/// Start of perf for a run, and reading its samples.
const SAMPLING_NS: u64 = 500 * MS;
/// Guests that stay up at the same time.
const GUESTS: usize = 2;

impl Costs {
    fn of(plan: &Plan) -> Costs {
        let testbed = &plan.base.testbed;
        let costs = |run_ms, trial_ms, boot_ms, ceiling_ms| Costs {
            run_ns: run_ms * MS,
            trial_ns: trial_ms * MS,
            disturbed: 0,
            boot_ns: boot_ms * MS,
            ceiling_ns: ceiling_ms * MS,
        };
        let drain_ms = plan.trial.drain_ns / MS;
        match testbed.kind {
            TestbedKind::Sim | TestbedKind::Archive => costs(0, 0, 0, 0),
            TestbedKind::Memory => costs(30, 10, 0, 1_500),
            // Sender, device and other programs share CPUs.
            TestbedKind::Auto | TestbedKind::Netns => {
                Costs { disturbed: DISTURBED, ..costs(450, 150, 0, 2_400) }
            }
            // The counters of network cards are late, so the drain takes long.
            TestbedKind::Ssh => costs(5_000 + drain_ms, drain_ms, 0, 0),
            TestbedKind::Vm => {
                let run_ms = if testbed.vm.is_timed { 9_000 } else { 6_300 };
                costs(run_ms, 1_000, plan.base.dut.kind.row().boot_ms, 0)
            }
        }
    }
}

impl Estimate {
    /// Replaces the time of a run by a measured one.
    #[must_use]
    pub fn with_measured_runs(self, run_ns: u64) -> Estimate {
        let estimate = Estimate { run_ns, is_open: false, ..self };
        Estimate { total_ns: estimate.of_runs(self.runs), ..estimate }
    }

    /// Returns the suffix of a duration: ` or more` for searches.
    pub fn or_more(&self) -> &'static str {
        if self.is_open { " or more" } else { "" }
    }

    /// Returns the time of some of the runs in nanoseconds.
    pub fn of_runs(&self, runs: usize) -> u64 {
        match runs {
            0 => 0,
            runs => self.run_ns.saturating_mul(runs as u64).saturating_add(self.once_ns),
        }
    }
}

impl Plan {
    /// Returns the time of the plan if no rule ends it early.
    pub fn estimate(&self) -> Estimate {
        let costs = Costs::of(self);
        let run_ns = self.traffic_ns(&costs).saturating_add(costs.run_ns) + self.start_ns();
        let runs = self.runs.len();
        let once_ns = costs.boot_ns.saturating_mul(self.boots())
            + costs.ceiling_ns.saturating_mul(self.ceilings());
        let is_open = self.method.as_ref().is_some_and(|method| !method.goals().is_empty());
        let estimate = Estimate { runs, run_ns, once_ns, total_ns: 0, is_open };
        Estimate { total_ns: estimate.of_runs(runs), ..estimate }
    }

    /// Returns the time of a profile run with this window, in nanoseconds.
    pub fn profile_ns(&self, window_ns: u64) -> u64 {
        self.trial.warmup_ns + window_ns + Costs::of(self).run_ns
    }

    /// Returns the traffic of a run, including the overhead of its further trials.
    fn traffic_ns(&self, costs: &Costs) -> u64 {
        let testbed = &self.base.testbed;
        if testbed.kind == TestbedKind::Sim && !testbed.sim.realtime {
            return 0;
        }
        let warmup_ns = self.warmup_ns();
        if testbed.kind == TestbedKind::Vm && !testbed.vm.is_timed {
            return (COUNTED * (warmup_ns + self.trial.duration_ns) as f64) as u64;
        }
        let further_ns = self.method.as_ref().map_or(0, |method| {
            let expected = method.expected(Surroundings {
                duration_ns: self.trial.duration_ns,
                connections: self.base.traffic.flows.count(),
                disturbed: costs.disturbed,
            });
            let warmed = u64::from(expected.warmed).saturating_mul(warmup_ns);
            let trials = u64::from(expected.trials).saturating_mul(costs.trial_ns);
            expected.traffic_ns.saturating_add(warmed).saturating_add(trials)
        });
        (warmup_ns + self.trial.duration_ns).saturating_add(further_ns)
    }

    /// Returns the mean time that the start of the device adds to a run, over the variants.
    fn start_ns(&self) -> u64 {
        if self.base.testbed.kind == TestbedKind::Sim {
            return 0;
        }
        let start_ns = |variant: &Variant| {
            let dut = &variant.settings.dut;
            let route_ns = match dut.kind {
                DutKind::Router => ROUTER_ROUTE_NS,
                DutKind::Linux | DutKind::Freebsd => KERNEL_ROUTE_NS,
                DutKind::Command => 0,
            };
            MS * dut.kind.row().start_ms + route_ns * u64::from(dut.routes)
        };
        let sampling_ns = match (&self.profile, self.base.testbed.kind) {
            (Some(_), TestbedKind::Auto | TestbedKind::Netns | TestbedKind::Ssh) => SAMPLING_NS,
            _ => 0,
        };
        let starts_ns: u64 = self.variants.iter().map(start_ns).sum();
        starts_ns / self.variants.len().max(1) as u64 + sampling_ns
    }

    /// Returns the number of boots of guests: one for each different one, more if they cannot all
    /// stay up.
    fn boots(&self) -> u64 {
        let mut guests: Vec<&Settings> = Vec::new();
        let is_same = |a: &Settings, b: &Settings| {
            (&a.testbed.vm, a.dut.queues) == (&b.testbed.vm, b.dut.queues)
        };
        for variant in &self.variants {
            if !guests.iter().any(|guest| is_same(guest, &variant.settings)) {
                guests.push(&variant.settings);
            }
        }
        match guests.len() {
            few @ ..=GUESTS => few as u64,
            _ => self.runs.len() as u64,
        }
    }

    /// Returns the number of ceilings: one for each family and frame size.
    fn ceilings(&self) -> u64 {
        let mut kinds: Vec<_> = Vec::new();
        for Variant { settings: Settings { traffic, .. }, .. } in &self.variants {
            let kind = (traffic.family, traffic.frame_size);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds.len() as u64
    }

    /// Returns the mean warm-up of the variants: as planned, or until a packet of each flow has
    /// arrived.
    fn warmup_ns(&self) -> u64 {
        let of = |variant: &Variant| {
            let traffic = &variant.settings.traffic;
            let flows = f64::from(traffic.flows.count());
            let is_here = matches!(self.base.testbed.kind, TestbedKind::Auto | TestbedKind::Netns);
            let flows_ns = match traffic.rate {
                Rate::Pps(pps) => 1e9 * flows / pps,
                Rate::Max if is_here => FLOW_NS * flows * flows.ln(),
                _ => 0.0,
            };
            self.trial.warmup_ns.max(flows_ns as u64)
        };
        self.variants.iter().map(of).sum::<u64>() / self.variants.len().max(1) as u64
    }
}
