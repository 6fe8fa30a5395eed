//! Bisection by halving, for figures with hardly any scatter, such as instructions per packet. The
//! ends are measured twice: their repeatability determines which differences count.

use super::verdict::{Ending, Step, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Measurements of each end.
const ENDS: usize = 2;
/// Minimum ratio of a difference to the ends' own scatter.
const APART: f64 = 2.0;

/// A search by halving: each candidate is measured once, `log2(n)` of them in total.
#[derive(Clone, Debug)]
pub struct Exact {
    candidates: usize,
    /// Relative difference below which ends are equal.
    resolution: f64,
    figures: BTreeMap<usize, Vec<f64>>,
    skipped: BTreeSet<usize>,
}

impl Exact {
    /// Creates a search among `candidates` in a row, at least two. Ends that differ by less than
    /// the share `resolution` are equal; 0 for figures that repeat to the last digit.
    pub fn new(candidates: usize, resolution: f64) -> Self {
        Self {
            candidates: candidates.max(2),
            resolution,
            figures: BTreeMap::new(),
            skipped: BTreeSet::new(),
        }
    }

    /// Records a figure.
    pub fn take(&mut self, candidate: usize, figure: f64) {
        self.figures.entry(candidate).or_default().push(figure);
    }

    /// Replaces all figures: a figure may depend on all of them together.
    pub fn retake(&mut self, figures: &[(usize, f64)]) {
        self.figures.clear();
        figures.iter().for_each(|&(candidate, figure)| self.take(candidate, figure));
    }

    /// Records that a candidate cannot be measured.
    pub fn skip(&mut self, candidate: usize) {
        self.skipped.insert(candidate);
    }

    /// Returns the number of figures so far.
    pub fn runs(&self) -> usize {
        self.figures.values().map(Vec::len).sum()
    }

    /// Returns a candidate's figure: the mean of its measurements.
    fn figure(&self, candidate: usize) -> Option<f64> {
        let figures = self.figures.get(&candidate)?;
        Some(figures.iter().sum::<f64>() / figures.len() as f64)
    }

    /// Returns the relative difference below which ends are equal.
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

    /// Returns the last candidate before the change and the first after it, so far. A figure
    /// belongs to the nearer end.
    fn pair(&self) -> (usize, usize) {
        let Some((good, bad)) = self.ends() else { return (0, self.last()) };
        let changed = |figure: f64| (figure - bad).abs() < (figure - good).abs();
        let (mut low, mut high) = (0, self.last());
        // In the order of halving, each figure is within the remaining interval when it is
        // recorded, and the first changed one bounds all earlier ones.
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

    /// Returns the next step.
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

    /// Returns the probability of each candidate: an even share among the remaining ones.
    pub fn probabilities(&self) -> Vec<f64> {
        let (low, high) = self.pair();
        let share = 1.0 / (high - low) as f64;
        let of = |candidate| if candidate > low && candidate <= high { share } else { 0.0 };
        (0..self.candidates).map(of).collect()
    }

    /// Returns the current result. `two` is 1 if the step that was found is smaller than the
    /// difference of the ends: something else also changed.
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
