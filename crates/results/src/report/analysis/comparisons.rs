//! Comparisons of each variant with its baseline: one family, adjusted together.

use super::comparison_inputs::{self, ComparisonInputs, FiguresOf};
use super::executed;
use super::figures::{self, RunResult};
use crate::counts::Exact;
use crate::document::judgement::Judgement;
use crate::format;
use crate::stats::alternation::{Slice, compare_alternation, slices_of};
use crate::stats::comparison::Layout;
use crate::stats::sequential::{Mode, compare_sequentially};
use crate::stats::stolen_time::Roles;
use crate::stats::{
    Adjustment, BlockedRun, Comparison, Criteria, Unanswerable, Verdict, adjust_family,
    compare_blocked, compare_builds, compare_unblocked,
};
use crate::store::Contents;
use fwdlab_model::plan::{RunMetric, Stop};
use fwdlab_model::{Plan, RunRecord};
use fwdlab_search::Goal;
use serde::Serialize;

/// A variant compared with its baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Index of the baseline.
    pub baseline: usize,
    /// Its label.
    pub baseline_label: String,
    /// The variants whose runs are compared, of baseline and candidate: one each, or the builds of
    /// a revision.
    #[serde(skip)]
    pub(crate) sides: [Vec<usize>; 2],
    /// The goal of a search by which they are compared; `None` for the first goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The goal to name in a row; `None` if the experiment has at most one.
    #[serde(skip)]
    pub(crate) named_goal: Option<String>,
    /// Result of the comparison.
    pub outcome: Outcome,
    /// True if a number of the experiment, or of one of the stores compared, can't be trusted.
    #[serde(skip)]
    pub is_distrusted: bool,
}

impl Compared {
    /// Creates a comparison by counts. Baseline and candidate are an index and a label each.
    pub fn counted(
        baseline: (usize, String),
        candidate: (usize, String),
        outcome: Result<Exact, Unanswerable>,
    ) -> Compared {
        Compared {
            variant: candidate.0,
            label: candidate.1,
            baseline: baseline.0,
            baseline_label: baseline.1,
            sides: [vec![baseline.0], vec![candidate.0]],
            goal: None,
            named_goal: None,
            outcome: Outcome::counted(outcome),
            is_distrusted: false,
        }
    }

    /// Returns the result of the comparison as a test.
    pub fn judgement(&self) -> Judgement {
        match self.is_distrusted {
            true => Judgement::Skip("not to be trusted, see the warnings".to_owned()),
            false => self.outcome.judgement(),
        }
    }

    /// Returns the candidate's label, with the goal if there are several.
    pub(crate) fn candidate(&self) -> String {
        match &self.named_goal {
            Some(goal) => format!("{}, {goal}", self.label),
            None => self.label.clone(),
        }
    }

    /// Returns a remark if the ratio of rate to capacity differs between the two; `None` if the
    /// verdict is withheld.
    pub(super) fn unequal_steadiness(&self) -> Option<String> {
        let Outcome::Compared(answer) = &self.outcome else { return None };
        if self.is_distrusted || answer.comparison.doubtful.is_some() {
            return None;
        }
        let share = answer.comparison.capacity?.unequal_steadiness?;
        let (less, more) = match share < 1.0 {
            true => (&self.label, &self.baseline_label),
            false => (&self.baseline_label, &self.label),
        };
        Some(format!(
            "{less} runs less steadily than {more}: its mean is further below its own peak, by \
             {}; look for stalls",
            format::percent(1.0 - share.min(1.0 / share), 1)
        ))
    }
}

/// Result of a comparison, or the reason why there is none.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Comparison of rates.
    Compared(Box<Answer>),
    /// Comparison of exact counts.
    Counted(Box<Exact>),
    /// There is no result yet.
    Unanswerable {
        /// Reason.
        reason: String,
    },
}

impl Outcome {
    /// Creates an outcome of counts.
    pub(crate) fn counted(outcome: Result<Exact, Unanswerable>) -> Outcome {
        match outcome {
            Ok(exact) => Outcome::Counted(Box::new(exact)),
            Err(reason) => Outcome::Unanswerable { reason: reason.to_string() },
        }
    }

    /// Creates an outcome with all printed texts.
    pub(crate) fn of(outcome: Result<Comparison, Unanswerable>) -> Outcome {
        match outcome {
            Ok(comparison) => Outcome::Compared(Box::new(Answer {
                verdict: comparison.verdict(),
                within_margin: comparison.is_within_margin(),
                sentence: comparison.to_string(),
                shown: shown(&comparison),
                comparison,
            })),
            Err(reason) => Outcome::Unanswerable { reason: reason.to_string() },
        }
    }

    /// Adapts the outcome to a metric. The margin applies to rates; at a paced rate the difference
    /// is a difference in loss, so it is never within the margin.
    pub(crate) fn at(mut self, figure: RunMetric) -> Outcome {
        if let Outcome::Compared(answer) = &mut self
            && figure == RunMetric::Delivered
            && matches!(answer.verdict, Verdict::Better | Verdict::Worse)
        {
            answer.within_margin = false;
        }
        self
    }

    /// Returns true if the comparison has a result.
    pub fn is_answered(&self) -> bool {
        !matches!(self, Outcome::Unanswerable { .. })
    }

    /// Returns the result of the comparison as a test, assuming that its numbers can be trusted.
    pub fn judgement(&self) -> Judgement {
        let (verdict, is_within_margin, words) = match self {
            Outcome::Compared(answer) => {
                (answer.verdict, answer.within_margin, &answer.shown.verdict)
            }
            Outcome::Counted(exact) => (exact.verdict.into(), exact.within_margin, &exact.shown),
            Outcome::Unanswerable { reason } => {
                return Judgement::Skip(format!("no answer: {reason}"));
            }
        };
        match verdict {
            Verdict::Worse if !is_within_margin => Judgement::Fail,
            Verdict::Better | Verdict::Equivalent | Verdict::Worse => Judgement::Pass,
            Verdict::Inconclusive | Verdict::NotJudged => Judgement::Skip(words.clone()),
        }
    }
}

/// Result of a comparison, with its printed form.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The numbers.
    pub comparison: Comparison,
    /// Verdict: better, worse, equivalent or inconclusive.
    pub verdict: Verdict,
    /// True if the effect is within the margin, even if it is significant.
    pub within_margin: bool,
    /// Summary in one line.
    pub sentence: String,
    /// The numbers as printed in tables.
    pub shown: ComparisonText,
}

/// A comparison's numbers as text.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonText {
    /// Effect, e.g. `-4.9 %`.
    pub effect: String,
    /// Interval, e.g. `[-6.1 %, -3.7 %]`.
    pub interval: String,
    /// p-value.
    pub p: String,
    /// p-value adjusted for the family.
    pub p_adjusted: String,
    /// Runs, baseline and candidate.
    pub n: String,
    /// Blocks; in an alternation pairs of slices or streams.
    pub blocks: String,
    /// Minimum detectable effect.
    pub mde: String,
    /// Verdict with its qualification.
    pub verdict: String,
    /// Statistical method.
    pub method: String,
    /// Secondary results; may be empty.
    pub beside: String,
}

/// Compares every variant with its baseline: by the run's metric, and by the search result for each
/// goal after the first. All comparisons are one family.
pub(super) fn compare(contents: &Contents, runs: &[RunResult]) -> Vec<Compared> {
    let plan = &contents.plan;
    let pairs = plan.pairs();
    if !plan.metric().is_rate() {
        let outcomes = executed::compare(contents, runs, &pairs);
        return pairs
            .into_iter()
            .zip(outcomes)
            .map(|((variant, baseline), outcome)| {
                compared(plan, variant, baseline, Outcome::counted(outcome))
            })
            .collect();
    }
    let criteria = criteria(plan);
    let alternates = plan.design.alternate_ns.is_some();
    let goals = further_goals(plan);
    let first_goal = first_goal(plan).filter(|_| !goals.is_empty());
    let by_goal = (0..goals.len()).map(|number| {
        let found: Vec<RunResult> = runs.iter().map(|run| run.by_goal(number)).collect();
        found
    });
    let by_goal: Vec<Vec<RunResult>> = by_goal.collect();
    let tests = std::iter::once(runs).chain(by_goal.iter().map(Vec::as_slice));
    let tests = tests.flat_map(|runs| pairs.iter().map(move |&pair| (runs, pair)));
    let mut outcomes: Vec<Result<Comparison, Unanswerable>> = tests
        .map(|(runs, (variant, baseline))| {
            let sides = [baseline, variant].map(|variant| plan.builds_of(variant));
            let inputs = ComparisonInputs::of(runs, sides);
            inputs.judge(&|figure| match plan.design.stop {
                _ if alternates => {
                    let streams = streams(contents, baseline, variant);
                    compare_alternation(&streams, baseline, variant, criteria)
                }
                Some(stop) => {
                    let (a, b) = (figure(baseline), figure(variant));
                    let blocks = plan.design.blocks;
                    compare_sequentially(&a, &b, mode(stop), blocks, criteria)
                        .map(|(comparison, _)| comparison)
                }
                None => compare_figures(plan, (variant, baseline), figure, criteria),
            })
        })
        .collect();
    adjust(&mut outcomes, plan.compare.adjust.into());
    let names = std::iter::once(None).chain(goals.into_iter().map(Some));
    let tests = names.flat_map(|goal| pairs.iter().map(move |pair| (goal.clone(), *pair)));
    tests
        .zip(outcomes)
        .map(|((goal, (variant, baseline)), outcome)| Compared {
            named_goal: goal.clone().or_else(|| first_goal.clone()),
            goal,
            ..compared(plan, variant, baseline, Outcome::of(outcome).at(plan.metric()))
        })
        .collect()
}

/// Returns the names of the goals after the first, if a run's metric is a search result.
pub(super) fn further_goals(plan: &Plan) -> Vec<String> {
    goals(plan).skip(1).map(|goal| goal.name.clone()).collect()
}

/// Returns the name of the first goal, if a run's metric is a search result.
fn first_goal(plan: &Plan) -> Option<String> {
    goals(plan).next().map(|goal| goal.name.clone())
}

/// Returns the goals of a search whose result is the run's metric.
fn goals(plan: &Plan) -> impl Iterator<Item = &Goal> {
    let is_searched = plan.metric() == RunMetric::Throughput;
    let method = plan.method.iter().filter(move |_| is_searched);
    let goals = method.flat_map(|method| method.parts()).map(|part| part.goals());
    goals.into_iter().find(|goals| !goals.is_empty()).into_iter().flatten()
}

/// Compares a variant with its baseline by a metric of their runs, by the method for the plan's
/// design; for designs without live switching and stopping rule.
pub(in crate::report) fn compare_figures(
    plan: &Plan,
    (variant, baseline): (usize, usize),
    figures: FiguresOf<'_>,
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    let [a, b] = [baseline, variant].map(|variant| plan.builds_of(variant));
    if a.len() + b.len() > 2 {
        let of = |builds: &[usize]| -> Vec<Vec<BlockedRun>> {
            builds.iter().map(|&build| figures(build)).collect()
        };
        return compare_builds(&of(&a), &of(&b), criteria);
    }
    let (a, b) = (figures(baseline), figures(variant));
    if plan.design.sequential {
        let pps = |runs: &[BlockedRun]| -> Vec<f64> { runs.iter().map(|run| run.pps).collect() };
        return compare_unblocked(&pps(&a), &pps(&b), criteria);
    }
    compare_blocked(&a, &b, criteria)
}

/// Returns the plan's parameters for each comparison.
pub(in crate::report) fn criteria(plan: &Plan) -> Criteria {
    Criteria {
        confidence: plan.compare.confidence,
        margin: plan.compare.margin,
        family: plan.pairs().len() * (1 + further_goals(plan).len()),
        adjustment: plan.compare.adjust.into(),
    }
}

/// Returns the statistical rule of a plan's stopping rule.
pub(crate) fn mode(stop: Stop) -> Mode {
    match stop {
        Stop::Planned => Mode::Planned,
        Stop::Open => Mode::Open,
    }
}

/// Returns the rates of one variant's included runs.
pub(super) fn of(runs: &[RunResult], variant: usize) -> Vec<BlockedRun> {
    comparison_inputs::figures(runs, variant, |run| run.value_pps)
}

/// Returns the streams in which both variants alternated.
pub(super) fn streams(contents: &Contents, baseline: usize, candidate: usize) -> Vec<Vec<Slice>> {
    contents
        .runs
        .iter()
        .filter(|run| run.variants.contains(&baseline) && run.variants.contains(&candidate))
        .map(slices_of_run)
        .collect()
}

/// Compares each variant of a store's contents with its baseline.
pub fn verdicts(contents: &Contents) -> Vec<Compared> {
    rated(contents).1
}

/// Returns the run results of a store's contents, and each variant's comparison with its baseline.
pub fn rated(contents: &Contents) -> (Vec<RunResult>, Vec<Compared>) {
    let (runs, _) = figures::run_results(contents, contents.plan.metric());
    let compared = compare(contents, &runs);
    (runs, compared)
}

/// Returns the slices of one stream.
pub fn slices_of_run(run: &RunRecord) -> Vec<Slice> {
    let trial = &run.trial;
    let pps = trial.intended.map(|n| n as f64 * 1e9 / trial.window_ns.max(1) as f64);
    slices_of(&trial.samples, Roles::of(&trial.cpus), pps)
}

/// Adjusts the comparisons that have a result: all comparisons of one experiment or command are one
/// family.
pub(crate) fn adjust(outcomes: &mut [Result<Comparison, Unanswerable>], adjustment: Adjustment) {
    let mut family: Vec<Comparison> = outcomes.iter().flatten().cloned().collect();
    adjust_family(&mut family, adjustment);
    for (slot, adjusted) in outcomes.iter_mut().flatten().zip(family) {
        *slot = adjusted;
    }
}

fn compared(plan: &Plan, variant: usize, baseline: usize, outcome: Outcome) -> Compared {
    Compared {
        variant,
        label: plan.revision_label(variant),
        baseline,
        baseline_label: plan.revision_label(baseline),
        sides: [baseline, variant].map(|variant| plan.builds_of(variant)),
        goal: None,
        named_goal: None,
        outcome,
        is_distrusted: false,
    }
}

fn shown(comparison: &Comparison) -> ComparisonText {
    let digits = match comparison.high - comparison.low {
        width if width < 0.002 => 3,
        width if width < 0.02 => 2,
        _ => 1,
    };
    let change = |ratio: f64| format::signed_percent(ratio - 1.0, digits);
    ComparisonText {
        effect: change(comparison.ratio),
        interval: format!("[{}, {}]", change(comparison.low), change(comparison.high)),
        p: format::p_value(comparison.p),
        p_adjusted: format::p_value(comparison.p_adjusted),
        n: format!("{} + {}", comparison.n_a, comparison.n_b),
        blocks: match comparison.layout {
            Layout::Unblocked => "-".to_owned(),
            Layout::Blocks => comparison.blocks.to_string(),
            Layout::Pairs => format!("{} pairs", comparison.blocks),
            Layout::Streams => format!("{} streams", comparison.blocks),
        },
        mde: comparison.mde_text(digits),
        verdict: comparison.qualified_verdict(),
        method: comparison.method_text(),
        beside: comparison.beside_sentence().unwrap_or_default(),
    }
}
