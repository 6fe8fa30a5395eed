//! Beds: the machines (or laboratories) that an experiment's blocks were measured on.
//!
//! Every block is from a single bed, so differences between beds do not affect verdicts between
//! variants. This module compares the beds themselves: whether one is faster or slower than the
//! others, whether a variant has a different effect there, and whether it drifts. Each bed is
//! compared with all others together (of two beds, one with the other), by its blocks: their log
//! ratios between two variants, and their mean logs over all variants. The most deviant bed is
//! removed from the reference, and the test is repeated until no bed differs. All tests of beds are
//! adjusted as one family, separate from the verdicts between variants.
//!
//! It does not decide which bed is right: a difference between machines is a result, not a fault.

mod document;

use super::{Context, DETAILS, Input, MANY, Section};
use crate::format::{listed, percent, signed_percent};
use crate::report::analysis::comparisons::criteria;
use crate::report::analysis::{Answer, Compared, Outcome, RunResult, adjust, compared};
use crate::stats::blocked::{compare_among_many, mean_estimate};
use crate::stats::comparison::{Layout, Method, Scope, Sizes};
use crate::stats::diagnostics::{RunFigure, Trend, trend_within_variants};
use crate::stats::summary::{mean, median};
use crate::stats::{Comparison, Criteria, Unanswerable, Verdict};
use crate::store::{Contents, UNNAMED};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of blocks of a bed for a test of drift.
const BLOCKS_OF_DRIFT: usize = 6;
/// Maximum number of bed names in a sentence.
const NAMED: usize = 8;

/// The beds of an experiment, and their differences.
#[derive(Clone, Debug, Serialize)]
pub struct Beds {
    /// Each bed.
    pub beds: Vec<BedResult>,
    /// The effect on each bed, for each comparison of the plan.
    pub effects: Vec<BedEffect>,
    /// Joint confidence of all tests of beds, in percent.
    pub confidence: f64,
}

/// One bed.
#[derive(Clone, Debug, Serialize)]
pub struct BedResult {
    /// Its name.
    pub bed: String,
    /// Number of its runs with a rate.
    pub runs: usize,
    /// Number of its blocks with a rate of every variant.
    pub blocks: usize,
    /// Median over these blocks of the geometric mean of the variants, packets per second; `None`
    /// without such blocks.
    pub level_pps: Option<f64>,
    /// Its reference: `the others`, or the other bed's name.
    pub against: String,
    /// Its level compared with the reference; `None` for the first of two beds, since one test
    /// covers both.
    pub level: Option<Outcome>,
    /// Change of its level from its first block to its last, as a ratio; `None` if there are too
    /// few blocks.
    pub drift: Option<f64>,
    /// p-value of the drift, unadjusted.
    pub drift_p: Option<f64>,
    /// True if the drift is significant after adjustment for the number of beds.
    pub drifts: bool,
}

/// Effect of a variant on one bed.
#[derive(Clone, Debug, Serialize)]
pub struct BedEffect {
    /// Label of the variant.
    pub label: String,
    /// Label of its baseline.
    pub baseline_label: String,
    /// The bed.
    pub bed: String,
    /// The bed's reference.
    pub against: String,
    /// The effect on the bed, with an unadjusted interval.
    pub here: Outcome,
    /// Ratio of the effect on the bed to the effect elsewhere; `None` for the first of two beds.
    pub difference: Option<Outcome>,
}

/// One variant's rate in a run, with its bed and block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BedRun<'a> {
    /// The bed.
    pub bed: &'a str,
    /// The block, which is unique to the bed.
    pub block: u32,
    /// The variant.
    pub variant: usize,
    /// Its rate, packets per second.
    pub pps: f64,
}

impl Section for Option<Beds> {
    fn analyse(input: &Input<'_>) -> Option<Beds> {
        beds(input.contents, &input.core.runs, &input.core.comparisons)
    }

    fn document(&self, _: &Context<'_>) -> Vec<crate::document::Block> {
        let section = |beds: &Beds| {
            let section = document::section(beds);
            // With many beds, the remarkable ones are listed at the start.
            if beds.beds.len() > MANY { section.on_page(DETAILS) } else { section }
        };
        self.iter().map(section).collect()
    }

    fn summary(&self) -> Vec<crate::document::Block> {
        let sentences = self.iter().flat_map(Beds::sentences);
        sentences.map(|sentence| crate::document::Block::text(format!("{sentence}."))).collect()
    }
}

/// Compares the beds of a report.
fn beds(contents: &Contents, runs: &[RunResult], comparisons: &[Compared]) -> Option<Beds> {
    let plan = &contents.plan;
    if !plan.metric().is_rate() || runs.iter().all(|run| run.bed.is_none()) {
        return None;
    }
    let mut counted: Vec<&RunResult> = runs.iter().filter(|run| run.left_out.is_none()).collect();
    counted.sort_by_key(|run| (&run.started_at, run.run));
    let figures: Vec<BedRun<'_>> = counted.into_iter().filter_map(figure).collect();
    let with_first_goal = comparisons.iter().filter(|compared| compared.goal.is_none());
    let pairs = with_first_goal
        .filter(|compared| matches!(compared.outcome, Outcome::Compared(_)))
        .map(|compared| (compared.baseline, compared.variant));
    let labels: Vec<&str> = plan.variants.iter().map(|variant| variant.label.as_str()).collect();
    beds_of(&figures, &labels, &pairs.collect::<Vec<_>>(), criteria(plan))
}

/// Returns a run's rate with its bed; `None` if it has no valid rate.
fn figure(run: &RunResult) -> Option<BedRun<'_>> {
    let pps = run.value_pps.filter(|pps| pps.is_finite() && *pps > 0.0)?;
    let bed = run.bed.as_deref().unwrap_or(UNNAMED);
    Some(BedRun { bed, block: run.block, variant: run.variant, pps })
}

/// The logs of one block's runs, by variant.
struct Block<'a> {
    bed: &'a str,
    logs: BTreeMap<usize, Vec<f64>>,
}

impl Block<'_> {
    /// Returns the mean log of a variant.
    fn of(&self, variant: usize) -> Option<f64> {
        self.logs.get(&variant).map(|logs| mean(logs))
    }

    /// Returns the log ratio of the second variant to the first.
    fn ratio(&self, (baseline, variant): (usize, usize)) -> Option<f64> {
        Some(self.of(variant)? - self.of(baseline)?)
    }

    /// Returns the mean log over all variants; `None` if a variant is missing, since the others
    /// would have more weight.
    fn level(&self, variants: usize) -> Option<f64> {
        let all: Vec<f64> = (0..variants).filter_map(|variant| self.of(variant)).collect();
        (all.len() == variants && variants > 0).then(|| mean(&all))
    }
}

/// Compares the beds of runs, which are in chronological order; `None` if there is only one bed.
/// `labels` are the variants' labels, `pairs` baselines with their candidates.
pub fn beds_of(
    runs: &[BedRun<'_>],
    labels: &[&str],
    pairs: &[(usize, usize)],
    plan: Criteria,
) -> Option<Beds> {
    let variants = labels.len();
    let names: BTreeSet<&str> = runs.iter().map(|run| run.bed).collect();
    let names: Vec<&str> = names.into_iter().collect();
    if names.len() < 2 {
        return None;
    }
    let blocks = blocks(runs);
    let against = |bed: &str| match names.as_slice() {
        [first, second] => (if bed == *first { *second } else { *first }).to_owned(),
        _ => "the others".to_owned(),
    };
    // Levels and effects are one family of tests.
    let criteria = |family: usize| Criteria { family, ..plan };
    let tested = if names.len() == 2 { 1 } else { names.len() };
    let family = criteria(tested * (1 + pairs.len()));
    let by_bed = |figure: &dyn Fn(&Block<'_>) -> Option<f64>| -> Vec<Vec<f64>> {
        let of = |bed: &&str| {
            let of_bed = blocks.iter().filter(|block| block.bed == *bed);
            of_bed.filter_map(|block| figure(block).map(f64::exp)).collect()
        };
        names.iter().map(of).collect()
    };
    let mut questions = vec![Question::of(by_bed(&|block| block.level(variants)))];
    questions.extend(pairs.iter().map(|&pair| Question::of(by_bed(&|block| block.ratio(pair)))));
    let mut outcomes = answers(&mut questions, family).into_iter();
    let mut next = || outcomes.next().flatten().map(Outcome::of);

    let results = names.iter().map(|bed| {
        let of_bed: Vec<&Block<'_>> = blocks.iter().filter(|block| block.bed == *bed).collect();
        let levels: Vec<f64> = of_bed.iter().filter_map(|block| block.level(variants)).collect();
        let trend = drift(&levels);
        let drift_p = trend.map(|trend| trend.p);
        let drift = trend.map(|trend| (trend.slope * (levels.len() - 1) as f64).exp());
        let share = (1.0 - plan.confidence / 100.0) / names.len() as f64;
        BedResult {
            bed: (*bed).to_owned(),
            runs: runs.iter().filter(|run| run.bed == *bed).count(),
            blocks: levels.len(),
            level_pps: median(&levels).map(f64::exp),
            against: against(bed),
            level: next(),
            drift,
            drift_p,
            drifts: drift_p.is_some_and(|p| p < share),
        }
    });
    let results: Vec<BedResult> = results.collect();
    let mut effects = Vec::new();
    for &pair in pairs {
        for bed in &names {
            let of_bed = blocks.iter().filter(|block| block.bed == *bed);
            let ratios: Vec<f64> = of_bed.filter_map(|block| block.ratio(pair)).collect();
            effects.push(BedEffect {
                label: labels[pair.1].to_owned(),
                baseline_label: labels[pair.0].to_owned(),
                bed: (*bed).to_owned(),
                against: against(bed),
                here: Outcome::of(effect(&ratios, criteria(1))),
                difference: next(),
            });
        }
    }
    Some(Beds { beds: results, effects, confidence: plan.confidence })
}

/// Groups runs into blocks, in the order in which they began.
fn blocks<'a>(runs: &[BedRun<'a>]) -> Vec<Block<'a>> {
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    let mut blocks: Vec<Block<'a>> = Vec::new();
    for run in runs {
        let place = *places.entry(run.block).or_insert_with(|| {
            blocks.push(Block { bed: run.bed, logs: BTreeMap::new() });
            blocks.len() - 1
        });
        blocks[place].logs.entry(run.variant).or_default().push(run.pps.ln());
    }
    blocks
}

/// A test of every bed: its level, or the effect of a variant on it.
struct Question {
    /// Values of each bed's blocks.
    figures: Vec<Vec<f64>>,
    /// Beds that have not been found to differ, which are compared with each other.
    alike: Vec<usize>,
    /// Results of the deviant beds, from the comparison with the beds that remained at the time.
    apart: BTreeMap<usize, Comparison>,
}

impl Question {
    fn of(figures: Vec<Vec<f64>>) -> Question {
        let alike = (0..figures.len()).collect();
        Question { figures, alike, apart: BTreeMap::new() }
    }

    /// Returns the result for each bed; `None` for the first of two remaining beds, since the
    /// second is compared with it.
    fn answers(&self, criteria: Criteria) -> Vec<Option<Result<Comparison, Unanswerable>>> {
        let of = |bed: usize| {
            if let Some(answer) = self.apart.get(&bed) {
                return Some(Ok(answer.clone()));
            }
            if self.alike.len() == 2 && bed == self.alike[0] || self.alike.len() < 2 {
                return None;
            }
            let others = self.alike.iter().filter(|other| **other != bed);
            let others: Vec<f64> = others.flat_map(|&o| &self.figures[o]).copied().collect();
            Some(compare_among_many(&others, &self.figures[bed], criteria))
        };
        (0..self.figures.len()).map(of).collect()
    }

    /// Moves the most deviant of the beds in `found` (with their unadjusted results) out of the
    /// reference; returns true if there were any. A single deviant bed makes each other bed differ
    /// slightly from the rest, and must not cause findings against them. With very many beds it
    /// moves several at a time, to save time.
    fn set_apart(&mut self, mut found: Vec<(usize, Comparison)>) -> bool {
        found.retain(|(bed, _)| !self.apart.contains_key(bed));
        found.sort_by(|a, b| a.1.p.total_cmp(&b.1.p));
        found.truncate((self.alike.len() / 10).max(1));
        self.alike.retain(|bed| found.iter().all(|(apart, _)| apart != bed));
        let is_any = !found.is_empty();
        self.apart.extend(found);
        is_any
    }
}

/// Runs every test on every bed, adjusted together; results are ordered by test, then by bed.
fn answers(
    questions: &mut [Question],
    criteria: Criteria,
) -> Vec<Option<Result<Comparison, Unanswerable>>> {
    loop {
        let raw: Vec<_> = questions.iter().map(|question| question.answers(criteria)).collect();
        let mut adjusted: Vec<_> = raw.iter().flatten().flatten().cloned().collect();
        adjust(&mut adjusted, criteria.adjustment);
        let mut adjusted = adjusted.into_iter();
        let mut answered = Vec::new();
        let mut changed = false;
        for (question, raw) in questions.iter_mut().zip(raw) {
            let mut found = Vec::new();
            for (bed, raw) in raw.into_iter().enumerate() {
                let answer = raw.as_ref().and_then(|_| adjusted.next());
                if let (Some(Ok(answer)), Some(Ok(raw))) = (&answer, raw)
                    && matches!(answer.verdict(), Verdict::Better | Verdict::Worse)
                {
                    found.push((bed, raw));
                }
                answered.push(answer);
            }
            changed |= question.set_apart(found);
        }
        if !changed {
            return answered;
        }
    }
}

/// Returns the effect within one bed, with Student's interval of its blocks' log ratios.
fn effect(ratios: &[f64], criteria: Criteria) -> Result<Comparison, Unanswerable> {
    let n = ratios.len();
    if n < 2 {
        let what = "blocks of the bed with runs of both variants";
        return Err(Unanswerable::TooFew { what, have: n, need: 2 });
    }
    let sizes = Sizes { n_a: n, n_b: n, blocks: n, left_out: 0, layout: Layout::Blocks };
    let estimate = mean_estimate(ratios);
    Comparison::from_estimate(estimate, criteria, sizes, Method::BlockedT, Scope::AcrossStarts)
}

/// Tests for a trend of a bed's levels over its blocks.
fn drift(levels: &[f64]) -> Option<Trend> {
    if levels.len() < BLOCKS_OF_DRIFT {
        return None;
    }
    let figures = (0..).zip(levels).map(|(at, &log_rate)| RunFigure {
        run: at,
        variant: 0,
        block: at,
        log_rate,
    });
    trend_within_variants(&figures.collect::<Vec<RunFigure>>())
}

impl Beds {
    /// Describes the findings on beds, one sentence each. If nothing was found, it reports the
    /// smallest effect that would have been detected.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![self.named()];
        let effects = self.effects.iter().filter_map(|effect| {
            let answer = found(effect.difference.as_ref()?)?;
            let Outcome::Compared(here) = &effect.here else { return None };
            Some(format!(
                "{} against {} is other on bed {} than on {}: {} there, {} {} {} of that elsewhere",
                effect.label,
                effect.baseline_label,
                effect.bed,
                effect.against,
                here.shown.effect,
                if answer.comparison.ratio > 1.0 { "more by" } else { "less by" },
                answer.shown.effect.trim_start_matches(['+', '-']),
                answer.shown.interval
            ))
        });
        let effects: Vec<String> = effects.collect();
        match effects.is_empty() {
            true => sentences.extend(self.nothing()),
            false => sentences.extend(effects),
        }
        let levels = self.beds.iter().filter_map(|bed| {
            let answer = found(bed.level.as_ref()?)?;
            let size = percent((answer.comparison.ratio - 1.0).abs(), 1);
            let direction = if answer.comparison.ratio > 1.0 { "faster" } else { "slower" };
            let (bed, against, interval) = (&bed.bed, &bed.against, &answer.shown.interval);
            Some(format!(
                "bed {bed} is {size} {direction} than {against} {interval}: a difference between beds, which \
                 enters no verdict between variants"
            ))
        });
        sentences.extend(levels);
        let drifting = self.beds.iter().filter(|bed| bed.drifts);
        sentences.extend(drifting.filter_map(|bed| {
            let change = signed_percent(bed.drift? - 1.0, 1);
            let (bed, p) = (&bed.bed, crate::format::p_value(bed.drift_p?));
            Some(format!("bed {bed} drifts: {change} from its first block to its last (p {p})"))
        }));
        sentences
    }

    fn named(&self) -> String {
        let mut names: Vec<String> = self.beds.iter().take(NAMED).map(|b| b.bed.clone()).collect();
        if self.beds.len() > NAMED {
            names.push("...".to_owned());
        }
        let names = if self.beds.len() > NAMED { names.join(", ") } else { listed(&names) };
        format!("{} beds ({names}); variants are compared within each", self.beds.len())
    }

    /// States that no effect differs between beds, with the smallest difference that would have
    /// been detected.
    fn nothing(&self) -> Option<String> {
        let tested = self.effects.iter().filter_map(|effect| effect.difference.as_ref());
        let mut mde = None;
        let mut unanswered = None;
        for outcome in tested {
            match outcome {
                Outcome::Compared(answer) => {
                    mde = Some(mde.unwrap_or(0.0_f64).max(answer.comparison.mde));
                }
                Outcome::Unanswerable { reason } => unanswered = Some(reason),
                Outcome::Counted(_) => {}
            }
        }
        match (mde, unanswered) {
            (Some(mde), _) => Some(format!(
                "no bed was found where a variant makes another difference than elsewhere; of true \
                 ones of {} nine of ten would have been found",
                percent(mde, 1)
            )),
            (None, Some(reason)) => {
                Some(format!("whether variants differ alike on all beds is unknown: {reason}"))
            }
            (None, None) => None,
        }
    }
}

/// Returns the result if it is a difference.
fn found(outcome: &Outcome) -> Option<&Answer> {
    match outcome {
        Outcome::Compared(answer) => {
            matches!(answer.verdict, Verdict::Better | Verdict::Worse).then_some(answer)
        }
        _ => None,
    }
}
/// Compares the beds of the runs of a store; `None` if there is only one.
pub(crate) fn beds_of_runs(contents: &Contents, runs: &[RunResult]) -> Option<Beds> {
    if contents.beds().len() < 2 {
        return None;
    }
    beds(contents, runs, &compared(contents, runs))
}
