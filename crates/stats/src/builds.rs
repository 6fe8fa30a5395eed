//! Comparison of two revisions by their builds.
//!
//! The same source gives a faster or slower program if the linker orders it differently: by a
//! percent or more, which no number of runs of one build averages away (Mytkowicz et al. 2009,
//! "Producing wrong data without doing anything obviously wrong!"). If a revision has several
//! builds, they are its replicates, and their runs only determine the precision of each: the nested
//! design of Kalibera and Jones (2013, "Rigorous benchmarking in reasonable time").
//!
//! Every build runs in every block, so each build's mean over the blocks contains the same
//! differences between blocks, and they cancel. The effect is the difference of the mean over the
//! builds of both revisions, judged by the scatter between builds of one revision (pooled, because
//! code layout affects both alike) with as many degrees of freedom as there are builds minus two.
//! This scatter already includes the scatter of runs.

use crate::BlockedRun;
use crate::blocked::robust_of_lists;
use crate::comparison::{
    Builds, Comparison, Criteria, Layout, LogEstimate, Method, Scope, Sizes, Unanswerable, log_rate,
};
use crate::summary::{mean, sum_of_squares};
use std::collections::{BTreeMap, BTreeSet};

/// Compares two revisions, each given by the runs of its builds. A block is used if it contains
/// every build.
///
/// # Errors
/// Fewer than two such blocks, fewer than two builds of both revisions, or a rate that isn't above
/// 0.
pub fn compare_builds(
    baseline: &[Vec<BlockedRun>],
    candidate: &[Vec<BlockedRun>],
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    let too_few = |what, have, need| Err(Unanswerable::TooFew { what, have, need });
    let builds = baseline.len() + candidate.len();
    if baseline.is_empty() || candidate.is_empty() || builds < 3 {
        return too_few("builds of both revisions", builds, 3);
    }
    let (a, b) = (of_builds(baseline)?, of_builds(candidate)?);
    let mut blocks: BTreeSet<u32> = a[0].keys().copied().collect();
    blocks.retain(|block| a.iter().chain(&b).all(|build| build.contains_key(block)));
    if blocks.len() < 2 {
        return too_few("blocks with runs of all builds", blocks.len(), 2);
    }
    let count = |sides: &[Vec<BlockedRun>]| -> usize {
        sides.iter().flatten().filter(|run| blocks.contains(&run.block)).count()
    };
    let (n_a, n_b) = (count(baseline), count(candidate));
    let all: usize = baseline.iter().chain(candidate).map(Vec::len).sum();
    let (left_out, layout) = (all - n_a - n_b, Layout::Blocks);
    let sizes = Sizes { n_a, n_b, blocks: blocks.len(), left_out, layout };

    let means = |builds: &[BTreeMap<u32, f64>]| -> Vec<f64> {
        let logs = |build: &BTreeMap<u32, f64>| -> Vec<f64> {
            blocks.iter().map(|block| build[block]).collect()
        };
        builds.iter().map(|build| mean(&logs(build))).collect()
    };
    let (means_a, means_b) = (means(&a), means(&b));
    let (scatter, df) = scatter_of_builds(&means_a, &means_b);
    let of_runs = scatter_of_runs([&a, &b].map(|side| side.as_slice()), &blocks);
    let effect = mean(&means_b) - mean(&means_a);
    let root = (1.0 / means_a.len() as f64 + 1.0 / means_b.len() as f64).sqrt();
    let judged = |(scatter, df): (f64, f64), method| {
        let estimate = LogEstimate { effect, se: scatter * root, df };
        Comparison::from_estimate(estimate, criteria, sizes, method, Scope::AcrossStarts)
    };
    let found = judged((scatter, df), Method::Builds)?;
    let builds = Builds {
        a: means_a.len(),
        b: means_b.len(),
        scatter: scatter.exp_m1(),
        scatter_of_runs: of_runs.0.exp_m1(),
        these: judged(of_runs, Method::BlockedT)?.estimate(),
    };
    let robust = robust_of_lists(&means_a, &means_b, criteria);
    Ok(Comparison { robust, builds: Some(builds), ..found })
}

/// Returns the mean log of each build in each block.
fn of_builds(builds: &[Vec<BlockedRun>]) -> Result<Vec<BTreeMap<u32, f64>>, Unanswerable> {
    let of_build = |runs: &Vec<BlockedRun>| {
        let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for run in runs {
            blocks.entry(run.block).or_default().push(log_rate(run.pps)?);
        }
        Ok(blocks.into_iter().map(|(block, logs)| (block, mean(&logs))).collect())
    };
    builds.iter().map(of_build).collect()
}

/// Returns the standard deviation between builds of one revision, of their mean logs, with its
/// degrees of freedom.
fn scatter_of_builds(a: &[f64], b: &[f64]) -> (f64, f64) {
    let squares: f64 = [a, b].iter().map(|side| sum_of_squares(side, mean(side))).sum();
    let df = (a.len() + b.len() - 2) as f64;
    ((squares / df).sqrt(), df)
}

/// Returns the scatter of builds' means that runs alone would cause, with its degrees of freedom:
/// the residual of the block and build effects, over the root of the number of blocks.
fn scatter_of_runs(sides: [&[BTreeMap<u32, f64>]; 2], blocks: &BTreeSet<u32>) -> (f64, f64) {
    let builds: Vec<&BTreeMap<u32, f64>> = sides.into_iter().flatten().collect();
    let (n, k) = (blocks.len() as f64, builds.len() as f64);
    let of_build = |build: &BTreeMap<u32, f64>| -> f64 {
        blocks.iter().map(|block| build[block]).sum::<f64>() / n
    };
    let of_block = |block: &u32| builds.iter().map(|build| build[block]).sum::<f64>() / k;
    let by_build: Vec<f64> = builds.iter().map(|build| of_build(build)).collect();
    let by_block: Vec<(u32, f64)> = blocks.iter().map(|block| (*block, of_block(block))).collect();
    let grand = mean(&by_build);
    let rest = |build: &BTreeMap<u32, f64>, own: f64| -> f64 {
        by_block.iter().map(|(block, all)| (build[block] - own - all + grand).powi(2)).sum()
    };
    let squares: f64 = builds.iter().zip(&by_build).map(|(build, own)| rest(build, *own)).sum();
    let df = (n - 1.0) * (k - 1.0);
    ((squares / df / n).sqrt(), df)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::random::NormalNumbers;

    /// Returns builds of a revision that differ by `layout`, in drifting blocks, with a run scatter
    /// of 0.2 %.
    fn revision(
        random: &mut NormalNumbers,
        builds: usize,
        effect: f64,
        layout: f64,
    ) -> Vec<Vec<BlockedRun>> {
        let build = |_| {
            let relative_rate = 1.0 + effect + layout * random.next();
            let run = |block: u32| {
                let drift = 1.0 + 0.01 * f64::from(block);
                BlockedRun {
                    block,
                    pps: 1e6 * relative_rate * drift * (1.0 + 0.002 * random.next()),
                }
            };
            (0..10).map(run).collect()
        };
        (0..builds).map(build).collect()
    }

    /// Returns the shares of 1,000 comparisons that claim a difference: by builds, and by the same
    /// runs without them.
    fn claimed(builds: usize, effect: f64, layout: f64) -> (f64, f64) {
        let mut random = NormalNumbers::seeded(7);
        let mut counts = (0_u32, 0_u32);
        for _ in 0..1000 {
            let a = revision(&mut random, builds, 0.0, layout);
            let b = revision(&mut random, builds, effect, layout);
            let found = compare_builds(&a, &b, Criteria::default()).unwrap();
            let is_claimed = matches!(found.verdict(), Verdict::Better | Verdict::Worse);
            counts.0 += u32::from(is_claimed);
            counts.1 += u32::from(found.builds.unwrap().these.p < 0.05);
        }
        (f64::from(counts.0) / 1000.0, f64::from(counts.1) / 1000.0)
    }

    #[test]
    fn layout_alone_is_not_a_difference() {
        let (by_builds, by_runs) = claimed(4, 0.0, 0.01);
        // 5 % with a standard error of 0.7.
        assert!((0.03..0.07).contains(&by_builds), "{by_builds}");
        assert!(by_runs > 0.5, "{by_runs}: what this is for");
    }

    #[test]
    fn patch_is_detected_despite_layout() {
        // Power of the t test with 10 degrees of freedom at 3 / 0.577 standard errors.
        let (by_builds, _) = claimed(6, 0.03, 0.01);
        assert!(by_builds > 0.97, "{by_builds}");
        let (without_layout, _) = claimed(4, 0.0, 0.0);
        assert!((0.03..0.07).contains(&without_layout), "{without_layout}");
    }

    #[test]
    fn scatter_of_builds_and_runs_are_separated() {
        let mut random = NormalNumbers::seeded(3);
        let a = revision(&mut random, 40, 0.0, 0.01);
        let b = revision(&mut random, 40, 0.0, 0.01);
        let found = compare_builds(&a, &b, Criteria::default()).unwrap().builds.unwrap();
        assert!((found.scatter - 0.01).abs() < 0.002, "{found:?}");
        // 0.2 % over ten blocks.
        assert!((found.scatter_of_runs - 0.000_63).abs() < 0.0001, "{found:?}");
    }

    #[test]
    fn blocks_without_some_build_do_not_count_and_two_builds_are_too_few() {
        let mut random = NormalNumbers::seeded(3);
        let a = revision(&mut random, 2, 0.0, 0.0);
        let mut b = revision(&mut random, 1, 0.0, 0.0);
        b[0].truncate(4);
        let found = compare_builds(&a, &b, Criteria::default()).unwrap();
        assert_eq!((found.blocks, found.n_a, found.n_b, found.left_out), (4, 8, 4, 12));
        let two = compare_builds(&a[..1], &b, Criteria::default());
        assert!(two.unwrap_err().to_string().contains("builds"), "too few");
        b[0].truncate(1);
        let one = compare_builds(&a, &b, Criteria::default());
        assert!(one.unwrap_err().to_string().contains("blocks with runs of all builds"));
    }
}
