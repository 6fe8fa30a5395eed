//! History of prices over three or more kernels, in the order given: steps, and ranges of kernels
//! without a step.
//!
//! The step of plain forwarding is its difference between two kernels. The step of a feature is the
//! difference of its price: of the counts with the feature, from which plain forwarding of the same
//! boot is subtracted, function by function and burst by burst. A change of plain forwarding is so
//! reported once, not under each feature. Both are judged as all comparisons of counts
//! ([`compare_executed`]), by the scatter of the bursts and a margin in relation to all instructions
//! of a packet in the older kernel.
//!
//! Each kernel is compared with the previous one that has the feature. If that is no step, it is
//! also compared with the kernel after the last step, so a price that drifts by less than the margin
//! per kernel is found as well.

use super::catalogue::Feature;
use super::store::{Outcome, PriceList};
use fwdlab_model::record::{Executed, ExecutedFunction};
use fwdlab_results::counts::{
    CountVerdict, Exact, FunctionDifference, Repetition, compare_executed,
};
use fwdlab_results::stats::summary::median;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Name of plain forwarding in the column of features.
pub(super) const PLAIN: &str = "plain forwarding";
/// Number of functions named per step.
const FUNCTIONS: usize = 3;
/// Smallest number of kernels with a history.
const KERNELS: usize = 3;

/// Steps and ranges of all kernels.
#[derive(Serialize)]
pub(super) struct History {
    /// Changes between kernels, in the order of the kernels, largest first.
    pub(super) steps: Vec<Step>,
    /// Two or more adjacent kernels without a step.
    pub(super) ranges: Vec<Range>,
    /// Number of comparisons of adjacent kernels without a verdict.
    pub(super) inconclusive_steps: usize,
    /// Margin of a step, as a ratio of the instructions of a packet.
    pub(super) margin: f64,
}

/// A change of plain forwarding or of a feature.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Step {
    /// Name of the feature, or [`PLAIN`].
    pub(super) feature: String,
    pub(super) from: String,
    pub(super) to: String,
    /// Index of the kernel `to`.
    #[serde(skip)]
    pub(super) at: usize,
    #[serde(flatten)]
    pub(super) change: Change,
}

/// Kinds of steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum Change {
    /// The price differs from the previous kernel's.
    Step(Difference),
    /// The price differs from the price after the last step; no kernel between them is a step.
    Drift(Difference),
    /// The first kernel that has the feature; `why` is the reason of the kernel before it.
    Gained { why: String },
    /// The first kernel that lacks the feature.
    Lost { why: String },
}

/// Difference of a price.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Difference {
    /// Price in both kernels, instructions per packet; the total of plain forwarding.
    pub(super) before: f64,
    pub(super) after: f64,
    /// Sum over the functions that differ, instructions per packet.
    pub(super) difference: f64,
    /// The difference as a ratio of all instructions of a packet in the older kernel.
    pub(super) change: f64,
    /// The difference as a ratio of the older price; `None` for plain forwarding, and for prices
    /// below one instruction.
    pub(super) of_price: Option<f64>,
    /// Functions with the largest differences.
    pub(super) functions: Vec<Contribution>,
}

/// Part of a function in a difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Contribution {
    pub(super) name: String,
    pub(super) subsystem: String,
    /// Instructions per packet.
    pub(super) difference: f64,
}

/// Adjacent kernels without a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Range {
    pub(super) from: String,
    pub(super) to: String,
    /// Number of kernels.
    pub(super) kernels: usize,
}

/// A feature, or plain forwarding, in one kernel.
enum State<'l> {
    Counted(Sides<'l>),
    Absent(&'l str),
    Missing,
}

/// Counts, and the counts of plain forwarding that are subtracted.
#[derive(Clone, Copy)]
struct Sides<'l> {
    executed: &'l Executed,
    plain: Option<&'l Executed>,
    /// Price, or total of plain forwarding.
    price: f64,
}

/// Verdict of a comparison.
enum Judged {
    Step(Difference),
    Within,
    Inconclusive,
}

impl Step {
    /// The difference; `None` for a feature that is gained or lost.
    pub(super) fn difference(&self) -> Option<&Difference> {
        match &self.change {
            Change::Step(difference) | Change::Drift(difference) => Some(difference),
            Change::Gained { .. } | Change::Lost { .. } => None,
        }
    }

    /// The reason of the kernel that lacks the feature; `None` if both have it.
    pub(super) fn why(&self) -> Option<&str> {
        match &self.change {
            Change::Gained { why } | Change::Lost { why } => Some(why),
            Change::Step(_) | Change::Drift(_) => None,
        }
    }
}

impl Change {
    /// Name of the kind.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Change::Step(_) => "step",
            Change::Drift(_) => "drift",
            Change::Gained { .. } => "gained",
            Change::Lost { .. } => "lost",
        }
    }
}

impl History {
    /// Evaluates the lists of kernels; `price` returns the price of a feature in a kernel, and the
    /// total of plain forwarding without a feature. `None` for fewer than three kernels.
    pub(super) fn new(
        (lists, labels): (&[PriceList], &[String]),
        features: &[Feature],
        margin: f64,
        price: impl Fn(Option<usize>, usize) -> Option<f64>,
    ) -> Option<History> {
        if lists.len() < KERNELS {
            return None;
        }
        let mut walk = Walk { labels, margin, steps: Vec::new(), inconclusive: 0 };
        let plain = |at: usize| match (lists[at].boots.first(), price(None, at)) {
            (Some(boot), Some(price)) => {
                State::Counted(Sides { executed: &boot.first, plain: None, price })
            }
            _ => State::Missing,
        };
        let states: Vec<State<'_>> = (0..lists.len()).map(plain).collect();
        walk.add(PLAIN, &states);
        for (number, feature) in features.iter().enumerate() {
            let state = |(at, list)| state(list, feature, price(Some(number), at));
            let states: Vec<State<'_>> = lists.iter().enumerate().map(state).collect();
            walk.add(&feature.name, &states);
        }
        let Walk { mut steps, inconclusive, .. } = walk;
        let size = |step: &Step| step.difference().map_or(0.0, |found| found.difference.abs());
        steps.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| size(b).total_cmp(&size(a))));
        let ranges = ranges(lists, labels, &steps);
        Some(History { steps, ranges, inconclusive_steps: inconclusive, margin })
    }

    /// Steps of a feature, or of plain forwarding.
    pub(super) fn of<'h>(&'h self, feature: &'h str) -> impl Iterator<Item = &'h Step> {
        self.steps.iter().filter(move |step| step.feature == feature)
    }
}

/// A feature in a kernel.
fn state<'l>(list: &'l PriceList, feature: &Feature, price: Option<f64>) -> State<'l> {
    match (list.row(feature).map(|row| &row.outcome), price) {
        (Some(Outcome::Counted { plain, executed, .. }), Some(price)) => {
            State::Counted(Sides { executed, plain: Some(plain), price })
        }
        (Some(Outcome::Absent { why }), _) => State::Absent(why),
        _ => State::Missing,
    }
}

/// A walk over the kernels, once per feature.
struct Walk<'w> {
    labels: &'w [String],
    margin: f64,
    steps: Vec<Step>,
    inconclusive: usize,
}

impl Walk<'_> {
    /// Adds the steps of a feature.
    fn add(&mut self, feature: &str, states: &[State<'_>]) {
        let mut steps = Vec::new();
        let step = |from: usize, at: usize, change: Change| Step {
            feature: feature.to_owned(),
            from: self.labels[from].clone(),
            to: self.labels[at].clone(),
            at,
            change,
        };
        // The previous kernel with a price, and the first one since the last step.
        let mut previous: Option<(usize, Sides<'_>)> = None;
        let mut level: Option<(usize, Sides<'_>)> = None;
        let mut absent: Option<(usize, &str)> = None;
        for (at, state) in states.iter().enumerate() {
            let sides = match state {
                State::Missing => continue,
                State::Absent(why) => {
                    if let (Some((from, _)), None) = (previous, absent) {
                        steps.push(step(from, at, Change::Lost { why: (*why).to_owned() }));
                    }
                    absent = Some((at, why));
                    continue;
                }
                State::Counted(sides) => *sides,
            };
            if let Some((from, why)) = absent.take() {
                steps.push(step(from, at, Change::Gained { why: why.to_owned() }));
            }
            if let (Some((from, before)), Some((first, of_level))) = (previous, level) {
                let judged = judge(before, sides, self.margin);
                self.inconclusive += usize::from(matches!(judged, Judged::Inconclusive));
                let found = match judged {
                    Judged::Step(difference) => Some((from, Change::Step(difference))),
                    _ if first == from => None,
                    _ => match judge(of_level, sides, self.margin) {
                        Judged::Step(difference) => Some((first, Change::Drift(difference))),
                        _ => None,
                    },
                };
                if let Some((from, change)) = found {
                    steps.push(step(from, at, change));
                    level = Some((at, sides));
                }
            }
            level = level.or(Some((at, sides)));
            previous = Some((at, sides));
        }
        self.steps.extend(steps);
    }
}

/// Compares two kernels.
fn judge<'l>(before: Sides<'l>, after: Sides<'l>, margin: f64) -> Judged {
    // The same plain forwarding on both sides: only the price differs.
    let common = before.plain;
    let of = |sides: Sides<'l>| match (sides.plain, common) {
        (Some(plain), Some(common)) => Cow::Owned(with_plain_of(common, sides.executed, plain)),
        _ => Cow::Borrowed(sides.executed),
    };
    let (a, b) = (of(before), of(after));
    let Ok(exact) = compare_executed(&[&a], &[&b], margin, Repetition::Bursts) else {
        return Judged::Inconclusive;
    };
    if exact.verdict == CountVerdict::Inconclusive {
        return Judged::Inconclusive;
    }
    if !is_beyond_margin(&exact) {
        return Judged::Within;
    }
    let of_price = exact.difference / before.price.abs();
    Judged::Step(Difference {
        before: before.price,
        after: after.price,
        difference: exact.difference,
        change: exact.change,
        of_price: (common.is_some() && before.price.abs() >= 1.0).then_some(of_price),
        functions: contributions(&exact),
    })
}

/// Functions with the largest differences.
pub(super) fn contributions(exact: &Exact) -> Vec<Contribution> {
    let differing = exact.functions.as_ref().map_or(&[][..], |found| &found.differing);
    let part = |function: &FunctionDifference| Contribution {
        name: function.name.clone(),
        subsystem: function.subsystem.clone(),
        difference: function.difference,
    };
    differing.iter().take(FUNCTIONS).map(part).collect()
}

/// True for a verdict by which the count differs by more than the margin.
pub(super) fn is_beyond_margin(exact: &Exact) -> bool {
    let differs = matches!(exact.verdict, CountVerdict::Fewer | CountVerdict::More);
    differs && exact.change.abs() > exact.margin
}

/// Counts with a feature on top of plain forwarding as in `common`: each burst minus the burst of
/// `plain`, plus the median of `common`. The scatter of both counts remains.
pub(super) fn with_plain_of(common: &Executed, executed: &Executed, plain: &Executed) -> Executed {
    fn by_name(executed: &Executed) -> BTreeMap<&str, &ExecutedFunction> {
        executed.functions.iter().map(|function| (function.name.as_str(), function)).collect()
    }
    let [with, plain_of, common_of] = [executed, plain, common].map(by_name);
    let names: BTreeSet<&str> =
        [&with, &plain_of, &common_of].into_iter().flat_map(|of| of.keys().copied()).collect();
    let bursts = executed.packets.len().min(plain.packets.len());
    let function = |name: &str| {
        let [with, plain, common] = [&with, &plain_of, &common_of].map(|of| of.get(name).copied());
        let burst = |of: Option<&ExecutedFunction>, at: usize| {
            of.and_then(|function| function.bursts.get(at)).copied().unwrap_or(0.0)
        };
        let constant = common.and_then(|function| median(&function.bursts)).unwrap_or(0.0);
        let number = |get: fn(&ExecutedFunction) -> f64| {
            let of = |function: Option<&ExecutedFunction>| function.map_or(0.0, get);
            of(with) - of(plain) + of(common)
        };
        let state = with.or(plain).or(common);
        ExecutedFunction {
            name: name.to_owned(),
            bursts: (0..bursts).map(|at| burst(with, at) - burst(plain, at) + constant).collect(),
            atomics: number(|function| function.atomics),
            bytes: number(|function| function.bytes),
            idle: state.map_or(0.0, |function| function.idle),
            is_background: state.is_some_and(|function| function.is_background),
            misses: None,
        }
    };
    let functions = names.into_iter().map(function).collect();
    let packets = executed.packets[..bursts].to_vec();
    Executed { packets, batch: executed.batch, functions, ..Executed::default() }
}

/// Two or more adjacent counted kernels, none of which but the first one ends a step.
fn ranges(lists: &[PriceList], labels: &[String], steps: &[Step]) -> Vec<Range> {
    let ends: BTreeSet<usize> = steps.iter().map(|step| step.at).collect();
    let is_counted = |at: usize| !lists[at].boots.is_empty();
    let numbers: Vec<usize> = (0..lists.len()).collect();
    let are_together = |a: &usize, b: &usize| is_counted(*a) && is_counted(*b) && !ends.contains(b);
    let range = |group: &[usize]| match group {
        [first, .., last] => Some(Range {
            from: labels[*first].clone(),
            to: labels[*last].clone(),
            kernels: group.len(),
        }),
        _ => None,
    };
    numbers.chunk_by(are_together).filter_map(range).collect()
}
