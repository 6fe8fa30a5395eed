//! Counts of instructions: pairs of variants by what both executed.

use super::input::{Input, Variant};
use super::pairs::Pair;
use crate::counts::{self, Differences, Exact, Foreground, FunctionCount, Repeated};
use crate::profile::Subsystems;
use crate::stats::Unanswerable;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::Executed;

/// True when an input says that its figures are counts; those beside it are then read as such.
pub(super) fn are_counts(inputs: &[Input]) -> bool {
    let figures = inputs.iter().filter_map(|input| input.label.as_ref()?.figure);
    figures.into_iter().any(|figure| figure == RunMetric::Instructions)
}

/// Sums the runs of all stores over the same functions: what is background in one of them
/// counts in none.
pub(super) fn together(inputs: &mut [Input]) {
    let all = foreground(inputs);
    for variant in inputs.iter_mut().flat_map(|input| &mut input.variants) {
        let totals: Vec<_> = variant.executed.iter().map(|executed| all.total(executed)).collect();
        for ((run, known), total) in variant.runs.iter_mut().zip(&mut variant.known).zip(totals) {
            if let Some(total) = total {
                run.pps = total.instructions;
                known.counted = Some(total);
            }
        }
    }
}

fn foreground(inputs: &[Input]) -> Foreground {
    let variants = inputs.iter().flat_map(|input| &input.variants);
    Foreground::of(variants.flat_map(|variant| &variant.executed))
}

/// The pairs in their order.
pub(super) fn compare(
    inputs: &[Input],
    pairs: &[Pair],
    margin: f64,
) -> Vec<Result<Exact, Unanswerable>> {
    let (foreground, table) = (foreground(inputs), Subsystems::default());
    let functions = |variant: &Variant| -> Vec<FunctionCount> {
        let executed = variant.executed.iter().zip(&variant.known);
        let executed = executed.filter(|(_, known)| known.left_out.is_none());
        let executed: Vec<&Executed> = executed.map(|(executed, _)| executed).collect();
        counts::costs(&executed, &foreground, &table)
    };
    let one = |pair: &Pair| {
        let of = |side: super::pairs::Side| &inputs[side.input].variants[side.variant];
        let (a, b) = (of(pair.baseline), of(pair.candidate));
        let are_known = !a.executed.is_empty() && !b.executed.is_empty();
        let differences = are_known.then(|| Differences::of(&functions(a), &functions(b)));
        counts::compare(&repeated(a), &repeated(b), margin, differences)
    };
    pairs.iter().map(one).collect()
}

fn repeated(variant: &Variant) -> Vec<Repeated> {
    if variant.known.is_empty() {
        let run = |instructions| Repeated { instructions, bursts: Vec::new() };
        return variant.values().into_iter().map(run).collect();
    }
    let counted = variant.known.iter().filter(|known| known.left_out.is_none());
    counted.filter_map(|known| known.counted.as_ref().map(Repeated::from)).collect()
}
