//! The history as parts of the document: table of steps, ranges, figure and pictures.

use super::findings::{FeaturePrices, Findings, Kernel, Price};
use super::history::{Contribution, Difference, History, PLAIN, Range, Step};
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, Figure, Table};
use fwdlab_results::plot::{
    ChangeMark, Draw, Quantity, RevisionPoint, Revisions, Spark, Sparkline,
};

use serde_json::Value;

/// Number of rows that forms without room for all show, and their text for the others.
pub(super) const BRIEF: usize = 30;
pub(super) const REST: &str = "{} more: --format html has them";

/// Steps and ranges, with the definition of a step.
pub(super) fn section(history: &History) -> Block {
    let margin = format!("{:.1} %", 100.0 * history.margin);
    let mut blocks = Vec::new();
    if history.steps.is_empty() {
        blocks.push(Block::text(format!("No price has a step of more than {margin}.")));
    } else {
        blocks.push(Block::text(format!(
            "A step is a difference from the previous kernel that has the feature, by more than \
             {margin} of all instructions of a packet. Plain forwarding is subtracted on both \
             sides. A drift is a difference from the kernel after the last step."
        )));
        blocks.push(steps(history));
    }
    if history.inconclusive_steps > 0 {
        let text = format!(
            "{} comparisons of adjacent kernels are inconclusive: bursts scatter.",
            history.inconclusive_steps
        );
        blocks.push(Block::text(text));
    }
    if !history.ranges.is_empty() {
        blocks.push(Block::section("Kernels without a step between them", vec![ranges(history)]));
    }
    Block::section("Steps between adjacent kernels", blocks)
}

/// A number of instructions with its sign.
pub(super) fn signed(value: f64) -> Cell {
    Cell::Values(format!("{:+.1}", without_negative_zero(value, 0.05)).into(), vec![value.into()])
}

/// Zero for values that are rounded to it: "-0.0" is no price.
pub(super) fn without_negative_zero(value: f64, half: f64) -> f64 {
    if value.abs() < half { 0.0 } else { value }
}

fn steps(history: &History) -> Block {
    let of =
        |get: fn(&Difference) -> Cell| move |step: &Step| step.difference().map_or(Cell::None, get);
    Table::of(&history.steps)
        .words("feature", |step: &Step| Cell::text(step.feature.as_str()))
        .words("from", |step| Cell::text(step.from.as_str()))
        .words("to", |step| Cell::text(step.to.as_str()))
        .words("kind", |step| Cell::text(step.change.name()))
        .spare()
        .numbers("before", of(|found| Cell::number(found.before, Digits::Decimals(1))))
        .spare()
        .numbers("after", of(|found| Cell::number(found.after, Digits::Decimals(1))))
        .spare()
        .numbers("difference", of(|found| signed(found.difference)))
        .numbers("change", of(|found| Cell::number(found.change, Digits::Signed(2))))
        .about("in relation to all instructions of a packet in the older kernel")
        .numbers("of the price", of(|found| Cell::number(found.of_price, Digits::Signed(1))))
        .spare()
        .words("most of it in", |step| match (step.difference(), step.why()) {
            (Some(found), _) => {
                Cell::text(functions(&found.functions[..found.functions.len().min(1)]))
            }
            (None, Some(why)) => Cell::Values(why.into(), vec![Value::Null, why.into()]),
            (None, None) => Cell::None,
        })
        .keys(&["most_of_it_in", "reason"])
        .words(
            "also in",
            of(|found| Cell::text(functions(found.functions.get(1..).unwrap_or_default()))),
        )
        .spare()
        .set(|table| {
            table.name = Some("steps");
            table.brief = Some(BRIEF);
            table.rest = REST;
        })
        .block()
}

/// Functions with signed instructions: `nft_do_chain +20.0, kfree -3.1`.
pub(super) fn functions(parts: &[Contribution]) -> String {
    let part = |part: &Contribution| format!("{} {:+.1}", part.name, part.difference);
    parts.iter().map(part).collect::<Vec<String>>().join(", ")
}

fn ranges(history: &History) -> Block {
    Table::of(&history.ranges)
        .words("from", |range: &Range| Cell::text(range.from.as_str()))
        .words("to", |range| Cell::text(range.to.as_str()))
        .numbers("kernels", |range| Cell::count(range.kernels))
        .set(|table| table.name = Some("ranges"))
        .block()
}

/// Totals of plain forwarding over the kernels.
pub(super) fn figure(findings: &Findings, history: &History) -> Block {
    let counted = || findings.kernels.iter().filter_map(|kernel| Some((kernel, kernel.range?)));
    let points = counted().map(|(kernel, (least, most))| RevisionPoint {
        label: kernel.label.clone(),
        median: kernel.instructions,
        least,
        most,
        patched: false,
    });
    let change = |step: &Step| {
        let at = counted().position(|(kernel, _)| kernel.label == step.to)?;
        Some(ChangeMark { at, effect: step.difference()?.change })
    };
    let title = "Plain forwarding, instructions per packet".to_owned();
    let drawing = Revisions {
        title: title.clone(),
        points: points.collect(),
        levels: Vec::new(),
        changes: history.of(PLAIN).filter_map(change).collect(),
        quantity: Quantity::Instructions,
        footnote: None,
    };
    Block::Figure(Figure { title, file: None, drawing: drawing.drawing() })
}

/// The price of a feature over the kernels; `None` if it has no step.
pub(super) fn picture(
    findings: &Findings,
    history: &History,
    feature: &FeaturePrices,
) -> Option<Block> {
    let steps: Vec<(usize, f64)> = history
        .of(&feature.name)
        .filter_map(|step| Some((step.at, step.difference()?.difference)))
        .collect();
    if steps.is_empty() {
        return None;
    }
    let prices = feature.prices.iter().zip(&findings.kernels).enumerate();
    let point = |(at, (price, kernel)): (usize, (&Price, &Kernel))| {
        let step = steps.iter().find(|(end, _)| *end == at).map(|(_, size)| *size);
        Spark { label: kernel.label.clone(), value: price.price(), step }
    };
    let title = format!("Price of {} by kernel", feature.name);
    let line = Sparkline { title: title.clone(), points: prices.map(point).collect() };
    Some(Block::Figure(Figure { title, file: None, drawing: line.drawing() }))
}

/// Explanation of the pictures; `None` if no feature has one.
pub(super) fn legend(history: &History) -> Option<Block> {
    let has_picture = |step: &Step| step.feature != PLAIN && step.difference().is_some();
    history.steps.iter().any(has_picture).then(|| {
        Block::text(
            "A feature with a step has a picture of its price by kernel, scaled to the data. \
             Triangles are steps, gaps are kernels without a price.",
        )
    })
}

/// The largest step of plain forwarding and of the features, in a sentence.
pub(super) fn sentence(history: &History) -> String {
    let counted = || history.steps.iter().filter_map(|step| Some((step, step.difference()?)));
    let Some((step, found)) =
        counted().max_by(|a, b| a.1.difference.abs().total_cmp(&b.1.difference.abs()))
    else {
        return " No price has a step between adjacent kernels.".to_owned();
    };
    let number = counted().count();
    let steps = if number == 1 { "step" } else { "steps" };
    format!(
        " Adjacent kernels have {number} {steps}; the largest is {:+.1} of {} from {} to {}.",
        found.difference, step.feature, step.from, step.to
    )
}
