//! The plan of an imported set's runs.

use super::factors::GroupFactors;
use super::{Group, ReadTree, settings, tree_of};
use crate::config;
use crate::found::ResultSet;
use fwdlab_model::Plan;
use fwdlab_model::plan::{
    Adjust, Change, Compare, Design, Factor, PlannedRun, RunMetric, Trial, Variant,
};
use fwdlab_results::stats::log_rule::Rule;
use fwdlab_results::stats::summary::median;

/// Inputs of a plan.
pub(super) struct Parts<'a> {
    pub(super) set: &'a ResultSet,
    pub(super) groups: &'a [Group],
    pub(super) varied: &'a GroupFactors,
    pub(super) trees: &'a [ReadTree],
    pub(super) rule: Rule,
    pub(super) upper: bool,
    pub(super) title: Option<String>,
    /// The reference variant of each published block, and the variants compared with it.
    pub(super) references: &'a [(usize, Vec<usize>)],
}

/// Makes the plan.
pub(super) fn plan(parts: &Parts<'_>) -> Plan {
    let place = &parts.set.place;
    let mut factors = parts.varied.factors.clone();
    let numbers = parts.varied.configuration.map(|at| {
        factors[at].levels.iter().map(|level| level.number).collect::<Vec<Option<f64>>>()
    });
    let is_queues = parts.varied.configuration.is_some_and(|at| factors[at].name == "queues");
    let variants: Vec<Variant> = parts
        .groups
        .iter()
        .zip(&parts.varied.levels)
        .enumerate()
        .map(|(index, (group, levels))| {
            let queues = parts.varied.configuration.filter(|_| is_queues);
            let queues = queues.and_then(|at| numbers.as_ref()?[levels[at]]);
            Variant {
                index,
                label: label(&factors, levels, &group.identity.name),
                levels: levels.clone(),
                settings: settings::settings(
                    &group.runs,
                    group.identity.traffic.as_deref(),
                    queues,
                ),
            }
        })
        .collect();
    let baseline = baseline(parts);
    if let Some(at) = parts.varied.configuration {
        changes(&mut factors[at], baseline[at].unwrap_or(0), parts.trees);
    }
    let mut runs = Vec::new();
    for (variant, group) in parts.groups.iter().enumerate() {
        for run in &group.runs {
            let (index, block) = (runs.len() as u32, run.block());
            runs.push(PlannedRun { index, block, variants: vec![variant] });
        }
    }
    let windows: Vec<f64> = parts
        .groups
        .iter()
        .flat_map(|group| &group.runs)
        .map(|run| run.record.trial.window_ns as f64)
        .collect();
    let is_search = parts.groups.iter().all(Group::is_search);
    // The window of a search is its single result.
    let metric = if is_search { RunMetric::Mean } else { parts.rule.metric(parts.upper) };
    let blocks = parts.groups.iter().map(|group| group.runs.len()).max().unwrap_or(0);
    Plan {
        method: None,
        name: place.label.clone(),
        title: parts.title.clone().unwrap_or_else(|| title(parts.set)),
        version: 1,
        base: variants.first().map(|variant| variant.settings.clone()).unwrap_or_default(),
        factors,
        variants,
        runs,
        trial: Trial {
            warmup_ns: 0,
            duration_ns: median(&windows).unwrap_or(0.0) as u64,
            drain_ns: 0,
            interval_ns: 1_000_000_000,
            slice_ns: 1_000_000_000,
        },
        design: Design {
            blocks: blocks as u32,
            seed: 0,
            alternate_ns: None,
            settle_ns: 0,
            stop: None,
            sequential: true,
        },
        compare: Compare {
            baseline,
            confidence: 95.0,
            margin: 0.02,
            figure: Some(metric),
            adjust: Adjust::Holm,
        },
        notes: Vec::new(),
        profile: None,
        hash: String::new(),
    }
    .sealed()
}

/// Returns a title for a set without a published text.
fn title(set: &ResultSet) -> String {
    let place = &set.place;
    let parts = [&place.machine, &place.interface, &place.topic, &place.label];
    let parts: Vec<&str> =
        parts.iter().map(|part| part.as_str()).filter(|part| !part.is_empty()).collect();
    parts.join(" / ")
}

fn label(factors: &[Factor], levels: &[usize], name: &str) -> String {
    let labels: Vec<&str> = factors
        .iter()
        .zip(levels)
        .map(|(factor, &level)| factor.levels[level].label.as_str())
        .collect();
    match (labels.is_empty(), name.is_empty()) {
        (false, _) => labels.join(", "),
        (true, true) => "all".to_owned(),
        (true, false) => name.to_owned(),
    }
}

/// Chooses the baseline: the one of the published blocks; otherwise the first revision; otherwise
/// the plain configuration; otherwise the first level.
fn baseline(parts: &Parts<'_>) -> Vec<Option<usize>> {
    let varied = parts.varied;
    let mut baseline = vec![None; varied.factors.len()];
    for (reference, others) in parts.references {
        let reference = &varied.levels[*reference];
        for other in others.iter().map(|other| &varied.levels[*other]) {
            for factor in 0..baseline.len() {
                if reference[factor] != other[factor] && baseline[factor].is_none() {
                    baseline[factor] = Some(reference[factor]);
                }
            }
        }
    }
    let chosen = varied.revision.or(varied.configuration).or((!baseline.is_empty()).then_some(0));
    if let Some(at) = chosen.filter(|_| baseline.iter().all(Option::is_none)) {
        baseline[at] = Some(0);
    }
    baseline
}

/// Adds to each level of the configurations' factor the changes of its tree from the baseline's
/// tree.
fn changes(factor: &mut Factor, baseline: usize, trees: &[ReadTree]) {
    let base = factor.levels.get(baseline).map(|level| level.label.clone()).unwrap_or_default();
    let Some(base) = tree_of(trees, &base) else { return };
    for (index, level) in factor.levels.iter_mut().enumerate() {
        let Some(tree) = tree_of(trees, &level.label).filter(|_| index != baseline) else {
            continue;
        };
        level.changes = config::changes(base, tree)
            .into_iter()
            .map(|change| Change {
                setting: change.name,
                value: change.to.unwrap_or_else(|| "(not set)".to_owned()),
                live: false,
            })
            .collect();
    }
}
