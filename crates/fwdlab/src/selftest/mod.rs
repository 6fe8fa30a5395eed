//! The laboratory measures its own error rates.
//!
//! A verdict is worth what its errors are: how often it finds a difference where
//! there is none, how often it misses one that is there, how often its interval
//! misses the truth. Here these rates are counted, on [`simulated`] runs whose
//! law and truth are known, and on [`machine`] runs of this machine, against the
//! bars that the method promises.

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

/// Confidence of every interval that a rate is printed with, percent.
pub(crate) const CONFIDENCE: f64 = 95.0;

/// What is promised of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bar {
    /// The whole interval lies at or below it.
    UpperLimitAtMost(f64),
    /// The rate is not shown to lie above it.
    AtMost(f64),
    /// The rate reaches it.
    AtLeast(f64),
    /// The rate lies between the two.
    Within(f64, f64),
}

/// Whether a promise is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Held {
    /// Yes.
    Yes,
    /// No: even the interval of the rate says so.
    No,
    /// More comparisons are needed to say.
    Open,
}

impl Bar {
    fn held(self, rate: Rate) -> Held {
        let share = rate.share();
        let Interval { low, high } = rate.interval(CONFIDENCE);
        let (kept, broken) = match self {
            Bar::UpperLimitAtMost(bar) => (high <= bar, low > bar),
            Bar::AtMost(bar) => (low <= bar, low > bar),
            Bar::AtLeast(bar) => (share >= bar, high < bar),
            Bar::Within(from, to) => (share >= from && share <= to, high < from || low > to),
        };
        match (kept, broken) {
            (true, _) => Held::Yes,
            (_, true) => Held::No,
            _ => Held::Open,
        }
    }
}

/// One rate that was measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    /// What was asked.
    pub(crate) question: String,
    /// How the runs were laid out.
    pub(crate) design: String,
    /// How they scattered.
    pub(crate) noise: String,
    /// How often it happened.
    pub(crate) rate: Rate,
    /// The rate, 0 to 1.
    pub(crate) share: f64,
    /// Clopper and Pearson's interval of it.
    pub(crate) interval: Interval,
    /// The same of the classic practice (all runs of one, then all of the other,
    /// pooled t test) on as many runs of the same law; none where it has no answer.
    pub(crate) classic: Option<f64>,
    /// Mean blocks until the decision, for designs that may stop early.
    pub(crate) blocks: Option<f64>,
    /// What is promised.
    pub(crate) bar: Option<Bar>,
    /// Whether it is kept; none without a promise.
    pub(crate) held: Option<Held>,
}

impl Measured {
    pub(crate) fn new(question: &str, design: String, noise: String, rate: Rate) -> Measured {
        Measured {
            question: question.to_owned(),
            design,
            noise,
            rate,
            share: rate.share(),
            interval: rate.interval(CONFIDENCE),
            classic: None,
            blocks: None,
            bar: None,
            held: None,
        }
    }

    pub(crate) fn against(mut self, bar: Option<Bar>) -> Measured {
        self.bar = bar;
        self.held = bar.map(|bar| bar.held(self.rate));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_kept_broken_or_open() {
        let rate = |hits, of| Rate { hits, of };
        let size = Bar::UpperLimitAtMost(0.062);
        assert_eq!(size.held(rate(1000, 20_000)), Held::Yes);
        assert_eq!(size.held(rate(1600, 20_000)), Held::No);
        assert_eq!(size.held(rate(1, 20)), Held::Open);
        assert_eq!(Bar::AtMost(0.05).held(rate(1020, 20_000)), Held::Yes);
        assert_eq!(Bar::AtMost(0.05).held(rate(1200, 20_000)), Held::No);
        assert_eq!(Bar::AtLeast(0.9).held(rate(89, 100)), Held::Open);
        assert_eq!(Bar::AtLeast(0.9).held(rate(60, 100)), Held::No);
        assert_eq!(Bar::Within(0.935, 0.965).held(rate(950, 1000)), Held::Yes);
        assert_eq!(Bar::Within(0.935, 0.965).held(rate(990, 1000)), Held::No);
    }
}
