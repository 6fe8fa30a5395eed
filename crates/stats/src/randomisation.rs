//! The exact within-block randomisation test, and its interval by inversion.
//!
//! The plan assigned the variants to the runs of a block at random. If the candidate were the
//! baseline with a log ratio of `theta`, any other draw would have been equally likely: the
//! observed effect is judged among the effects of all draws (Fisher, 1935, *The Design of
//! Experiments*; Pitman, 1937). The test makes no assumption about the distribution of rates or
//! their drift from block to block.
//!
//! Swapping `m` candidate runs with `m` baseline runs of the same blocks changes the effect by the
//! same amount as shifting the candidate at one value of `theta`: the mean difference over the
//! swapped runs, that draw's *typical value* (Hartigan, 1969, JASA 64). The whole test follows from
//! the sorted typical values: p-values count those on one side of 0, and the ends of the interval
//! are two of them, so inversion costs one sort instead of a search.
//!
//! Out of scope: draws across blocks, which the plan never makes.

use crate::random::SplitMix64;

/// One block's runs of two variants, natural logarithms of rates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockLogs {
    /// Baseline.
    pub a: Vec<f64>,
    /// Candidate.
    pub b: Vec<f64>,
}

/// Maximum number of assignments of an exact test: five blocks of two and two runs have 7776,
/// thirteen pairs 8192.
pub const EXACT_MAX: u64 = 8192;
/// Random assignments beyond that number, including the observed one. With 10,000 the p-value 0.05
/// has a standard error of 0.002.
pub const DRAWS: u64 = 10_000;
/// Seed of those draws.
pub const SEED: u64 = 1;
/// Number of choices above which a block's assignments are only drawn at random.
const CHOICES_MAX: u64 = 1000;

/// The randomisation distribution of an effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Randomisation {
    /// Sorted typical values of the assignments that differ from the observed one.
    typical: Vec<f64>,
    /// Assignments equal to the observed one: 1, or the number of times it was drawn.
    observed: u64,
    exact: bool,
    /// Values up to this count as 0: the rounding error of sums of these sizes.
    tolerance: f64,
}

impl Randomisation {
    /// Tries every assignment, or [`DRAWS`] random ones if there are more than [`EXACT_MAX`].
    /// Blocks contain at least one run of each variant.
    pub fn of(blocks: &[BlockLogs]) -> Randomisation {
        let exact = assignments(blocks).is_some_and(|count| count <= EXACT_MAX);
        let swaps = if exact { every_assignment(blocks) } else { drawn_assignments(blocks) };
        let all = swaps.len();
        let mut typical: Vec<f64> =
            swaps.iter().filter(|swap| swap.runs > 0).map(Swap::typical_value).collect();
        let observed = (all - typical.len()) as u64;
        typical.sort_unstable_by(f64::total_cmp);
        let largest = blocks
            .iter()
            .flat_map(|block| block.a.iter().chain(&block.b))
            .fold(0.0_f64, |largest, log| largest.max(log.abs()));
        Randomisation { typical, observed, exact, tolerance: 1e-13 * largest }
    }

    /// Returns the number of tried assignments, including the observed one.
    pub fn assignments(&self) -> u64 {
        self.typical.len() as u64 + self.observed
    }

    /// True if all assignments were tried.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns the two-sided p-value of "the effect is 0": twice the smaller one-sided one.
    pub fn p(&self) -> f64 {
        let at_most = |bound: f64| self.typical.partition_point(|&value| value <= bound) as u64;
        let below = at_most(self.tolerance);
        let above = self.typical.len() as u64 - at_most((-self.tolerance).next_down());
        let smaller = self.observed + below.min(above);
        (2.0 * smaller as f64 / self.assignments() as f64).min(1.0)
    }

    /// Returns the equal-tailed interval of the effect at `confidence` percent, by inversion of the
    /// test: the values that it does not reject. `None` with too few assignments to reject any
    /// value.
    pub fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        let skip = self.rejected_per_side(confidence).checked_sub(self.observed)?;
        let skip = usize::try_from(skip).ok()?;
        let high = self.typical.len().checked_sub(1 + skip)?;
        Some((*self.typical.get(skip)?, *self.typical.get(high)?))
    }

    /// Returns the chance that a true value is outside the interval at `confidence` percent: as
    /// close to its complement as the number of assignments permits.
    pub fn size(&self, confidence: f64) -> f64 {
        2.0 * self.rejected_per_side(confidence) as f64 / self.assignments() as f64
    }

    /// Returns the maximum number of assignments beyond a rejected value on one side.
    fn rejected_per_side(&self, confidence: f64) -> u64 {
        let tail = (1.0 - confidence / 100.0) / 2.0;
        // 10,000 x 0.025 must not become 249 by rounding.
        (self.assignments() as f64 * tail + 1e-9).floor() as u64
    }
}

/// Returns the number of assignments of the blocks' runs; `None` if uselessly large.
pub fn assignments(blocks: &[BlockLogs]) -> Option<u64> {
    blocks.iter().try_fold(1_u64, |product, block| {
        let choices = choose(block.a.len() + block.b.len(), block.b.len())?;
        product.checked_mul(choices)
    })
}

fn choose(n: usize, k: usize) -> Option<u64> {
    (0..k.min(n - k) as u64)
        .try_fold(1_u64, |product, i| Some(product.checked_mul(n as u64 - i)? / (i + 1)))
}

/// Change from the observed assignment to another one.
#[derive(Clone, Copy, Debug, Default)]
struct Swap {
    /// Sum of the swapped candidate runs minus the sum of the baseline runs.
    difference: f64,
    /// Swapped runs of each variant.
    runs: u32,
}

impl Swap {
    fn and(self, other: Swap) -> Swap {
        Swap { difference: self.difference + other.difference, runs: self.runs + other.runs }
    }

    fn typical_value(&self) -> f64 {
        self.difference / f64::from(self.runs)
    }
}

fn every_assignment(blocks: &[BlockLogs]) -> Vec<Swap> {
    let mut all = vec![Swap::default()];
    for block in blocks {
        let choices = choices(block);
        all = all.iter().flat_map(|head| choices.iter().map(|&tail| head.and(tail))).collect();
    }
    all
}

/// Returns the observed assignment and random ones.
fn drawn_assignments(blocks: &[BlockLogs]) -> Vec<Swap> {
    let mut random = SplitMix64::new(SEED);
    let mut all = vec![Swap::default(); DRAWS as usize];
    for block in blocks {
        let count = choose(block.a.len() + block.b.len(), block.b.len());
        if count == Some(2) {
            // A pair is swapped or not: sixty-four coin tosses per draw.
            let swapped = block.b[0] - block.a[0];
            for draws in all[1..].chunks_mut(64) {
                let coins = random.bits();
                for (i, swap) in draws.iter_mut().enumerate() {
                    let coin = (coins >> i) & 1;
                    swap.difference += swapped * coin as f64;
                    swap.runs += coin as u32;
                }
            }
        } else if count.is_some_and(|count| count <= CHOICES_MAX) {
            let choices = choices(block);
            for swap in &mut all[1..] {
                *swap = swap.and(choices[random.below(choices.len())]);
            }
        } else {
            for swap in &mut all[1..] {
                *swap = swap.and(shuffled(block, &mut random));
            }
        }
    }
    all
}

/// Returns every way to assign the block's runs to the two variants.
fn choices(block: &BlockLogs) -> Vec<Swap> {
    let runs: Vec<f64> = block.a.iter().chain(&block.b).copied().collect();
    let mut choices = Vec::new();
    chosen(block, &runs, 0, block.b.len(), Swap::default(), &mut choices);
    choices
}

/// Goes through the runs from `at` on, of which `left` become candidates.
fn chosen(
    block: &BlockLogs,
    runs: &[f64],
    at: usize,
    left: usize,
    swap: Swap,
    all: &mut Vec<Swap>,
) {
    if at == runs.len() {
        all.push(swap);
        return;
    }
    if left > 0 {
        chosen(block, runs, at + 1, left - 1, swap.and(given(block, runs, at, true)), all);
    }
    if runs.len() - at > left {
        chosen(block, runs, at + 1, left, swap.and(given(block, runs, at, false)), all);
    }
}

/// Returns the contribution to a swap of assigning one run to a variant. A candidate or baseline
/// run that stays contributes nothing.
fn given(block: &BlockLogs, runs: &[f64], at: usize, to_candidate: bool) -> Swap {
    let was_candidate = at >= block.a.len();
    match (was_candidate, to_candidate) {
        // Counted once, when the candidate leaves.
        (true, false) => Swap { difference: runs[at], runs: 1 },
        (false, true) => Swap { difference: -runs[at], runs: 0 },
        _ => Swap::default(),
    }
}

/// Returns a random assignment of a large block.
fn shuffled(block: &BlockLogs, random: &mut SplitMix64) -> Swap {
    let runs: Vec<f64> = block.a.iter().chain(&block.b).copied().collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    random.shuffle(&mut order);
    let candidates = block.b.len();
    order.iter().enumerate().fold(Swap::default(), |swap, (place, &run)| {
        swap.and(given(block, &runs, run, place < candidates))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(differences: &[f64]) -> Vec<BlockLogs> {
        differences.iter().map(|&d| BlockLogs { a: vec![1.0], b: vec![1.0 + d] }).collect()
    }

    #[test]
    fn equal_signs_have_the_smallest_p() {
        let test = Randomisation::of(&pairs(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]));
        assert!(test.is_exact());
        assert_eq!((test.assignments(), test.p()), (64, 2.0 / 64.0));
        let (low, high) = test.interval(95.0).unwrap();
        assert!((low - 0.1).abs() < 1e-12 && (high - 0.6).abs() < 1e-12, "{low} {high}");
        assert_eq!(Randomisation::of(&pairs(&[0.1; 5])).interval(95.0), None);
    }

    #[test]
    fn five_blocks_of_four_have_7776_assignments() {
        let block = BlockLogs { a: vec![1.0, 1.1], b: vec![1.2, 1.4] };
        let blocks = vec![block; 5];
        assert_eq!(assignments(&blocks), Some(7776));
        assert_eq!(Randomisation::of(&blocks).assignments(), 7776);
        assert_eq!(assignments(&pairs(&[0.1; 70])), None);
    }

    #[test]
    fn random_draws_approximate_all_assignments() {
        let differences: Vec<f64> = (0..13).map(|i| 0.01 * f64::from(i * 7 % 13) - 0.03).collect();
        let blocks = pairs(&differences);
        let all = Randomisation::of(&blocks);
        let mut drawn = drawn_assignments(&blocks);
        let observed = drawn.iter().filter(|swap| swap.runs == 0).count() as u64;
        drawn.retain(|swap| swap.runs > 0);
        let mut typical: Vec<f64> = drawn.iter().map(Swap::typical_value).collect();
        typical.sort_unstable_by(f64::total_cmp);
        let drawn = Randomisation { typical, observed, exact: false, tolerance: 1e-13 };
        assert!((all.p() - drawn.p()).abs() < 0.015, "{} {}", all.p(), drawn.p());
        let (a, b) = (all.interval(95.0).unwrap(), drawn.interval(95.0).unwrap());
        assert!((a.0 - b.0).abs() < 0.002 && (a.1 - b.1).abs() < 0.002, "{a:?} {b:?}");
    }

    /// The slow definition: every assignment's effect after shifting the candidate back by `theta`.
    fn slow_p(blocks: &[BlockLogs], theta: f64) -> f64 {
        let mut effects = vec![0.0];
        let mut observed = 0.0;
        for block in blocks {
            let runs: Vec<f64> =
                block.a.iter().copied().chain(block.b.iter().map(|b| b - theta)).collect();
            let effect = |mask: u32| -> f64 {
                let (b, a): (Vec<usize>, Vec<usize>) =
                    (0..runs.len()).partition(|&run| mask & (1 << run) != 0);
                let mean =
                    |of: &[usize]| of.iter().map(|&run| runs[run]).sum::<f64>() / of.len() as f64;
                let weight = (a.len() * b.len()) as f64 / runs.len() as f64;
                weight * (mean(&b) - mean(&a))
            };
            let masks: Vec<u32> = (0..1_u32 << runs.len())
                .filter(|mask| mask.count_ones() as usize == block.b.len())
                .collect();
            observed += effect(((1 << block.b.len()) - 1) << block.a.len());
            effects = effects
                .iter()
                .flat_map(|head| masks.iter().map(move |&mask| head + effect(mask)))
                .collect();
        }
        let count = |holds: &dyn Fn(f64) -> bool| effects.iter().filter(|&&e| holds(e)).count();
        let up = count(&|e| e >= observed - 1e-9);
        let down = count(&|e| e <= observed + 1e-9);
        (2.0 * up.min(down) as f64 / effects.len() as f64).min(1.0)
    }

    fn some_blocks() -> impl Strategy<Value = Vec<BlockLogs>> {
        let logs = |n| prop::collection::vec(12.0..16.0f64, n);
        let block = (logs(1..=2), logs(1..=3)).prop_map(|(a, b)| BlockLogs { a, b });
        prop::collection::vec(block, 2..=3)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn p_matches_the_definition(blocks in some_blocks()) {
            let test = Randomisation::of(&blocks);
            prop_assert!((test.p() - slow_p(&blocks, 0.0)).abs() < 1e-12);
        }

        #[test]
        fn interval_contains_values_that_are_not_rejected(blocks in some_blocks()) {
            let test = Randomisation::of(&blocks);
            if let Some((low, high)) = test.interval(90.0) {
                let step = 1e-6;
                prop_assert!(slow_p(&blocks, low + step) > 0.1 - 1e-12);
                prop_assert!(slow_p(&blocks, high - step) > 0.1 - 1e-12);
                prop_assert!(slow_p(&blocks, low - step) <= 0.1 + 1e-12);
                prop_assert!(slow_p(&blocks, high + step) <= 0.1 + 1e-12);
            }
        }
    }
}
