//! How the rate scales over a sweep of queues, cores, senders or workers.
//!
//! The law speaks of parallel resources only, so a factor counts when it is
//! named as one (or all its levels change a setting that is one), is numeric,
//! and has at least four levels, whole numbers from 1 on. Routes, flows and
//! frame sizes are numbers too, but nothing that works in parallel.
//! Alternations are left out: what scales needs a restart.

use super::figures::RunResult;
use super::queues::{is_of_queues, not_swept, shown_name};
use crate::format::listed;
use crate::stats::{Scalability, ScaledRun, fit_scalability};
use crate::store::Contents;
use fwdlab_model::plan::Factor;
use fwdlab_model::{RunRecord, Warning};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Fewest levels of a factor that is taken for a sweep.
const MIN_LEVELS: usize = 4;
/// Last words of the names of parallel resources.
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

/// A sweep: one factor, each combination of the others a series.
#[derive(Clone, Debug, Serialize)]
pub struct Scaling {
    /// Position of the factor that is swept.
    pub factor: usize,
    /// Its name.
    pub name: String,
    /// The series in the order of their first variants.
    pub series: Vec<ScaledSeries>,
}

/// One series of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct ScaledSeries {
    /// Labels of the other factors' levels; empty where there is no other factor.
    pub label: String,
    /// Variants of the series.
    pub variants: Vec<usize>,
    /// Why levels are no points of the law: queues that were idle, or shared CPUs. Empty
    /// where all are.
    pub left_out: String,
    /// Result of the fit.
    pub outcome: ScalingOutcome,
}

/// A fit, or why there is none.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingOutcome {
    /// Fitted.
    Fitted(Box<FittedLaw>),
    /// There is no fit yet.
    Unanswerable {
        /// Why.
        reason: String,
    },
}

/// A fit and how it is printed.
#[derive(Clone, Debug, Serialize)]
pub struct FittedLaw {
    /// The numbers.
    pub law: Scalability,
    /// False when the law does not describe the series.
    pub holds: bool,
    /// All of it in one line.
    pub sentence: String,
    /// The numbers as they are printed in tables.
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
    /// Where the rate turns.
    pub peak: String,
    /// Lack of fit; `-` where it can't be tested.
    pub lack_of_fit: String,
    /// Levels left out, or empty.
    pub censored: String,
}

/// The sweeps among the plan's factors.
pub(super) fn scaling(contents: &Contents, runs: &[RunResult]) -> Vec<Scaling> {
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
                let own = runs.iter().filter(|run| variants.contains(&run.variant));
                let mut left_out: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
                let scaled: Vec<ScaledRun> = own
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

/// The levels of a factor that the law may speak of.
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

/// Variants that differ in `factor` alone, together.
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
    fn only_parallel_resources_are_swept() {
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
