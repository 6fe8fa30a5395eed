//! Drift of the runs: figures in the order of their runs.
//!
//! A trend or a correlation of neighbours is not an error, and blocks compensate for both. They are
//! reported because they explain why blocks were needed.

use super::RunFigure;
use super::chance::p_by_simulation;
use super::residuals::Design;
use crate::comparison::two_sided_p;
use crate::summary::mean;
use serde::Serialize;

/// Trend and correlation of figures over their order, each figure as a ratio of its variant's
/// (geometric) mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunOrder {
    /// Change from one run to the next (0.01 = 1 %).
    pub slope: f64,
    /// p-value of "there is no trend".
    pub p: f64,
    /// Correlation of neighbours; `None` if nothing varies.
    pub lag1: Option<f64>,
    /// p-value of "neighbours are no more similar than others", simulated by random orders of the
    /// runs.
    pub lag1_p: Option<f64>,
    /// Number of runs.
    pub runs: usize,
}

/// Returns the effect of the order, without the differences between variants; `None` with fewer
/// than three runs. Differences between blocks remain, because effects on whole blocks are of
/// interest. Several figures of one run (the variants of a stream) count as their mean.
pub fn run_order(figures: &[RunFigure]) -> Option<RunOrder> {
    let logs = figures.iter().map(|figure| figure.log_rate).collect();
    let mut residuals = Design::variants(figures).residuals(logs).values.into_iter();
    let relative: Vec<f64> = figures
        .chunk_by(|a, b| a.run == b.run)
        .map(|stream| {
            let of_run: Vec<f64> = residuals.by_ref().take(stream.len()).collect();
            mean(&of_run).exp()
        })
        .collect();
    let trend = run_order_trend(&relative)?;
    let lag1 = lag1_autocorrelation(&relative);
    Some(RunOrder {
        slope: trend.slope,
        p: trend.p,
        lag1,
        lag1_p: lag1.map(|lag1| autocorrelation_p(lag1, &relative)),
        runs: relative.len(),
    })
}

/// Returns how often a random order of `figures` has neighbours at least as similar, or dissimilar,
/// as `lag1`. Its mean over all orders is -1/n, not 0 (Moran, 1948, Biometrika 35).
fn autocorrelation_p(lag1: f64, figures: &[f64]) -> f64 {
    let expected = -1.0 / figures.len() as f64;
    let mut order = figures.to_vec();
    p_by_simulation((lag1 - expected).abs(), |random| {
        random.shuffle(&mut order);
        lag1_autocorrelation(&order).map_or(0.0, |lag1| (lag1 - expected).abs())
    })
}

/// A straight line through the figures over their order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// Change from one run to the next, as a ratio of the mean (0.01 = 1 %).
    pub slope: f64,
    /// Two-sided p-value of "there is no trend" (t test of the slope).
    pub p: f64,
}

/// Fits the trend of positive `figures` over their order by least squares; `None` with fewer than
/// three or a mean that isn't above 0.
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

/// Returns the trend within variants whose runs followed one another: the common slope of the
/// logarithms over the order, with a separate level for each variant. Between such variants a trend
/// cannot be distinguished from a difference. `None` if no variant has two runs, or too few runs
/// are left to judge the slope.
pub fn trend_within_variants(figures: &[RunFigure]) -> Option<Trend> {
    let design = Design::variants(figures);
    let x = design.residuals((0..figures.len()).map(|i| i as f64).collect());
    let y = design.residuals(figures.iter().map(|figure| figure.log_rate).collect());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (sxx, sxy, syy) =
        (dot(&x.values, &x.values), dot(&x.values, &y.values), dot(&y.values, &y.values));
    let freedom = x.freedom.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    if sxx <= 0.0 || !syy.is_finite() {
        return None;
    }
    let slope = sxy / sxx;
    let se = ((syy - slope * sxy).max(0.0) / freedom / sxx).sqrt();
    Some(Trend { slope, p: two_sided_p(slope, se, freedom) })
}

/// Returns the correlation of each figure with the next one (the usual estimate, with n in both
/// denominators); `None` with fewer than three or for equal figures.
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
    use crate::random::SplitMix64;

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

    fn runs(log_rates: &[f64]) -> Vec<RunFigure> {
        (0..)
            .zip(log_rates)
            .map(|(run, &log_rate)| RunFigure { run, variant: 0, block: run, log_rate })
            .collect()
    }

    #[test]
    fn trend_within_variants_is_not_their_difference() {
        let runs = |per_run: f64, step: f64| -> Vec<RunFigure> {
            (0..10)
                .map(|run| {
                    let variant = usize::from(run >= 5);
                    let noise = [0.003, -0.002, 0.001, -0.003, 0.002][run as usize % 5];
                    let log_rate = 14.0 + step * variant as f64 + per_run * f64::from(run) + noise;
                    RunFigure { run, variant, block: run % 5, log_rate }
                })
                .collect()
        };
        let none = trend_within_variants(&runs(0.0, 0.5)).unwrap();
        // statsmodels 0.15.0, OLS y ~ C(variant) + x: slope -0.0003, p 0.63696788;
        // with a drift slope 0.0197, p 6.92197e-09.
        assert!((none.slope + 0.0003).abs() < 1e-12, "{none:?}");
        assert!((none.p - 0.636_967_882_5).abs() < 1e-8, "{none:?}");
        let some = trend_within_variants(&runs(0.02, 0.5)).unwrap();
        assert!((some.slope - 0.0197).abs() < 1e-12, "{some:?}");
        assert!((some.p / 6.921_972_959e-9 - 1.0).abs() < 1e-5, "{some:?}");
        assert_eq!(trend_within_variants(&runs(0.0, 0.0)[..2]), None);
    }

    #[test]
    fn drift_is_detected_despite_different_levels() {
        let figures: Vec<RunFigure> = (0..16)
            .map(|run| {
                let variant = [0, 1, 1, 0][run as usize % 4];
                let log_rate = 14.0 - 0.5 * variant as f64 + 0.01 * f64::from(run);
                RunFigure { run, variant, block: run / 2, log_rate }
            })
            .collect();
        let order = run_order(&figures).unwrap();
        assert!((order.slope - 0.01).abs() < 1e-3 && order.p < 1e-6, "{order:?}");
        assert!(order.lag1.unwrap() > 0.5 && order.lag1_p.unwrap() < 0.01, "{order:?}");
    }

    #[test]
    fn variants_of_one_stream_count_as_one_run() {
        let stream = |run, variant, log_rate| RunFigure { run, variant, block: run, log_rate };
        let rates = [1.0, 1.2, 0.9, 1.1, 1.05];
        let both: Vec<RunFigure> = (0..)
            .zip(rates)
            .flat_map(|(run, rate)| [stream(run, 0, rate), stream(run, 1, rate - 0.3)])
            .collect();
        let (both, alone) = (run_order(&both).unwrap(), run_order(&runs(&rates)).unwrap());
        assert_eq!(both.runs, 5);
        assert!((both.slope - alone.slope).abs() < 1e-12, "{both:?} {alone:?}");
        assert_eq!(both.lag1_p, alone.lag1_p);
    }

    #[test]
    fn random_order_is_rarely_a_finding() {
        let mut found = 0;
        for seed in 0..200 {
            let mut random = SplitMix64::new(seed);
            let rates: Vec<f64> = (0..12).map(|_| random.normal()).collect();
            found += usize::from(run_order(&runs(&rates)).unwrap().lag1_p.unwrap() < 0.05);
        }
        // 10 are expected; 20 or more happen in 2 of 1000 sets.
        assert!((2..20).contains(&found), "{found}");
    }

    #[test]
    fn autocorrelation_agrees_with_statsmodels() {
        // statsmodels 0.15.0: tsa.stattools.acf(y)[1].
        let lag1 = lag1_autocorrelation(&DRIFTING).unwrap();
        assert!((lag1 - 0.28827977).abs() < 1e-8, "{lag1}");
        assert_eq!(lag1_autocorrelation(&[5.0, 5.0, 5.0]), None);
    }
}
