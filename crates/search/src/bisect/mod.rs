//! Bisection that survives noise: which of many revisions in a row changed the rate?
//!
//! `git bisect` trusts every answer. A rate that scatters by 1 % answers wrongly about a step of
//! 2 % every few times, and one wrong answer sends it to the wrong half for good. Here each run
//! moves a probability instead ([`Belief`]), and the run that is asked for next is the one at
//! which most is to be learnt. Sources: Horstein, "Sequential transmission using noiseless
//! feedback", IEEE Trans. Inf. Theory 9 (1963): measure at the posterior's median; Waeber,
//! Frazier and Henderson, "Bisection search with noisy responses", SIAM J. Control Optim. 51
//! (2013).
//!
//! The controller knows no device and no clock: [`Bisection::next`] says which candidate is to be
//! measured, [`Bisection::take`] is told the figure, [`Bisection::skip`] that there can be none.
//! What it asks depends on its options and on what it was told alone, so that a search is resumed
//! by telling it everything again.

mod belief;
mod exact;
mod noisy;
pub mod simulated;
mod verdict;
mod wild;

pub use belief::{Belief, Model};
pub use exact::Exact;
pub use noisy::{Noisy, Options};
pub use verdict::{Ending, Step, Verdict};

/// A search in one of its two ways.
#[derive(Clone, Debug)]
pub enum Bisection {
    /// Figures that scatter.
    Noisy(Box<Noisy>),
    /// Figures that don't: counts.
    Exact(Exact),
}

impl Bisection {
    /// What is to be done next.
    pub fn next(&self) -> Step {
        match self {
            Self::Noisy(search) => search.next(),
            Self::Exact(search) => search.next(),
        }
    }

    /// Takes the figure of a run of `candidate`: above zero, in any unit.
    pub fn take(&mut self, candidate: usize, figure: f64) {
        match self {
            Self::Noisy(search) => search.take(candidate, figure),
            Self::Exact(search) => search.take(candidate, figure),
        }
    }

    /// Takes that `candidate` can't be built or measured.
    pub fn skip(&mut self, candidate: usize) {
        match self {
            Self::Noisy(search) => search.skip(candidate),
            Self::Exact(search) => search.skip(candidate),
        }
    }

    /// Figures taken so far.
    pub fn runs(&self) -> usize {
        match self {
            Self::Noisy(search) => search.runs(),
            Self::Exact(search) => search.runs(),
        }
    }

    /// The probability that the change came with each candidate; the first has none.
    pub fn probabilities(&self) -> Vec<f64> {
        match self {
            Self::Noisy(search) => search.probabilities(),
            Self::Exact(search) => search.probabilities(),
        }
    }

    /// What is known now, whether the search is done or not.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Noisy(search) => search.verdict(),
            Self::Exact(search) => search.verdict(),
        }
    }
}
