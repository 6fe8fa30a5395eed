//! The controller (RFC 9971, "Controller") as a state machine without input or output: it requests
//! trials, and outcomes are recorded in it.

use crate::bounds::Bounds;
use crate::fault::Fault;
use crate::goal::Goal;
use crate::limits::{INVALID_AT_START, Limits};
use crate::result::{Ending, SearchResult, State};
use crate::strategy::Strategy;
use crate::trial::{Invalid, Measured, Outcome, Trial};
use crate::trials::Trials;

/// Next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run this trial, then call [`Search::record`].
    Measure(Trial),
    /// Nothing: the search is finished.
    Done(Box<SearchResult>),
}

/// A running search.
#[derive(Clone, Debug)]
pub struct Search {
    limits: Limits,
    trials: Trials,
    strategy: Strategy,
    pending: Option<Trial>,
    invalid: Vec<Invalid>,
    /// Consecutive invalid trials.
    in_a_row: usize,
    time_ns: u64,
    ending: Option<Ending>,
}

impl Search {
    /// Creates a search for goals.
    ///
    /// # Errors
    /// Everything that makes the search impossible.
    pub fn new(goals: Vec<Goal>, limits: Limits) -> Result<Search, Vec<Fault>> {
        let mut faults: Vec<Fault> = goals.iter().flat_map(Goal::faults).collect();
        if goals.is_empty() {
            faults.push(Fault::NoGoals);
        }
        let is_double = |number: &usize| {
            goals[..*number].iter().any(|before| before.name == goals[*number].name)
        };
        let doubles = (0..goals.len()).filter(is_double);
        faults.extend(doubles.map(|number| Fault::Twice(goals[number].name.clone())));
        faults.extend(limits.faults(&goals));
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut search = Search {
            limits,
            trials: Trials::new(goals),
            strategy: Strategy::default(),
            pending: None,
            invalid: Vec::new(),
            in_a_row: 0,
            time_ns: 0,
            ending: None,
        };
        search.choose();
        Ok(search)
    }

    /// Returns the next step; the same one until its outcome is recorded.
    pub fn next(&self) -> Step {
        match self.pending {
            Some(trial) => Step::Measure(trial),
            None => Step::Done(Box::new(self.result())),
        }
    }

    /// Records the outcome of the requested trial.
    pub fn record(&mut self, outcome: Outcome) {
        let Some(trial) = self.pending else { return };
        match outcome.checked() {
            Outcome::Valid(output) => {
                self.in_a_row = 0;
                self.time_ns = self.time_ns.saturating_add(output.effective_ns);
                self.trials.add(Measured { trial, output });
                self.choose();
            }
            Outcome::Invalid(why) => {
                self.in_a_row += 1;
                let most = match self.trials.all() {
                    [] => self.limits.invalid.min(INVALID_AT_START),
                    _ => self.limits.invalid,
                };
                if self.in_a_row >= most {
                    self.end(Ending::Unmeasurable { trial, why: why.clone() });
                }
                self.invalid.push(Invalid { trial, why });
            }
        }
    }

    /// Ends the search: goals not reached by now are irregular.
    pub fn end(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending);
        self.pending = None;
    }

    /// Returns the reason for an early end; `None` if there was none.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Returns the relevant bounds of each goal so far.
    pub fn bounds(&self) -> impl Iterator<Item = (&Goal, Bounds)> {
        let goals = self.trials.goals().iter().enumerate();
        goals.map(|(number, goal)| (goal, Bounds::of(&self.trials, number)))
    }

    /// Returns the result so far.
    pub fn result(&self) -> SearchResult {
        let (invalid, ending) = (self.invalid.clone(), self.ending.as_ref());
        SearchResult::of_trials(&self.trials, invalid, &self.limits, ending)
    }

    /// Returns the valid trials so far, and the sum of their effective durations.
    pub(crate) fn valid_trials(&self) -> (&Trials, u64) {
        (&self.trials, self.time_ns)
    }

    fn choose(&mut self) {
        let open: Vec<usize> = (0..self.trials.goals().len())
            .filter(|number| State::of(&self.trials, *number, &self.limits) == State::Open)
            .collect();
        if open.is_empty() {
            self.pending = None;
        } else if self.trials.all().len() >= self.limits.trials {
            self.end(Ending::Trials);
        } else if self.time_ns >= self.limits.time_ns {
            self.end(Ending::Time);
        } else {
            self.pending = self.strategy.next(&self.trials, &self.limits, &open);
        }
    }
}

/// Runs a search; `measure` is the measurer.
///
/// # Errors
/// The first error of the measurer.
pub fn run<E>(
    mut search: Search,
    mut measure: impl FnMut(Trial) -> Result<Outcome, E>,
) -> Result<SearchResult, E> {
    loop {
        match search.next() {
            Step::Measure(trial) => search.record(measure(trial)?),
            Step::Done(result) => return Ok(*result),
        }
    }
}
