//! Whether an experiment that may stop early should.

use super::comparisons::{criteria, mode, pairs};
use super::figures::{RunResult, distinct, run_result};
use crate::counts::Foreground;
use crate::stats::sequential::{Course, Decision, Mode, Rule, next_look_after};
use crate::stats::summary::mean;
use crate::store::{Store, StoreError};
use fwdlab_model::plan::RunMetric;
use fwdlab_model::plan::Stop;
use fwdlab_model::{Plan, RunRecord};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

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

/// An experiment with a stopping rule, followed run by run: a further run costs the same
/// however many there were, and nothing is read anew from the store.
#[derive(Debug)]
pub struct StoppingWatch<'a> {
    plan: &'a Plan,
    figure: RunMetric,
    stop: Stop,
    /// None where the plan's criteria leave nothing to decide.
    rule: Option<Rule>,
    pairs: Vec<Pair>,
    recorded: HashSet<u32>,
    /// Runs of the plan, from the first on, that are all recorded.
    complete: usize,
}

/// One comparison as far as it has come.
#[derive(Debug)]
struct Pair {
    variant: usize,
    baseline: usize,
    /// Logarithms of the rates: those of the baseline, those of the variant.
    blocks: BTreeMap<u32, [Vec<f64>; 2]>,
    /// The last block that the course has seen.
    seen: Option<u32>,
    course: Option<Course>,
}

impl<'a> StoppingWatch<'a> {
    /// Begins with the runs of `plan` that are in `store`; none, and nothing is read, for
    /// a plan without a rule.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn begin(plan: &'a Plan, store: &Store) -> Result<Option<StoppingWatch<'a>>, StoreError> {
        let Some(mut watch) = StoppingWatch::of(plan) else { return Ok(None) };
        let figure = watch.figure;
        let contents = store.figures_only(|_| figure != RunMetric::Mean)?;
        contents.runs.iter().for_each(|run| watch.add(run));
        Ok(Some(watch))
    }

    /// Before the first run; none for a plan without a rule.
    fn of(plan: &'a Plan) -> Option<StoppingWatch<'a>> {
        let stop = plan.design.stop?;
        let rule = Rule::new(mode(stop), plan.design.blocks, criteria(plan)).ok();
        let pair = |(variant, baseline)| Pair {
            variant,
            baseline,
            blocks: BTreeMap::new(),
            seen: None,
            course: rule.as_ref().map(Rule::start),
        };
        Some(StoppingWatch {
            plan,
            figure: plan.metric(),
            stop,
            pairs: pairs(plan).into_iter().map(pair).collect(),
            rule,
            recorded: HashSet::new(),
            complete: 0,
        })
    }

    /// Takes in a run that was recorded.
    pub fn add(&mut self, run: &RunRecord) {
        for variant in distinct(&run.variants) {
            self.add_result(&run_result(
                self.plan,
                run,
                variant,
                self.figure,
                &Foreground::default(),
            ));
        }
    }

    fn add_result(&mut self, run: &RunResult) {
        self.recorded.insert(run.run);
        let recorded = &self.recorded;
        let rest = &self.plan.runs[self.complete..];
        self.complete += rest.iter().take_while(|run| recorded.contains(&run.index)).count();
        let (Some(rule), Some(pps), None) = (&self.rule, run.value_pps, &run.left_out) else {
            return;
        };
        for pair in &mut self.pairs {
            pair.add(rule, run.block, run.variant, pps);
        }
    }

    /// True when nothing more has to be measured.
    pub fn is_done(&self) -> bool {
        let [.., open] = self.decided();
        open == 0 || self.blocks() >= self.plan.design.blocks
    }

    /// Comparisons that found a difference, equivalence, nothing yet.
    fn decided(&self) -> [usize; 3] {
        let (mut different, mut equivalent, mut open) = (0, 0, 0);
        for pair in &self.pairs {
            match pair.course.as_ref().map(Course::decision) {
                Some(Decision::Difference) => different += 1,
                Some(Decision::Equivalent) => equivalent += 1,
                Some(Decision::Continue | Decision::Exhausted) | None => open += 1,
            }
        }
        [different, equivalent, open]
    }

    /// Blocks of which every run was recorded, from the first on.
    fn blocks(&self) -> u32 {
        let first_missing = self.plan.runs.get(self.complete);
        first_missing.map_or(self.plan.design.blocks, |run| run.block)
    }

    /// How far it has come.
    pub fn stopping(&self) -> Stopping {
        let (blocks, max_blocks) = (self.blocks(), self.plan.design.blocks);
        let [different, equivalent, open] = self.decided();
        let mut stopping = Stopping {
            rule: self.stop.name().to_owned(),
            blocks,
            max_blocks,
            different,
            equivalent,
            open,
            done: self.is_done(),
            sentence: String::new(),
        };
        let mode = mode(self.stop);
        stopping.sentence = stopping.sentence(next_look_after(mode, max_blocks, blocks), mode);
        stopping
    }
}

impl Pair {
    /// Takes in the figure of a run, if it is one of this comparison. A block counts
    /// when both variants have a run in it.
    fn add(&mut self, rule: &Rule, block: u32, variant: usize, pps: f64) {
        let Some(side) = [self.baseline, self.variant].iter().position(|&own| own == variant)
        else {
            return;
        };
        // A rate without a logarithm leaves the comparison undecided.
        if !(pps > 0.0 && pps.is_finite()) {
            self.course = None;
        }
        let Some(course) = &mut self.course else { return };
        let logs = self.blocks.entry(block).or_default();
        logs[side].push(pps.ln());
        let Some(ratio) = log_ratio(logs) else { return };
        if self.seen.is_none_or(|seen| seen < block) {
            rule.advance(course, ratio);
            self.seen = Some(block);
            return;
        }
        // Not in the order of the blocks, as after runs that were given up: once more.
        *course = rule.start();
        for (&block, logs) in &self.blocks {
            if let Some(ratio) = log_ratio(logs) {
                rule.advance(course, ratio);
                self.seen = Some(block);
            }
        }
    }
}

/// The logarithm of a block's ratio; none without runs of both variants.
fn log_ratio([baseline, candidate]: &[Vec<f64>; 2]) -> Option<f64> {
    let both = !baseline.is_empty() && !candidate.is_empty();
    both.then(|| mean(candidate) - mean(baseline))
}

/// Judges the runs so far; none for a plan without a rule.
pub(super) fn stopping(plan: &Plan, runs: &[RunResult]) -> Option<Stopping> {
    let mut watch = StoppingWatch::of(plan)?;
    runs.iter().for_each(|run| watch.add_result(run));
    Some(watch.stopping())
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
