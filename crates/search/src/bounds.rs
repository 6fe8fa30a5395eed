//! Relevant bounds (RFC 9971, "Result Terms").

use crate::classify::Class;
use crate::trials::Trials;
use serde::Serialize;

/// Relevant bounds of a goal, from the trials so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// The largest lower bound below the relevant upper bound. Without an upper bound the RFC
    /// defines no relevant lower bound either; this is then the largest lower bound.
    pub lower: Option<u64>,
    /// The smallest upper bound.
    pub upper: Option<u64>,
    /// Loss inversion: the largest lower bound, if it is above the relevant upper bound. The upper
    /// bound is believed.
    pub inverted: Option<u64>,
}

impl Bounds {
    /// Returns the bounds of a goal, by its number.
    pub fn of(trials: &Trials, goal: usize) -> Bounds {
        let mut bounds = Bounds::default();
        for (load, class) in trials.classes(goal) {
            match (class, bounds.upper) {
                (Class::Lower, None) => bounds.lower = Some(load),
                (Class::Lower, Some(_)) => bounds.inverted = Some(load),
                (Class::Upper, None) => bounds.upper = Some(load),
                (Class::Upper, Some(_)) | (Class::Undecided, _) => {}
            }
        }
        bounds
    }
}
