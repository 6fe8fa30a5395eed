//! Qualifications of a comparison: capacity and doubtful runs.

use super::Comparison;
use serde::Serialize;
use std::fmt;

/// A comparison by capacity, secondary to the comparison by rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// Capacity of the candidate over the capacity of the baseline.
    pub ratio: f64,
    /// Lower end of its interval, at the same confidence as the rate's.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// True if both one-sided tests show it to be within the margin.
    pub is_within_margin: bool,
    /// Ratio of rate over capacity of the candidate to the baseline's, if they differ certainly and
    /// by more than a hundredth: one of the two stalls more often. `None` otherwise.
    pub unequal_steadiness: Option<f64>,
}

impl Capacity {
    /// Returns the result of comparing capacities.
    pub fn of(comparison: &Comparison) -> Capacity {
        Capacity {
            ratio: comparison.ratio,
            low: comparison.low,
            high: comparison.high,
            is_within_margin: comparison.is_within_margin(),
            unequal_steadiness: None,
        }
    }

    /// Adds a comparison of rates over capacities.
    #[must_use]
    pub fn with_steadiness(self, shares: &Comparison) -> Capacity {
        let differs = shares.excludes_no_change() && (shares.ratio - 1.0).abs() > 0.01;
        Capacity { unequal_steadiness: differs.then_some(shares.ratio), ..self }
    }
}

/// Reason why runs are doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// CPUs of the device did other work, or the window never became steady.
    MachineBusy,
    /// The sender limited the rate.
    GeneratorLimited,
}

/// Evidence that most runs of a comparison are doubtful, so it is not conclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DoubtEvidence {
    /// The most frequent reason.
    pub cause: Cause,
    /// Doubtful runs.
    pub runs: usize,
    /// Compared runs.
    pub of: usize,
}

impl DoubtEvidence {
    /// Checks the runs of a comparison: their number, and the numbers of disturbed (contended or
    /// unsteady) runs, generator-limited runs, and runs with either. `None` unless the last is more
    /// than half.
    pub fn of(of: usize, disturbed: usize, limited: usize, either: usize) -> Option<DoubtEvidence> {
        let cause = if limited > disturbed { Cause::GeneratorLimited } else { Cause::MachineBusy };
        (2 * either > of).then_some(DoubtEvidence { cause, runs: either, of })
    }
}

impl fmt::Display for DoubtEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DoubtEvidence { cause, runs, of } = self;
        match cause {
            Cause::MachineBusy => write!(f, "machine busy in {runs} of {of} runs"),
            Cause::GeneratorLimited => write!(f, "generator-limited in {runs} of {of} runs"),
        }
    }
}
