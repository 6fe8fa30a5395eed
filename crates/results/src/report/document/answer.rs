//! The first screen of a report: the result, its certainty, its place in the code, and the
//! experiment. It claims no more than the verdicts.

mod places;

use crate::counts::{CountVerdict, Exact};
use crate::document::{Block, Inline};
use crate::format::{listed, runs_of};
use crate::report::analysis::{Answer, Compared, Core, Outcome};
use crate::report::results::Analysis;
use crate::report::rows::reasons;
use crate::stats::Verdict;
use crate::stats::comparison::DoubtEvidence;
use crate::text::Tone;
use fwdlab_model::design::MethodKind;
use fwdlab_model::units::format_pps;
pub(super) use places::places;

/// Maximum number of levels listed by name.
const LEVELS: usize = 8;

/// States the result in a sentence or two.
pub(super) fn found(analysis: &Analysis) -> Block {
    let text = match (of_floods(analysis), analysis.core.comparisons.as_slice()) {
        (Some(floods), _) => Inline::default().strong(floods),
        (None, []) => {
            Inline::default().strong(rates(analysis, "; no variant is compared with another"))
        }
        (None, [one]) => single(analysis, one),
        (None, many) => unanswered(analysis, many).unwrap_or_else(|| several(analysis, many)),
    };
    let distrusted: Vec<String> = analysis
        .core
        .warnings
        .iter()
        .filter(|group| group.fatal)
        .map(|group| group.kind.clone())
        .collect();
    let text = match distrusted.is_empty() {
        true => text,
        false => {
            let mut warnings = analysis.core.warnings.iter().flat_map(|group| &group.warnings);
            let why = match warnings.find(|warning| warning.evidence.is_translation()) {
                Some(warning) => format!("Not to be trusted: {}.", warning.sentence),
                None => format!("Not to be trusted ({}).", listed(&distrusted)),
            };
            let mut marked = Inline::default().strong(why).text(" ");
            marked.0.extend(text.0);
            marked
        }
    };
    Block::Paragraph(text, Tone::Heading)
}

/// States the rates if no comparison has a result; for several variants followed by `besides`.
fn rates(analysis: &Analysis, besides: &str) -> String {
    let shown = |value: f64| match analysis.core.figure.is_rate() {
        true => format_pps(value),
        false => format!("{value:.1} instructions per packet"),
    };
    let measured = analysis
        .core
        .variants
        .iter()
        .filter_map(|variant| Some((variant, variant.summary.as_ref()?)));
    let mut measured: Vec<_> = measured.collect();
    measured.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    match measured.as_slice() {
        [] => match analysis
            .core
            .runs
            .iter()
            .find_map(|run| Some((&run.label, run.left_out.as_ref()?)))
        {
            Some((label, why)) => format!("No run produced a result. {label}: {why}."),
            None => "Nothing is measured yet.".to_owned(),
        },
        [(variant, summary)] => {
            let (median, n) = (shown(summary.median), summary.n);
            let range = format!("{} to {}", shown(summary.min), shown(summary.max));
            match n {
                1 => format!("{}: {median} in its one run.", variant.label),
                n => format!("{}: median {median} of {n} runs ({range}).", variant.label),
            }
        }
        [(least, low), .., (most, high)] => format!(
            "{} variants, {} ({}) to {} ({}){besides}.",
            measured.len(),
            shown(low.median),
            least.label,
            shown(high.median),
            most.label
        ),
    }
}

fn single(analysis: &Analysis, compared: &Compared) -> Inline {
    let pair = format!("{} against {}: ", compared.candidate(), compared.baseline_label);
    match &compared.outcome {
        Outcome::Compared(answer) => Inline::default()
            .strong(format!("{pair}{}.", answer.shown.verdict))
            .text(format!(" {}{}.", effect(answer), medians(analysis, compared))),
        Outcome::Counted(exact) => Inline::default()
            .strong(format!("{pair}{}.", exact.shown))
            .text(format!(" {}.", counted(exact))),
        Outcome::Unanswerable { reason } => {
            Inline::default().strong(format!("{pair}no answer yet.")).text(format!(" {reason}."))
        }
    }
}

/// States the rates, and the reason why no comparison has a result; `None` if one has.
fn unanswered(analysis: &Analysis, all: &[Compared]) -> Option<Inline> {
    let has_none = |one: &Compared| matches!(one.outcome, Outcome::Unanswerable { .. });
    if !all.iter().all(has_none) {
        return None;
    }
    let why = match reasons(all).as_slice() {
        [(reason, _)] => format!(": {reason}"),
        _ => "; the reasons are listed below".to_owned(),
    };
    let text = format!(" {} comparisons are without an answer{why}.", all.len());
    Some(Inline::default().strong(rates(analysis, "")).text(text))
}

/// States the results of floods, if they are the experiment's answer: traffic that the device carries
/// without a flood has no rates to compare.
pub(super) fn of_floods(analysis: &Analysis) -> Option<String> {
    let has_none = |one: &Compared| matches!(one.outcome, Outcome::Unanswerable { .. });
    let method = analysis.method.as_ref().filter(|method| method.kind == MethodKind::Flood)?;
    let is_known = method.borne.iter().any(|summary| summary.greatest.is_some());
    (is_known && analysis.core.comparisons.iter().all(has_none))
        .then(|| method.sentences().join(" "))
}

/// States the number of comparisons by verdict, and the largest effect.
fn several(analysis: &Analysis, all: &[Compared]) -> Inline {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for compared in all {
        let word = match &compared.outcome {
            Outcome::Compared(answer) => answer.verdict.to_string(),
            Outcome::Counted(exact) => exact.verdict.name().to_owned(),
            Outcome::Unanswerable { .. } => "without an answer".to_owned(),
        };
        match counts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, n)) => *n += 1,
            None => counts.push((word, 1)),
        }
    }
    let order = ["better", "worse", "fewer", "more", "equivalent", "inconclusive", "not judged"];
    let place = |word: &str| order.iter().position(|known| *known == word).unwrap_or(order.len());
    counts.sort_by_key(|(word, _)| place(word));
    let first = match counts.as_slice() {
        [(word, n)] if ["fewer", "more"].contains(&word.as_str()) => {
            format!("All {n} variants execute {word} instructions than their baselines.")
        }
        counts => {
            let counts: Vec<String> =
                counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
            format!("{} comparisons: {}.", all.len(), listed(&counts))
        }
    };
    let text = Inline::default().strong(first);
    let size = |compared: &Compared| match &compared.outcome {
        Outcome::Compared(answer) => match answer.verdict {
            Verdict::Better | Verdict::Worse => Some(answer.comparison.ratio.ln().abs()),
            Verdict::Equivalent | Verdict::Inconclusive | Verdict::NotJudged => None,
        },
        Outcome::Counted(exact) => match exact.verdict {
            CountVerdict::Fewer | CountVerdict::More => Some(exact.difference.abs()),
            _ => None,
        },
        Outcome::Unanswerable { .. } => None,
    };
    let found = all.iter().filter_map(|compared| Some((compared, size(compared)?)));
    let largest = found.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(compared, _)| compared);
    match largest {
        Some(largest) => {
            let mut text = text.text(" Largest: ");
            text.0.extend(single(analysis, largest).0);
            text
        }
        None => match (not_judged(all), least_detectable(all)) {
            (Some(why), _) => text.text(why),
            (None, Some(mde)) => {
                let answered = all.iter().filter(|one| one.outcome.is_answered()).count();
                let of_answered = match answered == all.len() {
                    true => String::new(),
                    false => format!(", in the {answered} with an answer"),
                };
                text.text(format!(
                    " No difference was shown; of true differences of {mde} nine of ten would have \
                     been found{of_answered}."
                ))
            }
            (None, None) => text,
        },
    }
}

/// Explains why verdicts are withheld: most of the runs are doubtful. `None` if all comparisons are
/// judged. Makes no claim about the size of differences.
fn not_judged(all: &[Compared]) -> Option<String> {
    let doubts = all.iter().filter_map(|compared| match &compared.outcome {
        Outcome::Compared(answer) => answer.comparison.doubtful,
        _ => None,
    });
    let doubts: Vec<DoubtEvidence> = doubts.collect();
    let example = doubts.first()?;
    Some(format!(" Why they are not judged: {example}. The table has the estimates."))
}

/// Returns the largest of the minimum detectable effects.
fn least_detectable(all: &[Compared]) -> Option<String> {
    let answers = all.iter().filter_map(|compared| match &compared.outcome {
        Outcome::Compared(answer) => Some(answer),
        _ => None,
    });
    let widest = answers.max_by(|a, b| a.comparison.mde.total_cmp(&b.comparison.mde))?;
    Some(crate::format::percent(widest.comparison.mde, 1))
}

fn effect(answer: &Answer) -> String {
    let comparison = &answer.comparison;
    let together = match comparison.family {
        n if n > 1 && comparison.is_joint() => format!(" of all {n} together"),
        _ => String::new(),
    };
    let (effect, interval) = (&answer.shown.effect, &answer.shown.interval);
    let text = format!("{effect}, {} % interval{together} {interval}", comparison.confidence);
    match answer.verdict {
        Verdict::Inconclusive => {
            format!("{text}; nine of ten such experiments find {}", answer.shown.mde)
        }
        _ => text,
    }
}

/// Returns the medians of both, if the comparison uses the runs' metric.
fn medians(analysis: &Analysis, compared: &Compared) -> String {
    let of = |variant: usize| analysis.median(compared, variant);
    match (of(compared.baseline), of(compared.variant)) {
        (Some(before), Some(after)) => {
            let counted = [compared.baseline, compared.variant].map(|variant| {
                let variant = analysis.core.variants.get(variant)?;
                Some((variant.mean_median?, variant.counted(analysis.core.figure).is_some()))
            });
            let counted = match counted {
                [Some((a, is_other_a)), Some((b, is_other_b))] if is_other_a || is_other_b => {
                    format!("; {} and {} counted", format_pps(a), format_pps(b))
                }
                _ => String::new(),
            };
            format!(" (medians {} and {}{counted})", format_pps(before), format_pps(after))
        }
        _ => String::new(),
    }
}

fn counted(exact: &Exact) -> String {
    format!("{} ({:.1} and {:.1})", exact.differences(), exact.baseline, exact.candidate)
}

/// Returns certainty, place in the code, and design of the experiment, as one list item each.
pub(super) fn beside(analysis: &Analysis) -> Vec<Inline> {
    let mut points: Vec<Inline> = Vec::new();
    points.extend(places(analysis).into_iter().map(|text| labelled("Where in the code", text)));
    points.extend(layouts(analysis).into_iter().map(|text| labelled("Code layout", text)));
    points.push(labelled("How sure", surety(analysis)));
    points.extend(analysis.beds.iter().map(|beds| labelled("Beds", beds.sentences().join("; "))));
    points.push(labelled("Varied", varied(analysis)));
    let lines = analysis.core.setup_brief.join("; ");
    points.push(labelled("Measured on", lines));
    points.retain(|point| point.0.len() > 1);
    points
}

fn labelled(label: &str, text: String) -> Inline {
    match text.as_str() {
        "" => Inline::default(),
        _ => Inline::default().strong(format!("{label}:")).text(format!(" {text}")),
    }
}

/// Lists the factors with their levels.
fn varied(analysis: &Analysis) -> String {
    let factors = analysis.core.factors.iter().map(|factor| {
        let levels = &factor.levels;
        let some = levels.iter().take(LEVELS).cloned().collect::<Vec<String>>().join(", ");
        let more = levels.len().saturating_sub(LEVELS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{} ({some}{more})", factor.shown)
    });
    factors.collect::<Vec<String>>().join(", ")
}

/// Summarises runs, order and warnings.
fn surety(analysis: &Analysis) -> String {
    let Core { runs_recorded, runs_planned, blocks, .. } = &analysis.core;
    let runs = match runs_recorded == runs_planned {
        true => runs_of(*runs_recorded),
        false => format!("{runs_recorded} of {}", runs_of(*runs_planned)),
    };
    let order = match (analysis.core.alternation, analysis.core.sequential) {
        (true, _) => format!("levels switched within {blocks} streams"),
        (_, true) => "variant after variant, so that drift looks like a difference".to_owned(),
        _ if *blocks == 1 => "1 randomised block".to_owned(),
        _ => format!("{blocks} randomised blocks"),
    };
    let doubtful: usize = {
        let mut runs: Vec<u32> =
            analysis.core.warnings.iter().flat_map(|g| &g.warnings).map(|w| w.run).collect();
        runs.sort_unstable();
        runs.dedup();
        runs.len()
    };
    let kinds: Vec<String> =
        analysis.core.warnings.iter().map(|group| group.kind.clone()).collect();
    let doubts = match doubtful {
        0 => "no warnings".to_owned(),
        n => format!("warnings in {n} of {} ({})", runs_of(*runs_recorded), listed(&kinds)),
    };
    let diagnoses = match analysis.diagnostics.diagnoses.len() {
        0 => String::new(),
        1 => "; 1 remark of the diagnostics".to_owned(),
        n => format!("; {n} remarks of the diagnostics"),
    };
    format!("{runs}, {order}; {doubts}{diagnoses}")
}

/// Describes the effect of code layout, if revisions were compared by builds.
fn layouts(analysis: &Analysis) -> Vec<String> {
    let all = &analysis.core.comparisons;
    let sentences = all.iter().filter_map(|compared| match &compared.outcome {
        Outcome::Compared(answer) => {
            let sentence = answer.comparison.builds_sentence()?;
            Some(format!(
                "{} against {}: {sentence}",
                compared.candidate(),
                compared.baseline_label
            ))
        }
        _ => None,
    });
    sentences.collect()
}
