//! Comparison of a patched set with the unpatched set of the same bench.

use crate::report::analysis::comparisons::{self, Outcome, adjust};
use crate::report::analysis::{RunResult, VariantResult};
use crate::stats::summary::median;
use crate::stats::{Criteria, compare_unblocked};
use crate::store::{Contents, UnpatchedGroup};
use fwdlab_model::plan::RunMetric;
use serde::Serialize;

/// Comparison of a set with its unpatched set.
#[derive(Clone, Debug, Serialize)]
pub struct PatchResult {
    /// The unpatched set, e.g. `fbsd16-n311215`.
    pub unpatched: String,
    /// Command that compares the two stores, for the directory of the patched one.
    pub command: String,
    /// Variants in both sets; empty if the sets use different rules.
    pub variants: Vec<PatchedVariant>,
}

/// Comparison of a variant with and without the patch.
#[derive(Clone, Debug, Serialize)]
pub struct PatchedVariant {
    /// Label in this report.
    pub label: String,
    /// Median rate without the patch, packets per second.
    pub unpatched_pps: Option<f64>,
    /// Median rate with the patch.
    pub patched_pps: Option<f64>,
    /// The result of the comparison.
    pub outcome: Outcome,
}

/// Compares each variant with the variant of the same name in the unpatched set; `None` if there is
/// no such set.
pub(super) fn patch(
    contents: &Contents,
    figure: RunMetric,
    variants: &[VariantResult],
    runs: &[RunResult],
) -> Option<PatchResult> {
    let about = &contents.import.as_ref()?.about;
    let unpatched = about.unpatched.as_ref()?;
    let is_same_rule = matches!(figure, RunMetric::Netbenches | RunMetric::NetbenchesUpper);
    let of_name = |name: &str| unpatched.groups.iter().find(|group| group.name == name);
    let pairs = variants.iter().zip(&about.groups).filter(|_| is_same_rule);
    let pairs: Vec<(&VariantResult, &UnpatchedGroup, Vec<f64>)> = pairs
        .filter_map(|(variant, group)| {
            let values = runs.iter().filter(|run| run.variant == variant.index);
            let values = values.filter_map(|run| run.value_pps).collect();
            Some((variant, of_name(&group.name)?, values))
        })
        .collect();
    let criteria = Criteria { family: pairs.len(), ..comparisons::criteria(&contents.plan) };
    let compare = |(_, without, with): &(_, &UnpatchedGroup, Vec<f64>)| {
        compare_unblocked(&without.values, with, criteria)
    };
    let mut outcomes: Vec<_> = pairs.iter().map(compare).collect();
    adjust(&mut outcomes, criteria.adjustment);
    let variants =
        pairs.into_iter().zip(outcomes).map(|((variant, without, with), outcome)| PatchedVariant {
            label: variant.label.clone(),
            unpatched_pps: median(&without.values),
            patched_pps: median(&with),
            outcome: Outcome::of(outcome),
        });
    Some(PatchResult {
        unpatched: unpatched.label.clone(),
        command: format!("fwdlab compare {} .", unpatched.store),
        variants: variants.collect(),
    })
}
