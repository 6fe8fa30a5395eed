//! Trials (RFC 9971, "Trial Terms"): input and output of a measurer.

use serde::{Deserialize, Serialize};

/// Trial Input: the whole request to a measurer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Intended load of one interface, in frames per second.
    pub load: u64,
    /// Duration of the traffic.
    pub duration_ns: u64,
}

/// Trial Output: the measurer's answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Output {
    /// Trial Loss Ratio: the share of the frames to be forwarded that was not forwarded. Between 0
    /// and 1.
    pub loss_ratio: f64,
    /// Trial Effective Duration: the trial's contribution to sums of durations.
    pub effective_ns: u64,
}

impl Output {
    /// Returns the output of a trial with `expected` frames to forward and `forwarded` forwarded
    /// ones; it counts for its intended duration. `None` if these numbers give no ratio: none
    /// expected, or more forwarded than expected.
    pub fn of_counts(trial: Trial, expected: u64, forwarded: u64) -> Option<Output> {
        let lost = expected.checked_sub(forwarded)?;
        (expected > 0).then(|| Output {
            loss_ratio: lost as f64 / expected as f64,
            effective_ns: trial.duration_ns,
        })
    }

    fn is_possible(&self) -> bool {
        (0.0..=1.0).contains(&self.loss_ratio) && self.effective_ns > 0
    }
}

/// Outcome of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The trial was measured.
    Valid(Output),
    /// The trial is not a measurement of the device, for this reason (the sender fell short, the
    /// receiver dropped): it is repeated.
    Invalid(String),
}

impl Outcome {
    /// Converts an impossible output to an invalid one.
    pub(crate) fn checked(self) -> Outcome {
        match self {
            Outcome::Valid(output) if !output.is_possible() => Outcome::Invalid(format!(
                "a loss ratio of {} in {} ns",
                output.loss_ratio, output.effective_ns
            )),
            other => other,
        }
    }
}

/// Trial Result: input and output.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The input.
    #[serde(flatten)]
    pub trial: Trial,
    /// The output.
    #[serde(flatten)]
    pub output: Output,
}

impl Measured {
    /// Trial Forwarding Rate, in frames a second.
    pub fn forwarding_rate(&self) -> f64 {
        self.trial.load as f64 * (1.0 - self.output.loss_ratio)
    }
}

/// An invalid trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Invalid {
    /// The input.
    #[serde(flatten)]
    pub trial: Trial,
    /// Fault of the trial.
    pub why: String,
}
