//! Exact bounds for Student's t with looks far apart.
//!
//! [`student`](super::student) advances block by block; this module processes all blocks between
//! two looks in one step. The new blocks have their own direction, independent of their share of
//! the sum of squares, sin(share)^2, which is a beta variable:
//!
//! ```text
//! sqrt(n + m) sin(angle') = sqrt(n) sin(angle) cos(share) + sqrt(m) sin(theirs) sin(share)
//! ```
//!
//! After some blocks all of these densities are smooth, so few nodes integrate them: doubling their
//! number changes bounds by a relative 1e-6 at most, and the time does not grow with the number of
//! blocks.
//!
//! Out of scope: looks after few blocks or close to one another, whose densities have corners.

use super::student::{
    GaussLegendre, SMALLEST_SPEND, angle_of_tail, end_of_density, ln_integral_of_cosine, t_of_angle,
};
use std::f64::consts::FRAC_PI_2;

/// Minimum number of blocks before the first look and between looks for smooth densities.
const FEWEST: u32 = 16;
/// Density of shares, relative to its peak, that is neglected.
const NEGLIGIBLE: f64 = 1e-10;

/// Numbers of nodes for the sums over angles, tails and shares.
#[derive(Clone, Copy)]
struct Nodes {
    angles: usize,
    tails: usize,
    shares: usize,
}

const NODES: Nodes = Nodes { angles: 32, tails: 20, shares: 16 };

/// True if looks after `at` blocks are far enough apart.
pub(super) fn suits(at: &[u32]) -> bool {
    let far = |pair: &[u32]| pair[1] - pair[0] >= FEWEST.max(pair[0] / 8);
    at.first().is_some_and(|&first| first >= FEWEST) && at.windows(2).all(far)
}

/// Returns the bounds of |t| at looks after `at` blocks, as
/// [`student::bounds`](super::student::bounds).
pub(super) fn bounds(at: &[u32], spent: &[f64]) -> Vec<f64> {
    bounds_by(at, spent, NODES)
}

fn bounds_by(at: &[u32], spent: &[f64], nodes: Nodes) -> Vec<f64> {
    let angles = GaussLegendre::of(nodes.angles);
    let tails = GaussLegendre::of(nodes.tails);
    let mut bounds = Vec::with_capacity(spent.len());
    let mut leap: Option<Transition> = None;
    let mut spent_before = 0.0;
    for (look, (&blocks, &by_now)) in at.iter().zip(spent).enumerate() {
        let increment = by_now - spent_before;
        let never = increment < SMALLEST_SPEND;
        let angle = match &leap {
            _ if never => FRAC_PI_2,
            None => angle_of_tail(increment, blocks),
            Some(leap) => leap.bound_for(increment, &tails),
        };
        bounds.push(if never { f64::INFINITY } else { t_of_angle(angle, blocks) });
        if !never {
            spent_before = by_now;
        }
        let Some(next) = at.get(look + 1).filter(|_| look + 1 < spent.len()) else { break };
        let density = |x: f64| match &leap {
            None => first_density(x, blocks),
            Some(leap) => leap.density(x),
        };
        // The paths that haven't crossed.
        let paths = angles.between(0.0, angle.min(end_of_density(blocks)));
        let paths = paths.map(|(x, weight)| (x.sin(), weight * density(x))).collect();
        leap = Some(Transition::new(paths, blocks, next - blocks, nodes.shares));
    }
    bounds
}

/// Returns the density of the angle's magnitude after `blocks` blocks without a look.
fn first_density(angle: f64, blocks: u32) -> f64 {
    let power = f64::from(blocks) - 2.0;
    2.0 * (power * angle.cos().ln() - ln_integral_of_cosine(power)).exp()
}

/// Transition from one look to the next.
struct Transition {
    /// Blocks after the transition.
    blocks: u32,
    /// Sine of the angle before it, and the probability of paths there.
    paths: Vec<(f64, f64)>,
    /// Factors of the previous sine and of the new blocks' sine for each share, and its weight.
    shares: Vec<[f64; 3]>,
    /// The density of the new blocks' sine is (1 - sine^2) to this power.
    power: f64,
    /// Squared sine at which the density becomes negligible.
    end_squared: f64,
}

impl Transition {
    fn new(paths: Vec<(f64, f64)>, before: u32, several: u32, shares: usize) -> Transition {
        let (n, m) = (f64::from(before), f64::from(several));
        let norm = (-ln_integral_of_cosine(m - 2.0)).exp();
        let shares = weighted_shares(n, m, shares).into_iter().map(|(share, weight)| {
            let across = (m / (n + m)).sqrt() * share.sin();
            [(n / (n + m)).sqrt() * share.cos(), across, norm * weight / across]
        });
        Transition {
            blocks: before + several,
            paths,
            shares: shares.collect(),
            power: 0.5 * (m - 3.0),
            end_squared: end_of_density(several).sin().powi(2),
        }
    }

    /// Returns the density of the angle's magnitude after the transition.
    fn density(&self, angle: f64) -> f64 {
        let (sin, cos) = angle.sin_cos();
        let mut density = 0.0;
        for &[along, across, weight] in &self.shares {
            let mut paths = 0.0;
            for &(from, mass) in &self.paths {
                for side in [along * from, -along * from] {
                    let squared = ((sin - side) / across).powi(2);
                    if squared < self.end_squared {
                        paths += mass * (self.power * (-squared).ln_1p()).exp();
                    }
                }
            }
            density += weight * paths;
        }
        density * cos
    }

    /// Returns the bound that paths exceed with a probability of `increment`.
    fn bound_for(&self, increment: f64, rule: &GaussLegendre) -> f64 {
        let end = end_of_density(self.blocks);
        // Starting as if there were no earlier looks gives a value that is too high. The logarithm
        // of the probability is concave, so Newton's steps descend to the root and not beyond it.
        let mut bound = angle_of_tail(increment, self.blocks);
        for _ in 0..50 {
            let beyond = rule.between(bound, end.max(1.5 * bound).min(FRAC_PI_2));
            let chance: f64 = beyond.map(|(x, weight)| weight * self.density(x)).sum();
            let excess = increment.ln() - chance.max(1e-300).ln();
            let step = excess * chance / self.density(bound).max(1e-300);
            bound -= step;
            if step.abs() < 1e-10 * bound {
                break;
            }
        }
        bound
    }
}

/// Returns angles whose squared sine is the share that `m` blocks have of the sum of squares of `n
/// + m`: beta with m/2 and n/2. Functions that vanish at both ends are best summed evenly.
fn weighted_shares(n: f64, m: f64, nodes: usize) -> Vec<(f64, f64)> {
    let ln_density = |angle: f64| (m - 1.0) * angle.sin().ln() + (n - 1.0) * angle.cos().ln();
    let peak = ((m - 1.0) / (n - 1.0)).sqrt().atan();
    let relative = |angle: f64| ln_density(angle) - ln_density(peak);
    let end = |mut beyond: f64| {
        let mut within = peak;
        for _ in 0..40 {
            let middle = 0.5 * (within + beyond);
            match relative(middle) > NEGLIGIBLE.ln() {
                true => within = middle,
                false => beyond = middle,
            }
        }
        beyond
    };
    let (from, to) = (end(0.0), end(FRAC_PI_2));
    let angle = |i: usize| from + (to - from) * (i as f64 + 0.5) / nodes as f64;
    let total: f64 = (0..nodes).map(|i| relative(angle(i)).exp()).sum();
    (0..nodes).map(|i| (angle(i), relative(angle(i)).exp() / total)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::student;
    use super::*;

    /// Looks, and the level spent by each.
    const CASES: [([u32; 5], [f64; 5]); 4] = [
        ([20, 40, 60, 80, 100], [1e-6, 0.0008, 0.0076, 0.0244, 0.05]),
        ([16, 32, 48, 70, 90], [0.001, 0.002, 0.02, 0.05, 0.1]),
        ([100, 116, 140, 300, 340], [1e-15, 1e-5, 1e-4, 0.005, 0.01]),
        ([400, 800, 1200, 1600, 2000], [1e-6, 0.0008, 0.0076, 0.0244, 0.05]),
    ];

    #[test]
    fn bounds_match_block_by_block_bounds() {
        for (at, spent) in &CASES[..2] {
            let (ours, known) = (bounds(at, spent), student::bounds(at, spent));
            for (ours, known) in ours.iter().zip(&known) {
                assert!((ours / known - 1.0).abs() < 2e-4, "{at:?}: {ours} is not {known}");
            }
        }
    }

    #[test]
    fn more_nodes_do_not_change_bounds() {
        for (at, spent) in &CASES {
            assert!(suits(at), "{at:?}");
            let ours = bounds(at, spent);
            let Nodes { angles, tails, shares } = NODES;
            let finer = Nodes { angles: 2 * angles, tails: 2 * tails, shares: 2 * shares };
            for (ours, finer) in ours.iter().zip(bounds_by(at, spent, finer)) {
                let same = *ours == finer || (ours / finer - 1.0).abs() < 1e-6;
                assert!(same, "{at:?}: {ours} is not {finer}");
            }
        }
    }

    #[test]
    fn close_looks_are_not_suitable() {
        for at in [&[15, 40][..], &[20, 35], &[400, 440], &[]] {
            assert!(!suits(at), "{at:?}");
        }
    }
}
