//! Counts as tables: totals, verdicts, and differences by function.

use super::analysis::{Compared, Outcome, SummaryResult};
use crate::counts::{
    CountVerdict, Differences, Exact, FunctionCount, FunctionDifference, SHOWN, by_subsystem,
    signed,
};
use crate::document::measure::INSTRUCTIONS;
use crate::document::table::{Cell, Digits, Row, Rows};
use crate::document::{Block, Inline, Table};
use crate::short_names::short_names;
use crate::text::Tone;
use serde_json::json;

/// Maximum number of functions in compact output formats.
const FUNCTIONS: usize = 20;
/// Number of functions in mails.
const MAIL_FUNCTIONS: usize = 10;
/// First columns of the verdict table in machine-readable output.
const FIRST_KEYS: &[&str] = &[
    "baseline",
    "candidate",
    "instructions_baseline",
    "instructions_candidate",
    "difference",
    "change",
    "functions",
    "total_difference",
    "low",
    "high",
    "n_baseline",
    "n_candidate",
    "bursts",
    "runs_within",
    "bursts_within",
    "margin",
    "verdict",
    "reason",
];
const DIGITS: Digits = Digits::Decimals(1);
/// Smallest number of instructions that [`signed`] prints as nonzero.
const LEAST: f64 = 0.05;

/// Explains the rule behind the table of verdicts.
pub(crate) fn terms(margin: f64) -> String {
    let margin = Digits::Percent(1).print(margin);
    format!(
        "The difference is the sum over the functions that differ; all functions are those that \
         are background in neither variant. Brackets: the difference of all functions over all \
         pairs of runs. Two variants differ if every run of one lies on one side of every run of \
         the other, the gap is larger than the runs of either scatter, and a function differs, \
         with at least two runs each; they are equivalent if every pair of runs is within \
         {margin}. This is not a statistical test; the agreement of runs and bursts is printed \
         with it."
    )
}

/// Starts a table of variants: number of runs, and totals.
pub(crate) fn figures<'t, T>(
    variants: impl IntoIterator<Item = &'t T>,
    of: impl Fn(&'t T) -> (&'t str, Option<&'t SummaryResult>) + Copy,
) -> Rows<'t, T> {
    let summary = move |get: fn(&SummaryResult) -> f64| {
        move |variant: &'t T| Cell::number(of(variant).1.map(get), DIGITS)
    };
    Table::of(variants)
        .words("variant", move |variant| Cell::text(of(variant).0))
        .numbers("runs", move |variant| Cell::count(of(variant).1.map_or(0, |s| s.n)))
        .numbers("instructions per packet", summary(|s| s.median))
        .keys(&["median"])
        .numbers("minimum", summary(|s| s.min))
        .numbers("maximum", summary(|s| s.max))
        .with_words(move |variant, row| {
            row.words.push(of(variant).1.map_or("no runs yet".to_owned(), |summary| {
                let SummaryResult { n, median, min, max, .. } = summary;
                format!("{median:.1} instructions per packet (n = {n}, {min:.1} to {max:.1})")
            }));
        })
        .set(|table| table.measures = &[INSTRUCTIONS])
}

/// A table with one row per comparison, verdict first. Each of them is judged.
pub fn verdicts<'c>(comparisons: impl IntoIterator<Item = &'c Compared>) -> Block {
    verdicts_judged_if(|_| true, comparisons)
}

/// A table with one row per comparison, verdict first. Forms for tests contain only the comparisons
/// that are judged, as the exit code depends on no others.
pub fn verdicts_judged_if<'c>(
    is_judged: impl Fn(&Compared) -> bool + Copy,
    comparisons: impl IntoIterator<Item = &'c Compared>,
) -> Block {
    let of = |get: fn(&Exact) -> Cell| {
        move |compared: &Compared| exact(compared).map_or(Cell::None, get)
    };
    let hidden = |value: serde_json::Value| Cell::Values(Inline::default(), vec![value]);
    Table::of(comparisons)
        .words("variant", |compared| Cell::text(&compared.label))
        .keys(&["candidate"])
        .words("verdict", |compared| match (exact(compared), &compared.outcome) {
            (Some(exact), _) => Cell::Verdict(exact.verdict.name().into(), exact.shown.clone()),
            (None, Outcome::Unanswerable { reason }) => {
                Cell::Values(format!("no answer: {reason}").into(), Vec::new())
            }
            (None, _) => Cell::None,
        })
        .keys(&["verdict"])
        .numbers(
            "instructions per packet",
            of(|e| {
                let values = vec![json!(e.difference), json!(e.baseline), json!(e.candidate)];
                Cell::Values(signed(e.difference).into(), values)
            }),
        )
        .keys(&["difference", "instructions_baseline", "instructions_candidate"])
        .numbers("change", of(|e| Cell::number(e.change, Digits::Signed(2))))
        .numbers(
            "functions",
            of(|e| e.functions.as_ref().map_or(Cell::None, |f| Cell::count(f.differing.len()))),
        )
        .about("functions that differ; the difference is theirs")
        .numbers(
            "all functions",
            of(|e| {
                Cell::Values(signed(e.total_difference).into(), vec![e.total_difference.into()])
            }),
        )
        .keys(&["total_difference"])
        .words(
            "range",
            of(|e| {
                let [low, high] = [e.low, e.high].map(signed);
                Cell::Values(format!("[{low}, {high}]").into(), vec![json!(e.low), json!(e.high)])
            }),
        )
        .keys(&["low", "high"])
        .about("difference of all functions over the pairs of runs")
        .words("against", |compared| Cell::text(&compared.baseline_label))
        .keys(&["baseline"])
        .words(
            "agreement",
            of(|e| {
                let values = vec![
                    json!(e.n_a),
                    json!(e.n_b),
                    json!(e.bursts),
                    json!(e.runs_within),
                    json!(e.bursts_within),
                ];
                Cell::Values(e.agreement().into(), values)
            }),
        )
        .keys(&["n_baseline", "n_candidate", "bursts", "runs_within", "bursts_within"])
        .hidden("margin", move |c| exact(c).map_or(Cell::None, |e| hidden(json!(e.margin))))
        .hidden("reason", |compared| match &compared.outcome {
            Outcome::Unanswerable { reason } => Cell::text(reason),
            _ => Cell::None,
        })
        .with_words(move |compared, row: &mut Row| {
            row.name = format!("{} against {}", compared.label, compared.baseline_label);
            row.judgement = is_judged(compared).then(|| compared.judgement());
            match (exact(compared), &compared.outcome) {
                (Some(exact), _) => {
                    row.tone = match exact.verdict {
                        CountVerdict::Fewer => Tone::Better,
                        CountVerdict::More => Tone::Worse,
                        _ => Tone::Plain,
                    };
                    row.words.push(exact.sentence.clone());
                }
                (None, Outcome::Unanswerable { reason }) => {
                    row.tone = Tone::Doubt;
                    row.words.push(format!("no answer: {reason}"));
                }
                (None, _) => {}
            }
        })
        .set(|table| {
            table.name = Some("verdicts");
            table.in_words = true;
            table.first_keys = FIRST_KEYS;
        })
        .block()
}

fn exact(compared: &Compared) -> Option<&Exact> {
    match &compared.outcome {
        Outcome::Counted(exact) => Some(exact),
        _ => None,
    }
}

/// Returns differences between two variants by function and by subsystem; `None` if only totals are
/// known.
pub(crate) fn differences(compared: &Compared, with_pictures: bool) -> Option<Block> {
    let found = exact(compared)?.functions.as_ref()?;
    let pictures = [
        ("Differential flame graph", &found.file),
        ("Differential flame graph of calls", &found.calls),
    ];
    let files = pictures.into_iter().filter_map(|(what, file)| Some((what, file.as_ref()?)));
    let linked = files
        .filter(|_| with_pictures)
        .fold(Inline::default(), |linked, (what, file)| linked.link(what, file).text(". "));
    let mut blocks = vec![Block::text(linked.text(sentence(found)))];
    blocks.extend(functions_that_differ(compared, usize::MAX)?);
    let parts: Vec<FunctionDifference> =
        found.subsystems.iter().filter(|part| part.difference.abs() >= LEAST).cloned().collect();
    if !parts.is_empty() {
        blocks.push(table(compared, "subsystem", "subsystems", &parts));
    }
    Some(Block::section(format!("{} against {}", compared.label, compared.baseline_label), blocks))
}

/// Returns the counts for a mail: one table of comparisons with short names, and the functions that
/// differ most in the comparison with the largest difference.
pub fn brief(comparisons: &[Compared]) -> Vec<Block> {
    let labels: Vec<&str> =
        comparisons.iter().flat_map(|c| [c.label.as_str(), c.baseline_label.as_str()]).collect();
    let names = short_names(&labels);
    let rows: Vec<(&Compared, &[String])> = comparisons.iter().zip(names.chunks(2)).collect();
    let of = |get: fn(&Exact) -> Cell| {
        move |row: &(&Compared, &[String])| exact(row.0).map_or(Cell::None, get)
    };
    let one_baseline = names.chunks(2).all(|pair| pair[1] == names[1]);
    let against = if one_baseline { names.get(1) } else { None };
    let title = against.map_or("variant".to_owned(), |baseline| format!("against {baseline}"));
    let table = Table::of(&rows)
        .words(title, |row: &(&Compared, &[String])| Cell::text(row.1[0].as_str()))
        .words("against", |row| Cell::text(row.1[1].as_str()))
        .when(!one_baseline)
        .words("verdict", of(|exact| Cell::text(exact.verdict.name())))
        .numbers("instructions", of(|exact| Cell::text(signed(exact.difference))))
        .numbers("change", of(|exact| Cell::number(exact.change, Digits::Signed(2))))
        .block();
    let size = |row: &&(&Compared, &[String])| {
        exact(row.0).map_or(0, |exact| exact.difference.abs().round() as u64)
    };
    let functions = rows.iter().max_by_key(size).and_then(|(compared, names)| {
        let differing = &exact(compared)?.functions.as_ref()?.differing;
        let functions = Table::of(&differing[..differing.len().min(MAIL_FUNCTIONS)])
            .words("function", |f: &FunctionDifference| Cell::text(f.name.as_str()))
            .numbers("before", |f| Cell::number(f.before, DIGITS))
            .numbers("after", |f| Cell::number(f.after, DIGITS))
            .numbers("difference", |f| difference(f.difference))
            .block();
        let count = differing.len();
        let title = format!("{} against {}: {count} functions differ", names[0], names[1]);
        (count > 0).then(|| Block::section(title, vec![functions]))
    });
    std::iter::once(table).chain(functions).collect()
}

/// Returns the functions that differ between two variants, at most `limit`, and the sum of the
/// others; `None` if only totals are known.
pub fn functions_that_differ(compared: &Compared, limit: usize) -> Option<Vec<Block>> {
    let exact = exact(compared)?;
    let found = exact.functions.as_ref()?;
    let shown = &found.differing[..found.differing.len().min(limit)];
    let mut blocks = Vec::new();
    if !shown.is_empty() {
        blocks.push(table(compared, "function", "functions", shown));
    }
    let rest = rest(exact, found, shown.len());
    if !rest.is_empty() {
        blocks.push(Block::text(rest));
    }
    Some(blocks)
}

fn table(
    compared: &Compared,
    kind: &str,
    name: &'static str,
    list: &[FunctionDifference],
) -> Block {
    let (before, after) = (&compared.baseline_label, &compared.label);
    let mut rows = Table::of(list)
        .hidden("baseline", |_| Cell::text(before.as_str()))
        .hidden("candidate", |_| Cell::text(after.as_str()))
        .words(kind, |f: &FunctionDifference| Cell::text(f.name.as_str()));
    if kind == "function" {
        rows = rows.words("subsystem", |f| Cell::text(f.subsystem.as_str())).spare();
    }
    rows.numbers(before, |f| Cell::number(f.before, DIGITS))
        .keys(&["before"])
        .numbers(after, |f| Cell::number(f.after, DIGITS))
        .keys(&["after"])
        .numbers("difference", |f| difference(f.difference))
        .numbers("atomic", |f| difference(f.atomics))
        .spare()
        .set(|table| table.name = Some(name))
        .block()
}

fn difference(number: f64) -> Cell {
    Cell::Values(signed(number).into(), vec![number.into()])
}

/// States the number of differing functions and the sum of their differences.
fn sentence(found: &Differences) -> String {
    match found.differing.len() {
        0 => format!("No function differs by {SHOWN} instructions and more than it scatters."),
        1 => format!(
            "One function differs by {SHOWN} instructions per packet or more: {}.",
            signed(found.named())
        ),
        many => format!(
            "{many} functions differ by {SHOWN} instructions per packet or more: {} in total.",
            signed(found.named())
        ),
    }
}

/// Summarises the functions that the table omits, so that all parts add up to the difference.
fn rest(exact: &Exact, found: &Differences, shown: usize) -> String {
    let mut sentences = Vec::new();
    if let more @ [_, ..] = &found.differing[shown..] {
        let sum: f64 = more.iter().map(|function| function.difference).sum();
        sentences.push(format!("{} more functions differ: {} in total.", more.len(), signed(sum)));
    }
    if !found.scattering.is_empty() {
        let each: Vec<String> = found
            .scattering
            .iter()
            .take(5)
            .map(|f| format!("{} ({})", f.name, signed(f.difference)))
            .collect();
        let more = found.scattering.len().saturating_sub(each.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        sentences.push(format!("Within noise: {}{more}.", each.join(", ")));
    }
    if found.others > 0 {
        let (others, sum) = (found.others, signed(found.others_sum));
        sentences.push(match others {
            1 => format!("1 other function differs by less than {SHOWN}: {sum}."),
            _ => format!(
                "The other {others} functions differ by less than {SHOWN} each: {sum} in total."
            ),
        });
    }
    let rest = exact.total_difference - found.named();
    if !found.differing.is_empty() {
        let (named, total) = (signed(found.named()), signed(exact.total_difference));
        let rest = signed(rest);
        sentences
            .push(format!("In the functions that differ {named}, in all others {rest}: {total}."));
    }
    if exact.half_background.abs() >= SHOWN {
        sentences.push(format!(
            "Functions that are background in one of the two are in its total only: {}.",
            signed(exact.half_background)
        ));
    }
    sentences.join(" ")
}

/// Returns tables of the most expensive functions and of the subsystems of one variant.
pub(crate) fn functions(functions: &[FunctionCount]) -> Vec<Block> {
    let total: f64 = functions.iter().map(|function| function.instructions).sum();
    let shown = functions.iter().filter(|function| function.instructions >= SHOWN);
    let by_function = Table::of(shown)
        .words("function", |f: &FunctionCount| Cell::text(f.name.as_str()))
        .words("subsystem", |f| Cell::text(f.subsystem.as_str()));
    let subsystems = by_subsystem(functions);
    let by_part =
        Table::of(&subsystems).words("subsystem", |f: &FunctionCount| Cell::text(f.name.as_str()));
    vec![
        shares(by_part, total).block(),
        shares(by_function, total).set(|table| table.brief = Some(FUNCTIONS)).block(),
    ]
}

fn shares(rows: Rows<'_, FunctionCount>, total: f64) -> Rows<'_, FunctionCount> {
    let share = move |f: &FunctionCount| f.instructions / total.max(f64::MIN_POSITIVE);
    rows.numbers("instructions", |f| Cell::number(f.instructions, DIGITS))
        .numbers("share", move |f| Cell::number(share(f), Digits::Percent(1)))
        .numbers("atomic", |f| Cell::number(f.atomics, DIGITS))
        .numbers("bytes", |f| Cell::number(f.bytes, DIGITS))
}
