//! All trials of a search, with what they say of each goal.

use crate::classify::{Class, Sums};
use crate::goal::Goal;
use crate::trial::Measured;
use std::collections::BTreeMap;

/// All trials of a search, by load, with what they say of each goal.
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
    /// None yet.
    pub fn new(goals: Vec<Goal>) -> Trials {
        Trials { goals, at: BTreeMap::new(), all: Vec::new() }
    }

    /// Adds one: every trial counts for every goal.
    pub fn add(&mut self, measured: Measured) {
        let at = self.at.entry(measured.trial.load).or_default();
        at.sums.resize(self.goals.len(), Sums::default());
        for (sums, goal) in at.sums.iter_mut().zip(&self.goals) {
            sums.add(goal, &measured);
        }
        at.trials.push(measured);
        self.all.push(measured);
    }

    /// The goals that they are held against.
    pub fn goals(&self) -> &[Goal] {
        &self.goals
    }

    /// All, as they were measured.
    pub fn all(&self) -> &[Measured] {
        &self.all
    }

    /// Those at one load.
    pub fn at(&self, load: u64) -> &[Measured] {
        self.at.get(&load).map_or(&[], |at| &at.trials)
    }

    /// Loads that have trials, rising, with them.
    pub fn loads(&self) -> impl DoubleEndedIterator<Item = (u64, &[Measured])> {
        self.at.iter().map(|(load, at)| (*load, at.trials.as_slice()))
    }

    /// The class of a load for a goal, by its number.
    pub fn class(&self, goal: usize, load: u64) -> Class {
        let at = self.at.get(&load);
        at.map_or(Class::Undecided, |at| at.sums[goal].class(&self.goals[goal]))
    }

    /// Loads that have trials, rising, with their class for a goal.
    pub fn classes(&self, goal: usize) -> impl DoubleEndedIterator<Item = (u64, Class)> {
        self.at.iter().map(move |(load, at)| (*load, at.sums[goal].class(&self.goals[goal])))
    }
}
