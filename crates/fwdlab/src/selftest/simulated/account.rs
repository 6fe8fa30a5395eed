//! Understated CPU time: in some runs the kernel accounts a third to a half of the time that the
//! device ran, and the rest as waiting.

use super::Table;
use super::end_to_end::{
    Device, Draw, Machine, QUIET_MACHINE, STEADY_DEVICE, TWO_VARIANTS, load, verdict_of,
};
use crate::selftest::Bar;
use fwdlab_model::plan::Plan;
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::{Outcome, rated};
use fwdlab_results::stats::Verdict;
use fwdlab_results::stats::binomial::Rate;
use fwdlab_results::store::Contents;

/// Blocks of an experiment.
const BLOCKS: u32 = 10;
/// Largest relative difference of equal figures.
const EQUAL: f64 = 1e-9;

fn plan() -> Plan {
    load(&format!("{TWO_VARIANTS}[design]\nblocks = {BLOCKS}\n"))
}

/// Counts the excluded runs among those whose CPU time is understated, or among the others.
fn excluded(plan: &Plan, seed: u64, machine: Machine, is_understated: bool) -> Rate {
    let mut draw = Draw::new(seed);
    let contents = draw.contents(plan, STEADY_DEVICE, machine);
    let (mut runs, _) = rated(&contents);
    runs.retain(|run| draw.understated.contains(&run.run) == is_understated);
    let hits = runs.iter().filter(|run| run.left_out.is_some()).count();
    Rate { hits: hits as u64, of: runs.len() as u64 }
}

/// Returns true if the ratio of corrected rates or the CPU time of the device alone differs from
/// the result without the runs whose CPU time is understated.
fn is_affected(plan: &Plan, seed: u64, machine: Machine) -> bool {
    let mut draw = Draw::new(seed);
    let mut contents = draw.contents(plan, STEADY_DEVICE, machine);
    let with = figures(&contents);
    contents.runs.retain(|run| !draw.understated.contains(&run.run));
    contents.run_invocations.truncate(contents.runs.len());
    let without = figures(&contents);
    with.len() != without.len()
        || with.iter().zip(&without).any(|(a, b)| (a - b).abs() > EQUAL * b.abs())
}

/// Ratio of the corrected rates, and the CPU time of the device alone with its effects.
fn figures(contents: &Contents) -> Vec<f64> {
    let analysis = Analysis::of(contents);
    let ratio = |outcome: &Outcome| match outcome {
        Outcome::Compared(answer) => Some(answer.comparison.ratio),
        Outcome::Counted(_) | Outcome::Unanswerable { .. } => None,
    };
    let comparisons = analysis.core.comparisons.iter();
    let ratios = comparisons.filter_map(|compared| ratio(&compared.outcome));
    let alone = analysis.device.iter().flat_map(|device| {
        let times = device.variants.iter().filter_map(|row| row.per_packet_ns);
        times.chain(device.effects.iter().flat_map(|found| [found.effect, found.difference_ns]))
    });
    ratios.chain(alone).collect()
}

impl Table<'_> {
    /// Rows about runs whose CPU time is understated.
    pub(super) fn accounts(&mut self) {
        let plan = plan();
        let design = || format!("{BLOCKS} blocks of 1 + 1, full load");
        let experiments = (self.experiments / 20).max(self.experiments.min(1000));
        for (share, steal) in [(0.05, 0.0), (0.05, 0.08), (0.1, 0.0)] {
            let machine = Machine { understated: share, steal, ..QUIET_MACHINE };
            let steal = if steal > 0.0 { ", reported steal" } else { "" };
            let noise = || format!("{:.0} % of runs{steal}", 100.0 * share);
            let question = "understated CPU time: the run is excluded";
            let bar = Some(Bar::AtLeast(0.98));
            let excludes = |seed| excluded(&plan, seed, machine, true);
            self.add_events((question, design(), noise()), bar, experiments, &excludes);
            let question = "understated CPU time: another run is excluded";
            let bar = Some(Bar::AtMost(0.001));
            let errs = |seed| excluded(&plan, seed, machine, false);
            self.add_events((question, design(), noise()), bar, experiments, &errs);
            let question = "understated CPU time: affects corrected rates or the device alone";
            let bar = Some(Bar::AtMost(0.05));
            let affects = |seed| is_affected(&plan, seed, machine);
            self.add_counted(question, design(), noise(), bar, experiments, &affects);
            let question = "understated CPU time: false difference";
            let errs = |seed| {
                let contents = Draw::new(seed).contents(&plan, STEADY_DEVICE, machine);
                matches!(verdict_of(&contents), Some(Verdict::Better | Verdict::Worse))
            };
            self.add_counted(question, design(), noise(), bar, experiments, &errs);
        }
        let slower = Device { ratio: 0.98, ..STEADY_DEVICE };
        let machine = Machine { understated: 0.05, ..QUIET_MACHINE };
        let finds = |seed| {
            let contents = Draw::new(seed).contents(&plan, slower, machine);
            verdict_of(&contents) == Some(Verdict::Worse)
        };
        let question = "understated CPU time: finds a loss of 2 %";
        let bar = Some(Bar::AtLeast(0.9));
        self.add_counted(question, design(), "5 % of runs".into(), bar, experiments, &finds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_with_understated_time_are_excluded() {
        let (plan, machine) = (plan(), Machine { understated: 0.1, ..QUIET_MACHINE });
        let seed = (1..100).find(|&seed| excluded(&plan, seed, machine, true).of == 2);
        let seed = seed.expect("an experiment with two such runs");
        assert_eq!(excluded(&plan, seed, machine, true), Rate { hits: 2, of: 2 });
        assert_eq!(excluded(&plan, seed, machine, false), Rate { hits: 0, of: 18 });
        assert!(!is_affected(&plan, seed, machine));
    }
}
