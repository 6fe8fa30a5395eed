//! Scaling of the rate with the number of queues, cores, senders or workers.
//!
//! Gunther's universal scalability law (1993; *Guerrilla Capacity Planning*, 2007): X(N) = lambda N
//! / (1 + sigma (N - 1) + kappa N (N - 1)). lambda is the rate of one, sigma the share of time
//! spent waiting for shared resources (contention), kappa the cost of each pair keeping each other
//! up to date (coherency), which makes the rate fall beyond sqrt((1 - sigma) / kappa).
//!
//! - One figure per run; the fit is least squares on the logarithm of the rate,
//!   because the scatter of rates grows with them.
//! - Runs of several blocks: each block has its own factor, fitted together with the law, and
//!   lambda belongs to the geometrically mean block.
//! - lambda > 0, 0 <= sigma <= 1, kappa >= 0. If the closest curve is on a bound, the parameter is
//!   fixed there, the others' intervals are conditional on it, and its own interval is one-sided,
//!   from the profile of the sum of squares.
//! - The other parameters have t intervals from the curve's derivatives; the
//!   peak, a ratio of two of them, has a profile interval, which may be open.
//! - Lack of fit: the part of the levels' means that the law leaves unexplained, compared with the
//!   scatter of runs of one level (F test). A staircase, a plateau at line rate or one lucky level
//!   does not follow this law, and the sentence reports it.
//! - A level with a run at the ceiling of sender and receiver is excluded completely: excluding
//!   only that run would keep the slow ones.
//!
//! Out of scope: extrapolation. The best level is sought between the smallest and the largest
//! measured level.

mod fit;
mod profile;
mod wording;

#[cfg(test)]
mod tests;

use super::summary::{Interval, mean, t_quantile};
use fit::{Data, FixedParameters, Solution};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of levels for a fit of three parameters that can be wrong.
const MIN_LEVELS: usize = 4;
/// p-value of the lack of fit below which the law does not describe the levels.
const LACK_OF_FIT_LEVEL: f64 = 0.01;

/// Figure of one run of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaledRun {
    /// Number of queues, cores, senders or workers; 1 or more.
    pub level: u32,
    /// Block of the run; the same for all if there are no blocks.
    pub block: u32,
    /// Rate in packets per second.
    pub pps: f64,
    /// True if sender, receiver or line limited the rate, not the DUT.
    pub limited: bool,
}

/// The law fitted to one sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scalability {
    /// Rate of one (queue, core ...) in packets per second.
    pub lambda_pps: Parameter,
    /// Contention, 0 (none) to 1.
    pub sigma: Parameter,
    /// Coherency, 0 or more.
    pub kappa: Parameter,
    /// Level with the law's highest rate.
    pub peak: Peak,
    /// The whole number between the smallest and the largest fitted level for which the law
    /// predicts the highest rate.
    pub best: Prediction,
    /// The fitted level with the highest geometric mean of its runs.
    pub fastest_measured: Measured,
    /// Test of the law against the scatter of the runs; `None` without several runs of a level.
    pub lack_of_fit: Option<LackOfFit>,
    /// Standard deviation of runs around the curve, on the logarithmic scale
    /// (0.02: about 2 %).
    pub residual_sd: f64,
    /// Degrees of freedom of `residual_sd`.
    pub df: f64,
    /// Runs in the fit.
    pub runs: usize,
    /// Blocks of these runs.
    pub blocks: usize,
    /// Levels in the fit, rising.
    pub levels: Vec<u32>,
    /// Levels left out because a run was limited by sender, receiver or line.
    pub censored: Vec<u32>,
    /// Confidence of all intervals in percent.
    pub confidence: f64,
    /// Covariance of ln lambda, sigma and kappa; zero for fixed parameters.
    #[serde(skip)]
    covariance: [[f64; 3]; 3],
}

/// A parameter of the law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Estimate.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard error (of lambda: on the logarithmic scale); `None` at a bound.
    pub se: Option<f64>,
    /// True if the estimate is on a bound of the law and the interval is one-sided.
    pub at_bound: bool,
}

/// Level at which the law's rate is highest, sqrt((1 - sigma) / kappa).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// The level, any positive number; `None` if the fitted rate never falls.
    pub level: Option<f64>,
    /// Lower end of its profile interval.
    pub low: f64,
    /// Upper end; `None` if the interval is open: the runs don't exclude a rate that never falls.
    pub high: Option<f64>,
}

/// The law's mean rate at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Level.
    pub level: u32,
    /// Rate in packets per second.
    pub pps: f64,
    /// Lower end of the t interval of the mean rate.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Measurements at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Level.
    pub level: u32,
    /// Geometric mean of its runs in packets per second.
    pub pps: f64,
}

/// F test of the law against unrestricted level means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LackOfFit {
    /// Ratio of the mean squares.
    pub f: f64,
    /// Degrees of freedom that the law saves.
    pub df_law: f64,
    /// Degrees of freedom of the scatter of runs.
    pub df_runs: f64,
    /// p-value of "the law holds".
    pub p: f64,
}

/// Reason why there is no fit, and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoFit {
    /// Too few levels that aren't limited by the generator.
    #[error(
        "too few levels for three parameters: {have} of at least {MIN_LEVELS}{}",
        wording::left_out(censored)
    )]
    TooFewLevels {
        /// Used levels.
        have: usize,
        /// Excluded levels.
        censored: Vec<u32>,
    },
    /// Too few runs.
    #[error("too few runs: {have} of at least {need} for {parameters} parameters")]
    TooFewRuns {
        /// Used runs.
        have: usize,
        /// Runs needed.
        need: usize,
        /// Parameters, including those of blocks.
        parameters: usize,
    },
    /// A rate without a logarithm, or a level below 1.
    #[error(
        "{pps} pps at level {level}: levels must be 1 or more and every run must have forwarded packets"
    )]
    NotPositive {
        /// Level of the run.
        level: u32,
        /// Rate in packets per second.
        pps: f64,
    },
    /// Confidence out of range.
    #[error("confidence must lie between 50 and 100 percent: {0}")]
    Confidence(f64),
    /// The closer the curve, the more extreme its parameters.
    #[error("no curve of the law is closest to these rates: they fall faster than it can")]
    NoMinimum,
}

/// Fits the law to the runs of one sweep.
///
/// # Errors
/// Fewer than four levels that aren't limited, too few runs, a rate or a level that isn't above 0,
/// or rates without a closest curve of the law.
pub fn fit_scalability(runs: &[ScaledRun], confidence: f64) -> Result<Scalability, NoFit> {
    if !(confidence > 50.0 && confidence < 100.0) {
        return Err(NoFit::Confidence(confidence));
    }
    let censored: BTreeSet<u32> = runs.iter().filter(|r| r.limited).map(|r| r.level).collect();
    let counted: Vec<ScaledRun> =
        runs.iter().copied().filter(|run| !censored.contains(&run.level)).collect();
    let bad = |run: &&ScaledRun| !(run.level >= 1 && run.pps.is_finite() && run.pps > 0.0);
    if let Some(run) = counted.iter().find(bad) {
        return Err(NoFit::NotPositive { level: run.level, pps: run.pps });
    }
    let levels: BTreeSet<u32> = counted.iter().map(|run| run.level).collect();
    let (levels, censored) = (Vec::from_iter(levels), Vec::from_iter(censored));
    if levels.len() < MIN_LEVELS {
        return Err(NoFit::TooFewLevels { have: levels.len(), censored });
    }
    let data = Data::of(&counted);
    let parameters = data.block_columns() + 2;
    if counted.len() <= parameters {
        let (have, need) = (counted.len(), parameters + 1);
        return Err(NoFit::TooFewRuns { have, need, parameters });
    }
    let solution = data.closest(&FixedParameters::FACES).ok_or(NoFit::NoMinimum)?;
    Scalability::of(&counted, &data, &solution, levels, censored, confidence)
        .ok_or(NoFit::NoMinimum)
}

impl Scalability {
    fn of(
        runs: &[ScaledRun],
        data: &Data,
        solution: &Solution,
        levels: Vec<u32>,
        censored: Vec<u32>,
        confidence: f64,
    ) -> Option<Scalability> {
        let df = solution.df as f64;
        let variance = solution.sse / df;
        let t = t_quantile(confidence, df)?;
        let covariance = solution.covariance(variance);
        let lambda = {
            let se = covariance[0][0].sqrt();
            let at = |z: f64| (solution.log_lambda + z * se).exp();
            Parameter { value: at(0.0), low: at(-t), high: at(t), se: Some(se), at_bound: false }
        };
        let parameter = |index: usize, value: f64, most: f64, profile: Option<Interval>| {
            let se = covariance[index][index].sqrt();
            let inner =
                Interval { low: (value - t * se).max(0.0), high: (value + t * se).min(most) };
            let Interval { low, high } = profile.unwrap_or(inner);
            let at_bound = profile.is_some();
            Parameter { value, low, high, se: (!at_bound).then_some(se), at_bound }
        };
        let FixedParameters { sigma, kappa } = solution.held;
        let sigma = sigma.map(|bound| profile::sigma(data, solution, bound, confidence));
        let kappa = kappa.map(|_| profile::kappa(data, solution, confidence));
        let mut scalability = Scalability {
            lambda_pps: lambda,
            sigma: parameter(1, solution.sigma, 1.0, sigma),
            kappa: parameter(2, solution.kappa, f64::INFINITY, kappa),
            peak: profile::peak(data, solution, confidence),
            best: Prediction { level: 0, pps: 0.0, low: 0.0, high: 0.0 },
            fastest_measured: fastest(runs)?,
            lack_of_fit: lack_of_fit(data, solution),
            residual_sd: variance.sqrt(),
            df,
            runs: runs.len(),
            blocks: data.block_columns(),
            levels,
            censored,
            confidence,
            covariance,
        };
        scalability.best = scalability.best_between(solution)?;
        Some(scalability)
    }

    /// Returns the law's mean rate at any level of 1 or more, with its t interval.
    pub fn predict(&self, level: f64) -> (f64, Interval) {
        let pairs = level * (level - 1.0);
        let (sigma, kappa) = (self.sigma.value, self.kappa.value);
        let divisor = 1.0 + sigma * (level - 1.0) + kappa * pairs;
        let log = self.lambda_pps.value.ln() + (level / divisor).ln();
        let slope = [1.0, -(level - 1.0) / divisor, -pairs / divisor];
        let squared: f64 = (0..3)
            .flat_map(|i| (0..3).map(move |j| (i, j)))
            .map(|(i, j)| slope[i] * self.covariance[i][j] * slope[j])
            .sum();
        let half = t_quantile(self.confidence, self.df).unwrap_or(f64::NAN) * squared.sqrt();
        (log.exp(), Interval { low: (log - half).exp(), high: (log + half).exp() })
    }

    /// False if the lack of fit is beyond chance (p below 1 %): the curve is then a smoothed view
    /// of the levels, and its best level a guess.
    pub fn holds(&self) -> bool {
        self.lack_of_fit.is_none_or(|test| test.p >= LACK_OF_FIT_LEVEL)
    }

    /// True if the law's peak is between the smallest and the largest level.
    pub fn peak_is_within(&self) -> bool {
        let range = self.levels.first().zip(self.levels.last());
        let (Some(peak), Some((&low, &high))) = (self.peak.level, range) else { return false };
        (f64::from(low)..=f64::from(high)).contains(&peak)
    }

    /// True if the best level may be above the used ones: the law still rises at the last of them,
    /// and the equipment limited the levels beyond.
    pub fn best_is_open(&self) -> bool {
        let last = self.levels.last();
        !self.peak_is_within() && self.censored.iter().any(|level| Some(level) > last)
    }

    /// Returns the whole number with the highest predicted rate, the smaller of equals.
    fn best_between(&self, solution: &Solution) -> Option<Prediction> {
        let (low, high) = (*self.levels.first()?, *self.levels.last()?);
        // The law rises up to its peak and falls beyond.
        let peak = solution.peak().unwrap_or(f64::INFINITY).clamp(low.into(), high.into());
        let (below, above) = (peak.floor() as u32, peak.ceil() as u32);
        let candidate = |level: u32| {
            let (pps, Interval { low, high }) = self.predict(level.into());
            Prediction { level, pps, low, high }
        };
        let (below, above) = (candidate(below), candidate(above));
        Some(if above.pps > below.pps { above } else { below })
    }
}

fn fastest(runs: &[ScaledRun]) -> Option<Measured> {
    let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for run in runs {
        logs.entry(run.level).or_default().push(run.pps.ln());
    }
    let means = logs.iter().map(|(&level, logs)| Measured { level, pps: mean(logs).exp() });
    means.reduce(|best, next| if next.pps > best.pps { next } else { best })
}

/// Tests the law against a separate mean for each level (block effects removed from both).
fn lack_of_fit(data: &Data, solution: &Solution) -> Option<LackOfFit> {
    let (sse, df_runs) = data.level_means()?;
    let df_law = solution.df.checked_sub(df_runs).filter(|&df| df > 0)? as f64;
    if df_runs == 0 {
        return None;
    }
    let df_runs = df_runs as f64;
    let missed = (solution.sse - sse).max(0.0) / df_law;
    // Runs without any scatter contradict the law certainly or not at all.
    let f = if missed == 0.0 { 0.0 } else { missed / (sse / df_runs) };
    let p = match FisherSnedecor::new(df_law, df_runs) {
        Ok(distribution) if f.is_finite() => distribution.sf(f),
        _ => 0.0,
    };
    Some(LackOfFit { f, df_law, df_runs, p })
}
