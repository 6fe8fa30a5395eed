//! Least-squares fit of the law, with bounds handled by trying each of their combinations.
//!
//! With y = ln(X / N) the law is y = ln lambda - ln D, and D is linear in sigma and kappa, even if
//! one of them (or the place of the peak) is fixed. A single routine, Levenberg and Marquardt's
//! (1963), fits all cases.

use super::ScaledRun;
use crate::linear::{Symmetric, dot};
use std::collections::BTreeSet;

/// Maximum number of steps: a few suffice if there is a minimum.
const MAX_STEPS: usize = 300;
/// Relative reduction of the sum of squares below which a step is the last.
const CONVERGED: f64 = 1e-15;

/// The runs of a sweep in the form that the fit needs.
pub(super) struct Data {
    /// N of each run.
    levels: Vec<f64>,
    /// ln(X / N) of each run.
    logs: Vec<f64>,
    /// For each run the intercept and one contrast per block except the last; the contrasts of a
    /// block sum to zero over the blocks.
    blocks: Vec<Vec<f64>>,
}

/// Fixed values of parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FixedParameters {
    pub(super) sigma: Option<f64>,
    pub(super) kappa: Option<f64>,
}

/// The curve closest to the runs, given the fixed values.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    pub(super) held: FixedParameters,
    pub(super) log_lambda: f64,
    pub(super) sigma: f64,
    pub(super) kappa: f64,
    /// Sum of the squares of the residuals, on the logarithmic scale.
    pub(super) sse: f64,
    /// Runs minus fitted parameters.
    pub(super) df: usize,
    /// Inverse of the product of the derivatives: intercept, blocks, free parameters.
    inverse: Vec<Vec<f64>>,
}

/// D = offset + columns x free parameters, per run.
struct Divisor {
    offset: Vec<f64>,
    columns: Vec<Vec<f64>>,
}

/// Result of [`Data::minimise`].
struct Minimum {
    linear: Vec<f64>,
    free: Vec<f64>,
    sse: f64,
    inverse: Vec<Vec<f64>>,
}

impl FixedParameters {
    /// Inside the bounds, on each bound, in the corners.
    pub(super) const FACES: [FixedParameters; 6] = [
        FixedParameters { sigma: None, kappa: None },
        FixedParameters { sigma: Some(0.0), kappa: None },
        FixedParameters { sigma: None, kappa: Some(0.0) },
        FixedParameters { sigma: Some(1.0), kappa: None },
        FixedParameters { sigma: Some(0.0), kappa: Some(0.0) },
        FixedParameters { sigma: Some(1.0), kappa: Some(0.0) },
    ];
}

impl Solution {
    /// Returns the level with the highest rate; `None` if the rate never falls.
    pub(super) fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }

    /// Returns the covariance of ln lambda, sigma and kappa for a variance of the residuals.
    pub(super) fn covariance(&self, variance: f64) -> [[f64; 3]; 3] {
        let free = [self.held.sigma, self.held.kappa].map(|held| held.is_none());
        let first = self.inverse.len() - free.iter().filter(|&&free| free).count();
        let kappa = first + usize::from(free[0]);
        let place = [Some(0), free[0].then_some(first), free[1].then_some(kappa)];
        place.map(|row| {
            place.map(|column| match (row, column) {
                (Some(row), Some(column)) => variance * self.inverse[row][column],
                _ => 0.0,
            })
        })
    }
}

impl Data {
    /// Creates the data from runs whose rates and levels are above 0.
    pub(super) fn of(runs: &[ScaledRun]) -> Data {
        let names: BTreeSet<u32> = runs.iter().map(|run| run.block).collect();
        let last = names.last().copied();
        let contrasts = |run: &ScaledRun| {
            let each = names.iter().rev().skip(1).map(|&block| match run.block {
                own if own == block => 1.0,
                of_run if Some(of_run) == last => -1.0,
                _ => 0.0,
            });
            std::iter::once(1.0).chain(each).collect()
        };
        Data {
            levels: runs.iter().map(|run| f64::from(run.level)).collect(),
            logs: runs.iter().map(|run| (run.pps / f64::from(run.level)).ln()).collect(),
            blocks: runs.iter().map(contrasts).collect(),
        }
    }

    /// Returns the number of parameters of intercept and blocks: the number of blocks.
    pub(super) fn block_columns(&self) -> usize {
        self.blocks.first().map_or(0, Vec::len)
    }

    /// Returns the largest level.
    pub(super) fn largest(&self) -> f64 {
        self.levels.iter().copied().fold(1.0, f64::max)
    }

    /// Returns the closest curve within the bounds, with parameters fixed as in one of
    /// `candidates`.
    pub(super) fn closest(&self, candidates: &[FixedParameters]) -> Option<Solution> {
        let allowed = |s: &Solution| (0.0..=1.0).contains(&s.sigma) && s.kappa >= 0.0;
        let solutions = candidates.iter().filter_map(|&held| self.solve(held)).filter(allowed);
        solutions.reduce(|best, next| if next.sse < best.sse { next } else { best })
    }

    /// Returns the sum of squares of the closest curve with its peak at `level`.
    pub(super) fn sse_with_peak(&self, level: f64) -> f64 {
        // kappa = (1 - sigma) / level^2, so that D stays linear in sigma.
        let pairs = |n: f64| n * (n - 1.0) / (level * level);
        let free = Divisor {
            offset: self.levels.iter().map(|&n| 1.0 + pairs(n)).collect(),
            columns: vec![self.levels.iter().map(|&n| n - 1.0 - pairs(n)).collect()],
        };
        let at = |sigma: f64| Divisor {
            offset: free.offset.iter().zip(&free.columns[0]).map(|(o, c)| o + sigma * c).collect(),
            columns: Vec::new(),
        };
        if let Some(within) = self.minimise(&free).filter(|m| (0.0..=1.0).contains(&m.free[0])) {
            return within.sse;
        }
        let bounds = [at(0.0), at(1.0)].map(|divisor| self.minimise(&divisor));
        bounds.iter().flatten().map(|minimum| minimum.sse).fold(f64::INFINITY, f64::min)
    }

    /// Returns the sum of squares around each level's own mean, after removing block effects, and
    /// its degrees of freedom; `None` if blocks and levels cannot be separated.
    pub(super) fn level_means(&self) -> Option<(f64, usize)> {
        let mut distinct = self.levels.clone();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        let rows: Vec<Vec<f64>> = self
            .blocks
            .iter()
            .zip(&self.levels)
            .map(|(block, level)| {
                let indicators = distinct.iter().map(|l| if l == level { 1.0 } else { 0.0 });
                indicators.chain(block.iter().skip(1).copied()).collect()
            })
            .collect();
        let df = self.logs.len().checked_sub(rows.first()?.len())?;
        let fitted = Symmetric::of_products(&rows).solve(&right_side(&rows, &self.logs))?;
        let residual = |(row, y): (&Vec<f64>, &f64)| (y - dot(row, &fitted)).powi(2);
        Some((rows.iter().zip(&self.logs).map(residual).sum(), df))
    }

    fn solve(&self, held: FixedParameters) -> Option<Solution> {
        let linear: Vec<f64> = self.levels.iter().map(|n| n - 1.0).collect();
        let pairs: Vec<f64> = self.levels.iter().map(|n| n * (n - 1.0)).collect();
        let mut divisor = Divisor { offset: vec![1.0; linear.len()], columns: Vec::new() };
        for (held, column) in [(held.sigma, linear), (held.kappa, pairs)] {
            match held {
                Some(value) => {
                    for (offset, x) in divisor.offset.iter_mut().zip(&column) {
                        *offset += value * x;
                    }
                }
                None => divisor.columns.push(column),
            }
        }
        let minimum = self.minimise(&divisor)?;
        let mut free = minimum.free.iter().copied();
        let sigma = held.sigma.or_else(|| free.next())?;
        let kappa = held.kappa.or_else(|| free.next())?;
        let df = self.logs.len().checked_sub(minimum.linear.len() + minimum.free.len())?;
        let log_lambda = *minimum.linear.first()?;
        let (sse, inverse) = (minimum.sse, minimum.inverse);
        Some(Solution { held, log_lambda, sigma, kappa, sse, df, inverse })
    }

    /// Returns the closest curve regardless of bounds; `None` if there is none or its parameters
    /// cannot be separated.
    fn minimise(&self, divisor: &Divisor) -> Option<Minimum> {
        let mut free = self.start(divisor);
        let mut linear = self.linear_part(&divisor.at(&free)?)?;
        let mut damping = 1e-3;
        let mut residuals = self.residuals(&linear, &divisor.at(&free)?);
        for _ in 0..MAX_STEPS {
            let sse = dot(&residuals, &residuals);
            let rows = self.derivatives(divisor, &free)?;
            let products = Symmetric::of_products(&rows);
            let gradient = right_side(&rows, &residuals);
            // The reduction that a full step promises decides whether to take another.
            let full = products.solve(&gradient)?;
            let promised = dot(&full, &gradient);
            if promised <= CONVERGED * sse + f64::MIN_POSITIVE || sse < 1e-28 {
                let split = linear.len();
                let (linear, free) = (moved(&linear, &full[..split]), moved(&free, &full[split..]));
                return Some(Minimum { linear, free, sse, inverse: products.inverse()? });
            }
            let step = products.damped(damping).solve(&gradient)?;
            let split = linear.len();
            let next_linear = moved(&linear, &step[..split]);
            let next_free = moved(&free, &step[split..]);
            let next = divisor.at(&next_free).map(|d| self.residuals(&next_linear, &d));
            match next {
                Some(next) if dot(&next, &next) < sse => {
                    (linear, free, residuals) = (next_linear, next_free, next);
                    damping *= 0.1;
                }
                // As close as floating-point numbers permit.
                _ if damping > 1e12 && promised <= 1e-9 * sse => {
                    return Some(Minimum { linear, free, sse, inverse: products.inverse()? });
                }
                _ if damping > 1e12 => return None,
                _ => damping *= 10.0,
            }
        }
        None
    }

    /// Returns a nearby starting point: N / X is linear in 1 / lambda, sigma / lambda and kappa /
    /// lambda. Zero if that is not possible.
    fn start(&self, divisor: &Divisor) -> Vec<f64> {
        let rows: Vec<Vec<f64>> = (0..self.logs.len())
            .map(|i| {
                // Relative to the mean, to prevent overflow of the products.
                let rate = (self.logs[i] - self.logs[0]).exp();
                let columns = divisor.columns.iter().map(|column| rate * column[i]);
                std::iter::once(rate * divisor.offset[i]).chain(columns).collect()
            })
            .collect();
        let ones = vec![1.0; rows.len()];
        let zero = vec![0.0; divisor.columns.len()];
        let Some(solved) = Symmetric::of_products(&rows).solve(&right_side(&rows, &ones)) else {
            return zero;
        };
        let free: Vec<f64> = solved[1..].iter().map(|value| value / solved[0]).collect();
        if solved[0] > 0.0 && divisor.at(&free).is_some() { free } else { zero }
    }

    /// Returns intercept and blocks, given D.
    fn linear_part(&self, divisors: &[f64]) -> Option<Vec<f64>> {
        let y: Vec<f64> = self.logs.iter().zip(divisors).map(|(y, d)| y + d.ln()).collect();
        Symmetric::of_products(&self.blocks).solve(&right_side(&self.blocks, &y))
    }

    fn residuals(&self, linear: &[f64], divisors: &[f64]) -> Vec<f64> {
        let each = self.logs.iter().zip(&self.blocks).zip(divisors);
        each.map(|((y, row), d)| y - dot(row, linear) + d.ln()).collect()
    }

    /// Returns the derivatives of the fitted logarithms, one row per run.
    fn derivatives(&self, divisor: &Divisor, free: &[f64]) -> Option<Vec<Vec<f64>>> {
        let divisors = divisor.at(free)?;
        let row = |(i, block): (usize, &Vec<f64>)| {
            let free = divisor.columns.iter().map(|column| -column[i] / divisors[i]);
            block.iter().copied().chain(free).collect()
        };
        Some(self.blocks.iter().enumerate().map(row).collect())
    }
}

impl Divisor {
    /// Returns D of each run; `None` if one isn't above 0.
    fn at(&self, free: &[f64]) -> Option<Vec<f64>> {
        let each = self.offset.iter().enumerate().map(|(i, offset)| {
            offset + self.columns.iter().zip(free).map(|(column, f)| f * column[i]).sum::<f64>()
        });
        let divisors: Vec<f64> = each.collect();
        divisors.iter().all(|&d| d.is_finite() && d > 0.0).then_some(divisors)
    }
}

fn moved(from: &[f64], by: &[f64]) -> Vec<f64> {
    from.iter().zip(by).map(|(a, b)| a + b).collect()
}

/// Returns the transposed rows times a vector.
fn right_side(rows: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let width = rows.first().map_or(0, Vec::len);
    (0..width).map(|j| rows.iter().zip(y).map(|(row, y)| row[j] * y).sum()).collect()
}
