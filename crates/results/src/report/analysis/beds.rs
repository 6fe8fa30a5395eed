//! Beds: the machines (or laboratories) that an experiment's blocks were measured on.
//!
//! Blocks lie within a bed, so that verdicts between variants hold whatever the beds are like.
//! Here stands what the beds themselves say: whether one of them is faster or slower than the
//! others, whether a variant makes another difference there than elsewhere, and whether it
//! drifts. Each bed is held against all others together (two beds: one against the other), by
//! its blocks: their log ratios between two variants, and their mean logs over all variants. The
//! bed that differs most is taken out of what the others are held against, and so on, until none
//! differs. All that is asked of beds is adjusted together, apart from the verdicts between
//! variants.
//!
//! Left out: which bed is right. That two machines differ is a finding, not a fault.

use super::comparisons::{Answer, Compared, Outcome, adjust, criteria};
use super::figures::RunResult;
use crate::format::{listed, percent, signed_percent};
use crate::stats::blocked::{compare_among_many, mean_estimate};
use crate::stats::comparison::{Layout, Method, Scope, Sizes};
use crate::stats::diagnostics::{RunFigure, Trend, trend_within_variants};
use crate::stats::summary::{mean, median};
use crate::stats::{Comparison, Criteria, Unanswerable, Verdict};
use crate::store::{Contents, UNNAMED};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Fewest blocks of a bed that are searched for a drift.
const BLOCKS_OF_DRIFT: usize = 6;
/// Beds whose names are spelled out.
const NAMED: usize = 8;

/// The beds of an experiment, and how they differ.
#[derive(Clone, Debug, Serialize)]
pub struct Beds {
    /// Each bed.
    pub beds: Vec<BedResult>,
    /// For each comparison of the plan and each bed the effect there.
    pub effects: Vec<BedEffect>,
    /// Confidence in percent of all that is asked of beds.
    pub confidence: f64,
}

/// One bed.
#[derive(Clone, Debug, Serialize)]
pub struct BedResult {
    /// Its name.
    pub bed: String,
    /// Its runs with a figure.
    pub runs: usize,
    /// Its blocks in which every variant has a figure.
    pub blocks: usize,
    /// Median over these blocks of the geometric mean of the variants, packets per second; none
    /// without such blocks.
    pub level_pps: Option<f64>,
    /// What it is held against: `the others`, or the other one's name.
    pub against: String,
    /// Its level against the others'; none of the first of two, which would be asked twice.
    pub level: Option<Outcome>,
    /// Change of its level from its first block to its last, as a ratio; none where too few
    /// blocks tell.
    pub drift: Option<f64>,
    /// p-value of the drift, for this bed alone.
    pub drift_p: Option<f64>,
    /// True where the drift is there with what is asked of all beds together.
    pub drifts: bool,
}

/// What a variant does on one bed.
#[derive(Clone, Debug, Serialize)]
pub struct BedEffect {
    /// Label of the variant.
    pub label: String,
    /// Label of its baseline.
    pub baseline_label: String,
    /// The bed.
    pub bed: String,
    /// What it is held against.
    pub against: String,
    /// The effect there, with an interval for this bed alone.
    pub here: Outcome,
    /// The effect there over the effect elsewhere; none of the first of two beds.
    pub difference: Option<Outcome>,
}

/// One variant's figure of a run, and where it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BedRun<'a> {
    /// The bed.
    pub bed: &'a str,
    /// The block, which lies within the bed.
    pub block: u32,
    /// The variant.
    pub variant: usize,
    /// Its rate, packets per second.
    pub pps: f64,
}

/// The beds of a report.
pub(super) fn beds(
    contents: &Contents,
    runs: &[RunResult],
    comparisons: &[Compared],
) -> Option<Beds> {
    let plan = &contents.plan;
    if !plan.metric().is_rate() || runs.iter().all(|run| run.bed.is_none()) {
        return None;
    }
    let mut counted: Vec<&RunResult> = runs.iter().filter(|run| run.left_out.is_none()).collect();
    counted.sort_by_key(|run| (&run.started_at, run.run));
    let figures: Vec<BedRun<'_>> = counted.into_iter().filter_map(figure).collect();
    let asked = comparisons.iter().filter(|compared| compared.goal.is_none());
    let pairs = asked
        .filter(|compared| matches!(compared.outcome, Outcome::Compared(_)))
        .map(|compared| (compared.baseline, compared.variant));
    let labels: Vec<&str> = plan.variants.iter().map(|variant| variant.label.as_str()).collect();
    beds_of(&figures, &labels, &pairs.collect::<Vec<_>>(), criteria(plan))
}

/// A run's figure, where it has one.
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
    /// Mean log of a variant.
    fn of(&self, variant: usize) -> Option<f64> {
        self.logs.get(&variant).map(|logs| mean(logs))
    }

    /// Log ratio of the second to the first.
    fn ratio(&self, (baseline, variant): (usize, usize)) -> Option<f64> {
        Some(self.of(variant)? - self.of(baseline)?)
    }

    /// Mean log over all variants; none where one lacks, since others would weigh more.
    fn level(&self, variants: usize) -> Option<f64> {
        let all: Vec<f64> = (0..variants).filter_map(|variant| self.of(variant)).collect();
        (all.len() == variants && variants > 0).then(|| mean(&all))
    }
}

/// What runs, in the order in which they were measured, say of their beds; none where there is
/// only one. `labels` are those of the variants, `pairs` baselines with what is compared to them.
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
    // Levels and effects are one family: all of them are asked of the beds together.
    let criteria = |family: usize| Criteria { family, ..plan };
    let asked = if names.len() == 2 { 1 } else { names.len() };
    let family = criteria(asked * (1 + pairs.len()));
    let by_bed = |figure: &dyn Fn(&Block<'_>) -> Option<f64>| -> Vec<Vec<f64>> {
        let of = |bed: &&str| {
            let own = blocks.iter().filter(|block| block.bed == *bed);
            own.filter_map(|block| figure(block).map(f64::exp)).collect()
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
            let own = blocks.iter().filter(|block| block.bed == *bed);
            let ratios: Vec<f64> = own.filter_map(|block| block.ratio(pair)).collect();
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

/// The blocks in the order in which they began.
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

/// Something that is asked of every bed: its level, or the effect of a variant there.
struct Question {
    /// For each bed the figures of its blocks.
    figures: Vec<Vec<f64>>,
    /// Beds that are held against each other: those that were not found to differ.
    alike: Vec<usize>,
    /// The answers of those that were, by the beds that were left then.
    apart: BTreeMap<usize, Comparison>,
}

impl Question {
    fn of(figures: Vec<Vec<f64>>) -> Question {
        let alike = (0..figures.len()).collect();
        Question { figures, alike, apart: BTreeMap::new() }
    }

    /// For each bed its answer; none for the first of two that are left, which the second is held
    /// against.
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

    /// Takes those that differ most of `found` (bed and unadjusted answer) out of what others are
    /// held against; true if there were any. One bed that is unlike all others makes each of them
    /// a little unlike the rest, and must not be what they are accused by. Several of very many
    /// at a time, or it would take long.
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

/// Asks every question of every bed, adjusted together; question by question, bed by bed.
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
        let mut goes_on = false;
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
            goes_on |= question.set_apart(found);
        }
        if !goes_on {
            return answered;
        }
    }
}

/// The effect within one bed, with Student's interval of its blocks' log ratios.
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

/// The trend of a bed's levels over its blocks.
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
    /// What was found of the beds, a sentence each; that nothing was found comes with what could
    /// have been.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = vec![self.named()];
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
            true => said.extend(self.nothing()),
            false => said.extend(effects),
        }
        let levels = self.beds.iter().filter_map(|bed| {
            let answer = found(bed.level.as_ref()?)?;
            let size = percent((answer.comparison.ratio - 1.0).abs(), 1);
            let way = if answer.comparison.ratio > 1.0 { "faster" } else { "slower" };
            let (bed, against, interval) = (&bed.bed, &bed.against, &answer.shown.interval);
            Some(format!(
                "bed {bed} is {size} {way} than {against} {interval}: a difference between beds, which \
                 enters no verdict between variants"
            ))
        });
        said.extend(levels);
        let drifting = self.beds.iter().filter(|bed| bed.drifts);
        said.extend(drifting.filter_map(|bed| {
            let change = signed_percent(bed.drift? - 1.0, 1);
            let (bed, p) = (&bed.bed, crate::format::p_value(bed.drift_p?));
            Some(format!("bed {bed} drifts: {change} from its first block to its last (p {p})"))
        }));
        said
    }

    fn named(&self) -> String {
        let mut names: Vec<String> = self.beds.iter().take(NAMED).map(|b| b.bed.clone()).collect();
        if self.beds.len() > NAMED {
            names.push("...".to_owned());
        }
        let names = if self.beds.len() > NAMED { names.join(", ") } else { listed(&names) };
        format!("{} beds ({names}); variants are compared within each", self.beds.len())
    }

    /// That no effect was found to differ, with what would have been found.
    fn nothing(&self) -> Option<String> {
        let asked = self.effects.iter().filter_map(|effect| effect.difference.as_ref());
        let mut mde = None;
        let mut unanswered = None;
        for outcome in asked {
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

/// The answer of a difference that was found.
fn found(outcome: &Outcome) -> Option<&Answer> {
    match outcome {
        Outcome::Compared(answer) => {
            matches!(answer.verdict, Verdict::Better | Verdict::Worse).then_some(answer)
        }
        _ => None,
    }
}
/// What they say of beds; none where there is only one.
pub(crate) fn beds_of_runs(contents: &Contents, runs: &[RunResult]) -> Option<Beds> {
    if contents.beds().len() < 2 {
        return None;
    }
    beds(contents, runs, &super::compared(contents, runs))
}
