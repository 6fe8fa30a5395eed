//! Adjustment for multiple comparisons, which controls their error rate.
//!
//! All comparisons of one command form one family, and its size is printed with every adjusted
//! p-value.

use fwdlab_model::plan::Adjust;
use serde::Serialize;
use std::fmt;

/// The error rate to control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjustment {
    /// The chance of any false difference: for decisions.
    #[default]
    Holm,
    /// The expected share of false ones among the differences found: for dashboards, which show
    /// many comparisons and tolerate some errors.
    BenjaminiHochberg,
}

impl From<Adjust> for Adjustment {
    fn from(adjust: Adjust) -> Adjustment {
        match adjust {
            Adjust::Holm => Adjustment::Holm,
            Adjust::BenjaminiHochberg => Adjustment::BenjaminiHochberg,
        }
    }
}

impl Adjustment {
    /// Adjusts p-values, in the order of the input.
    pub fn adjust(self, p: &[f64]) -> Vec<f64> {
        match self {
            Adjustment::Holm => holm(p),
            Adjustment::BenjaminiHochberg => benjamini_hochberg(p),
        }
    }
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Adjustment::Holm => "Holm",
            Adjustment::BenjaminiHochberg => "Benjamini-Hochberg",
        })
    }
}

/// Holm's step-down adjustment of p-values (Holm, 1979, Scandinavian Journal of Statistics 6), in
/// the order of the input: compared with the level, the adjusted values err anywhere in the family
/// at most that often.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in ascending(p).into_iter().enumerate() {
        largest = largest.max(p[index] * (p.len() - rank) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// Benjamini and Hochberg's step-up adjustment (1995, Journal of the Royal Statistical Society B
/// 57), in the order of the input: of the values below the level, at most that share is false on
/// average.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut smallest: f64 = 1.0;
    for (rank, index) in ascending(p).into_iter().enumerate().rev() {
        smallest = smallest.min(p[index] * (p.len() as f64 / (rank + 1) as f64));
        adjusted[index] = smallest;
    }
    adjusted
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_statsmodels() {
        // statsmodels 0.15.0: multipletests(p, method='holm' and 'fdr_bh')[1].
        let p = [0.01, 0.04, 0.03, 0.005, 0.2];
        let expected = [
            (Adjustment::Holm, [0.04, 0.09, 0.09, 0.025, 0.2]),
            (Adjustment::BenjaminiHochberg, [0.025, 0.05, 0.05, 0.025, 0.2]),
        ];
        for (adjustment, theirs) in expected {
            for (ours, theirs) in adjustment.adjust(&p).iter().zip(theirs) {
                assert!((ours - theirs).abs() < 1e-12, "{adjustment}: {ours} is not {theirs}");
            }
            assert!(adjustment.adjust(&[]).is_empty());
        }
    }

    proptest! {
        #[test]
        fn adjusted_p_values_are_not_smaller_and_keep_the_order(p in prop::collection::vec(0.0..=1.0f64, 1..12)) {
            let (strict, lenient) = (holm(&p), benjamini_hochberg(&p));
            for adjusted in [&strict, &lenient] {
                for (i, a) in adjusted.iter().enumerate() {
                    prop_assert!(*a >= p[i] && *a <= 1.0);
                    for (j, b) in adjusted.iter().enumerate() {
                        prop_assert!(p[i] > p[j] || a <= b);
                    }
                }
            }
            for (strict, lenient) in strict.iter().zip(&lenient) {
                prop_assert!(lenient <= &(strict + 1e-15));
            }
        }
    }
}
