//! Wild runs: bad starts, one of which would outweigh many other runs in a normal likelihood.

/// Runs of each end before any conclusion.
pub(super) const ENDS: usize = 4;
/// Minimum scatter of any laboratory, as a share.
pub(super) const LEAST_SCATTER: f64 = 1e-5;
/// Distance from both ends' medians above which a figure is wild, in units of the scatter.
const WILD: f64 = 4.0;
/// Number of figures of one candidate that confirm each other. Two wild runs are often alike.
const CONFIRMED: usize = 3;
/// Distance within which they do, in the same units.
const ALIKE: f64 = 3.0;
/// Median of the absolute value of a standard normal number.
const NORMAL_MAD: f64 = 0.674_489_750_196_081_7;

/// Returns which figures (candidate, logarithm) are wild: far outside the range of both ends, and
/// not confirmed by most runs of the same candidate. None are before both ends are known.
pub(super) fn wild_runs(figures: &[(usize, f64)], last: usize) -> Vec<bool> {
    let of = |end: usize| -> Vec<f64> {
        figures.iter().filter(|figure| figure.0 == end).map(|figure| figure.1).collect()
    };
    let ends = [of(0), of(last)];
    if ends.iter().any(|end| end.len() < ENDS) {
        return vec![false; figures.len()];
    }
    let [first, second] = [median(&ends[0]), median(&ends[1])];
    // All figures, because eight of the ends hardly determine their scatter.
    let nearer = |log: f64| (log - first).abs().min((log - second).abs());
    let deviations: Vec<f64> = figures.iter().map(|figure| nearer(figure.1)).collect();
    let scatter = (median(&deviations) / NORMAL_MAD).max(LEAST_SCATTER);
    let (least, most) = (first.min(second), first.max(second));
    let is_far = |log: f64| log < least - WILD * scatter || log > most + WILD * scatter;
    let is_wild = |&(candidate, log): &(usize, f64)| {
        let of_candidate = || figures.iter().filter(|figure| figure.0 == candidate);
        let alike =
            of_candidate().filter(|figure| (figure.1 - log).abs() < ALIKE * scatter).count();
        is_far(log) && (alike < CONFIRMED || 2 * alike <= of_candidate().count())
    };
    figures.iter().map(is_wild).collect()
}

/// Returns the median, the upper one for an even number; 0 without values.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_outside_both_ends_is_wild_unless_confirmed() {
        let end = |candidate, level: f64| {
            [0.01, -0.01, 0.005, -0.005].map(|noise| (candidate, level + noise))
        };
        let mut figures = [end(0, 0.0), end(9, -0.1)].concat();
        assert!(wild_runs(&figures, 9).iter().all(|is_wild| !is_wild));
        // Between both, and just outside: another change may have come and gone.
        figures.extend([(4, -0.05), (5, 0.03), (6, -0.5)]);
        assert_eq!(wild_runs(&figures, 9)[8..], [false, false, true]);
        figures.push((6, -0.51));
        assert_eq!(wild_runs(&figures, 9)[10..], [true; 2]);
        figures.push((6, -0.505));
        assert_eq!(wild_runs(&figures, 9)[8..], [false; 5]);
    }
}
