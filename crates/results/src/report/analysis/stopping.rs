//! Whether an experiment that may stop early should.

use super::comparisons::{criteria, mode, of, pairs};
use super::figures::RunResult;
use crate::stats::sequential::{Decision, Mode, compare_sequentially, next_look_after};
use fwdlab_model::Plan;
use serde::Serialize;

/// How far an experiment with a stopping rule has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopping {
    /// Rule: `planned` or `open`.
    pub rule: String,
    /// Blocks that are complete.
    pub blocks: u32,
    /// Blocks at most.
    pub max_blocks: u32,
    /// Comparisons that found a difference.
    pub different: usize,
    /// Comparisons that found equivalence.
    pub equivalent: usize,
    /// Comparisons that are not decided.
    pub open: usize,
    /// True when nothing more has to be measured.
    pub done: bool,
    /// All of it in a sentence.
    pub sentence: String,
}

/// Judges the runs so far; none for a plan without a rule.
pub(super) fn stopping(plan: &Plan, runs: &[RunResult]) -> Option<Stopping> {
    let stop = plan.design.stop?;
    let max_blocks = plan.design.blocks;
    let blocks = complete_blocks(plan, runs);
    let (mut different, mut equivalent, mut open) = (0, 0, 0);
    for (variant, baseline) in pairs(plan) {
        let (a, b) = (of(runs, baseline), of(runs, variant));
        let judged = compare_sequentially(&a, &b, mode(stop), max_blocks, criteria(plan));
        match judged.map(|(_, decision)| decision) {
            Ok(Decision::Difference) => different += 1,
            Ok(Decision::Equivalent) => equivalent += 1,
            Ok(Decision::Continue | Decision::Exhausted) | Err(_) => open += 1,
        }
    }
    let done = open == 0 || blocks >= max_blocks;
    let mut stopping = Stopping {
        rule: stop.name().to_owned(),
        blocks,
        max_blocks,
        different,
        equivalent,
        open,
        done,
        sentence: String::new(),
    };
    stopping.sentence = stopping.told(next_look_after(mode(stop), max_blocks, blocks), mode(stop));
    Some(stopping)
}

/// Blocks of which every run was recorded, from the first on.
fn complete_blocks(plan: &Plan, runs: &[RunResult]) -> u32 {
    let recorded: std::collections::HashSet<u32> = runs.iter().map(|run| run.run).collect();
    let first_missing = plan.runs.iter().find(|run| !recorded.contains(&run.index));
    first_missing.map_or(plan.design.blocks, |run| run.block)
}

impl Stopping {
    fn told(&self, next_look: Option<u32>, mode: Mode) -> String {
        let rule = match mode {
            Mode::Planned => "planned looks",
            Mode::Open => "open-ended",
        };
        let Stopping { blocks, max_blocks, different, equivalent, open, .. } = self;
        let found = format!("{different} different, {equivalent} equivalent, {open} not decided");
        match next_look {
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
