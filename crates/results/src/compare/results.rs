//! Results of comparing pairs.

use super::Question;
use super::beds;
use super::counts;
use super::doubts;
use super::error::CompareError;
use super::input::{Input, Kind};
use super::pairs::{NamedVariants, Pair, PairingMode, Pairs, Side, common_figure, common_quantity};
use crate::label::{INSTRUCTIONS, Label, MeasuredOn};
use crate::quantity::Quantity;
use crate::report::analysis::comparison_inputs::ComparisonInputs;
use crate::report::analysis::{Compared, Outcome, RunResult, SummaryResult, adjust};
use crate::stats::alternation::{Slice, compare_alternation};
use crate::stats::sequential::compare_sequentially;
use crate::stats::{
    BlockedRun, Comparison, Criteria, Unanswerable, compare_blocked, compare_builds,
    compare_unblocked,
};
use fwdlab_model::plan::RunMetric;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// Minimum number of comparisons per thread.
const PAIRS_PER_THREAD: usize = 16;

/// Results of a comparison, independent of the output format.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Description of the comparison, in one phrase.
    pub asked: String,
    /// Unit of all values.
    pub unit: String,
    /// Metric of a run, if an input specifies it.
    pub figure: Option<RunMetric>,
    /// Caveat to print with every number; empty for hardware and for unknown testbeds.
    pub caption: String,
    /// Confidence in percent.
    pub confidence: f64,
    /// Margin of equivalence as a ratio.
    pub margin: f64,
    /// Method of adjusting p-values.
    pub adjustment: String,
    /// Number of requested comparisons; those without a result do not count in the adjustment.
    pub family: usize,
    /// Input files.
    pub inputs: Vec<InputResult>,
    /// Variants; each baseline precedes its candidates.
    pub variants: Vec<VariantResult>,
    /// Comparisons; [`Compared::variant`] and [`Compared::baseline`] are indices in
    /// [`Results::variants`].
    pub comparisons: Vec<Compared>,
    /// Remarks on the whole.
    pub notes: Vec<String>,
    /// Quantity of the values.
    #[serde(skip)]
    pub(super) quantity: Quantity,
}

/// An input file.
#[derive(Clone, Debug, Serialize)]
pub struct InputResult {
    /// Path given by the user.
    pub path: String,
    /// Short name that distinguishes it from the other files.
    #[serde(skip)]
    pub name: String,
    /// Kind of the file.
    pub kind: Kind,
    /// Tool of results of another tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Testbed of the values. `None` if unknown.
    pub testbed: Option<String>,
    /// True if no packet was sent. `None` if unknown.
    pub simulated: Option<bool>,
    /// Number of variants.
    pub variants: usize,
    /// Number of runs.
    pub runs: usize,
}

/// A compared variant.
#[derive(Clone, Debug, Serialize)]
pub struct VariantResult {
    /// Label, with the file if two variants have the same label.
    pub label: String,
    /// Index of the file in [`Results::inputs`].
    pub input: usize,
    /// One value per run.
    pub values: Vec<f64>,
    /// Summary of the values. `None` without runs.
    pub summary: Option<SummaryResult>,
}

/// Compares all pairs as one family.
pub(super) fn results(
    question: &Question,
    inputs: &[Input],
    named: &[NamedVariants],
    pairs: &Pairs,
) -> Result<Results, CompareError> {
    let Pairs { asked, pairs } = pairs;
    let quantity = common_quantity(inputs, pairs);
    let origin = named.first().and_then(|first| inputs[first.input].origin.as_ref());
    let defaults = Criteria::default();
    let criteria = Criteria {
        confidence: question
            .confidence
            .or(origin.map(|origin| origin.confidence))
            .unwrap_or(defaults.confidence),
        margin: question.margin.or(origin.map(|origin| origin.margin)).unwrap_or(defaults.margin),
        family: pairs.len(),
        adjustment: question.adjustment,
    };
    let outcomes: Vec<Outcome> = if counts::are_counts(inputs) {
        let outcomes = counts::compare(inputs, pairs, criteria.margin);
        refuse_nothing(&outcomes)?;
        outcomes.into_iter().map(Outcome::counted).collect()
    } else {
        let mut outcomes = compare_all(inputs, pairs, criteria);
        refuse_nothing(&outcomes)?;
        adjust(&mut outcomes, question.adjustment);
        let metric = |pair: &Pair| inputs[pair.candidate.input].label.as_ref()?.figure;
        let at = |(outcome, pair): (_, &Pair)| match metric(pair) {
            Some(metric) => Outcome::of(outcome).at(metric),
            None => Outcome::of(outcome),
        };
        outcomes.into_iter().zip(pairs).map(at).collect()
    };

    let sides = Sides::of(inputs, pairs);
    let variants: Vec<VariantResult> = sides.variants(inputs);
    let comparisons = pairs
        .iter()
        .zip(outcomes)
        .map(|(pair, outcome)| {
            let [baseline, variant] = sides_of(inputs, pair).map(|side| sides.at(&side));
            Compared {
                variant,
                label: variants[variant].label.clone(),
                baseline,
                baseline_label: variants[baseline].label.clone(),
                sides: [vec![baseline], vec![variant]],
                goal: None,
                named_goal: None,
                outcome,
                is_distrusted: [pair.baseline, pair.candidate].iter().any(|side| {
                    inputs[side.input].origin.as_ref().is_some_and(|origin| origin.is_distrusted)
                }),
            }
        })
        .collect();
    let caption = inputs.iter().filter_map(|input| input.label.as_ref()).map(Label::caption);
    Ok(Results {
        asked: beds::with_beds(inputs, asked),
        unit: if counts::are_counts(inputs) { INSTRUCTIONS } else { quantity.unit() }.to_owned(),
        figure: common_figure(inputs),
        caption: caption.max_by_key(|caption| caption.len()).unwrap_or_default().to_owned(),
        confidence: criteria.confidence,
        margin: criteria.margin,
        adjustment: question.adjustment.to_string(),
        family: pairs.len(),
        inputs: inputs.iter().map(input_result).collect(),
        variants,
        comparisons,
        notes: notes(inputs, pairs),
        quantity,
    })
}

fn refuse_nothing<T>(outcomes: &[Result<T, Unanswerable>]) -> Result<(), CompareError> {
    match outcomes.first() {
        Some(Err(reason)) if outcomes.iter().all(Result::is_err) => {
            let next = "measure more runs of both";
            Err(CompareError::question(format!("nothing can be compared: {reason}"), next))
        }
        _ => Ok(()),
    }
}

/// Compares the pairs in their order, on all available CPUs: a thousand comparisons take noticeable
/// time on one.
fn compare_all(
    inputs: &[Input],
    pairs: &[Pair],
    criteria: Criteria,
) -> Vec<Result<Comparison, Unanswerable>> {
    let all = |pairs: &[Pair]| -> Vec<Result<Comparison, Unanswerable>> {
        pairs.iter().map(|pair| compare(inputs, pair, criteria)).collect()
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    if threads == 1 || pairs.len() < 2 * PAIRS_PER_THREAD {
        return all(pairs);
    }
    let share = pairs.len().div_ceil(threads).max(PAIRS_PER_THREAD);
    thread::scope(|scope| {
        let parts: Vec<_> =
            pairs.chunks(share).map(|part| scope.spawn(move || all(part))).collect();
        let joined = parts.into_iter().map(|part| part.join());
        joined.flat_map(|part| part.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

fn compare(inputs: &[Input], pair: &Pair, criteria: Criteria) -> Result<Comparison, Unanswerable> {
    let of = |side: Side| &inputs[side.input].variants[side.variant];
    if let Some(builds) = pair.builds(inputs) {
        return compare_revisions(&inputs[pair.baseline.input], builds, criteria);
    }
    let (a, b) = (of(pair.baseline), of(pair.candidate));
    if a.known.is_empty() || b.known.is_empty() {
        return compare_runs(inputs, pair, &a.runs, &b.runs, criteria);
    }
    // Data that stores have about their runs is used as in reports.
    let side = |variant: usize, runs: &[RunResult]| -> Vec<RunResult> {
        runs.iter().map(|run| RunResult { variant, ..run.clone() }).collect()
    };
    let known = [side(0, &a.known), side(1, &b.known)].concat();
    ComparisonInputs::of(&known, [vec![0], vec![1]])
        .judge(&|figure| compare_runs(inputs, pair, &figure(0), &figure(1), criteria))
}

/// Compares two revisions of one store, by their builds.
fn compare_revisions(
    input: &Input,
    builds: [Vec<usize>; 2],
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    let known: Vec<RunResult> =
        builds.iter().flatten().flat_map(|&build| input.variants[build].known.clone()).collect();
    ComparisonInputs::of(&known, builds.clone()).judge(&|figure| {
        let of = |side: &[usize]| side.iter().map(|&build| figure(build)).collect::<Vec<_>>();
        compare_builds(&of(&builds[0]), &of(&builds[1]), criteria)
    })
}

fn compare_runs(
    inputs: &[Input],
    pair: &Pair,
    a: &[BlockedRun],
    b: &[BlockedRun],
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    // The lines of a list are not known to be separate starts.
    let is_list = [pair.baseline.input, pair.candidate.input]
        .into_iter()
        .any(|input| inputs[input].origin.is_none());
    let is_smaller_better = common_quantity(inputs, &[*pair]).is_smaller_better();
    let listed = |comparison: Comparison| match is_list {
        true => Comparison { is_smaller_better, ..comparison.of_list() },
        false => comparison,
    };
    match pair.way {
        PairingMode::Unblocked => {
            let pps = |runs: &[BlockedRun]| runs.iter().map(|run| run.pps).collect::<Vec<f64>>();
            compare_unblocked(&pps(a), &pps(b), criteria).map(listed)
        }
        PairingMode::Blocked => compare_blocked(a, b, criteria).map(listed),
        PairingMode::Sequential(mode, max_blocks) => {
            compare_sequentially(a, b, mode, max_blocks, criteria).map(|(comparison, _)| comparison)
        }
        PairingMode::Alternation => {
            let (baseline, candidate) = (pair.baseline.variant, pair.candidate.variant);
            let streams: Vec<Vec<Slice>> = inputs[pair.baseline.input]
                .streams
                .iter()
                .filter(|stream| {
                    stream.variants.contains(&baseline) && stream.variants.contains(&candidate)
                })
                .map(|stream| stream.slices.clone())
                .collect();
            compare_alternation(&streams, baseline, candidate, criteria)
        }
    }
}

/// The variants of one side of a pair: one, or all builds of a revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SideVariants {
    side: Side,
    builds: Option<Vec<usize>>,
}

impl SideVariants {
    /// Returns the values of all runs.
    fn values(&self, inputs: &[Input]) -> Vec<f64> {
        let variants = &inputs[self.side.input].variants;
        match &self.builds {
            Some(builds) => builds.iter().flat_map(|&build| variants[build].values()).collect(),
            None => variants[self.side.variant].values(),
        }
    }

    /// Returns the label of the variant, or of the revision.
    fn label(&self, inputs: &[Input]) -> String {
        let input = &inputs[self.side.input];
        match input.plan.as_ref().filter(|_| self.builds.is_some()) {
            Some(plan) => plan.revision_label(self.side.variant),
            None => input.variants[self.side.variant].label.clone(),
        }
    }
}

/// Returns the baseline and the candidate of a pair.
fn sides_of(inputs: &[Input], pair: &Pair) -> [SideVariants; 2] {
    let [a, b] = pair.builds(inputs).map_or([None, None], |builds| builds.map(Some));
    [(pair.baseline, a), (pair.candidate, b)].map(|(side, builds)| SideVariants { side, builds })
}

/// Compared variants, each once.
struct Sides {
    order: Vec<SideVariants>,
    places: HashMap<SideVariants, usize>,
}

impl Sides {
    fn of(inputs: &[Input], pairs: &[Pair]) -> Sides {
        let mut sides = Sides { order: Vec::new(), places: HashMap::new() };
        for side in pairs.iter().flat_map(|pair| sides_of(inputs, pair)) {
            debug_assert!(side.side.variant < inputs[side.side.input].variants.len());
            sides.places.entry(side).or_insert_with_key(|side| {
                sides.order.push(side.clone());
                sides.order.len() - 1
            });
        }
        sides
    }

    fn at(&self, side: &SideVariants) -> usize {
        self.places[side]
    }

    fn variants(&self, inputs: &[Input]) -> Vec<VariantResult> {
        let labels: Vec<String> = self.order.iter().map(|side| side.label(inputs)).collect();
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for label in &labels {
            *uses.entry(label).or_default() += 1;
        }
        let variant = |(side, label): (&SideVariants, &String)| {
            let input = side.side.input;
            let label = match uses[label.as_str()] {
                1 => label.clone(),
                _ => format!("{label} ({})", inputs[input].name),
            };
            let values = side.values(inputs);
            let summary = SummaryResult::of(&values);
            VariantResult { label, input, values, summary }
        };
        self.order.iter().zip(&labels).map(variant).collect()
    }
}

fn input_result(input: &Input) -> InputResult {
    InputResult {
        path: input.path.display().to_string(),
        name: input.name.clone(),
        kind: input.kind,
        tool: input.peer.as_ref().map(|peer| peer.tool.clone()),
        testbed: input.label.as_ref().map(|label| label.testbed.to_string()),
        simulated: input.label.as_ref().map(|label| label.simulated),
        variants: input.variants.len(),
        runs: input.variants.iter().map(|variant| variant.runs.len()).sum(),
    }
}

fn notes(inputs: &[Input], pairs: &[Pair]) -> Vec<String> {
    let mut notes: Vec<String> =
        inputs.iter().flat_map(|input| input.notes.iter().cloned()).collect();
    let has_time = !counts::are_counts(inputs);
    if has_time {
        notes.extend(inputs.iter().flat_map(doubts::of));
    }
    let across: Vec<&Pair> =
        pairs.iter().filter(|pair| pair.way == PairingMode::Unblocked).collect();
    let is_between = across.iter().any(|pair| pair.baseline.input != pair.candidate.input);
    if has_time && is_between {
        notes.push(
            "runs of different files share no blocks: a drift of the machine from one to the \
             other is not controlled and looks like a difference"
                .to_owned(),
        );
        let stopped = inputs.iter().filter(|i| i.origin.as_ref().is_some_and(|o| o.stop.is_some()));
        notes.extend(stopped.map(|input| {
            format!(
                "{} stopped when it had found something: its figures alone exaggerate that",
                input.name
            )
        }));
    }
    if has_time {
        notes.extend(beds::notes(inputs));
    }
    // A known testbed and an unknown one; all known ones are alike.
    let mut testbeds: BTreeMap<Option<MeasuredOn>, &Input> = BTreeMap::new();
    for input in inputs {
        testbeds.entry(input.label.as_ref().map(|label| label.testbed)).or_insert(input);
    }
    if let Some(unknown) = testbeds.get(&None)
        && let Some((Some(testbed), known)) = testbeds.iter().find(|(name, _)| name.is_some())
    {
        notes.push(format!(
            "{} is of testbed {testbed}, and {} doesn't say where it was measured: figures of \
             different testbeds are not comparable",
            known.name, unknown.name
        ));
    }
    notes
}
