//! Instructions that emulated devices executed, by run.

use super::figures::RunResult;
use crate::counts::{
    self, Exact, Foreground, FunctionCount, Modelled, Repetition, Total, compare_executed,
};
use crate::profile::Subsystems;
use crate::stats::Unanswerable;
use crate::store::Contents;
use fwdlab_model::record::Executed;

/// Counts of each variant's included runs.
pub(in crate::report) struct ExecutedRuns<'a> {
    contents: &'a Contents,
    runs: &'a [RunResult],
    /// By variant.
    foregrounds: Vec<Foreground>,
    table: Subsystems,
}

impl<'a> ExecutedRuns<'a> {
    /// Collects the counts of `runs`.
    pub(in crate::report) fn of(contents: &'a Contents, runs: &'a [RunResult]) -> Self {
        let foregrounds = Foreground::by_variant(&contents.plan, contents.runs.iter());
        ExecutedRuns { contents, runs, foregrounds, table: Subsystems::default() }
    }

    /// Returns the runs of one variant, or of the builds of a revision.
    pub(in crate::report) fn runs<'s>(
        &'s self,
        variants: &'s [usize],
    ) -> impl Iterator<Item = (&'a RunResult, &'a Total)> + 's {
        let is_included =
            |run: &&RunResult| variants.contains(&run.variant) && run.left_out.is_none();
        self.runs.iter().filter(is_included).filter_map(|run| Some((run, run.counted.as_ref()?)))
    }

    /// Returns the recorded counts of the same runs.
    pub(in crate::report) fn executed(&self, variants: &[usize]) -> Vec<&'a Executed> {
        let indices: Vec<u32> = self.runs(variants).map(|(run, _)| run.run).collect();
        let records = self.contents.runs.iter().filter(|record| indices.contains(&record.run));
        records.filter_map(|record| record.trial.executed.as_ref()).collect()
    }

    /// Returns the functions of a variant, most expensive first, without background.
    pub(in crate::report) fn functions(&self, variant: usize) -> Vec<FunctionCount> {
        counts::costs(&self.executed(&[variant]), &self.foregrounds[variant], &self.table)
    }

    /// Returns the misses of a variant in modelled caches; `None` without a model.
    pub(in crate::report) fn misses(&self, variant: usize) -> Option<Modelled> {
        counts::misses(&self.executed(&[variant]), &self.foregrounds[variant])
    }
}

/// Compares each variant with its baseline by their counts.
pub(super) fn compare(
    contents: &Contents,
    runs: &[RunResult],
    pairs: &[(usize, usize)],
) -> Vec<Result<Exact, Unanswerable>> {
    let counted = ExecutedRuns::of(contents, runs);
    let plan = &contents.plan;
    let margin = plan.compare.margin;
    // Builds of a revision repeat like boots: their differences are scatter.
    let executed = |variant: usize| counted.executed(&plan.builds_of(variant));
    let outcome = |&(variant, baseline): &(usize, usize)| {
        let (a, b) = (executed(baseline), executed(variant));
        compare_executed(&a, &b, margin, Repetition::Runs)
    };
    pairs.iter().map(outcome).collect()
}
