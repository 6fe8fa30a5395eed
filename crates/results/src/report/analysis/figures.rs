//! The value of a run: the number that comparisons use.

use super::bed_blocks;
use super::corrections::Corrections;
use super::goals::{of_run, reason};
use crate::counts::{Foreground, Total};
use crate::stats::alternation::slices_of;
use crate::stats::contention::{
    LARGEST_CORRECTION, LARGEST_UNCORRECTED, is_loss_doubtful, lost_to_waiting,
};
use crate::stats::log_rule;
use crate::stats::stolen_time::{Roles, StolenTime};
use crate::stats::summary::{median, quantile};
use crate::store::Contents;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::Sample;
use fwdlab_model::{Plan, RunRecord, Warning};
use fwdlab_search::GoalResult;
use serde::Serialize;

/// Result of one run; in an alternation, of one variant's part of it.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// Index in the plan.
    pub run: u32,
    /// Block; in an alternation, the stream.
    pub block: u32,
    /// Index of the variant.
    pub variant: usize,
    /// Label of the variant.
    pub label: String,
    /// The bed that it was measured on; `None` if the bed has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bed: Option<String>,
    /// Wall-clock start.
    pub started_at: String,
    /// The compared value in packets per second; `None` if the run has no valid sample.
    pub value_pps: Option<f64>,
    /// Instructions that the device executed per packet; `None` unless the experiment compares
    /// counts. It then has no rates, which are meaningless for an emulated device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<Total>,
    /// Mean forwarded rate.
    pub mean_pps: Option<f64>,
    /// Share of the window that was certainly taken from the device, 0 to 1.
    pub taken: f64,
    /// 90th percentile of the samples.
    pub p90_pps: Option<f64>,
    /// Mean offered rate.
    pub offered_pps: Option<f64>,
    /// Packets offered in the window (in an alternation: in the variant's valid samples).
    pub offered: u64,
    /// Packets forwarded in the same time.
    pub forwarded: u64,
    /// Intended load in packets per second; `None` at the maximum rate.
    pub intended_pps: Option<f64>,
    /// Number of warnings of the run.
    pub warnings: usize,
    /// Reason for excluding the run from all verdicts on the device; `None` if it is included.
    pub left_out: Option<String>,
    /// Search results for the goals after the first, in order.
    #[serde(skip)]
    pub further: Vec<FurtherGoal>,
    /// True if other work on the device's CPUs may have changed the value.
    pub disturbed: bool,
    /// True if the sender was the limit.
    pub generator_limited: bool,
    /// True if the best tenth of the samples shows the device's capacity: for fwdlab's own runs at
    /// full load.
    pub has_capacity: bool,
}

/// Result of a run's search for a goal after the first.
#[derive(Clone, Debug)]
pub struct FurtherGoal {
    /// Conditional throughput, packets per second.
    pub pps: Option<f64>,
    /// Reason for excluding the run from verdicts on this goal; `None` if it is included.
    pub left_out: Option<String>,
}

impl RunResult {
    /// Returns the run with the result for a goal after the first; `number` counts from 0.
    pub(super) fn by_goal(&self, number: usize) -> RunResult {
        let further = self.further.get(number);
        RunResult {
            value_pps: further.and_then(|found| found.pps),
            left_out: further.and_then(|found| found.left_out.clone()),
            ..self.clone()
        }
    }

    /// Returns the compared value: a rate or instructions per packet.
    pub fn value(&self) -> Option<f64> {
        self.value_pps.or(self.counted.as_ref().map(|counted| counted.instructions))
    }

    /// Returns the reason for excluding the run from verdicts; `None` if it is included.
    pub fn absence(&self, figure: RunMetric) -> Option<&str> {
        let without = || self.value().is_none().then(|| without_figure(figure));
        self.left_out.as_deref().or_else(without)
    }

    /// Ratio of lost to offered packets; `None` if none were offered.
    pub fn loss_ratio(&self) -> Option<f64> {
        let lost = self.offered.saturating_sub(self.forwarded);
        (self.offered > 0).then(|| lost as f64 / self.offered as f64)
    }
}

/// Returns the results of all runs in order, and remarks on runs without a value.
pub(in crate::report) fn run_results(
    contents: &Contents,
    figure: RunMetric,
) -> (Vec<RunResult>, Vec<String>) {
    let mut results = Vec::new();
    let mut notes = Vec::new();
    let foregrounds = Foreground::by_variant(&contents.plan, contents.runs.iter());
    let corrections = Corrections::of(contents);
    notes.extend(corrections.notes.iter().cloned());
    let (blocks, split) = bed_blocks::blocks(contents);
    notes.extend(split);
    let measured = blocks.into_iter().zip(contents.run_beds());
    for (run, (block, bed)) in contents.runs.iter().zip(measured) {
        for variant in distinct(&run.variants) {
            let result = run_result(
                &contents.plan,
                run,
                variant,
                figure,
                &foregrounds[variant],
                &corrections,
            );
            let result = RunResult { block, bed: bed.map(str::to_owned), ..result };
            if result.value().is_none() && result.left_out.is_none() {
                let (run, label, why) = (run.run, &result.label, without_figure(figure));
                let comma = if figure.is_rate() { "," } else { "" };
                notes.push(format!(
                    "run {run} ({label}) has {why}{comma} and is left out of the comparisons"
                ));
            }
            notes.extend(result.left_out.iter().map(|why| {
                format!("run {} ({}) is left out of the comparisons: {why}", run.run, result.label)
            }));
            results.push(result);
        }
    }
    (results, notes)
}

/// Describes the missing data of a run without a value.
fn without_figure(figure: RunMetric) -> &'static str {
    match figure.is_rate() {
        true => "no valid sample, or hardly any time on a CPU",
        false => "no counts of instructions",
    }
}

/// Computes the result of one variant's part of a run.
pub(super) fn run_result(
    plan: &Plan,
    run: &RunRecord,
    variant: usize,
    figure: RunMetric,
    foreground: &Foreground,
    corrections: &Corrections,
) -> RunResult {
    let trial = &run.trial;
    let search = of_run(plan, run);
    let goals = search.as_ref().map_or(&[][..], |found| &found.goals[..]);
    let goal = goals.first();
    let unsent = run.warnings.iter().find_map(|warning| match warning {
        Warning::Unsent { .. } => Some(warning.sentence()),
        _ => None,
    });
    let irregular = |goal: &GoalResult| {
        goal.irregular.as_ref().filter(|_| !goal.has_rate())?;
        Some(format!("no regular result for {}: {}", goal.goal.name, reason(run, goal)))
    };
    let has_time = figure.is_rate();
    let valid: Vec<Sample> = trial
        .samples
        .iter()
        .copied()
        .filter(|sample| sample.valid && sample.duration_ns > 0 && sample.variant == variant)
        .collect();
    let rates: Vec<f64> = valid.iter().map(rate_pps).collect();
    let roles = Roles::of(&trial.cpus);
    let taken = StolenTime::of(&valid, roles).and_of_window(&trial.cpus, trial.window_ns, roles);
    let intended = trial.intended.filter(|_| has_time);
    let intended_pps = intended.map(|packets| packets as f64 * 1e9 / trial.window_ns.max(1) as f64);
    // A run of one variant is its whole window; a part of an alternation only includes the samples
    // of this variant.
    let (offered, forwarded, window_ns) = if figure == RunMetric::Slices {
        (
            valid.iter().map(|sample| sample.offered).sum(),
            valid.iter().map(|sample| sample.forwarded).sum(),
            valid.iter().map(|sample| sample.duration_ns).sum(),
        )
    } else {
        (trial.window.offered, trial.window.forwarded, trial.window_ns)
    };
    let per_second =
        |packets: u64| (has_time && window_ns > 0).then(|| packets as f64 * 1e9 / window_ns as f64);
    let mean_pps = per_second(forwarded);
    let is_corrected = figure == RunMetric::Corrected
        && intended_pps.is_none()
        && !corrections.is_uncorrected(variant);
    let contradiction = corrections.contradiction(run.run).filter(|_| is_corrected);
    let corrected = || {
        let rate = taken.rate_pps(forwarded, window_ns)?;
        Some(corrections.below_ceiling(variant, rate, mean_pps?))
    };
    let p90_pps = quantile(&rates, 0.9).filter(|_| has_time);
    RunResult {
        run: run.run,
        block: run.block,
        variant,
        label: plan.variants[variant].label.clone(),
        bed: None,
        started_at: run.started_at.clone(),
        value_pps: match figure {
            // Use the window's counts, not the samples: they include packets that were in transit
            // when the window closed.
            RunMetric::Corrected | RunMetric::Delivered => match intended_pps {
                Some(intended) => delivered_pps(offered, forwarded, intended),
                None if is_corrected => corrected(),
                None => mean_pps,
            },
            RunMetric::Mean => mean_pps,
            RunMetric::P90 => p90_pps,
            RunMetric::Slices => figure_pps(&valid, figure, roles, intended_pps),
            RunMetric::Throughput => goal.and_then(throughput),
            _ => figure_pps(&trial.samples, figure, roles, intended_pps),
        }
        // A run with only invalid samples has no value, such as an imported log without a steady
        // state.
        .filter(|_| trial.samples.is_empty() || !valid.is_empty()),
        counted: match &trial.executed {
            Some(executed) if !has_time => foreground.total(executed),
            _ => None,
        },
        mean_pps,
        taken: taken.share(),
        p90_pps,
        offered_pps: per_second(offered),
        offered,
        forwarded,
        intended_pps,
        warnings: run.warnings.len(),
        left_out: unsent
            .clone()
            .or_else(|| contradiction.map(str::to_owned))
            .or_else(|| goal.filter(|_| figure == RunMetric::Throughput).and_then(irregular)),
        further: goals
            .iter()
            .skip(1)
            .map(|goal| FurtherGoal {
                pps: throughput(goal),
                left_out: unsent.clone().or_else(|| irregular(goal)),
            })
            .collect(),
        disturbed: match intended_pps {
            _ if !taken.knows_threads => {
                run.warnings.iter().any(|warning| matches!(warning, Warning::CpuContended { .. }))
            }
            Some(_) => {
                let lost = offered.saturating_sub(forwarded);
                is_loss_doubtful(lost_to_waiting(&valid, roles, &trial.counters), lost, offered)
            }
            None if is_corrected || matches!(figure, RunMetric::Slices | RunMetric::P90) => {
                taken.share() > LARGEST_CORRECTION
            }
            None => taken.device_share() > LARGEST_UNCORRECTED,
        },
        generator_limited: run
            .warnings
            .iter()
            .any(|warning| matches!(warning, Warning::GeneratorLimited { .. }))
            || (is_corrected
                && corrected().is_some_and(|pps| corrections.is_at_ceiling(variant, pps))),
        has_capacity: matches!(figure, RunMetric::Corrected | RunMetric::Slices),
    }
}

/// Returns the search result for a goal; `None` for an irregular result, which is not comparable.
fn throughput(goal: &GoalResult) -> Option<f64> {
    goal.conditional_throughput.filter(|_| goal.has_rate())
}

/// Returns the delivered share of the intended load, as a rate.
fn delivered_pps(offered: u64, forwarded: u64, intended_pps: f64) -> Option<f64> {
    (offered > 0).then(|| intended_pps * forwarded as f64 / offered as f64)
}

/// Computes the value of a part of a run, from these samples alone, in packets per second.
pub(in crate::report) fn figure_pps(
    samples: &[Sample],
    figure: RunMetric,
    roles: Roles,
    intended_pps: Option<f64>,
) -> Option<f64> {
    let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>();
    match figure {
        RunMetric::Corrected | RunMetric::Delivered => {
            let forwarded = sum(|sample| sample.forwarded);
            let taken = StolenTime::of(samples, roles);
            match intended_pps {
                Some(intended) => delivered_pps(sum(|sample| sample.offered), forwarded, intended),
                None => taken.rate_pps(forwarded, taken.duration_ns),
            }
        }
        RunMetric::Mean => {
            let (forwarded, ns) = (sum(|sample| sample.forwarded), sum(|s| s.duration_ns));
            (ns > 0).then(|| forwarded as f64 * 1e9 / ns as f64)
        }
        RunMetric::P90 => quantile(&samples.iter().map(rate_pps).collect::<Vec<f64>>(), 0.9),
        RunMetric::Slices => {
            let slices = slices_of(samples, roles, intended_pps);
            median(&slices.iter().map(|slice| slice.pps).collect::<Vec<f64>>())
        }
        RunMetric::Instructions | RunMetric::Throughput => None,
        RunMetric::Netbenches => log_rule::netbenches_pps(samples, false),
        RunMetric::NetbenchesUpper => log_rule::netbenches_pps(samples, true),
        RunMetric::Steady => log_rule::steady_pps(samples),
    }
}

fn rate_pps(sample: &Sample) -> f64 {
    sample.forwarded as f64 * 1e9 / sample.duration_ns as f64
}

/// Returns the distinct variants of a run, in order of appearance.
pub(super) fn distinct(variants: &[usize]) -> Vec<usize> {
    let mut seen = Vec::new();
    for &variant in variants {
        if !seen.contains(&variant) {
            seen.push(variant);
        }
    }
    seen
}
