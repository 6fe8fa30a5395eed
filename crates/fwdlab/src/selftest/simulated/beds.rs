//! Rates at which a bed is named if all are alike, and if one of them is slower.

use super::law::QUIET;
use super::{Runs, Table};
use crate::selftest::Bar;
use fwdlab_results::report::analysis::Outcome;
use fwdlab_results::report::sections::{BedRun, Beds, beds_of};
use fwdlab_results::stats::{Criteria, Verdict};

/// Number of experiments per row: each one has many tests.
const EXPERIMENTS: u64 = 1000;
/// Names of beds.
const NAMES: [&str; 10] =
    ["rack0", "rack1", "rack2", "rack3", "rack4", "rack5", "rack6", "rack7", "rack8", "rack9"];
/// The slower bed, and its level.
const SLOWER: (usize, f64) = (1, 0.98);
/// Effects on a whole block scatter as much as effects on its runs.
const NOISE: &str = "1 % in blocks, 1 % in runs";

impl Table<'_> {
    /// All tests of beds are one family, separate from the verdicts: levels and effects together,
    /// and the drifts of all beds.
    pub(super) fn beds(&mut self) {
        let at_most = Some(Bar::AtMost(0.05));
        for (beds, blocks) in [(2, 6), (4, 8), (10, 8)] {
            let named = |seed| !named(&measured(seed, beds, blocks, 1.0)).is_empty();
            self.of_beds("any bed named, all alike", (beds, blocks), at_most, &named);
            let drifts = |seed| measured(seed, beds, blocks, 1.0).beds.iter().any(|b| b.drifts);
            self.of_beds("any bed that drifts, none does", (beds, blocks), at_most, &drifts);
        }
        for (beds, blocks, bar) in
            [(2, 20, None), (4, 8, None), (4, 20, Some(0.9)), (10, 20, Some(0.9))]
        {
            let finds = |seed| {
                let beds = measured(seed, beds, blocks, SLOWER.1);
                let found = named(&beds);
                found.contains(&(NAMES[SLOWER.0], true))
            };
            let bar = bar.map(Bar::AtLeast);
            self.of_beds("names the bed that is 2 % slower", (beds, blocks), bar, &finds);
        }
        for (beds, blocks) in [(4, 20), (10, 20)] {
            let errs = |seed| {
                let beds = measured(seed, beds, blocks, SLOWER.1);
                let found = named(&beds);
                found.iter().any(|found| *found != (NAMES[SLOWER.0], true))
            };
            let question = "any other bed or effect, one bed is 2 % slower";
            self.of_beds(question, (beds, blocks), at_most, &errs);
        }
    }

    fn of_beds(
        &mut self,
        question: &str,
        (beds, blocks): (usize, u32),
        bar: Option<Bar>,
        happens: &(dyn Fn(u64) -> bool + Sync),
    ) {
        let design = format!("{beds} beds, {blocks} blocks of AB each");
        let experiments = self.experiments.min(EXPERIMENTS);
        self.add_counted(question, design, NOISE.to_owned(), bar, experiments, happens);
    }
}

/// An experiment of two identical variants, one of whose beds has this level.
fn measured(seed: u64, beds: usize, blocks: u32, level: f64) -> Beds {
    let mut law = Runs::new(QUIET, seed);
    let mut runs = Vec::new();
    for number in 0..blocks * beds as u32 {
        let place = number as usize % beds;
        let of_block = law.next() * if place == SLOWER.0 { level } else { 1.0 };
        let run = |variant, run: f64| BedRun {
            bed: NAMES[place],
            block: number,
            variant,
            pps: 1e6 * of_block * run,
        };
        runs.extend([run(0, law.next()), run(1, law.next())]);
    }
    let several = beds_of(&runs, &["a", "b"], &[(0, 1)], Criteria::default());
    several.unwrap_or(Beds { beds: Vec::new(), effects: Vec::new(), confidence: 0.0 })
}

/// The beds named by a level or an effect, and true if that is a lower level.
fn named(beds: &Beds) -> Vec<(&str, bool)> {
    let verdict = |outcome: &Option<Outcome>| match outcome {
        Some(Outcome::Compared(answer)) => Some(answer.verdict),
        _ => None,
    };
    let is_other =
        |found: &Option<Verdict>| matches!(found, Some(Verdict::Better | Verdict::Worse));
    let levels = beds.beds.iter().map(|bed| (bed.bed.as_str(), verdict(&bed.level)));
    let levels = levels.filter(|(_, found)| is_other(found));
    let effects = beds.effects.iter().map(|one| (one.bed.as_str(), verdict(&one.difference)));
    let effects = effects.filter(|(_, found)| is_other(found)).map(|(bed, _)| (bed, false));
    levels.map(|(bed, found)| (bed, found == Some(Verdict::Worse))).chain(effects).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_bed_is_named_and_equal_beds_rarely_are() {
        let any = (0..40).filter(|&seed| !named(&measured(seed, 4, 8, 1.0)).is_empty());
        // 2 are expected; 8 or more occur in 1 of 1000 sets of 40.
        assert!(any.count() < 8);
        let finds = |seed: &u64| {
            named(&measured(*seed, 4, 20, SLOWER.1)).contains(&(NAMES[SLOWER.0], true))
        };
        assert!((0..10).filter(finds).count() >= 8);
    }
}
