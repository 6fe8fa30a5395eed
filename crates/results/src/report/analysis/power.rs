//! Power analysis: detectable effects of an experiment, from the scatter of earlier runs.
//!
//! The scatter of blocks depends on testbed and device, but hardly on the variants, so runs of
//! another experiment are usable ([`KnownScatter::of`]), unless they are from a simulated device or
//! another testbed. Finding stores and estimating durations are elsewhere.

use super::comparisons::{criteria, mode, of, streams};
use super::figures::run_results;
use crate::stats::alternation::{MIN_STREAMS, stream_effects};
use crate::stats::blocked::common_blocks;
use crate::stats::planning::{self, Scatter, pooled_scatter, upper_sd};
use crate::stats::randomisation::BlockLogs;
use crate::stats::summary::mean;
use crate::store::Contents;
use fwdlab_model::Plan;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::{Environment, RunRecord};
use fwdlab_model::settings::{SimSettings, TestbedKind};
use serde::Serialize;
use std::collections::BTreeSet;

/// Degrees of freedom below which planning uses the scatter's upper limit.
const ENOUGH_DF: f64 = 10.0;
/// Confidence of that limit.
const UPPER: f64 = 0.8;
/// Compared properties of two environments: section, name, and displayed name.
const SURROUNDINGS: [(&str, &str, &str); 2] =
    [("cpu", "model", "CPU"), ("kernel", "release", "kernel")];

/// Scatter estimated from the runs of one store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnownScatter {
    /// Hash of the plan of these runs.
    pub plan_hash: String,
    /// True if it is the current plan.
    pub same_plan: bool,
    /// Blocks (in an alternation, streams) of the comparison that has most.
    pub blocks: usize,
    /// Differences from the current experiment: another plan, another machine.
    pub remarks: Vec<String>,
    /// Mean time of a run in nanoseconds; `None` if its runs had other trials, or were simulated.
    pub run_ns: Option<u64>,
    /// Log ratios of the blocks of each comparison.
    #[serde(skip)]
    log_ratios: Vec<Vec<f64>>,
}

/// Reason why a store can't be used to plan an experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The store has no runs.
    #[error("it holds no runs")]
    NoRuns,
    /// The runs come from another kind of testbed.
    #[error("its runs come from testbed \"{stored}\", which can't represent \"{asked}\"")]
    OtherTestbed {
        /// Testbed of the runs.
        stored: String,
        /// Testbed of the plan.
        asked: String,
    },
    /// Another device was tested.
    #[error("it is of another device under test")]
    OtherDevice,
    /// Only one of the experiments is an alternation, so blocks are streams in one of them.
    #[error("only one of the two alternates levels within streams")]
    OtherUnit,
    /// No comparison has two blocks.
    #[error("no comparison there has {need} {unit}")]
    TooFew {
        /// Blocks or streams.
        unit: &'static str,
        /// Minimum number.
        need: usize,
    },
}

impl KnownScatter {
    /// Extracts the scatter from a store for `plan` on the machine with this `environment`.
    ///
    /// # Errors
    /// If the store is of another testbed or device, or has too few blocks.
    pub fn of(
        contents: &Contents,
        plan: &Plan,
        environment: &Environment,
    ) -> Result<KnownScatter, Unusable> {
        if contents.runs.is_empty() {
            return Err(Unusable::NoRuns);
        }
        let testbed = super::testbed::testbed(contents).kind;
        same_device(contents, plan, testbed)?;
        let alternates = plan.design.alternate_ns.is_some();
        if contents.plan.design.alternate_ns.is_some() != alternates {
            return Err(Unusable::OtherUnit);
        }
        let log_ratios = log_ratios(contents, plan.metric());
        let blocks = log_ratios.iter().map(Vec::len).max().unwrap_or(0);
        let (unit, need) = if alternates { ("streams", MIN_STREAMS) } else { ("blocks", 2) };
        if blocks < need {
            return Err(Unusable::TooFew { unit, need });
        }
        Ok(KnownScatter {
            plan_hash: contents.plan.hash.clone(),
            same_plan: contents.plan.hash == plan.hash,
            blocks,
            remarks: remarks(contents, plan, environment),
            run_ns: run_ns(contents, plan),
            log_ratios,
        })
    }
}

/// Returns the mean time of a run; `None` if the runs had other trials, or were simulated.
fn run_ns(contents: &Contents, plan: &Plan) -> Option<u64> {
    let has_same_trials =
        (&contents.plan.method, &contents.plan.trial) == (&plan.method, &plan.trial);
    // The steps of a run contain the further trials of its method.
    let of = |run: &RunRecord| {
        let steps: u64 = run.overhead_ns.iter().map(|(_, ns)| ns).sum();
        plan.trial.warmup_ns + run.trial.window_ns + steps
    };
    let real = contents.runs.iter().filter(|run| has_same_trials && !run.overhead_ns.is_empty());
    let times: Vec<u64> = real.map(of).collect();
    times.iter().sum::<u64>().checked_div(times.len() as u64)
}

/// Checks that the device is the same. If the testbed is chosen at run time, results of a simulated
/// device are only used for the same plan.
fn same_device(
    contents: &Contents,
    plan: &Plan,
    stored: Option<TestbedKind>,
) -> Result<(), Unusable> {
    let testbed = &plan.base.testbed;
    let same_testbed = match testbed.kind {
        TestbedKind::Auto => {
            use TestbedKind::{Archive, Memory, Sim};
            let alone = matches!(stored, Some(Memory | Sim | Archive));
            !alone || contents.plan.hash == plan.hash
        }
        kind => stored == Some(kind),
    };
    if !same_testbed {
        let stored = stored.map_or("none", TestbedKind::name).to_owned();
        let asked = testbed.kind.name().to_owned();
        return Err(Unusable::OtherTestbed { stored, asked });
    }
    let simulated = |sim: &SimSettings| (sim.noise, sim.drift, sim.phi, sim.jitter);
    let stored_settings = &contents.plan.base;
    let other_law = stored == Some(TestbedKind::Sim)
        && simulated(&stored_settings.testbed.sim) != simulated(&testbed.sim);
    if stored_settings.dut.kind != plan.base.dut.kind || other_law {
        return Err(Unusable::OtherDevice);
    }
    Ok(())
}

/// Returns the log ratio of candidate to baseline for each block. Skips impossible comparisons (a
/// variant that forwarded nothing).
fn log_ratios(contents: &Contents, figure: RunMetric) -> Vec<Vec<f64>> {
    let (runs, _) = run_results(contents, figure);
    let of_block = |block: &BlockLogs| mean(&block.b) - mean(&block.a);
    contents
        .plan
        .pairs()
        .into_iter()
        .filter_map(|(variant, baseline)| match figure {
            RunMetric::Slices => {
                let effects =
                    stream_effects(&streams(contents, baseline, variant), baseline, variant);
                effects.ok().filter(|effects| effects.len() >= MIN_STREAMS)
            }
            _ => {
                let blocks = common_blocks(&of(&runs, baseline), &of(&runs, variant)).ok()?;
                Some(blocks.iter().map(of_block).collect())
            }
        })
        .collect()
}

fn remarks(contents: &Contents, plan: &Plan, environment: &Environment) -> Vec<String> {
    let stored = &contents.plan;
    let mut remarks = Vec::new();
    if stored.hash != plan.hash {
        remarks.push(format!("another plan of the same device (\"{}\")", stored.title));
    }
    if stored.trial.duration_ns != plan.trial.duration_ns {
        remarks.push("its windows are of another length".to_owned());
    }
    if stored.base.testbed.arrangement != plan.base.testbed.arrangement {
        remarks.push("its CPUs were arranged otherwise".to_owned());
    }
    let used = contents.invocations.iter().filter(|i| contents.run_invocations.contains(&i.id));
    let environments: Vec<&Environment> = used.map(|i| &i.invocation.environment).collect();
    for (section, name, label) in SURROUNDINGS {
        let value = |of: &Environment| of.0.get(section)?.get(name).cloned();
        let Some(current) = value(environment) else { continue };
        let others: BTreeSet<String> =
            environments.iter().filter_map(|there| value(there)).collect();
        for other in others.iter().filter(|other| **other != current) {
            remarks.push(format!("measured with another {label}: {other}, here {current}"));
        }
    }
    remarks
}

/// Power of an experiment, given the scatter of earlier experiments.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PowerAnalysis {
    /// Estimated scatter of a block's log ratio.
    pub scatter: Scatter,
    /// Standard deviation used for all results below.
    pub sd: f64,
    /// True if that is the scatter's upper 80 % limit.
    pub is_upper: bool,
    /// Power of the planned blocks; `None` for fewer than two.
    pub design: Option<planning::PowerAnalysis>,
    /// Number of blocks (the maximum, if the experiment may stop early) that detect a change of the
    /// margin's size with a probability of 90 %; `None` if `most_blocks` are not enough.
    pub blocks_for_margin: Option<u32>,
    /// Numbers of blocks that show equivalence of two equal variants with a probability of 80 % and
    /// 90 %.
    pub blocks_for_equivalence: [Option<u32>; 2],
    /// Maximum number of blocks considered.
    pub most_blocks: u32,
}

impl PowerAnalysis {
    /// Predicts the power of `plan` if blocks scatter as in `known`. Uses the upper limit of the
    /// scatter of a pilot or of a short history. `None` if there are no comparisons, no data or no
    /// scatter.
    pub fn of(plan: &Plan, known: &[&KnownScatter], is_pilot: bool) -> Option<PowerAnalysis> {
        let comparisons: Vec<Vec<f64>> =
            known.iter().flat_map(|known| known.log_ratios.iter().cloned()).collect();
        let scatter = pooled_scatter(&comparisons).filter(|scatter| scatter.sd > 0.0)?;
        let is_upper = is_pilot || scatter.df < ENOUGH_DF;
        let sd = if is_upper { upper_sd(scatter.sd, scatter.df, UPPER)? } else { scatter.sd };
        let design = design(plan)?;
        let equivalence = |power| design.blocks_for_equivalence(sd, power);
        Some(PowerAnalysis {
            scatter,
            sd,
            is_upper,
            design: design.outlook(sd),
            blocks_for_margin: design.blocks_for_change(sd, plan.compare.margin, 0.9),
            blocks_for_equivalence: [equivalence(0.8), equivalence(0.9)],
            most_blocks: design.most_blocks(),
        })
    }
}

/// Returns the design of a plan for [`planning`]; `None` without comparisons, and for revisions
/// compared by builds, for which the number of blocks is irrelevant.
pub fn design(plan: &Plan) -> Option<planning::Design> {
    (!plan.pairs().is_empty() && !plan.has_builds()).then(|| planning::Design {
        blocks: plan.design.blocks,
        stopping: plan.design.stop.map(mode),
        criteria: criteria(plan),
    })
}

#[cfg(test)]
mod tests;
