//! Figures of loss against offered load, one curve per series.
//!
//! Both axes begin at zero, so curves can be compared by eye: the load at which loss begins, and
//! the slope.

use super::axis::Axis;
use super::colour;
use super::draw::Draw;
use super::frame::{self, Frame, Item, LABEL_SIZE, LINE, Sample};
use super::svg::Sheet;
use crate::format::significant;
use fwdlab_model::units::format_pps;

/// Half the width of a whisker's caps, and radius of a marker, pixels.
const CAP: f64 = 4.0;
const MARKER: f64 = 4.5;

/// Figure of loss against load.
#[derive(Clone, Debug, PartialEq)]
pub struct Losses {
    /// Title.
    pub title: String,
    /// Curves; a legend names them if there are several.
    pub curves: Vec<LossCurve>,
    /// Line under the figure.
    pub footnote: Option<String>,
}

/// Losses of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct LossCurve {
    /// Name in the legend.
    pub name: String,
    /// Points by ascending load.
    pub points: Vec<LossPoint>,
}

/// Loss at one load, in percent of the offered packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossPoint {
    /// Offered load, packets per second.
    pub load_pps: f64,
    /// Median of the runs.
    pub lost: f64,
    /// Minimum of the runs.
    pub least: f64,
    /// Maximum of the runs.
    pub most: f64,
    /// Median including packets possibly lost while other programs had the CPU.
    pub at_most: f64,
}

impl Draw for Losses {
    fn draw(&self, width: f64) -> Sheet {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let most = points().map(|point| point.most.max(point.at_most)).fold(0.0, f64::max);
        let y = Axis::from_zero(most, "%");
        let x = Axis::from_zero(points().map(|point| point.load_pps).fold(0.0, f64::max), "pps");
        let curves = self.curves.iter().enumerate().filter(|_| self.curves.len() > 1);
        let item = |(index, curve): (usize, &LossCurve)| Item {
            label: curve.name.clone(),
            sample: Sample::Line(index),
        };
        let x_label = format!("offered load ({})", x.unit);
        let frame = Frame {
            title: &self.title,
            legend: curves.map(item).collect(),
            y_label: "lost",
            y: &y,
            right: None,
            x_label: &x_label,
            footnote: self.footnote.as_deref(),
            width,
        };
        let (mut svg, plot) = frame.open(0.0, 7.0 + LABEL_SIZE * LINE);
        let x_of = |load: f64| plot.left + x.position(load) * (plot.right - plot.left);
        let ticks: Vec<(f64, String)> =
            x.ticks.iter().map(|(value, name)| (x_of(*value), name.clone())).collect();
        frame::draw_ticks(&mut svg, &plot, &ticks, true);
        for (index, curve) in self.curves.iter().enumerate() {
            let line: Vec<(f64, f64)> = curve
                .points
                .iter()
                .map(|point| (x_of(point.load_pps), plot.y(&y, point.lost)))
                .collect();
            if line.len() > 1 {
                svg.polyline(&line, colour(index), "stroke-width=\"2\" stroke-linejoin=\"round\"");
            }
            let stroke = format!("stroke=\"{}\" stroke-width=\"1.5\"", colour(index));
            for (point, &(at, height)) in curve.points.iter().zip(&line) {
                if point.most > point.least {
                    let [least, most] = [point.least, point.most].map(|lost| plot.y(&y, lost));
                    svg.line((at, least), (at, most), &stroke);
                    for end in [least, most] {
                        svg.line((at - CAP, end), (at + CAP, end), &stroke);
                    }
                }
                if point.at_most > point.lost {
                    let dotted = format!("{stroke} stroke-dasharray=\"2 3\"");
                    svg.line((at, height), (at, plot.y(&y, point.at_most)), &dotted);
                }
                let tip = format!(
                    "{}: {} % lost at {}",
                    curve.name,
                    significant(point.lost),
                    format_pps(point.load_pps)
                );
                svg.marker((at, height), MARKER, index, &tip);
            }
        }
        svg.finish()
    }
}
