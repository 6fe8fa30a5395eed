//! Looks after every block, without a fixed end.
//!
//! The evidence against "no effect" is the ratio of two likelihoods of the t statistic: with an
//! effect that is itself normal around 0 with `g` times the variance of a block, over without one.
//! Without an effect its expectation is 1 for any scatter, so it exceeds 1 / alpha at any time with
//! a chance of at most alpha (Ville's inequality): an e-process. The interval of all effects not
//! yet refuted is a confidence sequence (Lindon, Ham, Tingley and Bojinov, 2022; Wang and Ramdas,
//! 2025, "Anytime-valid t-tests").
//!
//! In 10^5 simulated experiments without effect, the evidence reached 20 (a
//! level of 5 %) within 50, 200 and 1000 blocks in 2.5, 3.2 and 3.5 %. With
//! effects of 1, 2, 3 and 5 % on runs with a coefficient of variation of 1 %,
//! all reached it within 200 blocks, after 22.5, 9.1, 6.8 and 5.6 on average.
//!
//! Out of scope: tuning `g` to the expected effect. 1 detects effects of about one standard
//! deviation of a block's log ratio soonest, and others only slightly later.

use super::super::summary::Interval;
use super::common_part;

/// Prior variance of the effect over the variance of a block's log ratio.
const G: f64 = 1.0;

/// Returns the natural logarithm of the evidence in a t statistic of `n` block log ratios (infinite
/// without scatter); 0 for fewer than two.
pub fn log_e(n: u32, t: f64) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let df = f64::from(n) - 1.0;
    let spread = 1.0 + f64::from(n) * G;
    let likelihoods = match t.abs() {
        t if t.is_finite() => (t * t / df).ln_1p() - (t * t / (df * spread)).ln_1p(),
        // The limit for infinite t.
        _ => spread.ln(),
    };
    0.5 * (df + 1.0) * likelihoods - 0.5 * spread.ln()
}

/// Returns the |t| at which the evidence of `n` block log ratios reaches 1 / `alpha`: half the
/// width of the confidence sequence in standard errors. Infinite while too few blocks cannot reach
/// it.
pub fn bound(n: u32, alpha: f64) -> f64 {
    if n < 2 {
        return f64::INFINITY;
    }
    let df = f64::from(n) - 1.0;
    let spread = 1.0 + f64::from(n) * G;
    let ratio = (2.0 * (-alpha.ln() + 0.5 * spread.ln()) / (df + 1.0)).exp();
    if ratio >= spread {
        return f64::INFINITY;
    }
    (df * (ratio - 1.0) / (1.0 - ratio / spread)).sqrt()
}

/// The evidence of one comparison, block by block.
#[derive(Clone, Debug)]
pub struct EProcess {
    alpha: f64,
    n: u32,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
    log_e_max: f64,
    interval: Interval,
}

impl EProcess {
    /// Creates a process without blocks, with a confidence sequence of level `alpha`.
    pub fn new(alpha: f64) -> EProcess {
        let interval = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
        EProcess { alpha, n: 0, mean: 0.0, squares: 0.0, log_e_max: 0.0, interval }
    }

    /// Adds a block's natural log ratio.
    pub fn push(&mut self, log_ratio: f64) {
        self.n += 1;
        // Welford's recursion (1962, Technometrics 4).
        let deviation = log_ratio - self.mean;
        self.mean += deviation / f64::from(self.n);
        self.squares += deviation * (log_ratio - self.mean);
        self.log_e_max = self.log_e_max.max(self.log_e());
        let (bound, se) = (bound(self.n, self.alpha), self.se());
        if bound.is_finite() {
            let now = Interval { low: self.mean - bound * se, high: self.mean + bound * se };
            self.interval = common_part(self.interval, now);
        }
    }

    /// Returns the number of blocks so far.
    pub fn blocks(&self) -> u32 {
        self.n
    }

    /// Returns the mean log ratio; 0 without blocks.
    pub fn effect(&self) -> f64 {
        self.mean
    }

    /// Returns the current evidence as a natural logarithm.
    pub fn log_e(&self) -> f64 {
        log_e(self.n, super::t_of(self.mean, self.se()))
    }

    /// Returns its maximum so far; at least 0, the evidence without blocks.
    pub fn log_e_max(&self) -> f64 {
        self.log_e_max
    }

    /// Returns the p-value, valid after every block: one over the maximum evidence.
    pub fn p(&self) -> f64 {
        (-self.log_e_max).exp()
    }

    /// Returns the intersection of the confidence sequence's intervals so far.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Returns the standard error of the mean; infinite for fewer than two blocks.
    fn se(&self) -> f64 {
        let n = f64::from(self.n);
        if self.n < 2 { f64::INFINITY } else { (self.squares / (n - 1.0) / n).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::random::NormalNumbers;
    use super::*;

    #[test]
    fn evidence_agrees_with_savvi() {
        // savvi 0.3.1: linear_regression.log_bf(t * t, n - 1, 1.0, n).
        for (n, t, known) in [
            (2, 0.5, -0.40620530069338145),
            (2, 40.0, 0.5480577047212162),
            (5, 2.5, 0.8779727412250271),
            (10, -3.2, 2.107749470752949),
            (20, 4.4, 5.029692599664219),
            (50, 2.0, -0.04410644524532503),
            (200, 3.5, 3.291470620335728),
        ] {
            let ours = log_e(n, t);
            assert!((ours - known).abs() < 1e-8, "n {n}, t {t}: {ours} is not {known}");
        }
    }

    #[test]
    fn evidence_at_the_bound_is_sufficient() {
        for n in [5, 6, 10, 20, 100, 1000] {
            for alpha in [0.1, 0.05, 0.01] {
                let bound = bound(n, alpha);
                if bound.is_finite() {
                    assert!((log_e(n, bound) + f64::ln(alpha)).abs() < 1e-9, "{n} {alpha}");
                } else {
                    assert!(log_e(n, f64::INFINITY) <= -f64::ln(alpha), "{n} {alpha}");
                }
            }
        }
        assert_eq!(bound(3, 0.05), f64::INFINITY);
        assert_eq!(bound(1, 0.05), f64::INFINITY);
        assert!(bound(6, 0.05).is_finite());
    }

    #[test]
    fn fold_agrees_with_two_passes() {
        let log_ratios = [0.021, 0.034, 0.017, 0.025, 0.041, 0.012, 0.028];
        let mut process = EProcess::new(0.05);
        let mut most = 0.0f64;
        for n in 1..=log_ratios.len() {
            process.push(log_ratios[n - 1]);
            let (mean, t) = mean_and_t(&log_ratios[..n]);
            if n >= 2 {
                most = most.max(log_e(n as u32, t));
                assert!((process.log_e() - log_e(n as u32, t)).abs() < 1e-9);
            }
            assert!((process.effect() - mean).abs() < 1e-12);
        }
        assert_eq!(process.blocks(), 7);
        assert!((process.log_e_max() - most).abs() < 1e-9);
        // The interval excludes 0 if and only if p is below the level.
        assert!(process.p() < 0.05 && process.interval().low > 0.0, "{process:?}");
    }

    fn mean_and_t(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, mean / (squares / (n - 1.0) / n).sqrt())
    }

    #[test]
    fn missing_scatter_does_not_panic() {
        let mut process = EProcess::new(0.05);
        for _ in 0..10 {
            process.push(0.0);
        }
        assert_eq!((process.p(), process.effect()), (1.0, 0.0));
        let mut process = EProcess::new(0.05);
        for _ in 0..10 {
            process.push(0.25);
        }
        assert!(process.p() < 0.05);
        assert_eq!(process.interval(), Interval { low: 0.25, high: 0.25 });
    }

    /// Returns the share of experiments whose evidence reaches 20 within `blocks` blocks, and the
    /// mean number of blocks that these need.
    fn found(effect_in_sd: f64, blocks: u32, experiments: u32) -> (f64, f64) {
        let mut numbers = NormalNumbers::seeded(5);
        let (mut found, mut needed) = (0, 0);
        for _ in 0..experiments {
            let mut process = EProcess::new(0.05);
            for block in 1..=blocks {
                process.push(effect_in_sd + numbers.next());
                if process.log_e() >= 20f64.ln() {
                    found += 1;
                    needed += block;
                    break;
                }
            }
        }
        (f64::from(found) / f64::from(experiments), f64::from(needed) / f64::from(found.max(1)))
    }

    #[test]
    fn looking_after_every_block_keeps_the_level() {
        let (share, _) = found(0.0, 200, 2000);
        assert!(share <= 0.05, "{share}");
    }

    #[test]
    fn two_percent_at_one_percent_scatter_takes_at_most_ten_pairs() {
        let (share, needed) = found(1.02f64.ln() / (0.01 * 2f64.sqrt()), 200, 2000);
        assert!(share == 1.0 && needed <= 10.0, "{share} {needed}");
    }

    /// Fewer experiments than in the header, so within three standard errors of its figures.
    #[test]
    fn figures_in_the_module_header_are_reproduced() {
        for (blocks, experiments, expected) in
            [(50, 4000, 0.025f64), (200, 2000, 0.032), (1000, 500, 0.035)]
        {
            let (share, _) = found(0.0, blocks, experiments);
            let error = (expected * (1.0 - expected) / f64::from(experiments)).sqrt();
            assert!((share - expected).abs() < 3.0 * error, "within {blocks}: {share}");
        }
        for (change, expected) in [(0.01, 22.5), (0.02, 9.1), (0.03, 6.8), (0.05f64, 5.6)] {
            let effect = change.ln_1p() / (0.01 * 2f64.sqrt());
            let (share, needed) = found(effect, 200, 2000);
            assert!(share == 1.0 && (needed / expected - 1.0).abs() < 0.05, "{change}: {needed}");
        }
    }
}
