//! Did the runs drift: figures in the order in which they were run.
//!
//! A trend or a correlation of neighbours is no error, and blocks take care of
//! both; they are printed because a reader who sees them knows why blocks were
//! needed.

use super::comparison::two_sided_p;
use super::summary::mean;
use serde::Serialize;

/// A straight line through the figures over their order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// Change from one run to the next, as a ratio of the mean (0.01 = 1 %).
    pub slope: f64,
    /// Two-sided p-value of "there is no trend" (t test of the slope).
    pub p: f64,
}

/// Fits the trend of positive `figures` over their order by least squares;
/// none for fewer than three or a mean that isn't above 0.
pub fn run_order_trend(figures: &[f64]) -> Option<Trend> {
    let n = figures.len() as f64;
    let centre = mean(figures);
    if figures.len() < 3 || !(centre.is_finite() && centre > 0.0) {
        return None;
    }
    let middle = (n - 1.0) / 2.0;
    let (mut sxx, mut sxy, mut syy) = (0.0, 0.0, 0.0);
    for (i, figure) in figures.iter().enumerate() {
        let (x, y) = (i as f64 - middle, figure / centre - 1.0);
        sxx += x * x;
        sxy += x * y;
        syy += y * y;
    }
    let slope = sxy / sxx;
    let residual = (syy - slope * sxy).max(0.0);
    let se = (residual / (n - 2.0) / sxx).sqrt();
    Some(Trend { slope, p: two_sided_p(slope, se, n - 2.0) })
}

/// Correlation of each figure with the next one (the usual estimate, with n in
/// both denominators); none for fewer than three or for equal figures.
pub fn lag1_autocorrelation(figures: &[f64]) -> Option<f64> {
    if figures.len() < 3 {
        return None;
    }
    let centre = mean(figures);
    let whole: f64 = figures.iter().map(|v| (v - centre).powi(2)).sum();
    let lagged: f64 = figures.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    (whole.is_finite() && whole > 0.0).then(|| lagged / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIFTING: [f64; 8] = [10.0, 11.0, 9.5, 12.0, 12.5, 11.8, 13.0, 12.2];

    #[test]
    fn trend_agrees_with_scipy() {
        // scipy 1.17.1: linregress(arange(8), y): slope 0.3904761904761904.
        let trend = run_order_trend(&DRIFTING).unwrap();
        assert!((trend.slope * 11.5 - 0.3904761904761904).abs() < 1e-12, "{trend:?}");
        assert!((trend.p - 0.023002305047737023).abs() < 1e-9, "{trend:?}");
        assert_eq!(run_order_trend(&[1.0, 2.0]), None);
        assert_eq!(run_order_trend(&[5.0, 5.0, 5.0]), Some(Trend { slope: 0.0, p: 1.0 }));
    }

    #[test]
    fn autocorrelation_agrees_with_statsmodels() {
        // statsmodels 0.15.0: tsa.stattools.acf(y)[1].
        let lag1 = lag1_autocorrelation(&DRIFTING).unwrap();
        assert!((lag1 - 0.28827977).abs() < 1e-8, "{lag1}");
        assert_eq!(lag1_autocorrelation(&[5.0, 5.0, 5.0]), None);
    }
}
