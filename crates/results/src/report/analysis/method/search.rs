//! What was found for each goal of a search, over the runs of a variant.

use super::MethodRun;
use crate::report::analysis::variants::SummaryResult;
use crate::stats::summary::median;
use fwdlab_model::units::FrameSize;
use fwdlab_search::Goal;
use serde::Serialize;

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
    /// The median over the packets that the links take at most; none where no line rate is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_line: Option<f64>,
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

/// What is known of a variant's frames on the links: their size, and how many of them a second
/// the links take at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OnLink {
    pub(super) frame: Option<FrameSize>,
    pub(super) line_pps: Option<f64>,
}

/// A row per goal of a variant; `frmol` is a run's forwarding rate at the maximum offered load.
pub(super) fn searched<'a>(
    goals: &'a [Goal],
    (variant, label): (usize, &'a str),
    runs: &'a [MethodRun],
    on_link: OnLink,
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
        let bits = throughput.zip(on_link.frame).map(|(found, frame)| {
            (frame.l1_bits_per_second(found.median), frame.l2_bits_per_second(found.median))
        });
        Searched {
            variant,
            label: label.to_owned(),
            goal: goal.name.clone(),
            throughput,
            bits,
            of_line: throughput.zip(on_link.line_pps).map(|(found, line)| found.median / line),
            lower: median(&of(|found| found.lower.map(|pps| pps as f64))),
            upper: median(&of(|found| found.upper.map(|pps| pps as f64))),
            frmol: median(&rates),
            regular: (regular.len(), own.len()),
            trials: trials as f64 / own.len().max(1) as f64,
            irregular: reasons,
        }
    })
}
