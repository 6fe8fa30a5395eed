//! A curve fitted to a series: the curve, the band of its interval, and a mark at its maximum.
//!
//! A curve that fits the series replaces the line through the medians; one that does not is dashed,
//! and the line remains.

use super::axis::Axis;
use super::frame::{DIAMOND, Item, Plot, Sample, stroke};
use super::scale::Scale;
use super::svg::Svg;
use fwdlab_model::units::format_pps;

/// A curve fitted to a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Curve over ascending x.
    pub curve: Vec<CurvePoint>,
    /// Number with the highest predicted rate, and that rate. `None` if it can be beyond the curve.
    pub best: Option<(f64, f64)>,
    /// Confidence of the band in percent.
    pub confidence: f64,
    /// False if the series does not fit the curve.
    pub holds: bool,
}

/// A point of a fitted curve with its interval, in packets per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Number on the x axis.
    pub x: f64,
    /// Predicted rate.
    pub pps: f64,
    /// Lower edge of the band.
    pub low_pps: f64,
    /// Upper edge of the band.
    pub high_pps: f64,
}

impl Fit {
    /// Draws the band, the curve and the mark in the colour of a series.
    pub(super) fn draw(&self, svg: &mut Svg, plot: &Plot, y: &Axis, scale: &Scale, series: usize) {
        // A band wider than the figure ends at its edges.
        let at = |x: f64, pps: f64| {
            let height = plot.y(y, pps).clamp(plot.top, plot.bottom);
            scale.at(x).map(|x| (plot.left + x, height))
        };
        let edge = |of: fn(&CurvePoint) -> f64| -> Vec<(f64, f64)> {
            self.curve.iter().filter_map(|point| at(point.x, of(point))).collect()
        };
        let colour = super::colour(series);
        let mut band = edge(|point| point.high_pps);
        band.extend(edge(|point| point.low_pps).into_iter().rev());
        svg.polygon(&band, &format!("fill=\"{colour}\" fill-opacity=\"0.15\""));
        svg.polyline(&edge(|point| point.pps), colour, stroke(self.holds));
        if let Some((x, y)) = self.best.and_then(|(number, pps)| at(number, pps)) {
            let dotted = format!("stroke=\"{colour}\" stroke-dasharray=\"2 3\"");
            svg.line((x, y), (x, plot.bottom), &dotted);
            svg.diamond((x, y), DIAMOND, colour);
        }
    }

    /// Maximum rate of the curve, without its band.
    pub(super) fn max_pps(&self) -> f64 {
        self.curve.iter().map(|p| p.pps).filter(|pps| pps.is_finite()).fold(0.0, f64::max)
    }

    /// Name of the curve in the legend.
    fn name(&self) -> String {
        format!("scalability law with {} % band", self.confidence)
    }

    /// The best number and rate in words. `None` if there is none.
    pub(super) fn best_words(&self) -> Option<String> {
        self.best.map(|(number, pps)| format!("{number} ({})", format_pps(pps)))
    }
}

/// Legend items for the curves of a chart with `series` series.
pub(super) fn legend(fits: &[&Fit], series: usize) -> Vec<Item> {
    let item = |label: &str, sample: Sample| Item { label: label.to_owned(), sample };
    match (fits.first(), series) {
        (None, _) => Vec::new(),
        (Some(fit), 1) if fit.holds => {
            let curve = item(&fit.name(), Sample::Curve { series: Some(0), holds: true });
            let best = |words| item(&format!("best by the law: {words}"), Sample::Best(Some(0)));
            [curve].into_iter().chain(fit.best_words().map(best)).collect()
        }
        (Some(fit), 1) => {
            let name = format!("{}: does not fit", fit.name());
            let curve = item(&name, Sample::Curve { series: Some(0), holds: false });
            let best = |(number, _): (f64, f64)| {
                item(&format!("its best, no forecast: {number}"), Sample::Best(Some(0)))
            };
            [item("medians", Sample::Line(0)), curve]
                .into_iter()
                .chain(fit.best.map(best))
                .collect()
        }
        (Some(fit), _) => {
            let holds = fits.iter().any(|fit| fit.holds);
            let curve = item(&fit.name(), Sample::Curve { series: None, holds });
            let best = fits.iter().any(|fit| fit.best.is_some());
            let best = best.then(|| item("best by the law", Sample::Best(None)));
            [curve].into_iter().chain(best).collect()
        }
    }
}
