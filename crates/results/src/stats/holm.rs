//! Many comparisons at once: the chance that any of them errs is kept.

use super::comparison::Comparison;

/// Holm's step-down adjustment of p-values (Holm, 1979, Scandinavian Journal of
/// Statistics 6): compared with the level, the adjusted ones err in at least
/// one place of the family at most that often. In the order of the input.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max(p[index] * (p.len() - rank) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// Sets [`Comparison::p_adjusted`] of everything that was asked together.
pub fn adjust_family(family: &mut [Comparison]) {
    let p: Vec<f64> = family.iter().map(|comparison| comparison.p).collect();
    let size = family.len();
    for (comparison, adjusted) in family.iter_mut().zip(holm(&p)) {
        comparison.p_adjusted = adjusted;
        comparison.family = size;
    }
}

#[cfg(test)]
mod tests {
    use super::holm;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_statsmodels() {
        // statsmodels 0.15.0: multipletests(p, method='holm')[1].
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005, 0.2]);
        for (ours, theirs) in adjusted.iter().zip([0.04, 0.09, 0.09, 0.025, 0.2]) {
            assert!((ours - theirs).abs() < 1e-12, "{ours} is not {theirs}");
        }
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn never_smaller_and_in_the_same_order(p in prop::collection::vec(0.0..=1.0f64, 1..12)) {
            let adjusted = holm(&p);
            for (i, a) in adjusted.iter().enumerate() {
                prop_assert!(*a >= p[i] && *a <= 1.0);
                for (j, b) in adjusted.iter().enumerate() {
                    prop_assert!(p[i] > p[j] || a <= b);
                }
            }
        }
    }
}
