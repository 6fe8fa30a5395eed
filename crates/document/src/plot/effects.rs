//! Figures of effects with their intervals, one row each, and the margin of equivalence.
//!
//! Each row has its verdict in words at the right, and single runs as points below the interval.
//! The axis is the change in percent. If an effect is larger than a doubling, the axis is
//! logarithmic, so that half and double are equally far from no change; its label states this. No
//! lengths are compared, so the axis need not begin at zero.

use super::axis::Axis;
use super::draw::Draw;
use super::frame::{LABEL_SIZE, LINE, WIDTH};
use super::svg::{Anchor, GREY, INK, PALE, Shape, Sheet, Svg, TextStyle};
use super::text::{shorten, widest, width, wrap};
use crate::format::signed_percent;

/// Maximum number of rows.
const ROWS: usize = 40;
/// Height of a row in pixels.
const ROW: f64 = 30.0;
/// Space at the edges.
const MARGIN: f64 = 16.0;
/// Size of the title and of the footnote.
const TITLE_SIZE: f64 = 16.0;
const SMALL_SIZE: f64 = 12.0;
/// Space between a row's interval and its text.
const GAP: f64 = 14.0;
/// Maximum width of a label.
const MAX_LABEL: f64 = 300.0;
/// Ratio beyond which intervals are cut at the edge.
const FURTHEST: f64 = 20.0;
/// Ratio above which the axis is logarithmic.
const DOUBLED: f64 = 2.0;
/// Ticks of a logarithmic axis, and additional ticks if only few of them are visible.
const NAMED: [f64; 11] = [1.0, 0.5, 2.0, 0.2, 5.0, 0.1, 10.0, 0.05, 20.0, 0.02, 50.0];
const ADDED: [f64; 4] = [1.5, 3.0, 0.7, 0.3];
/// Minimum number of ticks on a logarithmic axis before more are added.
const FEW: usize = 4;

/// A figure of effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Effects {
    /// Title.
    pub title: String,
    /// Rows; if there are more than forty, those with the largest effects are drawn.
    pub rows: Vec<Effect>,
    /// Name of the changed quantity: `rate`.
    pub what: String,
    /// Margin of equivalence as a ratio (0.02 = 2 %), drawn as a band.
    pub margin: f64,
    /// Explanation of intervals and points, under the figure.
    pub footnote: String,
}

/// One effect; all numbers are ratios, candidate over baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Description of the comparison.
    pub label: String,
    /// The effect.
    pub ratio: f64,
    /// Lower end of the effect's interval.
    pub low: f64,
    /// Upper end of the effect's interval.
    pub high: f64,
    /// Single runs over the baseline.
    pub runs: Vec<f64>,
    /// Verdict.
    pub found: Found,
    /// Verdict in words, shown at the right and as a tooltip.
    pub said: String,
}

/// Verdict on an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The rate is higher.
    Better,
    /// The rate is lower.
    Worse,
    /// The difference is within the margin of equivalence.
    Equivalent,
    /// Inconclusive.
    Open,
}

impl Found {
    /// Shape of the effect's mark, which shows the verdict without colour.
    fn shape(self) -> Shape {
        match self {
            Found::Better => Shape::Up,
            Found::Worse => Shape::Down,
            Found::Equivalent => Shape::Diamond,
            Found::Open => Shape::Circle,
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Found::Better => super::PALETTE[2],
            Found::Worse => super::PALETTE[1],
            Found::Equivalent => super::PALETTE[0],
            Found::Open => GREY,
        }
    }
}

impl Draw for Effects {
    /// A wide figure has each row's label at the left and its verdict at the right; a narrow one
    /// has both above the row.
    fn draw(&self, width: f64) -> Sheet {
        let rows = self.drawn();
        let rows = rows.as_slice();
        let is_narrow = width < WIDTH;
        let room = if is_narrow { width - 2.0 * MARGIN } else { MAX_LABEL };
        let labels: Vec<String> =
            rows.iter().map(|row| shorten(&row.label, LABEL_SIZE, room)).collect();
        let verdicts: Vec<String> = rows.iter().map(|row| row.said.clone()).collect();
        let (left, right, above) = match is_narrow {
            // Half of the outermost tick labels is beyond the ends of the axis.
            true => (2.5 * MARGIN, width - 2.5 * MARGIN, 2.0 * LABEL_SIZE * LINE + 4.0),
            false => {
                let left = MARGIN + widest(&labels, LABEL_SIZE) + GAP;
                (left, width - MARGIN - widest(&verdicts, LABEL_SIZE) - GAP, 0.0)
            }
        };
        let mut note = self.footnote.clone();
        if self.rows.len() > rows.len() {
            note += &format!(" The {} largest of {} effects.", rows.len(), self.rows.len());
        }
        let title = wrap(&self.title, TITLE_SIZE, width - 2.0 * MARGIN);
        let footnote = wrap(&note, SMALL_SIZE, width - 2.0 * MARGIN);
        let top = MARGIN + title.len() as f64 * TITLE_SIZE * LINE + 10.0;
        let bottom = top + rows.len() as f64 * (above + ROW);
        let notes_top = bottom + LABEL_SIZE * 3.2 + 6.0;
        let height = notes_top + footnote.len() as f64 * SMALL_SIZE * LINE + MARGIN;
        let mut svg = Svg::page(width, height, &self.title);
        for (i, line) in title.iter().enumerate() {
            let y = MARGIN + TITLE_SIZE * (0.9 + LINE * i as f64);
            svg.text((MARGIN, y), line, TextStyle::new(TITLE_SIZE, Anchor::Start));
        }
        let scale = Scale::of(rows, self.margin, left, right);
        let ticks = scale.ticks();
        // Vertical lines would cross the text between the rows.
        let plots: Vec<(f64, f64)> = match is_narrow {
            true => (1..=rows.len())
                .map(|row| top + row as f64 * (above + ROW))
                .map(|end| (end - ROW, end))
                .collect(),
            false => vec![(top, bottom)],
        };
        let (from, to) = (scale.x(1.0 / (1.0 + self.margin)), scale.x(1.0 + self.margin));
        let band = format!("fill=\"{}\" fill-opacity=\"0.12\"", super::PALETTE[0]);
        let tip = format!("margin of equivalence, {}", signed_percent(self.margin, 1));
        for &(top, bottom) in &plots {
            svg.rect((from, top), (to - from, bottom - top), &band, &tip);
            for (ratio, _) in &ticks {
                let x = scale.x(*ratio);
                svg.line((x, top), (x, bottom), &format!("stroke=\"{PALE}\""));
            }
            let no_change = scale.x(1.0);
            svg.line((no_change, top), (no_change, bottom), &format!("stroke=\"{INK}\""));
        }
        for (ratio, label) in ticks {
            let at = (scale.x(ratio), bottom + LABEL_SIZE * 1.3);
            svg.text(at, &label, TextStyle::new(LABEL_SIZE, Anchor::Middle));
        }
        let kind = if scale.is_logarithmic { ", logarithmic axis" } else { "" };
        let axis = format!("change of the {}{kind}", self.what);
        let at = ((left + right) / 2.0, bottom + LABEL_SIZE * 2.8);
        svg.text(at, &axis, TextStyle::new(LABEL_SIZE, Anchor::Middle));
        for (i, ((row, label), verdict)) in rows.iter().zip(&labels).zip(&verdicts).enumerate() {
            let begin = top + i as f64 * (above + ROW);
            let y = begin + above + 0.5 * ROW;
            match is_narrow {
                true => {
                    let (first, second) = (begin + LABEL_SIZE + 3.0, LABEL_SIZE * LINE);
                    let style = TextStyle::new(LABEL_SIZE, Anchor::Start);
                    svg.text((MARGIN, first), label, style);
                    let style = TextStyle { colour: GREY, ..style };
                    svg.text((MARGIN, first + second), verdict, style);
                }
                false => {
                    let text_y = y + 0.35 * LABEL_SIZE;
                    let style = TextStyle::new(LABEL_SIZE, Anchor::End);
                    svg.text((left - GAP, text_y), label, style);
                    let style = TextStyle::new(LABEL_SIZE, Anchor::Start);
                    svg.text((right + GAP, text_y), verdict, style);
                }
            }
            row.draw(&mut svg, &scale, y);
        }
        for (i, line) in footnote.iter().enumerate() {
            let y = notes_top + SMALL_SIZE * (1.0 + LINE * i as f64);
            let style = TextStyle { colour: GREY, ..TextStyle::new(SMALL_SIZE, Anchor::Start) };
            svg.text((MARGIN, y), line, style);
        }
        svg.finish()
    }
}

impl Effects {
    /// Returns true for a label that is not cut.
    pub fn label_fits(label: &str) -> bool {
        width(label, LABEL_SIZE) <= MAX_LABEL
    }

    /// Rows to draw, in their order.
    fn drawn(&self) -> Vec<&Effect> {
        let mut rows: Vec<(usize, &Effect)> = self.rows.iter().enumerate().collect();
        // Better and worse come before equivalent and inconclusive, whatever the size.
        let is_open = |row: &Effect| matches!(row.found, Found::Equivalent | Found::Open);
        rows.sort_by(|(_, a), (_, b)| {
            let size = |row: &Effect| row.ratio.ln().abs();
            is_open(a).cmp(&is_open(b)).then(size(b).total_cmp(&size(a)))
        });
        rows.truncate(ROWS);
        rows.sort_unstable_by_key(|(at, _)| *at);
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

impl Effect {
    fn draw(&self, svg: &mut Svg, scale: &Scale, y: f64) {
        let colour = self.found.colour();
        for run in self.runs.iter().filter(|run| run.is_finite() && **run > 0.0) {
            let style = format!("fill=\"{colour}\" fill-opacity=\"0.45\"");
            let tip = format!("{}: one run {}", self.label, signed_percent(run - 1.0, 2));
            svg.shape((scale.x(*run), y + 9.0), 2.4, Shape::Circle, &style, &tip);
        }
        let (low, high) = (scale.x(self.low), scale.x(self.high));
        let stroke = format!("stroke=\"{colour}\" stroke-width=\"2.5\"");
        svg.line((low, y - 2.0), (high, y - 2.0), &stroke);
        for (end, x) in [(self.low, low), (self.high, high)] {
            // An interval that continues beyond the edge has no cap there.
            if scale.holds(end) {
                svg.line((x, y - 7.0), (x, y + 3.0), &stroke);
            }
        }
        let style = format!("fill=\"{colour}\" stroke=\"#FFFFFF\" stroke-width=\"1\"");
        let tip = format!("{}: {}", self.label, self.said);
        svg.shape((scale.x(self.ratio), y - 2.0), 5.0, self.found.shape(), &style, &tip);
    }
}

/// Positions of ratios, linear or logarithmic.
struct Scale {
    low: f64,
    high: f64,
    left: f64,
    right: f64,
    is_logarithmic: bool,
}

impl Scale {
    fn of(rows: &[&Effect], margin: f64, left: f64, right: f64) -> Scale {
        let all = rows.iter().flat_map(|row| {
            let runs = row.runs.iter().copied();
            runs.chain([row.low, row.high]).map(|ratio| {
                // Wide intervals must not compress the effects.
                ratio.clamp(row.ratio / FURTHEST, row.ratio * FURTHEST)
            })
        });
        let all = all.chain([1.0 / (1.0 + margin), 1.0 + margin, 1.0]);
        let all: Vec<f64> = all.filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect();
        let (least, most) =
            all.iter().fold((1.0_f64, 1.0_f64), |(l, h), ratio| (l.min(*ratio), h.max(*ratio)));
        let is_logarithmic = most > DOUBLED;
        let mut scale = Scale { low: 0.0, high: 0.0, left, right, is_logarithmic };
        let (low, high) = (scale.place(least), scale.place(most));
        let room = 0.04 * (high - low).max(1e-4);
        (scale.low, scale.high) = (low - room, high + room);
        scale
    }

    /// Position of a ratio, 0 for no change.
    fn place(&self, ratio: f64) -> f64 {
        if self.is_logarithmic { ratio.max(f64::MIN_POSITIVE).ln() } else { ratio - 1.0 }
    }

    /// Position of a ratio in pixels, clamped to the edges.
    fn x(&self, ratio: f64) -> f64 {
        let at = self.place(ratio).clamp(self.low, self.high);
        self.left + (at - self.low) / (self.high - self.low) * (self.right - self.left)
    }

    fn holds(&self, ratio: f64) -> bool {
        ratio > 0.0 && (self.low..=self.high).contains(&self.place(ratio))
    }

    /// Ticks: ratios and their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        if !self.is_logarithmic {
            return self.even_ticks();
        }
        let in_sight = |ratios: &[f64]| -> Vec<f64> {
            ratios.iter().copied().filter(|ratio| self.holds(*ratio)).collect()
        };
        let mut ratios = in_sight(&NAMED);
        if ratios.len() < FEW {
            ratios.extend(in_sight(&ADDED));
        }
        // Labels that would touch are omitted, starting from no change.
        let mut kept: Vec<(f64, String)> = Vec::new();
        for ratio in ratios {
            let tick = (ratio, signed_percent(ratio - 1.0, 0));
            if kept.iter().all(|other| self.are_apart(&tick, other)) {
                kept.push(tick);
            }
        }
        kept
    }

    /// Equidistant changes, far enough apart for their labels.
    fn even_ticks(&self) -> Vec<(f64, String)> {
        let mut least = 0.0;
        loop {
            let ticks = Axis::ticks_between(100.0 * self.low, 100.0 * self.high, least);
            let name = |(percent, text): &(f64, String)| {
                let sign = if *percent > 1e-9 { "+" } else { "" };
                (1.0 + percent / 100.0, format!("{sign}{text} %"))
            };
            let named: Vec<(f64, String)> = ticks.iter().map(name).collect();
            match ticks.as_slice() {
                [first, second, ..]
                    if named.windows(2).any(|two| !self.are_apart(&two[0], &two[1])) =>
                {
                    least = 2.0 * (second.0 - first.0);
                }
                _ => return named,
            }
        }
    }

    /// Returns true if the labels of two ticks do not touch.
    fn are_apart(&self, one: &(f64, String), other: &(f64, String)) -> bool {
        let room = (width(&one.1, LABEL_SIZE) + width(&other.1, LABEL_SIZE)) / 2.0 + 10.0;
        (self.x(one.0) - self.x(other.0)).abs() >= room
    }
}
