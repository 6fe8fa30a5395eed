//! What a bisection asks for and what it says at the end.

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Measure this candidate once more.
    Measure(usize),
    /// Nothing: the search is over.
    Done(Ending),
}

/// Why a search is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// One change explains the figures, and where it came is sure enough.
    Found,
    /// Two changes explain them, and where both came is sure enough.
    Two,
    /// The ends could not be told apart: there is nothing to look for, or it is too small.
    NoStep,
    /// The most runs that were allowed are used up.
    Cap,
    /// One of the ends can't be measured, so that there is nothing to compare with.
    EndLacks,
}

/// What a search knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Why it ended; none while it goes on.
    pub ending: Option<Ending>,
    /// Candidates that may have brought the change, with at least the confidence asked for
    /// together, in their order. One if the answer is sharp and no neighbour had to be skipped.
    pub set: Vec<usize>,
    /// With [`Ending::Two`] those of the second change.
    pub second: Vec<usize>,
    /// The probability that the change came with one of `set` (of both sets, with two).
    pub probability: f64,
    /// The change, as a share of the figure before it: -0.02 is a loss of 2 %.
    pub change: f64,
    /// Half of the 95 % interval around `change`; infinite when nothing is known.
    pub half_width: f64,
    /// The second change, where there are two.
    pub second_change: f64,
    /// The difference of the ends, as a share of the first one's figure.
    pub ends: f64,
    /// The step that would have been found nine times of ten with the runs of the ends, a share.
    pub detectable: f64,
    /// The scatter of a single run, a share.
    pub scatter: f64,
    /// The probability that there are two changes and not one.
    pub two: f64,
    /// Figures taken.
    pub runs: usize,
}

impl Verdict {
    /// The pair of candidates between which the change lies: the last before it and the first
    /// after it that can be measured. `None` when there is none to speak of.
    pub fn pair(&self) -> Option<(usize, usize)> {
        let (first, last) = (*self.set.first()?, *self.set.last()?);
        Some((first.checked_sub(1)?, last))
    }
}
