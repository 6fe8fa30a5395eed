//! The runs of two variants, and checks that they permit a verdict.
//!
//! A run whose sender fell short of its load is excluded. Without loss at a paced rate there is
//! nothing to compare. If most runs were disturbed, or limited by the generator, the difference
//! can't be attributed to the device.

use super::figures::RunResult;
use crate::stats::comparison::{Capacity, DoubtEvidence};
use crate::stats::{BlockedRun, Comparison, Unanswerable};
use fwdlab_model::units::format_pps;

/// Returns the values of a variant's included runs.
pub(crate) type FiguresOf<'a> = &'a dyn Fn(usize) -> Vec<BlockedRun>;

/// Both sides of a comparison.
pub(crate) struct ComparisonInputs<'a> {
    runs: Vec<&'a RunResult>,
    sides: [Vec<usize>; 2],
}

impl<'a> ComparisonInputs<'a> {
    /// Selects the runs of both sides: of one variant each, or of the builds of a revision.
    pub(crate) fn of(runs: &'a [RunResult], sides: [Vec<usize>; 2]) -> ComparisonInputs<'a> {
        let is_on = |run: &&RunResult| sides.iter().any(|side| side.contains(&run.variant));
        ComparisonInputs { runs: runs.iter().filter(is_on).collect(), sides }
    }

    /// Compares by rate and, if meaningful, by capacity. `compare` receives a function that returns
    /// the values of a variant's included runs.
    pub(crate) fn judge(
        &self,
        compare: &dyn Fn(FiguresOf<'_>) -> Result<Comparison, Unanswerable>,
    ) -> Result<Comparison, Unanswerable> {
        self.refuse()?;
        let by = |figure: fn(&RunResult) -> Option<f64>| {
            compare(&|variant| figures_of(self.runs.iter().copied(), variant, figure))
        };
        let found = by(|run| run.value_pps)?;
        let capacity = match found.capacity {
            None if self.have_capacity() => {
                let shares = by(|run| Some(run.value_pps? / run.p90_pps.filter(|pps| *pps > 0.0)?));
                let capacity = by(|run| run.p90_pps).ok().as_ref().map(Capacity::of);
                capacity.zip(shares.ok()).map(|(found, shares)| found.with_steadiness(&shares))
            }
            known => known.filter(|_| self.have_capacity()),
        };
        Ok(Comparison { capacity, doubtful: self.doubtful(), ..found })
    }

    /// Fails if these runs can't be compared.
    fn refuse(&self) -> Result<(), Unanswerable> {
        for side in &self.sides {
            let mut side_runs =
                self.runs.iter().filter(|run| side.contains(&run.variant)).peekable();
            let first = side_runs.peek().and_then(|run| run.left_out.clone());
            if let Some(why) = first.filter(|_| side_runs.all(|run| run.left_out.is_some())) {
                return Err(Unanswerable::NoValidRun { why });
            }
        }
        let mut counted = self.counted().peekable();
        let first = counted.peek().and_then(|run| run.intended_pps);
        let lossless = |run: &RunResult| run.intended_pps.is_some() && run.offered == run.forwarded;
        match first {
            Some(load) if counted.all(lossless) => {
                let counted = self.counted().count();
                let left_out = self.runs.len() - counted;
                Err(Unanswerable::NotLoaded { load: format_pps(load), counted, left_out })
            }
            _ => Ok(()),
        }
    }

    fn counted(&self) -> impl Iterator<Item = &'a RunResult> + '_ {
        self.runs.iter().copied().filter(|run| run.left_out.is_none())
    }

    /// Returns true if capacity is defined: for a device under full load, with samples.
    fn have_capacity(&self) -> bool {
        self.counted().all(|run| run.intended_pps.is_none() && run.has_capacity)
    }

    fn doubtful(&self) -> Option<DoubtEvidence> {
        let count = |of: fn(&RunResult) -> bool| self.counted().filter(|run| of(run)).count();
        DoubtEvidence::of(
            count(|_| true),
            count(|run| run.disturbed),
            count(|run| run.generator_limited),
            count(|run| run.disturbed || run.generator_limited),
        )
    }
}

/// Returns the values of one variant's included runs.
pub(crate) fn figures(
    runs: &[RunResult],
    variant: usize,
    figure: fn(&RunResult) -> Option<f64>,
) -> Vec<BlockedRun> {
    figures_of(runs.iter(), variant, figure)
}

fn figures_of<'a>(
    runs: impl Iterator<Item = &'a RunResult>,
    variant: usize,
    figure: fn(&RunResult) -> Option<f64>,
) -> Vec<BlockedRun> {
    runs.filter(|run| run.variant == variant && run.left_out.is_none())
        .filter_map(|run| Some(BlockedRun { block: run.block, pps: figure(run)? }))
        .collect()
}
