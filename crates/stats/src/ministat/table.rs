//! Student's t as in ministat: three decimals, up to 100 degrees of freedom, then the normal
//! distribution.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Confidences in the table, in percent.
pub const CONFIDENCES: [f64; 6] = [80.0, 90.0, 95.0, 98.0, 99.0, 99.5];
/// Probability of each column's quantile. The last one belongs to a two-sided 99.8 %, despite its
/// heading.
const PROBABILITIES: [f64; 6] = [0.90, 0.95, 0.975, 0.99, 0.995, 0.999];
/// Degrees of freedom of the last finite row.
const LAST_ROW: usize = 100;
/// Entries of the last column that aren't the rounded quantile, as in the printed table behind the
/// original.
const MISPRINTS: [(usize, f64); 7] =
    [(1, 318.313), (7, 4.782), (8, 4.499), (9, 4.296), (10, 4.143), (11, 4.024), (12, 3.929)];

/// Returns the column of a confidence in percent, which must be exactly one of the six.
pub(super) fn column(confidence: f64) -> Option<usize> {
    CONFIDENCES.iter().position(|&known| known == confidence)
}

/// Returns the entry for `freedom` degrees of freedom (at least 1).
pub(super) fn student(freedom: usize, column: usize) -> f64 {
    let probability = PROBABILITIES[column];
    if column == PROBABILITIES.len() - 1
        && let Some(&(_, printed)) = MISPRINTS.iter().find(|(row, _)| *row == freedom)
    {
        return printed;
    }
    let quantile = match StudentsT::new(0.0, 1.0, freedom as f64) {
        Ok(t) if freedom <= LAST_ROW => t.inverse_cdf(probability),
        _ => Normal::standard().inverse_cdf(probability),
    };
    // Dividing the integer yields the double nearest to the three decimals.
    (quantile * 1000.0 + 0.5).floor() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_matches_scipy() {
        // Quantiles of scipy 1.17.1 (stats.t.ppf), rounded half up, with the
        // seven exceptions.
        for (freedom, row) in [
            (1, [3.078, 6.314, 12.706, 31.821, 63.657, 318.313]),
            (2, [1.886, 2.92, 4.303, 6.965, 9.925, 22.327]),
            (3, [1.638, 2.353, 3.182, 4.541, 5.841, 10.215]),
            (5, [1.476, 2.015, 2.571, 3.365, 4.032, 5.893]),
            (8, [1.397, 1.86, 2.306, 2.896, 3.355, 4.499]),
            (12, [1.356, 1.782, 2.179, 2.681, 3.055, 3.929]),
            (13, [1.35, 1.771, 2.16, 2.65, 3.012, 3.852]),
            (29, [1.311, 1.699, 2.045, 2.462, 2.756, 3.396]),
            (60, [1.296, 1.671, 2.0, 2.39, 2.66, 3.232]),
            (99, [1.29, 1.66, 1.984, 2.365, 2.626, 3.175]),
            (100, [1.29, 1.66, 1.984, 2.364, 2.626, 3.174]),
            (101, [1.282, 1.645, 1.96, 2.326, 2.576, 3.09]),
        ] {
            for (column, entry) in row.into_iter().enumerate() {
                assert_eq!(student(freedom, column), entry, "{freedom}, column {column}");
            }
        }
    }

    #[test]
    fn table_has_the_known_checksum() {
        let thousandths: Vec<u64> = (1..=LAST_ROW + 1)
            .flat_map(|freedom| (0..6).map(move |column| student(freedom, column)))
            .map(|entry| (entry * 1000.0).round() as u64)
            .collect();
        assert_eq!(thousandths.len(), 606);
        let weighted = thousandths.iter().zip(1u64..).map(|(entry, i)| entry * i).sum::<u64>();
        assert_eq!((thousandths.iter().sum::<u64>(), weighted), (1860005, 411722537));
    }
}
