//! Power analysis of an experiment before its runs.
//!
//! Everything follows from one figure: the standard deviation of one block's log ratio, from
//! earlier experiments or a pilot ([`pooled_scatter`], [`upper_sd`]). Designs of fixed length are
//! calculated exactly with the noncentral t distribution. Designs that stop early are simulated
//! from a fixed seed, 2000 experiments each: a chance of 50 % has an error of +- 2.2 points and one
//! of 90 % of +- 1.3 (two standard errors), and a smallest effect an error of about 2 % of itself.
//!
//! For runs with a coefficient of variation of 1 %, at 95 % confidence and a margin of 2 %, an
//! effect of 2 % is detected with a chance of 90 % by 8 blocks; by at most 9, on average 7.2, with
//! planned looks; by at most 14, on average 8.9, with looks after every block. Effects within the
//! margin are detected less often if early stopping is allowed, because equivalence may be shown
//! first: 1 % in at most 20 blocks with a chance of 85, 50 and 39 %.
//!
//! Out of scope: scatter that changes during the experiment.

use crate::comparison::Criteria;
use crate::power::{detectable_multiple, power_of_equivalence, power_of_t};
use crate::random::NormalNumbers;
use crate::sequential::{Decision, Mode, Rule};
use crate::summary::{mean, variance};
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// True changes, as ratios, for which a design's power is reported.
pub const CHANGES: [f64; 4] = [0.01, 0.02, 0.03, 0.05];
/// Simulated experiments per figure.
const REPLICATES: u64 = 2000;
/// Maximum length of an experiment of fixed length.
const MOST_BLOCKS: u32 = 1000;
/// Maximum length of an experiment with a stopping rule that is simulated to find a length: a
/// search among longer ones takes minutes.
const MOST_SIMULATED: u32 = 200;

/// Variation of one block's log ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scatter {
    /// Standard deviation of a block's natural log ratio: about the square root of two times the
    /// coefficient of variation of a run.
    pub sd: f64,
    /// Degrees of freedom of the estimate.
    pub df: f64,
}

/// Returns the scatter of block log ratios within comparisons, each around its own mean; `None` if
/// no comparison has two blocks. Comparisons with a common baseline share some of its scatter, so
/// they contain slightly less information than the degrees of freedom suggest.
pub fn pooled_scatter(comparisons: &[Vec<f64>]) -> Option<Scatter> {
    let (mut squares, mut df) = (0.0, 0.0);
    for log_ratios in comparisons.iter().filter(|log_ratios| log_ratios.len() > 1) {
        let own_df = log_ratios.len() as f64 - 1.0;
        squares += own_df * variance(log_ratios, mean(log_ratios));
        df += own_df;
    }
    let sd = (squares / df).sqrt();
    (df > 0.0 && sd.is_finite()).then_some(Scatter { sd, df })
}

/// Returns the upper limit of the true standard deviation behind `sd`, with a `confidence` between
/// 0 and 1, by the chi-square distribution. Plan from this limit at 0.80 rather than from `sd` if
/// the pilot had few blocks. `None` for invalid arguments.
pub fn upper_sd(sd: f64, df: f64, confidence: f64) -> Option<f64> {
    let sound = sd >= 0.0 && df > 0.0 && confidence > 0.0 && confidence < 1.0;
    let chi_square = ChiSquared::new(df).ok().filter(|_| sound)?;
    Some(sd * (df / chi_square.inverse_cdf(1.0 - confidence)).sqrt())
}

/// A planned experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    /// Maximum number of blocks.
    pub blocks: u32,
    /// Rule for early stopping; `None` for a test after the last block.
    pub stopping: Option<Mode>,
    /// Criteria; comparisons made together share the level (Bonferroni).
    pub criteria: Criteria,
}

/// Power of a design for one true change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// True change as a ratio: 0.02 forwards 2 % more.
    pub change: f64,
    /// Chance of detecting a difference.
    pub difference: f64,
    /// Chance of showing equivalence. For a fixed length both tests are counted, and only a change
    /// of 0 has a value.
    pub equivalence: Option<f64>,
    /// Mean number of blocks.
    pub blocks: f64,
}

/// Power of a design.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PowerAnalysis {
    /// Outcomes for no change and for [`CHANGES`].
    pub outcomes: Vec<Outcome>,
    /// Change detected with a chance of 80 %, as a ratio.
    pub mde_80: f64,
    /// Change detected with a chance of 90 %, as a ratio.
    pub mde_90: f64,
}

impl Design {
    /// Returns the power of the design if one block's log ratio has a standard deviation of `sd`;
    /// `None` for invalid arguments.
    pub fn outlook(&self, sd: f64) -> Option<PowerAnalysis> {
        let changes = std::iter::once(0.0).chain(CHANGES);
        Some(PowerAnalysis {
            outcomes: changes.map(|change| self.outcome(sd, change)).collect::<Option<_>>()?,
            mde_80: self.detectable(sd, 0.8)?,
            mde_90: self.detectable(sd, 0.9)?,
        })
    }

    /// Returns the outcome for a true `change` (a ratio above -1).
    pub fn outcome(&self, sd: f64, change: f64) -> Option<Outcome> {
        if !(sd > 0.0 && sd.is_finite() && change > -1.0 && change.is_finite()) {
            return None;
        }
        match self.rule()? {
            Some(rule) => Some(simulate(&rule, sd, change)),
            None => self.exact_outcome(sd, change),
        }
    }

    /// Returns the smallest increase, as a ratio, that is detected with a chance of `power`.
    pub fn detectable(&self, sd: f64, power: f64) -> Option<f64> {
        if !(sd > 0.0 && sd.is_finite()) {
            return None;
        }
        let fixed = detectable_multiple(self.confidence(), self.df()?, power)? * self.se(sd);
        let Some(rule) = self.rule()? else { return Some(fixed.exp_m1()) };
        let found = |effect: f64| simulate(&rule, sd, effect.exp_m1()).difference;
        // Equivalence may end experiments before a small effect is detected, and the open rule
        // needs up to about twice the effect.
        let (mut low, mut high) = (0.0, 1.2 * fixed);
        while found(high) < power {
            (low, high) = (high, 1.5 * high);
            if high > 50.0 * fixed {
                return None;
            }
        }
        while high - low > 0.005 * high {
            let middle = 0.5 * (low + high);
            if found(middle) < power { low = middle } else { high = middle }
        }
        Some(high.exp_m1())
    }

    /// Returns the minimum number of blocks, regardless of [`Design::blocks`], with which `change`
    /// is detected with a chance of `power`; `None` if [`Design::most_blocks`] are not enough.
    pub fn blocks_for_change(&self, sd: f64, change: f64, power: f64) -> Option<u32> {
        self.fewest_blocks(|design| Some(design.outcome(sd, change)?.difference >= power))
    }

    /// Returns the minimum number of blocks with which two equal variants are shown to be within
    /// the margin with a chance of `power`; `None` if [`Design::most_blocks`] are not enough.
    pub fn blocks_for_equivalence(&self, sd: f64, power: f64) -> Option<u32> {
        self.fewest_blocks(|design| Some(design.outcome(sd, 0.0)?.equivalence? >= power))
    }

    /// Returns the maximum length that a search for a length considers.
    pub fn most_blocks(&self) -> u32 {
        match self.stopping {
            None => MOST_BLOCKS,
            Some(_) => self.blocks.clamp(MOST_SIMULATED, MOST_BLOCKS),
        }
    }

    fn fewest_blocks(&self, suffices: impl Fn(&Design) -> Option<bool>) -> Option<u32> {
        let with = |blocks: u32| suffices(&Design { blocks, ..*self });
        let (mut too_few, mut enough, most) = (1, 2, self.most_blocks());
        while !with(enough)? {
            if enough == most {
                return None;
            }
            (too_few, enough) = (enough, (2 * enough).min(most));
        }
        while enough - too_few > 1 {
            let middle = too_few.midpoint(enough);
            if with(middle)? { enough = middle } else { too_few = middle }
        }
        Some(enough)
    }

    fn exact_outcome(&self, sd: f64, change: f64) -> Option<Outcome> {
        let (confidence, df, se) = (self.confidence(), self.df()?, self.se(sd));
        let equivalence = match change {
            0.0 => Some(power_of_equivalence(self.criteria.margin.ln_1p() / se, confidence, df)?),
            _ => None,
        };
        let difference = power_of_t(change.ln_1p() / se, confidence, df)?;
        Some(Outcome { change, difference, equivalence, blocks: f64::from(self.blocks) })
    }

    /// Returns the confidence of one comparison of the family, in percent.
    fn confidence(&self) -> f64 {
        100.0 - (100.0 - self.criteria.confidence) / self.criteria.family.max(1) as f64
    }

    fn df(&self) -> Option<f64> {
        (self.blocks >= 2).then(|| f64::from(self.blocks) - 1.0)
    }

    fn se(&self, sd: f64) -> f64 {
        sd / f64::from(self.blocks).sqrt()
    }

    /// Returns the stopping rule, if there is one; the outer `None` for invalid arguments.
    fn rule(&self) -> Option<Option<Rule>> {
        match self.stopping {
            None => Some(None),
            Some(mode) => Rule::new(mode, self.blocks, self.criteria).ok().map(Some),
        }
    }
}

/// Uses the same normal numbers for every effect, so power rises with the effect.
fn simulate(rule: &Rule, sd: f64, change: f64) -> Outcome {
    let effect = change.ln_1p();
    let (mut differences, mut equivalences, mut blocks) = (0, 0, 0);
    for replicate in 0..REPLICATES {
        let mut numbers = NormalNumbers::seeded(replicate << 32);
        let (decision, after) = rule.play(|| effect + sd * numbers.next());
        differences += u64::from(decision == Decision::Difference);
        equivalences += u64::from(decision == Decision::Equivalent);
        blocks += u64::from(after);
    }
    let share = |count: u64| count as f64 / REPLICATES as f64;
    Outcome {
        change,
        difference: share(differences),
        equivalence: Some(share(equivalences)),
        blocks: share(blocks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Standard deviation of a block's log ratio if runs have a coefficient of variation of 1 %.
    const SD: f64 = 0.01 * std::f64::consts::SQRT_2;

    fn design(blocks: u32, stopping: Option<Mode>, family: usize) -> Design {
        Design { blocks, stopping, criteria: Criteria { family, ..Criteria::default() } }
    }

    #[test]
    fn fixed_designs_agree_with_statsmodels() {
        // statsmodels 0.15.0: TTestPower().solve_power(nobs=n, alpha=.05 /
        // family, power=p, alternative='two-sided') * sqrt(2) %, expm1.
        for (blocks, family, mde_80, mde_90) in [
            (6, 1, 0.020494722654623182, 0.02390460081118878),
            (8, 3, 0.020722743054508642, 0.023707020134944305),
            (20, 1, 0.009383809883371, 0.010869715897042142),
        ] {
            let outlook = design(blocks, None, family).outlook(SD).unwrap();
            assert!((outlook.mde_80 / mde_80 - 1.0).abs() < 1e-4, "{outlook:?}");
            assert!((outlook.mde_90 / mde_90 - 1.0).abs() < 1e-4, "{outlook:?}");
        }
        // The same with effect_size=log1p(change) / sqrt(2) %: 7.54 pairs for
        // 2 %; 24 is the first number whose power for 1 % exceeds 90 %.
        let fixed = design(2, None, 1);
        assert_eq!(fixed.blocks_for_change(SD, 0.02, 0.9), Some(8));
        assert_eq!(fixed.blocks_for_change(SD, 0.01, 0.9), Some(24));
    }

    #[test]
    fn blocks_for_equivalence_agree_with_quadrature() {
        // scipy 1.17.1: the integral in power.rs, first number above 90 %.
        let fixed = design(2, None, 1);
        assert_eq!(fixed.blocks_for_equivalence(SD, 0.9), Some(8));
        let narrow = Criteria { margin: 0.01, ..Criteria::default() };
        let fixed = Design { criteria: narrow, ..fixed };
        assert_eq!(fixed.blocks_for_equivalence(SD, 0.9), Some(24));
    }

    #[test]
    fn stopping_early_saves_blocks_and_costs_little_power() {
        let fixed = design(20, None, 1).outcome(SD, 0.02).unwrap();
        let planned = design(20, Some(Mode::Planned), 1).outcome(SD, 0.02).unwrap();
        let open = design(20, Some(Mode::Open), 1).outcome(SD, 0.02).unwrap();
        assert!(fixed.difference - planned.difference < 0.02, "{planned:?}");
        assert!(planned.blocks < 13.0, "{planned:?}");
        assert!(open.blocks < 10.0 && open.difference > 0.95, "{open:?}");
    }

    #[test]
    fn equal_variants_stop_as_equivalent() {
        for mode in [Mode::Planned, Mode::Open] {
            let outcome = design(30, Some(mode), 1).outcome(SD, 0.0).unwrap();
            assert!(outcome.difference < 0.06, "{mode:?} {outcome:?}");
            assert!(outcome.equivalence.unwrap() > 0.9, "{mode:?} {outcome:?}");
            assert!(outcome.blocks < 25.0, "{mode:?} {outcome:?}");
        }
    }

    #[test]
    fn detectable_change_is_detected() {
        let planned = design(12, Some(Mode::Planned), 1);
        let change = planned.detectable(SD, 0.8).unwrap();
        let found = planned.outcome(SD, change).unwrap().difference;
        assert!((found - 0.8).abs() < 0.01, "{found} at {change}");
        let fixed = design(12, None, 1).detectable(SD, 0.8).unwrap();
        // Larger, partly because effects within the margin may end as equivalent.
        assert!(change > fixed && change < 1.25 * fixed, "{change} {fixed}");
    }

    #[test]
    fn pilots_are_planned_from_the_upper_limit() {
        // scipy 1.17.1: 0.01 * sqrt(df / chi2.ppf(.2, df)).
        for (df, upper) in [(3.0, 0.017275872940849268), (10.0, 0.012721493991209167)] {
            let ours = upper_sd(0.01, df, 0.8).unwrap();
            assert!((ours / upper - 1.0).abs() < 1e-8, "{ours} is not {upper}");
        }
        assert_eq!(upper_sd(0.01, 0.0, 0.8), None);
    }

    #[test]
    fn scatter_is_pooled_around_each_mean() {
        let far_apart = [vec![1.0, 3.0], vec![10.0, 10.0, 13.0], vec![5.0]];
        // Squares 2 and 6, degrees of freedom 1 and 2.
        let pooled = pooled_scatter(&far_apart).unwrap();
        assert!((pooled.sd - (8.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(pooled.df, 3.0);
        assert_eq!(pooled_scatter(&[vec![1.0]]), None);
    }

    #[test]
    fn invalid_arguments_return_none() {
        assert_eq!(design(1, None, 1).outlook(SD), None);
        assert_eq!(design(1, Some(Mode::Open), 1).outlook(SD), None);
        assert_eq!(design(8, None, 1).outlook(0.0), None);
    }

    #[test]
    fn figures_in_the_module_header_are_reproduced() {
        for (mode, most, mean, one_percent) in [
            (None, 8, 8.0, 0.85),
            (Some(Mode::Planned), 9, 7.2, 0.50),
            (Some(Mode::Open), 14, 8.9, 0.39),
        ] {
            assert_eq!(design(2, mode, 1).blocks_for_change(SD, 0.02, 0.9), Some(most));
            let there = design(most, mode, 1).outcome(SD, 0.02).unwrap();
            assert!((there.blocks - mean).abs() < 0.05, "{mode:?}: {there:?}");
            let found = design(20, mode, 1).outcome(SD, 0.01).unwrap().difference;
            assert!((found - one_percent).abs() < 0.005, "{mode:?}: {found}");
        }
    }
}
