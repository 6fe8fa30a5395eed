//! The figure that stands for a run.

use crate::archive::rule;
use crate::stats::alternation::slices_of;
use crate::stats::summary::{median, quantile};
use crate::store::Contents;
use fwdlab_model::plan::Figure;
use fwdlab_model::record::Sample;
use fwdlab_model::{Plan, RunRecord};
use serde::{Deserialize, Serialize};

/// What one number stands for a run wherever runs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparedFigure {
    /// Packets forwarded in the window over its length.
    Mean,
    /// Ninetieth percentile of the valid raw samples' rates.
    P90,
    /// Alternation: median over a variant's slices of the upper quartile of the
    /// slice's samples.
    Slices,
    /// Imported: median of the log's rates that the archive's rule keeps.
    Netbenches,
    /// The same, the upper of two middle values standing for the median.
    NetbenchesUpper,
    /// Imported: mean rate of the log's steady state.
    Steady,
}

impl ComparedFigure {
    /// The figure that `plan` compares on a testbed of kind `testbed`.
    pub(super) fn of(plan: &Plan, testbed: &str) -> ComparedFigure {
        match plan.compare.figure {
            _ if plan.design.alternate_ns.is_some() => ComparedFigure::Slices,
            Figure::Mean => ComparedFigure::Mean,
            Figure::P90 => ComparedFigure::P90,
            // Sender, DUT and hypervisor share the CPUs of a testbed on one machine:
            // what they take away lowers the mean and leaves the best tenth alone.
            Figure::Auto if ["netns", "memory"].contains(&testbed) => ComparedFigure::P90,
            Figure::Auto => ComparedFigure::Mean,
            Figure::Netbenches => ComparedFigure::Netbenches,
            Figure::NetbenchesUpper => ComparedFigure::NetbenchesUpper,
            Figure::Steady => ComparedFigure::Steady,
        }
    }

    /// One phrase that says what it is.
    pub fn description(self) -> &'static str {
        match self {
            ComparedFigure::Mean => "mean rate of the window (packets forwarded over its length)",
            ComparedFigure::P90 => "90th percentile of the window's samples",
            ComparedFigure::Slices => "median over the slices of the upper quartile of each slice",
            ComparedFigure::Netbenches => {
                "median of the log's rates by the archive's rule (15 lines dropped at the start, \
                 10 at the end)"
            }
            ComparedFigure::NetbenchesUpper => {
                "median of the log's rates by the archive's rule (15 lines dropped at the start, \
                 10 at the end; of two middle values the upper, as in ministat before 2016)"
            }
            ComparedFigure::Steady => "mean rate of the log's steady state",
        }
    }

    /// Its short name in tables.
    pub fn name(self) -> &'static str {
        match self {
            ComparedFigure::Mean => "mean",
            ComparedFigure::P90 => "p90",
            ComparedFigure::Slices => "slices",
            ComparedFigure::Netbenches | ComparedFigure::NetbenchesUpper => "netbenches",
            ComparedFigure::Steady => "steady",
        }
    }
}

/// One run; in an alternation one variant's part of it.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// Index in the plan.
    pub run: u32,
    /// Block; in an alternation the stream.
    pub block: u32,
    /// Index of the variant.
    pub variant: usize,
    /// Label of the variant.
    pub label: String,
    /// Wall clock at the start.
    pub started_at: String,
    /// The compared figure in packets per second; none when the run has no
    /// valid sample.
    pub value_pps: Option<f64>,
    /// Mean rate forwarded.
    pub mean_pps: Option<f64>,
    /// 90th percentile of the samples.
    pub p90_pps: Option<f64>,
    /// Mean rate offered.
    pub offered_pps: Option<f64>,
    /// Packets offered in the window (an alternation: in the variant's valid samples).
    pub offered: u64,
    /// Packets forwarded, likewise.
    pub forwarded: u64,
    /// Number of warnings of the run.
    pub warnings: usize,
}

/// The figures of all runs in their order, and remarks on runs without one.
pub(super) fn run_results(
    contents: &Contents,
    figure: ComparedFigure,
) -> (Vec<RunResult>, Vec<String>) {
    let mut results = Vec::new();
    let mut notes = Vec::new();
    for run in &contents.runs {
        for variant in distinct(&run.variants) {
            let result = run_result(contents, run, variant, figure);
            if result.value_pps.is_none() {
                notes.push(format!(
                    "run {} ({}) has no valid sample and is left out of the comparisons",
                    run.run, result.label
                ));
            }
            results.push(result);
        }
    }
    (results, notes)
}

fn run_result(
    contents: &Contents,
    run: &RunRecord,
    variant: usize,
    figure: ComparedFigure,
) -> RunResult {
    let trial = &run.trial;
    let valid: Vec<Sample> = trial
        .samples
        .iter()
        .copied()
        .filter(|sample| sample.valid && sample.duration_ns > 0 && sample.variant == variant)
        .collect();
    let rates: Vec<f64> = valid.iter().map(rate_pps).collect();
    // A run of one variant is its whole window; a part of an alternation only
    // the samples that were taken while the variant was in force.
    let (offered, forwarded, window_ns) = if figure == ComparedFigure::Slices {
        (
            valid.iter().map(|sample| sample.offered).sum(),
            valid.iter().map(|sample| sample.forwarded).sum(),
            valid.iter().map(|sample| sample.duration_ns).sum(),
        )
    } else {
        (trial.window.offered, trial.window.forwarded, trial.window_ns)
    };
    let per_second =
        |packets: u64| (window_ns > 0).then(|| packets as f64 * 1e9 / window_ns as f64);
    let mean_pps = per_second(forwarded);
    let p90_pps = quantile(&rates, 0.9);
    RunResult {
        run: run.run,
        block: run.block,
        variant,
        label: contents.plan.variants[variant].label.clone(),
        started_at: run.started_at.clone(),
        value_pps: match figure {
            ComparedFigure::Mean => mean_pps,
            ComparedFigure::P90 => p90_pps,
            ComparedFigure::Slices => slices_pps(&valid),
            ComparedFigure::Netbenches => rule::netbenches_pps(&trial.samples, false),
            ComparedFigure::NetbenchesUpper => rule::netbenches_pps(&trial.samples, true),
            ComparedFigure::Steady => rule::steady_pps(&trial.samples),
        },
        mean_pps,
        p90_pps,
        offered_pps: per_second(offered),
        offered,
        forwarded,
        warnings: run.warnings.len(),
    }
}

/// The figure of a part of a run: of these samples alone, packets per second.
pub(super) fn figure_pps(samples: &[Sample], figure: ComparedFigure) -> Option<f64> {
    match figure {
        ComparedFigure::Mean => {
            let forwarded: u64 = samples.iter().map(|sample| sample.forwarded).sum();
            let duration_ns: u64 = samples.iter().map(|sample| sample.duration_ns).sum();
            (duration_ns > 0).then(|| forwarded as f64 * 1e9 / duration_ns as f64)
        }
        ComparedFigure::P90 => quantile(&samples.iter().map(rate_pps).collect::<Vec<f64>>(), 0.9),
        ComparedFigure::Slices => slices_pps(samples),
        ComparedFigure::Netbenches => rule::netbenches_pps(samples, false),
        ComparedFigure::NetbenchesUpper => rule::netbenches_pps(samples, true),
        ComparedFigure::Steady => rule::steady_pps(samples),
    }
}

/// Median over slices of the upper quartile of each slice's sample rates.
fn slices_pps(samples: &[Sample]) -> Option<f64> {
    let quartiles: Vec<f64> =
        slices_of(samples).iter().filter_map(|slice| quantile(&slice.rates_pps, 0.75)).collect();
    median(&quartiles)
}

fn rate_pps(sample: &Sample) -> f64 {
    sample.forwarded as f64 * 1e9 / sample.duration_ns as f64
}

/// The variants of a run, each once, in order of appearance.
pub(super) fn distinct(variants: &[usize]) -> Vec<usize> {
    let mut seen = Vec::new();
    for &variant in variants {
        if !seen.contains(&variant) {
            seen.push(variant);
        }
    }
    seen
}
