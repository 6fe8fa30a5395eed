//! The robust secondary result: Hodges and Lehmann's estimate and its exact interval.
//!
//! Rates have a heavy lower tail: a bad start, a busy neighbour. The median of all averages (of
//! pairs of block differences) or of all differences (between two lists) is robust against single
//! bad values, and the exact distribution of the ranks gives its interval (Hodges and Lehmann,
//! 1963, Annals of Mathematical Statistics 34; Hollander and Wolfe, *Nonparametric Statistical
//! Methods*, sections 3.3 and 4.3). It is declared in advance and printed together with the primary
//! answer; it never replaces it.
//!
//! Out of scope: lists of more than [`MOST`] values, for which the quadratic number of differences
//! has no benefit.

use crate::summary::median;

/// Maximum number of blocks; for two lists, the maximum number of pairs is its square.
pub const MOST: usize = 100;

/// A shift on the scale of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Estimate.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Two-sided p-value of "the shift is 0".
    pub p: f64,
}

/// Returns the centre of block differences, with Wilcoxon's signed-rank interval at `confidence`
/// percent. `None` with too few values for an interval (six are needed at 95 %), or too many.
pub fn signed_rank(differences: &[f64], confidence: f64) -> Option<Shift> {
    let n = differences.len();
    if n > MOST {
        return None;
    }
    let mut averages: Vec<f64> = Vec::with_capacity(n * (n + 1) / 2);
    for (i, a) in differences.iter().enumerate() {
        averages.extend(differences[i..].iter().map(|b| (a + b) / 2.0));
    }
    shift(averages, &signed_rank_counts(n), confidence)
}

/// Returns the shift of the values `b` against `a`, with the rank-sum interval at `confidence`
/// percent. `None` with too few values, or too many pairs.
pub fn rank_sum(a: &[f64], b: &[f64], confidence: f64) -> Option<Shift> {
    if a.len() * b.len() > MOST * MOST {
        return None;
    }
    let differences = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    shift(differences, &rank_sum_counts(a.len(), b.len()), confidence)
}

/// Returns the shift from its candidates and the null distribution of the number of candidates
/// above 0.
fn shift(mut candidates: Vec<f64>, distribution: &[f64], confidence: f64) -> Option<Shift> {
    let tail = (1.0 - confidence / 100.0) / 2.0;
    // Number of statistic values in the tail: the order statistic that ends the interval.
    let mut below = 0.0;
    let skip = distribution
        .iter()
        .take_while(|&&chance| {
            below += chance;
            // At 80 %, two of twenty are the tail: rounding must not add one.
            below <= tail + 1e-12
        })
        .count();
    let estimate = median(&candidates)?;
    candidates.sort_unstable_by(f64::total_cmp);
    let all = candidates.len();
    // Ties with 0 count as 0.
    let above = all - candidates.partition_point(|&value| value <= 0.0);
    let under = candidates.partition_point(|&value| value < 0.0);
    let most = above.max(under);
    let p = 2.0 * distribution[most..].iter().sum::<f64>();
    (skip > 0).then(|| Shift {
        estimate,
        low: candidates[skip - 1],
        high: candidates[all - skip],
        p: p.min(1.0),
    })
}

/// Returns the probability of each value of Wilcoxon's signed-rank statistic for `n` values.
fn signed_rank_counts(n: usize) -> Vec<f64> {
    let mut chances = vec![0.0; n * (n + 1) / 2 + 1];
    chances[0] = 1.0;
    let mut reach = 0;
    for rank in 1..=n {
        reach += rank;
        for sum in (0..=reach).rev() {
            let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = (chances[sum] + with) / 2.0;
        }
    }
    chances
}

/// Returns the probability of each value of Mann and Whitney's U for `m` and `n` values.
fn rank_sum_counts(m: usize, n: usize) -> Vec<f64> {
    // P(u; m, n) = n/(m+n) P(u - m; m, n-1) + m/(m+n) P(u; m-1, n), row by row.
    let mut row: Vec<Vec<f64>> = (0..=n).map(|_| vec![1.0]).collect();
    for i in 1..=m {
        let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
        for j in 1..=n {
            let (p_last_b, p_last_a) = (j as f64 / (i + j) as f64, i as f64 / (i + j) as f64);
            let mut chances = vec![0.0; i * j + 1];
            for (u, chance) in next[j - 1].iter().enumerate() {
                chances[u + i] += p_last_b * chance;
            }
            for (u, chance) in row[j].iter().enumerate() {
                chances[u] += p_last_a * chance;
            }
            next.push(chances);
        }
        row = next;
    }
    row.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn distributions_agree_with_scipy() {
        // scipy 1.17.1: stats._wilcoxon distribution by enumeration (n = 4) and
        // mannwhitneyu(method='exact') tails (m = 3, n = 4).
        let four: Vec<f64> = [1, 1, 1, 2, 2, 2, 2, 2, 1, 1, 1].map(|c| f64::from(c) / 16.0).into();
        assert_eq!(signed_rank_counts(4), four);
        let counts = rank_sum_counts(3, 4);
        let expected = [1, 1, 2, 3, 4, 4, 5, 4, 4, 3, 2, 1, 1].map(|c| f64::from(c) / 35.0);
        assert_eq!(counts.len(), expected.len());
        for (ours, theirs) in counts.iter().zip(expected) {
            assert!((ours - theirs).abs() < 1e-15, "{counts:?}");
        }
    }

    #[test]
    fn single_outlier_barely_moves_the_estimate() {
        let tame = [0.010, 0.012, 0.011, 0.009, 0.013, 0.008, 0.010, 0.012];
        let mut wild = tame;
        wild[3] = -0.4;
        let (tame, wild) = (signed_rank(&tame, 95.0).unwrap(), signed_rank(&wild, 95.0).unwrap());
        assert!((tame.estimate - wild.estimate).abs() < 0.001, "{tame:?} {wild:?}");
    }

    #[test]
    fn too_few_and_too_many_values_return_none() {
        assert_eq!(signed_rank(&[0.1; 5], 95.0), None);
        assert!(signed_rank(&[0.1; 6], 95.0).is_some());
        assert_eq!(rank_sum(&[0.1; 3], &[0.2; 3], 95.0), None);
        assert!(rank_sum(&[0.1; 4], &[0.2; 4], 95.0).is_some());
        assert_eq!(signed_rank(&[0.1; MOST + 1], 95.0), None);
        assert_eq!(signed_rank(&[], 95.0), None);
    }

    proptest! {
        #[test]
        fn interval_contains_the_estimate_and_agrees_with_p(
            values in prop::collection::vec(-1.0..1.0f64, 6..30),
        ) {
            let shift = signed_rank(&values, 95.0).unwrap();
            prop_assert!(shift.low <= shift.estimate && shift.estimate <= shift.high);
            prop_assert_eq!(shift.p <= 0.05, shift.low > 0.0 || shift.high < 0.0);
            let moved: Vec<f64> = values.iter().map(|v| v + 3.0).collect();
            let moved = signed_rank(&moved, 95.0).unwrap();
            prop_assert!((moved.estimate - shift.estimate - 3.0).abs() < 1e-12);
        }
    }
}
