//! Instructions of emulated devices, by variant and function.

use super::{Context, Input, PROFILES, Plots, Section};
use crate::counts::{
    FunctionCount, Modelled, NOT_TIME, OF_A_MODEL, Total, flames, flames_of_calls, red_and_blue,
    red_and_blue_of_calls,
};
use crate::document::table::{Cell, Digits, Rows};
use crate::document::{Block, Inline, Remark, Table};
use crate::profile::{Stacks, unfold};
use crate::report::analysis::executed::ExecutedRuns;
use crate::report::analysis::{Compared, Core, Outcome, RunResult, VariantResult};
use crate::report::counted;
use crate::report::safe_name;
use crate::stats::summary::median;
use fwdlab_model::record::Misses;
use serde::Serialize;

const DIGITS: Digits = Digits::Decimals(1);
/// Maximum number of functions in compact output formats.
const FUNCTIONS: usize = 12;
/// Minimum of displayed misses.
const MISSES_SHOWN: f64 = 0.05;

/// The counts of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Counts {
    /// Unit of all counts.
    pub unit: &'static str,
    /// Caveat to print with them.
    pub caution: &'static str,
    /// The variants that were counted.
    pub variants: Vec<CountedVariant>,
    /// Names of the plots of differences, by comparison.
    #[serde(skip)]
    differences: Vec<DifferencePlots>,
    #[serde(skip)]
    plots: Plots,
}

/// Plots of one comparison: files of the report, `None` if there is nothing to draw.
#[derive(Clone, Debug, Default)]
struct DifferencePlots {
    functions: Option<String>,
    calls: Option<String>,
}

/// Counts of one variant, per packet: medians over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct CountedVariant {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Minimum and maximum of the bursts of its runs.
    pub bursts: (f64, f64),
    /// Atomic instructions.
    pub atomics: f64,
    /// Bytes moved by repeated string instructions.
    pub bytes: f64,
    /// Instructions of the idle device in the same time, included in no total.
    pub background: f64,
    /// Number of packets counted in all runs.
    pub packets: u64,
    /// Number of packets that the device found simultaneously.
    pub batch: u16,
    /// Batches that the device did not find simultaneously, and the number of all batches, over all
    /// runs.
    pub scattered: (u64, u64),
    /// Functions, most expensive first, without background.
    pub functions: Vec<FunctionCount>,
    /// The flame graph, a file of the report; `None` if there is nothing to draw.
    pub file: Option<String>,
    /// Call stacks; `None` if calls were not followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Called>,
    /// Misses of a model of caches; `None` without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<Modelled>,
}

/// Call stacks of a variant.
#[derive(Clone, Debug, Serialize)]
pub struct Called {
    /// The flame graph, a file of the report.
    pub file: String,
    /// Share (0 to 1) of the instructions with unknown callers, maximum over the runs.
    pub unknown_share: f64,
    /// Instructions by which stacks and functions differ, over all runs: 0 unless there is a fault.
    pub unaccounted: u64,
    #[serde(skip)]
    stacks: Stacks,
}

impl Section for Option<Counts> {
    fn analyse(input: &Input<'_>) -> Option<Counts> {
        (!input.core.figure.is_rate()).then(|| Counts::of(input))
    }

    fn document(&self, context: &Context<'_>) -> Vec<Block> {
        self.as_ref().map_or(Vec::new(), |counts| counts.sections(context.core))
    }

    fn take_plots(&mut self) -> Plots {
        self.as_mut().map_or(Plots::new(), |counts| std::mem::take(&mut counts.plots))
    }
}

impl Counts {
    fn of(input: &Input<'_>) -> Counts {
        let core = input.core;
        let executed = ExecutedRuns::of(input.contents, &core.runs);
        let mut plots = Plots::new();
        let variants = core.variants.iter();
        let mut variants: Vec<CountedVariant> =
            variants.filter_map(|variant| counted_variant(&executed, variant)).collect();
        for variant in &mut variants {
            let name = format!("instructions-{}.svg", safe_name(&variant.label));
            if let Ok(svg) = flames(&variant.label, &variant.functions) {
                plots.push((name.clone(), svg.into()));
                variant.file = Some(name);
            }
            let drawn = calls(&executed, variant).and_then(|calls| {
                let svg = flames_of_calls(&variant.label, &calls.stacks).ok()?;
                plots.push((calls.file.clone(), svg.into()));
                Some(calls)
            });
            variant.calls = drawn;
        }
        let differences =
            core.comparisons.iter().map(|compared| differences(&variants, compared, &mut plots));
        let differences = differences.collect();
        let unit = crate::label::INSTRUCTIONS;
        Counts { unit, caution: NOT_TIME, variants, differences, plots }
    }

    /// Enters the names of the plots of differences in the comparisons.
    pub(in crate::report) fn name_plots(&self, comparisons: &mut [Compared]) {
        for (compared, plots) in comparisons.iter_mut().zip(&self.differences) {
            if let Outcome::Counted(exact) = &mut compared.outcome
                && let Some(functions) = &mut exact.functions
            {
                functions.file.clone_from(&plots.functions);
                functions.calls.clone_from(&plots.calls);
            }
        }
    }

    /// Returns the counts by variant, the differences by function, and the functions of each
    /// variant.
    fn sections(&self, core: &Core) -> Vec<Block> {
        let differences: Vec<Block> =
            core.comparisons.iter().filter_map(|c| counted::differences(c, true)).collect();
        let mut sections = vec![self.figures(core)];
        if !differences.is_empty() {
            sections.push(Block::section("What differs", differences));
        }
        sections.extend(self.modelled());
        let variants = self.variants.iter().filter(|variant| !variant.functions.is_empty());
        let variants: Vec<Block> = variants.map(costs).collect();
        if !variants.is_empty() {
            let executed = Block::section("What is executed", variants);
            sections.push(executed.folded().on_page(PROFILES));
        }
        sections
    }

    /// Returns a table with one row per variant.
    fn figures(&self, core: &Core) -> Block {
        let counts_of = |variant: &VariantResult| {
            self.variants.iter().find(|counted| counted.variant == variant.index)
        };
        let of = |get: fn(&CountedVariant) -> Cell| {
            move |variant: &VariantResult| counts_of(variant).map_or(Cell::None, get)
        };
        let text = format!(
            "One figure stands for a run: {}. It is the sum over functions of the median of the run's \
             bursts; what the idle device executes in as much time is subtracted and reported next to it, \
             and functions that are mostly such background in any run are in no total. {NOT_TIME}",
            core.figure.description()
        );
        let table = counted::figures(&core.variants, |v| (v.label.as_str(), v.summary.as_ref()))
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

    /// Returns the misses in modelled caches of every variant; `None` without a model.
    fn modelled(&self) -> Option<Block> {
        let all = || self.variants.iter().filter_map(|v| Some((v, v.caches.as_ref()?)));
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
            let table =
                misses("function", &rows).set(|table| table.brief = Some(FUNCTIONS)).block();
            let title = format!("{}: misses a packet by function", variant.label);
            blocks.push(Block::section(title, vec![table]).folded());
        }
        Some(Block::section("Misses in modelled caches", blocks))
    }

    /// Returns a table of all runs.
    pub(in crate::report) fn runs(runs: &[RunResult]) -> Table {
        let of = |get: fn(&Total) -> Cell| {
            move |run: &RunResult| run.counted.as_ref().map_or(Cell::None, get)
        };
        Table::of(runs)
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
}

fn counted_variant(counted: &ExecutedRuns<'_>, variant: &VariantResult) -> Option<CountedVariant> {
    let totals: Vec<&Total> = counted.runs(&[variant.index]).map(|(_, total)| total).collect();
    let first = totals.first()?;
    let middle = |of: fn(&Total) -> f64| {
        median(&totals.iter().map(|total| of(total)).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let ranges = totals.iter().map(|total| total.range());
    Some(CountedVariant {
        variant: variant.index,
        label: variant.label.clone(),
        bursts: ranges.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), (low, high)| {
            (least.min(low), most.max(high))
        }),
        atomics: middle(|total| total.atomics),
        bytes: middle(|total| total.bytes),
        background: middle(|total| total.background),
        packets: totals.iter().map(|total| total.packets).sum(),
        batch: first.batch,
        scattered: totals
            .iter()
            .fold((0, 0), |(some, all), total| (some + total.scattered.0, all + total.scattered.1)),
        functions: counted.functions(variant.index),
        file: None,
        calls: None,
        caches: counted.misses(variant.index),
    })
}

/// Draws the differences of one comparison.
fn differences(
    variants: &[CountedVariant],
    compared: &Compared,
    plots: &mut Plots,
) -> DifferencePlots {
    let mut names = DifferencePlots::default();
    let labels = [compared.baseline_label.as_str(), compared.label.as_str()];
    let of = |index: usize| variants.iter().find(|variant| variant.variant == index);
    let has_functions =
        matches!(&compared.outcome, Outcome::Counted(exact) if exact.functions.is_some());
    let sides = of(compared.baseline).zip(of(compared.variant));
    let Some((before, after)) = sides.filter(|_| has_functions) else { return names };
    let mut keep = |stem: &str, svg: String| {
        let [before, after] = labels.map(safe_name);
        let name = format!("{stem}-{after}-against-{before}.svg");
        plots.push((name.clone(), svg.into()));
        Some(name)
    };
    if let Ok(svg) = red_and_blue(labels, &before.functions, &after.functions) {
        names.functions = keep("instructions", svg);
    }
    let Some((one, other)) = before.calls.as_ref().zip(after.calls.as_ref()) else { return names };
    if let Ok(svg) = red_and_blue_of_calls(labels, &one.stacks, &other.stacks) {
        names.calls = keep("calls", svg);
    }
    names
}

/// Averages the stacks of the runs over the foreground functions; `None` if a run has no stacks.
fn calls(executed: &ExecutedRuns<'_>, variant: &CountedVariant) -> Option<Called> {
    let executed = executed.executed(&[variant.variant]);
    let runs = executed.iter().map(|executed| executed.stacks.as_ref());
    let runs = runs.collect::<Option<Vec<_>>>()?;
    let mut sums = Stacks::default();
    runs.iter().for_each(|run| sums.merge(&unfold(&run.folded)));
    let is_counted = |name: &str| variant.functions.iter().any(|f| f.name == name);
    let mut stacks = Stacks::default();
    for (frames, sum) in sums.iter() {
        if frames.last().is_some_and(|function| is_counted(function)) {
            stacks.add(frames.to_vec(), (sum as f64 / runs.len() as f64).round() as u64);
        }
    }
    Some(Called {
        file: format!("calls-{}.svg", safe_name(&variant.label)),
        unknown_share: runs.iter().map(|run| run.unknown_share).fold(0.0, f64::max),
        unaccounted: runs.iter().map(|run| run.unaccounted).sum(),
        stacks,
    })
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

fn misses<'t>(title: &str, rows: &'t [(&'t str, &'t Misses)]) -> Rows<'t, (&'t str, &'t Misses)> {
    let number = |value: f64| Cell::number(value, Digits::Decimals(2));
    Table::of(rows)
        .words(title, |(name, _)| Cell::text(*name))
        .numbers("reads and writes", move |(_, m)| number(m.references))
        .numbers("L1I misses", move |(_, m)| number(m.code))
        .numbers("L1D misses", move |(_, m)| number(m.data))
        .numbers("L2 misses", move |(_, m)| number(m.last))
}
