//! Power of an experiment to show an effect or its absence, and its smallest detectable effect.
//!
//! Exact for a t test, without a library's noncentral t: given the chi distribution of the standard
//! error the rest is normal, and that one-dimensional integral is summed numerically, to more than
//! ten digits.

use crate::summary::t_quantile;
use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;
use std::cell::Cell;

/// Power of every minimum detectable effect.
pub const MDE_POWER: f64 = 0.90;
/// Logarithm of a weight that is negligible compared with 1.
const NEGLIGIBLE: f64 = -38.0;

/// Returns the effect, in standard errors, that a two-sided t test at `confidence` percent with
/// `df` degrees of freedom detects with a chance of `power`; `None` for invalid arguments. The
/// minimum detectable effect is this multiple of the standard error: about 3.24 for many runs, 4.40
/// for five pairs.
pub fn detectable_multiple(confidence: f64, df: f64, power: f64) -> Option<f64> {
    thread_local! {
        // Comparisons of one experiment mostly have the same degrees of freedom, and the answer
        // costs more than the rest of a comparison.
        static LAST: Cell<([f64; 3], Option<f64>)> = const { Cell::new(([f64::NAN; 3], None)) };
    }
    let arguments = [confidence, df, power];
    let (last, answer) = LAST.get();
    if last == arguments {
        return answer;
    }
    let answer = solved_multiple(confidence, df, power);
    LAST.set((arguments, answer));
    answer
}

fn solved_multiple(confidence: f64, df: f64, power: f64) -> Option<f64> {
    let critical = t_quantile(confidence, df)?;
    if !(power > 1.0 - confidence / 100.0 && power < 1.0) {
        return None;
    }
    // A good approximation (Bloom, 1995). Power rises monotonically with the effect: a few of
    // Newton's steps suffice, and the bounds contain a step that overshoots.
    let guess = critical + t_quantile(2.0 * 100.0 * power - 100.0, df).unwrap_or(0.0).max(0.0);
    let mut delta = guess.max(0.1);
    let mut scatter = Scatter::new(df, 1.5 * delta);
    let (mut low, mut high) = (0.0, f64::INFINITY);
    for _ in 0..60 {
        if delta > scatter.most {
            scatter = Scatter::new(df, 1.5 * delta);
        }
        let (reached, slope) = scatter.power(delta, critical);
        let miss = reached - power;
        if miss.abs() < 1e-14 {
            break;
        }
        if miss < 0.0 {
            low = delta;
        } else {
            high = delta;
        }
        let mut next = delta - miss / slope;
        if !(next > low && next < high) {
            next = if high.is_finite() { 0.5 * (low + high) } else { 1.5 * delta };
        }
        let moved = (next - delta).abs();
        delta = next;
        if !delta.is_finite() {
            return None;
        }
        if moved < 1e-13 * delta {
            break;
        }
    }
    Some(delta)
}

/// Returns the upper 90 % limit of the true scatter over the observed scatter with `df` degrees of
/// freedom (chi-squared; 1.94 at 4 degrees of freedom, 1.2 at 30).
pub fn largest_scatter(df: f64) -> f64 {
    let chi = ChiSquared::new(df.max(0.5)).map(|chi| chi.inverse_cdf(0.1));
    chi.map_or(f64::INFINITY, |quantile| (df / quantile).sqrt())
}

/// Returns the chance that a two-sided t test at `confidence` percent with `df` degrees of freedom
/// detects a true effect of `effect_in_se` standard errors, in either direction; `None` for invalid
/// arguments.
pub fn power_of_t(effect_in_se: f64, confidence: f64, df: f64) -> Option<f64> {
    let critical = t_quantile(confidence, df)?;
    effect_in_se.is_finite().then(|| test_power(effect_in_se, critical, df).clamp(0.0, 1.0))
}

/// Returns the chance that two one-sided t tests, each with an error of 100 - `confidence` percent,
/// show a true effect of 0 to be within a margin of `margin_in_se` standard errors; `None` for
/// invalid arguments.
pub fn power_of_equivalence(margin_in_se: f64, confidence: f64, df: f64) -> Option<f64> {
    let critical = t_quantile(2.0 * confidence - 100.0, df)?;
    let normal = Normal::standard();
    let within = |s: f64| 1.0 - 2.0 * normal.sf((margin_in_se - critical * s).max(0.0));
    // Beyond it, the interval is wider than the margin.
    let most = margin_in_se / critical;
    (margin_in_se > 0.0).then(|| mean_over_scatter(within, df, most).clamp(0.0, 1.0))
}

/// Returns the chance that |t| exceeds `critical` if the true effect is `delta` standard errors.
fn test_power(delta: f64, critical: f64, df: f64) -> f64 {
    Scatter::new(df, delta.abs()).power(delta, critical).0
}

/// The estimated standard error over the true one, s = sqrt(chi2 / df), as values with weights.
struct Scatter {
    /// Values and their weights, which sum to 1.
    nodes: Vec<(f64, f64)>,
    /// The largest effect, in standard errors, for which they are dense enough.
    most: f64,
}

impl Scatter {
    fn new(df: f64, most: f64) -> Scatter {
        // Over x = ln s the density is smooth and vanishes on both sides. There, sums over even
        // steps are exact except for the last digits once the steps are half as wide as the
        // narrower of the two curves (or 1/8). Dividing by the sum of the weights avoids the
        // density's constant.
        let step = (0.5 / (1.0 + most)).min(0.5 / (2.0 * df).sqrt()).min(0.125);
        let log_weight = |x: f64| df * (x - 0.5 * (2.0 * x).exp_m1());
        let mut nodes = Vec::new();
        for (start, direction) in [(0.0, 1.0), (-step, -1.0)] {
            let mut x = start;
            while log_weight(x) > NEGLIGIBLE {
                nodes.push((x.exp(), log_weight(x).exp()));
                x += direction * step;
            }
        }
        let all: f64 = nodes.iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut nodes {
            *weight /= all;
        }
        Scatter { nodes, most }
    }

    /// Returns the chance that |t| exceeds `critical` if the true effect is `delta` standard
    /// errors, as the mean of both normal tails, and its slope over `delta`.
    fn power(&self, delta: f64, critical: f64) -> (f64, f64) {
        let normal = Normal::standard();
        let (mut found, mut slope) = (0.0, 0.0);
        for (s, weight) in &self.nodes {
            let (near, far) = (delta - critical * s, -delta - critical * s);
            found += weight * (normal.cdf(near) + normal.cdf(far));
            slope += weight * (normal.pdf(near) - normal.pdf(far));
        }
        (found, slope)
    }
}

/// Returns the mean of `f` over s = sqrt(chi2 / df), with `f` taken as 0 above `most`.
fn mean_over_scatter(f: impl Fn(f64) -> f64, df: f64, most: f64) -> f64 {
    // Density of s, up to the normalisation, which is done in logarithms.
    let log_norm = std::f64::consts::LN_2 + 0.5 * df * (0.5 * df).ln() - ln_gamma(0.5 * df);
    let density = |s: f64| {
        if s == 0.0 {
            // Only df = 1 has mass at zero; above it the density vanishes there.
            return if df == 1.0 { log_norm.exp() } else { 0.0 };
        }
        (log_norm + (df - 1.0) * s.ln() - 0.5 * df * s * s).exp()
    };
    // Twelve standard deviations of s (at most 1 / sqrt(2 df)) to either side.
    let spread = 12.0 / (2.0 * df).sqrt();
    let (from, to) = ((1.0 - spread).max(0.0), (1.0 + spread).min(most));
    if to <= from {
        return 0.0;
    }
    simpson(|s| density(s) * f(s), from, to, 400)
}

fn simpson(f: impl Fn(f64) -> f64, from: f64, to: f64, even_steps: usize) -> f64 {
    let step = (to - from) / even_steps as f64;
    let inner: f64 = (1..even_steps)
        .map(|i| f(from + i as f64 * step) * if i % 2 == 1 { 4.0 } else { 2.0 })
        .sum();
    (f(from) + inner + f(to)) * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detectable_multiple_agrees_with_quadrature() {
        // mpmath 1.4.1, quadrature of 30 digits. statsmodels 0.15.0 gives the same
        // to 3e-7: TTestPower().solve_power(nobs=df+1, alpha=.05, power=.9,
        // alternative='two-sided') * sqrt(df+1).
        for (df, multiple) in [
            (2.0, 6.795612156884757),
            (4.0, 4.395861045790134),
            (9.0, 3.6510550715645354),
            (19.0, 3.418759670412586),
            (99.0, 3.273431403832168),
        ] {
            let ours = detectable_multiple(95.0, df, 0.9).unwrap();
            assert!((ours / multiple - 1.0).abs() < 1e-9, "df {df}: {ours} is not {multiple}");
        }
    }

    #[test]
    fn one_degree_of_freedom_agrees_with_quadrature() {
        // scipy 1.17.1: brentq over integrate.quad of stats.chi.pdf times both
        // normal tails, for one degree of freedom and for Welch's fractions.
        for (df, multiple) in [(1.0, 20.964473420099797), (4.241729735517912, 4.304548832738187)] {
            let ours = detectable_multiple(95.0, df, 0.9).unwrap();
            assert!((ours / multiple - 1.0).abs() < 1e-9, "df {df}: {ours} is not {multiple}");
        }
    }

    #[test]
    fn power_without_effect_equals_the_level() {
        for df in [1.0, 3.0, 12.5, 300.0] {
            let critical = t_quantile(95.0, df).unwrap();
            let size = test_power(0.0, critical, df);
            assert!((size - 0.05).abs() < 5e-12, "df {df}: {size}");
        }
    }

    #[test]
    fn power_agrees_with_statsmodels() {
        // statsmodels 0.15.0: TTestPower().power(log1p(change) / (sqrt(2) *
        // 0.01), n, 0.05, alternative='two-sided'): runs with a CV of 1 %.
        for (n, change, power) in [
            (6.0f64, 0.01f64, 0.28913128645215647),
            (6.0, 0.02, 0.781492910645954),
            (8.0, 0.02, 0.922115157439613),
            (10.0, 0.01, 0.510433114448789),
            (20.0, 0.01, 0.8471239636141332),
        ] {
            let se = 0.01 * (2.0 / n).sqrt();
            let ours = power_of_t(change.ln_1p() / se, 95.0, n - 1.0).unwrap();
            assert!((ours - power).abs() < 1e-6, "{n} pairs, {change}: {ours} is not {power}");
        }
    }

    #[test]
    fn power_of_equivalence_agrees_with_quadrature() {
        // scipy 1.17.1: integrate.quad over stats.chi2.pdf of the chance that
        // the mean +- t.ppf(.95) s lies within log1p(margin), sd sqrt(2) %.
        for (n, margin, power) in [
            (5.0f64, 0.01f64, 0.08543432021509235),
            (5.0, 0.02, 0.6591201848751358),
            (8.0, 0.02, 0.9423838066060052),
            (10.0, 0.01, 0.3457751798618986),
            (20.0, 0.01, 0.8344669764514564),
        ] {
            let se = 0.01 * (2.0 / n).sqrt();
            let ours = power_of_equivalence(margin.ln_1p() / se, 95.0, n - 1.0).unwrap();
            assert!((ours - power).abs() < 1e-6, "{n} pairs, {margin}: {ours} is not {power}");
        }
    }

    #[test]
    fn largest_scatter_agrees_with_scipy() {
        // scipy 1.17.1: (df / stats.chi2.ppf(.1, df)) ** .5.
        for (df, high) in [(4.0, 1.93925), (9.0, 1.46943)] {
            assert!((largest_scatter(df) - high).abs() < 1e-4, "{df}");
        }
    }

    #[test]
    fn invalid_arguments_return_none() {
        assert_eq!(power_of_t(f64::NAN, 95.0, 5.0), None);
        assert_eq!(power_of_equivalence(0.0, 95.0, 5.0), None);
        assert_eq!(detectable_multiple(95.0, 0.0, 0.9), None);
        assert_eq!(detectable_multiple(100.0, 5.0, 0.9), None);
        assert_eq!(detectable_multiple(95.0, 5.0, 1.0), None);
    }
}
