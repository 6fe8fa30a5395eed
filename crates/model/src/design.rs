//! The design of an experiment: factors, durations, repetitions and comparisons, with the names
//! used in files, plans and reports.

mod expected;
pub mod method;
mod metric;

pub use expected::{Expected, Surroundings};
pub use method::{Method, MethodKind, SearchMethod, SuiteTest};
pub use metric::{Rule, RunMetric};

use fwdlab_packet::named;
use serde::{Deserialize, Serialize};

/// A factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Name, e.g. `queues`.
    pub name: String,
    /// Its levels in the order of the file.
    pub levels: Vec<Level>,
}

impl Factor {
    /// True if every level is a number, so a line may be drawn.
    pub fn is_numeric(&self) -> bool {
        self.levels.iter().all(|level| level.number.is_some())
    }

    /// Returns the levels that are builds of the same revision as `level`, in their order; only
    /// `level` if it is not a build.
    pub fn builds(&self, level: usize) -> Vec<usize> {
        let revision = self.levels[level].build_of.as_ref();
        let is_sibling = |other: &usize| match revision {
            Some(revision) => self.levels[*other].build_of.as_ref() == Some(revision),
            None => *other == level,
        };
        (0..self.levels.len()).filter(is_sibling).collect()
    }
}

/// One value of a factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Label in reports.
    pub label: String,
    /// The value if it is a plain number.
    pub number: Option<f64>,
    /// The settings that this level changes, as `name = value` in their parsed form.
    pub changes: Vec<Change>,
    /// The revision that this level is a build of, if several builds represent one revision.
    /// `None`, as in every plan without builds, adds nothing to the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_of: Option<String>,
}

/// A setting that a level changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Setting, e.g. `queues` or `sysctl net.ipv4.ip_early_demux`.
    pub setting: String,
    /// Its value as text.
    pub value: String,
    /// True if it can be switched while traffic flows.
    pub live: bool,
}

/// Phases of a trial, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Traffic before the window.
    pub warmup_ns: u64,
    /// The measured window.
    pub duration_ns: u64,
    /// Maximum wait for packets in flight after the sender stopped.
    pub drain_ns: u64,
    /// Interval of the reported samples.
    pub interval_ns: u64,
    /// Interval of the raw samples; `interval_ns` is a multiple of it.
    pub slice_ns: u64,
}

/// Design of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// Number of blocks (streams in an alternation); with `stop` the maximum.
    pub blocks: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// Length of a slice in an alternation; `None` for separate runs.
    pub alternate_ns: Option<u64>,
    /// Part of a slice that is not counted after each switch.
    pub settle_ns: u64,
    /// Rule that may end the experiment before all blocks are done. `None`, as in every plan
    /// without such a rule, adds nothing to the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// True if the runs were made variant by variant, as in imported experiments: there are no
    /// blocks to compare within. False, as in every plan of this program, adds nothing to the hash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
}

named! {
    /// A rule that ends an experiment early and controls its error rate for any number of looks.
    /// Both rules also end when every comparison is decided: different, or equivalent within the
    /// margin.
    pub enum Stop {
        /// Up to [`Stop::LOOKS`] looks, whose errors are spent as by O'Brien and Fleming (1979):
        /// hardly any at the first ones, so that the last look, over all blocks, is nearly as
        /// powerful as a fixed number of blocks.
        Planned = "planned",
        /// A look after every block, by an e-process: valid at any stopping time (Ramdas et al.
        /// 2023, "Game-theoretic statistics and safe anytime-valid inference"), at the cost of
        /// wider intervals.
        Open = "open",
    }
}

impl Stop {
    /// Maximum number of looks of [`Stop::Planned`].
    pub const LOOKS: u32 = 5;
    /// Minimum number of blocks for a rule: with fewer there is nothing to save.
    pub const BLOCKS_MIN: u32 = 4;

    /// Returns the default maximum number of blocks.
    pub fn default_blocks(self) -> u32 {
        match self {
            Stop::Planned => 20,
            Stop::Open => 100,
        }
    }
}

named! {
    /// Adjustment of the p-values of several comparisons for their number.
    pub enum Adjust default Holm {
        /// Controls the chance of any false difference: for decisions. Holm (1979): one false
        /// difference in the whole family is as rare as the confidence states.
        Holm = "holm",
        /// Controls the share of false ones among the differences: for dashboards. Benjamini and
        /// Hochberg (1995): more powerful, with a weaker guarantee.
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
    /// Level index per factor of the baseline. `None` for a factor that is not compared across:
    /// each of its levels has its own baseline.
    pub baseline: Vec<Option<usize>>,
    /// Confidence in percent (80, 90, 95, 98, 99, 99.5).
    pub confidence: f64,
    /// Margin of equivalence as a ratio (0.02 = 2 %).
    pub margin: f64,
    /// The metric that is compared; `None` for the one that fits the traffic.
    #[serde(with = "metric::or_auto")]
    pub figure: Option<RunMetric>,
    /// Adjustment for the number of comparisons. The default adds nothing to the hash.
    #[serde(default, skip_serializing_if = "Adjust::is_default")]
    pub adjust: Adjust,
}
