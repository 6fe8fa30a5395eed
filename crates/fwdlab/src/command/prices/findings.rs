//! Prices: what each feature adds to plain forwarding, in each kernel, and comparisons of kernels.

use super::catalogue::{Feature, Pair};
use super::history::History;
use super::interactions::{Interaction, interactions};
use super::store::{Outcome, Plain, PriceList, total};
use crate::command::count::short_names;
use crate::command::counted_guest::Failed;
use fwdlab_model::record::{Executed, ExecutedFunction};
use fwdlab_results::counts::{Exact, FunctionDifference, Repetition, compare_executed};
use fwdlab_results::profile::{OTHER, Subsystems};
use fwdlab_results::report::analysis::Compared;
use fwdlab_results::stats::summary::median;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// All prices, as `--json` prints them.
#[derive(Serialize)]
pub(super) struct Findings {
    /// The traffic, as options of the command.
    pub(super) traffic: String,
    /// Kernels in the order given.
    pub(super) kernels: Vec<Kernel>,
    pub(super) features: Vec<FeaturePrices>,
    /// Slopes of features with several sizes.
    pub(super) slopes: Vec<Slope>,
    /// Each kernel with the first one: plain forwarding, then all features.
    pub(super) comparisons: Vec<Compared>,
    /// Steps between adjacent kernels; `None` for fewer than three kernels.
    #[serde(flatten)]
    pub(super) history: Option<History>,
    /// Pairs of features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) interactions: Vec<Interaction>,
    /// Arguments that count the same again.
    #[serde(skip)]
    pub(super) repeat: RepeatArguments,
    /// Kernels that could not be counted to the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<Failed>,
}

/// Arguments of the command in addition to feature and traffic.
#[derive(Default)]
pub(super) struct RepeatArguments {
    /// The kernels as given, if a file name alone does not boot one; `None` if it does.
    pub(super) kernels: Option<String>,
    /// Further options, each after a blank.
    pub(super) options: String,
}

/// Plain forwarding of a kernel.
#[derive(Serialize)]
pub(super) struct Kernel {
    /// Its release, of three or more kernels its version; its file if two kernels have the same
    /// release.
    pub(super) label: String,
    pub(super) release: String,
    pub(super) file: String,
    /// Instructions per packet: median over all boots and checks without traces; 0 before the first
    /// count.
    pub(super) instructions: f64,
    /// Number of boots in which its features were counted.
    pub(super) boots: usize,
    /// Smallest and largest count of plain forwarding, over all boots and checks without traces;
    /// `None` before the first count.
    pub(super) range: Option<(f64, f64)>,
    /// Features after whose removal it did not forward as before.
    pub(super) traces: Vec<String>,
}

/// A feature in all kernels.
#[derive(Serialize)]
pub(super) struct FeaturePrices {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) question: String,
    pub(super) set_up: String,
    /// By kernel.
    pub(super) prices: Vec<Price>,
}

/// The price of a feature in a kernel.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum Price {
    /// It was counted.
    Counted {
        /// Instructions per packet in addition to plain forwarding.
        price: f64,
        /// Instructions per packet with the feature.
        instructions: f64,
        /// Packets sent while counting, and the number lost of them.
        sent: u64,
        lost: u64,
        /// Functions that the feature changes, largest difference first.
        functions: Vec<FunctionDifference>,
    },
    /// The kernel or this machine does not have it.
    Absent { why: String },
    /// It was not counted yet.
    Missing,
}

impl Price {
    /// Instructions per packet in addition to plain forwarding; `None` without a count.
    pub(super) fn price(&self) -> Option<f64> {
        match self {
            Price::Counted { price, .. } => Some(*price),
            _ => None,
        }
    }
}

/// Cost of each further unit of a feature, from its smallest to its largest size.
#[derive(Serialize)]
pub(super) struct Slope {
    pub(super) feature: String,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Instructions per packet and unit, by kernel.
    pub(super) per_unit: Vec<Option<f64>>,
}

impl Findings {
    /// Evaluates the lists of kernels for these features.
    pub(super) fn new(
        lists: &[PriceList],
        features: &[Feature],
        pairs: &[Pair],
        margin: f64,
    ) -> Findings {
        let labels = labels(lists);
        let kernel = |(list, label): (&PriceList, &String)| {
            let mut kernel = kernel(list, label);
            let mut counted = features.iter().chain(pairs.iter().map(|pair| &pair.both));
            kernel.traces.retain(|name| counted.any(|feature| feature.name == *name));
            kernel
        };
        let kernels: Vec<Kernel> = lists.iter().zip(&labels).map(kernel).collect();
        let prices = |feature: &Feature| FeaturePrices {
            name: feature.name.clone(),
            group: feature.group.clone(),
            question: feature.question(),
            set_up: feature.set_up.trim().to_owned(),
            prices: lists.iter().map(|list| price_in(list, feature)).collect(),
        };
        let all: Vec<FeaturePrices> = features.iter().map(prices).collect();
        let price = |feature: Option<usize>, at: usize| match feature {
            Some(feature) => all[feature].prices[at].price(),
            None => kernels[at].range.map(|_| kernels[at].instructions),
        };
        let price_of = |list: &PriceList, feature: &Feature| price_in(list, feature).price();
        Findings {
            history: History::new((lists, &labels), features, margin, price),
            interactions: interactions((lists, &labels), features, pairs, margin, price_of),
            traffic: lists.first().map(|list| list.traffic.clone()).unwrap_or_default(),
            slopes: slopes(features, &all),
            comparisons: comparisons(lists, &labels, features, margin),
            kernels,
            features: all,
            repeat: RepeatArguments::default(),
            failed: Vec::new(),
        }
    }
}

/// A distinct name for each kernel: its release; the version of three or more kernels.
fn labels(lists: &[PriceList]) -> Vec<String> {
    let releases: BTreeSet<&str> = lists.iter().map(|list| list.release.as_str()).collect();
    if releases.len() < lists.len() || releases.contains("") {
        return lists.iter().map(|list| list.file.name.clone()).collect();
    }
    let names: Vec<(&str, &str)> =
        lists.iter().map(|list| (list.release.as_str(), list.build.as_str())).collect();
    let names = match lists.len() {
        ..=2 => names.into_iter().map(|(release, _)| release).collect(),
        _ => short_names(&names),
    };
    names.into_iter().map(str::to_owned).collect()
}

fn kernel(list: &PriceList, label: &str) -> Kernel {
    let checks = |boot: &Plain| {
        let kept = boot.checks.iter().filter(|(name, _)| !boot.traces.contains(name));
        kept.map(|(_, after)| *after).collect::<Vec<f64>>()
    };
    let counts =
        list.boots.iter().flat_map(|boot| [vec![total(&boot.first)], checks(boot)].concat());
    let counts: Vec<f64> = counts.collect();
    let ends = |(l, m): (f64, f64), count: &f64| (l.min(*count), m.max(*count));
    let range = counts.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    Kernel {
        label: label.to_owned(),
        release: list.release.clone(),
        file: list.file.name.clone(),
        instructions: median(&counts).unwrap_or_default(),
        boots: list.boots.len(),
        range: (!counts.is_empty()).then_some(range),
        traces: list.boots.iter().flat_map(|boot| boot.traces.iter().cloned()).collect(),
    }
}

/// The counts of a feature, with plain forwarding of the same boot.
fn counts<'l>(list: &'l PriceList, feature: &Feature) -> Option<(&'l Executed, &'l Executed)> {
    match &list.row(feature)?.outcome {
        Outcome::Counted { plain, executed, .. } => Some((plain, executed)),
        Outcome::Absent { .. } => None,
    }
}

fn price_in(list: &PriceList, feature: &Feature) -> Price {
    let Some(row) = list.row(feature) else { return Price::Missing };
    match (&row.outcome, counts(list, feature)) {
        (Outcome::Counted { executed, sent, lost, .. }, Some((plain, _))) => {
            let compared = compare_executed(&[plain], &[executed], 0.0, Repetition::Bursts);
            let Ok(Exact { difference, functions, .. }) = compared else { return Price::Missing };
            let mut functions = functions.map(|found| found.differing).unwrap_or_default();
            let mut others = other_differences(plain, executed);
            others.retain(|other| functions.iter().all(|known| known.name != other.name));
            let price = difference + others.iter().map(|one| one.difference).sum::<f64>();
            functions.extend(others);
            functions.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
            Price::Counted {
                price,
                instructions: total(executed),
                sent: *sent,
                lost: *lost,
                functions,
            }
        }
        (Outcome::Absent { why }, _) => Price::Absent { why: why.clone() },
        _ => Price::Missing,
    }
}

/// Smallest relevant difference of a function that differs less clearly. Functions of the scheduler
/// differ by up to this number between two counts of the same.
const RELEVANT: f64 = 5.0;

/// Functions that a comparison leaves out and that belong to the price: background in one of the
/// counts (a shaper reads the clock for each packet, which is background without it), or with one
/// outlier among the bursts.
fn other_differences(plain: &Executed, executed: &Executed) -> Vec<FunctionDifference> {
    let by_name = |executed: &'_ Executed| -> BTreeMap<String, ExecutedFunction> {
        executed
            .functions
            .iter()
            .map(|function| (function.name.clone(), function.clone()))
            .collect()
    };
    let (before, after) = (by_name(plain), by_name(executed));
    let subsystems = Subsystems::default();
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let difference = |name: &String| {
        let is_background =
            |of: &BTreeMap<String, ExecutedFunction>| of.get(name).is_none_or(|f| f.is_background);
        // Without a count on one side, background on the other is noise.
        if is_background(&before) && is_background(&after) {
            return None;
        }
        let none = ExecutedFunction { bursts: vec![0.0], ..ExecutedFunction::default() };
        let [a, b] = [&before, &after].map(|of| of.get(name).unwrap_or(&none));
        let [(least_a, most_a), (least_b, most_b)] = [a, b].map(|one| ends(&one.bursts));
        let (before, after) = (median(&a.bursts)?, median(&b.bursts)?);
        let is_apart = least_b > most_a || least_a > most_b;
        (is_apart && (after - before).abs() >= RELEVANT).then(|| FunctionDifference {
            name: name.clone(),
            subsystem: subsystems.of_function(name).unwrap_or(OTHER).to_owned(),
            before,
            after,
            difference: after - before,
            atomics: b.atomics - a.atomics,
        })
    };
    names.into_iter().filter_map(difference).collect()
}

/// Minimum and maximum, of five or more bursts without the most extreme one at each end.
fn ends(bursts: &[f64]) -> (f64, f64) {
    let mut sorted = bursts.to_vec();
    sorted.sort_by(f64::total_cmp);
    let left_out = usize::from(sorted.len() >= 5);
    let kept = &sorted[left_out..sorted.len() - left_out];
    (kept.first().copied().unwrap_or(0.0), kept.last().copied().unwrap_or(0.0))
}

/// Slopes of the features with two or more sizes.
fn slopes(features: &[Feature], prices: &[FeaturePrices]) -> Vec<Slope> {
    let mut slopes = Vec::new();
    let bases: Vec<&str> = features.iter().map(|feature| feature.base.as_str()).collect();
    for (at, base) in bases.iter().enumerate() {
        let sized = || features.iter().enumerate().filter(|(_, f)| f.base == *base);
        let by_size = |(at, feature): (usize, &Feature)| Some((feature.size()?, at));
        let ends = (sized().filter_map(by_size).min(), sized().filter_map(by_size).max());
        let (Some((from, low)), Some((to, high))) = ends else { continue };
        if from == to || bases[..at].contains(base) {
            continue;
        }
        let per_unit = prices[low]
            .prices
            .iter()
            .zip(&prices[high].prices)
            .map(|(low, high)| Some((high.price()? - low.price()?) / f64::from(to - from)));
        let per_unit = per_unit.collect();
        slopes.push(Slope { feature: (*base).to_owned(), from, to, per_unit });
    }
    slopes
}

/// Compares each kernel with the first one: plain forwarding, then the features that both have.
fn comparisons(
    lists: &[PriceList],
    labels: &[String],
    features: &[Feature],
    margin: f64,
) -> Vec<Compared> {
    let Some((first, others)) = lists.split_first() else { return Vec::new() };
    let mut comparisons = Vec::new();
    for (number, list) in others.iter().enumerate() {
        let mut compare = |what: &str, a: &[&Executed], b: &[&Executed]| {
            let outcome = compare_executed(a, b, margin, Repetition::Bursts);
            let named = |at: usize| (at, format!("{} {what}", labels[at]));
            comparisons.push(Compared::counted(named(0), named(number + 1), outcome));
        };
        if let (Some(a), Some(b)) = (first.boots.first(), list.boots.first()) {
            compare("plain", &[&a.first], &[&b.first]);
        }
        for feature in features {
            match (counts(first, feature), counts(list, feature)) {
                (Some((_, a)), Some((_, b))) => compare(&feature.name, &[a], &[b]),
                // A feature that is gone is no answer, and no pass.
                (Some((_, a)), None) => compare(&feature.name, &[a], &[]),
                (None, _) => (),
            }
        }
    }
    comparisons
}
