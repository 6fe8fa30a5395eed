//! Figures of single observations in their order, to show the sources of noise.
//!
//! Runs over the order of execution show drift and outliers; the samples of one stream show the
//! effect of a live switch. The axis does not begin at zero, because small changes matter and no
//! lengths are compared.

use super::axis::Axis;
use super::draw::Draw;
use super::frame::{self, Frame, Item, LABEL_SIZE, LINE, Sample};
use super::svg::{PALE, Sheet};
use super::{Quantity, colour};
use fwdlab_stats::summary::median;

/// Number of marks above which they are small and have no tooltip.
const MANY: usize = 150;
/// Half the width of a bar's ends in pixels; the dash at the median is twice as wide.
const CAP: f64 = 4.0;

/// A figure of single observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// Title.
    pub title: String,
    /// Quantity of the y axis.
    pub y: Quantity,
    /// Label of the x axis.
    pub x_label: String,
    /// Names of the variants; the index is [`Mark::variant`].
    pub variants: Vec<String>,
    /// Observations.
    pub marks: Vec<Mark>,
    /// Ranges of several runs at one position, drawn behind the observations.
    pub spans: Vec<Span>,
    /// Ranges of several runs over the whole x axis.
    pub bands: Vec<Span>,
    /// Positions on the x axis where a block begins.
    pub borders: Vec<f64>,
    /// Line under the figure.
    pub footnote: Option<String>,
}

/// One observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Order of the run, or seconds into the stream.
    pub x: f64,
    /// Rate in packets per second.
    pub pps: f64,
    /// Index of the variant.
    pub variant: usize,
}

/// Range of runs at one position: a bar from the minimum to the maximum, with a dash at the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Position on the x axis; ignored for bands.
    pub x: f64,
    /// Minimum, like [`Mark::pps`].
    pub low: f64,
    /// Median.
    pub middle: f64,
    /// Maximum.
    pub high: f64,
    /// Index of the variant.
    pub variant: usize,
}

impl Span {
    /// Range of one value per run. `None` for fewer than two runs.
    pub fn of(x: f64, values: &[f64], variant: usize) -> Option<Span> {
        let (low, high) = range(values.iter().copied());
        let middle = median(values).filter(|_| values.len() > 1)?;
        (low.is_finite() && high.is_finite()).then_some(Span { x, low, middle, high, variant })
    }
}

impl Draw for Strip {
    fn draw(&self, width: f64) -> Sheet {
        let marks: Vec<&Mark> =
            self.marks.iter().filter(|mark| mark.x.is_finite() && mark.pps.is_finite()).collect();
        let of_runs = self.spans.iter().chain(&self.bands).flat_map(|span| [span.low, span.high]);
        let (min, max) = range(marks.iter().map(|mark| mark.pps).chain(of_runs));
        let y = Axis::around(min, max, self.y.unit());
        let (first, last) = range(marks.iter().map(|mark| mark.x));
        let legend = self
            .variants
            .iter()
            .enumerate()
            .map(|(index, name)| Item { label: name.clone(), sample: Sample::Marker(index) })
            .collect();
        let frame = Frame {
            title: &self.title,
            legend,
            y_label: self.y.name(),
            y: &y,
            right: None,
            x_label: &self.x_label,
            footnote: self.footnote.as_deref(),
            width,
        };
        let (mut svg, plot) = frame.open(0.0, 7.0 + LABEL_SIZE * LINE);
        let inset = 14.0;
        let span = if last > first { last - first } else { 1.0 };
        let x_of = |x: f64| {
            plot.left + inset + (x - first) / span * (plot.right - plot.left - 2.0 * inset)
        };
        for &border in &self.borders {
            let x = x_of(border);
            svg.line((x, plot.top), (x, plot.bottom), &format!("stroke=\"{PALE}\""));
        }
        for band in &self.bands {
            let [low, middle, high] = [band.low, band.middle, band.high].map(|v| plot.y(&y, v));
            let style = format!("fill=\"{}\" fill-opacity=\"0.15\"", colour(band.variant));
            svg.rect((plot.left, high), (plot.right - plot.left, low - high), &style, "");
            let style = format!("stroke=\"{}\" stroke-dasharray=\"6 4\"", colour(band.variant));
            svg.line((plot.left, middle), (plot.right, middle), &style);
        }
        for span in &self.spans {
            let (x, stroke) = (x_of(span.x), format!("stroke=\"{}\"", colour(span.variant)));
            let [low, middle, high] = [span.low, span.middle, span.high].map(|v| plot.y(&y, v));
            svg.line((x, low), (x, high), &format!("{stroke} stroke-width=\"2\""));
            for (at, half) in [(low, CAP), (high, CAP), (middle, 2.0 * CAP)] {
                svg.line((x - half, at), (x + half, at), &format!("{stroke} stroke-width=\"1.5\""));
            }
        }
        let few = marks.len() <= MANY;
        for mark in &marks {
            let at = (x_of(mark.x), plot.y(&y, mark.pps));
            let name = self.variants.get(mark.variant).map_or("", String::as_str);
            let rate = self.y.print(mark.pps);
            let tip = if few { format!("{name}: {rate}") } else { String::new() };
            svg.marker(at, if few { 5.0 } else { 2.2 }, mark.variant, &tip);
        }
        let ticks = if marks.is_empty() { Vec::new() } else { x_ticks(first, last) };
        let ticks: Vec<(f64, String)> =
            ticks.into_iter().map(|(value, label)| (x_of(value), label)).collect();
        frame::draw_ticks(&mut svg, &plot, &ticks, false);
        svg.finish()
    }
}

impl Strip {
    /// Figure of runs in the order of execution: block, variant and rate (packets per second) of
    /// each.
    pub fn of_runs(title: &str, variants: Vec<String>, runs: &[(u32, usize, f64)]) -> Strip {
        let numbered = || runs.iter().zip(1..).map(|(run, x)| (f64::from(x), run));
        let marks = numbered().map(|(x, &(_, variant, pps))| Mark { x, pps, variant }).collect();
        let borders = numbered()
            .zip(runs.iter().skip(1))
            .filter(|((_, this), next)| this.0 != next.0)
            .map(|((x, _), _)| x + 0.5)
            .collect();
        Strip {
            title: title.into(),
            y: Quantity::Rate,
            x_label: "run, in order of execution".into(),
            variants,
            marks,
            spans: Vec::new(),
            bands: Vec::new(),
            borders,
            footnote: None,
        }
    }

    /// Figure of one stream's samples: seconds into the stream, active variant and rate (packets
    /// per second) of each.
    pub fn of_stream(title: &str, variants: Vec<String>, samples: &[(f64, usize, f64)]) -> Strip {
        let marks = samples.iter().map(|&(x, variant, pps)| Mark { x, pps, variant }).collect();
        Strip {
            title: title.into(),
            y: Quantity::Rate,
            x_label: "seconds into the stream".into(),
            variants,
            marks,
            spans: Vec::new(),
            bands: Vec::new(),
            borders: Vec::new(),
            footnote: None,
        }
    }
}

/// Round numbers from `first` to `last`, integers for runs.
fn x_ticks(first: f64, last: f64) -> Vec<(f64, String)> {
    if last <= first {
        return vec![(first, format!("{first}"))];
    }
    Axis::ticks_between(first, last, if first.fract() == 0.0 { 1.0 } else { 0.0 })
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), v| (min.min(v), max.max(v)))
}
