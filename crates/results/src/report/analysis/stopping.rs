//! End of an experiment with a stopping rule: every comparison of its report has a verdict other
//! than *inconclusive*.

use super::comparisons::{Compared, Outcome, mode, rated};
use crate::stats::Verdict;
use crate::stats::sequential::{Mode, next_look_after};
use crate::store::{Contents, Store, StoreError};
use fwdlab_model::record::Calibration;
use fwdlab_model::{Plan, RunRecord};
use serde::Serialize;
use std::collections::BTreeSet;

/// Progress of an experiment with a stopping rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopping {
    /// Rule: `planned` or `open`.
    pub rule: String,
    /// Number of complete blocks.
    pub blocks: u32,
    /// Maximum number of blocks.
    pub max_blocks: u32,
    /// Number of comparisons that found a difference.
    pub different: usize,
    /// Number of comparisons that found equivalence.
    pub equivalent: usize,
    /// Number of undecided comparisons.
    pub open: usize,
    /// True if no further run is needed.
    pub done: bool,
    /// Summary in one sentence.
    pub sentence: String,
}

/// An experiment with a stopping rule, updated run by run.
#[derive(Debug)]
pub struct StoppingWatch {
    contents: Contents,
    recorded: BTreeSet<u32>,
    /// Length of the plan's longest prefix of recorded runs.
    complete: usize,
    stopping: Stopping,
}

impl StoppingWatch {
    /// Begins with the runs of `plan` in `store`. Returns `None` without reading anything if the
    /// plan has no rule.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn begin(plan: &Plan, store: &Store) -> Result<Option<StoppingWatch>, StoreError> {
        if plan.design.stop.is_none() {
            return Ok(None);
        }
        let contents = store.figures_only(|plan| plan.metric().is_rate())?;
        let recorded = contents.runs.iter().map(|run| run.run).collect();
        let Some(stopping) = judge(&contents) else { return Ok(None) };
        let mut watch = StoppingWatch { contents, recorded, complete: 0, stopping };
        watch.count_complete();
        Ok(Some(watch))
    }

    /// Replaces the calibrations, for an experiment that measures ceilings after
    /// [`StoppingWatch::begin`].
    pub fn set_calibrations(&mut self, calibrations: Vec<Calibration>) {
        self.contents.calibrations = calibrations;
    }

    /// Adds a recorded run.
    pub fn add(&mut self, run: &RunRecord) {
        self.recorded.insert(run.run);
        let at = self.contents.runs.partition_point(|known| known.run < run.run);
        self.contents.runs.insert(at, run.clone());
        let invocation = self.contents.run_invocations.last().copied().unwrap_or_default();
        self.contents.run_invocations.push(invocation);
        let before = self.blocks();
        self.count_complete();
        if self.blocks() > before && self.is_due() {
            self.stopping = judge(&self.contents).unwrap_or_else(|| self.stopping.clone());
        }
    }

    /// Returns true if no further run is needed.
    pub fn is_done(&self) -> bool {
        self.stopping.done
    }

    /// Returns the state at the last look.
    pub fn stopping(&self) -> &Stopping {
        &self.stopping
    }

    /// Returns true if a look is due. A look costs as much as all runs so far, so beyond one
    /// hundred blocks the distance between looks is 1 % of the blocks.
    fn is_due(&self) -> bool {
        let (blocks, last) = (self.blocks(), self.stopping.blocks);
        blocks >= last + 1 + last / 100 || blocks == self.contents.plan.design.blocks
    }

    fn count_complete(&mut self) {
        let rest = &self.contents.plan.runs[self.complete..];
        let recorded = &self.recorded;
        self.complete += rest.iter().take_while(|run| recorded.contains(&run.index)).count();
    }

    /// Returns the number of complete blocks from the start of the plan.
    fn blocks(&self) -> u32 {
        blocks(&self.contents.plan, self.complete)
    }
}

/// Returns the number of complete blocks of a plan whose first `complete` runs are recorded.
fn blocks(plan: &Plan, complete: usize) -> u32 {
    plan.runs.get(complete).map_or(plan.design.blocks, |run| run.block)
}

/// Evaluates the runs of a store; `None` without a rule.
fn judge(contents: &Contents) -> Option<Stopping> {
    contents.plan.design.stop?;
    let (_, comparisons) = rated(contents);
    stopping(contents, &comparisons)
}

/// Returns the state of an experiment with these comparisons; `None` without a rule.
pub(super) fn stopping(contents: &Contents, comparisons: &[Compared]) -> Option<Stopping> {
    let plan = &contents.plan;
    let mode = mode(plan.design.stop?);
    let recorded: BTreeSet<u32> = contents.runs.iter().map(|run| run.run).collect();
    let complete = plan.runs.iter().take_while(|run| recorded.contains(&run.index)).count();
    let (blocks, max_blocks) = (blocks(plan, complete), plan.design.blocks);
    let [mut different, mut equivalent, mut open] = [0; 3];
    for compared in comparisons {
        match &compared.outcome {
            Outcome::Compared(answer) => match answer.verdict {
                Verdict::Better | Verdict::Worse => different += 1,
                Verdict::Equivalent => equivalent += 1,
                Verdict::Inconclusive | Verdict::NotJudged => open += 1,
            },
            Outcome::Counted(_) | Outcome::Unanswerable { .. } => open += 1,
        }
    }
    let mut found = Stopping {
        rule: plan.design.stop?.name().to_owned(),
        blocks,
        max_blocks,
        different,
        equivalent,
        open,
        done: open == 0 || blocks >= max_blocks,
        sentence: String::new(),
    };
    found.sentence = found.sentence(next_look_after(mode, max_blocks, blocks), mode);
    Some(found)
}

impl Stopping {
    fn sentence(&self, next_look: Option<u32>, mode: Mode) -> String {
        let rule = match mode {
            Mode::Planned => "planned looks",
            Mode::Open => "open-ended",
        };
        let Stopping { blocks, max_blocks, different, equivalent, open, .. } = self;
        let found = format!("{different} different, {equivalent} equivalent, {open} not decided");
        match next_look {
            _ if *open == 0 && *different > 0 && blocks < max_blocks => format!(
                "{rule}: decided after {blocks} of at most {max_blocks} blocks: {found}; effects \
                 found by an early stop are on average too large, up to twice if they are small"
            ),
            _ if *open == 0 => {
                format!("{rule}: decided after {blocks} of at most {max_blocks} blocks: {found}")
            }
            Some(next) if !self.done => {
                format!(
                    "{rule}: {blocks} of at most {max_blocks} blocks: {found}; the next look is after block {next}"
                )
            }
            _ => format!("{rule}: all {max_blocks} blocks are done: {found}"),
        }
    }
}
