//! What the trials beside the runs' own ones say: the rates that were searched for (RFC 9971),
//! loss against load, and how one load was held.

use super::figures::RunResult;
use super::goals::result_of;
use super::variants::SummaryResult;
use crate::stats::binomial::Rate;
use crate::stats::summary::{Interval, median};
use crate::store::Contents;
use fwdlab_model::design::{Method as Planned, MethodKind};
use fwdlab_model::record::{MethodRecord, MethodTrial, tolerated};
use fwdlab_model::units::FrameSize;
use fwdlab_search::{Goal, Outcome};
use serde::Serialize;

/// The method of an experiment and what it found.
#[derive(Clone, Debug, Serialize)]
pub struct Method {
    /// The method.
    pub kind: MethodKind,
    /// The goals of a search, as they were applied; empty for other methods.
    pub goals: Vec<Goal>,
    /// The runs in their order, with their trials.
    pub runs: Vec<MethodRun>,
    /// A search: each variant and goal, over the runs.
    pub searched: Vec<Searched>,
    /// A soak: each variant, over the runs.
    pub soaked: Vec<Soaked>,
}

/// The trials of one run.
#[derive(Clone, Debug, Serialize)]
pub struct MethodRun {
    /// Index in the plan.
    pub run: u32,
    /// Index of the variant.
    pub variant: usize,
    /// Label of the variant.
    pub label: String,
    /// Its trials in their order.
    pub points: Vec<MethodPoint>,
    /// A search: what was found for each goal.
    pub found: Vec<GoalFound>,
    /// A search: change of the device's speed over the search as a ratio, where there was one.
    pub drift: Option<f64>,
}

/// One trial.
#[derive(Clone, Debug, Serialize)]
pub struct MethodPoint {
    /// Intended load, packets per second.
    pub load: u64,
    /// Seconds since the first trial began.
    pub at_s: f64,
    /// Seconds of traffic.
    pub duration_s: f64,
    /// Packets offered.
    pub offered: u64,
    /// Packets forwarded.
    pub forwarded: u64,
    /// Share that was lost; none if the trial says nothing of the device.
    pub loss_ratio: Option<f64>,
    /// Why it says nothing; none when it does.
    pub invalid: Option<String>,
    /// Share of the window's time that was provably taken from the device.
    pub taken: f64,
}

/// What a run found for a goal.
#[derive(Clone, Debug, Serialize)]
pub struct GoalFound {
    /// Name of the goal.
    pub goal: String,
    /// Relevant lower bound, packets per second.
    pub lower: Option<u64>,
    /// Relevant upper bound, packets per second.
    pub upper: Option<u64>,
    /// Conditional throughput, packets per second.
    pub throughput: Option<f64>,
    /// Why the result is irregular; none for a regular one.
    pub irregular: Option<String>,
}

/// What was found for a goal in a variant, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Searched {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Name of the goal.
    pub goal: String,
    /// Conditional throughput of the runs with a regular result.
    pub throughput: Option<SummaryResult>,
    /// The median in bits per second on the link, with preamble and gap (L1) and without (L2);
    /// none where nothing is known of the frames.
    pub bits: Option<(f64, f64)>,
    /// Median of their lower bounds.
    pub lower: Option<f64>,
    /// Median of their upper bounds.
    pub upper: Option<f64>,
    /// Median of the same runs' forwarding rates at the maximum offered load.
    pub frmol: Option<f64>,
    /// Runs with a regular result, of all.
    pub regular: (usize, usize),
    /// Mean number of trials in a run.
    pub trials: f64,
    /// Reasons of irregular results, each once.
    pub irregular: Vec<String>,
}

/// How a variant held one load, over all trials of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Soaked {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// The load, packets per second.
    pub load: u64,
    /// Valid trials.
    pub trials: usize,
    /// Those that lost something.
    pub lossy: usize,
    /// Packets lost.
    pub lost: u64,
    /// Packets offered.
    pub offered: u64,
    /// Ends of the 95 % interval of the share that was lost (Clopper and Pearson).
    pub interval: (f64, f64),
    /// The largest share that one trial lost.
    pub worst: f64,
    /// Trials that say nothing of the device.
    pub invalid: usize,
}

/// The method of a store and what it found; none where a run is one trial.
pub(super) fn method(contents: &Contents, results: &[RunResult]) -> Option<Method> {
    let plan = &contents.plan;
    let planned = plan.method.as_ref()?;
    let runs = contents.runs.iter().filter_map(|run| {
        let variant = (run.variants[0], plan.variants[run.variants[0]].label.as_str());
        Some(method_run(plan.goals(), run.run, variant, run.method.as_ref()?))
    });
    let runs: Vec<MethodRun> = runs.collect();
    let frmol = |run: u32| results.iter().find(|result| result.run == run)?.mean_pps;
    let labels = plan.variants.iter().map(|variant| (variant.index, variant.label.as_str()));
    let searched = labels.clone().flat_map(|variant| {
        let frame = plan.variants[variant.0].settings.traffic.frame_size;
        searched(plan.goals(), variant, &runs, Some(frame), frmol)
    });
    Some(Method {
        kind: planned.kind(),
        goals: plan.goals().to_vec(),
        searched: searched.collect(),
        soaked: match planned {
            Planned::Soak { .. } => labels.filter_map(|v| soaked(v, &runs)).collect(),
            _ => Vec::new(),
        },
        runs,
    })
}

impl Method {
    /// Searches of one device, which `label` names, one after the other, by their trials.
    pub fn of_searches(label: &str, goals: &[Goal], records: &[MethodRecord]) -> Method {
        let numbered = (0..).zip(records);
        let runs: Vec<MethodRun> =
            numbered.map(|(run, record)| method_run(goals, run, (0, label), record)).collect();
        Method {
            kind: MethodKind::Mlrsearch,
            goals: goals.to_vec(),
            searched: searched(goals, (0, label), &runs, None, |_| None).collect(),
            soaked: Vec::new(),
            runs,
        }
    }
}

fn method_run(
    goals: &[Goal],
    run: u32,
    (variant, label): (usize, &str),
    record: &MethodRecord,
) -> MethodRun {
    let result = result_of(goals, record);
    let tolerated = if goals.is_empty() { 1.0 } else { tolerated(goals) };
    let found = result.iter().flat_map(|result| &result.goals).map(|goal| GoalFound {
        goal: goal.goal.name.clone(),
        lower: goal.bounds.lower,
        upper: goal.bounds.upper,
        throughput: goal.conditional_throughput,
        irregular: goal.irregular.as_ref().map(ToString::to_string),
    });
    MethodRun {
        run,
        variant,
        label: label.to_owned(),
        points: record.trials.iter().map(|trial| point(trial, tolerated)).collect(),
        found: found.collect(),
        drift: result.as_ref().and_then(|result| Some(result.drift.as_ref()?.change)),
    }
}

fn point(trial: &MethodTrial, tolerated: f64) -> MethodPoint {
    let (loss_ratio, invalid) = match trial.outcome(tolerated) {
        Outcome::Valid(output) => (Some(output.loss_ratio), None),
        Outcome::Invalid(why) => (None, Some(why)),
    };
    MethodPoint {
        load: trial.load,
        at_s: trial.at_ns as f64 / 1e9,
        duration_s: trial.duration_ns as f64 / 1e9,
        offered: trial.offered,
        forwarded: trial.forwarded,
        loss_ratio,
        invalid,
        taken: trial.taken_ns as f64 / trial.window_ns.max(1) as f64,
    }
}

/// A row per goal of a variant; `frmol` is a run's forwarding rate at the maximum offered load.
fn searched<'a>(
    goals: &'a [Goal],
    (variant, label): (usize, &'a str),
    runs: &'a [MethodRun],
    frame: Option<FrameSize>,
    frmol: impl Fn(u32) -> Option<f64> + Copy + 'a,
) -> impl Iterator<Item = Searched> + 'a {
    goals.iter().enumerate().map(move |(number, goal)| {
        let own: Vec<&MethodRun> = runs.iter().filter(|run| run.variant == variant).collect();
        let (regular, irregular): (Vec<&MethodRun>, Vec<&MethodRun>) =
            own.iter().partition(|run| run.found[number].irregular.is_none());
        let of = |get: fn(&GoalFound) -> Option<f64>| -> Vec<f64> {
            regular.iter().filter_map(|run| get(&run.found[number])).collect()
        };
        let mut reasons: Vec<String> =
            irregular.iter().filter_map(|run| run.found[number].irregular.clone()).collect();
        reasons.sort();
        reasons.dedup();
        let rates: Vec<f64> = regular.iter().filter_map(|run| frmol(run.run)).collect();
        let trials: usize = own.iter().map(|run| run.points.len()).sum();
        let throughput = SummaryResult::of(&of(|found| found.throughput));
        let bits = throughput.zip(frame).map(|(found, frame)| {
            (frame.l1_bits_per_second(found.median), frame.l2_bits_per_second(found.median))
        });
        Searched {
            variant,
            label: label.to_owned(),
            goal: goal.name.clone(),
            throughput,
            bits,
            lower: median(&of(|found| found.lower.map(|pps| pps as f64))),
            upper: median(&of(|found| found.upper.map(|pps| pps as f64))),
            frmol: median(&rates),
            regular: (regular.len(), own.len()),
            trials: trials as f64 / own.len().max(1) as f64,
            irregular: reasons,
        }
    })
}

fn soaked((variant, label): (usize, &str), runs: &[MethodRun]) -> Option<Soaked> {
    let own = || runs.iter().filter(|run| run.variant == variant).flat_map(|run| &run.points);
    let valid: Vec<(&MethodPoint, f64)> = own().filter_map(|p| Some((p, p.loss_ratio?))).collect();
    let offered = valid.iter().map(|(point, _)| point.offered).sum();
    let lost = valid.iter().map(|(point, _)| point.offered - point.forwarded).sum();
    let Interval { low, high } = Rate { hits: lost, of: offered }.interval(95.0);
    Some(Soaked {
        variant,
        label: label.to_owned(),
        load: own().next()?.load,
        trials: valid.len(),
        lossy: valid.iter().filter(|(_, loss)| *loss > 0.0).count(),
        lost,
        offered,
        interval: (low, high),
        worst: valid.iter().map(|(_, loss)| *loss).fold(0.0, f64::max),
        invalid: own().count() - valid.len(),
    })
}
