//! Totals of each kernel in each state, the cost of each function in all of them, and comparisons.

use super::graphs::GraphFile;
use super::labels::labels;
use super::misses::Modelled;
use super::state::{Boot, State};
use crate::command::counted_guest::{Failed, exact};
use fwdlab_packet::Family;
use fwdlab_results::counts::{Exact, Foreground, FunctionCount, Repetition, Total};
use fwdlab_results::counts::{compare_executed, costs};
use fwdlab_results::profile::Subsystems;
use fwdlab_results::report::analysis::Compared;
use fwdlab_results::stats::summary::median;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The question, as far as the document states it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Question {
    pub(super) family: Family,
    /// Packets that a guest finds at the same time.
    pub(super) batch: u16,
    /// Boots of each kernel.
    pub(super) boots: u32,
    /// Commands under whose effect everything is counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) under: Vec<String>,
    /// Margin of equivalence as a ratio.
    pub(super) margin: f64,
    /// Number of kernels that were given.
    #[serde(skip)]
    pub(super) kernels: usize,
    /// False if the first kernel could not be counted: then no other one takes its place.
    #[serde(skip)]
    pub(super) has_baseline: bool,
}

/// All counts, as `--json` prints them.
#[derive(Serialize)]
pub(super) struct Findings {
    #[serde(flatten)]
    pub(super) question: Question,
    /// Kernels by state: all states of the first kernel, then of the next one.
    pub(super) kernels: Vec<Row>,
    /// Each kernel with the first one in the same state, then each change with the same kernel
    /// before any change. Indices are of `kernels`.
    pub(super) comparisons: Vec<Compared>,
    pub(super) functions: Vec<Function>,
    /// Flame graphs; empty if calls were not followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<GraphFile>,
    /// Misses; `None` if caches were not modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) caches: Option<Modelled>,
    /// Kernels that could not be counted; empty unless there are three or more kernels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<Failed>,
    /// Number of states of each kernel: one more than there are changes.
    #[serde(skip)]
    pub(super) states: usize,
    /// Difference of each kernel from the one before it in the same state; `None` for the first.
    #[serde(skip)]
    pub(super) steps: Vec<Option<f64>>,
}

/// Totals of a kernel in one state, per packet. They cover its own functions and don't depend on
/// the other kernels.
#[derive(Serialize)]
pub(super) struct Row {
    /// Its release, and the change.
    pub(super) kernel: String,
    /// The shortest name that distinguishes it from the others.
    pub(super) label: String,
    pub(super) file: String,
    pub(super) release: String,
    pub(super) change: Option<String>,
    /// Instructions: median over the boots.
    pub(super) instructions: f64,
    /// Instructions of each boot.
    pub(super) boots: Vec<f64>,
    /// Minimum and maximum of the bursts of all boots.
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) atomics: f64,
    pub(super) bytes: f64,
    pub(super) background: f64,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) scattered: u64,
    pub(super) ready_s: f64,
    pub(super) took_s: f64,
    /// The most expensive functions, background excluded.
    #[serde(skip)]
    pub(super) functions: Vec<FunctionCount>,
}

/// A function's instructions per packet in each kernel and state.
#[derive(Serialize)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) instructions: Vec<f64>,
    /// Minimum and maximum of its bursts.
    pub(super) bursts: Vec<(f64, f64)>,
    /// True if the idle guest executes most of it, in every kernel and state.
    pub(super) background: bool,
    /// True if it differs in one of the comparisons.
    pub(super) differs: bool,
}

impl Findings {
    pub(super) fn new(states: &[State], question: Question) -> Findings {
        let per_kernel = match states.iter().skip(1).position(|state| state.change.is_none()) {
            Some(others) => others + 1,
            None => states.len(),
        };
        let labels = labels(states);
        let kernels: Vec<Row> =
            states.iter().zip(labels).map(|(state, label)| row(states, state, label)).collect();
        let repetition = match question.boots {
            1 => Repetition::Bursts,
            _ => Repetition::Runs,
        };
        let compare = |baseline: usize, candidate: usize| {
            let [a, b] = [baseline, candidate].map(|at| states[at].executed());
            let outcome = compare_executed(&a, &b, question.margin, repetition);
            let named = |at: usize| (at, kernels[at].label.clone());
            Compared::counted(named(baseline), named(candidate), outcome)
        };
        let is_compared = |(baseline, at): &(usize, usize)| {
            question.has_baseline || baseline / per_kernel == at / per_kernel
        };
        let pairs = pairs(states.len(), per_kernel).filter(is_compared);
        let comparisons: Vec<Compared> = pairs.map(|(a, b)| compare(a, b)).collect();
        let step = |at: usize| {
            let before = at.checked_sub(per_kernel)?;
            exact(&compare(before, at)).map(|exact| exact.difference)
        };
        let steps = (0..states.len()).map(step).collect();
        let functions = functions(&kernels, states, &comparisons);
        let caches = states.iter().map(|s| s.boots.first().and_then(|boot| boot.caches.as_ref()));
        Findings {
            caches: Modelled::of(caches),
            calls: Vec::new(),
            failed: Vec::new(),
            states: per_kernel,
            question,
            kernels,
            comparisons,
            functions,
            steps,
        }
    }

    /// Number of kernels that were counted.
    pub(super) fn counted(&self) -> usize {
        self.kernels.len() / self.states.max(1)
    }

    /// The comparisons between kernels, or between the changes of a single kernel.
    pub(super) fn decisive(&self) -> impl Iterator<Item = &Compared> {
        let number = match (self.question.kernels, self.question.has_baseline) {
            (..=1, _) => self.comparisons.len(),
            (_, true) => self.counted().saturating_sub(1) * self.states,
            (_, false) => 0,
        };
        self.comparisons.iter().take(number)
    }

    /// The comparison of a kernel with the first one in the same state; `None` for the first.
    pub(super) fn against_first(&self, at: usize) -> Option<&Exact> {
        let found = |c: &&Compared| c.variant == at && c.baseline == at % self.states.max(1);
        exact(self.decisive().find(found).filter(|_| at >= self.states)?)
    }
}

/// Baseline and candidate of each comparison of `states` rows, `per_kernel` of each kernel.
fn pairs(states: usize, per_kernel: usize) -> impl Iterator<Item = (usize, usize)> {
    let kernels = (per_kernel..states).map(move |at| (at % per_kernel, at));
    let is_changed = move |at: &usize| !at.is_multiple_of(per_kernel);
    let changes = (0..states).filter(is_changed).map(move |at| (at - at % per_kernel, at));
    kernels.chain(changes)
}

fn row(states: &[State], state: &State, label: String) -> Row {
    let foreground = Foreground::of(state.executed());
    let totals: Vec<Total> =
        state.executed().into_iter().filter_map(|executed| foreground.total(executed)).collect();
    let middle =
        |of: fn(&Total) -> f64| median(&totals.iter().map(of).collect::<Vec<f64>>()).unwrap_or(0.0);
    let bursts = || totals.iter().flat_map(|total| total.bursts.iter().copied());
    let sum = |of: fn(&Boot) -> f64| state.boots.iter().map(of).sum::<f64>();
    Row {
        kernel: name(states, state),
        label,
        file: state.file.clone(),
        release: state.release.clone(),
        change: state.change.clone(),
        instructions: middle(|total| total.instructions),
        boots: totals.iter().map(|total| total.instructions).collect(),
        least: bursts().fold(f64::INFINITY, f64::min),
        most: bursts().fold(f64::NEG_INFINITY, f64::max),
        atomics: middle(|total| total.atomics),
        bytes: middle(|total| total.bytes),
        background: middle(|total| total.background),
        packets: state.boots.iter().map(|boot| boot.sent).sum(),
        lost: state.boots.iter().map(|boot| boot.lost).sum(),
        scattered: state.boots.iter().map(|boot| boot.executed.scattered.0).sum(),
        ready_s: sum(|boot| boot.ready.as_secs_f64()),
        took_s: sum(|boot| boot.took.as_secs_f64()),
        functions: costs(&state.executed(), &foreground, &Subsystems::default()),
    }
}

/// The full name of a kernel in a state: release, file if two kernels have the same release, and
/// change.
fn name(states: &[State], state: &State) -> String {
    let same = states.iter().filter(|s| s.change.is_none() && s.release == state.release);
    let mut name = state.release.clone();
    if same.count() > 1 {
        name += &format!(" ({})", state.file);
    }
    match &state.change {
        None => name,
        Some(change) => format!("{name} after `{change}`"),
    }
}

/// All functions, by name.
fn functions(kernels: &[Row], states: &[State], comparisons: &[Compared]) -> Vec<Function> {
    let differing: BTreeSet<&str> = comparisons
        .iter()
        .filter_map(|compared| exact(compared)?.functions.as_ref())
        .flat_map(|found| found.differing.iter().map(|function| function.name.as_str()))
        .collect();
    let foreground: BTreeSet<&str> =
        kernels.iter().flat_map(|row| row.functions.iter().map(|f| f.name.as_str())).collect();
    let table = Subsystems::default();
    let everything = Foreground::default();
    let all: Vec<Vec<FunctionCount>> =
        states.iter().map(|state| costs(&state.executed(), &everything, &table)).collect();
    let by_name: Vec<BTreeMap<&str, f64>> = all
        .iter()
        .map(|costs| costs.iter().map(|cost| (cost.name.as_str(), cost.instructions)).collect())
        .collect();
    let bursts: Vec<BTreeMap<&str, (f64, f64)>> = states.iter().map(bursts).collect();
    let names: BTreeSet<&str> = by_name.iter().flat_map(|of| of.keys().copied()).collect();
    let function = |name: &str| Function {
        name: name.to_owned(),
        instructions: by_name.iter().map(|of| of.get(name).copied().unwrap_or(0.0)).collect(),
        bursts: bursts.iter().map(|of| of.get(name).copied().unwrap_or_default()).collect(),
        differs: differing.contains(name),
        background: !foreground.contains(name),
    };
    names.into_iter().map(function).collect()
}

/// Minimum and maximum of the bursts of each function, over all boots.
fn bursts(state: &State) -> BTreeMap<&str, (f64, f64)> {
    let mut all: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for function in state.boots.iter().flat_map(|boot| &boot.executed.functions) {
        let (least, most) = all.entry(&function.name).or_insert((f64::INFINITY, f64::NEG_INFINITY));
        for &burst in &function.bursts {
            (*least, *most) = (least.min(burst), most.max(burst));
        }
    }
    all
}
