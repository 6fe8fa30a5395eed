//! Findings about the runs, and the steady state within each.
//!
//! Nothing is left out of a comparison because of what is found here.

use super::Analysis;
use super::figures::{RunResult, figure_pps};
use super::line_rate::line_pps_of;
use crate::format::percent;
use crate::stats::diagnostics::{
    Diagnosis, RunFigure, RunRate, Trend, censoring, diagnose, level_of_beds, trend_within_variants,
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

/// A last sample shorter than this share of the others is ignored.
const PARTIAL: f64 = 0.9;

/// A finding and how it is printed.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The bed whose runs it is about, where several measured.
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

impl Analysis {
    /// A run by its number, with its bed where several measured.
    pub(crate) fn run_name(&self, run: u32) -> String {
        let own = self.runs.iter().find(|result| result.run == run);
        match own.and_then(|own| own.bed.as_deref()).filter(|_| self.beds.is_some()) {
            Some(bed) => format!("run {run} on bed {bed}"),
            None => format!("run {run}"),
        }
    }
}

/// The figures that have a logarithm, in the order of the runs.
pub(super) fn log_figures<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Vec<RunFigure> {
    let positive = |run: &RunResult| run.value_pps.filter(|pps| pps.is_finite() && *pps > 0.0);
    runs.into_iter()
        .filter_map(|run| {
            let log_rate = positive(run)?.ln();
            Some(RunFigure { run: run.run, variant: run.variant, block: run.block, log_rate })
        })
        .collect()
}

/// Everything found in the runs of an experiment. Where several beds measured, each is looked at
/// by itself: what differs between machines is no trend, no second mode and no outlier, and each
/// has limits of its own.
pub(super) fn diagnoses(contents: &Contents, runs: &[RunResult]) -> Vec<Finding> {
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

/// The runs of each bed in the order in which it measured them; all as they are, without a name,
/// where there is only one.
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

/// What was found in the runs of one bed.
fn of_one(contents: &Contents, runs: &[&RunResult], level: f64) -> Vec<Diagnosis> {
    let figures = log_figures(runs.iter().copied());
    let mut found = diagnose(&figures, level);
    if contents.plan.design.sequential {
        // Between variants a trend can't be told from a difference.
        found.retain(|diagnosis| !matches!(diagnosis, Diagnosis::Trend { .. }));
        let trend = trend_within_variants(&figures).filter(|trend| trend.p < level);
        let trend = trend.map(|Trend { slope, p }| Diagnosis::Trend { slope, p });
        found.splice(0..0, trend);
    }
    let variants = 0..contents.plan.variants.len();
    found.extend(variants.filter_map(|variant| censored(contents, runs, variant)));
    found
}

/// Runs of `variant` that were bounded by the generator, or by the links' line rate.
fn censored(contents: &Contents, runs: &[&RunResult], variant: usize) -> Option<Diagnosis> {
    let own: BTreeSet<u32> =
        runs.iter().filter(|run| run.variant == variant).map(|run| run.run).collect();
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
    let line = line_pps_of(contents, variant, |run| own.contains(&run));
    censoring(label, &rates, line, median(&ceilings)).map(Diagnosis::Censored)
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

/// True if two figures of a run differ by less than 0.5 %.
fn is_alike((steady, whole): (f64, f64)) -> bool {
    (steady / whole - 1.0).abs() < 0.005
}

impl RunSteadiness {
    /// What has to be said of it, if anything.
    fn finding(&self, figure: RunMetric) -> Option<String> {
        let Steady { from, reached, head_ratio, .. } = self.steady;
        if from == 0 && reached {
            return None;
        }
        let whole = self.value_pps.map_or("-".to_owned(), format_pps);
        let is_archived = matches!(figure, RunMetric::Netbenches | RunMetric::NetbenchesUpper);
        if is_archived && self.steady_pps.zip(self.value_pps).is_some_and(is_alike) {
            // The archive's rule drops the first lines, and takes a median.
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
