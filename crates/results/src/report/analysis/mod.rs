//! Analysis of a store: raw observations in, typed results out.
//!
//! README, HTML, JSON and terminal output show the same [`Analysis`]; each number is computed once,
//! here. The analysis is a pure function of the store's contents. The rest of [`super`] draws the
//! plots and lays out the pages.

mod archive;
mod arrivals;
mod bed_blocks;
mod beds;
mod blocks;
pub(crate) mod comparison_inputs;
mod comparisons;
mod corrections;
mod counts;
mod device;
mod diagnostics;
mod directions;
mod figures;
mod goals;
mod line_rate;
mod method;
mod mixes;
mod pictures;
mod power;
mod profiles;
mod quality;
mod queues;
mod scaling;
mod setup;
mod sizes;
mod stopping;
mod testbed;
mod trust;
mod variants;
mod window_start;

pub(in crate::report) use archive::copied_pictures;
pub(crate) use comparisons::{adjust, mode};
pub use comparisons::{rated, slices_of_run, verdicts};

pub use archive::{
    ArchiveResult, ArchivedVariant, Contradicted, PatchResult, PatchedVariant, Picture,
    PublishedBlock, RefusedFile, RuleComparison, RuleFigures,
};
pub use arrivals::{ArrivalResult, ArrivalsFound, SampledDamage};
pub(crate) use beds::beds_of_runs;
pub use beds::{BedEffect, BedResult, BedRun, Beds, beds_of};
pub use blocks::MinistatBlock;
pub use comparisons::{Answer, Compared, Outcome, Shown};
pub use counts::{CountedVariant, Counts};
pub use device::{DeviceAlone, DeviceEffect, DeviceRow};
pub use diagnostics::{Finding, RunSteadiness};
pub use directions::DirectionRate;
pub use figures::RunResult;
pub use goals::found_in_words;
pub(crate) use method::CURVES;
pub use method::{
    Bursts, DelayEffect, FloodOutcome, FloodPoint, FloodSummary, GoalFound, Interruption,
    InterruptionSummary, LatencyResult, LatencyStatistic, LossCurveOutcome, Method, MethodPoint,
    MethodRun, RunConnections, SearchOutcome, SoakOutcome, Suite, SuiteRow, TableCapacity,
    TeardownRate, TrialDirection,
};
pub use mixes::MixRates;
pub use power::{KnownScatter, PowerAnalysis, Unusable, design};
pub use profiles::{
    CounterPerPacket, ProfileDifference, ProfileKind, ProfileLoad, ProfiledFunction,
    ProfiledVariant, Profiles,
};
pub use quality::{
    CalibrationResult, Conservation, CounterCheck, Overhead, RunWarning, Steal, WarningGroup,
};
pub use queues::QueueShares;
pub use scaling::{FittedLaw, ScaledSeries, Scaling, ScalingOutcome, ShownLaw};
pub(crate) use sizes::SIZES_PICTURE;
pub use sizes::{SizePoint, SizeSeries, Sizes};
pub use stopping::{Stopping, StoppingWatch};
pub use testbed::Testbed;
pub use variants::{CORRECTED, Loss, SummaryResult, VariantResult};
pub use window_start::WindowStart;

use crate::label::{Label, MeasuredOn};
use crate::stats::Adjustment;
use crate::stats::diagnostics::{RunFigure, RunOrder, Trend, run_order, trend_within_variants};
use crate::store::{Contents, Store, StoreError, StoredInvocation};
use fwdlab_model::Plan;
use fwdlab_model::RunRecord;
use fwdlab_model::plan::Factor;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::units::FrameSize;
use serde::Serialize;

/// Contents of a report, independent of the output format.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
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
    /// Data of an imported experiment; `None` for fwdlab's own runs.
    pub archive: Option<ArchiveResult>,
    /// CPU time of the device alone per packet; `None` if no run has the data.
    pub device: Option<DeviceAlone>,
    /// Comparison of the beds; `None` for a single bed or beds without names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beds: Option<Beds>,
    /// Counts of executed instructions; `None` if the experiment compares rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Results of the method; `None` if a run is a single trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// CPU time by function; `None` without profiles.
    pub profiles: Option<Profiles>,
    /// The pictures of profiles and counts: name in the report and SVG.
    #[serde(skip)]
    pub(crate) profile_pictures: pictures::Pictures,
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
    /// Scaling of the rate over queues, cores, senders or workers.
    pub scaling: Vec<Scaling>,
    /// ministat's output per comparison.
    pub ministat: Vec<MinistatBlock>,
    /// Rates that sender and receiver reach without a DUT.
    pub calibrations: Vec<CalibrationResult>,
    /// Frame size with FCS in bytes; `None` if it differs between variants.
    pub frame_size: Option<FrameSize>,
    /// The ceiling, packets per second, if it is the same for all variants.
    pub ceiling_pps: Option<f64>,
    /// Warnings, by kind.
    pub warnings: Vec<WarningGroup>,
    /// Packets offered, forwarded, lost.
    pub conservation: Vec<Conservation>,
    /// Bit rates of variants with a mix of frame sizes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mixes: Vec<MixRates>,
    /// Rates by frame size; `None` if the size is not varied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// Results per direction of variants with bidirectional traffic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<DirectionRate>,
    /// Results of the receiver's checks; `None` if packets were not checked.
    pub arrivals: Option<ArrivalResult>,
    /// The DUT's counters compared with the testbed's counts.
    pub counters: Vec<CounterCheck>,
    /// Packets by queue of the DUT; empty if no variant had several queues.
    pub queues: Vec<QueueShares>,
    /// Flows and states at the start of the windows, and reasons for the ends of drains.
    pub openings: Vec<WindowStart>,
    /// CPU time that the hypervisor took from the measured CPUs.
    pub steal: Vec<Steal>,
    /// Drift over the runs.
    pub order: Option<RunOrder>,
    /// Findings that qualify the runs' means.
    pub diagnoses: Vec<Finding>,
    /// Start of the steady state of each run; empty for an alternation, whose slices each have
    /// their own.
    pub steadiness: Vec<RunSteadiness>,
    /// Time outside the traffic.
    pub overhead: Vec<Overhead>,
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

impl Analysis {
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

    /// Analyses everything in `store`.
    ///
    /// # Errors
    /// If the store holds no plan or can't be read.
    pub fn of_store(store: &Store) -> Result<Analysis, StoreError> {
        Ok(Analysis::of(&store.contents()?))
    }

    /// Analyses the contents of a store. Without runs, all results are empty.
    pub fn of(contents: &Contents) -> Analysis {
        let plan = &contents.plan;
        let testbed = testbed::testbed(contents);
        let figure = plan.metric();
        let (runs, figure_notes) = figures::run_results(contents, figure);
        let variants = variants::variants(contents, &runs);
        let mut comparisons = comparisons::compare(contents, &runs);
        let (profiles, mut profile_pictures) = profiles::profiles(contents, &runs, &variants);
        let counts = (!figure.is_rate()).then(|| {
            let (counts, pictures) = counts::counts(contents, &runs, &variants, &mut comparisons);
            profile_pictures.extend(pictures);
            counts
        });
        let method = method::method(contents, &runs);
        profile_pictures.extend(method.iter().flat_map(Method::pictures));
        let sizes = sizes::sizes(contents, &runs, method.as_ref(), &testbed.caption);
        profile_pictures.extend(sizes.iter().map(Sizes::picture));
        let archive = archive::archive(contents, figure, &variants, &runs, &comparisons);
        let stopping = stopping::stopping(contents, &comparisons);
        let mut notes = notes(contents, stopping.as_ref());
        notes.extend(figure_notes);
        notes.extend(comparisons.iter().filter_map(Compared::unequal_steadiness));
        let beds = beds::beds(contents, &runs, &comparisons);
        let warnings = quality::warnings(contents);
        let is_distrusted = warnings.iter().any(|group| group.fatal);
        comparisons.iter_mut().for_each(|compared| compared.is_distrusted = is_distrusted);
        Analysis {
            beds,
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
            device: device::device(contents, &runs).filter(|_| figure.is_rate()),
            counts,
            method,
            setup: setup::lines(contents, &testbed),
            setup_brief: setup::brief(contents, &testbed),
            notes,
            factors: plan.factors.iter().map(|f| factor(contents, f)).collect(),
            comparisons,
            scaling: match figure.is_rate() {
                true => scaling::scaling(contents, &runs),
                false => Vec::new(),
            },
            // Published blocks are shown in their own grouping instead.
            ministat: match archive.as_ref().is_some_and(|archive| !archive.blocks.is_empty()) {
                false if figure.is_rate() => blocks::ministat_blocks(plan, &variants),
                _ => Vec::new(),
            },
            calibrations: quality::calibrations(contents),
            frame_size: quality::common_frame_size(contents),
            ceiling_pps: quality::common_ceiling_pps(contents),
            warnings,
            conservation: quality::conservation(contents),
            mixes: mixes::mixes(contents),
            sizes,
            directions: directions::directions(contents),
            arrivals: arrivals::arrivals(contents),
            counters: quality::counters(contents),
            queues: queues::queues(contents),
            openings: window_start::openings(contents),
            steal: quality::steal(contents),
            // Between beds the order has no meaning; each bed is tested for drift.
            order: match contents.beds().len() < 2 {
                true => order(plan, &diagnostics::log_figures(&runs)),
                false => None,
            },
            diagnoses: match figure.is_rate() {
                true => diagnostics::diagnoses(contents, &runs),
                false => Vec::new(),
            },
            steadiness: diagnostics::steadiness(contents, &runs, figure),
            overhead: quality::overhead(contents),
            invocations: invocations(contents),
            archive,
            profiles,
            profile_pictures,
            testbed,
            variants,
            runs,
        }
    }
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
        let needs_samples = |plan: &Plan| plan.metric() != RunMetric::Mean;
        let contents = store.figures_only(needs_samples)?;
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

/// Tests the effect of the run order; within variants only for a sequential design.
fn order(plan: &Plan, figures: &[RunFigure]) -> Option<RunOrder> {
    let order = run_order(figures)?;
    if !plan.design.sequential {
        return Some(order);
    }
    let Trend { slope, p } = trend_within_variants(figures)?;
    Some(RunOrder { slope, p, ..order })
}

fn factor(contents: &Contents, factor: &Factor) -> FactorResult {
    FactorResult {
        shown: queues::shown_name(contents, factor),
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
