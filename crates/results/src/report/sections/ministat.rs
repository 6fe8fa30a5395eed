//! One ministat block per comparison: the levels of a factor, for each level of the other factors.

use super::{Context, DETAILS, Input, Section};
use crate::document::Block;
use crate::format::listed;
use crate::report::analysis::VariantResult;
use crate::stats::ministat::{DataSet, Options, render};
use fwdlab_model::plan::RunMetric;
use fwdlab_model::{Plan, Variant};
use serde::Serialize;

/// Maximum number of sets in a ministat block.
const MAX_SETS: usize = 7;
/// Minimum number of values per set for ministat.
const MIN_VALUES: usize = 3;

/// A ministat block and its input files.
#[derive(Clone, Debug, Serialize)]
pub struct MinistatBlock {
    /// The comparison, e.g. `queues (family = inet)`.
    pub title: String,
    /// Files from which ministat produces the same text, the reference first.
    pub files: Vec<String>,
    /// ministat's text; empty if nothing could be compared.
    pub text: String,
    /// Reasons for missing sets.
    pub notes: Vec<String>,
}

impl Section for Vec<MinistatBlock> {
    fn analyse(input: &Input<'_>) -> Vec<MinistatBlock> {
        let Input { contents, core, .. } = input;
        let published = contents.import.as_ref().and_then(|import| {
            let reproductions = import.about.reproductions.as_ref()?;
            reproductions.blocks.first()
        });
        // Published blocks are shown in their own grouping instead.
        match published {
            None if core.figure.is_rate() => ministat_blocks(&contents.plan, &core.variants),
            _ => Vec::new(),
        }
    }

    fn document(&self, context: &Context<'_>) -> Vec<Block> {
        // Counts of instructions are exact.
        if !context.core.figure.is_rate() {
            return Vec::new();
        }
        let published = context.archive.map_or(&[][..], |archive| &archive.blocks);
        let text = match published.is_empty() {
            true => "The same figures, without their blocks, as ministat shows them.",
            false => {
                "The published blocks, made again from the values of the logs; order of the sets, \
                 width and legends are those of the published text."
            }
        };
        let mut blocks = vec![Block::text(text)];
        blocks.extend(published.iter().map(|block| {
            let heading = match block.heading.as_str() {
                "" => "A block without a heading",
                heading => heading,
            };
            let text = Block::Preformatted(block.text.clone());
            Block::section(heading, vec![text, Block::text(&block.sentence)])
        }));
        blocks.extend(self.iter().map(|MinistatBlock { title, text, notes, .. }| {
            let shown = (!text.is_empty()).then(|| Block::Preformatted(text.clone()));
            let notes = notes.iter().map(|note| Block::text(format!("{note}.")));
            Block::section(title, shown.into_iter().chain(notes).collect())
        }));
        vec![Block::section("ministat", blocks).folded().on_page(DETAILS)]
    }
}

/// Returns all blocks, by factor.
fn ministat_blocks(plan: &Plan, variants: &[VariantResult]) -> Vec<MinistatBlock> {
    let mut blocks = Vec::new();
    for (title, sets) in groups(plan) {
        // Each part includes the reference (the first set).
        let rest = sets.get(1..).unwrap_or_default();
        let parts = rest.chunks(MAX_SETS - 1).count().max(1);
        for part in 0..parts {
            let others = rest.chunks(MAX_SETS - 1).nth(part).unwrap_or_default();
            let members: Vec<&VariantResult> =
                sets.iter().take(1).chain(others).map(|&index| &variants[index]).collect();
            let title = match parts {
                1 => title.clone(),
                _ => format!("{title}, part {} of {parts}", part + 1),
            };
            blocks.push(block(title, &members, plan));
        }
    }
    blocks
}

/// Returns titles and variants (baseline first) of the blocks.
fn groups(plan: &Plan) -> Vec<(String, Vec<usize>)> {
    let compared: Vec<(usize, usize)> = plan
        .compare
        .baseline
        .iter()
        .enumerate()
        .filter_map(|(factor, baseline)| Some((factor, (*baseline)?)))
        .collect();
    if compared.is_empty() {
        return vec![("all variants".to_owned(), (0..plan.variants.len()).collect())];
    }
    let mut groups = Vec::new();
    for (factor, baseline) in compared {
        for reference in plan.variants.iter().filter(|v| v.levels[factor] == baseline) {
            let mut members = vec![reference.index];
            members.extend(
                plan.variants
                    .iter()
                    .filter(|v| v.index != reference.index && differs_in(v, reference, factor))
                    .map(|v| v.index),
            );
            groups.push((title(plan, factor, &reference.levels), members));
        }
    }
    groups
}

/// Returns true if two variants differ at most in `factor`.
fn differs_in(variant: &Variant, reference: &Variant, factor: usize) -> bool {
    let mut pairs = variant.levels.iter().zip(&reference.levels).enumerate();
    pairs.all(|(i, (a, b))| i == factor || a == b)
}

fn title(plan: &Plan, factor: usize, levels: &[usize]) -> String {
    let others: Vec<String> = plan
        .factors
        .iter()
        .zip(levels)
        .enumerate()
        .filter(|(i, _)| *i != factor)
        .map(|(_, (other, &level))| format!("{} = {}", other.name, other.levels[level].label))
        .collect();
    let name = &plan.factors[factor].name;
    if others.is_empty() { name.clone() } else { format!("{name} ({})", others.join(", ")) }
}

fn block(title: String, members: &[&VariantResult], plan: &Plan) -> MinistatBlock {
    let (enough, too_few): (Vec<&VariantResult>, Vec<&VariantResult>) =
        members.iter().partition(|variant| variant.values.len() >= MIN_VALUES);
    let mut notes = Vec::new();
    if !too_few.is_empty() {
        let each: Vec<String> = too_few
            .iter()
            .map(|variant| format!("{} ({})", variant.label, variant.values.len()))
            .collect();
        notes.push(format!("fewer runs than the {MIN_VALUES} of ministat: {}", listed(&each)));
    }
    let mut block = MinistatBlock { title, files: Vec::new(), text: String::new(), notes };
    // Everything is compared with the first set: without the reference, the text would compare
    // other sets.
    let has_reference = members.first().is_some_and(|first| first.values.len() >= MIN_VALUES);
    if !has_reference {
        return block;
    }
    let sets: Vec<DataSet> = enough.iter().map(|variant| data_set(variant, plan)).collect();
    let confidence = plan.compare.confidence;
    match render(&sets, &Options { confidence, ..Options::default() }) {
        Ok(text) => block.text = text,
        Err(error) => block.notes.push(error.to_string()),
    }
    block.files = sets.into_iter().map(|set| set.name).collect();
    block
}

/// Rounds values as in the file, so that ministat prints the same for the files: whole packets, and
/// for imported runs the output of the archive's rule.
fn data_set(variant: &VariantResult, plan: &Plan) -> DataSet {
    let is_printed = matches!(plan.metric(), RunMetric::Netbenches | RunMetric::NetbenchesUpper);
    let printed = |value: &f64| if is_printed { *value } else { value.round() };
    DataSet { name: variant.file.clone(), values: variant.values.iter().map(printed).collect() }
}
