//! Findings about the runs, and the steady state within each.
//!
//! Nothing is left out of a comparison because of what is found here.

use super::figures::{RunResult, figure_pps};
use super::line::line_pps;
use crate::format::percent;
use crate::stats::diagnostics::{
    Diagnosis, LEVEL, RunFigure, RunRate, Trend, censoring, diagnose, trend_within_variants,
};
use crate::stats::steady::{Steady, SteadyOptions, steady};
use crate::stats::summary::median;
use crate::stats::taken::Roles;
use crate::store::Contents;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::Sample;
use fwdlab_model::units::format_pps;
use fwdlab_model::{RunRecord, Warning};
use serde::Serialize;
use std::collections::BTreeMap;

/// A last sample shorter than this share of the others is ignored.
const PARTIAL: f64 = 0.9;

/// A finding and how it is printed.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
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
    /// What was found, in samples.
    pub steady: Steady,
    /// Share of the window before the steady state, 0 to 1.
    pub head_share: f64,
    /// The compared figure, of the whole window, packets per second.
    pub value_pps: Option<f64>,
    /// The same figure of the steady part alone; none when the run never gets
    /// steady.
    pub steady_pps: Option<f64>,
    /// One sentence when the window holds a warm-up or never gets steady.
    pub sentence: Option<String>,
}

/// The figures that have a logarithm, in the order of the runs. What a variant does on one bed is
/// to them a variant of its own: the levels of beds are no trend, and no modes.
pub(super) fn log_figures(runs: &[RunResult]) -> Vec<RunFigure> {
    let positive = |run: &RunResult| run.value_pps.filter(|pps| pps.is_finite() && *pps > 0.0);
    let mut variants = BedVariants::default();
    runs.iter()
        .filter_map(|run| {
            let log_rate = positive(run)?.ln();
            let variant = variants.number(run.variant, run.bed.as_deref());
            Some(RunFigure { run: run.run, variant, block: run.block, log_rate })
        })
        .collect()
}

/// Numbers for variants, of which each bed has its own.
#[derive(Default)]
pub(crate) struct BedVariants<'a>(BTreeMap<(usize, Option<&'a str>), usize>);

impl<'a> BedVariants<'a> {
    /// That of a variant on a bed.
    pub(crate) fn number(&mut self, variant: usize, bed: Option<&'a str>) -> usize {
        let next = self.0.len();
        *self.0.entry((variant, bed)).or_insert(next)
    }
}

/// Everything found in the runs of an experiment.
pub(super) fn diagnoses(contents: &Contents, runs: &[RunResult]) -> Vec<Finding> {
    let censored =
        (0..contents.plan.variants.len()).filter_map(|variant| censored(contents, runs, variant));
    let figures = log_figures(runs);
    let mut found = diagnose(&figures);
    if contents.plan.design.sequential {
        // Between variants a trend can't be told from a difference.
        found.retain(|diagnosis| !matches!(diagnosis, Diagnosis::Trend { .. }));
        let trend = trend_within_variants(&figures).filter(|trend| trend.p < LEVEL);
        let trend = trend.map(|Trend { slope, p }| Diagnosis::Trend { slope, p });
        found.splice(0..0, trend);
    }
    found
        .into_iter()
        .chain(censored)
        .map(|evidence| Finding { sentence: evidence.sentence(), evidence })
        .collect()
}

/// Runs of `variant` that were bounded by the generator, or by the links' line rate.
fn censored(contents: &Contents, runs: &[RunResult], variant: usize) -> Option<Diagnosis> {
    let mut ceilings = Vec::new();
    let rates: Vec<RunRate> = runs
        .iter()
        .filter(|run| run.variant == variant)
        .filter_map(|run| {
            let record = contents.runs.iter().find(|record| record.run == run.run)?;
            let ceiling = ceiling_pps(record);
            ceilings.extend(ceiling);
            Some(RunRate { pps: run.mean_pps?, generator_limited: ceiling.is_some() })
        })
        .collect();
    let label = &contents.plan.variants[variant].label;
    censoring(label, &rates, line_pps(contents, variant), median(&ceilings))
        .map(Diagnosis::Censored)
}

/// The ceiling that a run's warning names, in packets per second.
fn ceiling_pps(record: &RunRecord) -> Option<f64> {
    record.warnings.iter().find_map(|warning| match warning {
        Warning::GeneratorLimited { ceiling_pps, .. } => Some(*ceiling_pps),
        _ => None,
    })
}

/// Warm-up and steady state of every run that has samples enough. Streams of an
/// alternation are not judged: their slices switch.
pub(super) fn steadiness(
    contents: &Contents,
    runs: &[RunResult],
    figure: RunMetric,
) -> Vec<RunSteadiness> {
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
        // The window's own count, not that of the samples: packets that arrived
        // during the drain belong to it.
        Steady { from: 0, .. } => run.value_pps,
        Steady { from, .. } => {
            figure_pps(&samples[from..], figure, Roles::of(&record.trial.cpus), run.intended_pps)
        }
    };
    let mut judged = RunSteadiness {
        run: run.run,
        label: run.label.clone(),
        steady: found,
        head_share,
        value_pps: run.value_pps,
        steady_pps,
        sentence: None,
    };
    judged.sentence = judged.finding(figure);
    Some(judged)
}

impl RunSteadiness {
    /// What has to be said of it, if anything.
    fn finding(&self, figure: RunMetric) -> Option<String> {
        let Steady { from, reached, head_ratio, .. } = self.steady;
        if from == 0 && reached {
            return None;
        }
        let whole = self.value_pps.map_or("-".to_owned(), format_pps);
        let compared = format!("compared is the {} of the whole window, {whole}", figure.short());
        let head = format!(
            "its first {} ran at {} of the rest",
            percent(self.head_share, 0),
            percent(head_ratio, 1)
        );
        Some(match self.steady_pps {
            Some(pps) => format!(
                "the window holds a warm-up: {head}; {compared}, the steady part has {}",
                format_pps(pps)
            ),
            None if from == 0 => format!("the window never gets steady; {compared}"),
            None => format!("the window never gets steady ({head}); {compared}"),
        })
    }
}
