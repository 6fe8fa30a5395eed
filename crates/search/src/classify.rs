//! Load classification (RFC 9971, "Load Classification Logic"): the class of a load for a goal,
//! from the trials at that load.
//!
//! Durations are whole nanoseconds, so sums are exact; products with the goal's ratios are compared
//! to half a nanosecond.

use crate::goal::Goal;
use crate::trial::Measured;

/// Tolerance of thresholds in nanoseconds: less than any difference of durations, more than the
/// rounding of a product.
const TOLERANCE_NS: f64 = 0.5;

/// Effective durations of the trials at one load, by their kind for one goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Full-length low-loss trials.
    pub full_low_ns: u64,
    /// Full-length high-loss trials.
    pub full_high_ns: u64,
    /// Short low-loss trials.
    pub short_low_ns: u64,
    /// Short high-loss trials.
    pub short_high_ns: u64,
}

/// Class of a load for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Certain to meet the goal.
    Lower,
    /// Certain to fail the goal.
    Upper,
    /// Further trials decide.
    Undecided,
}

impl Sums {
    /// Returns the sums of some trials.
    pub fn of<'a>(goal: &Goal, trials: impl IntoIterator<Item = &'a Measured>) -> Sums {
        let mut sums = Sums::default();
        trials.into_iter().for_each(|trial| sums.add(goal, trial));
        sums
    }

    /// Adds a trial.
    pub fn add(&mut self, goal: &Goal, measured: &Measured) {
        let is_full = measured.trial.duration_ns >= goal.final_ns;
        let sum = match (is_full, measured.output.loss_ratio > goal.loss_ratio) {
            (true, false) => &mut self.full_low_ns,
            (true, true) => &mut self.full_high_ns,
            (false, false) => &mut self.short_low_ns,
            (false, true) => &mut self.short_high_ns,
        };
        *sum += measured.output.effective_ns;
    }

    /// Returns the class of the load.
    pub fn class(&self, goal: &Goal) -> Class {
        let exceed = goal.exceed_ratio;
        let balancing = self.short_low_ns as f64 * exceed / (1.0 - exceed);
        let excess = (self.short_high_ns as f64 - balancing).max(0.0);
        let high = self.full_high_ns as f64 + excess;
        let low = self.full_low_ns as f64;
        let whole = (low + high).max(goal.sum_ns as f64);
        let allowed = whole * exceed + TOLERANCE_NS;
        // The missing duration counted as low-loss, and as high-loss.
        match (high <= allowed, whole - low <= allowed) {
            (true, true) => Class::Lower,
            (false, _) => Class::Upper,
            (true, false) => Class::Undecided,
        }
    }
}

/// Returns the conditional throughput (RFC 9971, "Conditional Throughput Code") at `load`: the
/// forwarding rate that all but the goal's exceed ratio of the full-length traffic reached. Traffic
/// still missing from the duration sum counts as lost. `None` without a full-length trial.
pub fn conditional_throughput<'a>(
    goal: &Goal,
    load: u64,
    trials: impl IntoIterator<Item = &'a Measured>,
) -> Option<f64> {
    let mut full: Vec<&Measured> =
        trials.into_iter().filter(|measured| measured.trial.duration_ns >= goal.final_ns).collect();
    full.sort_by(|a, b| a.output.loss_ratio.total_cmp(&b.output.loss_ratio));
    let sum: u64 = full.iter().map(|measured| measured.output.effective_ns).sum();
    let mut remaining = sum.max(goal.sum_ns) as f64 * (1.0 - goal.exceed_ratio) - TOLERANCE_NS;
    let mut loss = full.first()?.output.loss_ratio;
    for measured in full {
        if remaining <= 0.0 {
            break;
        }
        loss = measured.output.loss_ratio;
        remaining -= measured.output.effective_ns as f64;
    }
    if remaining > 0.0 {
        loss = 1.0;
    }
    Some(load as f64 * (1.0 - loss))
}
