//! Comparisons as a table, for reports and `fwdlab compare`.

use super::analysis::{Answer, Compared, ComparisonText, Outcome, SummaryResult};
use super::counted;
use super::rows::{Rates, rows};
use crate::document::table::{Cell, Digits, Row, Rows};
use crate::document::{Block, Table};
use crate::format::percent;
use crate::quantity::Quantity;
use crate::stats::{Scope, Verdict};
use crate::text::Tone;
use serde_json::json;

/// First columns of the verdict table in machine-readable output.
const FIRST_KEYS: &[&str] = &[
    "baseline",
    "candidate",
    "ratio",
    "low",
    "high",
    "p",
    "p_adjusted",
    "n_baseline",
    "n_candidate",
    "blocks",
    "left_out",
    "mde",
    "confidence",
    "margin",
    "family",
    "adjustment",
    "method",
    "scope",
    "verdict",
    "reason",
];

/// Explains the table in a sentence or two.
pub(crate) fn terms(confidence: f64, margin: f64, adjustment: &str, comparisons: usize) -> String {
    let family = match comparisons {
        1 => ", 1 comparison".to_owned(),
        n => format!("; p-values adjusted ({adjustment}) for all {n} comparisons of this table"),
    };
    let margin = percent(margin, 1);
    format!(
        "Confidence {confidence} %, margin of equivalence {margin}{family}. MDE: the true effect \
         that nine of ten such experiments would find."
    )
}

/// Returns the comparisons for terminals and for pages.
pub(crate) fn compared(
    comparisons: &[Compared],
    rates: Rates<'_>,
    quantity: &Quantity,
) -> Vec<Block> {
    let whole = vec![verdicts_in(comparisons, rates, true, quantity)];
    let is_counted = |compared: &Compared| matches!(compared.outcome, Outcome::Counted(_));
    match comparisons.iter().any(is_counted) {
        true => whole,
        false => vec![Block::Brief { brief: rows(comparisons, rates, quantity), whole }],
    }
}

/// Describes the method of a comparison and its secondary results; `None` without a result.
pub(crate) fn how(compared: &Compared) -> Option<String> {
    let Outcome::Compared(answer) = &compared.outcome else { return None };
    let method = format!("{}.", answer.shown.method);
    Some(match answer.shown.beside.as_str() {
        "" => method,
        secondary => format!("{method} Secondary: {secondary}."),
    })
}

/// Returns a table with one row per comparison, verdict first, with both median rates; with
/// `with_how` it also describes each method.
pub(crate) fn verdicts(comparisons: &[Compared], rates: Rates<'_>, with_how: bool) -> Block {
    verdicts_in(comparisons, rates, with_how, &Quantity::PACKET_RATE)
}

fn verdicts_in(
    comparisons: &[Compared],
    rates: Rates<'_>,
    with_how: bool,
    quantity: &Quantity,
) -> Block {
    if comparisons.iter().any(|compared| matches!(compared.outcome, Outcome::Counted(_))) {
        return counted::verdicts(comparisons);
    }
    let of = |get: fn(&Answer) -> Cell| {
        move |compared: &Compared| match &compared.outcome {
            Outcome::Compared(answer) => get(answer),
            Outcome::Counted(_) | Outcome::Unanswerable { .. } => Cell::None,
        }
    };
    // The usual scope, across starts of the device, needs no column.
    let is_usual = comparisons.iter().all(|compared| match &compared.outcome {
        Outcome::Compared(answer) => answer.comparison.scope == Scope::AcrossStarts,
        _ => true,
    });
    let all = comparisons.iter().flat_map(rates).flatten();
    let (unit, scale) = quantity.scale(all.fold(0.0, f64::max));
    let rated = move |value: Option<f64>| Quantity::scaled(value, scale);
    let [candidate, baseline] = match quantity.is_packet_rate() {
        true => [
            ("candidate_pps", "median rate of the variant"),
            ("baseline_pps", "median rate of its baseline"),
        ],
        false => [
            ("candidate_value", "median value of the variant"),
            ("baseline_value", "median value of the baseline"),
        ],
    };
    Table::of(comparisons)
        .words("variant", |compared| {
            Cell::Values(compared.candidate().into(), vec![compared.label.clone().into()])
        })
        .keys(&["candidate"])
        .words("verdict", |compared| match &compared.outcome {
            Outcome::Compared(answer) => {
                Cell::Verdict(answer.verdict.to_string(), answer.shown.verdict.clone())
            }
            Outcome::Unanswerable { reason } => {
                Cell::Values(format!("no answer: {reason}").into(), Vec::new())
            }
            Outcome::Counted(_) => Cell::None,
        })
        .keys(&["verdict"])
        .numbers("effect", of(|a| shown(&a.shown.effect, json!([a.comparison.ratio]))))
        .keys(&["ratio"])
        .words(
            "interval",
            of(|a| shown(&a.shown.interval, json!([a.comparison.low, a.comparison.high]))),
        )
        .keys(&["low", "high"])
        .numbers(unit, |compared| rated(rates(compared)[1]))
        .keys(&[candidate.0])
        .about(candidate.1)
        .numbers(format!("baseline {unit}"), |compared| rated(rates(compared)[0]))
        .keys(&[baseline.0])
        .about(baseline.1)
        .numbers("MDE", of(|a| shown(&a.shown.mde, json!([a.comparison.mde]))))
        .keys(&["mde"])
        .about("minimum detectable effect: nine of ten such experiments would find a true effect of this size")
        .words("against", |compared| Cell::text(&compared.baseline_label))
        .keys(&["baseline"])
        .numbers("p", of(|a| shown(&p(a), json!([a.comparison.p_adjusted, a.comparison.p]))))
        .keys(&["p_adjusted", "p"])
        .about("p-value adjusted for all comparisons together; in brackets before adjustment")
        .numbers("n (blocks)", of(|a| shown(&n(a), json!([
            a.comparison.n_a,
            a.comparison.n_b,
            a.comparison.blocks
        ]))))
        .keys(&["n_baseline", "n_candidate", "blocks"])
        .about("runs of the baseline and of the variant, and the blocks that hold both")
        .words("scope", of(|a| Cell::text(a.comparison.scope.to_string())))
        .keys(&["scope"])
        .when(!is_usual)
        .about("across starts: for starts of the device like those measured; this start: for that one alone")
        .hidden("left_out", of(|a| Cell::count(a.comparison.left_out)))
        .hidden("confidence", of(|a| shown("", json!([a.comparison.confidence]))))
        .hidden("margin", of(|a| shown("", json!([a.comparison.margin]))))
        .hidden("family", of(|a| Cell::count(a.comparison.family)))
        .hidden("adjustment", of(|a| Cell::text(a.comparison.adjustment.to_string())))
        .hidden("method", of(|a| Cell::text(a.comparison.method.to_string())))
        .hidden("goal", |compared| compared.goal.as_ref().map_or(Cell::None, Cell::text))
        .hidden("reason", |compared| match &compared.outcome {
            Outcome::Unanswerable { reason } => Cell::text(reason),
            _ => Cell::None,
        })
        .with_words(describe)
        .set(|table| {
            table.name = Some("verdicts");
            table.in_words = true;
            table.asides = "Method, and secondary estimates";
            table.first_keys = FIRST_KEYS;
            table.measures = quantity.ratio();
            if !with_how {
                table.rows.iter_mut().for_each(|row| row.aside.clear());
            }
        })
        .block()
}

fn shown(text: &str, values: serde_json::Value) -> Cell {
    Cell::Values(text.into(), values.as_array().cloned().unwrap_or_default())
}

/// Formats the adjusted p-value, followed by the unadjusted one if it differs.
fn p(answer: &Answer) -> String {
    let ComparisonText { p, p_adjusted, .. } = &answer.shown;
    if p == p_adjusted { p.clone() } else { format!("{p_adjusted} ({p})") }
}

/// Formats the runs of both sides and their blocks.
fn n(answer: &Answer) -> String {
    let ComparisonText { n, blocks, .. } = &answer.shown;
    if blocks == "-" { n.clone() } else { format!("{n} ({blocks})") }
}

fn describe(compared: &Compared, row: &mut Row) {
    row.judgement = Some(compared.judgement());
    row.name = format!("{} against {}", compared.candidate(), compared.baseline_label);
    match &compared.outcome {
        Outcome::Compared(answer) => {
            row.tone = match answer.verdict {
                Verdict::Better => Tone::Better,
                Verdict::Worse => Tone::Worse,
                Verdict::Equivalent | Verdict::Inconclusive | Verdict::NotJudged => Tone::Plain,
            };
            row.words.push(answer.sentence.clone());
            row.is_same = !matches!(answer.verdict, Verdict::Better | Verdict::Worse);
            row.aside = how(compared).unwrap_or_default();
            if !answer.shown.beside.is_empty() {
                row.words.push(format!("beside it: {}", answer.shown.beside));
            }
        }
        Outcome::Unanswerable { reason } => {
            row.tone = Tone::Doubt;
            row.words.push(format!("no answer: {reason}"));
        }
        Outcome::Counted(_) => {}
    }
}

/// Starts a table of variants: number of runs, and rates.
pub(crate) fn variants<'t, T>(
    variants: impl IntoIterator<Item = &'t T>,
    of: impl Fn(&'t T) -> (&'t str, Option<&'t SummaryResult>) + Copy,
) -> Rows<'t, T> {
    variants_in(variants, of, &Quantity::PACKET_RATE)
}

/// Starts a table of variants: number of runs, and values.
pub(crate) fn variants_in<'t, T>(
    variants: impl IntoIterator<Item = &'t T>,
    of: impl Fn(&'t T) -> (&'t str, Option<&'t SummaryResult>) + Copy,
    quantity: &Quantity,
) -> Rows<'t, T> {
    let value = |get: fn(&SummaryResult) -> f64| {
        move |variant: &'t T| of(variant).1.map_or(Cell::None, |s| quantity.cell(get(s)))
    };
    let cv = |s: &SummaryResult| Cell::number(s.cv, Digits::Percent(2));
    Table::of(variants)
        .words("variant", move |variant| Cell::text(of(variant).0))
        .numbers("runs", move |variant| Cell::count(of(variant).1.map_or(0, |s| s.n)))
        .numbers("median", value(|s| s.median))
        .numbers("minimum", value(|s| s.min))
        .numbers("maximum", value(|s| s.max))
        .numbers("CV", move |variant| of(variant).1.map_or(Cell::None, cv))
        .with_words(move |variant, row| {
            let text = of(variant).1.map_or("no runs yet".to_owned(), |summary| {
                let cv = summary.cv.map_or("-".to_owned(), |cv| percent(cv, 1));
                let median = quantity.print(summary.median);
                format!("{median} (n = {}, CV {cv})", summary.n)
            });
            row.words.push(text);
        })
        .set(|table| table.measures = quantity.measure())
}
