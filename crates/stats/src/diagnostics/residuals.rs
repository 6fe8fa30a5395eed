//! Residuals of runs' figures after removing the effects of variants and blocks.

use super::RunFigure;
use crate::summary::mean;
use std::collections::BTreeMap;

/// Minimum degrees of freedom that must remain to remove block effects as well.
const MIN_FREEDOM: usize = 3;
/// Maximum number of fitting rounds; a complete design needs one.
const ROUNDS: usize = 500;

/// Residuals of a list of runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Residuals {
    /// One per run, in the runs' order.
    pub(super) values: Vec<f64>,
    /// Remaining degrees of freedom.
    pub(super) freedom: usize,
}

/// The structure to remove: groups of figures by variant, and optionally by block.
pub(super) struct Design {
    groupings: Vec<Vec<usize>>,
    freedom: usize,
}

impl Design {
    /// Only means of variants: differences between blocks remain visible.
    pub(super) fn variants(figures: &[RunFigure]) -> Design {
        let variants: Vec<usize> = figures.iter().map(|figure| figure.variant).collect();
        let count = numbered(&variants).1;
        Design {
            freedom: figures.len().saturating_sub(count),
            groupings: vec![numbered(&variants).0],
        }
    }

    /// Means of variants and of blocks; only of variants if the blocks are so few or so small that
    /// nearly nothing would remain.
    pub(super) fn variants_and_blocks(figures: &[RunFigure]) -> Design {
        let variants: Vec<usize> = figures.iter().map(|figure| figure.variant).collect();
        let blocks: Vec<usize> = figures.iter().map(|figure| figure.block as usize).collect();
        let ((variants, v), (blocks, b)) = (numbered(&variants), numbered(&blocks));
        let fitted = v + b - parts(&variants, &blocks, v);
        let freedom = figures.len().saturating_sub(fitted);
        if freedom < MIN_FREEDOM {
            return Design::variants(figures);
        }
        Design { groupings: vec![variants, blocks], freedom }
    }

    /// Fits the design to `values` by least squares (each grouping's means in turn until
    /// convergence) and returns the residuals.
    pub(super) fn residuals(&self, mut values: Vec<f64>) -> Residuals {
        let scale = values.iter().fold(0.0_f64, |scale, value| scale.max(value.abs()));
        for _ in 0..ROUNDS {
            let mut moved = 0.0_f64;
            for grouping in &self.groupings {
                moved = moved.max(take_out(&mut values, grouping));
            }
            if self.groupings.len() == 1 || moved <= 1e-13 * scale {
                break;
            }
        }
        // Rounding errors of figures that the design explains completely.
        for value in values.iter_mut().filter(|value| value.abs() <= 1e-12 * scale) {
            *value = 0.0;
        }
        Residuals { values, freedom: self.freedom }
    }
}

/// Subtracts each group's mean; returns the largest of the means.
fn take_out(values: &mut [f64], grouping: &[usize]) -> f64 {
    let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (&group, &value) in grouping.iter().zip(values.iter()) {
        groups.entry(group).or_default().push(value);
    }
    let means: BTreeMap<usize, f64> =
        groups.into_iter().map(|(group, members)| (group, mean(&members))).collect();
    for (group, value) in grouping.iter().zip(values.iter_mut()) {
        *value -= means[group];
    }
    means.values().fold(0.0, |largest, mean| largest.max(mean.abs()))
}

/// Replaces keys by numbers from 0; also returns the number of distinct keys.
fn numbered(keys: &[usize]) -> (Vec<usize>, usize) {
    let mut numbers = BTreeMap::new();
    for &key in keys {
        let next = numbers.len();
        numbers.entry(key).or_insert(next);
    }
    (keys.iter().map(|key| numbers[key]).collect(), numbers.len())
}

/// Returns the number of parts of the design that share neither a variant nor a block.
fn parts(variants: &[usize], blocks: &[usize], variant_count: usize) -> usize {
    // Each variant begins as a separate part; a block joins the parts that it contains.
    let mut part: Vec<usize> = (0..variant_count).collect();
    let mut first: BTreeMap<usize, usize> = BTreeMap::new();
    for (&variant, &block) in variants.iter().zip(blocks) {
        let other = *first.entry(block).or_insert(variant);
        let (from, to) = (part[variant], part[other]);
        part.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
    }
    part.sort_unstable();
    part.dedup();
    part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(cells: &[(usize, u32, f64)]) -> Vec<RunFigure> {
        cells
            .iter()
            .zip(0..)
            .map(|(&(variant, block, log_rate), run)| RunFigure { run, variant, block, log_rate })
            .collect()
    }

    fn residuals(design: &Design, figures: &[RunFigure]) -> Residuals {
        design.residuals(figures.iter().map(|figure| figure.log_rate).collect())
    }

    #[test]
    fn levels_and_blocks_leave_no_residual() {
        let cells: Vec<_> = (0..12)
            .map(|i| (i % 3, i as u32 / 3, 10.0 + (i % 3) as f64 - 0.3 * (i / 3) as f64))
            .collect();
        let figures = figures(&cells);
        let both = residuals(&Design::variants_and_blocks(&figures), &figures);
        assert_eq!(both, Residuals { values: vec![0.0; 12], freedom: 6 });
        let variants = residuals(&Design::variants(&figures), &figures);
        assert_eq!(variants.freedom, 9);
        assert!((variants.values[0] - 0.45).abs() < 1e-12, "blocks stay visible: {variants:?}");
    }

    #[test]
    fn incomplete_design_agrees_with_least_squares() {
        // statsmodels 0.15.0: ols("y ~ C(v) + C(b)").fit().resid, df_resid 3.
        let figures = figures(&[
            (0, 0, 1.0),
            (1, 0, 2.5),
            (0, 1, 1.5),
            (1, 1, 2.0),
            (0, 2, 3.0),
            (1, 3, 4.0),
            (0, 4, 1.0),
            (1, 4, 3.5),
            (1, 5, 0.5),
            (0, 5, 0.0),
        ]);
        let left = residuals(&Design::variants_and_blocks(&figures), &figures);
        assert_eq!(left.freedom, 3);
        for (value, expected) in left.values.iter().zip(RESIDUALS) {
            assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
        }
    }

    const RESIDUALS: [f64; 10] =
        [-0.125, 0.125, 0.375, -0.375, 0.0, 0.0, -0.625, 0.625, -0.375, 0.375];

    #[test]
    fn single_variant_keeps_its_blocks() {
        let figures = figures(&[(0, 0, 1.0), (0, 1, 2.0), (0, 2, 3.0), (0, 3, 6.0)]);
        let left = residuals(&Design::variants_and_blocks(&figures), &figures);
        assert_eq!((left.values, left.freedom), (vec![-2.0, -1.0, 0.0, 3.0], 3));
    }
}
