//! Comparison of two variants under a stopping rule.

use super::{Decision, Mode, Rule, Sequential, open, planned::Looks};
use crate::blocked::{BlockedRun, common_blocks};
use crate::comparison::{
    Comparison, Criteria, Layout, LogEstimate, Method, Scope, Sizes, Unanswerable,
};
use crate::power::MDE_POWER;
use crate::randomisation::BlockLogs;
use crate::summary::{mean, t_quantile, variance};

/// Compares two variants whose experiment may stop early, and returns the decision. Intervals hold
/// jointly for all comparisons of the family, at any stopping time; a block is used if it contains
/// both variants.
///
/// The minimum detectable effect assumes that these blocks are the last: half the interval, plus
/// the quantile of the power.
///
/// # Errors
/// No look yet, a rate that isn't above 0, criteria out of range.
pub fn compare_sequentially(
    baseline: &[BlockedRun],
    candidate: &[BlockedRun],
    mode: Mode,
    max_blocks: u32,
    criteria: Criteria,
) -> Result<(Comparison, Decision), Unanswerable> {
    let rule = Rule::new(mode, max_blocks, criteria)?;
    let blocks = common_blocks(baseline, candidate)?;
    let ratios: Vec<f64> = blocks.iter().map(log_ratio).collect();
    let found = rule.judge(&ratios)?;
    let looked_at = found.blocks as usize;
    if found.looks_done == 0 || looked_at < 2 {
        let need = rule.next_look_after(0).unwrap_or(max_blocks) as usize;
        let what = "blocks with runs of both variants for the first look";
        return Err(Unanswerable::TooFew { what, have: blocks.len(), need });
    }
    let counted = &blocks[..looked_at];
    let n_a = counted.iter().map(|block| block.a.len()).sum();
    let n_b = counted.iter().map(|block| block.b.len()).sum();
    // Blocks after the last look are complete, but not compared yet.
    let paired: usize = blocks.iter().map(|block| block.a.len() + block.b.len()).sum();
    let sizes = Sizes {
        n_a,
        n_b,
        blocks: looked_at,
        left_out: baseline.len() + candidate.len() - paired,
        layout: Layout::Blocks,
    };
    let seen = &ratios[..looked_at];
    let centre = mean(seen);
    let se = (variance(seen, centre) / looked_at as f64).sqrt();
    let df = looked_at as f64 - 1.0;
    let fixed = Comparison::from_estimate(
        LogEstimate { effect: found.effect, se, df },
        criteria,
        sizes,
        method(&found, mode, criteria),
        Scope::AcrossStarts,
    )?;
    let half = bound_of(&rule, &found, mode, criteria) * se;
    let reach = t_quantile(200.0 * MDE_POWER - 100.0, df).map_or(f64::NAN, |t| half + t * se);
    let (low, high) = (found.low.exp(), found.high.exp());
    // The two one-sided tests may decide before the interval is bounded.
    let is_bounded = low > 0.0 && high.is_finite();
    let (equivalence_low, equivalence_high) = match is_bounded {
        true => (found.equivalence_low.exp(), found.equivalence_high.exp()),
        false => (low, high),
    };
    let comparison = Comparison {
        low,
        high,
        equivalence_low,
        equivalence_high,
        p: found.p,
        p_adjusted: found.p,
        mde: reach.exp_m1(),
        // The level of a rank test is for a single look.
        robust: None,
        ..fixed
    };
    Ok((comparison, found.decision))
}

fn log_ratio(block: &BlockLogs) -> f64 {
    mean(&block.b) - mean(&block.a)
}

fn method(found: &Sequential, mode: Mode, criteria: Criteria) -> Method {
    let shared = criteria.family.max(1);
    match mode {
        Mode::Planned => Method::PlannedLooks {
            look: found.looks_done,
            of: found.looks_planned.unwrap_or(found.looks_done),
            shared,
        },
        Mode::Open => Method::OpenEnded { looks: found.looks_done, shared },
    }
}

/// Returns the bound of |t| at the last look.
fn bound_of(rule: &Rule, found: &Sequential, mode: Mode, criteria: Criteria) -> f64 {
    match mode {
        Mode::Planned => rule.bound_at(found.looks_done),
        Mode::Open => {
            let level = 1.0 - criteria.confidence / 100.0;
            open::bound(found.blocks, level / criteria.family.max(1) as f64)
        }
    }
}

/// Returns the number of blocks after which the next decision is possible, for experiments of at
/// most `max_blocks` of which `blocks` are done; `None` if there is none.
pub fn next_look_after(mode: Mode, max_blocks: u32, blocks: u32) -> Option<u32> {
    match mode {
        Mode::Planned => Looks::of(max_blocks).next_after(blocks),
        Mode::Open => Some((blocks + 1).max(2)).filter(|&next| next <= max_blocks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_blocks_after_the_last_look_have_partners() {
        let runs = |level: f64, blocks: u32| -> Vec<BlockedRun> {
            let pps = |block| level + 10.0 * f64::from(block * 7 % 5);
            (0..blocks).map(|block| BlockedRun { block, pps: pps(block) }).collect()
        };
        let left_out = |a: u32, b: u32| {
            let (a, b) = (runs(1000.0, a), runs(900.0, b));
            let found = compare_sequentially(&a, &b, Mode::Planned, 20, Criteria::default());
            let comparison = found.unwrap().0;
            (comparison.blocks, comparison.left_out)
        };
        assert_eq!(left_out(7, 7), (4, 0));
        assert_eq!(left_out(7, 6), (4, 1));
    }
}
