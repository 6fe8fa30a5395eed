//! Bit rates of runs with a mix of frame sizes, from the bytes that arrived.
//!
//! Packets per second do not determine the bit rate of a mix: a device may lose more frames of one
//! size than of another. The receiver therefore counts bytes per window.

use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::groups::groups;
use crate::report::sections::cells::bits;
use crate::stats::summary::median;
use crate::store::Contents;
use fwdlab_model::units::{FCS_BYTES, WIRE_OVERHEAD_BYTES};
use serde::Serialize;

/// Arrivals of a mix in the runs of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct MixRates {
    /// Label.
    pub label: String,
    /// The sizes, in the syntax of experiment files.
    pub mix: String,
    /// Number of frames of each size in its sequence.
    pub proportions: String,
    /// Mean size of the sent frames with FCS, bytes.
    pub sent_bytes: f64,
    /// Mean size of the frames that arrived in the windows with FCS, bytes; `None` if bytes were
    /// not counted.
    pub arrived_bytes: Option<f64>,
    /// Median L1 rate of the arrivals, over runs, bit/s.
    pub l1_bps: Option<f64>,
    /// Median L2 rate of the arrivals, over runs, bit/s.
    pub l2_bps: Option<f64>,
}

/// Returns the rates of every variant with a mix, or set of variants that share streams.
pub(super) fn mixes(contents: &Contents) -> Vec<MixRates> {
    let mixed = groups(contents).into_iter().filter_map(|(label, runs)| {
        let variant = *runs.first()?.variants.first()?;
        let size = contents.plan.variants.get(variant)?.settings.traffic.frame_size;
        if !size.is_mix() {
            return None;
        }
        let counted: Vec<(f64, f64, f64)> = runs
            .iter()
            .filter(|run| run.trial.arrivals.bytes_in_window > 0 && run.trial.window_ns > 0)
            .map(|run| {
                let packets = run.trial.window.forwarded as f64;
                let bytes = run.trial.arrivals.bytes_in_window as f64;
                (packets, bytes + packets * f64::from(FCS_BYTES), run.trial.window_ns as f64 / 1e9)
            })
            .collect();
        let packets: f64 = counted.iter().map(|(packets, ..)| packets).sum();
        let bytes: f64 = counted.iter().map(|(_, bytes, _)| bytes).sum();
        let rate = |overhead: u16| {
            let of = |&(packets, bytes, seconds): &(f64, f64, f64)| {
                (bytes + packets * f64::from(overhead)) * 8.0 / seconds
            };
            median(&counted.iter().map(of).collect::<Vec<f64>>())
        };
        Some(MixRates {
            label,
            mix: size.text(),
            proportions: size.proportions(),
            sent_bytes: size.mean(),
            arrived_bytes: (packets > 0.0).then(|| bytes / packets),
            l1_bps: rate(WIRE_OVERHEAD_BYTES),
            l2_bps: rate(0),
        })
    });
    mixed.collect()
}

/// Returns the bit rates of mixes of frame sizes, from the bytes that arrived.
pub(super) fn table(rows: &[MixRates]) -> Vec<Block> {
    if rows.is_empty() {
        return Vec::new();
    }
    let text = "Frames of a mix, with FCS, and bits a second of those that arrived in the \
                windows, by their bytes: where the mean frame that arrived is another than the \
                one that was sent, sizes are not lost alike.";
    let mean = |bytes| Cell::number(bytes, Digits::Decimals(1));
    let table = Table::of(rows)
        .words("variant", |mix| Cell::text(&mix.label))
        .words("mix", |mix| Cell::text(&mix.mix))
        .words("sizes", |mix| Cell::text(&mix.proportions))
        .numbers("mean sent", move |mix| mean(Some(mix.sent_bytes)))
        .numbers("mean arrived", move |mix| mean(mix.arrived_bytes))
        .numbers("L1", |mix| bits(mix.l1_bps))
        .numbers("L2", |mix| bits(mix.l2_bps))
        .set(|table| table.name = Some("mixes"));
    vec![Block::text(text), table.block()]
}
