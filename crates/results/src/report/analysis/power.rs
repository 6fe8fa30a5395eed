//! Power analysis: what an experiment can detect, from the scatter of earlier runs.
//!
//! The scatter of blocks depends on testbed and device, hardly on the variants: the
//! runs of another experiment can be used ([`Known::of`]), those of a simulated
//! device or another testbed can't. Not done here: finding stores, estimating
//! durations.

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
use fwdlab_model::record::Environment;
use fwdlab_model::settings::{SimSettings, TestbedKind};
use serde::Serialize;
use std::collections::BTreeSet;

/// With fewer degrees of freedom the scatter's upper limit is planned from.
const ENOUGH_DF: f64 = 10.0;
/// Confidence of that limit.
const UPPER: f64 = 0.8;
/// What a reader compares of two surroundings: section, name, what it is called.
const SURROUNDINGS: [(&str, &str, &str); 2] =
    [("cpu", "model", "CPU"), ("kernel", "release", "kernel")];

/// Scatter estimated from the runs of one store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Known {
    /// Hash of the plan that they were measured for.
    pub plan_hash: String,
    /// True if it is the current plan.
    pub same_plan: bool,
    /// Blocks (streams in an alternation) of the comparison that has most.
    pub blocks: usize,
    /// What is different there: another plan, another machine.
    pub remarks: Vec<String>,
    /// Log ratios of the blocks of each comparison.
    #[serde(skip)]
    log_ratios: Vec<Vec<f64>>,
}

/// Why a store can't be used to plan an experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nothing was measured.
    #[error("it holds no runs")]
    NoRuns,
    /// The runs come from another kind of testbed.
    #[error("its runs come from testbed \"{stored}\", which never stands for \"{asked}\"")]
    OtherTestbed {
        /// Testbed of the runs.
        stored: String,
        /// Testbed that the plan asks for.
        asked: String,
    },
    /// Another device was tested.
    #[error("it is of another device under test")]
    OtherDevice,
    /// Blocks there are streams here, or the other way round.
    #[error("only one of the two alternates levels within streams")]
    OtherUnit,
    /// No comparison has two blocks.
    #[error("no comparison there has {need} {unit}")]
    TooFew {
        /// Blocks or streams.
        unit: &'static str,
        /// How many it takes.
        need: usize,
    },
}

impl Known {
    /// What a store tells about `plan` on the machine with the surroundings `here`.
    ///
    /// # Errors
    /// When it is about another testbed or device, or has too few blocks.
    pub fn of(contents: &Contents, plan: &Plan, here: &Environment) -> Result<Known, Unusable> {
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
        Ok(Known {
            plan_hash: contents.plan.hash.clone(),
            same_plan: contents.plan.hash == plan.hash,
            blocks,
            remarks: remarks(contents, plan, here),
            log_ratios,
        })
    }
}

/// Where the testbed is chosen on the spot, only the plan's own runs can come
/// from a simulated device: it stands for no other.
fn same_device(
    contents: &Contents,
    plan: &Plan,
    stored: Option<TestbedKind>,
) -> Result<(), Unusable> {
    let asked = &plan.base.testbed;
    let same_testbed = match asked.kind {
        TestbedKind::Auto => {
            use TestbedKind::{Archive, Memory, Sim};
            let alone = matches!(stored, Some(Memory | Sim | Archive));
            !alone || contents.plan.hash == plan.hash
        }
        kind => stored == Some(kind),
    };
    if !same_testbed {
        let stored = stored.map_or("none", TestbedKind::name).to_owned();
        let asked = asked.kind.name().to_owned();
        return Err(Unusable::OtherTestbed { stored, asked });
    }
    let simulated = |sim: &SimSettings| (sim.noise, sim.drift, sim.phi, sim.jitter);
    let there = &contents.plan.base;
    let other_law =
        stored == Some(TestbedKind::Sim) && simulated(&there.testbed.sim) != simulated(&asked.sim);
    if there.dut.kind != plan.base.dut.kind || other_law {
        return Err(Unusable::OtherDevice);
    }
    Ok(())
}

/// Candidate over baseline, block by block. Comparisons that can't be made (a
/// variant that forwarded nothing) tell nothing.
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

fn remarks(contents: &Contents, plan: &Plan, here: &Environment) -> Vec<String> {
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
    for (section, name, called) in SURROUNDINGS {
        let value = |of: &Environment| of.0.get(section)?.get(name).cloned();
        let Some(ours) = value(here) else { continue };
        let theirs: BTreeSet<String> =
            environments.iter().filter_map(|there| value(there)).collect();
        for theirs in theirs.iter().filter(|theirs| **theirs != ours) {
            remarks.push(format!("measured with another {called}: {theirs}, here {ours}"));
        }
    }
    remarks
}

/// Power of an experiment, given the scatter of earlier ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PowerAnalysis {
    /// Scatter of a block's log ratio, as it was estimated.
    pub scatter: Scatter,
    /// Standard deviation that all below is calculated with.
    pub sd: f64,
    /// True when that is the scatter's upper 80 % limit.
    pub is_upper: bool,
    /// What the planned blocks find; none for fewer than two.
    pub design: Option<planning::PowerAnalysis>,
    /// Blocks (at most, where it may end early) that find a change of the margin
    /// with a chance of 90 %; none when `most_blocks` don't.
    pub blocks_for_margin: Option<u32>,
    /// Blocks that show two equal variants equivalent with a chance of 80 %, and
    /// with one of 90 %.
    pub blocks_for_equivalence: [Option<u32>; 2],
    /// The most blocks that were considered.
    pub most_blocks: u32,
}

impl PowerAnalysis {
    /// What `plan` will find if blocks scatter as they did in `known`. A pilot,
    /// like any history that is short, is believed only up to its upper limit.
    /// None when nothing is compared, known, or scatters.
    pub fn of(plan: &Plan, known: &[&Known], is_pilot: bool) -> Option<PowerAnalysis> {
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

/// The design of a plan for [`planning`]; none when nothing is compared, or revisions by their
/// builds, where blocks decide nothing.
pub fn design(plan: &Plan) -> Option<planning::Design> {
    (!plan.pairs().is_empty() && !plan.has_builds()).then(|| planning::Design {
        blocks: plan.design.blocks,
        stopping: plan.design.stop.map(mode),
        criteria: criteria(plan),
    })
}

#[cfg(test)]
mod tests;
