//! Describes a plan for users: its duration, and what each level changes.

use super::{Change, Design, Plan, Stop, Variant};
use crate::settings::{Rate, TestbedKind};

/// How long a plan takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Number of runs.
    pub runs: usize,
    /// Time of one run with its overhead, in nanoseconds. The drain counts in
    /// full, though it mostly ends sooner.
    pub run_ns: u64,
    /// Time of all runs, in nanoseconds.
    pub total_ns: u64,
    /// True for searches: they take the more trials the more the device's rate scatters.
    pub is_open: bool,
}

/// One setting that a level changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The level's setting and value.
    pub change: Change,
    /// The base's value; none for a sysctl that the base leaves as it is found.
    pub base: Option<String>,
}

impl Difference {
    /// True when the level sets what the base has anyway.
    pub fn is_same(&self) -> bool {
        self.base.as_ref() == Some(&self.change.value)
    }
}

impl Design {
    /// How many blocks (streams in an alternation) are done, and what may end
    /// them early, e.g. `up to 20 blocks, at most 5 looks (O'Brien-Fleming)`.
    pub fn extent(&self) -> String {
        let blocks = self.blocks;
        match (self.alternate_ns, self.stop) {
            (Some(_), _) => format!("{blocks} streams"),
            (None, None) => format!("{blocks} blocks"),
            (None, Some(Stop::Planned)) => {
                format!("up to {blocks} blocks, at most {} looks (O'Brien-Fleming)", Stop::LOOKS)
            }
            (None, Some(Stop::Open)) => {
                format!("up to {blocks} blocks, a look after each (e-process)")
            }
        }
    }
}

impl Estimate {
    /// What a time of it lacks: ` or more` for searches.
    pub fn or_more(&self) -> &'static str {
        if self.is_open { " or more" } else { "" }
    }
}

impl Plan {
    /// Time of the plan when no rule ends it early, `overhead_ns` being spent around the traffic of each run
    /// (starting the DUT, configuring, reading).
    pub fn estimate(&self, overhead_ns: u64) -> Estimate {
        let sim = &self.base.testbed;
        let traffic_ns = if sim.kind == TestbedKind::Sim && !sim.sim.realtime {
            0
        } else {
            let around_ns = self.warmup_ns() + self.trial.drain_ns;
            let further_ns = self.method.as_ref().map_or(0, |method| {
                let (trials, traffic_ns) = method.expected(self.trial.duration_ns);
                u64::from(trials).saturating_mul(around_ns).saturating_add(traffic_ns)
            });
            (around_ns + self.trial.duration_ns).saturating_add(further_ns)
        };
        let run_ns = traffic_ns.saturating_add(overhead_ns);
        let runs = self.runs.len();
        let is_open = self.method.as_ref().is_some_and(|method| !method.goals().is_empty());
        Estimate { runs, run_ns, total_ns: run_ns.saturating_mul(runs as u64), is_open }
    }

    /// Mean warm-up of the variants: as planned, or until a packet of each flow was sent.
    fn warmup_ns(&self) -> u64 {
        let of = |variant: &Variant| {
            let traffic = &variant.settings.traffic;
            let flows_ns = match traffic.rate {
                Rate::Pps(pps) => 1e9 * f64::from(traffic.flows.count()) / pps,
                _ => 0.0,
            };
            self.trial.warmup_ns.max(flows_ns as u64)
        };
        self.variants.iter().map(of).sum::<u64>() / self.variants.len().max(1) as u64
    }

    /// What a level lays over the base, with the base's own values.
    pub fn differences(&self, factor: usize, level: usize) -> Vec<Difference> {
        let base = self.base.all();
        let value_of = |name: &str| {
            base.iter().find(|setting| setting.name() == name).map(|setting| setting.value())
        };
        self.factors[factor].levels[level]
            .changes
            .iter()
            .map(|change| Difference { change: change.clone(), base: value_of(&change.setting) })
            .collect()
    }

    /// The simulated device's capacity in a variant, in packets per second: the
    /// base capacity times every effect whose factor and label, or setting and
    /// value, the variant has. Each effect counts once.
    pub fn sim_capacity_pps(&self, variant: usize) -> f64 {
        let variant = &self.variants[variant];
        let mut names: Vec<String> =
            variant.settings.all().iter().map(|s| format!("{}={}", s.name(), s.value())).collect();
        for (factor, &level) in self.factors.iter().zip(&variant.levels) {
            names.push(format!("{}={}", factor.name, factor.levels[level].label));
        }
        let sim = &variant.settings.testbed.sim;
        sim.effect
            .iter()
            .filter(|(effect, _)| names.contains(effect))
            .fold(sim.capacity_pps, |capacity, (_, factor)| capacity * factor)
    }
}
