//! Reasons why a search is impossible.

use std::fmt;

/// A goal or a range that cannot be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No goal was given.
    NoGoals,
    /// Two goals have the same name.
    Twice(String),
    /// An invalid value of a goal.
    Goal {
        /// Name of the goal.
        goal: String,
        /// The fault.
        what: String,
    },
    /// An invalid range of loads.
    Loads(String),
    /// Invalid limits of the search.
    Limits(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoGoals => f.write_str("no goal: name one, such as ndr"),
            Fault::Twice(goal) => write!(f, "two goals are named {goal}"),
            Fault::Goal { goal, what } => write!(f, "goal {goal}: {what}"),
            Fault::Loads(what) | Fault::Limits(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}
