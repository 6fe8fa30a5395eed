//! Findings about the runs, and the steady state of each.
//!
//! Comparisons exclude nothing because of these findings.

use super::{Context, DETAILS, Input, Section};
use crate::document::{Block, List};
use crate::format::percent;
use crate::report::analysis::RunResult;
use crate::report::analysis::figures::figure_pps;
use crate::report::analysis::line_rate::line_pps_of;
use crate::report::analysis::order::log_figures;
use crate::stats::diagnostics::{
    Diagnosis, RunRate, Trend, censoring, diagnose, level_of_beds, trend_within_variants,
};
use crate::stats::steady::{Steady, SteadyOptions, steady};
use crate::stats::stolen_time::Roles;
use crate::stats::summary::median;
use crate::store::{Contents, UNNAMED};
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::Sample;
use fwdlab_model::units::format_pps;
use fwdlab_model::{RunRecord, Warning};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A last sample shorter than this ratio to the others is ignored.
const PARTIAL: f64 = 0.9;
/// Maximum number of runs without a steady state in compact output formats.
const UNSTEADY: usize = 3;

/// Findings about the runs.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnostics {
    /// Findings that qualify the runs' means.
    pub diagnoses: Vec<Finding>,
    /// Start of the steady state of each run; empty for an alternation, whose slices each have
    /// their own.
    pub steadiness: Vec<RunSteadiness>,
}

/// A finding with its printed form.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The bed of the runs; `None` if there is only one bed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bed: Option<String>,
    /// One sentence with the evidence.
    pub sentence: String,
    /// The evidence.
    pub evidence: Diagnosis,
}

/// Warm-up and steady state of one run.
#[derive(Clone, Debug, Serialize)]
pub struct RunSteadiness {
    /// Index of the run.
    pub run: u32,
    /// Label of the variant.
    pub label: String,
    /// The steady state, in samples.
    pub steady: Steady,
    /// Share of the window before the steady state, 0 to 1.
    pub head_share: f64,
    /// The compared value over the whole window, packets per second.
    pub value_pps: Option<f64>,
    /// The same value over the steady part alone; `None` if the run never becomes steady.
    pub steady_pps: Option<f64>,
    /// Remark if the window includes a warm-up or never becomes steady.
    pub sentence: Option<String>,
}

impl Section for Diagnostics {
    fn analyse(input: &Input<'_>) -> Diagnostics {
        let Input { contents, core, .. } = input;
        Diagnostics {
            diagnoses: match core.figure.is_rate() {
                true => diagnoses(contents, &core.runs),
                false => Vec::new(),
            },
            steadiness: steadiness(contents, &core.runs, core.figure),
        }
    }

    fn document(&self, context: &Context<'_>) -> Vec<Block> {
        if !context.core.figure.is_rate() {
            return Vec::new();
        }
        let section = Block::section("Diagnostics", self.blocks(context));
        // Findings are not folded.
        vec![if self.has_findings() { section } else { section.folded().on_page(DETAILS) }]
    }
}

impl Diagnostics {
    /// Returns true if something was found.
    pub(in crate::report) fn has_findings(&self) -> bool {
        let is_unsteady = self.steadiness.iter().any(|run| run.sentence.is_some());
        is_unsteady || !self.diagnoses.is_empty()
    }

    /// Returns the checks and the findings.
    fn blocks(&self, context: &Context<'_>) -> Vec<Block> {
        let core = context.core;
        let steady = match core.alternation {
            true => {
                "; not for warm-up and steady state within the streams, whose slices switch and settle \
                 by themselves"
            }
            false => ", and warm-up and steady state within each window",
        };
        let beds = context.beds.map_or(1, |beds| beds.beds.len());
        let level = percent(level_of_beds(beds), if beds > 1 { 2 } else { 0 });
        let by = if beds > 1 { " and in each bed by itself" } else { "" };
        let excluded = core.runs.iter().filter(|run| run.left_out.is_some()).count();
        let excluded = match excluded {
            0 => "No run was excluded.".to_owned(),
            1 => "The run left out of the comparisons is excluded.".to_owned(),
            n => format!("The {n} runs left out of the comparisons are excluded."),
        };
        let looked_for = format!(
            "Checked for trend and autocorrelation across the run order, outliers (Grubbs) and \
             multimodality (dip test), each at the {level} level{by}; runs at the ceiling of sender and \
             receiver{steady}. {excluded}"
        );
        let findings = self.diagnoses.iter().map(|finding| finding.sentence.clone());
        let unsteady =
            self.steadiness.iter().filter_map(|RunSteadiness { run, label, sentence, .. }| {
                Some(format!("{} ({label}): {}", context.run_name(*run), sentence.as_ref()?))
            });
        let found: Vec<String> = findings.chain(unsteady).collect();
        let few = core.runs.len().saturating_sub(self.steadiness.len());
        let block = if !found.is_empty() {
            let rest = "and {} more runs with a warm-up or without a steady state in results.json";
            let brief = Some((self.diagnoses.len() + UNSTEADY, rest));
            Block::List(List { brief, ..List::of(found) })
        } else if core.order.is_none() && context.beds.is_none() {
            Block::text("Too few runs to look.")
        } else if !core.alternation && few > 0 {
            Block::text(format!(
                "Nothing was found ({few} of {} runs have too few samples to judge their steady \
                 state).",
                core.runs.len()
            ))
        } else {
            Block::text("Nothing was found.")
        };
        vec![Block::text(looked_for), block]
    }
}

/// Returns all findings about the runs of an experiment. Tests each bed separately: differences
/// between machines are neither trend, second mode nor outlier, and each bed has its own limits.
fn diagnoses(contents: &Contents, runs: &[RunResult]) -> Vec<Finding> {
    let beds = by_bed(runs);
    let level = level_of_beds(beds.len());
    let of_bed = |(bed, runs): (Option<String>, Vec<&RunResult>)| {
        let found = of_one(contents, &runs, level).into_iter();
        let findings = found.map(move |evidence| {
            let sentence = match &bed {
                Some(bed) => format!("bed {bed}: {}", evidence.sentence()),
                None => evidence.sentence(),
            };
            Finding { bed: bed.clone(), sentence, evidence }
        });
        findings.collect::<Vec<Finding>>()
    };
    beds.into_iter().flat_map(of_bed).collect()
}

/// Groups the runs by bed, each in chronological order. If there is only one bed, returns all runs
/// in their order, without a name.
fn by_bed(runs: &[RunResult]) -> Vec<(Option<String>, Vec<&RunResult>)> {
    let mut beds: BTreeMap<&str, Vec<&RunResult>> = BTreeMap::new();
    for run in runs {
        beds.entry(run.bed.as_deref().unwrap_or(UNNAMED)).or_default().push(run);
    }
    if beds.len() < 2 {
        return vec![(None, runs.iter().collect())];
    }
    let beds = beds.into_iter().map(|(bed, mut runs)| {
        runs.sort_by_key(|run| (&run.started_at, run.run));
        (Some(bed.to_owned()), runs)
    });
    beds.collect()
}

/// Returns the findings about the runs of one bed.
fn of_one(contents: &Contents, runs: &[&RunResult], level: f64) -> Vec<Diagnosis> {
    let figures = log_figures(runs.iter().copied());
    let mut found = diagnose(&figures, level);
    if contents.plan.design.sequential {
        // Trends between variants can't be distinguished from differences.
        found.retain(|diagnosis| !matches!(diagnosis, Diagnosis::Trend { .. }));
        let trend = trend_within_variants(&figures).filter(|trend| trend.p < level);
        let trend = trend.map(|Trend { slope, p }| Diagnosis::Trend { slope, p });
        found.splice(0..0, trend);
    }
    let variants = 0..contents.plan.variants.len();
    found.extend(variants.filter_map(|variant| censored(contents, runs, variant)));
    found
}

/// Finds runs of `variant` that were limited by the generator or by the links' line rate.
fn censored(contents: &Contents, runs: &[&RunResult], variant: usize) -> Option<Diagnosis> {
    let indices: BTreeSet<u32> =
        runs.iter().filter(|run| run.variant == variant).map(|run| run.run).collect();
    let mut ceilings = Vec::new();
    let rates: Vec<RunRate> = runs
        .iter()
        .filter(|run| run.variant == variant && run.left_out.is_none())
        .filter_map(|run| {
            let record = contents.runs.iter().find(|record| record.run == run.run)?;
            let ceiling = ceiling_pps(record);
            ceilings.extend(ceiling);
            Some(RunRate { pps: run.mean_pps?, generator_limited: ceiling.is_some() })
        })
        .collect();
    let label = &contents.plan.variants[variant].label;
    let line = line_pps_of(contents, variant, |run| indices.contains(&run));
    censoring(label, &rates, line, median(&ceilings)).map(Diagnosis::Censored)
}

/// Returns the ceiling in a run's warning, in packets per second.
fn ceiling_pps(record: &RunRecord) -> Option<f64> {
    record.warnings.iter().find_map(|warning| match warning {
        Warning::GeneratorLimited { ceiling_pps, .. } => Some(*ceiling_pps),
        _ => None,
    })
}

/// Computes warm-up and steady state of every run with enough samples. Skips streams of an
/// alternation, because their slices switch variants.
fn steadiness(contents: &Contents, runs: &[RunResult], figure: RunMetric) -> Vec<RunSteadiness> {
    if figure == RunMetric::Slices || !figure.is_rate() {
        return Vec::new();
    }
    runs.iter()
        .filter_map(|run| {
            let record = contents.runs.iter().find(|record| record.run == run.run)?;
            steadiness_of(record, run, figure)
        })
        .collect()
}

fn steadiness_of(record: &RunRecord, run: &RunResult, figure: RunMetric) -> Option<RunSteadiness> {
    let usable = |sample: &&Sample| sample.valid && sample.duration_ns > 0;
    let samples: Vec<Sample> = record.trial.samples.iter().filter(usable).copied().collect();
    let rates: Vec<f64> =
        samples.iter().map(|s| s.forwarded as f64 * 1e9 / s.duration_ns as f64).collect();
    let lengths: Vec<f64> = samples.iter().map(|sample| sample.duration_ns as f64).collect();
    let usual = median(&lengths)?;
    let ignore_last = lengths.last().is_some_and(|last| *last < PARTIAL * usual);
    let found = steady(&rates, SteadyOptions { ignore_last, ..SteadyOptions::default() })?;
    let whole: f64 = lengths.iter().sum();
    let head_share = lengths[..found.from].iter().fold(0.0, |sum, length| sum + length) / whole;
    let steady_pps = match found {
        Steady { reached: false, .. } => None,
        // The window's own count, not the sum over samples: it includes packets that arrived during
        // the drain.
        Steady { from: 0, .. } => run.value_pps,
        Steady { from, .. } => {
            figure_pps(&samples[from..], figure, Roles::of(&record.trial.cpus), run.intended_pps)
        }
    };
    let mut result = RunSteadiness {
        run: run.run,
        label: run.label.clone(),
        steady: found,
        head_share,
        value_pps: run.value_pps,
        steady_pps,
        sentence: None,
    };
    result.sentence = result.finding(figure);
    Some(result)
}

/// Returns true if two values of a run differ by less than 0.5 %.
fn is_alike((steady, whole): (f64, f64)) -> bool {
    (steady / whole - 1.0).abs() < 0.005
}

impl RunSteadiness {
    /// Returns the remark, if one is needed.
    fn finding(&self, figure: RunMetric) -> Option<String> {
        let Steady { from, reached, head_ratio, .. } = self.steady;
        if from == 0 && reached {
            return None;
        }
        let whole = self.value_pps.map_or("-".to_owned(), format_pps);
        let is_archived = matches!(figure, RunMetric::Netbenches | RunMetric::NetbenchesUpper);
        if is_archived && self.steady_pps.zip(self.value_pps).is_some_and(is_alike) {
            // The archive's rule drops the first lines and takes a median.
            return None;
        }
        let compared = match is_archived {
            true => format!("the figure compared is the archive's median, {whole}"),
            false => format!("the figure compared is of the whole window, {whole}"),
        };
        let share = percent(self.head_share, 0);
        let ratio = percent(head_ratio, 1);
        Some(match self.steady_pps {
            Some(pps) => format!(
                "the device was still warming up in the first {share} of the window, which ran at \
                 {ratio} of the rest; {compared}; the steady part alone gives {}",
                format_pps(pps)
            ),
            None if from == 0 => format!("the window never gets steady; {compared}"),
            None => format!(
                "the window never gets steady (its first {share} ran at {ratio} of the rest); \
                 {compared}"
            ),
        })
    }
}
