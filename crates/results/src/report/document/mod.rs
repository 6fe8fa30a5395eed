//! The report as a document: the answer first, then figures, doubts and how it was made.
//!
//! [`super::analysis`] has computed all of it; here it is put into sections and tables, and
//! [`crate::document::form`] writes them.

mod archive;
mod counts;
mod figures;
mod method;
mod profiles;
mod quality;
mod summary;

pub use method::searches;
pub use summary::{summary, summary_text};

use super::analysis::{Analysis, MinistatBlock};
use super::counted;
use super::verdicts::{terms, verdicts};
use crate::counts::NOT_TIME;
use crate::document::{Block, Document, Figure, Inline};
use crate::label::MeasuredOn;

/// Version of the shape of `results.json`; raised when something that was there
/// is named otherwise or means something else.
const VERSION: u32 = 1;

/// The report of an analysis with its pictures (SVG): the graph, and the runs in their order.
pub fn document<'a>(analysis: &'a Analysis, graph: &str, order: &str) -> Document<'a> {
    let mut blocks: Vec<Block> = Block::caption(&analysis.testbed.caption).into_iter().collect();
    if let Some(method) = &analysis.method {
        blocks.push(Block::list(method::sentences(method)));
    }
    blocks.push(Block::list(&analysis.setup));
    blocks.extend(Block::notes(&analysis.notes));
    blocks.push(Block::Figure(Figure {
        title: analysis.title.clone(),
        file: Some("graph.png".to_owned()),
        svg: graph.to_owned(),
    }));
    if !analysis.comparisons.is_empty() {
        blocks.push(Block::section("Verdicts", answers(analysis)));
    }
    if let Some(archive) = &analysis.archive {
        blocks.extend(archive::sections(archive));
    }
    match &analysis.counts {
        Some(counts) => {
            blocks.push(counts::figures(analysis, counts));
            blocks.extend(counts::sections(analysis, counts));
        }
        None => blocks.push(figures::section(analysis)),
    }
    if let Some(method) = &analysis.method {
        blocks.push(method::section(method, &analysis.profile_pictures));
    }
    blocks.extend(figures::scaling(analysis));
    blocks.extend(analysis.device.as_ref().map(figures::device));
    if let Some(profiles) = &analysis.profiles {
        blocks.push(profiles::section(profiles, analysis.archive.is_some()));
    }
    if analysis.counts.is_none() {
        blocks.push(ministat(analysis));
    }
    blocks.extend(quality::sections(analysis, order));
    blocks.push(Block::section("How it was made", vec![made(analysis)]));
    Document {
        title: analysis.title.clone(),
        conclusion: Vec::new(),
        blocks,
        data: analysis,
        version: VERSION,
    }
}

fn answers(analysis: &Analysis) -> Vec<Block> {
    if analysis.counts.is_some() {
        let how = "Each variant against its baseline, by instructions a packet.";
        let text = format!("{how} {} {}", counted::terms(analysis.margin), NOT_TIME);
        return vec![Block::text(text), verdicts(&analysis.comparisons)];
    }
    let how = if analysis.alternation {
        "Levels were switched live within streams of traffic and compared as neighbours in time."
    } else if analysis.sequential {
        "Each variant against its baseline, on the logarithm of the rate. Their runs share no \
         blocks: each variant's followed one another."
    } else {
        "Each variant against its baseline, in the same blocks, on the logarithm of the rate."
    };
    let Analysis { confidence, margin, adjustment, comparisons, .. } = analysis;
    let how = match comparisons.iter().any(|compared| compared.goal.is_some()) {
        true => format!("{how} By what was found for the first goal, and for each further one."),
        false => how.to_owned(),
    };
    let terms = terms(*confidence, *margin, adjustment, comparisons.len());
    vec![Block::text(format!("{how} {terms}")), verdicts(comparisons)]
}

fn ministat(analysis: &Analysis) -> Block {
    let published = analysis.archive.as_ref().map_or(&[][..], |archive| &archive.blocks);
    let what = match published.is_empty() {
        true => "The same figures, without their blocks, as ministat shows them.",
        false => {
            "The published blocks, made again from the values of the logs; order of the sets, \
             width and legends are those of the published text."
        }
    };
    let mut blocks = vec![Block::text(what)];
    blocks.extend(published.iter().map(|block| {
        let heading = match block.heading.as_str() {
            "" => "A block without a heading",
            heading => heading,
        };
        let text = Block::Preformatted(block.text.clone());
        Block::section(heading, vec![text, Block::text(&block.sentence)])
    }));
    blocks.extend(analysis.ministat.iter().map(|MinistatBlock { title, text, notes, .. }| {
        let shown = (!text.is_empty()).then(|| Block::Preformatted(text.clone()));
        let notes = notes.iter().map(|note| Block::text(format!("{note}.")));
        Block::section(title, shown.into_iter().chain(notes).collect())
    }));
    Block::section("ministat", blocks)
}

fn made(analysis: &Analysis) -> Block {
    let Analysis { plan_hash, seed, runs_recorded, runs_planned, testbed, .. } = analysis;
    let mut lines: Vec<Inline> = vec![
        format!("plan {plan_hash}, seed {seed}, {runs_recorded} of {runs_planned} runs").into(),
    ];
    lines.extend(analysis.invocations.iter().map(|i| {
        let (id, at, version, runs) = (i.id, &i.started_at, &i.fwdlab_version, i.runs);
        Inline::from(format!("invocation {id}: {at}, fwdlab {version}, {runs} runs"))
    }));
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
    for variant in analysis.variants.iter().filter(|variant| !variant.values.is_empty()) {
        files = link(files.text(", "), &variant.file);
    }
    lines.push(files);
    Block::list(lines)
}
