//! A patched set against the set of the same bench without the patch.

use crate::report::analysis::comparisons::{self, Outcome, adjust};
use crate::report::analysis::{RunResult, VariantResult};
use crate::stats::summary::median;
use crate::stats::{Criteria, compare_unblocked};
use crate::store::{Contents, UnpatchedGroup};
use fwdlab_model::plan::RunMetric;
use serde::Serialize;

/// The comparison of a set with the one without its patch.
#[derive(Clone, Debug, Serialize)]
pub struct PatchResult {
    /// The set without the patch, e.g. `fbsd16-n311215`.
    pub unpatched: String,
    /// Command that compares the two stores, to be run in the directory of the patched one.
    pub command: String,
    /// Variants that both sets have; empty if the figures are of different rules.
    pub variants: Vec<PatchedVariant>,
}

/// A variant with the patch against the same one without it.
#[derive(Clone, Debug, Serialize)]
pub struct PatchedVariant {
    /// Label in this report.
    pub label: String,
    /// Median rate without the patch, packets per second.
    pub unpatched_pps: Option<f64>,
    /// Median rate with it.
    pub patched_pps: Option<f64>,
    /// The answer.
    pub outcome: Outcome,
}

/// Compares each variant with the one of its name in the set without the patch; `None` without
/// such a set.
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
            let own = runs.iter().filter(|run| run.variant == variant.index);
            let own = own.filter_map(|run| run.value_pps).collect();
            Some((variant, of_name(&group.name)?, own))
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
