//! A run's total: instructions that the device executed for packets.

use crate::stats::summary::median;
use fwdlab_model::record::{Executed, ExecutedFunction};
use fwdlab_model::{Plan, RunRecord};
use serde::Serialize;
use std::collections::BTreeSet;

/// Minimum instructions per packet of a function that packets certainly cause.
const CAUSED: f64 = 1.0;
/// Maximum share of them that the idle device may execute.
const IDLE: f64 = 0.1;

/// The functions that count in a total: all except background functions.
///
/// A function is background in a set of runs if the idle device executes most of it in one of them,
/// unless packets certainly cause it in another. A variant's total is over the foreground of its
/// own runs, so it does not depend on the compared variant. A comparison is over the foreground of
/// the runs of both variants, because totals over different functions differ by those functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreground {
    background: BTreeSet<String>,
}

/// Instructions that one run executed, per packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// Instructions: the sum over the functions of the median of their bursts.
    pub instructions: f64,
    /// The sum over the same functions for each burst.
    pub bursts: Vec<f64>,
    /// Number of atomic instructions among them.
    pub atomics: f64,
    /// Bytes moved by repeated string instructions.
    pub bytes: f64,
    /// Instructions of the idle device in the same time, not included.
    pub background: f64,
    /// Number of counted packets.
    pub packets: u64,
    /// Number of packets that the device found simultaneously.
    pub batch: u16,
    /// Batches that the device did not find simultaneously, and the number of all batches.
    pub scattered: (u64, u64),
}

impl Foreground {
    /// Determines the foreground of these runs.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Executed>) -> Foreground {
        let (mut background, mut caused) = (BTreeSet::new(), BTreeSet::new());
        for function in runs.into_iter().flat_map(|executed| &executed.functions) {
            if function.is_background {
                background.insert(&function.name);
            } else if is_caused(function) {
                caused.insert(&function.name);
            }
        }
        Foreground { background: background.difference(&caused).map(|n| (*n).clone()).collect() }
    }

    /// Determines the foreground of each variant of a plan, from the runs of its revision.
    pub fn by_variant<'a>(
        plan: &Plan,
        runs: impl Iterator<Item = &'a RunRecord> + Clone,
    ) -> Vec<Foreground> {
        let of = |variant: usize| {
            let builds = plan.builds_of(variant);
            let of_builds =
                runs.clone().filter(|run| run.variants.iter().any(|v| builds.contains(v)));
            Foreground::of(of_builds.filter_map(|run| run.trial.executed.as_ref()))
        };
        (0..plan.variants.len()).map(of).collect()
    }

    /// Returns the foreground functions of a run.
    pub(super) fn functions<'a>(
        &'a self,
        executed: &'a Executed,
    ) -> impl Iterator<Item = &'a ExecutedFunction> {
        executed.functions.iter().filter(|function| !self.background.contains(&function.name))
    }

    /// Returns a run's total; `None` for a run without bursts.
    pub fn total(&self, executed: &Executed) -> Option<Total> {
        let number = executed.packets.len();
        let sum = |of: &dyn Fn(&ExecutedFunction) -> f64| self.functions(executed).map(of).sum();
        let burst = |at: usize| sum(&|f| f.bursts.get(at).copied().unwrap_or(0.0));
        (number > 0).then(|| Total {
            instructions: sum(&|f| median(&f.bursts).unwrap_or(0.0)),
            bursts: (0..number).map(burst).collect(),
            atomics: sum(&|f| f.atomics),
            bytes: sum(&|f| f.bytes),
            background: executed.background,
            packets: executed.packets.iter().sum(),
            batch: executed.batch,
            scattered: executed.scattered,
        })
    }
}

/// Returns true if packets certainly cause a function: the idle device hardly executes it.
fn is_caused(function: &ExecutedFunction) -> bool {
    let instructions = median(&function.bursts).unwrap_or(0.0);
    instructions >= CAUSED && function.idle <= IDLE * instructions
}

impl Total {
    /// Returns minimum and maximum of the bursts. The sum of medians may be outside: an event in
    /// one burst is in that burst's sum, but in no median.
    pub fn range(&self) -> (f64, f64) {
        range(&self.bursts)
    }
}

/// Returns minimum and maximum.
pub(super) fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreground_includes_functions_caused_in_any_run() {
        let run = |instructions: f64, idle: f64| Executed {
            packets: vec![32; 2],
            functions: vec![ExecutedFunction {
                name: "kfree".into(),
                bursts: vec![instructions; 2],
                idle,
                is_background: idle > instructions,
                ..ExecutedFunction::default()
            }],
            ..Executed::default()
        };
        let total = |runs: &[&Executed]| {
            let foreground = Foreground::of(runs.iter().copied());
            foreground.total(runs[0]).expect("a total").instructions
        };
        let (caused, idle, mixed) = (run(88.0, 0.0), run(1.0, 3.0), run(4.0, 3.0));
        assert_eq!(total(&[&caused, &idle]), 88.0);
        assert_eq!(total(&[&mixed]), 4.0);
        assert_eq!(total(&[&mixed, &idle]), 0.0);
    }

    #[test]
    fn background_of_one_run_is_excluded_from_all() {
        let function = |name: &str, bursts: &[f64], is_background| ExecutedFunction {
            name: name.into(),
            bursts: bursts.to_vec(),
            atomics: 1.0,
            bytes: 2.0,
            is_background,
            idle: if name == "tick" { 3.0 } else { 0.0 },
            ..ExecutedFunction::default()
        };
        let run = |is_background| Executed {
            packets: vec![32, 32, 32],
            functions: vec![
                function("ip_forward", &[126.0, 126.0, 128.0], false),
                function("slab", &[10.0, 40.0, 12.0], false),
                function("tick", &[3.0, 4.0, 5.0], is_background),
            ],
            ..Executed::default()
        };
        let (first, second) = (run(false), run(true));
        let alone = Foreground::of([&first]).total(&first).expect("a total");
        assert_eq!(alone.instructions, 126.0 + 12.0 + 4.0);
        let foreground = Foreground::of([&first, &second]);
        let total = foreground.total(&first).expect("a total");
        assert_eq!(total.instructions, 138.0);
        assert_eq!(total.bursts, [136.0, 166.0, 140.0]);
        assert_eq!((total.range(), total.atomics, total.packets), ((136.0, 166.0), 2.0, 96));
        assert_eq!(foreground.total(&second), Some(total));
        assert_eq!(foreground.total(&Executed::default()), None);
    }
}
