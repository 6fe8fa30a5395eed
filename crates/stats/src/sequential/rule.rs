//! A stopping rule applied to one comparison, block by block.

use super::super::comparison::{Criteria, Unanswerable};
use super::open::EProcess;
use super::planned::{self, Looks};
use super::{Decision, MeanEstimate, Mode, Sequential, SequentialStatus};

/// A stopping rule to apply after each block.
#[derive(Clone, Debug)]
pub struct Rule {
    mode: Mode,
    looks: Looks,
    /// Level of the difference: two-sided and divided by the family.
    alpha: f64,
    /// Margin of equivalence on the log scale.
    margin: f64,
    /// Bounds of |t| at each planned look, for a difference.
    bounds: Vec<f64>,
    /// The bounds for equivalence, at twice the level.
    equivalence_bounds: Vec<f64>,
}

impl Rule {
    /// Creates a rule for experiments of at most `max_blocks` blocks with `family` comparisons made
    /// together.
    ///
    /// # Errors
    /// Fewer than two blocks, or criteria out of range.
    pub fn new(mode: Mode, max_blocks: u32, criteria: Criteria) -> Result<Rule, Unanswerable> {
        let Criteria { confidence, margin, family, .. } = criteria;
        if max_blocks < 2 {
            return Err(Unanswerable::TooFew {
                what: "blocks",
                have: max_blocks as usize,
                need: 2,
            });
        }
        let refused = Unanswerable::Criteria { confidence, margin };
        if !(confidence > 50.0 && confidence < 100.0 && margin > 0.0) {
            return Err(refused);
        }
        let alpha = (1.0 - confidence / 100.0) / family.max(1) as f64;
        let looks = Looks::of(max_blocks);
        let (bounds, equivalence_bounds) = match mode {
            Mode::Open => (Vec::new(), Vec::new()),
            Mode::Planned => planned::bounds_of_t(&looks, alpha)
                .zip(planned::bounds_of_t(&looks, 2.0 * alpha))
                .ok_or(refused)?,
        };
        Ok(Rule { mode, looks, alpha, margin: margin.ln_1p(), bounds, equivalence_bounds })
    }

    /// Returns the bound of |t| at a planned look, counted from 1; infinite in the open mode.
    pub(super) fn bound_at(&self, look: u32) -> f64 {
        let index = (look as usize).wrapping_sub(1);
        self.bounds.get(index).copied().unwrap_or(f64::INFINITY)
    }

    /// Returns the next number of blocks, above `blocks`, with a look; `None` after the last.
    pub fn next_look_after(&self, blocks: u32) -> Option<u32> {
        super::next_look_after(self.mode, self.looks.max_blocks(), blocks)
    }

    /// Judges the block log ratios so far, in block order; those beyond the maximum number of
    /// blocks are ignored. If other comparisons require further blocks, a decision remains, except
    /// that equivalence may still become a difference: small, but real.
    ///
    /// # Errors
    /// A log ratio that isn't finite.
    pub fn judge(&self, log_ratios: &[f64]) -> Result<Sequential, Unanswerable> {
        let mut judged = self.stand(log_ratios)?;
        if self.mode == Mode::Planned {
            let t: Vec<f64> = self.seen_at_looks(log_ratios).map(|seen| seen.t()).collect();
            judged.p = planned::repeated_p(&self.looks, &t).unwrap_or(1.0);
        }
        Ok(judged)
    }

    /// Like `judge`, without the p-value of the planned mode (1 instead), which costs more than the
    /// rest together.
    fn stand(&self, log_ratios: &[f64]) -> Result<Sequential, Unanswerable> {
        if let Some(ratio) = log_ratios.iter().find(|ratio| !ratio.is_finite()) {
            return Err(Unanswerable::NotPositive { rate: ratio.exp() });
        }
        let mut course = self.start();
        log_ratios.iter().for_each(|&log_ratio| self.advance(&mut course, log_ratio));
        Ok(self.judged(course))
    }

    /// Returns the state of one comparison before its first block.
    pub fn start(&self) -> SequentialState {
        SequentialState {
            stand: SequentialStatus::default(),
            log_ratios: Vec::new(),
            at_last_look: None,
            looks: 0,
            difference: EProcess::new(self.alpha),
            equivalence: EProcess::new(2.0 * self.alpha),
        }
    }

    /// Adds a block's log ratio, which must be finite, and performs a look if one is due. Blocks
    /// beyond the maximum are ignored.
    pub fn advance(&self, course: &mut SequentialState, log_ratio: f64) {
        match self.mode {
            Mode::Open if course.difference.blocks() < self.looks.max_blocks() => {
                course.difference.push(log_ratio);
                course.equivalence.push(log_ratio);
                let (difference, equivalence) =
                    (course.difference.interval(), course.equivalence.interval());
                course.stand.narrow(difference, equivalence, self.margin);
            }
            Mode::Planned if (course.log_ratios.len() as u32) < self.looks.max_blocks() => {
                course.log_ratios.push(log_ratio);
                let due = self.looks.at.get(course.looks).map(|&at| at as usize);
                if due == Some(course.log_ratios.len()) {
                    let seen = MeanEstimate::of(&course.log_ratios);
                    self.narrow_planned(&mut course.stand, seen, course.looks);
                    course.at_last_look = Some(seen);
                    course.looks += 1;
                }
            }
            Mode::Open | Mode::Planned => {}
        }
    }

    /// Returns the state of a course, without the p-value of the planned mode.
    fn judged(&self, course: SequentialState) -> Sequential {
        let max_blocks = self.looks.max_blocks();
        match self.mode {
            Mode::Planned => {
                let looks = course.looks;
                let blocks = looks.checked_sub(1).map_or(0, |last| self.looks.at[last]);
                let seen =
                    course.at_last_look.unwrap_or_else(|| MeanEstimate::of(&course.log_ratios));
                let planned = Some(self.looks.at.len() as u32);
                let is_last = blocks == max_blocks;
                course.stand.judged(seen.effect, 1.0, blocks, looks as u32, planned, is_last)
            }
            Mode::Open => {
                let SequentialState { difference, stand, .. } = course;
                let blocks = difference.blocks();
                let looks = blocks.saturating_sub(1);
                let is_last = blocks == max_blocks;
                stand.judged(difference.effect(), difference.p(), blocks, looks, None, is_last)
            }
        }
    }

    /// Draws blocks until a decision; returns the decision and the number of blocks. For
    /// simulations, which need neither intervals nor p-values.
    pub fn play(&self, mut next_log_ratio: impl FnMut() -> f64) -> (Decision, u32) {
        let max_blocks = self.looks.max_blocks();
        let mut course = self.start();
        for blocks in 1..=max_blocks {
            self.advance(&mut course, next_log_ratio());
            if course.decision() != Decision::Continue {
                return (course.decision(), blocks);
            }
        }
        (Decision::Exhausted, max_blocks)
    }

    fn narrow_planned(&self, stand: &mut SequentialStatus, seen: MeanEstimate, look: usize) {
        stand.narrow(
            planned::interval(seen.effect, seen.se, self.bounds[look]),
            planned::interval(seen.effect, seen.se, self.equivalence_bounds[look]),
            self.margin,
        );
    }

    /// Returns the mean and standard error at each completed look.
    fn seen_at_looks<'a>(
        &'a self,
        log_ratios: &'a [f64],
    ) -> impl Iterator<Item = MeanEstimate> + 'a {
        self.looks.at.iter().map_while(|&at| log_ratios.get(..at as usize)).map(MeanEstimate::of)
    }
}

/// Running state of one comparison, updated by [`Rule::advance`]: a further block costs the same
/// regardless of their number.
#[derive(Clone, Debug)]
pub struct SequentialState {
    stand: SequentialStatus,
    /// Planned mode: the blocks so far.
    log_ratios: Vec<f64>,
    /// Planned mode: mean and standard error at the last look.
    at_last_look: Option<MeanEstimate>,
    /// Planned mode: looks done.
    looks: usize,
    /// Open mode.
    difference: EProcess,
    /// Open mode.
    equivalence: EProcess,
}

impl SequentialState {
    /// Returns the decision from the blocks so far; [`Decision::Continue`] even after the last.
    pub fn decision(&self) -> Decision {
        self.stand.decision
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::random::NormalNumbers;
    use super::*;

    fn rule(mode: Mode, max_blocks: u32, family: usize) -> Rule {
        Rule::new(mode, max_blocks, Criteria { family, ..Criteria::default() }).unwrap()
    }

    /// Returns log ratios around `effect` with a standard deviation of `sd`.
    fn blocks(effect: f64, sd: f64, n: usize) -> Vec<f64> {
        let mut numbers = NormalNumbers::seeded(11);
        (0..n).map(|_| effect + sd * numbers.next()).collect()
    }

    #[test]
    fn planned_decisions_fall_at_looks_only() {
        let rule = rule(Mode::Planned, 20, 1);
        let log_ratios = blocks(0.05, 0.01, 20);
        let before = rule.judge(&log_ratios[..3]).unwrap();
        assert_eq!((before.blocks, before.looks_done, before.p), (0, 0, 1.0));
        assert_eq!((before.low, before.decision), (f64::NEG_INFINITY, Decision::Continue));
        let between = rule.judge(&log_ratios[..7]).unwrap();
        assert_eq!((between.blocks, between.looks_planned), (4, Some(5)));
        assert_eq!(between, rule.judge(&log_ratios[..4]).unwrap());
        let decided = rule.judge(&log_ratios[..8]).unwrap();
        assert_eq!((decided.decision, decided.looks_done), (Decision::Difference, 2));
        assert!(decided.low > 0.0 && decided.p < 0.05, "{decided:?}");
        assert!(decided.low < decided.effect && decided.effect < decided.high);
    }

    #[test]
    fn open_decisions_fall_at_any_block() {
        let rule = rule(Mode::Open, 40, 1);
        let log_ratios = blocks(0.05, 0.01, 40);
        let first = (1..=40)
            .find(|&n| rule.judge(&log_ratios[..n]).unwrap().decision != Decision::Continue)
            .unwrap();
        let decided = rule.judge(&log_ratios[..first]).unwrap();
        assert_eq!(decided.decision, Decision::Difference);
        assert!(first < 8 && decided.p <= 0.05 && decided.low > 0.0, "{first} {decided:?}");
        assert_eq!((decided.looks_done, decided.looks_planned), (first as u32 - 1, None));
    }

    #[test]
    fn no_effect_ends_as_equivalent() {
        for mode in [Mode::Planned, Mode::Open] {
            let judged = rule(mode, 40, 1).judge(&blocks(0.0, 0.01, 40)).unwrap();
            assert_eq!(judged.decision, Decision::Equivalent, "{judged:?}");
            let bound = 0.02f64.ln_1p();
            assert!(judged.equivalence_low > -bound && judged.equivalence_high < bound);
            assert!(judged.low < judged.equivalence_low, "{judged:?}");
        }
    }

    #[test]
    fn noise_ends_exhausted() {
        for mode in [Mode::Planned, Mode::Open] {
            let rule = rule(mode, 10, 1);
            let log_ratios = blocks(0.0, 0.3, 12);
            assert_eq!(rule.judge(&log_ratios[..9]).unwrap().decision, Decision::Continue);
            let exhausted = rule.judge(&log_ratios[..10]).unwrap();
            assert_eq!(exhausted.decision, Decision::Exhausted);
            // Blocks beyond the plan change nothing.
            assert_eq!(rule.judge(&log_ratios).unwrap(), exhausted);
        }
    }

    #[test]
    fn families_need_more_evidence() {
        for mode in [Mode::Planned, Mode::Open] {
            let log_ratios = blocks(0.01, 0.02, 12);
            let alone = rule(mode, 12, 1).judge(&log_ratios).unwrap();
            let of_ten = rule(mode, 12, 10).judge(&log_ratios).unwrap();
            assert!(of_ten.low < alone.low && of_ten.high > alone.high, "{alone:?} {of_ten:?}");
            assert_eq!(of_ten.p, alone.p);
        }
    }

    #[test]
    fn interval_and_p_agree() {
        let mut numbers = NormalNumbers::seeded(3);
        for mode in [Mode::Planned, Mode::Open] {
            let rule = rule(mode, 10, 1);
            for _ in 0..4 {
                let log_ratios: Vec<f64> =
                    (0..10).map(|_| 0.012 + 0.015 * numbers.next()).collect();
                let judged = rule.judge(&log_ratios).unwrap();
                let excludes_none = judged.low > 0.0 || judged.high < 0.0;
                assert_eq!(excludes_none, judged.p < 0.05, "{judged:?}");
                assert_eq!(excludes_none, judged.decision == Decision::Difference);
            }
        }
    }

    #[test]
    fn play_decides_as_judge_does() {
        for mode in [Mode::Planned, Mode::Open] {
            let rule = rule(mode, 20, 2);
            for effect in [0.0, 0.015, 0.03] {
                let log_ratios = blocks(effect, 0.015, 20);
                let mut next = log_ratios.iter().copied();
                let (decision, after) = rule.play(|| next.next().unwrap());
                let judged = rule.judge(&log_ratios[..after as usize]).unwrap();
                assert_eq!(judged.decision, decision, "{judged:?}");
                let before = rule.judge(&log_ratios[..after as usize - 1]).unwrap();
                assert_eq!(before.decision, Decision::Continue);
            }
        }
    }

    #[test]
    fn equivalence_is_rarely_claimed_at_the_margin() {
        // Exactly the margin's ratio: each claim is an error; at most 5 %, to 3.5 standard errors
        // of 4000 experiments.
        let criteria = Criteria { margin: 0.02, ..Criteria::default() };
        for mode in [Mode::Planned, Mode::Open] {
            let rule = Rule::new(mode, 20, criteria).unwrap();
            let mut numbers = NormalNumbers::seeded(8);
            let mut draw = || 0.02f64.ln_1p() + 0.014 * numbers.next();
            let claims =
                (0..4000).filter(|_| rule.play(&mut draw).0 == Decision::Equivalent).count();
            assert!(claims < 248, "{mode:?}: {claims}");
        }
    }

    #[test]
    fn next_look_is_reported() {
        let planned = rule(Mode::Planned, 20, 1);
        assert_eq!((planned.next_look_after(0), planned.next_look_after(5)), (Some(4), Some(8)));
        assert_eq!(planned.next_look_after(20), None);
        let open = rule(Mode::Open, 20, 1);
        assert_eq!((open.next_look_after(0), open.next_look_after(5)), (Some(2), Some(6)));
        assert_eq!(open.next_look_after(20), None);
    }

    #[test]
    fn identical_blocks_are_certain() {
        let planned = rule(Mode::Planned, 8, 1);
        let differs = planned.judge(&[0.25; 4]).unwrap();
        assert_eq!(
            (differs.decision, differs.low, differs.high),
            (Decision::Difference, 0.25, 0.25)
        );
        let equal = planned.judge(&[0.0; 4]).unwrap();
        assert_eq!((equal.decision, equal.p), (Decision::Equivalent, 1.0));
    }

    #[test]
    fn invalid_arguments_are_refused() {
        let none = rule(Mode::Open, 8, 1).judge(&[]).unwrap();
        assert_eq!((none.effect, none.p, none.blocks), (0.0, 1.0, 0));
        let refused = rule(Mode::Open, 8, 1).judge(&[0.1, f64::INFINITY]);
        assert!(matches!(refused, Err(Unanswerable::NotPositive { .. })));
        let criteria = Criteria { confidence: 40.0, ..Criteria::default() };
        let refused = Rule::new(Mode::Open, 8, criteria);
        assert!(matches!(refused, Err(Unanswerable::Criteria { .. })));
        let refused = Rule::new(Mode::Planned, 1, Criteria::default());
        assert!(matches!(refused, Err(Unanswerable::TooFew { .. })));
    }
}
