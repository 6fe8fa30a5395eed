//! Describes a plan for users: the changes of each level.

use super::{Change, Design, Plan, Stop};

/// One setting that a level changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The level's setting and value.
    pub change: Change,
    /// The base's value; `None` for a sysctl that the base leaves unchanged.
    pub base: Option<String>,
}

impl Difference {
    /// True if the level sets the base's value again.
    pub fn is_same(&self) -> bool {
        self.base.as_ref() == Some(&self.change.value)
    }
}

impl Design {
    /// Describes the number of blocks (streams in an alternation) and early ends, e.g. `up to 20
    /// blocks, at most 5 looks (O'Brien-Fleming)`.
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

impl Plan {
    /// Returns the changes of a level, with the values of the base.
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

    /// Returns the simulated device's capacity in a variant, in packets per second: the base
    /// capacity times every effect whose factor and label, or setting and value, the variant has.
    /// Each effect counts once.
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
