//! Draws what was found: SVG text, and PNG from it.
//!
//! - [`Chart`]: medians with their range over the levels of a factor, as lines
//!   where the factor is numeric and as grouped bars elsewhere; with a [`Fit`],
//!   a fitted curve through them.
//! - [`Effects`]: comparisons with their intervals, and the margin that matters.
//! - [`Strip`]: every run in the order of execution, to see drift; and the
//!   trace of one stream, sample by sample.
//! - [`Losses`]: loss against offered load, a curve for each variant.
//! - [`Percentiles`]: delays by percentile, with the tail in sight.
//! - [`Revisions`]: one configuration over revisions, and where it changed.
//! - [`Posterior`]: where a bisection thinks the change is.
//! - [`png::render`]: pixels of any of these, with a font of its own.
//!
//! The same data yields the same text: no time stamps, no random names, so
//! figures can be compared with golden files and kept under version control.
//! Rates start at zero wherever lengths are compared. Left out: interaction.

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
pub use strip::{Mark, Span, Strip};
pub use svg::Sheet;

#[cfg(test)]
mod tests;

/// The palette of Okabe and Ito (2008), which colour-blind people tell apart,
/// in an order that puts the light ones last.
const PALETTE: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000", "#F0E442"];

/// Colour of a series, repeating after eight.
fn colour(index: usize) -> &'static str {
    PALETTE[index % PALETTE.len()]
}
