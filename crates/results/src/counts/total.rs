//! A run's figure: what the device executed for packets.

use crate::stats::summary::median;
use fwdlab_model::record::{Executed, ExecutedFunction};
use serde::Serialize;
use std::collections::BTreeSet;

/// The functions that enter totals: those that are background in no run of a comparison. Told
/// of all runs together, because totals over different functions could not be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreground {
    background: BTreeSet<String>,
}

/// What one run executed, a packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// Instructions: the sum over the functions of the median of their bursts.
    pub instructions: f64,
    /// The sum over the same functions in each burst.
    pub bursts: Vec<f64>,
    /// Atomic instructions among them.
    pub atomics: f64,
    /// Bytes that repeated string instructions moved.
    pub bytes: f64,
    /// Instructions of the idle device in as much time, which are not among them.
    pub background: f64,
    /// Packets that were counted.
    pub packets: u64,
    /// Packets that the device found at once.
    pub batch: u16,
    /// Batches that it did not find at once, of so many.
    pub scattered: (u64, u64),
}

impl Foreground {
    /// That of these runs.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Executed>) -> Foreground {
        let functions = runs.into_iter().flat_map(|executed| &executed.functions);
        let background = functions.filter(|f| f.is_background).map(|f| f.name.clone());
        Foreground { background: background.collect() }
    }

    /// The functions of a run that count.
    pub(super) fn functions<'a>(
        &'a self,
        executed: &'a Executed,
    ) -> impl Iterator<Item = &'a ExecutedFunction> {
        executed.functions.iter().filter(|function| !self.background.contains(&function.name))
    }

    /// A run's figure; none of a run without bursts.
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

impl Total {
    /// Least and most of the bursts. The sum of medians may lie outside: what happened once
    /// in a burst is in that burst's sum, and in no median.
    pub fn range(&self) -> (f64, f64) {
        range(&self.bursts)
    }
}

/// Least and most.
pub(super) fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_background_in_one_run_counts_in_none() {
        let function = |name: &str, bursts: &[f64], is_background| ExecutedFunction {
            name: name.into(),
            bursts: bursts.to_vec(),
            atomics: 1.0,
            bytes: 2.0,
            is_background,
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
        let both = Foreground::of([&first, &second]);
        let total = both.total(&first).expect("a total");
        assert_eq!(total.instructions, 138.0);
        assert_eq!(total.bursts, [136.0, 166.0, 140.0]);
        assert_eq!((total.range(), total.atomics, total.packets), ((136.0, 166.0), 2.0, 96));
        assert_eq!(both.total(&second), Some(total));
        assert_eq!(both.total(&Executed::default()), None);
    }
}
