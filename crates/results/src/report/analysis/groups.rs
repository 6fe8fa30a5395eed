//! Runs by the variants that they measured.

use super::figures::distinct;
use crate::store::Contents;
use fwdlab_model::RunRecord;
use std::collections::BTreeMap;

/// Groups runs by their variants, in the order of the variants.
pub(in crate::report) fn groups(contents: &Contents) -> Vec<(String, Vec<&RunRecord>)> {
    let mut groups: BTreeMap<Vec<usize>, Vec<&RunRecord>> = BTreeMap::new();
    for run in &contents.runs {
        let mut variants = distinct(&run.variants);
        variants.sort_unstable();
        groups.entry(variants).or_default().push(run);
    }
    groups
        .into_iter()
        .map(|(variants, runs)| {
            let labels: Vec<&str> =
                variants.iter().map(|&v| contents.plan.variants[v].label.as_str()).collect();
            (labels.join(" / "), runs)
        })
        .collect()
}
