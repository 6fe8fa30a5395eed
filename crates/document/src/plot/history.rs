//! Figures of one configuration over the revisions, with its changes.
//!
//! The axis is scaled to the data, because changes of a few percent matter and no lengths are
//! compared; the figure states this. Points are equidistant: the numbers of revisions count commits
//! to the whole system, most of which do not concern forwarding.

use super::axis::Axis;
use super::draw::Draw;
use super::frame::{self, Frame, Item, LABEL_SIZE, LINE, Plot, Sample};
use super::quantity::Quantity;
use super::svg::{Anchor, INK, Sheet, Svg, TextStyle};
use super::text::{shorten, width};

/// Statement about the axis in every figure.
const SCALED: &str = "The axis is scaled to the data and does not begin at zero.";
const FROM_ZERO: &str = "The axis begins at zero.";
/// Colour of points in the palette.
const POINTS: usize = 0;
/// Colours of changes: the palette's vermilion and green.
const WORSE: &str = "#D55E00";
const BETTER: &str = "#009E73";
/// Minimum width per point in pixels; figures of many points are wider.
const MIN_SLOT: f64 = 6.0;
/// Width per point from which whiskers have caps.
const ROOMY: f64 = 12.0;
/// Space between the ends of the plot and the slots of the first and last point.
const INSET: f64 = 10.0;
/// Maximum length of a revision's label in pixels.
const MAX_LABEL: f64 = 180.0;
/// Height of a line of text.
const STEP: f64 = LABEL_SIZE * LINE;
/// Minimum height of the plot, used to reserve room above the data.
const PLOT: f64 = 300.0;
/// Maximum number of rows for sizes of changes; a change without room has a mark only.
const MAX_ROWS: usize = 4;

/// A series over revisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Revisions {
    /// Title.
    pub title: String,
    /// Points in order.
    pub points: Vec<RevisionPoint>,
    /// Levels in order, without overlap.
    pub levels: Vec<Level>,
    /// Changes in order.
    pub changes: Vec<ChangeMark>,
    /// Quantity of the points.
    pub quantity: Quantity,
    /// Line under the figure, such as the kind of testbed.
    pub footnote: Option<String>,
}

/// Runs of one revision, or bursts of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionPoint {
    /// Name of the revision.
    pub label: String,
    /// Median.
    pub median: f64,
    /// Minimum.
    pub least: f64,
    /// Maximum.
    pub most: f64,
    /// True for a revision with a patch: drawn hollow, next to the line.
    pub patched: bool,
}

/// A level between two changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Index of the first point.
    pub first: usize,
    /// Index of the last point.
    pub last: usize,
    /// Value of the level.
    pub value: f64,
}

/// A change between two points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeMark {
    /// Index of the first point after the change.
    pub at: usize,
    /// Size as a ratio minus one (0.02 = 2 %).
    pub effect: f64,
}

/// Layout of the sizes of changes above the data: the row of each.
struct Rows {
    of_change: Vec<Option<usize>>,
    count: usize,
}

impl Draw for Revisions {
    fn draw(&self, width: f64) -> Sheet {
        let mut y = self.axis(0);
        let mut frame = Frame {
            title: &self.title,
            legend: self.legend(),
            y_label: self.quantity.name(),
            y: &y,
            right: None,
            x_label: self.order(),
            footnote: None,
            width,
        };
        let (left, right) = frame.columns();
        let needed = self.points.len() as f64 * MIN_SLOT + 2.0 * INSET;
        frame.width += (needed - (right - left)).max(0.0).ceil();
        let width = frame.width;
        let columns = frame.columns();
        let rows = self.rows(columns);
        if rows.count > 0 {
            y = self.axis(rows.count);
        }
        let scaled = if y.low > 0.0 { SCALED } else { FROM_ZERO };
        let footnote = match &self.footnote {
            Some(text) => format!("{text} {scaled}"),
            None => scaled.to_owned(),
        };
        let frame = Frame {
            title: &self.title,
            legend: self.legend(),
            y_label: self.quantity.name(),
            y: &y,
            right: None,
            x_label: self.order(),
            footnote: Some(&footnote),
            width,
        };
        let labels = Labels::layout(self, slot(frame.columns(), self.points.len()));
        let (mut svg, plot) = frame.open(0.0, labels.height);
        let columns = (plot.left, plot.right);
        let x_of = |index: usize| place(columns, self.points.len(), index);
        labels.draw(&mut svg, plot.bottom, &x_of);
        self.draw_levels(&mut svg, &plot, &y, &x_of);
        self.draw_changes(&mut svg, &plot, &rows);
        for (index, point) in self.drawn() {
            let room = slot(columns, self.points.len());
            self.draw_point(&mut svg, (&plot, &y), x_of(index), point, room);
        }
        svg.finish()
    }
}

impl Revisions {
    /// Label of the x axis.
    fn order(&self) -> &'static str {
        match self.quantity {
            Quantity::Instructions => "kernel, in the order given",
            _ => "revision, in order",
        }
    }

    /// Returns true if more is better.
    fn more_is_better(&self) -> bool {
        !matches!(
            self.quantity,
            Quantity::Instructions | Quantity::Time | Quantity::Value { is_smaller_better: true }
        )
    }

    /// Axis around the data, with room above them for rows of text.
    fn axis(&self, rows: usize) -> Axis {
        let min = self.drawn().map(|(_, point)| point.least).fold(f64::INFINITY, f64::min);
        let max = self.drawn().map(|(_, point)| point.most).fold(f64::NEG_INFINITY, f64::max);
        let share = rows as f64 * STEP / PLOT;
        Axis::around(min, max + (max - min) * share / (1.0 - share), self.quantity.unit())
    }

    /// Points with finite values.
    fn drawn(&self) -> impl Iterator<Item = (usize, &RevisionPoint)> {
        let is_finite = |p: &RevisionPoint| {
            [p.median, p.least, p.most].iter().all(|pps| pps.is_finite() && *pps >= 0.0)
        };
        self.points.iter().enumerate().filter(move |(_, point)| is_finite(point))
    }

    fn legend(&self) -> Vec<Item> {
        let item = |label: &str, sample| Item { label: label.to_owned(), sample };
        let points = match self.quantity {
            Quantity::Instructions => "median of a kernel's bursts, least to most",
            Quantity::Rate => "median of a revision's runs, slowest to fastest",
            _ => "median of a revision's runs, least to most",
        };
        let mut items = vec![item(points, Sample::Marker(POINTS))];
        if !self.levels.is_empty() {
            items.push(item("level", Sample::Level));
        }
        if self.points.iter().any(|point| point.patched) {
            items.push(item("with a patch", Sample::Best(Some(POINTS))));
        }
        items
    }

    /// Assigns rows to the sizes of changes so that they do not overlap.
    fn rows(&self, columns: (f64, f64)) -> Rows {
        let mut ends: Vec<f64> = Vec::new();
        let of_change: Vec<Option<usize>> = self
            .changes
            .iter()
            .map(|change| {
                let (x, half) = self.label_place(columns, change);
                let row = ends.iter().position(|end| *end < x - half);
                let row = row.or_else(|| (ends.len() < MAX_ROWS).then_some(ends.len()))?;
                ends.resize(ends.len().max(row + 1), 0.0);
                ends[row] = x + half;
                Some(row)
            })
            .collect();
        Rows { of_change, count: ends.len() }
    }

    /// Middle of a change's label, within the plot, and half its width.
    fn label_place(&self, columns: (f64, f64), change: &ChangeMark) -> (f64, f64) {
        let half = width(&size(change), LABEL_SIZE) / 2.0 + 4.0;
        let x = self.mark_place(columns, change);
        (x.max(columns.0 + half).min(columns.1 - half), half)
    }

    /// Position of a change's mark: half way to the previous point.
    fn mark_place(&self, columns: (f64, f64), change: &ChangeMark) -> f64 {
        place(columns, self.points.len(), change.at) - slot(columns, self.points.len()) / 2.0
    }

    fn colour(&self, change: &ChangeMark) -> &'static str {
        if (change.effect > 0.0) == self.more_is_better() { BETTER } else { WORSE }
    }

    fn draw_levels(&self, svg: &mut Svg, plot: &Plot, y: &Axis, x_of: &impl Fn(usize) -> f64) {
        let half = slot((plot.left, plot.right), self.points.len()) / 2.0;
        let is_drawn = |level: &&Level| {
            level.value.is_finite() && level.first <= level.last && level.last < self.points.len()
        };
        for level in self.levels.iter().filter(is_drawn) {
            let (from, to) = (x_of(level.first) - half, x_of(level.last) + half);
            let height = plot.y(y, level.value);
            svg.line((from, height), (to, height), &frame::level());
        }
    }

    fn draw_changes(&self, svg: &mut Svg, plot: &Plot, rows: &Rows) {
        let columns = (plot.left, plot.right);
        for change in &self.changes {
            let x = self.mark_place(columns, change);
            let dashed = format!(
                "stroke=\"{}\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"",
                self.colour(change)
            );
            svg.line((x, plot.top), (x, plot.bottom), &dashed);
        }
        for (change, row) in self.changes.iter().zip(&rows.of_change) {
            let Some(row) = row else { continue };
            let (x, half) = self.label_place(columns, change);
            let top = plot.top + *row as f64 * STEP;
            // The marks of neighbours end at a label.
            svg.rect((x - half, top), (2.0 * half, STEP), "fill=\"#FFFFFF\"", "");
            let style = TextStyle {
                colour: self.colour(change),
                ..TextStyle::new(LABEL_SIZE, Anchor::Middle)
            };
            svg.text((x, top + LABEL_SIZE - 1.0), &size(change), style);
        }
    }

    fn draw_point(
        &self,
        svg: &mut Svg,
        (plot, y): (&Plot, &Axis),
        x: f64,
        point: &RevisionPoint,
        slot: f64,
    ) {
        let colour = super::colour(POINTS);
        let radius = (0.3 * slot).clamp(1.8, 4.5);
        if point.most > point.least {
            let (top, bottom) = (plot.y(y, point.most), plot.y(y, point.least));
            let thin = format!("stroke=\"{colour}\" stroke-width=\"1.2\"");
            svg.line((x, top), (x, bottom), &thin);
            if slot >= ROOMY {
                for end in [top, bottom] {
                    svg.line((x - 3.0, end), (x + 3.0, end), &thin);
                }
            }
        }
        let at = (x, plot.y(y, point.median));
        let tip = format!(
            "{}: median {}, {} to {}",
            point.label,
            self.quantity.print(point.median),
            self.quantity.print(point.least),
            self.quantity.print(point.most)
        );
        if point.patched {
            svg.diamond(at, 1.5 * radius, colour);
        } else {
            svg.marker(at, radius, POINTS, &tip);
        }
    }
}

/// Labels under the axis: horizontal if all fit, else vertical and as many as have room.
struct Labels {
    /// Index and label of each point.
    shown: Vec<(usize, String)>,
    upright: bool,
    height: f64,
}

impl Labels {
    fn layout(figure: &Revisions, slot: f64) -> Labels {
        let all = || figure.points.iter().map(|point| point.label.as_str()).enumerate();
        if all().all(|(_, label)| width(label, LABEL_SIZE) + 10.0 <= slot) {
            let shown = all().map(|(index, label)| (index, label.to_owned())).collect();
            return Labels { shown, upright: false, height: 7.0 + STEP };
        }
        // By importance for readers: changes first, then the ends.
        let ends = [0, figure.points.len().saturating_sub(1)];
        let first = figure.changes.iter().map(|change| change.at).chain(ends);
        let apart = (STEP / slot).ceil().max(1.0) as usize;
        let mut chosen: Vec<usize> = Vec::new();
        for index in first.chain((0..figure.points.len()).step_by(apart)) {
            let is_free = chosen.iter().all(|other| other.abs_diff(index) >= apart);
            if is_free && index < figure.points.len() {
                chosen.push(index);
            }
        }
        chosen.sort_unstable();
        let label = |index: usize| shorten(&figure.points[index].label, LABEL_SIZE, MAX_LABEL);
        let shown: Vec<(usize, String)> =
            chosen.into_iter().map(|index| (index, label(index))).collect();
        let longest = shown.iter().map(|(_, label)| width(label, LABEL_SIZE)).fold(0.0, f64::max);
        Labels { shown, upright: true, height: 9.0 + longest }
    }

    fn draw(&self, svg: &mut Svg, bottom: f64, x_of: &impl Fn(usize) -> f64) {
        let ink = format!("stroke=\"{INK}\"");
        for (index, label) in &self.shown {
            let x = x_of(*index);
            svg.line((x, bottom), (x, bottom + 4.0), &ink);
            if self.upright {
                let style = TextStyle { rotate: -90.0, ..TextStyle::new(LABEL_SIZE, Anchor::End) };
                svg.text((x + 0.35 * LABEL_SIZE, bottom + 7.0), label, style);
            } else {
                let style = TextStyle::new(LABEL_SIZE, Anchor::Middle);
                svg.text((x, bottom + 5.0 + LABEL_SIZE), label, style);
            }
        }
    }
}

/// Width per point for `count` points between two ends.
fn slot((left, right): (f64, f64), count: usize) -> f64 {
    (right - left - 2.0 * INSET) / count.max(1) as f64
}

/// X position of a point.
fn place(columns: (f64, f64), count: usize, index: usize) -> f64 {
    columns.0 + INSET + (index as f64 + 0.5) * slot(columns, count)
}

/// Size of a change: `-4.9 %`.
fn size(change: &ChangeMark) -> String {
    format!("{:+.1} %", 100.0 * change.effect)
}
