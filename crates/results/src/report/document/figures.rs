//! Rates by variant.

use crate::document::table::{Cell, Digits};
use crate::document::{Block, Inline};
use crate::label::word_of;
use crate::report::analysis::{Core, VariantResult};
use crate::report::verdicts::variants;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::units::{FrameSize, format_bps};

/// Returns a table with one row per variant, below the graph if it is in this section.
pub(super) fn section(core: &Core, graph: Option<Block>) -> Block {
    let text = Inline::from("One figure stands for a run. Compared is ")
        .strong(word_of(core.figure).replace('-', " "))
        .text(format!(
            ": {}. The table also lists the plain mean and the capacity, the 90th percentile of \
             the samples, as medians over the runs, in packets per second; the median as a bit \
             rate on the wire (L1: with preamble and gap) and of the frames (L2); then the share \
             of the time that was provably taken from the device, and the packets lost.",
            core.figure.description()
        ));
    let compared = |figure, title: &str, suffix: &str| match core.figure == figure {
        true => format!("{title}{suffix}"),
        false => title.to_owned(),
    };
    let table = variants(&core.variants, |v| (v.label.as_str(), v.summary.as_ref()))
        .numbers(compared(RunMetric::Mean, "mean", " (compared)"), |v| Cell::rate(v.mean_median))
        .numbers(compared(RunMetric::P90, "capacity (p90)", ", compared"), |v| {
            Cell::rate(v.p90_median)
        })
        .numbers("L1", |v| bits(v, FrameSize::l1_bits_per_second))
        .about("median as bits on the wire: frames with FCS, preamble and gap")
        .numbers("L2", |v| bits(v, FrameSize::l2_bits_per_second))
        .about("median as bits of frames with FCS");
    let table = match core.variants.iter().any(|v| of_line(v).is_some()) {
        true => table
            .numbers("of line rate", |v| Cell::number(of_line(v), Digits::Percent(2)))
            .about("median over the packets that the links take at most, both directions together"),
        false => table,
    };
    let table = table
        .numbers("taken", |v| Cell::number(v.taken, Digits::Percent(1)))
        .numbers("loss", |v| v.loss.as_ref().map_or(Cell::None, |loss| Cell::text(&loss.shown)))
        .numbers("warnings", |v| Cell::count(v.warnings.len()));
    let blocks = graph.into_iter().chain([table.block(), Block::text(text)]);
    Block::section("Figures", blocks.collect())
}

/// Returns the ratio of the median rate to the line rate; `None` if the line rate is unknown, and
/// for a mix, since a device may lose more frames of one size than of another.
fn of_line(variant: &VariantResult) -> Option<f64> {
    variant.frame_size.filter(|size| !size.is_mix())?;
    Some(variant.summary?.median / variant.line_pps?)
}

/// Returns the median rate in bits per second; empty for a mix, since a device may lose more frames
/// of one size than of another.
fn bits(variant: &VariantResult, of: fn(&FrameSize, f64) -> f64) -> Cell {
    let size = variant.frame_size.filter(|size| !size.is_mix());
    let bps = size.zip(variant.summary).map(|(size, summary)| of(&size, summary.median));
    bps.map_or(Cell::None, |bps| Cell::Values(format_bps(bps).into(), vec![bps.into()]))
}
