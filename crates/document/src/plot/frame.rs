//! Parts of a figure around its data: title, legend, axes, footnote.
//!
//! The layout is computed from text widths before anything is drawn, so nothing overlaps. A figure
//! grows in height if its legend or labels need it; the plot itself never shrinks below a readable
//! size.

use super::axis::Axis;
use super::svg::{Anchor, GREY, INK, PALE, Svg, TextStyle};
use super::text::{width, wrap};

/// Width of a figure in pixels, unless its data need more.
pub(super) const WIDTH: f64 = 900.0;
/// Height of a figure in pixels, unless its labels need more, and minimum height of its plot: for
/// wide and for narrow figures.
const HEIGHTS: [(f64, f64); 2] = [(560.0, 300.0), (380.0, 220.0)];
/// Space at the edges.
const MARGIN: f64 = 16.0;
/// Text sizes.
const TITLE_SIZE: f64 = 18.0;
pub(super) const LABEL_SIZE: f64 = 13.0;
const SMALL_SIZE: f64 = 12.0;
/// Line spacing, as a multiple of the text size.
pub(super) const LINE: f64 = 1.25;
/// Width of a legend's sample and the gap after it.
const SAMPLE: f64 = 26.0;
const SAMPLE_GAP: f64 = 6.0;
/// Gap between a legend's items.
const ITEM_GAP: f64 = 22.0;

/// Radius of the shape on a bar.
pub(super) const BADGE: f64 = 3.5;
/// Half the height of the mark at a curve's maximum: it surrounds the marker of a median.
pub(super) const DIAMOND: f64 = 9.0;

/// An item of the legend.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) label: String,
    pub(super) sample: Sample,
}

/// Sample of a legend item.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sample {
    /// A filled box in a series' colour.
    Box(usize),
    /// A marker on a line.
    Line(usize),
    /// A marker alone.
    Marker(usize),
    /// A fitted curve with its band, in the colour of a series, or in grey for all.
    Curve { series: Option<usize>, holds: bool },
    /// The mark at a curve's maximum, in the colour of a series, or in grey for all.
    Best(Option<usize>),
    /// A dashed line in grey.
    Dashes,
    /// A line at the height of a level.
    Level,
    /// No sample, for a remark.
    None,
}

/// The area of the data, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Plot {
    /// Height of a value on an axis.
    pub(super) fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.position(value) * (self.bottom - self.top)
    }
}

/// Elements around the data.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) legend: Vec<Item>,
    pub(super) y_label: &'a str,
    pub(super) y: &'a Axis,
    /// Second axis and its label, at the right.
    pub(super) right: Option<(&'a str, Axis)>,
    pub(super) x_label: &'a str,
    pub(super) footnote: Option<&'a str>,
    /// Width of the figure.
    pub(super) width: f64,
}

impl Frame<'_> {
    /// Left and right end of the plot, without the labels under it.
    pub(super) fn columns(&self) -> (f64, f64) {
        let left = MARGIN + LABEL_SIZE * LINE + tick_width(self.y) + 12.0;
        let right = match &self.right {
            Some((_, axis)) => MARGIN + LABEL_SIZE * LINE + tick_width(axis) + 12.0,
            None => MARGIN + 8.0,
        };
        (left, self.width - right)
    }

    /// Draws the frame and returns the page with the area for the data. The plot begins at `left`
    /// or further right; `labels` is the height of the labels directly below it.
    pub(super) fn open(&self, left: f64, labels: f64) -> (Svg, Plot) {
        let (minimum, right) = self.columns();
        let left = left.max(minimum);
        let inner = self.width - 2.0 * MARGIN;
        let title = wrap(self.title, TITLE_SIZE, inner);
        let legend = self.legend_rows(inner);
        let footnote = self.footnote.map_or(Vec::new(), |text| wrap(text, SMALL_SIZE, inner));

        let title_bottom = MARGIN + title.len() as f64 * TITLE_SIZE * LINE;
        let row = LABEL_SIZE * 1.5;
        let top = title_bottom + legend.len() as f64 * row + 14.0;
        let x_label = if self.x_label.is_empty() { 0.0 } else { LABEL_SIZE * LINE + 6.0 };
        let notes = footnote.len() as f64 * SMALL_SIZE * LINE;
        let below = labels + x_label + notes + MARGIN;
        let (height, plot) = HEIGHTS[usize::from(self.width < WIDTH)];
        let height = height.max(top + plot + below);
        let plot = Plot { left, right, top, bottom: height - below };

        let mut svg = Svg::page(self.width, height, self.title);
        for (i, line) in title.iter().enumerate() {
            let y = MARGIN + TITLE_SIZE * (0.9 + LINE * i as f64);
            svg.text((self.width / 2.0, y), line, TextStyle::new(TITLE_SIZE, Anchor::Middle));
        }
        for (i, items) in legend.iter().enumerate() {
            self.draw_legend_row(&mut svg, items, title_bottom + (i as f64 + 0.5) * row + 4.0);
        }
        self.draw_axes(&mut svg, &plot);
        let middle = (plot.left + plot.right) / 2.0;
        let x_label_y = plot.bottom + labels + LABEL_SIZE + 4.0;
        svg.text((middle, x_label_y), self.x_label, TextStyle::new(LABEL_SIZE, Anchor::Middle));
        for (i, line) in footnote.iter().enumerate() {
            let y = plot.bottom + labels + x_label + SMALL_SIZE * (1.2 + LINE * i as f64);
            let style = TextStyle { colour: GREY, ..TextStyle::new(SMALL_SIZE, Anchor::Start) };
            svg.text((MARGIN, y), line, style);
        }
        (svg, plot)
    }

    fn draw_axes(&self, svg: &mut Svg, plot: &Plot) {
        let style = TextStyle::new(LABEL_SIZE, Anchor::End);
        for (value, label) in &self.y.ticks {
            let y = plot.y(self.y, *value);
            let pale = format!("stroke=\"{PALE}\"");
            svg.line((plot.left, y), (plot.right, y), &pale);
            svg.text((plot.left - 8.0, y + 0.35 * LABEL_SIZE), label, style);
        }
        let ink = format!("stroke=\"{INK}\"");
        let middle = (plot.top + plot.bottom) / 2.0;
        let upright = TextStyle { rotate: -90.0, ..TextStyle::new(LABEL_SIZE, Anchor::Middle) };
        let y_label = match self.y.unit.as_str() {
            "" => self.y_label.to_owned(),
            unit => format!("{} ({unit})", self.y_label),
        };
        let x = plot.left - tick_width(self.y) - 12.0 - LABEL_SIZE * 0.6;
        svg.text((x, middle), &y_label, upright);
        svg.line((plot.left, plot.top), (plot.left, plot.bottom), &ink);
        svg.line((plot.left, plot.bottom), (plot.right, plot.bottom), &ink);
        let Some((label, axis)) = &self.right else { return };
        svg.line((plot.right, plot.top), (plot.right, plot.bottom), &ink);
        for (value, label) in &axis.ticks {
            let y = plot.y(axis, *value);
            svg.line((plot.right, y), (plot.right + 4.0, y), &ink);
            let style = TextStyle::new(LABEL_SIZE, Anchor::Start);
            svg.text((plot.right + 8.0, y + 0.35 * LABEL_SIZE), label, style);
        }
        let label = format!("{label} ({})", axis.unit);
        let turned = TextStyle { rotate: 90.0, ..upright };
        svg.text((self.width - MARGIN - LABEL_SIZE * 0.7, middle), &label, turned);
    }

    /// Legend items in rows that fit.
    fn legend_rows(&self, inner: f64) -> Vec<Vec<Item>> {
        let mut rows: Vec<Vec<Item>> = Vec::new();
        let mut used = f64::INFINITY;
        for item in &self.legend {
            let room = inner - item.sample.width();
            let label = super::text::shorten(&item.label, LABEL_SIZE, room);
            let item = Item { label, sample: item.sample };
            let needed = item.width();
            if used + ITEM_GAP + needed > inner {
                rows.push(Vec::new());
                used = -ITEM_GAP;
            }
            used += ITEM_GAP + needed;
            if let Some(row) = rows.last_mut() {
                row.push(item);
            }
        }
        rows
    }

    fn draw_legend_row(&self, svg: &mut Svg, items: &[Item], y: f64) {
        let total: f64 =
            items.iter().map(Item::width).sum::<f64>() + ITEM_GAP * (items.len() as f64 - 1.0);
        let mut x = (self.width - total) / 2.0;
        for item in items {
            item.sample.draw(svg, x, y);
            let at = (x + item.sample.width(), y + 0.35 * LABEL_SIZE);
            svg.text(at, &item.label, TextStyle::new(LABEL_SIZE, Anchor::Start));
            x += item.width() + ITEM_GAP;
        }
    }
}

/// Draws ticks with labels under the plot, and lines across it if `has_lines`. If labels would
/// touch, only every second tick is drawn, every third, and so on.
pub(super) fn draw_ticks(svg: &mut Svg, plot: &Plot, ticks: &[(f64, String)], has_lines: bool) {
    let are_apart = |step: &usize| {
        let kept: Vec<&(f64, String)> = ticks.iter().step_by(*step).collect();
        kept.windows(2).all(|two| {
            let names = width(&two[0].1, LABEL_SIZE) + width(&two[1].1, LABEL_SIZE);
            two[1].0 - two[0].0 >= names / 2.0 + 8.0
        })
    };
    let step = (1..=ticks.len()).find(are_apart).unwrap_or(1);
    for (x, name) in ticks.iter().step_by(step) {
        if has_lines {
            svg.line((*x, plot.top), (*x, plot.bottom), &format!("stroke=\"{PALE}\""));
        }
        svg.line((*x, plot.bottom), (*x, plot.bottom + 4.0), &format!("stroke=\"{INK}\""));
        let at = (*x, plot.bottom + 5.0 + LABEL_SIZE);
        svg.text(at, name, TextStyle::new(LABEL_SIZE, Anchor::Middle));
    }
}

impl Item {
    fn width(&self) -> f64 {
        self.sample.width() + width(&self.label, LABEL_SIZE)
    }
}

impl Sample {
    fn width(self) -> f64 {
        match self {
            Sample::Box(_) | Sample::Marker(_) => 14.0 + SAMPLE_GAP,
            Sample::Line(_) | Sample::Curve { .. } | Sample::Dashes | Sample::Level => {
                SAMPLE + SAMPLE_GAP
            }
            Sample::Best(_) => 2.0 * DIAMOND + SAMPLE_GAP,
            Sample::None => 0.0,
        }
    }

    fn draw(self, svg: &mut Svg, x: f64, y: f64) {
        match self {
            Sample::Box(series) => {
                svg.rect((x, y - 7.0), (14.0, 14.0), &bar_style(series), "");
                svg.badge((x + 7.0, y), BADGE, series);
            }
            Sample::Line(series) => {
                let stroke = format!("stroke=\"{}\" stroke-width=\"2\"", super::colour(series));
                svg.line((x, y), (x + SAMPLE, y), &stroke);
                svg.marker((x + SAMPLE / 2.0, y), 4.5, series, "");
            }
            Sample::Marker(series) => svg.marker((x + 7.0, y), 5.0, series, ""),
            Sample::Curve { series, holds } => {
                let colour = series.map_or(GREY, super::colour);
                let band = format!("fill=\"{colour}\" fill-opacity=\"0.15\"");
                svg.rect((x, y - 6.0), (SAMPLE, 12.0), &band, "");
                svg.polyline(&[(x, y), (x + SAMPLE, y)], colour, stroke(holds));
            }
            Sample::Best(series) => {
                let colour = series.map_or(GREY, super::colour);
                svg.diamond((x + DIAMOND, y), DIAMOND, colour);
            }
            Sample::Dashes => svg.line((x, y), (x + SAMPLE, y), &dashes()),
            Sample::Level => svg.line((x, y), (x + SAMPLE, y), &level()),
            Sample::None => {}
        }
    }
}

/// Fill of a series' bars; from the ninth series on, the colours repeat in a lighter shade with an
/// outline.
pub(super) fn bar_style(series: usize) -> String {
    let colour = super::colour(series);
    if series < super::PALETTE.len() {
        format!("fill=\"{colour}\"")
    } else {
        format!("fill=\"{colour}\" fill-opacity=\"0.4\" stroke=\"{colour}\"")
    }
}

/// Stroke of a ceiling.
pub(super) fn dashes() -> String {
    format!("stroke=\"{GREY}\" stroke-width=\"1.5\" stroke-dasharray=\"7 4\"")
}

/// Stroke of a level.
pub(super) fn level() -> String {
    format!("stroke=\"{GREY}\" stroke-width=\"3\" stroke-opacity=\"0.7\"")
}

fn tick_width(axis: &Axis) -> f64 {
    axis.ticks.iter().map(|(_, label)| width(label, LABEL_SIZE)).fold(0.0, f64::max)
}

/// Stroke of a curve.
pub(super) fn stroke(holds: bool) -> &'static str {
    if holds { "stroke-width=\"2\"" } else { "stroke-width=\"1.5\" stroke-dasharray=\"6 4\"" }
}
