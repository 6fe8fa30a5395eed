//! The data sheet as a document.

use fwdlab_model::units::format_pps;
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, Document, Remark, Table};
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::{Compared, Outcome, SummaryResult, VariantResult};
use fwdlab_results::report::sections::{LatencyResult, SearchOutcome};
use fwdlab_results::stats::Verdict;
use serde::Serialize;
use std::path::PathBuf;

/// All parts of a sheet, as `--json` prints them.
#[derive(Serialize)]
pub(super) struct Sheet {
    pub(super) parts: Vec<MeasuredPart>,
    pub(super) missing: Vec<MissingPart>,
}

/// A part that was measured.
#[derive(Serialize)]
pub(super) struct MeasuredPart {
    pub(super) part: &'static str,
    /// Directory of its store and report.
    pub(super) directory: PathBuf,
    #[serde(rename = "results")]
    pub(super) analysis: Analysis,
}

/// A part that could not be measured.
#[derive(Serialize)]
pub(super) struct MissingPart {
    pub(super) part: &'static str,
    pub(super) title: &'static str,
    pub(super) why: String,
}

/// The sheet: one section per part, then the conditions of the results.
pub(super) fn document(sheet: &Sheet) -> Document<'_> {
    let section = |found: &MeasuredPart| {
        let analysis = &found.analysis;
        let table = match found.part {
            "throughput" => throughput(analysis),
            "latency" => latency(analysis),
            "rates" => rates(analysis, "frames"),
            "nat" => rates(analysis, "firewall"),
            part => rates(analysis, part),
        };
        Block::section(
            analysis.core.title.as_str(),
            std::iter::once(table).chain(doubts(found)).collect(),
        )
    };
    let mut blocks: Vec<Block> = sheet.parts.iter().map(section).collect();
    blocks.extend(sheet.missing.iter().map(|part| {
        let text = format!("part {} ({}) is missing: {}", part.part, part.title, part.why);
        Block::remark(Remark::Warning, text)
    }));
    blocks.extend(holds_for(sheet));
    Document {
        title: "Data sheet".to_owned(),
        conclusion: vec![Block::text(conclusion(sheet))],
        blocks,
        data: sheet,
        version: 1,
    }
}

/// Rates of variants, and the changes from their baselines.
fn rates(analysis: &Analysis, what: &'static str) -> Block {
    let compared = |variant: &VariantResult| {
        analysis.core.comparisons.iter().find(|compared| compared.variant == variant.index)
    };
    let figure = analysis.core.figure;
    Table::of(&analysis.core.variants)
        .words(what, |variant: &VariantResult| Cell::text(variant.label.as_str()))
        .numbers("rate", |v| pps(v.summary.as_ref().map(|summary| summary.median)))
        .numbers("of runs", |v| range(v.summary.as_ref()))
        .keys(&["minimum", "maximum"])
        .spare()
        .numbers("counted", move |v| pps(v.counted(figure).map(|(counted, _)| counted)))
        .when(analysis.core.variants.iter().any(|variant| variant.counted(figure).is_some()))
        .numbers("bits/s", bits)
        .spare()
        .numbers("loss", |v| v.loss.as_ref().map_or(Cell::None, |loss| Cell::text(&loss.shown)))
        .spare()
        .words("change", move |v| compared(v).map_or(Cell::None, change))
        .when(!analysis.core.comparisons.is_empty())
        .block()
}

/// A rate with its unit.
fn pps(value: Option<f64>) -> Cell {
    value.map_or(Cell::None, |pps| Cell::Values(format_pps(pps).into(), vec![pps.into()]))
}

/// Minimum and maximum of the runs, in the unit of the maximum.
fn range(summary: Option<&SummaryResult>) -> Cell {
    let Some(SummaryResult { min, max, .. }) = summary else { return Cell::None };
    let (least, most) = (format_pps(*min), format_pps(*max));
    let unit = |text: &str| text.rsplit(' ').next().map(str::to_owned);
    let least = match unit(&least) == unit(&most) {
        true => least.rsplit_once(' ').map_or(least.clone(), |(number, _)| number.to_owned()),
        false => least,
    };
    Cell::Values(format!("{least} to {most}").into(), vec![(*min).into(), (*max).into()])
}

/// The rate in bits per second on the link, without preamble and gap (L2).
fn bits(variant: &VariantResult) -> Cell {
    let bits = variant.summary.as_ref().zip(variant.frame_size);
    bits.map_or(Cell::None, |(summary, frame)| {
        let bits = summary.median * 8.0 * frame.mean();
        Cell::Values(format_bits(bits).into(), vec![bits.into()])
    })
}

/// Bits per second with a unit.
fn format_bits(bits: f64) -> String {
    match bits {
        bits if bits >= 1e9 => format!("{:.2} Gbit/s", bits / 1e9),
        bits => format!("{:.1} Mbit/s", bits / 1e6),
    }
}

fn change(compared: &Compared) -> Cell {
    match &compared.outcome {
        Outcome::Compared(answer) if answer.verdict == Verdict::NotJudged => {
            Cell::text("not judged: see the report")
        }
        Outcome::Compared(answer) => {
            Cell::text(format!("{} {}", answer.shown.effect, answer.shown.interval))
        }
        Outcome::Counted(exact) => Cell::text(exact.differences()),
        Outcome::Unanswerable { .. } => Cell::text("no answer"),
    }
}

/// Throughput for each frame size and goal.
fn throughput(analysis: &Analysis) -> Block {
    let searched: &[SearchOutcome] =
        analysis.method.as_ref().map_or(&[], |method| &method.searched);
    let several = searched.iter().any(|found| found.label != searched[0].label);
    Table::of(searched)
        .words("frames", |found: &SearchOutcome| Cell::text(found.label.as_str()))
        .when(several)
        .words("goal", |found| Cell::text(found.goal.as_str()))
        .numbers("throughput", |f| pps(f.throughput.as_ref().map(|summary| summary.median)))
        .numbers("of runs", |f| range(f.throughput.as_ref()))
        .keys(&["minimum", "maximum"])
        .numbers("bits/s", |found| {
            found
                .bits
                .map_or(Cell::None, |(_, l2)| Cell::Values(format_bits(l2).into(), vec![l2.into()]))
        })
        .words("regular", |found| {
            let (regular, all) = found.regular;
            Cell::text(format!("{regular} of {all}"))
        })
        .block()
}

/// Latency at each share of the throughput.
fn latency(analysis: &Analysis) -> Block {
    let timed: &[LatencyResult] = analysis.method.as_ref().map_or(&[], |method| &method.timed);
    let figure = |name: &'static str| {
        move |timed: &LatencyResult| {
            let found = timed.figures.iter().find(|figure| figure.name == name);
            let seconds = found.and_then(|figure| figure.seconds);
            seconds.map_or(Cell::None, |seconds| {
                let text = format!("{:.1} us", seconds * 1e6);
                Cell::Values(text.into(), vec![seconds.into()])
            })
        }
    };
    let floor = |timed: &LatencyResult| {
        let found = timed.figures.iter().find(|figure| figure.name == "p50");
        found.and_then(|figure| figure.floor).map_or(Cell::None, |seconds| {
            Cell::Values(format!("{:.1} us", seconds * 1e6).into(), vec![seconds.into()])
        })
    };
    Table::of(timed)
        .numbers("share", |timed: &LatencyResult| Cell::number(timed.share, Digits::Percent(0)))
        .numbers("load", |timed| {
            Cell::Values(format_pps(timed.load).into(), vec![timed.load.into()])
        })
        .numbers("p50", figure("p50"))
        .numbers("p99", figure("p99"))
        .numbers("p99.9", figure("p99.9"))
        .numbers("maximum", figure("maximum"))
        .numbers("p50 of the instrument", floor)
        .numbers("packets", |timed| Cell::count(timed.packets))
        .block()
}

/// Warnings about a part, and the path of its report.
fn doubts(found: &MeasuredPart) -> Vec<Block> {
    let analysis = &found.analysis;
    let warnings =
        analysis.core.variants.iter().map(|variant| variant.warnings.len()).sum::<usize>();
    let mut blocks = Vec::new();
    if analysis.has_fatal_warning() {
        let text = "These figures can't be trusted: see the report.";
        blocks.push(Block::remark(Remark::Warning, text));
    }
    for (label, why) in analysis.without_result() {
        blocks.push(Block::remark(Remark::Warning, format!("{label} has no result: {why}")));
    }
    let place = found.directory.join("README.md");
    blocks.push(Block::text(match warnings {
        0 => format!("Report: {}", place.display()),
        1 => format!("1 warning; report: {}", place.display()),
        _ => format!("{warnings} warnings; report: {}", place.display()),
    }));
    blocks
}

/// Conditions under which the results hold.
fn holds_for(sheet: &Sheet) -> Option<Block> {
    let analysis = &sheet.parts.first()?.analysis;
    let mut lines = analysis.core.setup_brief.clone();
    lines.push(analysis.core.testbed.caption.clone());
    lines.push(
        "Rates are medians of runs at the maximum load that the sender offers; delays are timed \
         from the moment at which a packet was due."
            .to_owned(),
    );
    lines.retain(|line| !line.is_empty());
    Some(Block::section("What these figures hold for", vec![Block::list(lines)]))
}

/// The sheet in a sentence: the rate, the throughput and a latency.
fn conclusion(sheet: &Sheet) -> String {
    let part = |name: &str| sheet.parts.iter().find(|found| found.part == name);
    let mut sentences = Vec::new();
    if let Some(rates) = part("rates") {
        sentences.extend(rates.analysis.core.variants.iter().filter_map(|variant| {
            let pps = variant.summary.as_ref()?.median;
            Some(format!("{}: {} at the maximum load", variant.label, format_pps(pps)))
        }));
    }
    if let Some(method) = part("throughput").and_then(|found| found.analysis.method.as_ref()) {
        let without_loss = method.searched.iter().filter(|found| found.goal == "ndr");
        sentences.extend(without_loss.filter_map(|found| {
            let pps = found.throughput.as_ref()?.median;
            Some(format!("{}: {} without loss", found.label, format_pps(pps)))
        }));
    }
    if let Some(method) = part("latency").and_then(|found| found.analysis.method.as_ref()) {
        sentences.extend(method.timed.iter().filter(|timed| timed.share == 0.5).filter_map(
            |timed| {
                let p99 = timed.figures.iter().find(|figure| figure.name == "p99")?.seconds?;
                let load = format_pps(timed.load);
                Some(format!("99 % of the packets within {:.1} us at {load}", p99 * 1e6))
            },
        ));
    }
    let measured = match (sheet.parts.len(), sentences.is_empty()) {
        (0, _) => "Nothing was measured.".to_owned(),
        (n, true) => format!("Measured parts: {n}."),
        (_, false) => format!("{}.", sentences.join("; ")),
    };
    let missing: Vec<&str> = sheet.missing.iter().map(|part| part.part).collect();
    match missing.len() {
        0 => measured,
        n => {
            let of = n + sheet.parts.len();
            format!("{measured} Missing parts: {n} of {of} ({}).", missing.join(", "))
        }
    }
}
