//! Bisection for figures with scatter.

use super::belief::{Belief, Model, Weights};
use super::verdict::{Ending, Step, Verdict};
use super::wild::{ENDS, LEAST_SCATTER, wild_runs};
use std::collections::BTreeSet;

/// Options of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Consecutive revisions, at least two; the first is good, the last is bad.
    pub candidates: usize,
    /// Maximum number of runs.
    pub cap: usize,
    /// Required probability of the answer.
    pub confidence: f64,
    /// Standard deviation between builds of the same program, as a share: the effect of memory
    /// layout on a rate. Zero if only the program matters.
    pub layout: f64,
    /// Size of the change, as a share, if known from another source: -0.02 for a loss of 2 %. The
    /// search then does not first show that the ends differ.
    pub known: Option<f64>,
    /// Seed of random choices and orders.
    pub seed: u64,
}

impl Options {
    /// Default options.
    pub fn new(candidates: usize) -> Self {
        Self { candidates, cap: 150, confidence: 0.96, layout: 0.0, known: None, seed: 0 }
    }
}

/// Possible scatters, in units of the ends' scatter. With only one of them, half of the true one,
/// every second search ends at the wrong candidate.
const SCATTERS: [f64; 8] = [0.5, 0.63, 0.79, 1.0, 1.26, 1.58, 2.0, 2.5];
/// Possible steps of a laboratory's random walk from run to run, in units of the scatter. Without
/// such a walk, allowing only for a nonzero one costs a fifth of the runs.
const DRIFTS: [f64; 2] = [0.0, 0.2];
/// The search begins once a difference of the ends is this many times more probable than none; the
/// remaining evidence follows during the search.
const BEGIN: f64 = 3.0;
/// Quantiles of the posterior at which unmeasured candidates are considered.
const QUANTILES: [f64; 3] = [0.25, 0.5, 0.75];
/// Deviation of the change's prior, as a share, unless the ends differ by more.
const CHANGE: f64 = 0.03;
/// Deviation of the prior of a change known from another source, as a share of it.
const KNOWN: f64 = 0.35;
/// Maximum share of the runs for distinguishing the ends.
const ENDS_SHARE: f64 = 0.5;
/// Two changes are considered while they are at least this probable.
const TWO_LIKELY: f64 = 0.2;

/// A search for figures with scatter.
#[derive(Clone, Debug)]
pub struct Noisy {
    options: Options,
    figures: Vec<(usize, f64)>,
    skipped: BTreeSet<usize>,
    /// True for each wild figure.
    wild: Vec<bool>,
    belief: Option<Belief>,
    /// True if the ends differ, so there is a change to search for.
    searching: bool,
    /// Current result of [`Noisy::next`].
    step: Step,
}

/// Possible place of one change: between two neighbouring candidates that can be measured.
struct Gap {
    before: usize,
    after: usize,
    probability: f64,
}

impl Noisy {
    /// Starts a search.
    pub fn new(options: Options) -> Self {
        let mut search = Self {
            options: Options { candidates: options.candidates.max(2), ..options },
            figures: Vec::new(),
            skipped: BTreeSet::new(),
            wild: Vec::new(),
            belief: None,
            searching: false,
            step: Step::Measure(0),
        };
        search.step = search.decide();
        search
    }

    /// Returns the verdict on figures that were measured before, in no particular order; no runs
    /// are requested. `scatter` is the scatter of a run, as a share. There is no drift: differences
    /// between days are differences between candidates, which `layout` covers.
    pub fn of_figures(options: Options, figures: &[(usize, f64)], scatter: f64) -> Self {
        let log = |figure: f64| figure.max(f64::MIN_POSITIVE).ln();
        let figures = figures.iter().map(|&(candidate, figure)| (candidate, log(figure)));
        let options = Options { cap: 0, ..options };
        let mut search = Self { figures: figures.collect(), searching: true, ..Self::new(options) };
        let logs = || search.figures.iter().map(|figure| figure.1);
        let (least, most) =
            (logs().fold(f64::INFINITY, f64::min), logs().fold(f64::NEG_INFINITY, f64::max));
        let model = Model {
            drifts: vec![0.0],
            ..search.model(scatter, search.options.layout, CHANGE.max(most - least))
        };
        let mut belief = Belief::new(model, search.options.candidates);
        search.wild = wild_runs(&search.figures, search.last());
        let figures = search.figures.iter().zip(&search.wild);
        figures.for_each(|(&(candidate, log), &is_wild)| belief.add(candidate, log, is_wild));
        search.belief = Some(belief);
        search.step = search.decide();
        search
    }

    /// Returns the next step.
    pub fn next(&self) -> Step {
        self.step
    }

    /// Returns the number of figures so far.
    pub fn runs(&self) -> usize {
        self.figures.len()
    }

    /// Records a figure above zero.
    pub fn take(&mut self, candidate: usize, figure: f64) {
        let log = figure.max(f64::MIN_POSITIVE).ln();
        self.figures.push((candidate, log));
        let wild = wild_runs(&self.figures, self.last());
        let is_wild = wild.last().copied().unwrap_or(false);
        let is_same = wild[..wild.len() - 1] == self.wild[..];
        self.wild = wild;
        match &mut self.belief {
            // Another run shows that an earlier one was wild, or was not.
            Some(_) if !is_same => self.belief = Some(self.belief_of(self.layout())),
            Some(belief) => belief.add(candidate, log, is_wild),
            None if self.figures.len() >= 2 * ENDS => self.belief = Some(self.belief_of(0.0)),
            None => {}
        }
        let begin = if self.options.layout > 0.0 { self.evidence() } else { BEGIN };
        let is_known = self.options.known.is_some();
        let differ = |belief: &Belief| is_known || belief.evidence_of_change() >= begin.ln();
        if !self.searching && self.belief.as_ref().is_some_and(differ) {
            // Scatter and size of the change are better known now. The builds of the ends certainly
            // differ; other builds show how much of the difference is layout.
            self.searching = true;
            self.belief = Some(self.belief_of(self.options.layout));
        }
        self.step = self.decide();
    }

    /// Records that a candidate cannot be measured.
    pub fn skip(&mut self, candidate: usize) {
        self.skipped.insert(candidate);
        self.step = self.decide();
    }

    fn last(&self) -> usize {
        self.options.candidates - 1
    }

    /// Returns the standard deviation between builds, once there is a change to search for.
    fn layout(&self) -> f64 {
        if self.searching { self.options.layout } else { 0.0 }
    }

    fn of(&self, candidate: usize) -> Vec<f64> {
        self.figures.iter().filter(|figure| figure.0 == candidate).map(|figure| figure.1).collect()
    }

    /// Returns a candidate's figures without the wild ones, or all of them if most are wild.
    fn tame(&self, candidate: usize) -> Vec<f64> {
        let all = self.of(candidate);
        let figures = self.figures.iter().zip(&self.wild);
        let tame = figures.filter(|(figure, is_wild)| figure.0 == candidate && !**is_wild);
        let tame: Vec<f64> = tame.map(|(figure, _)| figure.1).collect();
        if 2 * tame.len() > all.len() { tame } else { all }
    }

    /// Returns the mean difference of the ends, with its error, and the scatter of a run at them,
    /// of logarithms.
    fn ends(&self) -> (f64, f64, f64) {
        let (good, bad) = (self.tame(0), self.tame(self.last()));
        let squares = |values: &[f64]| -> f64 {
            values.iter().map(|value| (value - mean(values)).powi(2)).sum()
        };
        let freedom = (good.len() + bad.len()) as f64 - 2.0;
        let scatter = match freedom > 0.0 {
            true => ((squares(&good) + squares(&bad)) / freedom).sqrt(),
            false => f64::NAN,
        };
        let each = (good.len() as f64).recip() + (bad.len() as f64).recip();
        (mean(&bad) - mean(&good), scatter, scatter * each.sqrt())
    }

    fn model(&self, scatter: f64, layout: f64, change: f64) -> Model {
        let scatter = scatter.max(LEAST_SCATTER);
        Model {
            scatters: SCATTERS.iter().map(|factor| factor * scatter).collect(),
            drifts: DRIFTS.to_vec(),
            layout,
            expected: self.options.known.map_or(0.0, f64::ln_1p),
            change: self.options.known.map_or(change, |known| KNOWN * known.ln_1p().abs()),
        }
    }

    fn belief_of(&self, layout: f64) -> Belief {
        let (difference, scatter, _) = self.ends();
        let least = if self.searching { 0.0 } else { CHANGE };
        let model = self.model(scatter, layout, difference.abs().max(least));
        let mut belief = Belief::new(model, self.options.candidates);
        for (&(candidate, log), &is_wild) in self.figures.iter().zip(&self.wild) {
            belief.add(candidate, log, is_wild);
        }
        belief
    }

    fn decide(&self) -> Step {
        let last = self.last();
        if self.skipped.contains(&0) || self.skipped.contains(&last) {
            return Step::Done(Ending::EndLacks);
        }
        let runs = self.figures.len();
        let Some(belief) = self.belief.as_ref().filter(|_| self.searching) else {
            let most = (self.options.cap as f64 * ENDS_SHARE) as usize;
            if runs >= most.max(2 * ENDS) {
                return Step::Done(Ending::NoStep);
            }
            return self.measure_end();
        };
        let weights = belief.weights();
        let two = weights.two();
        if weights.none >= self.options.confidence {
            return Step::Done(Ending::NoStep);
        }
        let sure = |gaps: &[Gap]| most(gaps).probability >= self.options.confidence;
        let one = self.gaps(&places(belief, &weights));
        let (first, second) = places_of_two(belief, &weights);
        let (first, second) = (self.gaps(&first), self.gaps(&second));
        let found = match two {
            two if two < TWO_LIKELY && sure(&one) => Some(Ending::Found),
            two if two >= 1.0 - TWO_LIKELY && sure(&first) && sure(&second) => Some(Ending::Two),
            _ => None,
        };
        let ends = self.of(0).len() + self.of(last).len();
        let most_ends = (self.options.cap as f64 * ENDS_SHARE) as usize;
        // With layout, this was shown before the search: other builds of the ends' programs could
        // not show it.
        let is_shown = self.options.known.is_some()
            || (self.options.layout > 0.0 && self.options.cap > 0)
            || belief.evidence_of_change() >= self.evidence().ln();
        match found {
            Some(found) if is_shown => return Step::Done(found),
            _ if !is_shown && ends >= most_ends => return Step::Done(Ending::NoStep),
            _ if runs >= self.options.cap && !is_shown => return Step::Done(Ending::NoStep),
            _ if runs >= self.options.cap => return Step::Done(Ending::Cap),
            // The place is clear, if there is a change at all.
            Some(_) => return self.measure_end(),
            None => {}
        }
        let gaps = match two > 0.5 {
            false => one,
            true if most(&first).probability < most(&second).probability => first,
            true => second,
        };
        Step::Measure(self.probe(belief, &weights, &gaps))
    }

    /// Returns the required ratio of the probabilities of a change and of none.
    fn evidence(&self) -> f64 {
        self.options.confidence / (1.0 - self.options.confidence)
    }

    /// Returns a run of an end: pairs, in random order.
    fn measure_end(&self) -> Step {
        let (good, bad) = (self.of(0).len(), self.of(self.last()).len());
        let first = self.random(good + bad).is_multiple_of(2);
        Step::Measure(if good < bad || (good == bad && first) { 0 } else { self.last() })
    }

    /// Returns the candidate whose figure gives the most information, among the measured ones and
    /// those that halve or quarter the remaining probability.
    fn probe(&self, belief: &Belief, weights: &Weights, gaps: &[Gap]) -> usize {
        let best = most(gaps);
        // Information about one change alone does not guide a search for two, nor one among
        // layouts.
        if weights.two() > 0.5 || (self.options.layout > 0.0 && best.probability > 0.5) {
            return self.halve(gaps);
        }
        let mut candidates: BTreeSet<usize> = self.figures.iter().map(|figure| figure.0).collect();
        candidates.extend([best.before, best.after]);
        let mut below = 0.0;
        for gap in gaps {
            let sum = below + gap.probability;
            if QUANTILES.iter().any(|&quantile| below < quantile && quantile <= sum) {
                candidates.extend([gap.before, gap.after]);
            }
            below = sum;
        }
        let able = |candidate: &usize| !self.skipped.contains(candidate);
        let candidates: Vec<usize> = candidates.into_iter().filter(able).collect();
        let gains = belief.informations(weights, &candidates);
        let best = (0..candidates.len()).max_by(|&i, &j| gains[i].total_cmp(&gains[j]));
        best.map_or(0, |best| candidates[best])
    }

    /// Returns the candidate in the middle of the probability, or, once one gap is more probable
    /// than all others together, a random one of its two sides. Other builds on the same side show
    /// what one build's layout hides. Every fourth run is a run of an end.
    fn halve(&self, gaps: &[Gap]) -> usize {
        let (runs, best) = (self.figures.len(), most(gaps));
        if runs.is_multiple_of(4) {
            return if (runs / 4).is_multiple_of(2) { 0 } else { self.last() };
        }
        if best.probability <= 0.5 {
            let mut below = 0.0;
            let nearest = gaps.iter().filter(|gap| gap.after != self.last()).map(|gap| {
                below += gap.probability;
                (gap.after, (below - 0.5_f64).abs())
            });
            let nearest = nearest.min_by(|a, b| a.1.total_cmp(&b.1));
            return nearest.map_or(best.after, |nearest| nearest.0);
        }
        let coin = self.random(runs);
        let able: Vec<usize> =
            (0..=self.last()).filter(|candidate| !self.skipped.contains(candidate)).collect();
        let place = able.partition_point(|&candidate| candidate < best.after);
        let away = if self.options.layout > 0.0 { (coin / 2 % 4) as usize } else { 0 };
        match coin.is_multiple_of(2) {
            true => able[(place - 1).saturating_sub(away)],
            false => able[(place + away).min(able.len() - 1)],
        }
    }

    /// Converts probabilities of candidates to probabilities of gaps between measurable candidates.
    fn gaps(&self, places: &[f64]) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let (mut before, mut probability) = (0, 0.0);
        for (after, place) in places.iter().enumerate().skip(1) {
            probability += place;
            if !self.skipped.contains(&after) {
                gaps.push(Gap { before, after, probability });
                (before, probability) = (after, 0.0);
            }
        }
        gaps
    }

    /// Returns the smallest set of gaps with the required confidence, as candidates.
    fn set(&self, places: &[f64]) -> (Vec<usize>, f64) {
        let mut gaps = self.gaps(places);
        gaps.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        let (mut set, mut sum) = (BTreeSet::new(), 0.0);
        for gap in gaps {
            if sum >= self.options.confidence {
                break;
            }
            sum += gap.probability;
            set.extend(gap.before + 1..=gap.after);
        }
        (set.into_iter().collect(), sum)
    }

    /// Returns the probability that the change came with each candidate, if there is one. With two
    /// changes it is the probability that one of them did, so the sum is two.
    pub fn probabilities(&self) -> Vec<f64> {
        let Some(belief) = &self.belief else {
            let share = 1.0 / self.last() as f64;
            let of = |candidate| if candidate == 0 { 0.0 } else { share };
            return (0..=self.last()).map(of).collect();
        };
        let weights = belief.weights();
        if weights.two() <= 0.5 {
            return places(belief, &weights);
        }
        let (first, second) = places_of_two(belief, &weights);
        first.iter().zip(second).map(|(first, second)| first + second).collect()
    }

    /// Returns the current result.
    pub fn verdict(&self) -> Verdict {
        let ending = match self.step {
            Step::Done(ending) => Some(ending),
            Step::Measure(_) => None,
        };
        let (difference, scatter, error) = self.ends();
        let mut verdict = Verdict {
            ending,
            set: (1..=self.last()).collect(),
            second: Vec::new(),
            probability: 1.0,
            change: difference.exp_m1(),
            half_width: f64::INFINITY,
            second_change: 0.0,
            ends: difference.exp_m1(),
            detectable: (1.96 + 1.28) * error,
            scatter,
            two: 0.0,
            runs: self.figures.len(),
        };
        let Some(belief) = &self.belief else { return verdict };
        let weights = belief.weights();
        verdict.two = weights.two();
        verdict.scatter = belief.scatter();
        let class = |set: &[usize]| belief.class_of(set.last().copied().unwrap_or(1));
        if verdict.two > 0.5 {
            let (first, second) = places_of_two(belief, &weights);
            let ((first, p), (second, q)) = (self.set(&first), self.set(&second));
            let (one, other) = belief.effects(class(&first), Some(class(&second)));
            verdict.probability = p.min(q);
            (verdict.set, verdict.second) = (first, second);
            verdict.change = one.mean.exp_m1();
            verdict.half_width = 1.96 * one.deviation;
            verdict.second_change = other.map_or(0.0, |other| other.mean.exp_m1());
        } else {
            let places = places(belief, &weights);
            let best = most(&self.gaps(&places)).after;
            (verdict.set, verdict.probability) = self.set(&places);
            let (effect, _) = belief.effects(belief.class_of(best), None);
            verdict.change = effect.mean.exp_m1();
            verdict.half_width = 1.96 * effect.deviation;
        }
        verdict
    }

    /// Returns a pseudorandom number that is the same whenever the search is repeated.
    fn random(&self, number: usize) -> u64 {
        // SplitMix64 (Steele, Lea and Flood 2014).
        let mut z =
            (self.options.seed.wrapping_add(number as u64 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) >> 8
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn most(gaps: &[Gap]) -> &Gap {
    // There are two ends, hence at least one gap.
    let better = |best: usize, next: usize| match gaps[next].probability > gaps[best].probability {
        true => next,
        false => best,
    };
    &gaps[(0..gaps.len()).reduce(better).unwrap_or(0)]
}

/// Returns each candidate's probability, given that there is one change.
fn places(belief: &Belief, weights: &Weights) -> Vec<f64> {
    let one: f64 = weights.one.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut places = vec![0.0];
    for (class, weight) in weights.one.iter().enumerate() {
        let (first, last) = belief.class(class);
        let share = weight / one / (last + 1 - first) as f64;
        places.extend((first..=last).map(|_| share));
    }
    places
}

/// Returns each candidate's probabilities of the first and of the second change, given that there
/// are two.
fn places_of_two(belief: &Belief, weights: &Weights) -> (Vec<f64>, Vec<f64>) {
    let two = weights.two().max(f64::MIN_POSITIVE);
    let classes = weights.one.len();
    let (mut first, mut second) = (vec![0.0; classes], vec![0.0; classes]);
    for &(a, b, weight) in &weights.two {
        first[a] += weight / two;
        second[b] += weight / two;
    }
    let spread = |of: &[f64]| {
        let mut places = vec![0.0];
        for (class, weight) in of.iter().enumerate() {
            let (first, last) = belief.class(class);
            places.extend((first..=last).map(|_| weight / (last + 1 - first) as f64));
        }
        places
    };
    (spread(&first), spread(&second))
}
