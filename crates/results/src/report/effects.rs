//! The plot of comparisons: each effect with its interval, or the range of counts.

use super::analysis::{Answer, Compared, Outcome, RunResult};
use super::results::Analysis;
use crate::counts::{Exact, signed};
use crate::format::{percent, signed_percent};
use crate::plot::{Draw, Drawing, Effect, Effects, Found};
use crate::stats::Verdict;
use crate::stats::summary::median;

/// Parameters of the comparisons for the plot's caption.
pub(crate) struct Terms<'a> {
    /// Confidence of the intervals, percent.
    pub(crate) confidence: f64,
    /// Margin of equivalence as a ratio.
    pub(crate) margin: f64,
    /// Caveat to print with every number; may be empty.
    pub(crate) caption: &'a str,
    /// Description of the reference of single runs' rates.
    pub(crate) against: &'a str,
    /// Name of the compared quantity.
    pub(crate) quantity: &'a str,
}

/// Draws the effects of a report's comparisons. `None` if none has a result.
pub(super) fn of_report(analysis: &Analysis) -> Option<Drawing> {
    let terms = Terms {
        confidence: analysis.core.confidence,
        margin: analysis.core.margin,
        caption: &analysis.core.testbed.caption,
        against: match (analysis.core.alternation, analysis.core.sequential) {
            (true, _) => "each stream, against the baseline's slices in it",
            (_, true) => "single runs against the baseline's median",
            _ => "single runs against the baseline's in the same block",
        },
        quantity: "rate",
    };
    effects(&analysis.core.comparisons, &terms, &|compared| match &compared.outcome {
        Outcome::Counted(exact) => {
            let counts = |run: &&RunResult| {
                compared.sides[1].contains(&run.variant) && run.left_out.is_none()
            };
            let runs = analysis.core.runs.iter().filter(counts).filter_map(RunResult::value);
            runs.map(|instructions| instructions / exact.baseline).collect()
        }
        _ => single_runs(analysis, compared),
    })
}

/// Draws the effects of comparisons; `runs` returns the single runs of each as ratios. `None` if
/// none has a result.
pub(crate) fn effects(
    comparisons: &[Compared],
    terms: &Terms<'_>,
    runs: &dyn Fn(&Compared) -> Vec<f64>,
) -> Option<Drawing> {
    let answered: Vec<&Compared> =
        comparisons.iter().filter(|compared| compared.outcome.is_answered()).collect();
    let label = labels(&answered);
    let effect = |compared: &&Compared| match &compared.outcome {
        Outcome::Compared(answer) => Some(of_rates(answer, label(compared), runs(compared))),
        Outcome::Counted(exact) => Some(of_counts(exact, label(compared), runs(compared))),
        Outcome::Unanswerable { .. } => None,
    };
    let rows: Vec<Effect> = answered.iter().filter_map(effect).collect();
    let is_counted = matches!(answered.first()?.outcome, Outcome::Counted(_));
    let (quantity, bars) = match is_counted {
        false => {
            let is_joint = |compared: &&Compared| match &compared.outcome {
                Outcome::Compared(answer) => answer.comparison.is_joint(),
                _ => false,
            };
            let together = match answered.iter().any(is_joint) {
                true => ", of all comparisons together",
                false => "",
            };
            let Terms { confidence, against, quantity, .. } = terms;
            (*quantity, format!("Bars: {confidence} % intervals{together}; points: {against}"))
        }
        true => (
            "instructions per packet",
            "Bars: the range over all pairs of runs, which is no test; points: single runs against \
             the baseline's median"
                .to_owned(),
        ),
    };
    let bars = format!("{bars}; shaded: within the margin of {}.", percent(terms.margin, 1));
    let footnote = match terms.caption.trim_end_matches('.') {
        "" => bars,
        caption => format!("{caption}. {bars}"),
    };
    let (title, what, margin) = ("Effects".to_owned(), quantity.to_owned(), terms.margin);
    Some(Effects { title, rows, what, margin, footnote }.drawing())
}

fn of_rates(answer: &Answer, label: String, runs: Vec<f64>) -> Effect {
    let (comparison, shown) = (&answer.comparison, &answer.shown);
    Effect {
        label,
        ratio: comparison.ratio,
        low: comparison.low,
        high: comparison.high,
        runs,
        found: found(answer.verdict),
        said: format!("{} {}  {}", shown.effect, shown.interval, answer.verdict),
    }
}

fn of_counts(exact: &Exact, label: String, runs: Vec<f64>) -> Effect {
    let ratio = |difference: f64| 1.0 + difference / exact.baseline;
    let (difference, change) = (signed(exact.difference), signed_percent(exact.change, 2));
    Effect {
        label,
        ratio: ratio(exact.total_difference),
        low: ratio(exact.low),
        high: ratio(exact.high),
        runs,
        found: found(exact.verdict.into()),
        said: format!("{change} ({difference})  {}", exact.verdict.name()),
    }
}

fn found(verdict: Verdict) -> Found {
    match verdict {
        Verdict::Better => Found::Better,
        Verdict::Worse => Found::Worse,
        Verdict::Equivalent => Found::Equivalent,
        Verdict::Inconclusive | Verdict::NotJudged => Found::Open,
    }
}

/// Returns the names of the comparisons: both variants, or the candidate alone if the full name is
/// too long and the candidate is unique.
fn labels(answered: &[&Compared]) -> impl Fn(&Compared) -> String + use<> {
    let whole = |c: &Compared| format!("{} against {}", c.candidate(), c.baseline_label);
    let fits = answered.iter().all(|compared| Effects::label_fits(&whole(compared)));
    let mut names: Vec<String> = answered.iter().map(|c| c.candidate()).collect();
    names.sort_unstable();
    let is_clear = names.windows(2).all(|pair| pair[0] != pair[1]);
    move |compared| match fits || !is_clear {
        true => whole(compared),
        false => compared.candidate(),
    }
}

/// Returns the ratio of every run of a comparison to its baseline's runs; empty if the comparison
/// is not by the runs' own metric.
fn single_runs(analysis: &Analysis, compared: &Compared) -> Vec<f64> {
    if compared.goal.is_some() {
        return Vec::new();
    }
    let [of_baseline, of_variant] = compared.sides.each_ref().map(|side| {
        let counts = move |run: &&RunResult| side.contains(&run.variant) && run.left_out.is_none();
        analysis.core.runs.iter().filter(counts).filter_map(|run| Some((run.block, run.value()?)))
    });
    let baseline: Vec<(u32, f64)> = of_baseline.collect();
    let values = |block: Option<u32>| -> Vec<f64> {
        let matching =
            baseline.iter().filter(|(other, _)| block.is_none_or(|block| block == *other));
        matching.map(|(_, value)| *value).collect()
    };
    let runs = of_variant.filter_map(|(block, value)| {
        let block = (!analysis.core.sequential).then_some(block);
        Some(value / median(&values(block))?)
    });
    runs.collect()
}
