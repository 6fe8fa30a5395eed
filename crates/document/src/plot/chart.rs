//! Charts of medians and their range over the levels of a factor.
//!
//! A numeric factor yields lines with a point at each median; any other yields grouped bars, or
//! points if the rates hardly differ. The whiskers span the slowest and the fastest run, so they
//! are observations, not statistics; or they span an interval, if the footnote states this.

use super::Quantity;
use super::axis::Axis;
use super::draw::Draw;
use super::fit::{self, Fit};
use super::frame::{BADGE, Frame, Item, LABEL_SIZE, Plot, Sample, WIDTH, bar_style, dashes};
use super::scale::{MAX_INSET, Scale};
use super::svg::{Anchor, GREY, INK, Sheet, Svg, TextStyle};
use super::text::width;
use super::xlabels::XLabels;
use fwdlab_model::units::{FrameSize, format_pps};

/// Share of a group's slot taken by its bars.
const GROUP_SHARE: f64 = 0.76;
/// Maximum width of a bar in pixels.
const MAX_BAR: f64 = 70.0;
/// Minimum width of a category's slot in pixels: vertical labels still fit.
const MIN_SLOT: f64 = 18.0;
/// Half the width of a whisker's caps.
const CAP: f64 = 5.0;
/// The palette's black; whiskers on it need another colour.
const BLACK: &str = "#000000";
/// Radius of a point.
const MARKER: f64 = 4.5;
/// If the slowest run is above this share of the fastest, runs are drawn as points on an axis
/// without zero: bars from zero would hardly differ.
const CLOSE: f64 = 0.8;
const SCALED: &str = "The axis is scaled to the data and does not begin at zero.";
/// Ratio to the data above which a ceiling is not drawn: it would squeeze the data into the lower
/// half.
const CEILING_IN_RANGE: f64 = 1.6;

/// A figure of medians with their range.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// Name of the factor, under the axis.
    pub x_label: String,
    /// Levels of the factor.
    pub x: XAxis,
    /// Series; a legend names them if there are several.
    pub series: Vec<Series>,
    /// Statistic of the runs shown by the points: `median`, `geometric mean`.
    pub middle: &'static str,
    /// Quantity of the left axis.
    pub y: Quantity,
    /// Quantity of the right axis. `None` for no right axis.
    pub right: Option<RightAxis>,
    /// Rate of sender and receiver without a DUT, in packets per second: a dashed line if it is
    /// near the data, else a remark in the legend.
    pub ceiling_pps: Option<f64>,
    /// Line under the figure, such as the kind of testbed.
    pub footnote: Option<String>,
}

/// Conversion of the packet rate on the right axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RightAxis {
    /// L2 rate of frames of one size with FCS (pps x frame x 8).
    L2Rate(FrameSize),
    /// Ethernet throughput at the same packet rate with the simple IMIX, as in the figures of the
    /// netbenches archive.
    Imix,
}

impl RightAxis {
    /// Mean packet of the simple IMIX in bits: seven packets of 40 bytes, four of 576 and one of
    /// 1500, each with 14 bytes of Ethernet header.
    pub const IMIX_BITS: f64 =
        (7.0 * (40.0 + 14.0) + 4.0 * (576.0 + 14.0) + (1500.0 + 14.0)) / 12.0 * 8.0;

    fn label_and_factor(self) -> (&'static str, f64) {
        match self {
            RightAxis::L2Rate(size) => ("L2 rate", size.l2_bits_per_second(1.0)),
            RightAxis::Imix => ("estimated Ethernet throughput, simple IMIX", Self::IMIX_BITS),
        }
    }
}

/// Levels of the factor on the x axis.
#[derive(Clone, Debug, PartialEq)]
pub enum XAxis {
    /// Labels in order, for bars.
    Categories(Vec<String>),
    /// Numbers with their labels, for lines.
    Numbers(Vec<(f64, String)>),
}

/// A series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// One point per level. `None` if the level was not measured.
    pub points: Vec<Option<Point>>,
    /// Curve fitted to the series; drawn on numeric axes only.
    pub fit: Option<Fit>,
}

/// Result at one level, in the unit of the figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Median of the runs.
    pub median_pps: f64,
    /// Slowest run.
    pub min_pps: f64,
    /// Fastest run.
    pub max_pps: f64,
}

impl Draw for Chart {
    fn draw(&self, width: f64) -> Sheet {
        let max = self.finite_points().map(|(_, _, point)| point.max_pps);
        let max = max.chain(self.fits().map(|(_, fit)| fit.max_pps())).fold(0.0, f64::max);
        let ceiling = self.ceiling_pps.filter(|ceiling| ceiling.is_finite() && *ceiling > 0.0);
        let least = self.finite_points().map(|(_, _, point)| point.min_pps);
        let least = least.fold(f64::INFINITY, f64::min);
        let is_close = matches!(self.x, XAxis::Categories(_))
            && self.finite_points().count() > 1
            && least > CLOSE * max;
        let highest = if is_close { 2.0 * max - least } else { CEILING_IN_RANGE * max };
        let drawn = ceiling.filter(|&ceiling| max > 0.0 && ceiling <= highest);
        // Leave room for the values above the whiskers.
        let y = match is_close {
            true => {
                let room = 0.1 * (max - least);
                Axis::around(least, (max + room).max(drawn.unwrap_or(0.0)), self.y.unit())
            }
            false => Axis::from_zero((1.06 * max).max(1.02 * drawn.unwrap_or(0.0)), self.y.unit()),
        };
        let footnote = match (&self.footnote, y.low > 0.0) {
            (Some(note), true) => Some(format!("{SCALED} {note}")),
            (None, true) => Some(SCALED.to_owned()),
            (note, false) => note.clone(),
        };
        let slots = match &self.x {
            XAxis::Categories(labels) => labels.len(),
            XAxis::Numbers(levels) => levels.len(),
        };
        let mut frame = Frame {
            title: &self.title,
            legend: self.legend(ceiling, drawn.is_some(), is_close),
            y_label: self.y.name(),
            y: &y,
            // A narrow window has no room for both axes.
            right: self.right.filter(|_| width >= WIDTH).map(|right| {
                let (label, factor) = right.label_and_factor();
                (label, y.converted(factor, "bit/s"))
            }),
            x_label: &self.x_label,
            footnote: footnote.as_deref(),
            width,
        };
        let (left, right) = frame.columns();
        let missing_width = slots as f64 * MIN_SLOT - (right - left);
        frame.width += missing_width.max(0.0).ceil();
        match &self.x {
            XAxis::Categories(labels) => self.draw_bars(&frame, labels, drawn),
            XAxis::Numbers(levels) => self.draw_lines(&frame, levels, drawn),
        }
    }
}

impl Chart {
    fn draw_bars(&self, frame: &Frame, labels: &[String], ceiling: Option<f64>) -> Sheet {
        let (mut left, right) = frame.columns();
        let slot_from = |left: f64| (right - left) / labels.len().max(1) as f64;
        let mut x_labels = XLabels::layout(labels, slot_from(left));
        // Slanted labels can push the plot to the right, which narrows the slots, so that the
        // labels reach a little further.
        for _ in 0..6 {
            let needed = x_labels.reach + 8.0 - slot_from(left) / 2.0;
            if needed <= left {
                break;
            }
            left = needed;
            x_labels = XLabels::layout(labels, slot_from(left));
        }
        let slot = slot_from(left);
        let (mut svg, plot) = frame.open(left, x_labels.height);

        let middles: Vec<f64> =
            (0..labels.len()).map(|i| plot.left + (i as f64 + 0.5) * slot).collect();
        let series = self.series.len().max(1) as f64;
        let bar = (GROUP_SHARE * slot / series).min(MAX_BAR);
        let values_fit = self.finite_points().all(|(_, _, point)| {
            width(&self.figure(point, frame.y), LABEL_SIZE - 1.0) + 4.0 <= bar
        });
        for (index, level, point) in self.finite_points() {
            let Some(middle) = middles.get(level) else { continue };
            let x = middle + (index as f64 - (series - 1.0) / 2.0) * bar;
            let top = plot.y(frame.y, point.median_pps);
            let tip = self.tip(index, &labels[level], point);
            let cap = (bar / 2.0 - 1.0).min(CAP);
            // Bars only make sense on an axis from zero.
            match frame.y.low > 0.0 {
                true => {
                    whisker(&mut svg, &plot, frame.y, x, point, super::colour(index), cap);
                    svg.marker((x, top), MARKER, index, &tip);
                }
                false => {
                    let size = ((bar - 2.0).max(1.0), plot.bottom - top);
                    svg.rect((x - size.0 / 2.0, top), size, &bar_style(index), &tip);
                    if self.series.len() > 1 && size.0.min(size.1) > 4.0 * BADGE {
                        svg.badge((x, plot.bottom - 2.0 * BADGE), BADGE, index);
                    }
                    let ink = if super::colour(index) == BLACK { GREY } else { INK };
                    whisker(&mut svg, &plot, frame.y, x, point, ink, cap);
                }
            }
            if values_fit {
                let above = plot.y(frame.y, point.max_pps) - 5.0;
                let style = TextStyle::new(LABEL_SIZE - 1.0, Anchor::Middle);
                svg.text((x, above), &self.figure(point, frame.y), style);
            }
        }
        draw_ceiling(&mut svg, &plot, frame.y, ceiling);
        x_labels.draw(&mut svg, &middles, plot.bottom);
        svg.finish()
    }

    fn draw_lines(&self, frame: &Frame, levels: &[(f64, String)], ceiling: Option<f64>) -> Sheet {
        let (left, right) = frame.columns();
        let positions = Scale::place(levels, right - left).places;
        let labels: Vec<String> = levels.iter().map(|(_, label)| label.clone()).collect();
        let narrowest =
            positions.windows(2).map(|w| (w[1] - w[0]).abs()).fold(right - left, f64::min);
        let x_labels = XLabels::layout(&labels, narrowest.min(2.0 * MAX_INSET));
        let left = left.max(x_labels.reach + 8.0 - positions.first().copied().unwrap_or(0.0));
        let (mut svg, plot) = frame.open(left, x_labels.height);
        let scale = Scale::place(levels, plot.right - plot.left);
        let middles: Vec<f64> = scale.places.iter().map(|x| plot.left + x).collect();
        for &x in &middles {
            let ink = format!("stroke=\"{INK}\"");
            svg.line((x, plot.bottom), (x, plot.bottom + 4.0), &ink);
        }
        // Whiskers of different series are drawn next to each other.
        let dodge = (narrowest / (2.0 * self.series.len().max(1) as f64)).min(8.0);
        let x_of = |series: usize, level: usize| {
            middles[level] + (series as f64 - (self.series.len() as f64 - 1.0) / 2.0) * dodge
        };
        for (index, fit) in self.fits() {
            fit.draw(&mut svg, &plot, frame.y, &scale, index);
        }
        // A curve that fits replaces the line through the medians.
        let is_joined = |series: &Series| series.fit.as_ref().is_none_or(|fit| !fit.holds);
        for (index, series) in self.series.iter().enumerate().filter(|(_, s)| is_joined(s)) {
            let measured: Vec<Option<&Point>> = series
                .points
                .iter()
                .map(|point| point.as_ref().filter(|p| p.is_finite()))
                .collect();
            let style = "stroke-width=\"2\" stroke-linejoin=\"round\"";
            // A level without runs interrupts the line.
            let mut run: Vec<(f64, f64)> = Vec::new();
            for level in 0..=middles.len() {
                let point =
                    measured.get(level).copied().flatten().filter(|_| level < middles.len());
                match point {
                    Some(point) => {
                        run.push((x_of(index, level), plot.y(frame.y, point.median_pps)));
                    }
                    None => {
                        if run.len() > 1 {
                            svg.polyline(&run, super::colour(index), style);
                        }
                        run.clear();
                    }
                }
            }
        }
        for (index, level, point) in self.finite_points() {
            if level >= middles.len() {
                continue;
            }
            let x = x_of(index, level);
            whisker(&mut svg, &plot, frame.y, x, point, super::colour(index), CAP.min(dodge));
            let tip = self.tip(index, &labels[level], point);
            svg.marker((x, plot.y(frame.y, point.median_pps)), MARKER, index, &tip);
        }
        draw_ceiling(&mut svg, &plot, frame.y, ceiling);
        x_labels.draw(&mut svg, &middles, plot.bottom);
        svg.finish()
    }

    fn legend(&self, ceiling: Option<f64>, drawn: bool, is_close: bool) -> Vec<Item> {
        let mut items = Vec::new();
        if self.series.len() > 1 {
            for (index, series) in self.series.iter().enumerate() {
                let sample = match self.x {
                    XAxis::Categories(_) if is_close => Sample::Marker(index),
                    XAxis::Categories(_) => Sample::Box(index),
                    XAxis::Numbers(_) => Sample::Line(index),
                };
                items.push(Item { label: self.legend_name(series), sample });
            }
        }
        if self.is_numeric() {
            let fits: Vec<&Fit> = self.series.iter().filter_map(|one| one.fit.as_ref()).collect();
            items.extend(fit::legend(&fits, self.series.len()));
        }
        if let Some(ceiling) = ceiling {
            let label = format!("ceiling without DUT: {}", format_pps(ceiling));
            items.push(if drawn {
                Item { label, sample: Sample::Dashes }
            } else {
                Item { label: format!("{label}, above this figure"), sample: Sample::None }
            });
        }
        items
    }

    fn legend_name(&self, series: &Series) -> String {
        if self.is_numeric() { name_with_fit(series) } else { series.name.clone() }
    }

    fn is_numeric(&self) -> bool {
        matches!(self.x, XAxis::Numbers(_))
    }

    /// Fitted curves that can be drawn.
    fn fits(&self) -> impl Iterator<Item = (usize, &Fit)> {
        let series = self.series.iter().enumerate().filter(|_| self.is_numeric());
        series.filter_map(|(index, series)| Some((index, series.fit.as_ref()?)))
    }

    /// Series, level and point of everything that can be drawn.
    fn finite_points(&self) -> impl Iterator<Item = (usize, usize, &Point)> {
        self.series.iter().enumerate().flat_map(|(index, series)| {
            series
                .points
                .iter()
                .enumerate()
                .filter_map(move |(level, point)| Some((index, level, point.as_ref()?)))
                .filter(|(_, _, point)| point.is_finite())
        })
    }

    fn tip(&self, series: usize, level: &str, point: &Point) -> String {
        let name = &self.series[series].name;
        let separator = if name.is_empty() || level.is_empty() { "" } else { ", " };
        format!(
            "{level}{separator}{name}: {} {}, {} to {}",
            self.middle,
            self.y.print(point.median_pps),
            self.y.print(point.min_pps),
            self.y.print(point.max_pps)
        )
    }

    /// Value above a bar: the median in the axis' unit.
    fn figure(&self, point: &Point, axis: &Axis) -> String {
        if point.median_pps == 0.0 {
            return "0".into();
        }
        let text = self.y.print(point.median_pps);
        match text.strip_suffix(&axis.unit) {
            Some(number) => number.trim_end().to_owned(),
            None => text,
        }
    }
}

impl Point {
    fn is_finite(&self) -> bool {
        [self.median_pps, self.min_pps, self.max_pps].iter().all(|v| v.is_finite() && *v >= 0.0)
    }
}

/// Draws a whisker from the slowest to the fastest run, with caps; nothing for a single run.
fn whisker(svg: &mut Svg, plot: &Plot, axis: &Axis, x: f64, point: &Point, colour: &str, cap: f64) {
    if point.max_pps <= point.min_pps {
        return;
    }
    let (top, bottom) = (plot.y(axis, point.max_pps), plot.y(axis, point.min_pps));
    let style = format!("stroke=\"{colour}\" stroke-width=\"1.5\"");
    svg.line((x, top), (x, bottom), &style);
    for y in [top, bottom] {
        svg.line((x - cap, y), (x + cap, y), &style);
    }
}

fn draw_ceiling(svg: &mut Svg, plot: &Plot, axis: &Axis, ceiling: Option<f64>) {
    if let Some(ceiling) = ceiling {
        let y = plot.y(axis, ceiling);
        svg.line((plot.left, y), (plot.right, y), &dashes());
    }
}

/// Name of a series with its fit's result.
fn name_with_fit(series: &Series) -> String {
    match &series.fit {
        Some(fit) if fit.holds => match fit.best_words() {
            Some(best) => format!("{}, best {best}", series.name),
            None => series.name.clone(),
        },
        Some(_) => format!("{}, dashed: the law does not fit", series.name),
        None => series.name.clone(),
    }
}
