//! Noise-tolerant bisection: finds which of many consecutive revisions changed the rate.
//!
//! `git bisect` trusts every answer. A rate with a scatter of 1 % gives a wrong answer about a step
//! of 2 % every few times, and one wrong answer sends it to the wrong half for good. Here each run
//! updates a probability instead ([`Belief`]), and the next run is the one that gives the most
//! information. Sources: Horstein, "Sequential transmission using noiseless feedback", IEEE Trans.
//! Inf. Theory 9 (1963): measure at the posterior's median; Waeber, Frazier and Henderson,
//! "Bisection search with noisy responses", SIAM J. Control Optim. 51 (2013).
//!
//! The controller knows no device and no clock: [`Bisection::next`] returns the candidate to
//! measure, [`Bisection::take`] records its figure, and [`Bisection::skip`] records that it has
//! none. Its requests depend only on its options and the recorded figures, so a search is resumed
//! by recording them again.

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

/// A search with one of two methods.
#[derive(Clone, Debug)]
pub enum Bisection {
    /// For figures with scatter.
    Noisy(Box<Noisy>),
    /// For figures without scatter: counts.
    Exact(Exact),
}

impl Bisection {
    /// Returns the next step.
    pub fn next(&self) -> Step {
        match self {
            Self::Noisy(search) => search.next(),
            Self::Exact(search) => search.next(),
        }
    }

    /// Records the figure of a run of `candidate`: above zero, in any unit.
    pub fn take(&mut self, candidate: usize, figure: f64) {
        match self {
            Self::Noisy(search) => search.take(candidate, figure),
            Self::Exact(search) => search.take(candidate, figure),
        }
    }

    /// Records that `candidate` cannot be built or measured.
    pub fn skip(&mut self, candidate: usize) {
        match self {
            Self::Noisy(search) => search.skip(candidate),
            Self::Exact(search) => search.skip(candidate),
        }
    }

    /// Returns the number of figures so far.
    pub fn runs(&self) -> usize {
        match self {
            Self::Noisy(search) => search.runs(),
            Self::Exact(search) => search.runs(),
        }
    }

    /// Returns the probability that the change came with each candidate; 0 for the first.
    pub fn probabilities(&self) -> Vec<f64> {
        match self {
            Self::Noisy(search) => search.probabilities(),
            Self::Exact(search) => search.probabilities(),
        }
    }

    /// Returns the current result, even if the search is not finished.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Noisy(search) => search.verdict(),
            Self::Exact(search) => search.verdict(),
        }
    }
}
