//! Exact bounds for repeated looks at Student's t.
//!
//! Without an effect a t statistic does not depend on the scale of its data, so by Basu's theorem
//! (1955) the statistics of the first n blocks are independent of the sum of squares of those
//! blocks. Hence the direction of the blocks, sin(angle) = sum / sqrt(n sum of squares) with t =
//! sqrt(n - 1) tan(angle), is a Markov chain in n: the next block turns it by
//!
//! ```text
//! sqrt(n + 1) sin(angle') = sqrt(n) sin(angle) cos(turn) + sin(turn),
//! tan(turn) = next block / sqrt(sum of squares),  density ~ cos(turn)^(n - 1)
//! ```
//!
//! and crossing probabilities are computed one dimension at a time as for the normal distribution
//! (Armitage, McPherson and Rowe, 1969, JRSS A 132), the exact calculation that Jennison and
//! Turnbull describe for t tests (1991, Biometrika 78). The grid is the only approximation.
//!
//! Out of scope: one-sided alternatives, bounds that differ by side. Distant looks are handled in
//! `sparse_looks.rs`.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::gamma::ln_gamma;
use std::f64::consts::{FRAC_PI_2, PI};

/// Increments of probability below this aren't spent at their look: the bound there is infinite,
/// and the next look spends them.
pub(super) const SMALLEST_SPEND: f64 = 1e-13;
/// Density, relative to its peak, below which the grid ends.
const NEGLIGIBLE: f64 = 1e-12;

/// Returns bounds of |t| at looks after `at` blocks (ascending, from 2 on) such that the
/// probability of having crossed one by then is `spent` (ascending) without an effect; one bound
/// per probability.
pub(super) fn bounds(at: &[u32], spent: &[f64]) -> Vec<f64> {
    bounds_by(at, spent, Grid::for_looks(at))
}

fn bounds_by(at: &[u32], spent: &[f64], grid: Grid) -> Vec<f64> {
    debug_assert!(spent.len() <= at.len() && at.windows(2).all(|pair| pair[0] < pair[1]));
    let rule = GaussLegendre::of(grid.turns);
    let mut bounds = Vec::with_capacity(spent.len());
    let mut paths: Option<Paths> = None;
    let mut spent_before = 0.0;
    for (look, (&blocks, &by_now)) in at.iter().zip(spent).enumerate() {
        let increment = by_now - spent_before;
        let never = increment < SMALLEST_SPEND;
        // The bound is between the one that would spend everything here and the one that would
        // spend only the increment, as if there were no earlier looks.
        let narrowest = if never { FRAC_PI_2 } else { angle_of_tail(increment, blocks) };
        let angle = match &mut paths {
            None => narrowest,
            Some(paths) => {
                paths.advance_until(blocks - 1, &rule);
                if never {
                    FRAC_PI_2
                } else {
                    paths.bound_for(increment, angle_of_tail(by_now, blocks), narrowest)
                }
            }
        };
        bounds.push(if never { f64::INFINITY } else { t_of_angle(angle, blocks) });
        if !never {
            spent_before = by_now;
        }
        if look + 1 < spent.len() {
            paths = Some(match paths {
                None => Paths::starting(blocks, angle, grid.intervals),
                Some(paths) => paths.past_look(angle, &rule),
            });
        }
    }
    bounds
}

/// Resolution of the integrals.
#[derive(Clone, Copy)]
struct Grid {
    /// Number of intervals between angles; even.
    intervals: usize,
    /// Nodes of the quadrature over a turn.
    turns: usize,
}

impl Grid {
    /// A block moves the angle by about 1/n, and the grid spans 7 / sqrt(n), so the number of
    /// intervals grows with sqrt(n). Few blocks have consecutive looks, whose crossing
    /// probabilities have corners. Doubling the resolution changes bounds by less than a relative
    /// 1e-4, or 1e-3 if almost nothing is spent.
    fn for_looks(at: &[u32]) -> Grid {
        let most = f64::from(at.last().copied().unwrap_or(2));
        let half = (12.0 * most.sqrt()).max(3000.0 / most).max(150.0).ceil();
        Grid { intervals: 2 * half as usize, turns: (1000.0 / most).max(32.0) as usize }
    }
}

/// Paths that haven't crossed a bound yet, as masses on an even grid of the angle's magnitude: sums
/// over them integrate every smooth function.
struct Paths {
    blocks: u32,
    /// Distance between nodes; the first node is at 0.
    step: f64,
    masses: Vec<f64>,
}

impl Paths {
    /// Returns the paths after `blocks` blocks with a look only after the last.
    fn starting(blocks: u32, bound: f64, intervals: usize) -> Paths {
        let power = f64::from(blocks) - 2.0;
        let step = bound / intervals as f64;
        let scale = 2.0 * (-ln_integral_of_cosine(power)).exp() * step / 3.0;
        let masses = (0..=intervals)
            .map(|i| {
                let simpson = match i {
                    0 => 1.0,
                    i if i == intervals => 1.0,
                    i if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                scale * simpson * (i as f64 * step).cos().powf(power)
            })
            .collect();
        Paths { blocks, step, masses }
    }

    /// Returns the angle after another block.
    fn turned(&self, sin_angle: f64, sin_turn: f64, cos_turn: f64) -> f64 {
        let n = f64::from(self.blocks);
        let sin = (n.sqrt() * sin_angle * cos_turn + sin_turn) / (n + 1.0).sqrt();
        sin.clamp(-1.0, 1.0).asin()
    }

    fn nodes(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.masses.iter().enumerate().map(|(i, &mass)| ((i as f64 * self.step).sin(), mass))
    }

    /// Adds another block without a look.
    fn advance(&mut self, rule: &GaussLegendre) {
        let n = f64::from(self.blocks);
        let widest = ((self.masses.len() - 1) as f64 * self.step).sin();
        let reach = ((n * widest * widest + 1.0) / (n + 1.0)).sqrt().min(1.0).asin();
        let mut next = self.empty(reach.min(end_of_density(self.blocks + 1)));
        let turns = Turns::after(self.blocks);
        let weighted = turns.weighted(rule, -turns.end, turns.end);
        for (sin_angle, mass) in self.nodes() {
            for &(sin_turn, cos_turn, weight) in &weighted {
                next.add(self.turned(sin_angle, sin_turn, cos_turn), mass * weight);
            }
        }
        *self = next;
    }

    /// Adds blocks up to `blocks`, without looks.
    fn advance_until(&mut self, blocks: u32, rule: &GaussLegendre) {
        while self.blocks < blocks {
            self.advance(rule);
        }
    }

    /// Adds another block, and keeps only the paths that stay below `bound`.
    fn past_look(&self, bound: f64, rule: &GaussLegendre) -> Paths {
        let mut next = self.empty(bound);
        let turns = Turns::after(self.blocks);
        for (sin_angle, mass) in self.nodes() {
            let mut ends = vec![-turns.end, turns.end];
            for side in [1.0, -1.0] {
                if let Some((from, to)) = self.crossing_turns(side * sin_angle, bound) {
                    ends.extend([side * from, side * to]);
                }
            }
            for end in &mut ends {
                *end = end.clamp(-turns.end, turns.end);
            }
            ends.sort_by(f64::total_cmp);
            for piece in ends.windows(2) {
                let (from, to) = (piece[0], piece[1]);
                let (sin, cos) = (0.5 * (from + to)).sin_cos();
                if to > from && self.turned(sin_angle, sin, cos).abs() < bound {
                    for (sin_turn, cos_turn, weight) in turns.weighted(rule, from, to) {
                        next.add(self.turned(sin_angle, sin_turn, cos_turn), mass * weight);
                    }
                }
            }
        }
        next
    }

    /// Returns the range of turns after which the angle is at least `bound`.
    fn crossing_turns(&self, sin_angle: f64, bound: f64) -> Option<(f64, f64)> {
        let n = f64::from(self.blocks);
        let along = n.sqrt() * sin_angle;
        let cosine = (n + 1.0).sqrt() * bound.sin() / along.hypot(1.0);
        (cosine < 1.0).then(|| {
            let (middle, half) = (1f64.atan2(along), cosine.acos());
            (middle - half, (middle + half).min(FRAC_PI_2))
        })
    }

    /// Returns the probability that paths cross `bound` with the next block.
    fn crossing(&self, bound: f64) -> f64 {
        let turns = Turns::after(self.blocks);
        self.nodes()
            .map(|(sin_angle, mass)| {
                let chance: f64 = [sin_angle, -sin_angle]
                    .into_iter()
                    .filter_map(|side| self.crossing_turns(side, bound))
                    .map(|(from, to)| turns.chance_between(from, to))
                    .sum();
                mass * chance
            })
            .sum()
    }

    /// Returns the bound, from `low` to `high`, that paths cross with the next block with a
    /// probability of `increment`.
    fn bound_for(&self, increment: f64, low: f64, high: f64) -> f64 {
        let excess = |bound: f64| self.crossing(bound).max(1e-300).ln() - increment.ln();
        let (mut low, mut high) = (low, high);
        let (mut above, mut below) = (excess(low), excess(high));
        if above <= 0.0 {
            return low;
        }
        if below >= 0.0 {
            return high;
        }
        for _ in 0..50 {
            // Regula falsi with the Illinois remedy.
            let middle = (low * below - high * above) / (below - above);
            let excess = excess(middle);
            if excess.abs() < 1e-9 || high - low < 1e-12 {
                return middle;
            }
            if excess > 0.0 {
                (low, above, below) = (middle, excess, 0.5 * below);
            } else {
                (high, below, above) = (middle, excess, 0.5 * above);
            }
        }
        0.5 * (low + high)
    }

    /// Returns the empty grid of the next block, from 0 to `end`.
    fn empty(&self, end: f64) -> Paths {
        let intervals = self.masses.len() - 1;
        Paths {
            blocks: self.blocks + 1,
            step: end / intervals as f64,
            masses: vec![0.0; intervals + 1],
        }
    }

    /// Adds a mass between nodes, shared among the four nearest with the weights of cubic
    /// interpolation.
    fn add(&mut self, angle: f64, mass: f64) {
        let last = self.masses.len() - 1;
        let position = (angle.abs() / self.step).min(last as f64);
        let base = (position as usize).min(last - 2);
        let x = position - base as f64;
        let (a, b, c) = (x + 1.0, x - 1.0, x - 2.0);
        // Values below 0 mirror those above 0.
        self.masses[if base == 0 { 1 } else { base - 1 }] -= mass * x * b * c / 6.0;
        self.masses[base] += mass * a * b * c / 2.0;
        self.masses[base + 1] -= mass * a * x * c / 2.0;
        self.masses[base + 2] += mass * a * x * b / 6.0;
    }
}

/// Distribution of the turn by the block after the n-th.
struct Turns {
    n: f64,
    ln_norm: f64,
    /// Turns beyond it have a negligible probability.
    end: f64,
    student: Option<StudentsT>,
}

impl Turns {
    fn after(blocks: u32) -> Turns {
        let n = f64::from(blocks);
        Turns {
            n,
            ln_norm: -ln_integral_of_cosine(n - 1.0),
            end: end_of_density(blocks + 1),
            student: StudentsT::new(0.0, 1.0, n).ok(),
        }
    }

    /// Returns sine, cosine and probability of the nodes between two turns.
    fn weighted(&self, rule: &GaussLegendre, from: f64, to: f64) -> Vec<(f64, f64, f64)> {
        rule.between(from, to)
            .map(|(turn, weight)| {
                let (sin, cos) = turn.sin_cos();
                (sin, cos, weight * (self.ln_norm + (self.n - 1.0) * cos.ln()).exp())
            })
            .collect()
    }

    /// sqrt(n) tan(turn) is Student's t with n degrees of freedom.
    fn chance_between(&self, from: f64, to: f64) -> f64 {
        let Some(student) = &self.student else { return 0.0 };
        let tail = |turn: f64| match turn {
            turn if turn >= FRAC_PI_2 => 0.0,
            turn if turn <= -FRAC_PI_2 => 1.0,
            turn => student.sf(self.n.sqrt() * turn.tan()),
        };
        tail(from) - tail(to)
    }
}

/// Returns Student's t for an angle after `blocks` blocks.
pub(super) fn t_of_angle(angle: f64, blocks: u32) -> f64 {
    (f64::from(blocks) - 1.0).sqrt() * angle.tan()
}

/// Returns the angle beyond which both tails together have probability `tails`.
pub(super) fn angle_of_tail(tails: f64, blocks: u32) -> f64 {
    let df = f64::from(blocks) - 1.0;
    match StudentsT::new(0.0, 1.0, df) {
        // Uses the lower tail, whose small probabilities keep their digits.
        Ok(t) => (-t.inverse_cdf(0.5 * tails.min(1.0)) / df.sqrt()).atan().max(0.0),
        Err(_) => FRAC_PI_2,
    }
}

/// Returns the angle at which cos(angle)^(n - 2), the density after n blocks, becomes negligible.
pub(super) fn end_of_density(blocks: u32) -> f64 {
    let power = (f64::from(blocks) - 2.0).max(0.5);
    (NEGLIGIBLE.ln() / power).exp().acos()
}

/// Returns the logarithm of the integral of cos^power from -pi/2 to pi/2.
pub(super) fn ln_integral_of_cosine(power: f64) -> f64 {
    0.5 * PI.ln() + ln_gamma(0.5 * (power + 1.0)) - ln_gamma(0.5 * power + 1.0)
}

/// Nodes and weights on [-1, 1] (Newton's method on Legendre's polynomial).
pub(super) struct GaussLegendre(Vec<(f64, f64)>);

impl GaussLegendre {
    /// Returns nodes and weights from `from` to `to`.
    pub(super) fn between(&self, from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> + '_ {
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        self.0.iter().map(move |&(node, weight)| (middle + half * node, half * weight))
    }

    pub(super) fn of(nodes: usize) -> GaussLegendre {
        let n = nodes as f64;
        let pair = |i: usize| {
            let mut x = (PI * (i as f64 + 0.75) / (n + 0.5)).cos();
            let mut slope = 1.0;
            for _ in 0..20 {
                let (mut before, mut value) = (1.0, x);
                for degree in 2..=nodes {
                    let d = degree as f64;
                    (before, value) =
                        (value, ((2.0 * d - 1.0) * x * value - (d - 1.0) * before) / d);
                }
                slope = n * (x * value - before) / (x * x - 1.0);
                x -= value / slope;
            }
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        };
        GaussLegendre((0..nodes).map(pair).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finer_grid_barely_changes_bounds() {
        // Shares of the level spent at three looks, early ones sparsely.
        for (at, spent) in [
            ([4, 5, 6], [0.007, 0.028, 0.05]),
            ([4, 12, 20], [1e-6, 0.005, 0.05]),
            ([8, 9, 20], [1e-7, 2e-5, 0.002]),
        ] {
            let ours = bounds(&at, &spent);
            let Grid { intervals, turns } = Grid::for_looks(&at);
            let grid = Grid { intervals: 2 * intervals, turns: 2 * turns };
            let finer = bounds_by(&at, &spent, grid);
            for (ours, finer) in ours.iter().zip(&finer) {
                assert!((ours / finer - 1.0).abs() < 1e-3, "{at:?}: {ours} is not {finer}");
            }
        }
    }

    #[test]
    fn paths_keep_their_mass_between_looks() {
        let rule = GaussLegendre::of(32);
        let bound = angle_of_tail(0.01, 4);
        let mut paths = Paths::starting(4, bound, 300);
        let total = |paths: &Paths| paths.masses.iter().sum::<f64>();
        assert!((total(&paths) - 0.99).abs() < 1e-8);
        for _ in 0..10 {
            paths.advance(&rule);
        }
        assert!((total(&paths) - 0.99).abs() < 1e-8, "{}", total(&paths));
        // Paths that don't stay have crossed.
        let bound = angle_of_tail(0.02, 15);
        let crossed = paths.crossing(bound);
        let stayed = total(&paths.past_look(bound, &rule));
        assert!((crossed + stayed - 0.99).abs() < 1e-6, "{crossed} {stayed}");
    }

    #[test]
    fn look_without_level_has_no_effect() {
        // Three more or fewer blocks before the only look that spends.
        for at in [[2, 10], [5, 10]] {
            let bounds = bounds(&at, &[1e-15, 0.05]);
            assert_eq!(bounds[0], f64::INFINITY);
            // scipy 1.17.1: t.ppf(.975, 9).
            assert!((bounds[1] / 2.2621571628540993 - 1.0).abs() < 1e-5, "{bounds:?}");
        }
    }
}
