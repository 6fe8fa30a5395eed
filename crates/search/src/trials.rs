//! All trials of a search, with their classes for each goal.

use crate::classify::{Class, Sums};
use crate::goal::Goal;
use crate::trial::Measured;
use std::collections::BTreeMap;

/// All trials of a search, by load, with their classes for each goal.
#[derive(Clone, Debug)]
pub struct Trials {
    goals: Vec<Goal>,
    at: BTreeMap<u64, AtLoad>,
    all: Vec<Measured>,
}

#[derive(Clone, Debug, Default)]
struct AtLoad {
    trials: Vec<Measured>,
    sums: Vec<Sums>,
}

impl Trials {
    /// Creates an empty collection.
    pub fn new(goals: Vec<Goal>) -> Trials {
        Trials { goals, at: BTreeMap::new(), all: Vec::new() }
    }

    /// Adds a trial, which counts for every goal.
    pub fn add(&mut self, measured: Measured) {
        let at = self.at.entry(measured.trial.load).or_default();
        at.sums.resize(self.goals.len(), Sums::default());
        for (sums, goal) in at.sums.iter_mut().zip(&self.goals) {
            sums.add(goal, &measured);
        }
        at.trials.push(measured);
        self.all.push(measured);
    }

    /// Returns the goals that the trials are compared with.
    pub fn goals(&self) -> &[Goal] {
        &self.goals
    }

    /// Returns all trials, in the order of measurement.
    pub fn all(&self) -> &[Measured] {
        &self.all
    }

    /// Returns the trials at one load.
    pub fn at(&self, load: u64) -> &[Measured] {
        self.at.get(&load).map_or(&[], |at| &at.trials)
    }

    /// Returns the loads with trials, ascending, with their trials.
    pub fn loads(&self) -> impl DoubleEndedIterator<Item = (u64, &[Measured])> {
        self.at.iter().map(|(load, at)| (*load, at.trials.as_slice()))
    }

    /// Returns the class of a load for a goal, by its number.
    pub fn class(&self, goal: usize, load: u64) -> Class {
        let at = self.at.get(&load);
        at.map_or(Class::Undecided, |at| at.sums[goal].class(&self.goals[goal]))
    }

    /// Returns the loads with trials, ascending, with their classes for a goal.
    pub fn classes(&self, goal: usize) -> impl DoubleEndedIterator<Item = (u64, Class)> {
        self.at.iter().map(move |(load, at)| (*load, at.sums[goal].class(&self.goals[goal])))
    }
}
