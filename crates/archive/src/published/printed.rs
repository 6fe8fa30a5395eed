//! Figures in ministat's table format: eight significant digits.

use fwdlab_results::stats::cformat::general;
use serde::Serialize;

/// The median rule of a published median, as far as it can be determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MedianRule {
    /// Both rules give the same text.
    Either,
    /// The mean of the two middle values of an even number (since 2016).
    Mean,
    /// The upper of the two middle values of an even number (until 2015).
    Upper,
}

/// Printed figures of one set that are independent of the generation.
pub(super) struct PrintedFigures {
    pub(super) n: usize,
    pub(super) min: String,
    pub(super) max: String,
    pub(super) average: String,
    mean_median: String,
    upper_median: String,
}

impl PrintedFigures {
    /// Formats the figures; `None` without values.
    pub(super) fn of(values: &[f64]) -> Option<PrintedFigures> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (n, middle) = (sorted.len(), sorted.len() / 2);
        let (min, max, upper) = (*sorted.first()?, *sorted.last()?, *sorted.get(middle)?);
        let mean = if n % 2 == 1 { upper } else { (sorted[middle - 1] + upper) / 2.0 };
        // Sums in the published order, which affects the last digit.
        let average = values.iter().sum::<f64>() / n as f64;
        let text = |value| general(value, 8);
        Some(PrintedFigures {
            n,
            min: text(min),
            max: text(max),
            average: text(average),
            mean_median: text(mean),
            upper_median: text(upper),
        })
    }

    /// Returns the rule by which `median` is this set's median; `None` if it is not.
    pub(super) fn median_rule(&self, median: &str) -> Option<MedianRule> {
        match (same(median, &self.mean_median), same(median, &self.upper_median)) {
            (true, true) => Some(MedianRule::Either),
            (true, false) => Some(MedianRule::Mean),
            (false, true) => Some(MedianRule::Upper),
            (false, false) => None,
        }
    }
}

/// Returns true if a published number equals `printed` after rounding to eight digits.
pub(super) fn same(published: &str, printed: &str) -> bool {
    published == printed || published.parse().is_ok_and(|value| general(value, 8) == printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_rule_distinguishes_both_rules() {
        let even = PrintedFigures::of(&[1.0, 4.0, 2.0, 8.0]).unwrap();
        assert_eq!(even.median_rule("3"), Some(MedianRule::Mean));
        assert_eq!(even.median_rule("4"), Some(MedianRule::Upper));
        assert_eq!(even.median_rule("2"), None);
        let odd = PrintedFigures::of(&[14_880_950.5, 1.0, 2e7]).unwrap();
        assert_eq!(odd.median_rule("14880950"), Some(MedianRule::Either), "half to even");
        assert_eq!((odd.n, odd.average.as_str()), (3, "11626984"));
        assert!(PrintedFigures::of(&[]).is_none());
    }
}
