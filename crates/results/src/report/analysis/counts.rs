//! What emulated devices executed, by variant, and each variant against its baseline.

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
    /// Unit of every figure.
    pub unit: &'static str,
    /// What must stand beside them.
    pub caution: &'static str,
    /// The variants that were counted.
    pub variants: Vec<CountedVariant>,
}

/// What one variant executes, a packet: medians over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct CountedVariant {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Least and most of the bursts of its runs.
    pub bursts: (f64, f64),
    /// Atomic instructions.
    pub atomics: f64,
    /// Bytes that repeated string instructions moved.
    pub bytes: f64,
    /// Instructions of the idle device in as much time, which are in no total.
    pub background: f64,
    /// Packets that were counted in all runs.
    pub packets: u64,
    /// Packets that the device found at once.
    pub batch: u16,
    /// Batches that it did not find at once, of so many, in all runs.
    pub scattered: (u64, u64),
    /// By function, dearest first; what runs as background is not among them.
    pub functions: Vec<FunctionCount>,
    /// The flame graph, a file of the report; none when there is nothing to draw.
    pub file: Option<String>,
    /// Who calls whom; none where that was not followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Called>,
    /// What a model of caches missed; none where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<Modelled>,
}

/// Stacks of calls of a variant.
#[derive(Clone, Debug, Serialize)]
pub struct Called {
    /// The flame graph, a file of the report.
    pub file: String,
    /// Share (0 to 1) of the instructions whose callers are not known, the largest of the runs.
    pub unknown_share: f64,
    /// Instructions by which stacks and functions differ, of all runs: 0 unless something is
    /// wrong.
    pub unaccounted: u64,
    #[serde(skip)]
    stacks: Stacks,
}

/// What was counted in each variant's runs that count.
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

    /// Those of one variant, or of the builds of a revision.
    fn runs<'s>(
        &'s self,
        variants: &'s [usize],
    ) -> impl Iterator<Item = (&'a RunResult, &'a Total)> + 's {
        let own = |run: &&RunResult| variants.contains(&run.variant) && run.left_out.is_none();
        self.runs.iter().filter(own).filter_map(|run| Some((run, run.counted.as_ref()?)))
    }

    fn executed(&self, variants: &[usize]) -> Vec<&'a Executed> {
        let own: Vec<u32> = self.runs(variants).map(|(run, _)| run.run).collect();
        let records = self.contents.runs.iter().filter(|record| own.contains(&record.run));
        records.filter_map(|record| record.trial.executed.as_ref()).collect()
    }

    fn functions(&self, variant: usize) -> Vec<FunctionCount> {
        counts::costs(&self.executed(&[variant]), &self.foregrounds[variant], &self.table)
    }

    /// The mean over the runs of what they executed by stack, of functions that are no
    /// background in any; none where a run has no stacks.
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

/// Each variant that has a baseline, by what both execute.
pub(super) fn compare(
    contents: &Contents,
    runs: &[RunResult],
    pairs: &[(usize, usize)],
) -> Vec<Outcome> {
    let counted = Counted::of(contents, runs);
    let plan = &contents.plan;
    let margin = plan.compare.margin;
    // Builds of a revision repeat as its boots do: their differences are scatter.
    let executed = |variant: usize| counted.executed(&plan.builds_of(variant));
    let outcome = |&(variant, baseline): &(usize, usize)| {
        let (a, b) = (executed(baseline), executed(variant));
        Outcome::counted(counts::compare_executed(&a, &b, margin, Repetition::Runs))
    };
    pairs.iter().map(outcome).collect()
}

/// The counts by variant, and the pictures; the comparisons learn the names of theirs.
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
