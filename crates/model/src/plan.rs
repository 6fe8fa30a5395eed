//! The plan: all runs of an experiment in order.
//!
//! [`load`] creates one from a file's text; this file contains the plan itself.

mod build;
mod describe;
mod estimate;
mod order;

pub use crate::design::{
    Adjust, Change, Compare, Design, Factor, Level, Method, Rule, RunMetric, Stop, Trial,
};
pub use build::{INET6_FRAME_BARE, INET6_FRAME_MIN, load, plan};
pub use describe::Difference;
pub use estimate::Estimate;

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
    /// Baselines and criteria of the comparisons.
    pub compare: Compare,
    /// Settings of the base, before any level.
    pub base: Settings,
    /// Remarks, e.g. about a frame size that had to be raised.
    pub notes: Vec<String>,
    /// SHA-256 of all of the above as JSON without the laboratory's file, first 16
    /// hexadecimal digits.
    pub hash: String,
    /// Measurements in each run in addition to its own trial, if any. `None` adds nothing to the
    /// hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// Profiling of each variant after the runs, if any. Neither stored nor part of the hash: a
    /// profile changes no number, so an experiment with a later request for profiles finds the same
    /// store.
    #[serde(default, skip)]
    pub profile: Option<ProfilePlan>,
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Position in [`Plan::variants`].
    pub index: usize,
    /// Label: level labels joined by ", "; `all` without factors.
    pub label: String,
    /// The index of the level for each factor.
    pub levels: Vec<usize>,
    /// The complete settings.
    pub settings: Settings,
}

/// A planned run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Position in the order of execution, from 0. Identifies the run in the store.
    pub index: u32,
    /// Block (round), from 0. In an alternation: the stream.
    pub block: u32,
    /// Index of the variant; in an alternation the variants in the order of their slices, one cycle
    /// (A B B A).
    pub variants: Vec<usize>,
}

impl Plan {
    /// Returns the metric that summarises a run of this plan.
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

    /// Returns the goals of a search; empty if there are none.
    pub fn goals(&self) -> &[Goal] {
        self.method.as_ref().map_or(&[], Method::goals)
    }

    /// Returns the index of the baseline variant that `variant` is compared with. `None` for a
    /// baseline itself, and for all but the first build of its revision: the first one represents
    /// all of them.
    pub fn baseline_of(&self, variant: usize) -> Option<usize> {
        let selected = &self.variants[variant].levels;
        let first = |factor: &Factor, level: usize| factor.builds(level)[0];
        if self.factors.iter().zip(selected).any(|(factor, &level)| first(factor, level) != level) {
            return None;
        }
        let base = self.factors.iter().zip(selected).zip(&self.compare.baseline);
        let levels: Vec<usize> = base
            .map(|((factor, &level), base)| base.map_or(level, |base| first(factor, base)))
            .collect();
        if levels == *selected {
            return None;
        }
        self.variants.iter().position(|v| v.levels == levels)
    }

    /// Returns every variant with a baseline, with that baseline.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let variants = 0..self.variants.len();
        variants.filter_map(|variant| Some((variant, self.baseline_of(variant)?))).collect()
    }

    /// Returns the variants that are builds of the same revision as `variant`, including itself;
    /// only itself if it is not a build.
    pub fn builds_of(&self, variant: usize) -> Vec<usize> {
        let selected = &self.variants[variant].levels;
        let is_sibling = |other: &&Variant| {
            let levels = other.levels.iter().zip(selected).zip(&self.factors);
            levels.into_iter().all(|((level, own), factor)| factor.builds(*own).contains(level))
        };
        self.variants.iter().filter(is_sibling).map(|variant| variant.index).collect()
    }

    /// Returns a variant's name when its builds are compared as one revision: its label, with the
    /// revision in place of the build.
    pub fn revision_label(&self, variant: usize) -> String {
        let variant = &self.variants[variant];
        let levels = self.factors.iter().zip(&variant.levels);
        let names = levels.map(|(factor, &level)| {
            let level = &factor.levels[level];
            level.build_of.as_ref().unwrap_or(&level.label).as_str()
        });
        let names: Vec<&str> = names.collect();
        if names.is_empty() { variant.label.clone() } else { names.join(", ") }
    }

    /// True if some revision is represented by builds.
    pub fn has_builds(&self) -> bool {
        let levels = self.factors.iter().flat_map(|factor| &factor.levels);
        levels.into_iter().any(|level| level.build_of.is_some())
    }
}
