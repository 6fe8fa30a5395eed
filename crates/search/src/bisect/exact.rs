//! The search among figures that hardly scatter, such as instructions per packet: halving. The ends
//! are measured twice: how far they repeat says which difference is one.

use super::verdict::{Ending, Step, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Measurements of each end.
const ENDS: usize = 2;
/// A difference is one if it is so many times as large as what the ends' own figures differ by.
const APART: f64 = 2.0;

/// A search by halving: each candidate is measured once, `log2(n)` of them.
#[derive(Clone, Debug)]
pub struct Exact {
    candidates: usize,
    /// Ends that differ by less, as a share, are alike.
    resolution: f64,
    figures: BTreeMap<usize, Vec<f64>>,
    skipped: BTreeSet<usize>,
}

impl Exact {
    /// Begins among `candidates` in a row, at least two. Ends that differ by less than
    /// `resolution`, a share, are alike: what repeats to the last digit has 0.
    pub fn new(candidates: usize, resolution: f64) -> Self {
        Self {
            candidates: candidates.max(2),
            resolution,
            figures: BTreeMap::new(),
            skipped: BTreeSet::new(),
        }
    }

    /// Takes a figure.
    pub fn take(&mut self, candidate: usize, figure: f64) {
        self.figures.entry(candidate).or_default().push(figure);
    }

    /// Takes these figures instead of all before: what a figure counts may follow from all of
    /// them together.
    pub fn retake(&mut self, figures: &[(usize, f64)]) {
        self.figures.clear();
        figures.iter().for_each(|&(candidate, figure)| self.take(candidate, figure));
    }

    /// Takes that a candidate can't be measured.
    pub fn skip(&mut self, candidate: usize) {
        self.skipped.insert(candidate);
    }

    /// Figures taken so far.
    pub fn runs(&self) -> usize {
        self.figures.values().map(Vec::len).sum()
    }

    /// A candidate's figure: the mean of what was measured.
    fn figure(&self, candidate: usize) -> Option<f64> {
        let figures = self.figures.get(&candidate)?;
        Some(figures.iter().sum::<f64>() / figures.len() as f64)
    }

    /// Ends that differ by less, a share, are alike.
    fn repeats(&self) -> f64 {
        let spread = |end: usize| {
            let figures = self.figures.get(&end).map_or(&[][..], Vec::as_slice);
            let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
            let most = figures.iter().copied().fold(0.0, f64::max);
            if figures.len() > 1 { most / least - 1.0 } else { 0.0 }
        };
        (APART * spread(0).max(spread(self.last()))).max(self.resolution)
    }

    fn last(&self) -> usize {
        self.candidates - 1
    }

    fn ends(&self) -> Option<(f64, f64)> {
        Some((self.figure(0)?, self.figure(self.last())?))
    }

    /// The last candidate before the change and the first after it, so far: a figure belongs to
    /// the end that it is nearer to.
    fn pair(&self) -> (usize, usize) {
        let Some((good, bad)) = self.ends() else { return (0, self.last()) };
        let changed = |figure: f64| (figure - bad).abs() < (figure - good).abs();
        let (mut low, mut high) = (0, self.last());
        // In the order of halving no figure lies outside of what is left when it is taken, and
        // the first that changed bounds whatever came before.
        for &candidate in self.figures.keys() {
            if self.figure(candidate).is_some_and(changed) {
                high = candidate;
                break;
            }
            low = candidate;
        }
        low = low.min(high.saturating_sub(1));
        (low, high)
    }

    /// What is to be done next.
    pub fn next(&self) -> Step {
        if self.skipped.contains(&0) || self.skipped.contains(&self.last()) {
            return Step::Done(Ending::EndLacks);
        }
        for time in 0..ENDS {
            for end in [0, self.last()] {
                if self.figures.get(&end).map_or(0, Vec::len) <= time {
                    return Step::Measure(end);
                }
            }
        }
        if self.ends().is_some_and(|(good, bad)| (bad - good).abs() <= self.repeats() * good) {
            return Step::Done(Ending::NoStep);
        }
        let (low, high) = self.pair();
        let middle = low + (high - low) / 2;
        let able = (low + 1..high).filter(|candidate| !self.skipped.contains(candidate));
        match able.min_by_key(|candidate| candidate.abs_diff(middle)) {
            Some(candidate) => Step::Measure(candidate),
            None => Step::Done(Ending::Found),
        }
    }

    /// What each candidate may have: an even share of what is left.
    pub fn probabilities(&self) -> Vec<f64> {
        let (low, high) = self.pair();
        let share = 1.0 / (high - low) as f64;
        let of = |candidate| if candidate > low && candidate <= high { share } else { 0.0 };
        (0..self.candidates).map(of).collect()
    }

    /// What is known now. `two` is 1 when the step that was found is not all of the difference of
    /// the ends: something else changed as well.
    pub fn verdict(&self) -> Verdict {
        let (low, high) = self.pair();
        let share = |before: usize, after: usize| {
            let figure = |of: usize| self.figure(of).unwrap_or(f64::NAN);
            figure(after) / figure(before) - 1.0
        };
        let (change, ends) = (share(low, high), share(0, self.last()));
        let ending = match self.next() {
            Step::Done(ending) => Some(ending),
            Step::Measure(_) => None,
        };
        let others = ending == Some(Ending::Found)
            && (change - ends).abs() > (0.1 * ends.abs()).max(self.repeats());
        Verdict {
            ending,
            set: (low + 1..=high).collect(),
            second: Vec::new(),
            probability: 1.0,
            change,
            half_width: 0.0,
            second_change: 0.0,
            ends,
            detectable: self.repeats(),
            scatter: 0.0,
            two: f64::from(u8::from(others)),
            runs: self.runs(),
        }
    }
}
