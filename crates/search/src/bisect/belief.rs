//! Posterior of the place of the change, given the figures.
//!
//! The logarithm of a run's figure is `level + change x [the candidate has it] + walk + build +
//! noise`, all of them normal. The level is unknown, the laboratory's walk is random from run to
//! run, and `build` is the effect of a candidate's memory layout on all of its runs. The size of
//! the change is integrated out in closed form, the scatter of the noise over a grid.
//!
//! Candidates between two measured ones cannot be distinguished, so the likelihood is computed once
//! per *class* of such candidates. A run adds one row to a Cholesky factor and one number to each
//! class: thousands of candidates cost no more than a few.

/// Assumptions about the figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Standard deviations of a run that are considered possible, of a logarithm.
    pub scatters: Vec<f64>,
    /// Steps of the laboratory's random walk from run to run that are considered possible, in units
    /// of the scatter.
    pub drifts: Vec<f64>,
    /// Standard deviation between builds of the same program, of a logarithm.
    pub layout: f64,
    /// Mean of the change's prior, of a logarithm; 0 unless its size is known.
    pub expected: f64,
    /// Standard deviation of that prior.
    pub change: f64,
}

/// Prior weights of no change, one and two changes.
const NONE: f64 = 0.05;
const ONE: f64 = 0.95;
const TWO: f64 = 0.05;

/// Exponent of the scatter's prior, over a grid of equal ratios: larger scatters have more weight.
/// With 0, too small and too large scatters have equal weight, but only those that are too small
/// name a culprit too early.
const CAUTION: f64 = 2.0;

/// Scatter of a wild run, in units of the other runs' scatter.
const WILD: f64 = 10.0;

/// The runs under one scatter and one drift.
#[derive(Clone, Debug)]
struct Layer {
    scatter: f64,
    drift: f64,
    prior: f64,
    /// Rows of the Cholesky factor of the covariance.
    rows: Vec<Vec<f64>>,
    log_det: f64,
    /// The whitened figures, and the sum of their squares.
    y: Vec<f64>,
    yy: f64,
    /// Whitened indicator of each class.
    x: Vec<Vec<f64>>,
    xy: Vec<f64>,
    xx: Vec<Vec<f64>>,
}

/// Normal posterior of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effect {
    /// Mean, of a logarithm.
    pub(super) mean: f64,
    /// Standard deviation, of a logarithm.
    pub(super) deviation: f64,
}

/// Posterior of the place of the change.
#[derive(Clone, Debug)]
pub struct Belief {
    model: Model,
    /// Measured candidates, ascending: class `i` contains changes after `measured[i]` and not after
    /// `measured[i + 1]`.
    measured: Vec<usize>,
    runs: Vec<usize>,
    first: f64,
    layers: Vec<Layer>,
}

/// Probabilities of one change per class, of two changes per pair of classes, and of no change.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub(super) none: f64,
    pub(super) one: Vec<f64>,
    pub(super) two: Vec<(usize, usize, f64)>,
    /// Probability of each scatter and drift on the grid.
    pub(super) layers: Vec<f64>,
}

impl Weights {
    pub(super) fn two(&self) -> f64 {
        self.two.iter().map(|two| two.2).sum()
    }
}

impl Belief {
    /// Creates a belief about `candidates` in a row, without figures.
    pub fn new(model: Model, candidates: usize) -> Self {
        let least = model.scatters.first().copied().unwrap_or(1.0);
        let grid = model
            .scatters
            .iter()
            .flat_map(|&scatter| model.drifts.iter().map(move |&drift| (scatter, drift)));
        let layers = grid
            .map(|(scatter, drift)| Layer {
                scatter,
                drift,
                prior: CAUTION * (scatter / least).ln(),
                rows: Vec::new(),
                log_det: 0.0,
                y: Vec::new(),
                yy: 0.0,
                x: vec![Vec::new()],
                xy: vec![0.0],
                xx: vec![vec![0.0]],
            })
            .collect();
        Self { model, measured: vec![0, candidates - 1], runs: Vec::new(), first: 0.0, layers }
    }

    /// Adds the logarithm of a run's figure. A wild run has ten times the scatter.
    pub fn add(&mut self, candidate: usize, log: f64, is_wild: bool) {
        if self.runs.is_empty() {
            self.first = log;
        }
        if let Err(place) = self.measured.binary_search(&candidate) {
            self.measured.insert(place, candidate);
            for layer in &mut self.layers {
                layer.split(place - 1);
            }
        }
        let y = log - self.first;
        let has: Vec<bool> = self.measured[1..].iter().map(|&end| candidate >= end).collect();
        for layer in &mut self.layers {
            layer.add(&self.model, &self.runs, (candidate, is_wild), y, &has);
        }
        self.runs.push(candidate);
    }

    /// Returns the first and the last candidate of class `index`.
    pub(super) fn class(&self, index: usize) -> (usize, usize) {
        (self.measured[index] + 1, self.measured[index + 1])
    }

    /// Returns the class of a change that came with `candidate`.
    pub(super) fn class_of(&self, candidate: usize) -> usize {
        self.measured.partition_point(|&measured| measured < candidate) - 1
    }

    fn count(&self, index: usize) -> f64 {
        (self.measured[index + 1] - self.measured[index]) as f64
    }

    /// Returns the normalised posterior.
    pub(super) fn weights(&self) -> Weights {
        let classes = self.measured.len() - 1;
        let places = (self.measured[classes] - self.measured[0]) as f64;
        let pairs = places * (places - 1.0) / 2.0;
        let precision = self.model.change.powi(-2);
        let mut logs: Vec<(usize, Kind, f64)> = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let base = layer.base() + layer.prior;
            logs.push((index, Kind::None, base + NONE.ln()));
            for a in 0..classes {
                let prior = (ONE * self.count(a) / places).ln();
                logs.push((
                    index,
                    Kind::One(a),
                    base + layer.gain_one(a, precision, self.model.expected) + prior,
                ));
                for b in a..classes {
                    let ways = match a == b {
                        true => self.count(a) * (self.count(a) - 1.0) / 2.0,
                        false => self.count(a) * self.count(b),
                    };
                    if ways > 0.0 {
                        let prior = (TWO * ways / pairs).ln();
                        let gain = layer.gain_two(a, b, precision);
                        logs.push((index, Kind::Two(a, b), base + gain + prior));
                    }
                }
            }
        }
        let largest = logs.iter().map(|log| log.2).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logs.iter().map(|log| (log.2 - largest).exp()).sum();
        let mut weights = Weights {
            none: 0.0,
            one: vec![0.0; classes],
            two: Vec::new(),
            layers: vec![0.0; self.layers.len()],
        };
        let mut two = vec![0.0; classes * classes];
        for (index, kind, log) in logs {
            let weight = (log - largest).exp() / total;
            weights.layers[index] += weight;
            match kind {
                Kind::None => weights.none += weight,
                Kind::One(a) => weights.one[a] += weight,
                Kind::Two(a, b) => two[a * classes + b] += weight,
            }
        }
        weights.two = (two.into_iter().enumerate())
            .map(|(index, weight)| (index / classes, index % classes, weight))
            .filter(|two| two.2 > 0.0)
            .collect();
        weights
    }

    /// Returns the logarithm of the ratio of the figures' probabilities with one change somewhere
    /// and with none.
    pub(super) fn evidence_of_change(&self) -> f64 {
        let weights = self.weights();
        let one: f64 = weights.one.iter().sum();
        (one / ONE).max(f64::MIN_POSITIVE).ln() - (weights.none / NONE).max(f64::MIN_POSITIVE).ln()
    }

    fn most_probable(&self, weights: &Weights) -> &Layer {
        let better = |&i: &usize, &j: &usize| weights.layers[i].total_cmp(&weights.layers[j]);
        // A grid has at least one point.
        &self.layers[(0..self.layers.len()).max_by(better).unwrap_or(0)]
    }

    /// Returns the information that another run of each of `candidates` gives about the place of
    /// one change: half of the logarithm of `1 + disagreement of the places about its figure / its
    /// scatter`, both as variances, under the most probable scatter. A figure that the places agree
    /// on, such as an end's without drift, gives no information.
    pub(super) fn informations(&self, weights: &Weights, candidates: &[usize]) -> Vec<f64> {
        let layer = self.most_probable(weights);
        let precision = self.model.change.powi(-2);
        let mut common = None;
        let of = |candidate: usize| {
            let builds = self.model.layout > 0.0;
            let row = match &common {
                Some(row) if !builds => row,
                _ => common.insert(layer.row(&self.model, &self.runs, candidate)),
            };
            let level = dot(row, &layer.y);
            let noise = layer.rest(&self.model, self.runs.len(), row);
            let (mut sum, mut mean, mut square, mut scatter) = (0.0, 0.0, 0.0, 0.0);
            let mut add = |weight: f64, share: f64, spread: f64| {
                sum += weight;
                mean += weight * share;
                square += weight * share * share;
                scatter += weight * spread;
            };
            add(weights.none, level, noise);
            for (class, &weight) in weights.one.iter().enumerate() {
                let (first, last) = self.class(class);
                let precise = layer.xx[class][class] + precision;
                let change = (layer.xy[class] + self.model.expected * precision) / precise;
                let known = dot(row, &layer.x[class]);
                let has = (candidate + 1).clamp(first, last + 1) - first;
                let has = has as f64 / (last + 1 - first) as f64;
                for (part, indicator) in [(has, 1.0), (1.0 - has, 0.0)] {
                    let open: f64 = indicator - known;
                    add(weight * part, level + change * open, noise + open * open / precise);
                }
            }
            let (mean, square) = (mean / sum, square / sum);
            ((square - mean * mean).max(0.0) / (scatter / sum)).ln_1p() / 2.0
        };
        candidates.iter().copied().map(of).collect()
    }

    /// Returns the scatter of a run: the posterior's mean.
    pub fn scatter(&self) -> f64 {
        let weights = self.weights();
        (weights.layers.iter())
            .zip(&self.layers)
            .map(|(weight, layer)| weight * layer.scatter)
            .sum()
    }

    /// Returns the changes that came with class `a` and, if there are two, `b`, under the most
    /// probable scatter.
    pub(super) fn effects(&self, a: usize, b: Option<usize>) -> (Effect, Option<Effect>) {
        let weights = self.weights();
        let layer = self.most_probable(&weights);
        let precision = self.model.change.powi(-2);
        let Some(b) = b else {
            let total = layer.xx[a][a] + precision;
            return (
                Effect {
                    mean: (layer.xy[a] + self.model.expected * precision) / total,
                    deviation: total.sqrt().recip(),
                },
                None,
            );
        };
        let (aa, bb, ab) = layer.precisions(a, b, precision);
        let det = aa * bb - ab * ab;
        let first = Effect {
            mean: (bb * layer.xy[a] - ab * layer.xy[b]) / det,
            deviation: (bb / det).sqrt(),
        };
        let second = Effect {
            mean: (aa * layer.xy[b] - ab * layer.xy[a]) / det,
            deviation: (aa / det).sqrt(),
        };
        (first, Some(second))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    None,
    One(usize),
    Two(usize, usize),
}

impl Layer {
    /// Splits a class into two, which all runs so far treat alike.
    fn split(&mut self, class: usize) {
        self.x.insert(class, self.x[class].clone());
        self.xy.insert(class, self.xy[class]);
        for row in &mut self.xx {
            row.insert(class, row[class]);
        }
        self.xx.insert(class, self.xx[class].clone());
    }

    /// Returns the covariance of two runs without the noise; `old` came first or is the same run.
    fn covariance(&self, model: &Model, old: usize, same: bool) -> f64 {
        // The level is measured from the first run, which includes noise, drift and the change.
        let level = 400.0 * (self.scatter.powi(2) + model.change.powi(2) + model.layout.powi(2));
        let build = if same { model.layout.powi(2) } else { 0.0 };
        level + (self.drift * self.scatter).powi(2) * old as f64 + build
    }

    /// Returns the next row of the Cholesky factor, without its diagonal.
    fn row(&self, model: &Model, runs: &[usize], candidate: usize) -> Vec<f64> {
        let mut row: Vec<f64> = Vec::with_capacity(runs.len() + 1);
        for (old, &other) in runs.iter().enumerate() {
            let known = dot(&row, &self.rows[old]);
            let covariance = self.covariance(model, old, other == candidate);
            row.push((covariance - known) / self.rows[old][old]);
        }
        row
    }

    /// Returns the variance of the next figure, given the earlier runs.
    fn rest(&self, model: &Model, new: usize, row: &[f64]) -> f64 {
        let rest = self.covariance(model, new, true) + self.scatter.powi(2) - dot(row, row);
        rest.max(1e-6 * self.scatter.powi(2))
    }

    fn add(
        &mut self,
        model: &Model,
        runs: &[usize],
        (candidate, is_wild): (usize, bool),
        y: f64,
        has: &[bool],
    ) {
        let mut row = self.row(model, runs, candidate);
        let wild = if is_wild { (WILD.powi(2) - 1.0) * self.scatter.powi(2) } else { 0.0 };
        let diagonal = (self.rest(model, runs.len(), &row) + wild).sqrt();
        self.log_det += diagonal.ln();
        let whiten = |value: f64, before: &[f64]| (value - dot(&row, before)) / diagonal;
        let white = whiten(y, &self.y);
        let new_x: Vec<f64> =
            (self.x.iter().zip(has)).map(|(x, &has)| whiten(f64::from(u8::from(has)), x)).collect();
        for (a, &value) in new_x.iter().enumerate() {
            self.x[a].push(value);
            self.xy[a] += value * white;
            for (b, &other) in new_x.iter().enumerate() {
                self.xx[a][b] += value * other;
            }
        }
        self.y.push(white);
        self.yy += white * white;
        row.push(diagonal);
        self.rows.push(row);
    }

    /// Returns the logarithm of the likelihood without a change, up to a constant.
    fn base(&self) -> f64 {
        -self.log_det - self.yy / 2.0
    }

    /// Returns the contribution of one change of unknown size.
    fn gain_one(&self, a: usize, precision: f64, expected: f64) -> f64 {
        let total = self.xx[a][a] + precision;
        let sum = self.xy[a] + expected * precision;
        let explained = sum.powi(2) / total - expected.powi(2) * precision;
        (explained - (total / precision).ln()) / 2.0
    }

    fn precisions(&self, a: usize, b: usize, precision: f64) -> (f64, f64, f64) {
        (self.xx[a][a] + precision, self.xx[b][b] + precision, self.xx[a][b])
    }

    /// Returns the contribution of two changes.
    fn gain_two(&self, a: usize, b: usize, precision: f64) -> f64 {
        let (aa, bb, ab) = self.precisions(a, b, precision);
        let det = aa * bb - ab * ab;
        let (xa, xb) = (self.xy[a], self.xy[b]);
        let explained = (bb * xa * xa - 2.0 * ab * xa * xb + aa * xb * xb) / det;
        (explained - (det / precision.powi(2)).ln()) / 2.0
    }
}

/// Returns the sum of products, up to the end of the shorter slice.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
