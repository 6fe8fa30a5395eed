//! The plan: every run of an experiment in its order.
//!
//! [`load`] makes one from a file's text; this file holds what a plan is.

mod build;
mod describe;
mod order;

pub use build::{INET6_FRAME_BARE, INET6_FRAME_MIN, load, plan};
pub use describe::{Difference, Estimate};

use crate::profile::ProfilePlan;
use crate::settings::Settings;
use fwdlab_packet::named;
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
    /// Remarks of the planner, e.g. a frame size that had to be raised.
    pub notes: Vec<String>,
    /// SHA-256 of all of the above as JSON without the laboratory's file, first 16
    /// hexadecimal digits.
    pub hash: String,
    /// How each variant is profiled after the runs, if at all. Not stored and no
    /// part of the hash: a profile touches no number, so that one asked for later
    /// finds the same store.
    #[serde(default, skip)]
    pub profile: Option<ProfilePlan>,
}

/// Something varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Name, e.g. `queues`.
    pub name: String,
    /// Its levels in the order of the file.
    pub levels: Vec<Level>,
}

impl Factor {
    /// True when every level is a number, so that a line may be drawn over it.
    pub fn is_numeric(&self) -> bool {
        self.levels.iter().all(|level| level.number.is_some())
    }
}

/// One value of a factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Label in reports.
    pub label: String,
    /// The value when it is a plain number.
    pub number: Option<f64>,
    /// The settings that this level changes, `name = value` as a reader wrote it.
    pub changes: Vec<Change>,
}

/// One setting that a level lays over the base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Setting, e.g. `queues` or `sysctl net.ipv4.ip_early_demux`.
    pub setting: String,
    /// Its value as text.
    pub value: String,
    /// True when it can be switched while traffic flows.
    pub live: bool,
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

/// Phases of a trial, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Traffic before the window.
    pub warmup_ns: u64,
    /// The measured window.
    pub duration_ns: u64,
    /// Longest wait for packets in flight after the sender stopped.
    pub drain_ns: u64,
    /// Interval of the reported samples.
    pub interval_ns: u64,
    /// Interval of the raw samples; `interval_ns` is a multiple of it.
    pub slice_ns: u64,
}

/// Design of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// Number of blocks (streams in an alternation); with `stop` the most of them.
    pub blocks: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// Length of a slice in an alternation; none for separate runs.
    pub alternate_ns: Option<u64>,
    /// Part of a slice that is not counted after each switch.
    pub settle_ns: u64,
    /// The rule by which the experiment may end before all blocks are done.
    /// None, as in every plan without such a rule, adds nothing to the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// True when each variant's runs followed one another, variant by variant,
    /// as in imported experiments: there are no blocks to compare within. False,
    /// as in every plan of this program's own, adds nothing to the hash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
}

named! {
    /// A rule that ends an experiment early and keeps the rate of its errors,
    /// however often it looks. Both also end when every comparison is decided:
    /// different, or equivalent within the margin.
    pub enum Stop {
        /// Up to [`Stop::LOOKS`] looks, whose errors are spent as O'Brien and Fleming
        /// (1979) do: hardly any at the first ones, so that the last look, over all
        /// blocks, is nearly as sharp as a fixed number of blocks.
        Planned = "planned",
        /// A look after every block, by an e-process: valid at whatever moment one
        /// stops (Ramdas et al. 2023, "Game-theoretic statistics and safe anytime-valid
        /// inference"), at the price of wider intervals.
        Open = "open",
    }
}

impl Stop {
    /// Most looks of [`Stop::Planned`].
    pub const LOOKS: u32 = 5;
    /// Fewest blocks that a rule can be given: with fewer there is nothing to save.
    pub const BLOCKS_MIN: u32 = 4;

    /// Most blocks when the file does not say.
    pub fn default_blocks(self) -> u32 {
        match self {
            Stop::Planned => 20,
            Stop::Open => 100,
        }
    }
}

named! {
    /// What one figure stands for a run.
    pub enum Figure {
        /// `p90` on testbeds that share their CPUs (netns), `mean` elsewhere.
        Auto = "auto",
        /// Forwarded packets of the window over its length.
        Mean = "mean",
        /// Ninetieth percentile of the raw samples' rates: robust against stolen CPU time.
        P90 = "p90",
        /// The rule of the netbenches archive: median of the log's lines that it
        /// keeps. Imported runs only.
        Netbenches = "netbenches",
        /// The same with the upper of the two middle values as the median of an even
        /// number, as ministat had it before 2016. Imported runs only.
        NetbenchesUpper = "netbenches-upper",
        /// Mean rate of the steady state. Imported runs only: their logs begin before
        /// the traffic and end after it.
        Steady = "steady",
    }
}

named! {
    /// How one figure is made of an imported log.
    pub enum Rule {
        /// Median of the lines that the archive's scripts keep.
        Netbenches = "netbenches",
        /// Mean rate of the steady state.
        Steady = "steady",
    }
}

impl Rule {
    /// The figure of a plan by this rule; `upper` when the published lists were
    /// made with the upper of two middle values.
    pub fn figure(self, upper: bool) -> Figure {
        match self {
            Rule::Steady => Figure::Steady,
            Rule::Netbenches if upper => Figure::NetbenchesUpper,
            Rule::Netbenches => Figure::Netbenches,
        }
    }
}

named! {
    /// How the probabilities of several comparisons are adjusted for their number.
    pub enum Adjust default Holm {
        /// Keeps the chance of any false difference: for decisions. Holm (1979): one false
        /// difference in the whole family is as rare as the confidence says.
        Holm = "holm",
        /// Keeps the share of false ones among the differences: for dashboards. Benjamini
        /// and Hochberg (1995): finds more, promises less.
        BenjaminiHochberg = "benjamini-hochberg",
    }
}

impl Adjust {
    fn is_default(&self) -> bool {
        *self == Adjust::default()
    }
}

/// `[compare]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compare {
    /// Level index per factor of the baseline; `None`: this factor is not
    /// compared across, each of its levels has a baseline of its own.
    pub baseline: Vec<Option<usize>>,
    /// Confidence in percent (80, 90, 95, 98, 99, 99.5).
    pub confidence: f64,
    /// Margin of equivalence as a ratio (0.02 = 2 %).
    pub margin: f64,
    /// The figure that is compared.
    pub figure: Figure,
    /// Adjustment for the number of comparisons. The default adds nothing to the hash.
    #[serde(default, skip_serializing_if = "Adjust::is_default")]
    pub adjust: Adjust,
}

impl Plan {
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
