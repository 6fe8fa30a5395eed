//! Instruction counts: compares pairs of variants by their executed functions.

use super::input::{Input, Variant};
use super::pairs::Pair;
use crate::counts::{self, Exact, Repeated, Repetition};
use crate::stats::Unanswerable;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::Executed;

/// Returns true if the metric of an input is instructions; all other inputs are then counts too.
pub(super) fn are_counts(inputs: &[Input]) -> bool {
    let figures = inputs.iter().filter_map(|input| input.label.as_ref()?.figure);
    figures.into_iter().any(|figure| figure == RunMetric::Instructions)
}

/// Compares the pairs, in their order.
pub(super) fn compare(
    inputs: &[Input],
    pairs: &[Pair],
    margin: f64,
) -> Vec<Result<Exact, Unanswerable>> {
    let one = |pair: &Pair| {
        let of = |side: super::pairs::Side| &inputs[side.input].variants[side.variant];
        // Builds of a revision repeat like boots: their differences are scatter.
        let [a, b]: [Vec<&Variant>; 2] = match pair.builds(inputs) {
            Some(builds) => builds.map(|builds| {
                let variants = &inputs[pair.candidate.input].variants;
                builds.iter().map(|&build| &variants[build]).collect()
            }),
            None => [vec![of(pair.baseline)], vec![of(pair.candidate)]],
        };
        let repeated = |side: &[&Variant]| -> Vec<Repeated> {
            side.iter().flat_map(|variant| repeated_runs(variant)).collect()
        };
        let executed = [&a, &b].map(|side| -> Vec<&Executed> {
            side.iter().flat_map(|variant| executed_runs(variant)).collect()
        });
        match (executed[0].as_slice(), executed[1].as_slice()) {
            // Lists contain totals only.
            ([], _) | (_, []) => counts::compare(&repeated(&a), &repeated(&b), margin, None),
            (a, b) => counts::compare_executed(a, b, margin, Repetition::Runs),
        }
    };
    pairs.iter().map(one).collect()
}

/// Runs that enter comparisons, function by function; empty if only totals are known.
fn executed_runs(variant: &Variant) -> Vec<&Executed> {
    let counted = variant.known.iter().filter(|known| known.counted.is_some());
    let executed = variant.executed.iter().zip(counted);
    executed.filter(|(_, known)| known.left_out.is_none()).map(|(executed, _)| executed).collect()
}

fn repeated_runs(variant: &Variant) -> Vec<Repeated> {
    if variant.known.is_empty() {
        let run = |instructions| Repeated { instructions, bursts: Vec::new() };
        return variant.values().into_iter().map(run).collect();
    }
    let counted = variant.known.iter().filter(|known| known.left_out.is_none());
    counted.filter_map(|known| known.counted.as_ref().map(Repeated::from)).collect()
}
