//! Comparison of two variants by their runs, on the logarithm of the rate.
//!
//! Logarithms, because an effect is a ratio and the scatter of rates grows with them. In randomised
//! complete blocks the differences between blocks cancel: an influence on a whole block
//! (temperature, neighbours on the host) is part neither of the effect nor of its error. Two
//! answers are computed: the exact [`super::randomisation`] test, and the t test with block effects
//! (for one run of each variant per block, the paired t test). The exact one decides if there are
//! enough assignments. The choice depends only on the numbers of blocks and comparisons, never on
//! the measurements.
//!
//! Without blocks: Welch's t test (Welch, 1947, Biometrika 34). The variances and the numbers of
//! runs need not be equal.
//!
//! Out of scope: ministat's pooled test (see [`super::ministat`]), whose error at least doubles if
//! the variances differ.

use crate::comparison::{
    Comparison, Criteria, Estimate, Layout, LogEstimate, Method, Scope, Sizes, Unanswerable,
    log_rate,
};
use crate::randomisation::{self, BlockLogs, DRAWS, EXACT_MAX, Randomisation};
use crate::rank;
use crate::summary::{mean, t_quantile, variance};
use std::collections::BTreeMap;

/// Minimum size of an exact test that decides, as a share of the level: with six pairs it can err
/// at 3.1 % or not at all, with seven at 4.7 %.
const SIZE_SHARE: f64 = 0.8;
/// Lists of fewer runs, against more than [`UNEVEN`] times as many, are judged by two tests; so is
/// every list of a family.
const FEW: usize = 8;
/// See [`FEW`].
const UNEVEN: usize = 2;

/// Figure of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockedRun {
    /// Block of the run.
    pub block: u32,
    /// Rate in packets per second.
    pub pps: f64,
}

/// Compares two variants that ran in the same blocks. A block is used if it contains both.
///
/// # Errors
/// Fewer than two common blocks, or a rate that isn't above 0.
pub fn compare_blocked(
    baseline: &[BlockedRun],
    candidate: &[BlockedRun],
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    let blocks = common_blocks(baseline, candidate)?;
    if blocks.len() < 2 {
        return Err(Unanswerable::TooFew {
            what: "blocks with runs of both variants",
            have: blocks.len(),
            need: 2,
        });
    }
    let n_a = blocks.iter().map(|block| block.a.len()).sum();
    let n_b = blocks.iter().map(|block| block.b.len()).sum();
    let left_out = baseline.len() + candidate.len() - n_a - n_b;
    let sizes = Sizes { n_a, n_b, blocks: blocks.len(), left_out, layout: Layout::Blocks };

    let t = with_block_effects(&blocks);
    let by_t =
        Comparison::from_estimate(t, criteria, sizes, Method::BlockedT, Scope::AcrossStarts)?;
    let robust = robust_of_blocks(&blocks, criteria.joint_confidence());
    let by_t = Comparison { robust, ..by_t };
    let Some(test) = randomisation(&blocks, criteria) else { return Ok(by_t) };
    Ok(by_exact_test(&test, by_t, criteria))
}

/// Compares two lists of runs (packets per second) without common blocks, such as imported files.
///
/// # Errors
/// Fewer than two runs of either, or a rate that isn't above 0.
pub fn compare_unblocked(
    baseline_pps: &[f64],
    candidate_pps: &[f64],
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    match criteria.family {
        0 | 1 => unblocked(baseline_pps, candidate_pps, criteria, welch),
        _ => compare_among_many(baseline_pps, candidate_pps, criteria),
    }
}

/// Like [`compare_unblocked`], for one of many simultaneous comparisons. The degrees of freedom are
/// at least those of the shorter list, a bound for any scatter of the lists (Hsu 1938). Welch's own
/// degrees of freedom are right at 5 %, but too many at the fraction of a percent that each of
/// twenty comparisons gets: eight figures against 72 are called different in 7.5 % of families
/// instead of 5 %.
///
/// # Errors
/// Same as [`compare_unblocked`].
pub fn compare_among_many(
    baseline_pps: &[f64],
    candidate_pps: &[f64],
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    unblocked(baseline_pps, candidate_pps, criteria, |a, b| {
        let fewer = a.len().min(b.len()) as f64;
        LogEstimate { df: fewer - 1.0, ..welch(a, b) }
    })
}

fn unblocked(
    baseline_pps: &[f64],
    candidate_pps: &[f64],
    criteria: Criteria,
    estimate: fn(&[f64], &[f64]) -> LogEstimate,
) -> Result<Comparison, Unanswerable> {
    let a = logs(baseline_pps)?;
    let b = logs(candidate_pps)?;
    let (n_a, n_b) = (a.len(), b.len());
    let have = n_a.min(n_b);
    if have < 2 {
        return Err(Unanswerable::TooFew { what: "runs of each variant", have, need: 2 });
    }
    let is_constant = |logs: &[f64]| logs.iter().all(|log| *log == logs[0]);
    if is_constant(&a) && is_constant(&b) && a[0] != b[0] {
        return Err(Unanswerable::NoScatter);
    }
    let sizes = Sizes { n_a, n_b, blocks: 0, left_out: 0, layout: Layout::Unblocked };
    let welch = Comparison::from_estimate(
        estimate(&a, &b),
        criteria,
        sizes,
        Method::Welch,
        Scope::AcrossStarts,
    )?;
    let robust = robust_of_lists(&a, &b, criteria);
    let (fewer, more) = (n_a.min(n_b), n_a.max(n_b));
    if criteria.family > 1 || (fewer < FEW && more > UNEVEN * fewer) {
        let alone = Criteria { family: 1, ..criteria };
        let ranks = robust_of_lists(&a, &b, alone);
        return Ok(by_both_tests(Comparison { robust, ..welch }, ranks.as_ref()));
    }
    Ok(Comparison { robust, ..welch })
}

/// Returns the robust secondary result of two lists of logs without common blocks.
pub(super) fn robust_of_lists(a: &[f64], b: &[f64], criteria: Criteria) -> Option<Estimate> {
    rank::rank_sum(a, b, criteria.joint_confidence())
        .map(|shift| Estimate::of_shift(shift, Method::RankSum))
}

/// Few runs against many that are not normal mislead Welch's test (20 + 5 runs of two modes: 13 %
/// false differences), and so do families of lists, whose level is far in the tails. Therefore the
/// ranks must agree, each comparison at the level of a single one: the interval covers both tests'
/// intervals, and the p-value is the larger one if the ranks show no difference. Without enough
/// runs for ranks no difference can be shown.
fn by_both_tests(welch: Comparison, ranks: Option<&Estimate>) -> Comparison {
    let widest = welch.robust.as_ref().or(ranks);
    let (low, high) = widest.and_then(|ranks| ranks.interval).unwrap_or((1.0, 1.0));
    let of_ranks = ranks.map_or(1.0, |ranks| ranks.p);
    let agrees = of_ranks < 1.0 - welch.confidence / 100.0;
    let p = if agrees { welch.p } else { of_ranks.max(welch.p) };
    let beside = Some(welch.estimate());
    Comparison {
        low: welch.low.min(low),
        high: welch.high.max(high),
        equivalence_low: welch.equivalence_low.min(low),
        equivalence_high: welch.equivalence_high.max(high),
        p,
        p_adjusted: p,
        method: Method::BothTests,
        beside,
        ..welch
    }
}

/// Returns the logs of blocks that contain both variants, in block order.
///
/// # Errors
/// A rate that isn't above 0.
pub fn common_blocks(
    baseline: &[BlockedRun],
    candidate: &[BlockedRun],
) -> Result<Vec<BlockLogs>, Unanswerable> {
    let mut blocks: BTreeMap<u32, BlockLogs> = BTreeMap::new();
    for run in baseline {
        blocks.entry(run.block).or_default().a.push(log_rate(run.pps)?);
    }
    for run in candidate {
        blocks.entry(run.block).or_default().b.push(log_rate(run.pps)?);
    }
    blocks.retain(|_, block| !block.a.is_empty() && !block.b.is_empty());
    Ok(blocks.into_values().collect())
}

/// Least squares with an effect of each block and one of the candidate; the residual has N - blocks
/// - 1 degrees of freedom.
fn with_block_effects(blocks: &[BlockLogs]) -> LogEstimate {
    // A block's difference is weighted by its precision: half the harmonic mean of its numbers of
    // runs.
    let weighted: Vec<(f64, f64)> = blocks
        .iter()
        .map(|block| {
            let (n_a, n_b) = (block.a.len() as f64, block.b.len() as f64);
            (n_a * n_b / (n_a + n_b), mean(&block.b) - mean(&block.a))
        })
        .collect();
    let weights: f64 = weighted.iter().map(|(weight, _)| weight).sum();
    let effect = weighted.iter().map(|(weight, d)| weight * d).sum::<f64>() / weights;
    let between: f64 = weighted.iter().map(|(weight, d)| weight * (d - effect).powi(2)).sum();
    let within: f64 = blocks
        .iter()
        .flat_map(|block| [&block.a, &block.b])
        .map(|runs| {
            let centre = mean(runs);
            runs.iter().map(|log| (log - centre).powi(2)).sum::<f64>()
        })
        .sum();
    let runs: usize = blocks.iter().map(|block| block.a.len() + block.b.len()).sum();
    let df = (runs - blocks.len() - 1) as f64;
    LogEstimate { effect, se: ((between + within) / df / weights).sqrt(), df }
}

fn welch(a: &[f64], b: &[f64]) -> LogEstimate {
    let (n_a, n_b) = (a.len(), b.len());
    let (mean_a, mean_b) = (mean(a), mean(b));
    // Squared standard errors of the two means.
    let share_a = variance(a, mean_a) / n_a as f64;
    let share_b = variance(b, mean_b) / n_b as f64;
    let squared = share_a + share_b;
    let df = if squared == 0.0 {
        (n_a + n_b - 2) as f64
    } else {
        // Divides the shares, not their squares: squares of tiny shares underflow.
        let (part_a, part_b) = (share_a / squared, share_b / squared);
        1.0 / (part_a.powi(2) / (n_a - 1) as f64 + part_b.powi(2) / (n_b - 1) as f64)
    };
    LogEstimate { effect: mean_b - mean_a, se: squared.sqrt(), df }
}

/// Returns the randomisation distribution; `None` if it could not decide.
fn randomisation(blocks: &[BlockLogs], criteria: Criteria) -> Option<Randomisation> {
    let few = randomisation::assignments(blocks).is_some_and(|count| count <= EXACT_MAX);
    (few || can_decide(DRAWS, criteria)).then(|| Randomisation::of(blocks))
}

/// True if the smallest p-value of this number of assignments survives the family.
fn can_decide(assignments: u64, criteria: Criteria) -> bool {
    let level = 1.0 - criteria.confidence / 100.0;
    2.0 / assignments as f64 * criteria.family.max(1) as f64 <= level
}

/// True if the exact test has enough assignments for the family's level.
fn decides(test: &Randomisation, criteria: Criteria) -> bool {
    let joint = criteria.joint_confidence();
    let level = 1.0 - joint / 100.0;
    can_decide(test.assignments(), criteria) && test.size(joint) >= SIZE_SHARE * level
}

/// Returns the exact test's answer with the t test's as secondary, or the reverse if there are too
/// few assignments for the exact test to decide.
fn by_exact_test(test: &Randomisation, by_t: Comparison, criteria: Criteria) -> Comparison {
    let joint = criteria.joint_confidence();
    let narrow = 2.0 * joint - 100.0;
    let method = match (test.is_exact(), test.assignments()) {
        (true, assignments) => Method::Exact { assignments },
        (false, draws) => Method::MonteCarlo { draws, seed: randomisation::SEED },
    };
    let interval = test.interval(joint);
    if let (true, Some((low, high)), Some(inner)) =
        (decides(test, criteria), interval, test.interval(narrow))
    {
        let beside = Some(by_t.estimate());
        return Comparison {
            low: low.exp(),
            high: high.exp(),
            equivalence_low: inner.0.exp(),
            equivalence_high: inner.1.exp(),
            p: test.p(),
            p_adjusted: test.p(),
            method,
            beside,
            ..by_t
        };
    }
    let interval = interval.map(|(low, high)| (low.exp(), high.exp()));
    let beside = Some(Estimate { ratio: by_t.ratio, interval, p: test.p(), method });
    Comparison { beside, ..by_t }
}

/// Returns the robust secondary result of blocks, from their log ratios.
pub(crate) fn robust_of_blocks(blocks: &[BlockLogs], confidence: f64) -> Option<Estimate> {
    let differences: Vec<f64> =
        blocks.iter().map(|block| mean(&block.b) - mean(&block.a)).collect();
    rank::signed_rank(&differences, confidence)
        .map(|shift| Estimate::of_shift(shift, Method::SignedRank))
}

/// Difference of two variants in the unit of their values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Candidate minus baseline.
    pub difference: f64,
    /// Lower end of the interval at the family's confidence.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Compares two variants that ran in the same blocks by the difference of their values instead of
/// their ratio: values may be 0, and differences of parts sum to the difference of the whole. The
/// exact test and the t test decide as in [`compare_blocked`]. `None` with fewer than two blocks.
pub fn difference_of_blocks(blocks: &[BlockLogs], criteria: Criteria) -> Option<Difference> {
    if blocks.len() < 2 {
        return None;
    }
    let t = with_block_effects(blocks);
    let joint = criteria.joint_confidence();
    let half = t_quantile(joint, t.df)? * t.se;
    let by_t = (t.effect - half, t.effect + half);
    let exact = randomisation(blocks, criteria).filter(|test| decides(test, criteria));
    let (low, high) = exact.and_then(|test| test.interval(joint)).unwrap_or(by_t);
    Some(Difference { difference: t.effect, low, high })
}

/// Returns the mean of at least two values with its standard error.
pub fn mean_estimate(values: &[f64]) -> LogEstimate {
    let n = values.len() as f64;
    let effect = mean(values);
    LogEstimate { effect, se: (variance(values, effect) / n).sqrt(), df: n - 1.0 }
}

fn logs(rates: &[f64]) -> Result<Vec<f64>, Unanswerable> {
    rates.iter().map(|&rate| log_rate(rate)).collect()
}
