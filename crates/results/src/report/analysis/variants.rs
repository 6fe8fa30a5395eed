//! Results and loss of each variant.

use super::figures::RunResult;
use super::line_rate::line_pps;
use super::published_names;
use super::warnings::{RunWarning, warnings_of};
use crate::format;
use crate::report::names::list_files;
use crate::stats::Summary;
use crate::stats::binomial::{Rate, interval_over_groups};
use crate::store::Contents;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::units::FrameSize;
use serde::Serialize;
use std::collections::BTreeMap;

/// One variant's results.
#[derive(Clone, Debug, Serialize)]
pub struct VariantResult {
    /// Position in the plan.
    pub index: usize,
    /// Label.
    pub label: String,
    /// File with its values, `<label>.pps`.
    pub file: String,
    /// Index of the level of each factor.
    pub levels: Vec<usize>,
    /// Label of the level of each factor, by the factor's name.
    pub settings: BTreeMap<String, String>,
    /// Index of its baseline; `None` for a baseline.
    pub baseline: Option<usize>,
    /// The compared values, one per run in run order.
    pub values: Vec<f64>,
    /// Mean rates of the same runs.
    pub means: Vec<f64>,
    /// 90th percentiles of the samples of the same runs.
    pub p90s: Vec<f64>,
    /// Summary of `values`; `None` without runs.
    pub summary: Option<SummaryResult>,
    /// Median of `means`.
    pub mean_median: Option<f64>,
    /// Median of `p90s`.
    pub p90_median: Option<f64>,
    /// Mean share of the windows that was certainly taken from the device, 0 to 1.
    pub taken: Option<f64>,
    /// Loss in the windows of its included runs.
    pub loss: Option<Loss>,
    /// Frame size with FCS; `None` if unknown, as for some imports.
    pub frame_size: Option<FrameSize>,
    /// Line rate in packets per second over all directions; `None` if the line rate is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_pps: Option<f64>,
    /// Warnings about its runs.
    pub warnings: Vec<RunWarning>,
}

/// Ratio of the corrected to the counted rate above which both are printed.
pub const CORRECTED: f64 = 1.05;

impl VariantResult {
    /// Returns the median of the rates counted over the whole windows, packets per second, and the
    /// ratio of the compared rate to it; `None` if the two are close, or if another metric is
    /// compared.
    pub fn counted(&self, figure: RunMetric) -> Option<(f64, f64)> {
        let corrected = self.summary.filter(|_| figure == RunMetric::Corrected)?.median;
        let counted = self.mean_median.filter(|&pps| pps > 0.0)?;
        (corrected > CORRECTED * counted).then_some((counted, corrected / counted))
    }
}

/// Lost packets of one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// Packets lost, over all included runs.
    pub lost: u64,
    /// Packets offered.
    pub offered: u64,
    /// Ratio of lost to offered packets.
    pub ratio: f64,
    /// Ends of its 95 % interval over the runs; `None` for a single run, or if all runs lost the
    /// same share.
    pub interval: Option<(f64, f64)>,
    /// Text for tables: the ratio, with its interval at a paced rate.
    pub shown: String,
}

impl Loss {
    fn of(runs: &[&RunResult]) -> Option<Loss> {
        let counted = || runs.iter().filter(|run| run.left_out.is_none());
        let offered: u64 = counted().map(|run| run.offered).sum();
        let lost = counted().map(|run| run.offered.saturating_sub(run.forwarded)).sum();
        let of_run = |run: &&RunResult| {
            let hits = run.offered.saturating_sub(run.forwarded);
            (run.offered > 0).then_some(Rate { hits, of: run.offered })
        };
        let rates: Vec<Rate> = counted().filter_map(of_run).collect();
        let interval = interval_over_groups(&rates, 95.0).map(|found| (found.low, found.high));
        let ratio = Rate { hits: lost, of: offered }.share();
        let is_paced = counted().all(|run| run.intended_pps.is_some());
        let shown = match interval.filter(|_| is_paced) {
            Some((low, high)) => format!(
                "{} [{}, {}]",
                format::percent(ratio, 4),
                format::percent(low, 4),
                format::percent(high, 4)
            ),
            None if is_paced => format::percent(ratio, 4),
            None => format::percent(ratio, 1),
        };
        (offered > 0).then_some(Loss { lost, offered, ratio, interval, shown })
    }
}

/// Summary of one variant's values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SummaryResult {
    /// Number of runs.
    pub n: usize,
    /// Median.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Ratio of standard deviation to mean; `None` for one run.
    pub cv: Option<f64>,
}

impl SummaryResult {
    /// Summarises `values`; `None` if there are none or one isn't finite.
    pub(crate) fn of(values: &[f64]) -> Option<SummaryResult> {
        Summary::of(values).map(|summary| SummaryResult {
            n: summary.n,
            median: summary.median,
            min: summary.min,
            max: summary.max,
            mean: summary.mean,
            cv: summary.cv(),
        })
    }
}

/// Returns all variants in the order of the plan.
pub(super) fn variants(contents: &Contents, runs: &[RunResult]) -> Vec<VariantResult> {
    let plan = &contents.plan;
    let median = |values: &[f64]| crate::stats::summary::median(values);
    let suffix = if plan.metric().is_rate() { "pps" } else { "instructions" };
    let mut files = list_files(plan.variants.iter().map(|variant| variant.label.as_str()), suffix);
    published_names::apply(contents, &mut files);
    plan.variants
        .iter()
        .zip(files)
        .map(|(variant, file)| {
            let mut variant_runs: Vec<&RunResult> =
                runs.iter().filter(|run| run.variant == variant.index).collect();
            if contents.import.is_some() {
                // The archive's lists are in the order of `ls`: 1, 10, 2.
                variant_runs.sort_by_key(|run| (run.block + 1).to_string());
            }
            // All columns use the same runs: the included ones, if there are any.
            if variant_runs.iter().any(|run| run.left_out.is_none()) {
                variant_runs.retain(|run| run.left_out.is_none());
            }
            let values: Vec<f64> = variant_runs.iter().filter_map(|run| run.value()).collect();
            let means: Vec<f64> = variant_runs.iter().filter_map(|run| run.mean_pps).collect();
            let p90s: Vec<f64> = variant_runs.iter().filter_map(|run| run.p90_pps).collect();
            VariantResult {
                index: variant.index,
                label: variant.label.clone(),
                file,
                levels: variant.levels.clone(),
                settings: plan
                    .factors
                    .iter()
                    .zip(&variant.levels)
                    .map(|(factor, &level)| {
                        (factor.name.clone(), factor.levels[level].label.clone())
                    })
                    .collect(),
                baseline: plan.baseline_of(variant.index),
                summary: SummaryResult::of(&values),
                mean_median: median(&means),
                p90_median: median(&p90s),
                taken: (!variant_runs.is_empty()).then(|| {
                    variant_runs.iter().map(|run| run.taken).sum::<f64>()
                        / variant_runs.len() as f64
                }),
                loss: Loss::of(&variant_runs),
                frame_size: Some(variant.settings.traffic.frame_size),
                line_pps: line_pps(contents, variant.index),
                values,
                means,
                p90s,
                warnings: warnings_of(contents, variant.index),
            }
        })
        .collect()
}
