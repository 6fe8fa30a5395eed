//! Stopping rules that may look at the result and still control their error.
//!
//! Peeking at a t test after every block from the fifth on reports a false difference in a fifth to
//! a quarter of experiments. Two rules avoid this:
//!
//! - [`planned`]: five looks, decided in advance; nearly as powerful as a test without looks.
//! - [`open`]: a look after every block, with no fixed end; its intervals are initially about twice
//!   as wide.
//!
//! [`Rule`] applies either to one comparison's block log ratios (candidate over baseline).
//! Comparisons made together share the level evenly (Bonferroni), because rules that stop at
//! different times have no common table of p-values for Holm to adjust.
//!
//! Out of scope: giving up because a difference has become unlikely. Experiments without effect end
//! by equivalence.

mod compare;
pub mod open;
pub mod planned;
mod rule;
mod sparse_looks;
mod student;

pub use compare::{compare_sequentially, next_look_after};
pub use rule::{Rule, SequentialState};

use super::summary::{Interval, mean, variance};
use serde::Serialize;

/// Stopping rule of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A few planned looks ([`planned`]).
    Planned,
    /// A look after every block ([`open`]).
    Open,
}

/// Decision about one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Undecided; continue measuring.
    Continue,
    /// The ratio isn't 1.
    Difference,
    /// No difference was found, and any existing one is within the margin.
    Equivalent,
    /// All blocks were measured, and neither was shown.
    Exhausted,
}

/// State of one comparison at its last look, on the scale of natural logarithms of ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sequential {
    /// Mean log ratio of the blocks at the last look; before the first look the mean of all blocks
    /// so far, 0 without any.
    pub effect: f64,
    /// Lower end of the intersection of the intervals of all looks, at the required confidence and
    /// valid at any stopping time; infinite before the first look. In rare cases the effect is
    /// outside.
    pub low: f64,
    /// Upper end of the intersection.
    pub high: f64,
    /// Lower end of the same intersection for two one-sided tests of equivalence (90 % for a
    /// confidence of 95 %).
    pub equivalence_low: f64,
    /// Upper end of that intersection.
    pub equivalence_high: f64,
    /// Two-sided p-value of "the ratio is 1", valid at any stopping time; for this comparison
    /// alone, to be compared with the level divided by the family size.
    pub p: f64,
    /// Blocks at the last look.
    pub blocks: u32,
    /// Looks so far; in the open mode one per block from the second on.
    pub looks_done: u32,
    /// Number of planned looks; `None` in the open mode.
    pub looks_planned: Option<u32>,
    /// The decision.
    pub decision: Decision,
}

/// Mean of log ratios and its standard error.
#[derive(Clone, Copy, Debug)]
struct MeanEstimate {
    effect: f64,
    se: f64,
}

impl MeanEstimate {
    fn of(log_ratios: &[f64]) -> MeanEstimate {
        if log_ratios.is_empty() {
            return MeanEstimate { effect: 0.0, se: f64::INFINITY };
        }
        let effect = mean(log_ratios);
        MeanEstimate { effect, se: (variance(log_ratios, effect) / log_ratios.len() as f64).sqrt() }
    }

    fn t(&self) -> f64 {
        t_of(self.effect, self.se)
    }
}

/// Intervals and decision, look by look.
#[derive(Clone, Debug)]
struct SequentialStatus {
    difference: Interval,
    equivalence: Interval,
    decision: Decision,
}

impl Default for SequentialStatus {
    fn default() -> SequentialStatus {
        let unknown = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
        SequentialStatus { difference: unknown, equivalence: unknown, decision: Decision::Continue }
    }
}

impl SequentialStatus {
    /// Adds a look.
    fn narrow(&mut self, difference: Interval, equivalence: Interval, margin: f64) {
        self.difference = common_part(self.difference, difference);
        self.equivalence = common_part(self.equivalence, equivalence);
        let Interval { low, high } = self.equivalence;
        if self.difference.low > 0.0 || self.difference.high < 0.0 {
            self.decision = Decision::Difference;
        } else if self.decision == Decision::Continue && low > -margin && high < margin {
            self.decision = Decision::Equivalent;
        }
    }

    fn judged(
        self,
        effect: f64,
        p: f64,
        blocks: u32,
        looks_done: u32,
        looks_planned: Option<u32>,
        is_last: bool,
    ) -> Sequential {
        let exhausted = is_last && self.decision == Decision::Continue;
        Sequential {
            effect,
            low: self.difference.low,
            high: self.difference.high,
            equivalence_low: self.equivalence.low,
            equivalence_high: self.equivalence.high,
            p,
            blocks,
            looks_done,
            looks_planned,
            decision: if exhausted { Decision::Exhausted } else { self.decision },
        }
    }
}

/// Returns the intersection of two intervals that hold jointly. If it is empty, one of them is
/// wrong, as a few may be: then the later one.
fn common_part(earlier: Interval, later: Interval) -> Interval {
    let both = Interval { low: earlier.low.max(later.low), high: earlier.high.min(later.high) };
    if both.low <= both.high { both } else { later }
}

/// Returns the t statistic; values without scatter differ from 0 certainly or not at all.
fn t_of(effect: f64, se: f64) -> f64 {
    if se == 0.0 {
        return if effect == 0.0 { 0.0 } else { f64::INFINITY.copysign(effect) };
    }
    effect / se
}
