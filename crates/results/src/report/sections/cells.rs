//! Table cells that several sections use.

use crate::document::table::Cell;
use crate::format::duration;
use fwdlab_model::units::{FrameSize, format_bps};

/// Formats the frame size in bytes, or the mix.
pub(super) fn frame_size(size: FrameSize) -> Cell {
    size.one().map_or_else(|| Cell::text(size.text()), Cell::count)
}

/// Formats bits per second.
pub(super) fn bits(bps: Option<f64>) -> Cell {
    bps.map_or(Cell::None, |bps| Cell::Values(format_bps(bps).into(), vec![bps.into()]))
}

/// Formats a time in seconds with a suitable unit.
pub(super) fn seconds(value: Option<f64>) -> Cell {
    value.map_or(Cell::None, |s| Cell::Values(duration(s).into(), vec![s.into()]))
}
