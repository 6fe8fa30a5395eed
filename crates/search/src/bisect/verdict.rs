//! Steps and results of a bisection.

/// Next step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Measure this candidate once more.
    Measure(usize),
    /// Nothing: the search is finished.
    Done(Ending),
}

/// Reason for the end of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// One change explains the figures, and its place is certain enough.
    Found,
    /// Two changes explain the figures, and both places are certain enough.
    Two,
    /// The ends could not be distinguished: there is no change, or it is too small.
    NoStep,
    /// The maximum number of runs is reached.
    Cap,
    /// One of the ends cannot be measured, so there is nothing to compare with.
    EndLacks,
}

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Reason for its end; `None` while it continues.
    pub ending: Option<Ending>,
    /// Candidates that may have brought the change, which together have at least the required
    /// confidence, in their order. A single one if the answer is sharp and no neighbour had to be
    /// skipped.
    pub set: Vec<usize>,
    /// With [`Ending::Two`], the candidates of the second change.
    pub second: Vec<usize>,
    /// Probability that the change came with one of `set` (with two changes, of both sets).
    pub probability: f64,
    /// The change, as a share of the figure before it: -0.02 is a loss of 2 %.
    pub change: f64,
    /// Half of the 95 % interval around `change`; infinite if nothing is known.
    pub half_width: f64,
    /// The second change, if there are two.
    pub second_change: f64,
    /// Difference of the ends, as a share of the first one's figure.
    pub ends: f64,
    /// Step that would have been detected nine times out of ten with the runs of the ends, as a
    /// share.
    pub detectable: f64,
    /// Scatter of a single run, as a share.
    pub scatter: f64,
    /// Probability that there are two changes and not one.
    pub two: f64,
    /// Number of figures.
    pub runs: usize,
}

impl Verdict {
    /// Returns the pair of candidates between which the change is: the last before it and the first
    /// after it that can be measured. `None` if there is no such pair.
    pub fn pair(&self) -> Option<(usize, usize)> {
        let (first, last) = (*self.set.first()?, *self.set.last()?);
        Some((first.checked_sub(1)?, last))
    }
}
