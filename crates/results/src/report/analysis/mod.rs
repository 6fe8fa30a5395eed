//! Analysis of a store: raw observations in, results of runs, variants and comparisons out.
//!
//! [`Core`] holds what several sections of a report read; each number is computed once. It is a
//! pure function of the store's contents. Sections add their own topics.

mod bed_blocks;
pub(crate) mod comparison_inputs;
pub(super) mod comparisons;
pub(super) mod corrections;
pub(super) mod executed;
pub(super) mod figures;
pub(super) mod goals;
pub(super) mod groups;
pub(super) mod line_rate;
pub(super) mod one_direction;
pub(super) mod order;
mod power;
mod published_names;
pub(super) mod queue_factors;
mod setup;
mod stopping;
mod testbed;
mod variants;
mod warnings;

pub(crate) use comparisons::{adjust, mode};
pub use comparisons::{rated, slices_of_run, verdicts};

pub use comparisons::{Answer, Compared, ComparisonText, Outcome};
pub use figures::RunResult;
pub use goals::found_in_words;
pub use power::{KnownScatter, PowerAnalysis, Unusable, design};
pub use stopping::{Stopping, StoppingWatch};
pub use testbed::Testbed;
pub use variants::{CORRECTED, Loss, SummaryResult, VariantResult};
pub use warnings::{RunWarning, WarningGroup};

use crate::label::{Label, MeasuredOn};
use crate::stats::Adjustment;
use crate::stats::diagnostics::RunOrder;
use crate::store::{Contents, Store, StoreError, StoredInvocation};
use fwdlab_model::Plan;
use fwdlab_model::RunRecord;
use fwdlab_model::plan::Factor;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::units::FrameSize;
use serde::Serialize;

/// Results of runs, variants and comparisons: what several sections of a report read.
#[derive(Clone, Debug, Serialize)]
pub struct Core {
    /// Short name of the experiment.
    pub name: String,
    /// Title of the report.
    pub title: String,
    /// Hash of the plan.
    pub plan_hash: String,
    /// Seed of the random order.
    pub seed: u64,
    /// Blocks of the design; in an alternation, streams.
    pub blocks: u32,
    /// True if levels were switched within streams of traffic.
    pub alternation: bool,
    /// True if each variant's runs followed one another, without blocks.
    pub sequential: bool,
    /// Number of runs in the plan.
    pub runs_planned: usize,
    /// Number of runs in the store.
    pub runs_recorded: usize,
    /// The testbed, with a caveat about its numbers.
    pub testbed: Testbed,
    /// Metric of a run that comparisons use.
    pub figure: RunMetric,
    /// Confidence in percent.
    pub confidence: f64,
    /// Margin of equivalence as a ratio.
    pub margin: f64,
    /// Adjustment of p-values for the number of comparisons.
    pub adjustment: String,
    /// Progress of an experiment with a stopping rule; `None` without a rule.
    pub stopping: Option<Stopping>,
    /// The set-up, one line each.
    pub setup: Vec<String>,
    /// The set-up in three lines.
    #[serde(skip)]
    pub setup_brief: Vec<String>,
    /// Remarks on the experiment: incomplete runs, changed environment, the planner's notes.
    pub notes: Vec<String>,
    /// The factors.
    pub factors: Vec<FactorResult>,
    /// The variants in the order of the plan.
    pub variants: Vec<VariantResult>,
    /// The recorded runs in order; in an alternation, one row per stream and variant.
    pub runs: Vec<RunResult>,
    /// Comparison of each variant with its baseline.
    pub comparisons: Vec<Compared>,
    /// Drift over the runs.
    pub order: Option<RunOrder>,
    /// Frame size with FCS in bytes; `None` if it differs between variants.
    pub frame_size: Option<FrameSize>,
    /// Warnings, by kind.
    pub warnings: Vec<WarningGroup>,
    /// The program's invocations.
    pub invocations: Vec<InvocationResult>,
}

/// A factor and its levels' labels.
#[derive(Clone, Debug, Serialize)]
pub struct FactorResult {
    /// Name.
    pub name: String,
    /// Displayed name: the quantity that really varied, if counters show it.
    pub shown: String,
    /// Labels of the levels.
    pub levels: Vec<String>,
    /// The levels as numbers; `None` if a level is not a number.
    pub numbers: Option<Vec<f64>>,
}

/// One start of the program.
#[derive(Clone, Debug, Serialize)]
pub struct InvocationResult {
    /// Number, from 1.
    pub id: i64,
    /// Wall-clock start.
    pub started_at: String,
    /// Version of fwdlab.
    pub fwdlab_version: String,
    /// Number of runs that it recorded.
    pub runs: usize,
    /// The bed of these runs; `None` if it has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bed: Option<String>,
}

impl Core {
    /// Returns the label of its numbers.
    pub fn label(&self) -> Label {
        let mut versions: Vec<&str> = Vec::new();
        let used = self.invocations.iter().filter(|invocation| invocation.runs > 0);
        for version in used.map(|invocation| invocation.fwdlab_version.as_str()) {
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        Label {
            testbed: MeasuredOn::of(self.testbed.kind, &self.testbed.caption),
            simulated: self.testbed.simulated,
            figure: Some(self.figure),
            version: versions.join(" and "),
        }
    }

    /// Analyses the runs of a store. Without runs, all results are empty.
    pub(super) fn of(contents: &Contents) -> Core {
        let plan = &contents.plan;
        let testbed = testbed::testbed(contents);
        let figure = plan.metric();
        let (runs, figure_notes) = figures::run_results(contents, figure);
        let variants = variants::variants(contents, &runs);
        let mut comparisons = comparisons::compare(contents, &runs);
        let stopping = stopping::stopping(contents, &comparisons);
        let mut notes = notes(contents, stopping.as_ref());
        notes.extend(figure_notes);
        let warnings = warnings::warnings(contents);
        let is_distrusted = warnings.iter().any(|group| group.fatal);
        comparisons.iter_mut().for_each(|compared| compared.is_distrusted = is_distrusted);
        notes.extend(comparisons.iter().filter_map(Compared::unequal_steadiness));
        Core {
            name: plan.name.clone(),
            title: plan.title.clone(),
            plan_hash: plan.hash.clone(),
            seed: plan.design.seed,
            blocks: plan.design.blocks,
            alternation: plan.design.alternate_ns.is_some(),
            sequential: plan.design.sequential,
            runs_planned: plan.runs.len(),
            runs_recorded: contents.runs.len(),
            figure,
            confidence: plan.compare.confidence,
            margin: plan.compare.margin,
            adjustment: Adjustment::from(plan.compare.adjust).to_string(),
            stopping,
            setup: setup::lines(contents, &testbed),
            setup_brief: setup::brief(contents, &testbed),
            notes,
            factors: plan.factors.iter().map(|f| factor(contents, f)).collect(),
            variants,
            order: order::order(contents, &runs),
            runs,
            comparisons,
            frame_size: common_traffic(contents).map(|(_, frame_size)| frame_size),
            warnings,
            invocations: invocations(contents),
            testbed,
        }
    }
}

/// Returns address family and frame size with FCS; `None` if they differ between variants.
pub(super) fn common_traffic(contents: &Contents) -> Option<(&'static str, FrameSize)> {
    let mut kinds = contents.plan.variants.iter().map(|variant| {
        let traffic = &variant.settings.traffic;
        (traffic.family.name(), traffic.frame_size)
    });
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(first)
}

/// Returns the value of each of `runs` in order, or the reason why it has none. Counts are over the
/// foreground of all of them, because a search sorts its candidates by differences of these values.
pub fn figures_of_runs<'a>(
    plan: &Plan,
    runs: impl Iterator<Item = &'a RunRecord> + Clone,
) -> Vec<Result<f64, String>> {
    let figure = plan.metric();
    let executed = runs.clone().filter_map(|run| run.trial.executed.as_ref());
    let foreground = crate::counts::Foreground::of(executed);
    let corrections = corrections::Corrections::default();
    let of = |run: &RunRecord| {
        let variant = run.variants.first().copied().unwrap_or_default();
        let result = figures::run_result(plan, run, variant, figure, &foreground, &corrections);
        match (result.absence(figure), result.value()) {
            (None, Some(value)) if value > 0.0 => Ok(value),
            (Some(why), _) => Err(why.to_owned()),
            _ => Err("nothing was forwarded".to_owned()),
        }
    };
    runs.map(of).collect()
}

/// Compares each variant with its baseline, given the results of the runs.
pub(crate) fn compared(contents: &Contents, runs: &[RunResult]) -> Vec<Compared> {
    comparisons::compare(contents, runs)
}

/// The results of a store's runs, without the rest of a report.
pub(crate) struct Figures {
    /// The testbed.
    pub(crate) testbed: Testbed,
    /// Metric of a run.
    pub(crate) figure: RunMetric,
    /// The runs in order.
    pub(crate) runs: Vec<RunResult>,
    /// Remarks on runs without a value.
    pub(crate) notes: Vec<String>,
}

impl Figures {
    /// Computes the results of the runs in `store`, reading only the necessary tables.
    pub(crate) fn of_store(store: &Store) -> Result<(Contents, Figures), StoreError> {
        let contents = store.figures_only(|plan| plan.metric().is_rate())?;
        let figures = Figures::of(&contents);
        Ok((contents, figures))
    }

    /// Computes the results of the runs in a store's contents.
    pub(crate) fn of(contents: &Contents) -> Figures {
        let testbed = testbed::testbed(contents);
        let figure = contents.plan.metric();
        let (runs, notes) = figures::run_results(contents, figure);
        Figures { testbed, figure, runs, notes }
    }
}

fn factor(contents: &Contents, factor: &Factor) -> FactorResult {
    FactorResult {
        shown: queue_factors::shown_name(contents, factor),
        name: factor.name.clone(),
        levels: factor.levels.iter().map(|level| level.label.clone()).collect(),
        numbers: factor.levels.iter().map(|level| level.number).collect(),
    }
}

fn invocations(contents: &Contents) -> Vec<InvocationResult> {
    contents
        .invocations
        .iter()
        .map(|stored| InvocationResult {
            id: stored.id,
            started_at: stored.invocation.started_at.clone(),
            fwdlab_version: stored.invocation.fwdlab_version.clone(),
            runs: contents.run_invocations.iter().filter(|&&id| id == stored.id).count(),
            bed: stored.invocation.bed.clone(),
        })
        .collect()
}

fn notes(contents: &Contents, stopping: Option<&Stopping>) -> Vec<String> {
    let mut notes = contents.plan.notes.clone();
    notes.extend(contents.import.iter().flat_map(|import| import.about.notes.iter().cloned()));
    let (recorded, planned) = (contents.runs.len(), contents.plan.runs.len());
    notes.extend(stopping.map(|stopping| stopping.sentence.clone()));
    if recorded < planned && !stopping.is_some_and(|stopping| stopping.done) {
        notes.push(format!(
            "incomplete: {recorded} of {planned} runs are recorded; run it again, it goes on where it \
             stopped"
        ));
    }
    let used: Vec<_> = contents
        .invocations
        .iter()
        .filter(|stored| contents.run_invocations.contains(&stored.id))
        .collect();
    if let Some((first, rest)) = used.split_first() {
        let first = &first.invocation;
        // Each bed has its own environment.
        let is_changed = |stored: &&StoredInvocation| {
            let current = &stored.invocation;
            let mut earlier = used.iter().map(|earlier| &earlier.invocation);
            earlier
                .find(|earlier| earlier.bed == current.bed)
                .is_some_and(|earlier| earlier.environment != current.environment)
        };
        if rest.iter().any(is_changed) {
            notes.push(
                "the surroundings changed between invocations; environment.json holds each"
                    .to_owned(),
            );
        }
        if rest.iter().any(|stored| stored.invocation.fwdlab_version != first.fwdlab_version) {
            notes.push("the runs were recorded by different versions of fwdlab".to_owned());
        }
    }
    notes
}
