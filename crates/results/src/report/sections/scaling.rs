//! Scaling of the rate over a sweep of queues, cores, senders or workers.
//!
//! The law applies to parallel resources only. A factor is a sweep if it has the name of one (or
//! all its levels change such a setting), is numeric, and has at least four levels, all whole
//! numbers from 1. Routes, flows and frame sizes are also numbers, but don't work in parallel.
//! Alternations are omitted, because scaling requires a restart.

use super::{Context, Input, Section};
use crate::document::table::{Cell, Row};
use crate::document::{Block, Inline, Table};
use crate::format::listed;
use crate::report::analysis::RunResult;
use crate::report::analysis::queue_factors::{is_of_queues, not_swept, shown_name};
use crate::stats::{Scalability, ScaledRun, fit_scalability};
use crate::store::Contents;
use fwdlab_model::plan::Factor;
use fwdlab_model::units::format_pps;
use fwdlab_model::{RunRecord, Warning};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of levels of a sweep.
const MIN_LEVELS: usize = 4;
/// Last words in the names of parallel resources.
const RESOURCES: [&str; 10] = [
    "queues",
    "cores",
    "cpus",
    "workers",
    "senders",
    "receivers",
    "threads",
    "processes",
    "lcores",
    "instances",
];

/// A sweep of one factor, with a series for each combination of the other factors.
#[derive(Clone, Debug, Serialize)]
pub struct Scaling {
    /// Position of the swept factor.
    pub factor: usize,
    /// Its name.
    pub name: String,
    /// The series, in the order of their first variants.
    pub series: Vec<ScaledSeries>,
}

/// One series of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct ScaledSeries {
    /// Labels of the other factors' levels; empty if there are none.
    pub label: String,
    /// Variants of the series.
    pub variants: Vec<usize>,
    /// Reasons why levels are not points of the law: idle queues or shared CPUs. Empty if all are.
    pub left_out: String,
    /// Result of the fit.
    pub outcome: ScalingOutcome,
}

/// Result of a fit, or the reason why there is none.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingOutcome {
    /// The fit.
    Fitted(Box<FittedLaw>),
    /// There is no fit yet.
    Unanswerable {
        /// Reason.
        reason: String,
    },
}

/// A fit with its printed form.
#[derive(Clone, Debug, Serialize)]
pub struct FittedLaw {
    /// The numbers.
    pub law: Scalability,
    /// False if the law does not describe the series.
    pub holds: bool,
    /// Summary in one line.
    pub sentence: String,
    /// The numbers as printed in tables.
    pub shown: ShownLaw,
}

/// A fit's numbers as text.
#[derive(Clone, Debug, Serialize)]
pub struct ShownLaw {
    /// The best level.
    pub best: String,
    /// Contention with its interval.
    pub sigma: String,
    /// Coherency with its interval.
    pub kappa: String,
    /// Level at which the rate peaks.
    pub peak: String,
    /// Lack of fit; `-` if it can't be tested.
    pub lack_of_fit: String,
    /// Excluded levels; may be empty.
    pub censored: String,
}

impl Section for Vec<Scaling> {
    fn analyse(input: &Input<'_>) -> Vec<Scaling> {
        match input.core.figure.is_rate() {
            true => scaling(input.contents, &input.core.runs),
            false => Vec::new(),
        }
    }

    fn document(&self, context: &Context<'_>) -> Vec<Block> {
        let section = |sweep: &Scaling| {
            let title = match self.len() > 1 {
                true => format!("Scaling with {}", sweep.name),
                false => "Scaling".to_owned(),
            };
            let text = Block::text(format!(
                "Gunther's universal scalability law over {}: rate = lambda N / (1 + sigma (N - 1) + \
                 kappa N (N - 1)), fitted to the logarithms of the runs. lambda: the rate of one; \
                 sigma: contention; kappa: coherency. In brackets {} % intervals.",
                sweep.name, context.core.confidence
            ));
            let mut blocks = vec![text, sweep.laws()];
            let remarks = remarks(sweep);
            if !remarks.is_empty() {
                blocks.push(Block::list(remarks));
            }
            Block::section(title, blocks)
        };
        self.iter().map(section).collect()
    }

    fn summary(&self) -> Vec<Block> {
        self.iter().map(Scaling::laws).collect()
    }
}

/// Returns the sweeps among the plan's factors.
fn scaling(contents: &Contents, runs: &[RunResult]) -> Vec<Scaling> {
    let plan = &contents.plan;
    if plan.design.alternate_ns.is_some() {
        return Vec::new();
    }
    let limited: BTreeSet<u32> = contents
        .runs
        .iter()
        .filter(|run| run.warnings.iter().any(|w| matches!(w, Warning::GeneratorLimited { .. })))
        .map(|run| run.run)
        .collect();
    let records: BTreeMap<u32, &RunRecord> =
        contents.runs.iter().map(|run| (run.run, run)).collect();
    let sweeps = plan.factors.iter().enumerate();
    sweeps
        .filter_map(|(factor, swept)| Some((factor, swept, counts(swept)?)))
        .map(|(factor, swept, counts)| {
            // Levels whose queues were not really varied are not points of the law.
            let of = |run: &RunRecord, level| match is_of_queues(swept) {
                true => not_swept(run, level),
                false => None,
            };
            let fit = |variants: Vec<usize>| {
                let is_included =
                    |run: &&RunResult| variants.contains(&run.variant) && run.left_out.is_none();
                let series_runs = runs.iter().filter(is_included);
                let mut left_out: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
                let scaled: Vec<ScaledRun> = series_runs
                    .filter_map(|run| {
                        let level = counts[plan.variants[run.variant].levels[factor]];
                        if let Some(why) = records.get(&run.run).and_then(|run| of(run, level)) {
                            left_out.entry(why).or_default().insert(level);
                            return None;
                        }
                        let limited = limited.contains(&run.run);
                        Some(ScaledRun { level, block: run.block, pps: run.value_pps?, limited })
                    })
                    .collect();
                let reasons: Vec<String> = left_out
                    .into_iter()
                    .map(|(why, levels)| {
                        let levels: Vec<String> = levels.iter().map(u32::to_string).collect();
                        format!("{} queues {why}", listed(&levels))
                    })
                    .collect();
                let left_out = reasons.join("; ");
                let outcome = outcome(&scaled, plan.compare.confidence, &left_out);
                let label =
                    variants.first().map_or(String::new(), |&v| others(contents, factor, v));
                ScaledSeries { label, variants, left_out, outcome }
            };
            let series = series_of(contents, factor).into_iter().map(fit).collect();
            Scaling { factor, name: shown_name(contents, swept), series }
        })
        .collect()
}

/// Returns the levels of a factor; `None` if the factor is not a sweep.
fn counts(factor: &Factor) -> Option<Vec<u32>> {
    let counts: Vec<u32> = factor
        .levels
        .iter()
        .map(|level| {
            let number = level.number?;
            let whole = number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&number);
            whole.then_some(number as u32)
        })
        .collect::<Option<_>>()?;
    let distinct = BTreeSet::from_iter(&counts).len();
    let is_resource = |name: &str| {
        let last = name.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(name);
        RESOURCES.contains(&last.to_ascii_lowercase().as_str())
    };
    let sets_one = factor.levels.iter().all(|level| {
        let changes = &level.changes;
        !changes.is_empty() && changes.iter().all(|change| is_resource(&change.setting))
    });
    (distinct >= MIN_LEVELS && (is_resource(&factor.name) || sets_one)).then_some(counts)
}

/// Groups variants that differ only in `factor`.
fn series_of(contents: &Contents, factor: usize) -> Vec<Vec<usize>> {
    let variants = &contents.plan.variants;
    let alike = |a: usize, b: usize| {
        let mut pairs = variants[a].levels.iter().zip(&variants[b].levels).enumerate();
        pairs.all(|(i, (a, b))| i == factor || a == b)
    };
    let mut series: Vec<Vec<usize>> = Vec::new();
    for variant in 0..variants.len() {
        match series.iter_mut().find(|members| alike(members[0], variant)) {
            Some(members) => members.push(variant),
            None => series.push(vec![variant]),
        }
    }
    series
}

fn others(contents: &Contents, factor: usize, variant: usize) -> String {
    let plan = &contents.plan;
    let labels = plan.factors.iter().zip(&plan.variants[variant].levels).enumerate();
    let labels: Vec<&str> = labels
        .filter(|(i, _)| *i != factor)
        .map(|(_, (factor, &level))| factor.levels[level].label.as_str())
        .collect();
    labels.join(", ")
}

fn outcome(runs: &[ScaledRun], confidence: f64, left_out: &str) -> ScalingOutcome {
    let levels: BTreeSet<u32> = runs.iter().map(|run| run.level).collect();
    if !left_out.is_empty() && levels.len() < MIN_LEVELS {
        let reason = format!(
            "the law speaks of queues that work in parallel, and {left_out}: {} level{} left",
            levels.len(),
            if levels.len() == 1 { " is" } else { "s are" }
        );
        return ScalingOutcome::Unanswerable { reason };
    }
    match fit_scalability(runs, confidence) {
        Ok(law) => ScalingOutcome::Fitted(Box::new(FittedLaw {
            holds: law.holds(),
            sentence: law.sentence(),
            shown: shown(&law),
            law,
        })),
        Err(reason) => ScalingOutcome::Unanswerable { reason: reason.to_string() },
    }
}

fn shown(law: &Scalability) -> ShownLaw {
    let censored: Vec<String> = law.censored.iter().map(u32::to_string).collect();
    ShownLaw {
        best: law.best_phrase(),
        sigma: law.sigma.shown(),
        kappa: law.kappa.shown(),
        peak: law.peak_phrase(),
        lack_of_fit: law.lack_of_fit.map_or("-".to_owned(), |test| test.to_string()),
        censored: censored.join(", "),
    }
}

impl Scaling {
    /// Returns a table of the fitted laws, one row per series.
    fn laws(&self) -> Block {
        let of = |get: fn(&FittedLaw) -> Cell| {
            move |series: &ScaledSeries| fitted(series).map_or(Cell::None, get)
        };
        let bracketed = |value: f64, low: f64, high: f64| {
            let text = format!("{} [{}, {}]", format_pps(value), format_pps(low), format_pps(high));
            Cell::Values(text.into(), vec![value.into(), low.into(), high.into()])
        };
        Table::of(&self.series)
            .words("series", |series| match series.label.as_str() {
                "" => Cell::text("all"),
                label => Cell::text(label),
            })
            .words("does the law hold", |series| match &series.outcome {
                ScalingOutcome::Fitted(law) if !law.holds => {
                    Cell::Verdict("worse".into(), "no".into())
                }
                ScalingOutcome::Fitted(law) if law.law.lack_of_fit.is_some() => Cell::text("yes"),
                ScalingOutcome::Fitted(_) => Cell::text("untested"),
                ScalingOutcome::Unanswerable { reason } => Cell::text(format!("no fit: {reason}")),
            })
            .numbers(
                "best level",
                of(|law| {
                    let forecast = if law.holds { "" } else { " (no forecast)" };
                    Cell::text(Inline::default().strong(&law.shown.best).text(forecast))
                }),
            )
            .words("rate there", move |series| {
                let best = fitted(series).map(|law| &law.law.best);
                best.map_or(Cell::None, |best| bracketed(best.pps, best.low, best.high))
            })
            .words("peak of the law", of(|law| Cell::text(&law.shown.peak)))
            .words("lambda", move |series| {
                let lambda = fitted(series).map(|law| &law.law.lambda_pps);
                lambda.map_or(Cell::None, |l| bracketed(l.value, l.low, l.high))
            })
            .words("sigma", of(|law| Cell::text(&law.shown.sigma)))
            .words("kappa", of(|law| Cell::text(&law.shown.kappa)))
            .words("lack of fit", of(|law| Cell::text(&law.shown.lack_of_fit)))
            .with_words(|series, row: &mut Row| {
                row.name = format!("scaling with {}", named(self, series));
                row.words.push(match &series.outcome {
                    ScalingOutcome::Fitted(fitted) => fitted.sentence.clone(),
                    ScalingOutcome::Unanswerable { reason } => format!("no fit: {reason}"),
                });
            })
            .set(|table| table.in_words = true)
            .block()
    }
}

fn fitted(series: &ScaledSeries) -> Option<&FittedLaw> {
    match &series.outcome {
        ScalingOutcome::Fitted(law) => Some(law),
        ScalingOutcome::Unanswerable { .. } => None,
    }
}

fn named(sweep: &Scaling, series: &ScaledSeries) -> String {
    let of = if series.label.is_empty() { "" } else { ", " };
    format!("{}{of}{}", sweep.name, series.label)
}

/// Returns remarks on the laws: excluded points, and reasons for doubts.
fn remarks(sweep: &Scaling) -> Vec<String> {
    let laws = || sweep.series.iter().filter_map(|series| Some((series, fitted(series)?)));
    let left_out = laws().filter(|(series, _)| !series.left_out.is_empty()).map(|(series, _)| {
        let (name, left_out) = (named(sweep, series), &series.left_out);
        format!("{name}: not among the law's points: {left_out}")
    });
    let doubtful = laws().filter(|(_, law)| !law.shown.censored.is_empty() || !law.holds);
    let doubts =
        doubtful.map(|(series, law)| format!("{}: {}", named(sweep, series), law.sentence));
    left_out.chain(doubts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::plan::{Change, Level};

    fn factor(name: &str, setting: &str, numbers: &[f64]) -> Factor {
        let level = |&number: &f64| Level {
            label: number.to_string(),
            number: Some(number),
            changes: vec![Change {
                setting: setting.into(),
                value: number.to_string(),
                live: false,
            }],
            build_of: None,
        };
        Factor { name: name.into(), levels: numbers.iter().map(level).collect() }
    }

    #[test]
    fn sweep_requires_parallel_resource_and_four_levels() {
        let four = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(counts(&factor("queues", "queues", &four)), Some(vec![1, 2, 4, 8]));
        assert_eq!(counts(&factor("rx-queues", "sysctl x", &four)), Some(vec![1, 2, 4, 8]));
        assert!(counts(&factor("width", "senders", &four)).is_some());
        assert_eq!(counts(&factor("routes", "routes", &four)), None);
        assert_eq!(counts(&factor("queues", "queues", &four[..3])), None);
        assert_eq!(counts(&factor("queues", "queues", &[0.0, 1.0, 2.0, 4.0])), None);
        assert_eq!(counts(&factor("queues", "queues", &[0.5, 1.0, 2.0, 4.0])), None);
        let mut labelled = factor("queues", "queues", &four);
        labelled.levels[0].number = None;
        assert_eq!(counts(&labelled), None);
    }
}
