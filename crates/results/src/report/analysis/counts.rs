//! Instructions of emulated devices by variant, and comparisons of each variant with its baseline.

use super::figures::RunResult;
use super::pictures::Pictures;
use super::{Compared, Outcome, VariantResult};
use crate::counts::{
    self, Foreground, FunctionCount, Modelled, Repetition, Total, flames, flames_of_calls,
    red_and_blue, red_and_blue_of_calls,
};
use crate::profile::{Stacks, Subsystems, unfold};
use crate::report::safe_name;
use crate::stats::summary::median;
use crate::store::Contents;
use fwdlab_model::record::Executed;
use serde::Serialize;

/// The counts of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Counts {
    /// Unit of all counts.
    pub unit: &'static str,
    /// Caveat to print with them.
    pub caution: &'static str,
    /// The variants that were counted.
    pub variants: Vec<CountedVariant>,
}

/// Counts of one variant, per packet: medians over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct CountedVariant {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Minimum and maximum of the bursts of its runs.
    pub bursts: (f64, f64),
    /// Atomic instructions.
    pub atomics: f64,
    /// Bytes moved by repeated string instructions.
    pub bytes: f64,
    /// Instructions of the idle device in the same time, included in no total.
    pub background: f64,
    /// Number of packets counted in all runs.
    pub packets: u64,
    /// Number of packets that the device found simultaneously.
    pub batch: u16,
    /// Batches that the device did not find simultaneously, and the number of all batches, over all
    /// runs.
    pub scattered: (u64, u64),
    /// Functions, most expensive first, without background.
    pub functions: Vec<FunctionCount>,
    /// The flame graph, a file of the report; `None` if there is nothing to draw.
    pub file: Option<String>,
    /// Call stacks; `None` if calls were not followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Called>,
    /// Misses of a model of caches; `None` without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<Modelled>,
}

/// Call stacks of a variant.
#[derive(Clone, Debug, Serialize)]
pub struct Called {
    /// The flame graph, a file of the report.
    pub file: String,
    /// Share (0 to 1) of the instructions with unknown callers, maximum over the runs.
    pub unknown_share: f64,
    /// Instructions by which stacks and functions differ, over all runs: 0 unless there is a fault.
    pub unaccounted: u64,
    #[serde(skip)]
    stacks: Stacks,
}

/// Counts of each variant's included runs.
struct Counted<'a> {
    contents: &'a Contents,
    runs: &'a [RunResult],
    /// By variant.
    foregrounds: Vec<Foreground>,
    table: Subsystems,
}

impl<'a> Counted<'a> {
    fn of(contents: &'a Contents, runs: &'a [RunResult]) -> Counted<'a> {
        let foregrounds = Foreground::by_variant(&contents.plan, contents.runs.iter());
        Counted { contents, runs, foregrounds, table: Subsystems::default() }
    }

    /// Returns the runs of one variant, or of the builds of a revision.
    fn runs<'s>(
        &'s self,
        variants: &'s [usize],
    ) -> impl Iterator<Item = (&'a RunResult, &'a Total)> + 's {
        let is_included =
            |run: &&RunResult| variants.contains(&run.variant) && run.left_out.is_none();
        self.runs.iter().filter(is_included).filter_map(|run| Some((run, run.counted.as_ref()?)))
    }

    fn executed(&self, variants: &[usize]) -> Vec<&'a Executed> {
        let indices: Vec<u32> = self.runs(variants).map(|(run, _)| run.run).collect();
        let records = self.contents.runs.iter().filter(|record| indices.contains(&record.run));
        records.filter_map(|record| record.trial.executed.as_ref()).collect()
    }

    fn functions(&self, variant: usize) -> Vec<FunctionCount> {
        counts::costs(&self.executed(&[variant]), &self.foregrounds[variant], &self.table)
    }

    /// Averages the stacks of the runs over the foreground functions; `None` if a run has no
    /// stacks.
    fn calls(&self, variant: &CountedVariant) -> Option<Called> {
        let executed = self.executed(&[variant.variant]);
        let runs = executed.iter().map(|executed| executed.stacks.as_ref());
        let runs = runs.collect::<Option<Vec<_>>>()?;
        let mut sums = Stacks::default();
        runs.iter().for_each(|run| sums.merge(&unfold(&run.folded)));
        let is_counted = |name: &str| variant.functions.iter().any(|f| f.name == name);
        let mut stacks = Stacks::default();
        for (frames, sum) in sums.iter() {
            if frames.last().is_some_and(|function| is_counted(function)) {
                stacks.add(frames.to_vec(), (sum as f64 / runs.len() as f64).round() as u64);
            }
        }
        Some(Called {
            file: format!("calls-{}.svg", safe_name(&variant.label)),
            unknown_share: runs.iter().map(|run| run.unknown_share).fold(0.0, f64::max),
            unaccounted: runs.iter().map(|run| run.unaccounted).sum(),
            stacks,
        })
    }
}

/// Compares each variant with its baseline by their counts.
pub(super) fn compare(
    contents: &Contents,
    runs: &[RunResult],
    pairs: &[(usize, usize)],
) -> Vec<Outcome> {
    let counted = Counted::of(contents, runs);
    let plan = &contents.plan;
    let margin = plan.compare.margin;
    // Builds of a revision repeat like boots: their differences are scatter.
    let executed = |variant: usize| counted.executed(&plan.builds_of(variant));
    let outcome = |&(variant, baseline): &(usize, usize)| {
        let (a, b) = (executed(baseline), executed(variant));
        Outcome::counted(counts::compare_executed(&a, &b, margin, Repetition::Runs))
    };
    pairs.iter().map(outcome).collect()
}

/// Returns the counts by variant and the pictures, and adds the pictures' names to the comparisons.
pub(super) fn counts(
    contents: &Contents,
    runs: &[RunResult],
    variants: &[VariantResult],
    comparisons: &mut [Compared],
) -> (Counts, Pictures) {
    let counted = Counted::of(contents, runs);
    let mut pictures = Pictures::new();
    let mut all: Vec<CountedVariant> =
        variants.iter().filter_map(|variant| counted_variant(&counted, variant)).collect();
    for variant in &mut all {
        let name = format!("instructions-{}.svg", safe_name(&variant.label));
        if let Ok(svg) = flames(&variant.label, &variant.functions) {
            pictures.push((name.clone(), svg.into()));
            variant.file = Some(name);
        }
        let drawn = counted.calls(variant).and_then(|calls| {
            let svg = flames_of_calls(&variant.label, &calls.stacks).ok()?;
            pictures.push((calls.file.clone(), svg.into()));
            Some(calls)
        });
        variant.calls = drawn;
    }
    let of = |index: usize| all.iter().find(|variant| variant.variant == index);
    for compared in comparisons {
        let labels = [compared.baseline_label.as_str(), compared.label.as_str()];
        let Outcome::Counted(exact) = &mut compared.outcome else { continue };
        let (Some(before), Some(after), Some(found)) =
            (of(compared.baseline), of(compared.variant), &mut exact.functions)
        else {
            continue;
        };
        if let Ok(svg) = red_and_blue(labels, &before.functions, &after.functions) {
            let [before, after] = labels.map(safe_name);
            let name = format!("instructions-{after}-against-{before}.svg");
            pictures.push((name.clone(), svg.into()));
            found.file = Some(name);
        }
        let (Some(one), Some(other)) = (&before.calls, &after.calls) else { continue };
        if let Ok(svg) = red_and_blue_of_calls(labels, &one.stacks, &other.stacks) {
            let [before, after] = labels.map(safe_name);
            let name = format!("calls-{after}-against-{before}.svg");
            pictures.push((name.clone(), svg.into()));
            found.calls = Some(name);
        }
    }
    let unit = crate::label::INSTRUCTIONS;
    (Counts { unit, caution: counts::NOT_TIME, variants: all }, pictures)
}

fn counted_variant(counted: &Counted<'_>, variant: &VariantResult) -> Option<CountedVariant> {
    let totals: Vec<&Total> = counted.runs(&[variant.index]).map(|(_, total)| total).collect();
    let first = totals.first()?;
    let middle = |of: fn(&Total) -> f64| {
        median(&totals.iter().map(|total| of(total)).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let ranges = totals.iter().map(|total| total.range());
    Some(CountedVariant {
        variant: variant.index,
        label: variant.label.clone(),
        bursts: ranges.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), (low, high)| {
            (least.min(low), most.max(high))
        }),
        atomics: middle(|total| total.atomics),
        bytes: middle(|total| total.bytes),
        background: middle(|total| total.background),
        packets: totals.iter().map(|total| total.packets).sum(),
        batch: first.batch,
        scattered: totals
            .iter()
            .fold((0, 0), |(some, all), total| (some + total.scattered.0, all + total.scattered.1)),
        functions: counted.functions(variant.index),
        file: None,
        calls: None,
        caches: counts::misses(
            &counted.executed(&[variant.index]),
            &counted.foregrounds[variant.index],
        ),
    })
}
