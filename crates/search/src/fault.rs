//! What cannot be searched for, and why.

use std::fmt;

/// A goal or a range that no search can be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No goal was given.
    NoGoals,
    /// Two goals of one name.
    Twice(String),
    /// A value of a goal.
    Goal {
        /// Name of the goal.
        goal: String,
        /// What is wrong with it.
        what: String,
    },
    /// The range of loads.
    Loads(String),
    /// The limits of the search itself.
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
