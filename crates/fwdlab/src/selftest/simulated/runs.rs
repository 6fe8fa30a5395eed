//! The runs of one simulated experiment, and their evaluation.

use super::law::{CV, Design, Noise, Tails};
use fwdlab_bench::testbed::sim::RunLaw;
use fwdlab_model::settings::SimSettings;
use fwdlab_results::stats::alternation::Slice;
use fwdlab_results::stats::sequential::{Decision, Rule};
use fwdlab_results::stats::summary::t_quantile;
use fwdlab_results::stats::{
    Adjustment, BlockedRun, Comparison, Criteria, adjust_family, compare_alternation,
    compare_blocked, compare_unblocked,
};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The runs of one simulated experiment, as rates relative to the true rate of the baseline.
pub(super) struct Runs {
    law: RunLaw,
    noise: Noise,
    random: Xoshiro256StarStar,
}

impl Runs {
    pub(super) fn new(noise: Noise, seed: u64) -> Runs {
        let Noise { drift, phi, contamination, depth, .. } = noise;
        let sim = SimSettings {
            noise: CV,
            drift,
            phi,
            contamination,
            contamination_depth: depth,
            ..SimSettings::default()
        };
        Runs {
            law: RunLaw::new(&sim, seed),
            noise,
            random: Xoshiro256StarStar::seed_from_u64(seed ^ 0x5eed),
        }
    }

    pub(super) fn next(&mut self) -> f64 {
        let factor = self.law.factor();
        match self.noise.tails {
            Tails::Normal => factor,
            // Normal over the root of chi-square / 3; its variance of 3 is scaled to 1.
            Tails::T3 => {
                let squares: f64 = (0..3).map(|_| (self.law.factor().ln() / CV).powi(2)).sum();
                (factor.ln() / squares.sqrt()).exp()
            }
        }
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.random.next_u64()) * bound as u128) >> 64) as usize
    }

    /// One experiment whose candidate is `ratio` times as fast.
    pub(super) fn compare(
        &mut self,
        design: Design,
        ratio: f64,
        criteria: Criteria,
    ) -> Option<Comparison> {
        match design {
            Design::Pairs(n) => self.compare_blocks(n, 1, ratio, criteria),
            Design::Fours(n) => self.compare_blocks(n, 2, ratio, criteria),
            Design::Lists(n) => {
                let (a, b) = self.lists(n as usize, ratio);
                compare_unblocked(&a, &b, criteria).ok()
            }
            Design::Streams { streams, slices } => {
                let streams: Vec<Vec<Slice>> =
                    (0..streams).map(|_| self.stream(slices, ratio)).collect();
                compare_alternation(&streams, 0, 1, criteria).ok()
            }
            // Stops by itself: see `until`.
            Design::Until { .. } => None,
        }
    }

    /// Number of blocks until the rule decides; it looks after each of them.
    pub(super) fn until(&mut self, rule: &Rule, ratio: f64) -> (Decision, u32) {
        rule.play(|| {
            let first = self.next().ln();
            let second = self.next().ln();
            let apart = if self.coin() { first - second } else { second - first };
            apart + ratio.ln()
        })
    }

    pub(super) fn coin(&mut self) -> bool {
        self.random.next_u64() >> 63 == 1
    }

    pub(super) fn compare_blocks(
        &mut self,
        blocks: u32,
        each: usize,
        ratio: f64,
        criteria: Criteria,
    ) -> Option<Comparison> {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for block in 0..blocks {
            for is_candidate in self.order(each) {
                let pps = self.next();
                if is_candidate {
                    b.push(BlockedRun { block, pps: ratio * pps });
                } else {
                    a.push(BlockedRun { block, pps });
                }
            }
        }
        compare_blocked(&a, &b, criteria).ok()
    }

    /// Random order of `each` runs of both variants; true is the candidate.
    pub(super) fn order(&mut self, each: usize) -> Vec<bool> {
        let mut order: Vec<bool> = (0..2 * each).map(|run| run < each).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }

    pub(super) fn lists(&mut self, each: usize, ratio: f64) -> (Vec<f64>, Vec<f64>) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for is_candidate in self.order(each) {
            let pps = self.next();
            if is_candidate { b.push(ratio * pps) } else { a.push(pps) }
        }
        (a, b)
    }

    /// Compares `lists` lists of `each` runs with one of `baseline` runs, three in ten of which are
    /// 5 % slower. All lists are `ratio` times as fast as the baseline.
    pub(super) fn family_of_lists(
        &mut self,
        baseline: usize,
        (each, lists): (usize, usize),
        ratio: f64,
    ) -> Vec<Comparison> {
        let criteria = Criteria { family: lists, ..Criteria::default() };
        let mut list = |runs: usize, ratio: f64| -> Vec<f64> {
            let slow = |random: usize| if random < 3 { 0.95 } else { 1.0 };
            (0..runs).map(|_| ratio * slow(self.below(10)) * self.next()).collect()
        };
        let a = list(baseline, 1.0);
        let candidates = (0..lists).map(|_| list(each, ratio));
        let mut family: Vec<Comparison> =
            candidates.filter_map(|b| compare_unblocked(&a, &b, criteria).ok()).collect();
        adjust_family(&mut family, Adjustment::Holm);
        family
    }

    /// A stream A B B A. Its start has its own rate; its slices scatter, and half of their variance
    /// drifts with a correlation of 0.8 from one slice to the next.
    pub(super) fn stream(&mut self, slices: u32, ratio: f64) -> Vec<Slice> {
        let start = self.next();
        // The part of a start that affects only one variant.
        let sim = SimSettings { noise: 0.25 * CV, ..SimSettings::default() };
        let apart = RunLaw::new(&sim, self.random.next_u64()).factor();
        let sim = SimSettings { noise: 2.0 * CV, drift: 0.5, phi: 0.8, ..sim };
        let mut within = RunLaw::new(&sim, self.random.next_u64());
        (0..slices)
            .map(|number| {
                let variant = usize::from(matches!(number % 4, 1 | 2));
                let truth = if variant == 1 { ratio * apart } else { 1.0 };
                let pps = start * truth * within.factor();
                Slice { number, variant, pps, capacity_pps: pps }
            })
            .collect()
    }

    /// The classic practice: all runs of one, then all of the other, pooled t.
    pub(super) fn classic_finds(&mut self, each: u32, truth: f64) -> bool {
        let mut list = |ratio: f64| (0..each).map(|_| ratio * self.next()).collect::<Vec<f64>>();
        let (a, b) = (list(1.0), list(truth));
        let n = f64::from(each);
        let mean = |list: &[f64]| list.iter().sum::<f64>() / n;
        let (mean_a, mean_b) = (mean(&a), mean(&b));
        let squares =
            |list: &[f64], mean: f64| list.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        let df = 2.0 * n - 2.0;
        let pooled = (squares(&a, mean_a) + squares(&b, mean_b)) / df;
        let error = (pooled * 2.0 / n).sqrt();
        t_quantile(95.0, df).is_some_and(|t| (mean_b - mean_a).abs() > t * error)
    }
}

impl Runs {
    /// Compares `variants` variants with one baseline, adjusted jointly; all of them are `ratio`
    /// times as fast, or only the first one.
    pub(super) fn family(
        &mut self,
        blocks: u32,
        variants: usize,
        ratio: f64,
        first_alone: bool,
    ) -> Vec<Comparison> {
        let criteria = Criteria { family: variants, ..Criteria::default() };
        let mut all: Vec<Vec<BlockedRun>> = vec![Vec::new(); variants + 1];
        for block in 0..blocks {
            // The law ignores the order: all runs of a block are alike.
            for (variant, runs) in all.iter_mut().enumerate() {
                let is_faster = variant == 1 || variant > 1 && !first_alone;
                let ratio = if is_faster { ratio } else { 1.0 };
                runs.push(BlockedRun { block, pps: ratio * self.next() });
            }
        }
        let baseline = all.remove(0);
        let mut family: Vec<Comparison> = all
            .iter()
            .filter_map(|candidate| compare_blocked(&baseline, candidate, criteria).ok())
            .collect();
        adjust_family(&mut family, Adjustment::Holm);
        family
    }
}
