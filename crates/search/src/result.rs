//! Result of a search (RFC 9971, "Result Terms").

use crate::bounds::Bounds;
use crate::classify::conditional_throughput;
use crate::dip::LossDip;
use crate::drift::Drift;
use crate::floor::LossFloor;
use crate::goal::{Goal, distance};
use crate::limits::Limits;
use crate::trial::{Invalid, Measured, Outcome, Trial};
use crate::trials::Trials;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Search Result: one goal result per goal, in their order, and all measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchResult {
    /// Result of each goal.
    pub goals: Vec<GoalResult>,
    /// All trials, in the order of measurement.
    pub trials: Vec<Measured>,
    /// Invalid trials, with reasons.
    pub invalid: Vec<Invalid>,
    /// Drift of the device during the search: its bounds are not valid at any single moment.
    pub drift: Option<Drift>,
    /// Loss that persists at lower loads.
    pub loss_floor: Option<LossFloor>,
    /// Loss that falls while the load rises.
    pub loss_dip: Option<LossDip>,
}

/// Goal Result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GoalResult {
    /// The goal.
    pub goal: Goal,
    /// Relevant bounds in frames a second of one interface.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// Conditional throughput at the lower bound, in frames a second of one interface.
    pub conditional_throughput: Option<f64>,
    /// Reason for an irregular result; `None` for a regular one.
    pub irregular: Option<Irregular>,
}

/// Reason for an irregular result of a goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Irregular {
    /// The maximum load is a lower bound: the device may be faster.
    NoUpperBound,
    /// The maximum load was the link's line rate, and is a lower bound: the device is as fast as
    /// its link, or faster.
    LineRate,
    /// The minimum load is an upper bound: the device may meet the goal at no load.
    NoLowerBound,
    /// The search ended early.
    Ended {
        /// Reason for the early end.
        by: Ending,
    },
}

/// Reason for the end of a search before its goals are reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Ending {
    /// The maximum number of trials was reached.
    Trials,
    /// The maximum time was reached.
    Time,
    /// The caller ended the search.
    Cancelled,
    /// Trials were repeatedly invalid.
    Unmeasurable {
        /// The trial.
        trial: Trial,
        /// Fault of the last attempt.
        why: String,
    },
}

impl fmt::Display for Irregular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Irregular::NoUpperBound => "the greatest load is a lower bound: there may be more",
            Irregular::LineRate => {
                "the line rate is a lower bound: the device is as fast as its link, or faster"
            }
            Irregular::NoLowerBound => "the least load is an upper bound: there may be nothing",
            Irregular::Ended { by: Ending::Trials } => "the number of trials was used up",
            Irregular::Ended { by: Ending::Time } => "the time was used up",
            Irregular::Ended { by: Ending::Cancelled } => "cancelled",
            Irregular::Ended { by: Ending::Unmeasurable { trial, why } } => {
                return write!(f, "no valid trial at {} frames/s: {why}", trial.load);
            }
        })
    }
}

impl SearchResult {
    /// Returns the result of trials that were made elsewhere, or earlier, from the goals, the
    /// limits of their search, each trial with its outcome, and the reason for an early end.
    pub fn of(
        goals: Vec<Goal>,
        limits: &Limits,
        outcomes: impl IntoIterator<Item = (Trial, Outcome)>,
        ending: Option<&Ending>,
    ) -> SearchResult {
        let mut trials = Trials::new(goals);
        let mut invalid = Vec::new();
        for (trial, outcome) in outcomes {
            match outcome.checked() {
                Outcome::Valid(output) => trials.add(Measured { trial, output }),
                Outcome::Invalid(why) => invalid.push(Invalid { trial, why }),
            }
        }
        SearchResult::of_trials(&trials, invalid, limits, ending)
    }

    /// Returns the current result.
    pub(crate) fn of_trials(
        trials: &Trials,
        invalid: Vec<Invalid>,
        limits: &Limits,
        ending: Option<&Ending>,
    ) -> SearchResult {
        let goals = trials.goals();
        let width = goals.iter().map(|goal| goal.width).fold(1.0, f64::min);
        let result = |number| {
            let state = State::of(trials, number, limits);
            GoalResult::of(trials, number, state, ending)
        };
        let drift = Drift::of(trials, width);
        SearchResult {
            goals: (0..goals.len()).map(result).collect(),
            trials: trials.all().to_vec(),
            loss_floor: LossFloor::of(trials, &invalid, drift.as_ref()),
            loss_dip: LossDip::of(trials, drift.as_ref()),
            invalid,
            drift,
        }
    }
}

impl GoalResult {
    /// True if both relevant bounds were found, as close together as the goal requires.
    pub fn is_regular(&self) -> bool {
        self.irregular.is_none()
    }

    /// True if its conditional throughput is the device's: the result is regular, or no link of
    /// this kind carries more.
    pub fn has_rate(&self) -> bool {
        matches!(self.irregular, None | Some(Irregular::LineRate))
    }

    /// Returns the distance of the bounds, as a share of the upper one.
    pub fn width(&self) -> Option<f64> {
        Some(distance(self.bounds.lower?, self.bounds.upper?))
    }

    /// Returns the current result of a goal, by its number; `ending` is the reason for the end of
    /// the search.
    pub(crate) fn of(
        trials: &Trials,
        number: usize,
        state: State,
        ending: Option<&Ending>,
    ) -> Self {
        let (goal, bounds) = (trials.goals()[number].clone(), Bounds::of(trials, number));
        let at_lower = |load| conditional_throughput(&goal, load, trials.at(load));
        GoalResult {
            bounds,
            conditional_throughput: bounds.lower.and_then(at_lower),
            irregular: match state {
                State::Reached => None,
                State::NoUpper => Some(Irregular::NoUpperBound),
                State::Line => Some(Irregular::LineRate),
                State::NoLower => Some(Irregular::NoLowerBound),
                State::Open => {
                    Some(Irregular::Ended { by: ending.cloned().unwrap_or(Ending::Cancelled) })
                }
            },
            goal,
        }
    }
}

/// State of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Further trials are needed.
    Open,
    /// Both bounds are known, close together.
    Reached,
    /// The maximum load is a lower bound.
    NoUpper,
    /// The line rate is a lower bound, and it is the maximum load.
    Line,
    /// The minimum load is an upper bound.
    NoLower,
}

impl State {
    /// Returns the state of a goal, by its number.
    pub(crate) fn of(trials: &Trials, number: usize, limits: &Limits) -> State {
        let bounds = Bounds::of(trials, number);
        match (bounds.lower, bounds.upper) {
            (Some(lower), None) if lower == limits.max_load => match limits.end_at_line() {
                true => State::Line,
                false => State::NoUpper,
            },
            (None, Some(upper)) if upper == limits.min_load => State::NoLower,
            (Some(lower), Some(upper)) if trials.goals()[number].is_reached(lower, upper) => {
                State::Reached
            }
            _ => State::Open,
        }
    }
}
