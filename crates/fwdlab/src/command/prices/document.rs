//! Document of the prices.

use super::catalogue::Feature;
use super::findings::{FeaturePrices, Findings, Kernel, Price, Slope};
use super::history::is_beyond_margin;
use super::history_document::{self, functions as named, signed, without_negative_zero};
use super::interactions::{Additivity, Interaction};
use crate::command::counted_guest::exact;
use fwdlab_model::words::quote;
use fwdlab_results::counts::{FunctionDifference, NOT_TIME};
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, DetailLevel, Document, Inline, Remark, Table};
use fwdlab_results::report::counted;
use serde::Serialize;
use std::collections::BTreeMap;

/// Functions shown per feature.
const FUNCTIONS: usize = 10;

/// Meaning of a count, on pages.
const METHOD: &str = "A count is the number of instructions that the unmodified kernel executes in \
                      QEMU per packet, from driver to driver: the median of the bursts, without the \
                      functions that the idle guest executes. It does not depend on the host or its \
                      load, and explains a difference by functions. For a rate, measure with ";

/// Meaning of the commands, on pages.
const REPEATING: &str = "Each command repeats a row. It does not count again what is stored: give an \
                         empty directory with ";

/// The document: prices, slopes, absent features, and each feature by function.
pub(super) fn document(findings: &Findings) -> Document<'_> {
    let mut blocks = vec![Block::remark(Remark::Caption, NOT_TIME), prices(findings)];
    if !findings.slopes.is_empty() {
        blocks.push(Block::section("Cost of each further unit", vec![slopes(findings)]));
    }
    if findings.kernels.len() > 1 {
        let figure = findings.history.as_ref().map(|of| history_document::figure(findings, of));
        let plain = std::iter::once(kernels(findings)).chain(figure);
        blocks.push(Block::section("Plain forwarding", plain.collect()));
        blocks.extend(findings.history.as_ref().map(history_document::section));
        blocks.extend(changes(findings));
        let all = Block::section("All comparisons", vec![counted::verdicts(&findings.comparisons)]);
        let all = if findings.history.is_some() { all.folded() } else { all };
        blocks.push(Block::Where(DetailLevel::Page, vec![all]));
    }
    if !findings.interactions.is_empty() {
        blocks.push(Block::section("Pairs of features", interactions(findings)));
    }
    blocks.extend(absent(findings));
    blocks.extend(doubts(findings));
    let mut features = vec![
        Block::text(Inline::from(METHOD).code("fwdlab run").text(".")),
        Block::text(Inline::from(REPEATING).code("--out").text(".")),
    ];
    features.extend(findings.history.as_ref().and_then(history_document::legend));
    features.extend(findings.features.iter().filter_map(|feature| details(findings, feature)));
    let features = Block::section("Features by function", features);
    blocks.push(Block::Where(DetailLevel::Page, vec![features]));
    Document {
        title: "Prices of forwarding features, instructions per packet".to_owned(),
        conclusion: vec![Block::text(conclusion(findings))],
        blocks,
        data: findings,
        version: 1,
    }
}

/// The features of a catalogue, by group.
#[derive(Serialize)]
pub(super) struct FeatureList {
    features: Vec<Listed>,
}

/// A feature with all of its values.
#[derive(Serialize)]
struct Listed {
    system: &'static str,
    name: String,
    group: String,
    values: Vec<String>,
    question: String,
}

impl FeatureList {
    pub(super) fn new(features: &[(&'static str, Vec<Feature>)]) -> FeatureList {
        let mut listed: Vec<Listed> = Vec::new();
        let all = features.iter().flat_map(|(system, of)| of.iter().map(|one| (*system, one)));
        for (system, Feature { base, group, value, question, .. }) in all {
            let values = Some(value.clone()).filter(|value| !value.is_empty());
            let same = |last: &&mut Listed| last.name == *base && last.system == system;
            match listed.last_mut().filter(same) {
                Some(last) => last.values.extend(values),
                None => listed.push(Listed {
                    system,
                    name: base.clone(),
                    group: group.clone(),
                    values: values.into_iter().collect(),
                    question: question.replace("$N", "N"),
                }),
            }
        }
        FeatureList { features: listed }
    }

    /// The document: a section per group.
    pub(super) fn document(&self) -> Document<'_> {
        let line = |one: &Listed| match one.values.is_empty() {
            true => format!("{}: {}", one.name, one.question),
            false => format!("{} (N = {}): {}", one.name, one.values.join(", "), one.question),
        };
        let place = |one: &Listed| match one.system {
            "" => one.group.clone(),
            system => format!("{system}: {}", one.group),
        };
        let groups = self.features.chunk_by(|a, b| place(a) == place(b));
        let section = |group: &[Listed]| {
            Block::section(place(&group[0]), vec![Block::list(group.iter().map(line))])
        };
        Document {
            title: "Features with a price".to_owned(),
            conclusion: Vec::new(),
            blocks: groups.map(section).collect(),
            data: self,
            version: 1,
        }
    }
}

/// A row per feature, a column per kernel.
fn prices(findings: &Findings) -> Block {
    let mut table = Table::of(&findings.features)
        .words("feature", |feature: &FeaturePrices| Cell::text(feature.name.as_str()))
        .words("group", |feature| Cell::text(feature.group.as_str()))
        .spare()
        .hidden("question", |feature| Cell::text(feature.question.as_str()));
    let is_single = findings.kernels.len() == 1;
    for (at, kernel) in findings.kernels.iter().enumerate() {
        let plain = kernel.instructions;
        table = table.numbers(kernel.label.clone(), move |feature| {
            feature.prices[at].price().map_or(Cell::text("-"), signed)
        });
        if is_single {
            table = table
                .numbers("of plain", move |feature| {
                    let price = feature.prices[at].price();
                    price.map_or(Cell::None, |price| Cell::number(price / plain, Digits::Signed(1)))
                })
                .words("most of it in", move |feature| match &feature.prices[at] {
                    Price::Counted { functions, .. } => largest(functions),
                    _ => Cell::None,
                })
                .spare();
        }
    }
    table
        .set(|table| {
            table.name = Some("prices");
            table.in_panels = true;
        })
        .block()
}

/// The function with the largest difference.
fn largest(functions: &[FunctionDifference]) -> Cell {
    let size = |f: &&FunctionDifference| f.difference.abs();
    let largest = functions.iter().max_by(|a, b| size(a).total_cmp(&size(b)));
    largest.map_or(Cell::None, |f| Cell::text(f.name.as_str()))
}

/// Plain forwarding of each kernel.
fn kernels(findings: &Findings) -> Block {
    let are_short = findings.kernels.iter().any(|kernel| kernel.label != kernel.release);
    Table::of(&findings.kernels)
        .words("kernel", |kernel: &Kernel| Cell::text(kernel.label.as_str()))
        .words("release", |kernel| Cell::text(kernel.release.as_str()))
        .when(are_short)
        .spare()
        .hidden("file", |kernel| Cell::text(kernel.file.as_str()))
        .numbers("instructions", |k| Cell::number(k.instructions, Digits::Decimals(1)))
        .numbers("range", |kernel| {
            kernel.range.map_or(Cell::None, |ends| Cell::interval(ends, Digits::Decimals(1)))
        })
        .keys(&["least", "most"])
        .numbers("boots", |kernel| Cell::count(kernel.boots))
        .spare()
        .set(|table| table.name = Some("kernels"))
        .block()
}

/// Cost of each further unit.
fn slopes(findings: &Findings) -> Block {
    let mut table = Table::of(&findings.slopes)
        .words("feature", |slope: &Slope| Cell::text(slope.feature.as_str()))
        .words("sizes", |slope| {
            let values = vec![slope.from.into(), slope.to.into()];
            Cell::Values(format!("{} to {}", slope.from, slope.to).into(), values)
        })
        .keys(&["from", "to"]);
    for (at, kernel) in findings.kernels.iter().enumerate() {
        table = table.numbers(kernel.label.clone(), move |slope| {
            slope.per_unit[at].map_or(Cell::text("-"), |value| {
                let shown = without_negative_zero(value, 0.005);
                Cell::Values(format!("{shown:+.2}").into(), vec![value.into()])
            })
        });
    }
    table
        .set(|table| {
            table.name = Some("slopes");
            table.in_panels = true;
        })
        .block()
}

/// Pairs, the largest interaction first.
fn interactions(findings: &Findings) -> Vec<Block> {
    let counted = |interaction: &Interaction| match &interaction.result {
        Additivity::Counted { difference, .. } => difference.abs(),
        _ => -1.0,
    };
    let mut rows: Vec<&Interaction> = findings.interactions.iter().collect();
    rows.sort_by(|a, b| counted(b).total_cmp(&counted(a)));
    let of = |get: fn(&Additivity) -> Cell| move |row: &&Interaction| get(&row.result);
    let table = Table::of(&rows)
        .words("first", |row: &&Interaction| Cell::text(row.first.as_str()))
        .words("second", |row| Cell::text(row.second.as_str()))
        .words("kernel", |row| Cell::text(row.kernel.as_str()))
        .when(findings.kernels.len() > 1)
        .words("verdict", |row| match &row.result {
            Additivity::Counted { verdict, .. } => Cell::text(verdict.name()),
            Additivity::Absent { .. } => Cell::text("-"),
            Additivity::Missing => Cell::text("not counted"),
        })
        .numbers(
            "sum",
            of(|result| match result {
                Additivity::Counted { sum, .. } => signed(*sum),
                _ => Cell::None,
            }),
        )
        .numbers(
            "together",
            of(|result| match result {
                Additivity::Counted { together, .. } => signed(*together),
                _ => Cell::None,
            }),
        )
        .numbers(
            "difference",
            of(|result| match result {
                Additivity::Counted { difference, .. } => signed(*difference),
                _ => Cell::None,
            }),
        )
        .words(
            "functions",
            of(|result| match result {
                Additivity::Counted { functions, .. } => Cell::text(named(functions)),
                Additivity::Absent { why } => Cell::text(why.as_str()),
                Additivity::Missing => Cell::None,
            }),
        )
        .spare()
        .set(|table| table.name = Some("interactions"))
        .block();
    let text = "The price of both together, in comparison with the sum of both prices. The second one \
                is set up after the first one, and may replace it.";
    vec![Block::text(text), table]
}

/// Features that became dearer or cheaper than in the first kernel; with a history, in the last one.
fn changes(findings: &Findings) -> Option<Block> {
    let last = findings.history.as_ref().map(|_| findings.kernels.len() - 1);
    let mut changed: Vec<_> = findings
        .comparisons
        .iter()
        .filter(|compared| last.is_none_or(|last| compared.variant == last))
        .filter_map(|compared| Some((compared, exact(compared)?)))
        .filter(|(_, exact)| is_beyond_margin(exact))
        .collect();
    changed.sort_by(|a, b| b.1.change.abs().total_cmp(&a.1.change.abs()));
    if changed.is_empty() {
        return None;
    }
    let table = Table::of(&changed)
        .words("kernel and feature", |(compared, _)| Cell::text(compared.label.as_str()))
        .words("verdict", |(_, exact)| {
            Cell::Verdict(exact.verdict.name().into(), exact.shown.clone())
        })
        .numbers("instructions", |(_, exact)| signed(exact.difference))
        .numbers("change", |(_, exact)| Cell::number(exact.change, Digits::Signed(2)))
        .words("most of it in", |(_, exact)| {
            exact.functions.as_ref().map_or(Cell::None, |found| largest(&found.differing))
        })
        .spare()
        .set(|table| {
            table.name = Some("changes");
            table.brief = findings.history.is_some().then_some(history_document::BRIEF);
            table.rest = history_document::REST;
        })
        .block();
    let first = findings.kernels.first().map_or("", |kernel| kernel.label.as_str());
    let title = match last.and_then(|last| findings.kernels.get(last)) {
        Some(last) => format!("Changed from {first} to {}", last.label),
        None => format!("Changed since {first}"),
    };
    Some(Block::section(title, vec![table]))
}

/// Features that some kernels do not have, by reason.
fn absent(findings: &Findings) -> Option<Block> {
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for feature in &findings.features {
        for (price, kernel) in feature.prices.iter().zip(&findings.kernels) {
            let why = match price {
                Price::Absent { why } => why.as_str(),
                Price::Missing => "not counted",
                Price::Counted { .. } => continue,
            };
            reasons.entry((&feature.name, why)).or_default().push(&kernel.label);
        }
    }
    let all = findings.kernels.len();
    let line = |((feature, why), kernels): (&(&str, &str), &Vec<&str>)| match kernels.len() == all {
        true => format!("{feature}: {why}"),
        false => format!("{feature} ({}): {why}", kernels.join(", ")),
    };
    let lines: Vec<String> = reasons.iter().map(line).collect();
    (!lines.is_empty()).then(|| Block::section("Without a price", vec![Block::list(lines)]))
}

/// Reasons to doubt prices.
fn doubts(findings: &Findings) -> Vec<Block> {
    let mut doubts = Vec::new();
    for failed in &findings.failed {
        let why = failed.why.lines().next().unwrap_or_default();
        doubts.push(format!("{} was not counted to the end: {why}", failed.kernel));
    }
    for kernel in findings.kernels.iter().filter(|kernel| !kernel.traces.is_empty()) {
        doubts.push(format!(
            "{}: forwarding was not plain again after {}; the next features were counted in a new \
             boot",
            kernel.label,
            kernel.traces.join(", ")
        ));
    }
    for feature in &findings.features {
        for (price, kernel) in feature.prices.iter().zip(&findings.kernels) {
            if let Price::Counted { sent, lost, .. } = price
                && *lost > 0
            {
                doubts.push(format!(
                    "{}, {}: {lost} of {sent} packets were lost; the price is per packet that \
                     arrived",
                    feature.name, kernel.label
                ));
            }
        }
    }
    doubts.into_iter().map(|text| Block::remark(Remark::Warning, text)).collect()
}

/// A feature: its question, its commands, and the functions that make its price in the last kernel
/// that has it.
fn details(findings: &Findings, feature: &FeaturePrices) -> Option<Block> {
    let counted = feature.prices.iter().zip(&findings.kernels).rev();
    let (kernel, price, functions) = counted
        .filter_map(|(price, kernel)| match price {
            Price::Counted { price, functions, .. } => Some((kernel, price, functions)),
            _ => None,
        })
        .next()?;
    let shown = &functions[..functions.len().min(FUNCTIONS)];
    let number = |value: f64| Cell::number(value, Digits::Decimals(1));
    let table = Table::of(shown)
        .words("function", |f: &FunctionDifference| Cell::text(f.name.as_str()))
        .words("subsystem", |f| Cell::text(f.subsystem.as_str()))
        .numbers("plain", move |f| number(f.before))
        .numbers("with it", move |f| number(f.after))
        .numbers("difference", |f| signed(f.difference))
        .block();
    let text = format!("{} {price:+.1} in {}.", feature.question, kernel.label);
    let mut blocks =
        vec![Block::text(text), Block::Preformatted(feature.set_up.clone() + "\n"), table];
    let history = findings.history.as_ref();
    blocks.extend(history.and_then(|of| history_document::picture(findings, of, feature)));
    let command = repeat(findings, feature, kernel);
    blocks.push(Block::text(Inline::from("How to repeat this row: ").code(command)));
    Some(Block::section(feature.name.clone(), blocks).folded())
}

/// The command that counts a feature in a kernel again.
fn repeat(findings: &Findings, feature: &FeaturePrices, kernel: &Kernel) -> String {
    let Findings { traffic, repeat, .. } = findings;
    let kernels = repeat.kernels.clone().unwrap_or_else(|| quote(&kernel.file));
    let options = &repeat.options;
    format!("fwdlab prices {kernels} --only {}{options} {traffic}", quote(&feature.name))
}

/// The result in a sentence or two.
fn conclusion(findings: &Findings) -> String {
    let Some(last) = findings.kernels.last() else { return String::new() };
    let at = findings.kernels.len() - 1;
    let priced = findings.features.iter().filter_map(|f| Some((f, f.prices[at].price()?)));
    let dearest = priced.clone().max_by(|a, b| a.1.total_cmp(&b.1));
    let mut text = format!(
        "{}: plain forwarding executes {:.1} instructions per packet.",
        last.label, last.instructions
    );
    if let Some((feature, price)) = dearest {
        text += &format!(
            " Of {} features {} is the dearest: {price:+.1} ({:+.1} %).",
            priced.count(),
            feature.name,
            100.0 * price / last.instructions
        );
    }
    if findings.kernels.len() > 1 {
        let answered = || findings.comparisons.iter().filter_map(exact);
        let outside = answered().filter(|exact| is_beyond_margin(exact));
        let (dearer, cheaper): (Vec<_>, Vec<_>) = outside.partition(|exact| exact.difference > 0.0);
        text += &format!(
            " Of {} comparisons with {}, {} are dearer and {} cheaper by more than the margin.",
            answered().count(),
            findings.kernels[0].label,
            dearer.len(),
            cheaper.len()
        );
        text += &findings.history.as_ref().map_or(String::new(), history_document::sentence);
        let open = findings.comparisons.len() - answered().count();
        if open > 0 {
            text +=
                &format!(" {open} features of the first kernel were not counted in another one.");
        }
    }
    text
}
