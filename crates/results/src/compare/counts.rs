//! Counts of instructions: pairs of variants by what both executed.

use super::input::{Input, Variant};
use super::pairs::Pair;
use crate::counts::{self, Exact, Repeated, Repetition};
use crate::stats::Unanswerable;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::Executed;

/// True when an input says that its figures are counts; those beside it are then read as such.
pub(super) fn are_counts(inputs: &[Input]) -> bool {
    let figures = inputs.iter().filter_map(|input| input.label.as_ref()?.figure);
    figures.into_iter().any(|figure| figure == RunMetric::Instructions)
}

/// The pairs in their order.
pub(super) fn compare(
    inputs: &[Input],
    pairs: &[Pair],
    margin: f64,
) -> Vec<Result<Exact, Unanswerable>> {
    let one = |pair: &Pair| {
        let of = |side: super::pairs::Side| &inputs[side.input].variants[side.variant];
        let (a, b) = (of(pair.baseline), of(pair.candidate));
        match (executed(a).as_slice(), executed(b).as_slice()) {
            // Lists of figures.
            ([], _) | (_, []) => counts::compare(&repeated(a), &repeated(b), margin, None),
            (a, b) => counts::compare_executed(a, b, margin, Repetition::Runs),
        }
    };
    pairs.iter().map(one).collect()
}

/// The runs that enter comparisons, function by function; empty if only totals are known.
fn executed(variant: &Variant) -> Vec<&Executed> {
    let executed = variant.executed.iter().zip(&variant.known);
    executed.filter(|(_, known)| known.left_out.is_none()).map(|(executed, _)| executed).collect()
}

fn repeated(variant: &Variant) -> Vec<Repeated> {
    if variant.known.is_empty() {
        let run = |instructions| Repeated { instructions, bursts: Vec::new() };
        return variant.values().into_iter().map(run).collect();
    }
    let counted = variant.known.iter().filter(|known| known.left_out.is_none());
    counted.filter_map(|known| known.counted.as_ref().map(Repeated::from)).collect()
}
