//! The report as a document: the result first, then rates, doubts and the method.
//!
//! [`super::sections`] has the topics; this module puts them in order, below the first screen, the
//! verdicts and the rates. [`crate::document::form`] writes them.

mod answer;
mod figures;
mod runs;
mod summary;
mod warnings;

pub use summary::{summary, summary_text};

use super::analysis::{Answer, Compared, Core, Outcome};
use super::counted;
use super::results::Analysis;
use super::rows::Rates;
use super::sections::{ArchiveResult, Context, DETAILS, MANY, Method, Section};
use super::verdicts::{how, terms, verdicts};
use crate::counts::NOT_TIME;
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Document, Figure, Inline, Table};
use crate::format::runs_of;
use crate::label::MeasuredOn;
use crate::plot::Drawing;
use crate::quantity::Quantity;
use crate::stats::Verdict;
use fwdlab_model::plan::RunMetric;

/// Version of the fields of `results.json`; raised when an existing field is renamed or changes its
/// meaning.
const VERSION: u32 = 1;

/// Separate page for all verdicts, if there are many.
const VERDICTS: &str = "VERDICTS.md";
/// Number of differences shown if there are many.
const LARGEST: usize = 8;
/// Number of variants' files named if there are many.
const NAMED: usize = 3;
/// Maximum number of listed invocations: with one per share there may be a thousand.
const INVOCATIONS: usize = 20;

/// The plots of a report.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// The rates of the variants.
    pub graph: Drawing,
    /// The runs in order.
    pub order: Drawing,
    /// The effects with their intervals; `None` if no rates are compared.
    pub effects: Option<Drawing>,
}

/// Returns the report of an analysis with its plots: the result first, with its evidence below,
/// folded or on separate pages.
pub fn document<'a>(analysis: &'a Analysis, pictures: &Pictures) -> Document<'a> {
    let mut conclusion: Vec<Block> =
        Block::caption(&analysis.core.testbed.caption).into_iter().collect();
    conclusion.extend(analysis.archive.as_ref().and_then(ArchiveResult::patch_found));
    conclusion.push(answer::found(analysis));
    let mut blocks = Vec::new();
    let figure = |title: &str, file: &str, drawing: &Drawing| {
        let (title, file, drawing) = (title.to_owned(), Some(file.to_owned()), drawing.clone());
        Block::Figure(Figure { title, file, drawing })
    };
    // A report of a loss curve begins with the plot, and the curve's section has the table.
    let context = analysis.context(&pictures.order);
    let section = |section: &dyn Section| section.document(&context);
    let first = analysis.method.as_ref().and_then(|of| of.first_figure(context.plots));
    let of_method = match &first {
        Some(_) => Context { plots: &[], ..context },
        None => context,
    };
    blocks.extend(first);
    let mut graph = Some(figure(&analysis.core.title, "graph.png", &pictures.graph));
    // The result of a search is its rates.
    if is_searched(analysis) {
        blocks.extend(graph.take());
    }
    if let Some(effects) = &pictures.effects {
        blocks.push(figure("Effects with their intervals", "effects.svg", effects));
    }
    // Effects come first if they are drawn, and the graph is then next to the rates.
    let are_many = analysis.core.variants.len() > MANY;
    if pictures.effects.is_none() || are_many {
        blocks.extend(graph.take());
    }
    if let Some(method) = &analysis.method
        && answer::of_floods(analysis).is_none()
    {
        blocks.push(Block::list(method.sentences()));
    }
    blocks.push(Block::list(answer::beside(analysis)));
    blocks.extend(Block::notes(&analysis.core.notes));
    blocks.extend(analysis.archive.as_ref().and_then(ArchiveResult::patch_section));
    match analysis.core.comparisons.len() {
        0 => {}
        n if n > MANY && analysis.counts.is_none() => {
            blocks.extend(largest(analysis));
            blocks.push(Block::section("All verdicts", answers(analysis)).on_page(VERDICTS));
        }
        _ => blocks.push(Block::section("Verdicts", answers(analysis))),
    }
    blocks.extend(section(&analysis.archive));
    match &analysis.counts {
        Some(_) => {
            blocks.extend(graph);
            blocks.extend(section(&analysis.counts));
        }
        // A search's table has the same rates, next to its goals. Losses of the runs' own trials at
        // the maximum load don't belong among rates without loss.
        None if is_searched(analysis) => {}
        None => {
            let section = figures::section(&analysis.core, graph);
            blocks.push(if are_many { section.on_page(DETAILS) } else { section });
        }
    }
    blocks.extend(analysis.method.document(&of_method));
    blocks.extend(section(&analysis.sizes));
    blocks.extend(section(&analysis.scaling));
    blocks.extend(section(&analysis.device));
    blocks.extend(section(&analysis.beds));
    blocks.push(warnings::section(&context));
    let has_findings = analysis.diagnostics.has_findings();
    if has_findings {
        blocks.extend(section(&analysis.diagnostics));
    }
    blocks.extend(section(&analysis.profiles));
    let setup = Block::section("Set-up", vec![Block::list(&analysis.core.setup)]);
    blocks.push(setup.folded().on_page(DETAILS));
    if let Some(how) = computed(analysis) {
        blocks.push(how.folded().on_page(DETAILS));
    }
    blocks.extend(section(&analysis.ministat));
    if !has_findings {
        blocks.extend(section(&analysis.diagnostics));
    }
    blocks.extend(section(&analysis.packets));
    blocks.extend(section(&analysis.queues));
    blocks.extend(section(&analysis.openings));
    blocks.extend(section(&analysis.ceiling));
    blocks.extend(section(&analysis.timing));
    blocks.push(runs::section(analysis));
    blocks.push(Block::section("How it was made", vec![made(analysis)]));
    Document {
        title: analysis.core.title.clone(),
        conclusion,
        blocks,
        data: analysis,
        version: VERSION,
    }
}

/// Returns a document about searches without a report.
pub fn searches<'a>(title: &str, method: &'a Method) -> Document<'a> {
    Document {
        title: title.to_owned(),
        conclusion: Vec::new(),
        blocks: vec![method.section(&method.plots())],
        data: method,
        version: VERSION,
    }
}

/// Returns true if the runs' metric is the throughput of a search.
fn is_searched(analysis: &Analysis) -> bool {
    let search = analysis.method.as_ref().and_then(Method::search);
    analysis.core.figure == RunMetric::Throughput && search.is_some()
}

/// Returns the method of each verdict; `None` without verdicts.
fn computed(analysis: &Analysis) -> Option<Block> {
    let mut computed = analysis.core.comparisons.iter().filter_map(|compared| {
        let how = how(compared)?;
        Some(format!("{} against {}: {how}", compared.candidate(), compared.baseline_label))
    });
    let first = computed.next()?;
    let all = std::iter::once(first).chain(computed);
    Some(Block::section("Method, and secondary estimates", vec![Block::list(all)]))
}

/// Returns the largest of many differences; `None` if no difference was found.
fn largest(analysis: &Analysis) -> Option<Block> {
    let size = |compared: &&Compared| match &compared.outcome {
        Outcome::Compared(answer) if matches!(answer.verdict, Verdict::Better | Verdict::Worse) => {
            Some(answer.comparison.ratio.ln().abs())
        }
        _ => None,
    };
    let mut found: Vec<&Compared> =
        analysis.core.comparisons.iter().filter(|compared| size(compared).is_some()).collect();
    found.sort_by(|a, b| size(b).unwrap_or(0.0).total_cmp(&size(a).unwrap_or(0.0)));
    let all = found.len();
    let shown: Vec<Compared> = found.into_iter().take(LARGEST).cloned().collect();
    if shown.is_empty() {
        return None;
    }
    let medians = analysis.core.variants.iter().filter_map(|v| v.summary).map(|s| s.median);
    let quantity = Quantity::PACKET_RATE;
    let (unit, scale) = quantity.scale(medians.fold(0.0, f64::max));
    let rates = |compared: &Compared, at: usize| {
        Cell::number(analysis.median(compared, at).map(|pps| pps / scale), Digits::Significant)
    };
    let of = |get: fn(&Answer) -> String| {
        move |compared: &Compared| match &compared.outcome {
            Outcome::Compared(answer) => Cell::text(get(answer)),
            _ => Cell::None,
        }
    };
    let table = Table::of(&shown)
        .words("variant", |compared| Cell::text(compared.candidate()))
        .words("verdict", |compared| match &compared.outcome {
            Outcome::Compared(answer) => {
                Cell::Verdict(answer.verdict.to_string(), answer.shown.verdict.clone())
            }
            _ => Cell::None,
        })
        .numbers("effect", of(|answer| answer.shown.effect.clone()))
        .words("interval", of(|answer| answer.shown.interval.clone()))
        .numbers(unit, |compared| rates(compared, compared.variant))
        .words("against", |compared| Cell::text(&compared.baseline_label))
        .numbers(unit, |compared| rates(compared, compared.baseline));
    let text = match all > shown.len() {
        true => format!("The {} largest of {all} differences that were found.", shown.len()),
        false => "All differences that were found.".to_owned(),
    };
    Some(Block::section("Verdicts", vec![Block::text(text), table.block()]))
}

fn answers(analysis: &Analysis) -> Vec<Block> {
    if analysis.counts.is_some() {
        let how = "Each variant against its baseline, by instructions per packet.";
        let text = format!("{how} {} {}", counted::terms(analysis.core.margin), NOT_TIME);
        return vec![Block::text(text), counted::verdicts(&analysis.core.comparisons)];
    }
    let how = if analysis.core.alternation {
        "Levels were switched live within streams of traffic and compared as neighbours in time."
    } else if analysis.core.sequential {
        "Each variant against its baseline, on the logarithm of the rate. Their runs share no \
         blocks: each variant's followed one another."
    } else {
        "Each variant against its baseline, in the same blocks, on the logarithm of the rate."
    };
    let Core { confidence, margin, adjustment, comparisons, .. } = &analysis.core;
    let how = match comparisons.iter().any(|compared| compared.goal.is_some()) {
        true => format!("{how} By what was found for the first goal, and for each further one."),
        false => how.to_owned(),
    };
    let terms = terms(*confidence, *margin, adjustment, comparisons.len());
    let rates: Rates<'_> =
        &|compared| [compared.baseline, compared.variant].map(|at| analysis.median(compared, at));
    vec![verdicts(comparisons, rates, false), Block::text(format!("{how} {terms}"))]
}

fn made(analysis: &Analysis) -> Block {
    let Core { plan_hash, seed, runs_recorded, runs_planned, testbed, .. } = &analysis.core;
    let mut lines: Vec<Inline> = vec![
        format!("plan {plan_hash}, seed {seed}, {runs_recorded} of {}", runs_of(*runs_planned))
            .into(),
    ];
    lines.extend(analysis.core.invocations.iter().take(INVOCATIONS).map(|i| {
        let (id, at, version, runs) = (i.id, &i.started_at, &i.fwdlab_version, runs_of(i.runs));
        let bed = i.bed.as_ref().map_or(String::new(), |bed| format!(", bed {bed}"));
        Inline::from(format!("invocation {id}: {at}, fwdlab {version}, {runs}{bed}"))
    }));
    let more = analysis.core.invocations.len().saturating_sub(INVOCATIONS);
    if let (1.., Some(last)) = (more, analysis.core.invocations.last()) {
        lines.push(format!("{more} further invocations, the last one {}", last.started_at).into());
    }
    if !testbed.reason.is_empty() {
        lines.push(
            format!("testbed {}: {}", MeasuredOn::of(testbed.kind, ""), testbed.reason).into(),
        );
    }
    lines.push(Inline::from("rebuilt from run.sqlite alone by ").code("fwdlab report"));
    let link = |text: Inline, name: &str| text.link(name, name);
    let mut files = link("files: ".into(), "index.html").text(" with every run, ");
    files = link(link(files, "runs.csv").text(", "), "results.json").text(", ");
    files = link(files, "environment.json").text(" (with the kernel's whole command line), ");
    files = link(link(files, "gnuplot.data").text(", "), "graph.svg");
    let measured: Vec<_> = analysis.core.variants.iter().filter(|v| !v.values.is_empty()).collect();
    let shown = if measured.len() > MANY { NAMED } else { measured.len() };
    for variant in &measured[..shown] {
        files = link(files.text(", "), &variant.file);
    }
    lines.push(match measured.len() - shown {
        0 => files,
        more => files.text(format!(" and {more} of further variants")),
    });
    Block::list(lines)
}
