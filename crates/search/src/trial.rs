//! Trials (RFC 9971, "Trial Terms"): what is asked of a measurer, and what it
//! answers.

use serde::{Deserialize, Serialize};

/// Trial Input: what is asked of a measurer, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Intended load of one interface, in frames a second.
    pub load: u64,
    /// How long traffic is to be sent.
    pub duration_ns: u64,
}

/// Trial Output: what the measurer answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Output {
    /// Trial Loss Ratio: of the frames that were to be forwarded, the share that was not.
    /// Between 0 and 1.
    pub loss_ratio: f64,
    /// Trial Effective Duration: what the trial counts for in sums of durations.
    pub effective_ns: u64,
}

impl Output {
    /// The output of a trial of which `expected` frames were to be forwarded and `forwarded`
    /// were; it counts for its intended duration. `None` if no ratio comes of these figures:
    /// nothing expected, or more forwarded than that.
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

/// How a trial came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was measured.
    Valid(Output),
    /// It says nothing of the device, for this reason (the sender fell short, the receiver
    /// dropped): it is measured again.
    Invalid(String),
}

impl Outcome {
    /// An output that no trial can have is none.
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
    /// What was asked.
    #[serde(flatten)]
    pub trial: Trial,
    /// What was answered.
    #[serde(flatten)]
    pub output: Output,
}

impl Measured {
    /// Trial Forwarding Rate, in frames a second.
    pub fn forwarding_rate(&self) -> f64 {
        self.trial.load as f64 * (1.0 - self.output.loss_ratio)
    }
}

/// A trial that said nothing of the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Invalid {
    /// What was asked.
    #[serde(flatten)]
    pub trial: Trial,
    /// What went wrong.
    pub why: String,
}
