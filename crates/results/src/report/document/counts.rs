//! Counts of executed instructions: the results of emulated devices.

use crate::counts::{NOT_TIME, OF_A_MODEL, Total};
use crate::document::table::{Cell, Digits, Rows};
use crate::document::{Block, Inline, Remark, Table};
use crate::report::analysis::{Analysis, CountedVariant, Counts, RunResult, VariantResult};
use crate::report::counted;
use fwdlab_model::record::Misses;

const DIGITS: Digits = Digits::Decimals(1);
/// Maximum number of functions in compact output formats, and minimum of displayed misses.
const FUNCTIONS: usize = 12;
const MISSES_SHOWN: f64 = 0.05;

/// Returns a table with one row per variant.
pub(super) fn figures(analysis: &Analysis, counts: &Counts) -> Block {
    let counts_of = |variant: &VariantResult| {
        counts.variants.iter().find(|counted| counted.variant == variant.index)
    };
    let of = |get: fn(&CountedVariant) -> Cell| {
        move |variant: &VariantResult| counts_of(variant).map_or(Cell::None, get)
    };
    let text = format!(
        "One figure stands for a run: {}. It is the sum over functions of the median of the run's \
         bursts; what the idle device executes in as much time is subtracted and stands beside it, \
         and functions that are mostly such background in any run are in no total. {NOT_TIME}",
        analysis.figure.description()
    );
    let table = counted::figures(&analysis.variants, |v| (v.label.as_str(), v.summary.as_ref()))
        .words("bursts", of(|c| Cell::interval(c.bursts, DIGITS)))
        .numbers("atomic", of(|c| Cell::number(c.atomics, DIGITS)))
        .numbers("bytes moved", of(|c| Cell::number(c.bytes, DIGITS)))
        .numbers("background", of(|c| Cell::number(c.background, DIGITS)))
        .numbers("packets", of(|c| Cell::count(c.packets)))
        .numbers("loss", |v| v.loss.as_ref().map_or(Cell::None, |loss| Cell::text(&loss.shown)))
        .words(
            "batches not found at once",
            of(|c| Cell::text(format!("{} of {}", c.scattered.0, c.scattered.1))),
        )
        .numbers("warnings", |v| Cell::count(v.warnings.len()));
    Block::section("Figures", vec![Block::text(text), table.block()])
}

/// Returns the differences by function, and the functions of each variant.
pub(super) fn sections(analysis: &Analysis, counts: &Counts) -> Vec<Block> {
    let differences: Vec<Block> =
        analysis.comparisons.iter().filter_map(|c| counted::differences(c, true)).collect();
    let mut sections = Vec::new();
    if !differences.is_empty() {
        sections.push(Block::section("What differs", differences));
    }
    sections.extend(modelled(counts));
    let variants = counts.variants.iter().filter(|variant| !variant.functions.is_empty());
    let variants: Vec<Block> = variants.map(costs).collect();
    if !variants.is_empty() {
        let executed = Block::section("What is executed", variants);
        sections.push(executed.folded().on_page(super::PROFILES));
    }
    sections
}

fn costs(variant: &CountedVariant) -> Block {
    let mut blocks = Vec::new();
    if let Some(file) = &variant.file {
        let text = Inline::default().link("Flame graph", file);
        blocks.push(Block::text(text.text(" by subsystem and function.")));
    }
    if let Some(calls) = &variant.calls {
        let text = Inline::default().link("Flame graph of calls", &calls.file).text(format!(
            " of all runs together. Callers are unknown of {} of the instructions.",
            Digits::Percent(2).print(calls.unknown_share)
        ));
        blocks.push(Block::text(text));
        if calls.unaccounted > 0 {
            let text = format!(
                "{}: stacks and counts by function differ by {} instructions in all bursts.",
                variant.label, calls.unaccounted
            );
            blocks.push(Block::remark(Remark::Warning, text));
        }
    }
    blocks.extend(counted::functions(&variant.functions));
    let title = format!("{}: subsystems and functions, instructions per packet", variant.label);
    Block::section(title, blocks).folded()
}

/// Returns the misses in modelled caches of every variant; `None` without a model.
fn modelled(counts: &Counts) -> Option<Block> {
    let all = || counts.variants.iter().filter_map(|v| Some((v, v.caches.as_ref()?)));
    let (_, first) = all().next()?;
    let totals: Vec<(&str, &Misses)> =
        all().map(|(variant, caches)| (variant.label.as_str(), &caches.total)).collect();
    let mut blocks = vec![
        Block::text(format!("{}. {OF_A_MODEL}", first.model)),
        misses("variant", &totals).set(|table| table.name = Some("misses")).block(),
    ];
    for (variant, caches) in all() {
        let shown = caches.functions.iter().map(|f| (f.name.as_str(), &f.misses));
        let shown = shown.filter(|(_, m)| m.code + m.data + m.last >= MISSES_SHOWN);
        let rows: Vec<(&str, &Misses)> = shown.collect();
        let table = misses("function", &rows).set(|table| table.brief = Some(FUNCTIONS)).block();
        let title = format!("{}: misses a packet by function", variant.label);
        blocks.push(Block::section(title, vec![table]).folded());
    }
    Some(Block::section("Misses in modelled caches", blocks))
}

fn misses<'t>(title: &str, rows: &'t [(&'t str, &'t Misses)]) -> Rows<'t, (&'t str, &'t Misses)> {
    let number = |value: f64| Cell::number(value, Digits::Decimals(2));
    Table::of(rows)
        .words(title, |(name, _)| Cell::text(*name))
        .numbers("reads and writes", move |(_, m)| number(m.references))
        .numbers("L1I misses", move |(_, m)| number(m.code))
        .numbers("L1D misses", move |(_, m)| number(m.data))
        .numbers("L2 misses", move |(_, m)| number(m.last))
}

/// Returns a table of all runs.
pub(super) fn runs(analysis: &Analysis) -> Table {
    let of = |get: fn(&Total) -> Cell| {
        move |run: &RunResult| run.counted.as_ref().map_or(Cell::None, get)
    };
    Table::of(&analysis.runs)
        .numbers("run", |r| Cell::count(r.run))
        .numbers("block", |r| Cell::count(r.block))
        .words("variant", |r| Cell::text(&r.label))
        .words("started", |r| Cell::text(&r.started_at))
        .numbers("instructions per packet", of(|c| Cell::number(c.instructions, DIGITS)))
        .words(
            "bursts",
            of(|c| {
                let each: Vec<String> =
                    c.bursts.iter().map(|burst| format!("{burst:.1}")).collect();
                Cell::text(each.join(", "))
            }),
        )
        .numbers("atomic", of(|c| Cell::number(c.atomics, DIGITS)))
        .numbers("background", of(|c| Cell::number(c.background, DIGITS)))
        .numbers("offered", |r| Cell::count(r.offered))
        .numbers("forwarded", |r| Cell::count(r.forwarded))
        .numbers("warnings", |r| Cell::count(r.warnings))
        .table()
}
