//! Two variants compared by their runs, on the logarithm of the rate.
//!
//! Logarithms because an effect is a ratio and the scatter of rates grows with
//! them. In randomised complete blocks each block yields one log ratio, so
//! that whatever moves a whole block (temperature, neighbours on the host)
//! cancels; with one run per variant and block this is the paired t test, and
//! equals the analysis of variance with block effects for two variants.
//! Without blocks, Welch's t test (Welch, 1947, Biometrika 34): the variances
//! and the numbers of runs need not be equal.
//!
//! Left out: the pooled test that ministat does (see [`super::ministat`]),
//! whose error doubles and more when the variances differ.

use super::comparison::{
    Comparison, Criteria, Layout, LogEstimate, Scope, Sizes, Unanswerable, log_rate,
};
use super::summary::{mean, variance};
use std::collections::BTreeMap;

/// The figure of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockedRun {
    /// Block of the run.
    pub block: u32,
    /// Rate in packets per second.
    pub pps: f64,
}

/// Compares two variants that ran in the same blocks. A block counts when it
/// holds both; several runs of a variant in one block count as their
/// (geometric) mean.
///
/// # Errors
/// Fewer than two common blocks, or a rate that isn't above 0.
pub fn compare_blocked(
    baseline: &[BlockedRun],
    candidate: &[BlockedRun],
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    let a = logs_by_block(baseline)?;
    let b = logs_by_block(candidate)?;
    let mut log_ratios = Vec::new();
    let (mut n_a, mut n_b) = (0, 0);
    for (block, in_a) in &a {
        if let Some(in_b) = b.get(block) {
            log_ratios.push(mean(in_b) - mean(in_a));
            n_a += in_a.len();
            n_b += in_b.len();
        }
    }
    let blocks = log_ratios.len();
    if blocks < 2 {
        return Err(Unanswerable::TooFew {
            what: "blocks with runs of both variants",
            have: blocks,
            need: 2,
        });
    }
    let left_out = baseline.len() + candidate.len() - n_a - n_b;
    Comparison::from_estimate(
        mean_estimate(&log_ratios),
        criteria,
        Sizes { n_a, n_b, blocks, left_out, layout: Layout::Blocks },
        "blocked t on log rates",
        Scope::AcrossStarts,
    )
}

/// Compares two lists of runs (packets per second) that share no blocks, such
/// as imported files.
///
/// # Errors
/// Fewer than two runs of either, or a rate that isn't above 0.
pub fn compare_unblocked(
    baseline_pps: &[f64],
    candidate_pps: &[f64],
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    let a = logs(baseline_pps)?;
    let b = logs(candidate_pps)?;
    let (n_a, n_b) = (a.len(), b.len());
    let have = n_a.min(n_b);
    if have < 2 {
        return Err(Unanswerable::TooFew { what: "runs of each variant", have, need: 2 });
    }
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    // Squared standard errors of the two means.
    let share_a = variance(&a, mean_a) / n_a as f64;
    let share_b = variance(&b, mean_b) / n_b as f64;
    let squared = share_a + share_b;
    let df = if squared == 0.0 {
        (n_a + n_b - 2) as f64
    } else {
        // Of the shares, not of their squares: those of tiny ones underflow.
        let (part_a, part_b) = (share_a / squared, share_b / squared);
        1.0 / (part_a.powi(2) / (n_a - 1) as f64 + part_b.powi(2) / (n_b - 1) as f64)
    };
    Comparison::from_estimate(
        LogEstimate { effect: mean_b - mean_a, se: squared.sqrt(), df },
        criteria,
        Sizes { n_a, n_b, blocks: 0, left_out: 0, layout: Layout::Unblocked },
        "Welch's t on log rates",
        Scope::AcrossStarts,
    )
}

/// Mean of at least two values with its standard error.
pub(crate) fn mean_estimate(values: &[f64]) -> LogEstimate {
    let n = values.len() as f64;
    let effect = mean(values);
    LogEstimate { effect, se: (variance(values, effect) / n).sqrt(), df: n - 1.0 }
}

fn logs(rates: &[f64]) -> Result<Vec<f64>, Unanswerable> {
    rates.iter().map(|&rate| log_rate(rate)).collect()
}

fn logs_by_block(runs: &[BlockedRun]) -> Result<BTreeMap<u32, Vec<f64>>, Unanswerable> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for run in runs {
        blocks.entry(run.block).or_default().push(log_rate(run.pps)?);
    }
    Ok(blocks)
}
