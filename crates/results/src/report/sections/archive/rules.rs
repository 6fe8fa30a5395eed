//! The results by the archive's rule and by the steady-state rule, side by side.

use crate::report::analysis::VariantResult;
use crate::stats::log_rule;
use crate::stats::summary::median;
use crate::store::Contents;
use fwdlab_model::RunRecord;
use fwdlab_model::plan::RunMetric;
use serde::Serialize;

/// The rule used for this report's results, and the results of the other rule.
#[derive(Clone, Debug, Serialize)]
pub struct RuleComparison {
    /// The rule in use: `netbenches`, `steady` or `mean` (searches).
    pub used: String,
    /// Description of the rule in use.
    pub used_is: String,
    /// Description of the other rule.
    pub other_is: String,
    /// Medians of each variant by both rules.
    pub variants: Vec<RuleFigures>,
    /// The largest difference between the two, as a ratio; `None` if there are no results.
    pub largest: Option<f64>,
}

/// One variant's medians by either rule.
#[derive(Clone, Debug, Serialize)]
pub struct RuleFigures {
    /// Label.
    pub label: String,
    /// Median over the runs by the rule in use, packets per second.
    pub used_pps: Option<f64>,
    /// Median by the other rule.
    pub other_pps: Option<f64>,
    /// The other rule's median over the used one's, minus one.
    pub difference: Option<f64>,
}

/// Compares the rules.
pub(super) fn both(
    contents: &Contents,
    figure: RunMetric,
    variants: &[VariantResult],
) -> RuleComparison {
    let upper = is_upper(contents);
    let other = match figure {
        RunMetric::Steady if upper => RunMetric::NetbenchesUpper,
        RunMetric::Steady => RunMetric::Netbenches,
        _ => RunMetric::Steady,
    };
    let of = |run: &RunRecord, figure| match figure {
        RunMetric::Steady => log_rule::steady_pps(&run.trial.samples),
        _ => log_rule::netbenches_pps(&run.trial.samples, upper),
    };
    let variants: Vec<RuleFigures> = variants
        .iter()
        .map(|variant| {
            let others: Vec<f64> = match figure {
                // A search has a single result and no rates.
                RunMetric::Mean => Vec::new(),
                _ => runs_of(contents, variant.index).filter_map(|run| of(run, other)).collect(),
            };
            let used_pps = variant.summary.map(|summary| summary.median);
            let other_pps = median(&others);
            let difference = used_pps.zip(other_pps).map(|(used, other)| other / used - 1.0);
            RuleFigures { label: variant.label.clone(), used_pps, other_pps, difference }
        })
        .collect();
    let differences = variants.iter().filter_map(|v| v.difference).filter(|d| d.is_finite());
    let largest = differences.reduce(|a, b| if b.abs() > a.abs() { b } else { a });
    RuleComparison {
        used: figure.short().to_owned(),
        used_is: figure.description().to_owned(),
        other_is: other.description().to_owned(),
        variants,
        largest,
    }
}

/// Returns true if the published lists use the upper of two middle values.
fn is_upper(contents: &Contents) -> bool {
    contents.import.as_ref().is_some_and(|import| import.about.upper_median)
}

fn runs_of(contents: &Contents, variant: usize) -> impl Iterator<Item = &RunRecord> {
    contents.runs.iter().filter(move |run| run.variants == [variant])
}
