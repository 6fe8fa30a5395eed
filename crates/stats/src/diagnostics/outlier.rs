//! Grubbs' test for a run far from the others.

use super::RunFigure;
use super::residuals::Design;
use crate::comparison::two_sided_p;
use crate::summary::{mean, variance};
use serde::Serialize;

/// The figure farthest from the mean of a plain list.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Grubbs {
    /// Distance from the mean in standard deviations.
    pub statistic: f64,
    /// Two-sided p-value of "all come from one normal distribution".
    pub p: f64,
    /// Index of the figure.
    pub index: usize,
}

/// The run farthest from its expected place by variant and block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// Runs at the same distance: in a block of two they mirror each other, and the odd one cannot
    /// be identified.
    pub runs: Vec<u32>,
    /// Their block.
    pub block: u32,
    /// Distance of the first from its expected place, as a ratio (-0.1 = 10 % below).
    pub deviation: f64,
    /// Distance in standard deviations of the residuals' noise.
    pub statistic: f64,
    /// Two-sided p-value of "there is no outlier".
    pub p: f64,
}

/// Grubbs' two-sided test (Grubbs, 1950, Annals of Mathematical Statistics 21; the p-value is
/// Bonferroni's bound by Student's t with n - 2 degrees of freedom). `None` with fewer than three
/// figures, or if nothing varies.
pub fn grubbs(figures: &[f64]) -> Option<Grubbs> {
    let n = figures.len();
    let centre = mean(figures);
    let sd = variance(figures, centre).sqrt();
    if n < 3 || !sd.is_finite() || sd <= 0.0 {
        return None;
    }
    let residuals: Vec<f64> = figures.iter().map(|figure| figure - centre).collect();
    let (index, _, p) = farthest(&residuals, n - 1)?;
    Some(Grubbs { statistic: residuals[index].abs() / sd, p, index })
}

/// Grubbs' test of the residuals of runs of several variants in blocks, with the degrees of freedom
/// that the design leaves (the outlier test of a linear model: Cook and Weisberg, 1982, *Residuals
/// and Influence in Regression*, section 2.2). Exact if all variants ran in all blocks; if runs are
/// missing, leverages are taken as equal. `None` if fewer than three degrees of freedom are left or
/// nothing varies.
pub fn outlier(figures: &[RunFigure]) -> Option<Outlier> {
    let logs = figures.iter().map(|figure| figure.log_rate).collect();
    let residuals = Design::variants_and_blocks(figures).residuals(logs);
    if residuals.freedom < 3 {
        return None;
    }
    let (index, statistic, p) = farthest(&residuals.values, residuals.freedom)?;
    let (first, far) = (figures[index], residuals.values[index].abs());
    let runs = figures
        .iter()
        .zip(&residuals.values)
        .filter(|(figure, value)| figure.block == first.block && value.abs() > far * (1.0 - 1e-9))
        .map(|(figure, _)| figure.run);
    let mut runs: Vec<u32> = runs.collect();
    runs.dedup();
    // Its residual is the part of the distance that its own weight in the means leaves.
    let share = residuals.freedom as f64 / figures.len() as f64;
    let deviation = (residuals.values[index] / share).exp_m1();
    Some(Outlier { runs, block: first.block, deviation, statistic, p })
}

/// Returns the index of the largest residual, its distance in its own standard deviations, and the
/// p-value.
fn farthest(residuals: &[f64], freedom: usize) -> Option<(usize, f64, f64)> {
    let (n, freedom) = (residuals.len() as f64, freedom as f64);
    let squares: f64 = residuals.iter().map(|value| value * value).sum();
    if freedom < 2.0 || !squares.is_finite() || squares <= 0.0 {
        return None;
    }
    // The first of those that are equal except for rounding.
    let largest = residuals.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let index = residuals.iter().position(|value| value.abs() > largest * (1.0 - 1e-9))?;
    // A residual's variance is the noise's times 1 - leverage, here freedom / n: the two freedoms
    // cancel.
    let squared = n * largest * largest / squares;
    // Student's t of the run against all others.
    let rest = (freedom - squared).max(0.0);
    let p = two_sided_p(squared.sqrt(), (rest / (freedom - 1.0)).sqrt(), freedom - 1.0);
    Some((index, squared.sqrt(), (n * p).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// Three variants in five blocks.
    const RATES: [f64; 15] =
        [10.0, 10.2, 9.9, 10.1, 10.4, 10.0, 9.8, 10.1, 9.7, 10.3, 8.9, 10.2, 10.0, 10.1, 9.9];

    fn runs(rates: &[f64], variants: usize) -> Vec<RunFigure> {
        (0..)
            .zip(rates)
            .map(|(run, &log_rate)| RunFigure {
                run,
                variant: run as usize % variants,
                block: run / variants as u32,
                log_rate,
            })
            .collect()
    }

    #[test]
    fn grubbs_agrees_with_the_formula_in_scipy() {
        // The example of the NIST/SEMATECH e-Handbook, section 1.3.5.17.1 (mass
        // spectrometer); p by scipy 1.17.1: min(1, n 2 t.sf(t, n - 2)).
        let masses = [199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57];
        let found = grubbs(&masses).unwrap();
        assert_eq!(found.index, 7);
        assert!((found.statistic - 2.46876461121245).abs() < 1e-12, "{found:?}");
        assert!((found.p / 3.002638682071362e-07 - 1.0).abs() < 1e-6, "{found:?}");
        assert_eq!(grubbs(&[1.0, 2.0]), None);
        assert_eq!(grubbs(&[5.0; 4]), None);
        assert_eq!(grubbs(&[1.0, f64::NAN, 2.0]), None);
    }

    #[test]
    fn outlier_in_a_design_agrees_with_statsmodels() {
        // statsmodels 0.15.0: ols("y ~ C(v) + C(b)").fit().outlier_test() and
        // get_influence().resid_studentized_internal.
        let found = outlier(&runs(&RATES, 3)).unwrap();
        assert_eq!((found.runs.as_slice(), found.block), ([10].as_slice(), 3));
        assert!((found.statistic - 2.8101950575862973).abs() < 1e-9, "{found:?}");
        assert!((found.p / 1.0554111222508746e-06 - 1.0).abs() < 1e-6, "{found:?}");
        // The same with a separate term for the run: its coefficient.
        assert!((found.deviation.ln_1p() + 1.625).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn mirrored_outliers_are_both_reported() {
        let mut rates = [14.0, 14.3].repeat(8);
        let mut random = SplitMix64::new(3);
        rates.iter_mut().for_each(|rate| *rate += 0.01 * random.normal());
        rates[9] -= 0.5;
        let found = outlier(&runs(&rates, 2)).unwrap();
        assert_eq!((found.runs.as_slice(), found.block), ([8, 9].as_slice(), 4));
        assert!(found.p < 1e-4, "{found:?}");
    }

    #[test]
    fn normal_runs_rarely_have_outliers() {
        let mut found = 0;
        for seed in 0..300 {
            let mut random = SplitMix64::new(seed);
            let rates: Vec<f64> = (0..18).map(|_| random.normal()).collect();
            found += usize::from(outlier(&runs(&rates, 3)).unwrap().p < 0.05);
        }
        // At most 15 are expected; 27 or more happen in 3 of 1000 sets.
        assert!((3..27).contains(&found), "{found}");
    }

    #[test]
    fn explained_figures_have_no_outlier() {
        assert_eq!(outlier(&runs(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0], 2)), None);
        assert_eq!(outlier(&runs(&[1.0, 2.0, 3.0], 1)), None, "too few");
    }
}
