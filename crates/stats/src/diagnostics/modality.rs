//! Test for one or several modes: Hartigan's dip test.
//!
//! The dip of a list of figures is the largest distance between their empirical distribution and
//! the nearest unimodal one (Hartigan and Hartigan, 1985, Annals of Statistics 13). A DUT that
//! starts in a fast or in a slow state shows two modes, and their mean describes neither.
//!
//! Out of scope: the number and places of the modes, which a dozen runs cannot determine.

use super::RunFigure;
use super::chance::p_by_simulation;
use super::residuals::Design;
use crate::random::SplitMix64;
use serde::Serialize;

/// More than one mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bimodality {
    /// Dip of the figures without the variants' means.
    pub dip: f64,
    /// Simulated p-value of "there is one mode".
    pub p: f64,
    /// Number of figures.
    pub n: usize,
}

/// Tests whether runs have one mode, without the differences between variants; `None` with fewer
/// than four runs or if nothing varies. Differences between blocks remain: the difference of two
/// runs that are fast or slow by chance has three modes, the middle one the largest, and hardly a
/// dip.
///
/// The null hypothesis is the Hartigans', uniform noise, minus the variants' means as for the
/// figures.
pub fn bimodality(figures: &[RunFigure]) -> Option<Bimodality> {
    let n = figures.len();
    let design = Design::variants(figures);
    let residuals = design.residuals(figures.iter().map(|figure| figure.log_rate).collect());
    if n < 4 || residuals.values.iter().all(|&value| value == 0.0) {
        return None;
    }
    let observed = dip(&residuals.values)?;
    let p = p_by_simulation(observed, |random: &mut SplitMix64| {
        let noise = design.residuals((0..n).map(|_| random.unit()).collect());
        dip(&noise.values).unwrap_or(f64::INFINITY)
    });
    Some(Bimodality { dip: observed, p, n })
}

/// A convex or concave curve through points, linear between its vertices.
struct Hull {
    /// Indices of the points that it touches, ascending.
    vertices: Vec<usize>,
    /// Its height at every point, the first point's first.
    heights: Vec<f64>,
}

/// Returns the dip of `figures`: 1/(2n) for clearly one mode, up to 1/4 for two points. `None`
/// without figures or if one isn't finite.
pub fn dip(figures: &[f64]) -> Option<f64> {
    let n = figures.len();
    if n == 0 || figures.iter().any(|figure| !figure.is_finite()) {
        return None;
    }
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The empirical distribution rises from `below` to `up_to` at each figure.
    let below: Vec<f64> = (0..n).map(|i| i as f64).collect();
    let up_to: Vec<f64> = (1..=n).map(|i| i as f64).collect();
    // Distances are counted in figures and halved at the end: the nearest unimodal distribution is
    // midway between the curves.
    let mut dip = 1.0_f64;
    let (mut low, mut high) = (0, n - 1);
    while low < high {
        let at = &sorted[low..=high];
        let minorant = Hull::of(at, &below[low..=high], |turn| turn <= 0.0);
        let majorant = Hull::of(at, &up_to[low..=high], |turn| turn >= 0.0);
        let (gap, from, to) = widest(&minorant, &majorant);
        if gap <= dip {
            break;
        }
        // Outside the new modal interval the curve stays the same: convex before it, concave after
        // it.
        let left = (0..=from).map(|i| up_to[low + i] - minorant.heights[i]);
        let right = (to..at.len()).map(|i| majorant.heights[i] - below[low + i]);
        dip = left.chain(right).fold(dip, f64::max);
        if from == 0 && to == at.len() - 1 {
            break;
        }
        (low, high) = (low + from, low + to);
    }
    Some(dip / (2.0 * n as f64))
}

/// Returns the widest gap between the two curves at a vertex of either, and the remaining modal
/// interval: from the vertex of the convex curve to the vertex of the concave one that enclose it.
fn widest(minorant: &Hull, majorant: &Hull) -> (f64, usize, usize) {
    let gap = |i: usize| majorant.heights[i] - minorant.heights[i];
    let mut best = (0.0, 0, minorant.heights.len() - 1);
    for &vertex in &minorant.vertices {
        let end = majorant.vertices.iter().copied().find(|&v| v >= vertex);
        if let Some(end) = end.filter(|_| gap(vertex) > best.0) {
            best = (gap(vertex), vertex, end);
        }
    }
    for &vertex in &majorant.vertices {
        let start = minorant.vertices.iter().copied().rev().find(|&v| v <= vertex);
        if let Some(start) = start.filter(|_| gap(vertex) > best.0) {
            best = (gap(vertex), start, vertex);
        }
    }
    best
}

impl Hull {
    /// Returns the hull of the points (`x`, `y`), `x` ascending, without the vertices whose turn
    /// `is_inside` (Andrew's monotone chain).
    fn of(x: &[f64], y: &[f64], is_inside: fn(f64) -> bool) -> Hull {
        let mut vertices: Vec<usize> = Vec::new();
        for i in 0..x.len() {
            while let [.., a, b] = vertices[..] {
                let turn = (x[b] - x[a]) * (y[i] - y[b]) - (x[i] - x[b]) * (y[b] - y[a]);
                if !is_inside(turn) {
                    break;
                }
                vertices.pop();
            }
            vertices.push(i);
        }
        let mut heights = y.to_vec();
        // Equal figures at one end form a vertical edge, which is not drawn.
        let edges = vertices.windows(2).map(|edge| (edge[0], edge[1]));
        for (a, b) in edges.filter(|&(a, b)| x[b] > x[a]) {
            let slope = (y[b] - y[a]) / (x[b] - x[a]);
            for i in a + 1..b {
                heights[i] = y[a] + slope * (x[i] - x[a]);
            }
        }
        Hull { vertices, heights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(figures: &[f64], expected: f64) {
        let dip = dip(figures).unwrap();
        assert!((dip - expected).abs() < 1e-12, "{dip} is not {expected}: {figures:?}");
    }

    #[test]
    fn dip_agrees_with_diptest() {
        // diptest 0.12.0 (Python): dipstat(x, allow_zero=False).
        close(&[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0], 0.09090909090909091);
        close(&[1.0, 1.1, 1.2, 1.25, 1.3, 5.0, 5.1, 5.15, 5.3, 5.32], 0.2300995024875622);
        close(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 0.05);
        close(&[0.0, 1.0, 5.0, 6.0], 0.2);
        for (n, uniform, modes) in [
            (6, 0.08333333333333333, 0.09861546416330691),
            (20, 0.08886995198291073, 0.15831590970786752),
            (57, 0.05925928725840754, 0.1435279310199012),
            (200, 0.03203598261709091, 0.16169135230312398),
            (1000, 0.008232477077564419, 0.14391536860977996),
        ] {
            let mut random = SplitMix64::new(7);
            let figures: Vec<f64> = (0..n).map(|_| random.unit()).collect();
            close(&figures, uniform);
            let heap = |x: &f64| x * x + if *x > 0.6 { 2.0 } else { 0.0 };
            close(&figures.iter().map(heap).collect::<Vec<f64>>(), modes);
        }
    }

    /// Returns runs of two variants, both in every block, of a DUT with random fast or slow (`gap`)
    /// starts.
    fn starts(blocks: u32, gap: f64, seed: u64) -> Vec<RunFigure> {
        let mut random = SplitMix64::new(seed);
        (0..2 * blocks)
            .map(|run| {
                let slow = if random.unit() < 0.5 { gap } else { 0.0 };
                let (variant, block) = (run as usize % 2, run / 2);
                let noise = 0.01 * random.normal();
                RunFigure { run, variant, block, log_rate: 14.0 - slow + noise }
            })
            .collect()
    }

    #[test]
    fn two_kinds_of_starts_are_two_modes() {
        let found = bimodality(&starts(15, 0.3, 1)).unwrap();
        assert!(found.p < 0.01 && found.n == 30, "{found:?}");
    }

    #[test]
    fn one_mode_is_rarely_taken_for_two() {
        // Seeds 0 to 99; at 5 % chance exceeds the bound in 1 of 1000 sets.
        let below = |p: f64| {
            let each = (0..100).filter_map(|seed| bimodality(&starts(8, 0.0, seed)));
            each.filter(|found| found.p < p).count()
        };
        assert!(below(0.05) <= 12, "{}", below(0.05));
    }

    #[test]
    fn too_few_figures_have_no_modes() {
        assert_eq!(dip(&[]), None);
        assert_eq!(dip(&[1.0, f64::NAN]), None);
        close(&[5.0, 5.0, 5.0], 1.0 / 6.0);
        let mut equal = starts(5, 0.0, 1);
        equal.iter_mut().for_each(|figure| figure.log_rate = 14.0);
        assert_eq!(bimodality(&equal), None);
        assert_eq!(bimodality(&starts(1, 0.0, 1)), None);
    }

    #[test]
    fn ties_are_counted_individually() {
        // diptest 0.12.0, likewise.
        close(&[1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 7.0], 0.15);
        close(&[1.0, 1.0, 1.0, 2.0, 5.0, 5.0, 5.0], 0.21428571428571427);
        close(&[1.0, 1.0, 2.0, 2.0], 0.25);
        close(&[0.0, 1.0, 1.0, 1.0, 1.0, 4.0, 5.0, 6.0, 9.0, 9.0, 9.0], 0.13636363636363635);
    }
}
