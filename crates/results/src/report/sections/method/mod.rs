//! Results of methods with several trials per run: rates found by searches (RFC 9971), loss against
//! load, stability at one load, and the connection table of a stateful device.

mod burst;
mod connections;
mod curve;
mod directions;
mod document;
mod flood;
mod interruption;
mod latency;
mod plots;
mod search;
mod soak;
mod suite;

pub use burst::Bursts;
pub use connections::{RunConnections, TableCapacity, TeardownRate};
pub use curve::LossCurveOutcome;
pub use directions::TrialDirection;
pub use flood::{FloodOutcome, FloodPoint, FloodSummary};
pub use interruption::{Interruption, InterruptionSummary};
pub use latency::{DelayEffect, LatencyResult, LatencyStatistic};
pub use search::{GoalFound, SearchOutcome};
pub use soak::SoakOutcome;
pub use suite::{Suite, SuiteRow};

use self::search::{OnLink, searched};
use self::soak::soaked;
use super::{Context, Input, Plots, Section};
use crate::document::Block;
use crate::report::analysis::RunResult;
use crate::report::analysis::goals::result_of;
use crate::report::analysis::line_rate::line_pps;
use crate::store::Contents;
use fwdlab_model::design::{Method as Planned, MethodKind};
use fwdlab_model::record::{Counts, MethodRecord, MethodTrial, tolerated};
use fwdlab_model::units::FrameSize;
use fwdlab_search::{Burst, Goal, Irregular, LossDip, LossFloor, Outcome};
use serde::Serialize;

/// The method of an experiment and its results.
#[derive(Clone, Debug, Serialize)]
pub struct Method {
    /// The method.
    pub kind: MethodKind,
    /// The goals of a search, as applied; empty for other methods.
    pub goals: Vec<Goal>,
    /// The runs in order, with their trials.
    pub runs: Vec<MethodRun>,
    /// Search: results by variant and goal, over the runs.
    pub searched: Vec<SearchOutcome>,
    /// Soak: results by variant, over the runs.
    pub soaked: Vec<SoakOutcome>,
    /// Loss curve: results by variant, over the runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curved: Vec<LossCurveOutcome>,
    /// Bidirectional traffic: results per direction, at the loads in the results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<TrialDirection>,
    /// Floods: results by variant and flood, over the runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flooded: Vec<FloodOutcome>,
    /// Floods: summary by variant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub borne: Vec<FloodSummary>,
    /// Bursts: results by variant, over the runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bursts: Vec<Bursts>,
    /// Interruptions by overload or reset: results by variant, over the runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupted: Vec<InterruptionSummary>,
    /// Delays: results by variant and share, over the runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timed: Vec<LatencyResult>,
    /// Delays: comparison of each variant with its baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delay_effects: Vec<DelayEffect>,
    /// Teardown rate of connections: results by variant, over the runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub torn_down: Vec<TeardownRate>,
    /// Capacity of the connection table: results by variant, over the runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<TableCapacity>,
    /// Confidence of intervals, percent.
    #[serde(skip)]
    pub confidence: f64,
    /// The tests of a suite.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Method>,
    /// Results of a suite by variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<Suite>,
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
    /// The bed; `None` if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bed: Option<String>,
    /// Its trials, in order.
    pub points: Vec<MethodPoint>,
    /// Search: result for each goal.
    pub found: Vec<GoalFound>,
    /// The requested maximum load, packets per second, if it exceeds the line rate; the line rate
    /// was the highest load tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above_line: Option<u64>,
    /// Search: change of the device's speed during the search as a ratio; `None` if there was none.
    pub drift: Option<f64>,
    /// Search: loss that did not decrease at lower loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_floor: Option<LossFloor>,
    /// Search: a lower load with more loss than a higher one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_dip: Option<LossDip>,
    /// Bursts: the longest burst without loss, for each search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bursts: Vec<Burst>,
    /// Interruptions by overloads or resets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interruptions: Vec<Interruption>,
    /// Results for the device's connection table.
    #[serde(skip)]
    pub connections: RunConnections,
    /// Delays by share.
    #[serde(skip)]
    delays: Vec<latency::RunDelays>,
    /// The run's own trial: its offered load and forwarding rate, packets per second.
    #[serde(skip)]
    pub own: Option<(f64, f64)>,
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
    /// Offered load in the window, packets per second.
    pub offered_pps: f64,
    /// Number of frames of a burst; `None` for other trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Number of requested connections; `None` for other trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// States in the device's table: seconds since the first packet, and their number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<(f64, u64)>,
    /// The flood during the trial; `None` without a flood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flood: Option<FloodPoint>,
    /// Packets offered.
    pub offered: u64,
    /// Packets forwarded, or connections opened.
    pub forwarded: u64,
    /// Counts of the direction from receiver to sender, included in both; `None` for unidirectional
    /// traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Counts>,
    /// Minimum share that the device lost; `None` if the trial is invalid.
    pub loss_ratio: Option<f64>,
    /// Maximum share, including possible losses while other programs used the device's CPU.
    pub loss_at_most: Option<f64>,
    /// Reason why the trial is invalid; `None` if it is valid.
    pub invalid: Option<String>,
    /// Share of the window that was certainly taken from the device.
    pub taken: f64,
}

impl Section for Option<Method> {
    fn analyse(input: &Input<'_>) -> Option<Method> {
        method(input.contents, &input.core.runs)
    }

    fn document(&self, context: &Context<'_>) -> Vec<Block> {
        self.iter().map(|method| method.section(context.plots)).collect()
    }

    fn summary(&self) -> Vec<Block> {
        self.iter().filter_map(Method::table).collect()
    }

    fn take_plots(&mut self) -> Plots {
        self.as_ref().map_or(Plots::new(), Method::plots)
    }
}

/// Returns the method of a store and its results; `None` if a run is a single trial.
fn method(contents: &Contents, results: &[RunResult]) -> Option<Method> {
    let planned = contents.plan.method.as_ref()?;
    let of = |number: usize| part(contents, results, &planned.parts()[number], number);
    Some(match planned {
        Planned::Rfc9693 { parts } => {
            let parts: Vec<Method> = (0..parts.len()).map(of).collect();
            Method { parts, ..Method::of(planned.kind()) }
        }
        Planned::Rfc2544 { parts } => {
            let parts: Vec<Method> = (0..parts.len()).map(of).collect();
            let suite = Some(suite::suite(contents, results, &parts));
            Method { parts, suite, ..Method::of(planned.kind()) }
        }
        // The search is one half of this method.
        Planned::Latency { parts } => {
            let parts: Vec<Method> = (0..parts.len()).map(of).collect();
            let confidence = contents.plan.compare.confidence;
            Method { parts, confidence, ..Method::of(planned.kind()) }
        }
        _ => of(0),
    })
}

/// Returns the results of one method, which is part `number` of each run.
fn part(contents: &Contents, results: &[RunResult], planned: &Planned, number: usize) -> Method {
    let (plan, goals) = (&contents.plan, planned.goals());
    let has_beds = contents.beds().len() > 1;
    let runs = contents.runs.iter().filter_map(|run| {
        let variant = (run.variants[0], plan.variants[run.variants[0]].label.as_str());
        let record = run.method.as_ref()?.parts().get(number)?;
        let result = results.iter().find(|result| result.run == run.run);
        let directions = u64::from(plan.variants[variant.0].settings.traffic.directions.count());
        let max_load = planned.max_load().map(|load| load.saturating_mul(directions));
        Some(MethodRun {
            above_line: max_load.filter(|load| record.link.is_some_and(|link| link < *load)),
            bed: result.and_then(|result| result.bed.clone()).filter(|_| has_beds),
            ..method_run(goals, run.run, variant, record).with(planned, record, result)
        })
    });
    let runs: Vec<MethodRun> = runs.collect();
    let frmol = |run: u32| results.iter().find(|result| result.run == run)?.mean_pps;
    let labels = || plan.variants.iter().map(|variant| (variant.index, variant.label.as_str()));
    let searched = labels().flat_map(|variant| {
        // Connections have no frame size on the link.
        let on_link = match planned.opens_connections() {
            true => OnLink::default(),
            false => OnLink {
                frame: Some(plan.variants[variant.0].settings.traffic.frame_size),
                line_pps: line_pps(contents, variant.0),
            },
        };
        searched(goals, variant, &runs, on_link, frmol)
    });
    let mut method = Method {
        goals: goals.to_vec(),
        searched: searched.collect(),
        ..Method::of(planned.kind())
    };
    match planned {
        Planned::LossCurve { .. } => {
            method.curved = labels().filter_map(|v| curve::curved(v, &runs)).collect();
        }
        Planned::Soak { .. } => {
            method.soaked = labels().filter_map(|v| soaked(v, &runs)).collect();
        }
        Planned::Flood { .. } => {
            method.flooded = labels().flat_map(|v| flood::flooded(v, &runs)).collect();
            let of_variants = method.flooded.chunk_by(|one, next| one.variant == next.variant);
            method.borne = of_variants.filter_map(flood::borne).collect();
        }
        Planned::BackToBack { .. } => {
            method.bursts = labels().filter_map(|v| burst::bursts(v, &runs)).collect();
        }
        Planned::SystemRecovery { .. } | Planned::Reset { .. } => {
            method.interrupted =
                labels().filter_map(|v| interruption::interrupted(v, &runs)).collect();
        }
        Planned::Delays { .. } => {
            let confidence = plan.compare.confidence;
            method.timed = labels().flat_map(|v| latency::timed(v, &runs, confidence)).collect();
            method.delay_effects = latency::effects(plan, results, &runs, &method.timed);
            method.confidence = confidence;
        }
        Planned::TearDown { .. } => {
            let each = labels().filter_map(|v| connections::torn_down(v, &runs));
            method.torn_down = each.collect();
        }
        Planned::Capacity { .. } => {
            method.held = labels().filter_map(|v| connections::held(v, &runs)).collect();
        }
        Planned::Mlrsearch(_)
        | Planned::Establishment(_)
        | Planned::Latency { .. }
        | Planned::Rfc9693 { .. }
        | Planned::Rfc2544 { .. } => {}
    }
    method.directions =
        labels().flat_map(|variant| directions::of_trials(&method, variant, &runs)).collect();
    method.runs = runs;
    method
}

impl Method {
    /// Creates a method without results.
    fn of(kind: MethodKind) -> Method {
        Method {
            kind,
            goals: Vec::new(),
            runs: Vec::new(),
            searched: Vec::new(),
            soaked: Vec::new(),
            curved: Vec::new(),
            directions: Vec::new(),
            flooded: Vec::new(),
            borne: Vec::new(),
            bursts: Vec::new(),
            interrupted: Vec::new(),
            timed: Vec::new(),
            delay_effects: Vec::new(),
            torn_down: Vec::new(),
            held: Vec::new(),
            confidence: 0.0,
            parts: Vec::new(),
            suite: None,
        }
    }

    /// Returns the packet rate search: the method itself or a test of the suite; `None` if there is
    /// none.
    pub(crate) fn search(&self) -> Option<&Method> {
        let mut all = std::iter::once(self).chain(&self.parts);
        all.find(|part| part.kind == MethodKind::Mlrsearch && !part.goals.is_empty())
    }

    /// Evaluates successive searches of one device, named `label`, from their trials. `frame` is
    /// the frame size, if known, and `max_load` the requested maximum load.
    pub fn of_searches(
        label: &str,
        goals: &[Goal],
        records: &[MethodRecord],
        frame: Option<FrameSize>,
        max_load: Option<u64>,
    ) -> Method {
        let runs = (0..).zip(records).map(|(run, record)| MethodRun {
            above_line: max_load.filter(|load| record.link.is_some_and(|link| link < *load)),
            ..method_run(goals, run, (0, label), record)
        });
        let runs: Vec<MethodRun> = runs.collect();
        let link = records.first().and_then(|record| record.link);
        let on_link = OnLink { frame, line_pps: link.map(|link| link as f64) };
        Method {
            goals: goals.to_vec(),
            searched: searched(goals, (0, label), &runs, on_link, |_| None).collect(),
            runs,
            ..Method::of(MethodKind::Mlrsearch)
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
    let found = result.iter().flat_map(|result| &result.goals).map(|goal| GoalFound {
        goal: goal.goal.name.clone(),
        lower: goal.bounds.lower,
        upper: goal.bounds.upper,
        throughput: goal.conditional_throughput,
        irregular: goal.irregular.as_ref().map(ToString::to_string),
        is_at_line: goal.irregular == Some(Irregular::LineRate),
        is_at_greatest: goal.irregular == Some(Irregular::NoUpperBound),
    });
    MethodRun {
        points: record.trials.iter().map(|trial| point(trial, goals)).collect(),
        found: found.collect(),
        drift: result.as_ref().and_then(|result| Some(result.drift.as_ref()?.change)),
        loss_floor: result.as_ref().and_then(|result| result.loss_floor),
        loss_dip: result.as_ref().and_then(|result| result.loss_dip),
        ..MethodRun::of((variant, label), run)
    }
}

impl MethodRun {
    /// Creates a run without trials.
    fn of((variant, label): (usize, &str), run: u32) -> MethodRun {
        MethodRun {
            run,
            variant,
            label: label.to_owned(),
            bed: None,
            points: Vec::new(),
            found: Vec::new(),
            above_line: None,
            drift: None,
            loss_floor: None,
            loss_dip: None,
            bursts: Vec::new(),
            interruptions: Vec::new(),
            connections: RunConnections::default(),
            delays: Vec::new(),
            own: None,
        }
    }

    /// Adds the results that the method derives from trials other than its points.
    fn with(
        mut self,
        planned: &Planned,
        record: &MethodRecord,
        result: Option<&RunResult>,
    ) -> Self {
        self.own = result.and_then(|result| Some((result.offered_pps?, result.mean_pps?)));
        match planned {
            Planned::BackToBack { .. } => self.bursts = burst::longest(record),
            Planned::SystemRecovery { .. } | Planned::Reset { .. } => {
                self.interruptions = interruption::each(record);
            }
            Planned::Delays { .. } => self.delays = latency::of_run(record),
            Planned::TearDown { .. } | Planned::Capacity { .. } => {
                self.connections = connections::of_run(record);
            }
            _ => {}
        }
        self
    }
}

fn point(trial: &MethodTrial, goals: &[Goal]) -> MethodPoint {
    // A search must determine on which side of its goals a load is; other methods report the bounds
    // of the loss.
    let lost = match goals {
        [] if trial.burst.is_some() || trial.connections.is_some() => {
            trial.is_whole().and_then(|_| trial.loss_bounds())
        }
        [] => trial.loss_bounds(),
        _ => match trial.outcome(tolerated(goals)) {
            Outcome::Valid(output) => Ok((output.loss_ratio, output.loss_ratio)),
            Outcome::Invalid(why) => Err(why),
        },
    };
    let opened = trial.connections.as_ref();
    let last = opened.and_then(|opened| Some((trial.window_ns, opened.states?)));
    let states = opened.iter().flat_map(|opened| opened.meanwhile.iter().copied()).chain(last);
    let (loss_ratio, loss_at_most) = lost.as_ref().ok().copied().unzip();
    MethodPoint {
        load: trial.load,
        at_s: trial.at_ns as f64 / 1e9,
        duration_s: trial.duration_ns as f64 / 1e9,
        offered_pps: trial.offered as f64 * 1e9 / trial.window_ns.max(1) as f64,
        burst: trial.burst,
        connections: opened.map(|opened| opened.wanted),
        states: states.map(|(at_ns, count)| (at_ns as f64 / 1e9, count)).collect(),
        flood: flood::point(trial),
        offered: trial.offered,
        forwarded: trial.done(),
        reverse: trial.reverse,
        loss_ratio,
        loss_at_most,
        invalid: lost.err(),
        taken: trial.taken_ns as f64 / trial.window_ns.max(1) as f64,
    }
}
