//! Rates by frame size.

use super::quality::frame_size;
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Figure, Table};
use crate::plot::Drawing;
use crate::report::analysis::{SIZES_PICTURE, SizePoint, Sizes};
use fwdlab_model::units::{format_bps, format_pps};

/// Returns the section with its plot.
pub(super) fn section(sizes: &Sizes, pictures: &[(String, Drawing)]) -> Block {
    let rows: Vec<(&str, &SizePoint)> = sizes
        .series
        .iter()
        .flat_map(|one| one.points.iter().map(|point| (one.name.as_str(), point)))
        .collect();
    let bits = |bps: f64| Cell::Values(format_bps(bps).into(), vec![bps.into()]);
    let table = Table::of(&rows)
        .words("series", |(name, _)| Cell::text(if name.is_empty() { "all" } else { *name }))
        .numbers("frame size", |(_, point)| frame_size(point.frame_size))
        .numbers("runs", |(_, point)| Cell::count(point.runs))
        .numbers("rate", |(_, point)| Cell::rate(point.rate))
        .words("interval", |(_, point)| match point.interval {
            Some((low, high)) => {
                let text = format!("[{}, {}]", format_pps(low), format_pps(high));
                Cell::Values(text.into(), vec![low.into(), high.into()])
            }
            None => Cell::None,
        })
        .keys(&["low", "high"])
        .numbers("L1", |(_, point)| bits(point.bits.0))
        .numbers("L2", |(_, point)| bits(point.bits.1));
    let table = match rows.iter().any(|(_, point)| point.line_pps.is_some()) {
        true => table.numbers("of line rate", |(_, point)| {
            Cell::number(point.line_pps.map(|line| point.rate / line), Digits::Percent(2))
        }),
        false => table,
    };
    let table = table
        .numbers("loss in the runs' own trials", |(_, point)| {
            Cell::number(point.loss, Digits::Percent(2))
        })
        .keys(&["loss"])
        .set(|table| table.name = Some("frame-sizes"));
    let text = format!(
        "Geometric means of the runs with {} % intervals by Student's t on logarithms, for three runs \
         and more. L1: bits on the link with preamble and gap; L2: of the frames with FCS.",
        sizes.confidence
    );
    let picture = pictures.iter().find(|(name, _)| name == SIZES_PICTURE).map(|(name, drawing)| {
        let title = "Rate by frame size".to_owned();
        Block::Figure(Figure { title, file: Some(name.clone()), drawing: drawing.clone() })
    });
    let blocks = picture.into_iter().chain([table.block(), Block::text(text)]);
    Block::section("Rate by frame size", blocks.collect())
}
