//! The plan: every run of an experiment in its order.
//!
//! [`load`] makes one from a file's text; this file holds what a plan is.

mod build;
mod describe;
mod order;

pub use crate::design::{
    Adjust, Change, Compare, Design, Factor, Level, Method, Rule, RunMetric, Stop, Trial,
};
pub use build::{INET6_FRAME_BARE, INET6_FRAME_MIN, load, plan};
pub use describe::{Difference, Estimate};

use crate::profile::ProfilePlan;
use crate::settings::{Settings, TestbedKind};
use fwdlab_search::Goal;
use serde::{Deserialize, Serialize};

/// All runs of an experiment, in order. A function of (file, seed).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Short name: the experiment file's stem, used for folders.
    pub name: String,
    /// Title of the report.
    pub title: String,
    /// Version of the experiment file's format.
    pub version: u32,
    /// The factors in the order of the file.
    pub factors: Vec<Factor>,
    /// Every combination of levels.
    pub variants: Vec<Variant>,
    /// The runs in the order of execution.
    pub runs: Vec<PlannedRun>,
    /// Phases of a trial.
    pub trial: Trial,
    /// Design of the experiment.
    pub design: Design,
    /// What is compared with what.
    pub compare: Compare,
    /// Settings of the base, before any level.
    pub base: Settings,
    /// Remarks, e.g. a frame size that had to be raised.
    pub notes: Vec<String>,
    /// SHA-256 of all of the above as JSON without the laboratory's file, first 16
    /// hexadecimal digits.
    pub hash: String,
    /// What is done in each run beside its own trial, if anything. None adds nothing to the
    /// hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// How each variant is profiled after the runs, if at all. Not stored and no
    /// part of the hash: a profile touches no number, so that one asked for later
    /// finds the same store.
    #[serde(default, skip)]
    pub profile: Option<ProfilePlan>,
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Position in [`Plan::variants`].
    pub index: usize,
    /// Label: level labels joined by ", "; `all` when there is no factor.
    pub label: String,
    /// For each factor the index of the level.
    pub levels: Vec<usize>,
    /// The complete settings.
    pub settings: Settings,
}

/// One run to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Position in the order of execution, from 0. Identifies the run in the store.
    pub index: u32,
    /// Block (round), from 0. In an alternation: the stream.
    pub block: u32,
    /// Index of the variant; in an alternation the variants in the order of
    /// their slices, one cycle (A B B A).
    pub variants: Vec<usize>,
}

impl Plan {
    /// The metric that stands for a run of this plan.
    pub fn metric(&self) -> RunMetric {
        let is_paced = self.variants.iter().all(|variant| variant.settings.is_paced());
        let is_counted =
            self.base.testbed.kind == TestbedKind::Vm && !self.base.testbed.vm.is_timed;
        match self.compare.figure {
            // Lockstep has no rate.
            None if is_counted => RunMetric::Instructions,
            None if !self.goals().is_empty() => RunMetric::Throughput,
            _ if self.design.alternate_ns.is_some() => RunMetric::Slices,
            // The best tenth of a paced run is the sender's own best.
            None | Some(RunMetric::P90) if is_paced => RunMetric::Delivered,
            None => RunMetric::Corrected,
            Some(metric) => metric,
        }
    }

    /// The goals of a search; empty when there is none.
    pub fn goals(&self) -> &[Goal] {
        self.method.as_ref().map_or(&[], Method::goals)
    }

    /// Index of the baseline variant that `variant` is compared with, or
    /// `None` when it is a baseline itself.
    pub fn baseline_of(&self, variant: usize) -> Option<usize> {
        let levels: Vec<usize> = self.variants[variant]
            .levels
            .iter()
            .zip(&self.compare.baseline)
            .map(|(&level, base)| base.unwrap_or(level))
            .collect();
        if levels == self.variants[variant].levels {
            return None;
        }
        self.variants.iter().position(|v| v.levels == levels)
    }
}
