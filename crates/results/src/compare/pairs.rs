//! Pairs of variants: selects, validates and classifies comparisons.

use super::Question;
use super::columns::excerpt;
use super::error::CompareError;
use super::input::{Input, Kind};
use crate::plans;
use crate::quantity::Quantity;
use crate::stats::sequential::Mode;
use crate::stats::summary::median;
use fwdlab_model::labels::some_of;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::units::format_pps;
use std::collections::{HashMap, HashSet};

/// Ratio of medians above which units are assumed to differ.
const UNITS_APART: f64 = 100.0;

/// A variant of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Side {
    pub(super) input: usize,
    pub(super) variant: usize,
}

/// Variants named by an argument: one of an input, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedVariants {
    pub(super) input: usize,
    pub(super) variant: Option<usize>,
}

/// Comparison method for two variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairingMode {
    /// Independent samples: Welch's test.
    Unblocked,
    /// In the blocks common to both.
    Blocked,
    /// In blocks of an experiment that a rule may have stopped early.
    Sequential(Mode, u32),
    /// As neighbours in time within streams.
    Alternation,
}

/// A baseline and a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) baseline: Side,
    pub(super) candidate: Side,
    pub(super) way: PairingMode,
}

impl Pair {
    /// Variants that are builds of the baseline's and of the candidate's revision. `None` unless
    /// the plan of a store compares revisions by their builds.
    pub(super) fn builds(&self, inputs: &[Input]) -> Option<[Vec<usize>; 2]> {
        let Side { input, variant } = self.candidate;
        let plan = inputs[input].plan.as_ref().filter(|plan| plan.has_builds())?;
        let is_planned = self.baseline.input == input
            && self.way == PairingMode::Blocked
            && plan.baseline_of(variant) == Some(self.baseline.variant);
        let builds = [self.baseline.variant, variant].map(|variant| plan.builds_of(variant));
        (is_planned && builds.iter().map(Vec::len).sum::<usize>() > 2).then_some(builds)
    }
}

/// All pairs, and a description in one phrase.
#[derive(Debug)]
pub(super) struct Pairs {
    pub(super) asked: String,
    pub(super) pairs: Vec<Pair>,
}

impl Pairs {
    /// Selects the pairs for `question`, whose arguments are `named`.
    pub(super) fn of(
        question: &Question,
        inputs: &[Input],
        named: &[NamedVariants],
    ) -> Result<Pairs, CompareError> {
        check_selection(question, inputs, named)?;
        let sides = match named {
            [] => {
                let next = "name two files, or one store";
                return Err(CompareError::question("there is nothing to compare", next));
            }
            [one] => pairs_within(question, &inputs[one.input], *one)?,
            _ if question.baseline.is_some() => {
                let what = "of several arguments the first one is the baseline, so --baseline has no meaning";
                return Err(CompareError::question(what, "leave it out, or name one store alone"));
            }
            several => pairs_between(inputs, several)?,
        };
        if question.blocked {
            check_lines(inputs, &sides.pairs)?;
        }
        let is_named = |side: Side| {
            named.iter().any(|one| (one.input, one.variant) == (side.input, Some(side.variant)))
        };
        for pair in &sides.pairs {
            // A user who names both sides knows that the benchmarks differ.
            let are_named = is_named(pair.baseline) && is_named(pair.candidate);
            check_peers(inputs, pair, are_named)?;
            check(inputs, pair)?;
        }
        let with_way = |pair: Pair| Pair { way: choose_way(question, inputs, &pair), ..pair };
        Ok(Pairs { pairs: sides.pairs.into_iter().map(with_way).collect(), ..sides })
    }
}

fn pair(baseline: Side, candidate: Side) -> Pair {
    Pair { baseline, candidate, way: PairingMode::Unblocked }
}

/// Pairs of one argument: each of its variants with its baseline.
fn pairs_within(
    question: &Question,
    input: &Input,
    named: NamedVariants,
) -> Result<Pairs, CompareError> {
    let path = input.path.display();
    if named.variant.is_some() || input.variants.len() < 2 {
        let what = format!("{path} alone names one variant");
        return Err(CompareError::question(what, "name another one to compare it with"));
    }
    let side = |variant: usize| Side { input: named.input, variant };
    let all = 0..input.variants.len();
    if let Some(label) = &question.baseline {
        if let Some(pairs) = against_level(input, label) {
            return Ok(Pairs {
                asked: format!("{path}: each variant against its own with {label}"),
                pairs: pairs.into_iter().map(|(a, b)| pair(side(a), side(b))).collect(),
            });
        }
        let baseline = input.variant(label)?;
        let others = all.filter(|&variant| variant != baseline);
        return Ok(Pairs {
            asked: format!("{path}: each variant against {label}"),
            pairs: others.map(|variant| pair(side(baseline), side(variant))).collect(),
        });
    }
    let Some(origin) = &input.origin else {
        let labels = input.variants.iter().map(|variant| variant.label.as_str());
        let what = "nothing says which variant is the baseline";
        let next = format!("give --baseline with one of {}", some_of(labels));
        return Err(CompareError::input(&input.path, None, what, next));
    };
    let pairs: Vec<Pair> = all
        .filter_map(|variant| Some(pair(side(origin.baselines[variant]?), side(variant))))
        .collect();
    if pairs.is_empty() {
        let what = "its plan compares no variants";
        let next = "give --baseline with the label of one";
        return Err(CompareError::input(&input.path, None, what, next));
    }
    Ok(Pairs { asked: format!("{path}: each variant against its baseline of the plan"), pairs })
}

/// Baselines and candidates if `level` is not a variant but the level of one factor: each variant
/// with another level is compared with the variant that differs only in this level.
fn against_level(input: &Input, level: &str) -> Option<Vec<(usize, usize)>> {
    let labels: Vec<Vec<&str>> =
        input.variants.iter().map(|variant| variant.label.split(", ").collect()).collect();
    if input.variants.iter().any(|variant| variant.label == level) {
        return None;
    }
    let factor = labels.iter().find_map(|levels| levels.iter().position(|name| *name == level))?;
    let baseline_of = |levels: &Vec<&str>| {
        let mut baseline = levels.clone();
        *baseline.get_mut(factor)? = level;
        labels.iter().position(|other| *other == baseline)
    };
    let others = labels.iter().enumerate().filter(|(_, levels)| levels.get(factor) != Some(&level));
    let pairs = others.filter_map(|(at, levels)| Some((baseline_of(levels)?, at)));
    Some(pairs.collect()).filter(|pairs: &Vec<_>| !pairs.is_empty())
}

/// Pairs of several arguments, the first of which is the baseline.
fn pairs_between(inputs: &[Input], named: &[NamedVariants]) -> Result<Pairs, CompareError> {
    let single = |named: &NamedVariants| match (named.variant, inputs[named.input].variants.len()) {
        (Some(variant), _) => Some(Side { input: named.input, variant }),
        (None, 1) => Some(Side { input: named.input, variant: 0 }),
        (None, _) => None,
    };
    let singles: Vec<Option<Side>> = named.iter().map(single).collect();
    if singles.iter().all(Option::is_none) {
        return pairs_by_label(inputs, named);
    }
    if let Some(whole) = singles.iter().position(Option::is_none) {
        let input = &inputs[named[whole].input];
        let labels = input.variants.iter().map(|variant| variant.label.as_str());
        let what = format!("it holds {} variants, but other arguments name one", labels.len());
        let next =
            format!("name one of them as {}:LABEL: {}", input.path.display(), some_of(labels));
        return Err(CompareError::input(&input.path, None, what, next));
    }
    let sides: Vec<Side> = singles.into_iter().flatten().collect();
    let mut seen = HashSet::new();
    if let Some(twice) = sides.iter().find(|side| !seen.insert(**side)) {
        let input = &inputs[twice.input];
        let label = &input.variants[twice.variant].label;
        let what = format!("`{label}` is named twice");
        let next = "nothing differs from itself: name each variant once";
        return Err(CompareError::input(&input.path, None, what, next));
    }
    let label_of = |side: &Side| &inputs[side.input].variants[side.variant].label;
    let label = |side: &Side| match sides.iter().filter(|s| label_of(s) == label_of(side)).count() {
        1 => label_of(side).clone(),
        _ => format!("{} ({})", label_of(side), inputs[side.input].name),
    };
    let asked = match &sides[..] {
        [baseline, candidate] => format!("{} against {}", label(candidate), label(baseline)),
        [baseline, candidates @ ..] => {
            format!("{} variants against {}", candidates.len(), label(baseline))
        }
        [] => String::new(),
    };
    let pairs = sides[1..].iter().map(|&candidate| pair(sides[0], candidate)).collect();
    Ok(Pairs { asked, pairs })
}

/// Pairs of whole stores or tables: variants with the same label.
fn pairs_by_label(inputs: &[Input], named: &[NamedVariants]) -> Result<Pairs, CompareError> {
    let first = &inputs[named[0].input];
    let name_one = format!("name single variants, e.g. {}:LABEL", first.path.display());
    let mut pairs = Vec::new();
    for other in &named[1..] {
        let input = &inputs[other.input];
        if other.input == named[0].input {
            let what = "this file is named twice";
            return Err(CompareError::input(&input.path, None, what, name_one));
        }
        let between = format!("{} and {}", first.path.display(), input.path.display());
        if let (Some(a), Some(b)) = (&first.plan, &input.plan) {
            let differences = plans::differences(a, b);
            if !differences.is_empty() {
                let listed = plans::listed(&differences);
                let what = format!("{between} asked for different things ({listed})");
                return Err(CompareError::question(what, name_one));
            }
        }
        let known: HashMap<&str, usize> =
            input.variants.iter().enumerate().map(|(i, v)| (v.label.as_str(), i)).collect();
        for (variant, first_variant) in first.variants.iter().enumerate() {
            let Some(&candidate) = known.get(first_variant.label.as_str()) else { continue };
            let baseline = Side { input: named[0].input, variant };
            pairs.push(pair(baseline, Side { input: other.input, variant: candidate }));
        }
        let matched =
            first.variants.iter().filter(|v| known.contains_key(v.label.as_str())).count();
        if matched < first.variants.len() || matched < input.variants.len() {
            let labels = |input: &Input| {
                some_of(input.variants.iter().map(|variant| variant.label.as_str()))
            };
            let (a, b) = (labels(first), labels(input));
            let what = format!("{between} hold different variants ({a}; {b})");
            return Err(CompareError::question(what, name_one));
        }
    }
    let others: Vec<String> = named[1..].iter().map(|n| inputs[n.input].name.clone()).collect();
    let asked =
        format!("each variant of {} against the same one of {}", others.join(", "), first.name);
    Ok(Pairs { asked, pairs })
}

fn choose_way(question: &Question, inputs: &[Input], pair: &Pair) -> PairingMode {
    let input = &inputs[pair.baseline.input];
    let same = pair.baseline.input == pair.candidate.input;
    match () {
        () if question.blocked => PairingMode::Blocked,
        () if same && !input.streams.is_empty() => PairingMode::Alternation,
        () if same && input.has_blocks => match input.origin.as_ref().and_then(|o| o.stop) {
            // After interim looks, the comparison must use the stopping rule that allowed them.
            Some((mode, max_blocks)) => PairingMode::Sequential(mode, max_blocks),
            None => PairingMode::Blocked,
        },
        () => PairingMode::Unblocked,
    }
}

/// Checks `--blocked`, where line k of each file belongs to block k.
fn check_lines(inputs: &[Input], pairs: &[Pair]) -> Result<(), CompareError> {
    for pair in pairs {
        let (a, b) = (&inputs[pair.baseline.input], &inputs[pair.candidate.input]);
        if let Some(blocked) = [a, b].into_iter().find(|input| input.has_blocks) {
            let what = "it already contains the block of each run, so --blocked has no meaning";
            return Err(CompareError::input(&blocked.path, None, what, "leave it out"));
        }
        let count = |side: Side| inputs[side.input].variants[side.variant].runs.len();
        let (in_a, in_b) = (count(pair.baseline), count(pair.candidate));
        if in_a != in_b {
            let (a, b) = (a.path.display(), b.path.display());
            let what =
                format!("--blocked needs as many runs of each: {a} has {in_a}, {b} has {in_b}");
            let next = "leave --blocked out, or give files whose line k is of block k";
            return Err(CompareError::question(what, next));
        }
    }
    Ok(())
}

/// Checks the selection of benchmarks: with several arguments, each one has one.
fn check_selection(
    question: &Question,
    inputs: &[Input],
    named: &[NamedVariants],
) -> Result<(), CompareError> {
    if (question.only.is_some() || question.column.is_some())
        && inputs.iter().all(|input| input.peer.is_none())
    {
        let what = "--only and --column select from results of other tools, and no file has any";
        return Err(CompareError::question(what, "leave them out"));
    }
    let several = named
        .iter()
        .map(|one| (&inputs[one.input], one.variant))
        .find(|(input, one)| input.peer.is_some() && one.is_none() && input.variants.len() > 1);
    match several {
        Some((input, _)) if named.len() > 1 => {
            let labels = input.variants.iter().map(|variant| variant.label.as_str());
            let what = format!("it has {} benchmarks", input.variants.len());
            let next = format!("give --only with one of {}", some_of(labels));
            Err(CompareError::input(&input.path, None, what, next))
        }
        _ => Ok(()),
    }
}

/// Rejects comparisons of different benchmarks, quantities and tools; `are_named` permits different
/// benchmarks.
fn check_peers(inputs: &[Input], pair: &Pair, are_named: bool) -> Result<(), CompareError> {
    let (a, b) = (&inputs[pair.baseline.input], &inputs[pair.candidate.input]);
    let (of_a, of_b) = match (&a.peer, &b.peer) {
        (None, None) => return Ok(()),
        (Some(of_a), Some(of_b)) => (of_a, of_b),
        (one, _) => {
            let (peer, tool) = if one.is_some() { (a, one) } else { (b, &b.peer) };
            let tool = tool.as_ref().map_or("another tool", |peer| &peer.tool);
            let what = format!("{} is of {tool}, and not all files are", peer.path.display());
            let next = "compare results of one tool: another one counts and times differently";
            return Err(CompareError::question(what, next));
        }
    };
    let [one, other] = [(of_a, pair.baseline), (of_b, pair.candidate)]
        .map(|(peer, side)| &peer.benchmarks[side.variant]);
    let names = |of_a: &str, of_b: &str| {
        format!("{} ({of_a}) and {} ({of_b})", a.path.display(), b.path.display())
    };
    if of_a.tool != of_b.tool {
        let what = format!("{} are of different tools", names(&of_a.tool, &of_b.tool));
        let next = "compare results of one tool: another one counts and times differently";
        return Err(CompareError::question(what, next));
    }
    if one.quantity != other.quantity || one.title != other.title {
        let what = format!("{} are different quantities", names(&one.title, &other.title));
        let next = "give --column with the name of one that both files have";
        return Err(CompareError::question(what, next));
    }
    if let (Some(one), Some(other)) = (one.benchmark(), other.benchmark())
        && one != other
        && !are_named
        && pair.baseline.input != pair.candidate.input
    {
        let what =
            format!("{} are different benchmarks", names(excerpt(one).as_str(), &excerpt(other)));
        let next = "measure the same benchmark on both sides, or name both as FILE:BENCHMARK";
        return Err(CompareError::question(what, next));
    }
    Ok(())
}

/// Rejects invalid comparisons.
fn check(inputs: &[Input], pair: &Pair) -> Result<(), CompareError> {
    let (a, b) = (&inputs[pair.baseline.input], &inputs[pair.candidate.input]);
    if pair.baseline.input == pair.candidate.input {
        return Ok(());
    }
    if let (Some(of_a), Some(of_b)) = (&a.label, &b.label) {
        let names = |of_a: &str, of_b: &str| {
            format!("{} ({of_a}) and {} ({of_b})", a.path.display(), b.path.display())
        };
        if !of_a.is_comparable(of_b) {
            let what = format!(
                "{} are of different testbeds",
                names(&of_a.testbed.to_string(), &of_b.testbed.to_string())
            );
            let of_kind = |kind| [of_a, of_b].iter().any(|label| label.testbed.kind == Some(kind));
            let next = if of_a.simulated || of_b.simulated {
                "simulated figures say nothing about any machine: compare them with simulated ones only"
            } else if of_kind(TestbedKind::Memory) {
                "packets in memory cost what no packet on an interface does: measure both on one testbed"
            } else if of_kind(TestbedKind::Archive) {
                "imported figures are another harness's: measure both on one testbed"
            } else {
                "a virtual testbed is never compared with hardware: measure both on one testbed"
            };
            return Err(CompareError::question(what, next));
        }
        if let (Some(one), Some(other)) = (of_a.figure, of_b.figure)
            && one != other
        {
            let what = format!(
                "{} let different figures stand for a run",
                names(one.short(), other.short())
            );
            let next = "measure both with the same `figure` in [compare]";
            return Err(CompareError::question(what, next));
        }
    }
    same_unit(inputs, pair)
}

/// Rejects values in different units. A store is in packets per second, other tools name their
/// units; the unit of other files is unknown.
fn same_unit(inputs: &[Input], pair: &Pair) -> Result<(), CompareError> {
    let (a, b) = (&inputs[pair.baseline.input], &inputs[pair.candidate.input]);
    if a.kind == b.kind && matches!(a.kind, Kind::Store | Kind::Peer) {
        return Ok(());
    }
    let median_of = |side: Side| median(&inputs[side.input].variants[side.variant].values());
    let (Some(of_a), Some(of_b)) = (median_of(pair.baseline), median_of(pair.candidate)) else {
        return Ok(());
    };
    if of_a.max(of_b) <= UNITS_APART * of_a.min(of_b) {
        return Ok(());
    }
    let what = format!(
        "{} (median {}) and {} (median {}) are more than a factor of {UNITS_APART} apart, \
         as figures of different units are",
        a.path.display(),
        short(of_a),
        b.path.display(),
        short(of_b)
    );
    let read = format!("unconverted they are {} and {}", format_pps(of_a), format_pps(of_b));
    Err(CompareError::question(what, format!("give packets per second in both ({read})")))
}

/// Four digits of a number, without a unit.
fn short(value: f64) -> String {
    format!("{value:.3e}").parse::<f64>().map_or(value.to_string(), |short| short.to_string())
}

/// Quantity of the compared values.
pub(super) fn common_quantity(inputs: &[Input], pairs: &[Pair]) -> Quantity {
    let first = pairs.first().and_then(|pair| {
        let peer = inputs[pair.baseline.input].peer.as_ref()?;
        peer.benchmarks.get(pair.baseline.variant)
    });
    first.map_or(Quantity::PACKET_RATE, |identity| identity.quantity.clone())
}

/// Metric of the inputs. `None` if no input specifies one.
pub(super) fn common_figure(inputs: &[Input]) -> Option<RunMetric> {
    inputs.iter().find_map(|input| input.label.as_ref()?.figure)
}
