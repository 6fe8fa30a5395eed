//! Draws results: SVG text, and PNG from it.
//!
//! - [`Chart`]: medians with their range over the levels of a factor, as lines for a numeric factor
//!   and as grouped bars otherwise; with a [`Fit`], a fitted curve through them.
//! - [`Effects`]: comparisons with their intervals, and the margin of equivalence.
//! - [`Strip`]: runs in the order of execution, to show drift; and the trace of one stream, sample
//!   by sample.
//! - [`Losses`]: loss against offered load, one curve per variant.
//! - [`Percentiles`]: delays by percentile, including the tail.
//! - [`Revisions`]: one configuration over revisions, and its changes.
//! - [`Posterior`]: probable location of a change in a bisection.
//! - [`Sparkline`]: a small line without axes.
//! - [`png::render`]: pixels of any of these, with a vendored font.
//!
//! The output is deterministic, without time stamps and random names, so figures can be compared
//! with golden files and kept under version control. Rates start at zero wherever lengths are
//! compared. Out of scope: interaction.

mod axis;
mod chart;
mod draw;
mod effects;
mod fit;
mod frame;
mod history;
mod losses;
mod percentiles;
pub mod png;
mod posterior;
mod quantity;
mod scale;
mod sparkline;
mod strip;
mod svg;
mod text;
mod xlabels;

pub use chart::{Chart, Point, RightAxis, Series, XAxis};
pub use draw::{Draw, Drawing};
pub use effects::{Effect, Effects, Found};
pub use fit::{CurvePoint, Fit};
pub use history::{ChangeMark, Level, RevisionPoint, Revisions};
pub use losses::{LossCurve, LossPoint, Losses};
pub use percentiles::{Curve, Percentiles};
pub use posterior::Posterior;
pub use quantity::Quantity;
pub use sparkline::{Spark, Sparkline};
pub use strip::{Mark, Span, Strip};
pub use svg::Sheet;

#[cfg(test)]
mod tests;

/// Palette of Okabe and Ito (2008), which colour-blind people can distinguish, ordered with the
/// light colours last.
const PALETTE: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000", "#F0E442"];

/// Colour of a series; colours repeat after eight.
fn colour(index: usize) -> &'static str {
    PALETTE[index % PALETTE.len()]
}
