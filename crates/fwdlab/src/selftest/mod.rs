//! The laboratory measures its own error rates.
//!
//! Three rates determine the worth of a verdict: false differences, missed differences, and
//! intervals that miss the truth. This module counts them, on [`simulated`] runs of known law and
//! truth and on [`machine`] runs of this machine, and compares them with the bars that the method
//! promises.

mod detection;
pub(crate) mod live;
pub(crate) mod machine;
pub(crate) mod simulated;
mod text;
pub(crate) mod truth;

pub(crate) use text::{document, of_truths};

use fwdlab_results::stats::binomial::Rate;
use fwdlab_results::stats::summary::Interval;
use serde::Serialize;

/// Confidence of the interval printed with every rate, percent.
pub(crate) const CONFIDENCE: f64 = 95.0;

/// The promise about a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bar {
    /// The whole interval is at or below it.
    UpperLimitAtMost(f64),
    /// The rate is not shown to be above it.
    AtMost(f64),
    /// The rate reaches it.
    AtLeast(f64),
    /// The rate is between the two.
    Within(f64, f64),
}

/// State of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PromiseState {
    /// Kept.
    Yes,
    /// Broken, even by the interval of the rate.
    No,
    /// Undecided: more comparisons are needed.
    Open,
}

impl Bar {
    fn held(self, rate: Rate) -> PromiseState {
        let share = rate.share();
        let Interval { low, high } = rate.interval(CONFIDENCE);
        let (kept, broken) = match self {
            Bar::UpperLimitAtMost(bar) => (high <= bar, low > bar),
            Bar::AtMost(bar) => (low <= bar, low > bar),
            Bar::AtLeast(bar) => (share >= bar, high < bar),
            Bar::Within(from, to) => (share >= from && share <= to, high < from || low > to),
        };
        match (kept, broken) {
            (true, _) => PromiseState::Yes,
            (_, true) => PromiseState::No,
            _ => PromiseState::Open,
        }
    }
}

/// A measured rate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ErrorRate {
    /// The question.
    pub(crate) question: String,
    /// The layout of the runs.
    pub(crate) design: String,
    /// The scatter of the runs.
    pub(crate) noise: String,
    /// The number of events.
    pub(crate) rate: Rate,
    /// The rate, 0 to 1.
    pub(crate) share: f64,
    /// Its Clopper-Pearson interval.
    pub(crate) interval: Interval,
    /// The same rate for the classic practice (all runs of one, then all of the other, pooled t
    /// test) on the same number of runs of the same law, or for a history divided without
    /// allowances; `None` if it has no answer.
    pub(crate) classic: Option<f64>,
    /// Mean blocks until the decision, for designs that may stop early.
    pub(crate) blocks: Option<f64>,
    /// Mean number of trials of a search.
    pub(crate) trials: Option<f64>,
    /// Results of the reference implementation for the same devices.
    pub(crate) reference: Option<Reference>,
    /// The promise.
    pub(crate) bar: Option<Bar>,
    /// State of the promise; `None` without one.
    pub(crate) held: Option<PromiseState>,
    /// True if the rate is a known limit of the method, for which nothing is promised.
    pub(crate) is_known_limit: bool,
}

/// Results of another implementation.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Reference {
    /// Mean number of trials of a search.
    pub(crate) trials: f64,
    /// The rate, 0 to 1.
    pub(crate) share: f64,
}

impl ErrorRate {
    pub(crate) fn new(question: &str, design: String, noise: String, rate: Rate) -> ErrorRate {
        ErrorRate {
            question: question.to_owned(),
            design,
            noise,
            rate,
            share: rate.share(),
            interval: rate.interval(CONFIDENCE),
            classic: None,
            blocks: None,
            trials: None,
            reference: None,
            bar: None,
            held: None,
            is_known_limit: false,
        }
    }

    pub(crate) fn against(mut self, bar: Option<Bar>) -> ErrorRate {
        self.bar = bar;
        self.held = bar.map(|bar| bar.held(self.rate));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_is_kept_broken_or_open() {
        let rate = |hits, of| Rate { hits, of };
        let size = Bar::UpperLimitAtMost(0.062);
        assert_eq!(size.held(rate(1000, 20_000)), PromiseState::Yes);
        assert_eq!(size.held(rate(1600, 20_000)), PromiseState::No);
        assert_eq!(size.held(rate(1, 20)), PromiseState::Open);
        assert_eq!(Bar::AtMost(0.05).held(rate(1020, 20_000)), PromiseState::Yes);
        assert_eq!(Bar::AtMost(0.05).held(rate(1200, 20_000)), PromiseState::No);
        assert_eq!(Bar::AtLeast(0.9).held(rate(89, 100)), PromiseState::Open);
        assert_eq!(Bar::AtLeast(0.9).held(rate(60, 100)), PromiseState::No);
        assert_eq!(Bar::Within(0.935, 0.965).held(rate(950, 1000)), PromiseState::Yes);
        assert_eq!(Bar::Within(0.935, 0.965).held(rate(990, 1000)), PromiseState::No);
    }
}
