//! Rates by frame size, each with an interval over its runs, as RFC 2544 (section 26.1) and RFC
//! 5180 plot them.

use super::cells::{bits, frame_size};
use super::method::{Method, MethodRun};
use super::{Context, Input, Plots, Section, figure};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::plot::{Chart, Draw, Drawing, Point, Quantity, Series, XAxis};
use crate::report::analysis::RunResult;
use crate::report::analysis::line_rate::line_pps;
use crate::stats::summary::{Interval, geometric_mean};
use crate::store::Contents;
use fwdlab_model::Variant;
use fwdlab_model::units::{FrameSize, format_pps};
use serde::Serialize;

/// Name of the plot in the report.
const PLOT: &str = "frame-sizes.svg";

/// A line rate above the highest rate by more than this factor is not drawn.
const LINE_IN_RANGE: f64 = 1.6;

/// Rates by frame size.
#[derive(Clone, Debug, Serialize)]
pub struct Sizes {
    /// Confidence of the intervals, percent.
    pub confidence: f64,
    /// A line for each combination of other levels, and each goal of a search.
    pub series: Vec<SizeSeries>,
    /// The plot.
    #[serde(skip)]
    drawing: Drawing,
}

/// One line of the plot.
#[derive(Clone, Debug, Serialize)]
pub struct SizeSeries {
    /// Levels of the other factors, and the goal; may be empty.
    pub name: String,
    /// Points from the smallest frame to the largest.
    pub points: Vec<SizePoint>,
}

/// The rate at one frame size.
#[derive(Clone, Debug, Serialize)]
pub struct SizePoint {
    /// Bytes of a frame with FCS.
    pub frame_size: FrameSize,
    /// Number of runs with a result.
    pub runs: usize,
    /// Geometric mean of their rates, packets per second.
    pub rate: f64,
    /// Its interval by Student's t on logarithms; `None` for fewer than three runs.
    pub interval: Option<(f64, f64)>,
    /// The rate in bits per second on the link, with preamble and gap (L1), and without (L2).
    pub bits: (f64, f64),
    /// Line rate in packets per second; `None` if the line rate is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_pps: Option<f64>,
    /// Ratio of lost to offered packets in the runs' own trials.
    pub loss: Option<f64>,
}

impl Section for Option<Sizes> {
    fn analyse(input: &Input<'_>) -> Option<Sizes> {
        let Input { contents, core, method } = input;
        sizes(contents, &core.runs, *method, &core.testbed.caption)
    }

    fn document(&self, context: &Context<'_>) -> Vec<Block> {
        self.iter().map(|sizes| sizes.section(context.plots)).collect()
    }

    fn take_plots(&mut self) -> Plots {
        let plot = |sizes: &mut Sizes| (PLOT.to_owned(), std::mem::take(&mut sizes.drawing));
        self.iter_mut().map(plot).collect()
    }
}

/// Returns the rates by frame size; `None` if the experiment does not vary it.
fn sizes(
    contents: &Contents,
    results: &[RunResult],
    method: Option<&Method>,
    caption: &str,
) -> Option<Sizes> {
    let plan = &contents.plan;
    let metric = Some(plan.metric()).filter(|metric| metric.is_rate())?;
    let size = |variant: &Variant| variant.settings.traffic.frame_size.one();
    let is_factor = |number: usize| {
        let changes = plan.factors[number].levels.iter().flat_map(|level| &level.changes);
        changes.into_iter().any(|change| change.setting == "frame_size")
    };
    let factor = (0..plan.factors.len()).find(|&number| is_factor(number))?;
    let others = |variant: &Variant| {
        let named = plan.factors.iter().zip(&variant.levels).enumerate();
        let rest = named.filter(|(number, _)| *number != factor);
        let labels: Vec<&str> =
            rest.map(|(_, (factor, &level))| factor.levels[level].label.as_str()).collect();
        labels.join(", ")
    };
    let mut names: Vec<String> = plan.variants.iter().map(others).collect();
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    let search = method.and_then(Method::search);
    let goals: Vec<Option<usize>> = match search {
        Some(search) => (0..search.goals.len()).map(Some).collect(),
        None => vec![None],
    };
    let confidence = plan.compare.confidence;
    let series = names.iter().flat_map(|name| goals.iter().map(move |&goal| (name, goal)));
    let series = series.map(|(name, goal)| {
        let variants = plan.variants.iter().filter(|variant| others(variant) == *name);
        let points = variants.filter_map(|variant| {
            size(variant)?;
            let frame_size = variant.settings.traffic.frame_size;
            let is_included =
                |run: &&RunResult| run.variant == variant.index && run.left_out.is_none();
            let runs = || results.iter().filter(is_included);
            let rates: Vec<f64> = match (search, goal) {
                (Some(search), Some(goal)) => found(&search.runs, variant.index, goal),
                _ => runs().filter_map(RunResult::value).collect(),
            };
            let (rate, interval) = geometric_mean(&rates, confidence)?;
            let offered: u64 = runs().map(|run| run.offered).sum();
            let lost: u64 = runs().map(|run| run.offered.saturating_sub(run.forwarded)).sum();
            Some(SizePoint {
                frame_size,
                runs: rates.len(),
                rate,
                interval: interval.map(|Interval { low, high }| (low, high)),
                bits: (frame_size.l1_bits_per_second(rate), frame_size.l2_bits_per_second(rate)),
                line_pps: line_pps(contents, variant.index),
                loss: (offered > 0).then(|| lost as f64 / offered as f64),
            })
        });
        let mut points: Vec<SizePoint> = points.collect();
        points.sort_by_key(|point| point.frame_size.one());
        let goal = goal.and_then(|goal| Some(search?.goals.get(goal)?.name.as_str()));
        let parts = [Some(name.as_str()).filter(|name| !name.is_empty()), goal];
        let name = parts.into_iter().flatten().collect::<Vec<&str>>().join(", ");
        SizeSeries { name, points }
    });
    let series: Vec<SizeSeries> = series.filter(|one| one.points.len() > 1).collect();
    let quantity = match search {
        Some(_) => "conditional throughput (RFC 9971)",
        None => metric.description(),
    };
    let mut sizes = Sizes { confidence, series, drawing: Drawing::default() };
    sizes.drawing = sizes.draw(quantity, caption);
    (!sizes.series.is_empty()).then_some(sizes)
}

/// Returns the conditional throughputs of a variant's runs with a regular result, or at line rate.
fn found(runs: &[MethodRun], variant: usize, goal: usize) -> Vec<f64> {
    let variant_runs = runs.iter().filter(|run| run.variant == variant);
    let found = variant_runs.filter_map(|run| run.found.get(goal));
    found.filter(|found| found.has_rate()).filter_map(|found| found.throughput).collect()
}

impl Sizes {
    /// Returns the section with its plot.
    fn section(&self, plots: &[(String, Drawing)]) -> Block {
        let rows: Vec<(&str, &SizePoint)> = self
            .series
            .iter()
            .flat_map(|one| one.points.iter().map(|point| (one.name.as_str(), point)))
            .collect();
        let table = Table::of(&rows)
            .words("series", |(name, _)| Cell::text(if name.is_empty() { "all" } else { *name }))
            .numbers("frame size", |(_, point)| frame_size(point.frame_size))
            .numbers("runs", |(_, point)| Cell::count(point.runs))
            .numbers("rate", |(_, point)| Cell::rate(point.rate))
            .words("interval", |(_, point)| match point.interval {
                Some((low, high)) => {
                    let text = format!("[{}, {}]", format_pps(low), format_pps(high));
                    Cell::Values(text.into(), vec![low.into(), high.into()])
                }
                None => Cell::None,
            })
            .keys(&["low", "high"])
            .numbers("L1", |(_, point)| bits(Some(point.bits.0)))
            .numbers("L2", |(_, point)| bits(Some(point.bits.1)));
        let table = match rows.iter().any(|(_, point)| point.line_pps.is_some()) {
            true => table.numbers("of line rate", |(_, point)| {
                Cell::number(point.line_pps.map(|line| point.rate / line), Digits::Percent(2))
            }),
            false => table,
        };
        let table = table
            .numbers("loss in the runs' own trials", |(_, point)| {
                Cell::number(point.loss, Digits::Percent(2))
            })
            .keys(&["loss"])
            .set(|table| table.name = Some("frame-sizes"));
        let text = format!(
            "Geometric means of the runs with {} % intervals by Student's t on logarithms, for three runs \
             and more. L1: bits on the link with preamble and gap; L2: of the frames with FCS.",
            self.confidence
        );
        let plot = plots.iter().find(|(name, _)| name == PLOT);
        let plot = plot.map(|(name, drawing)| figure("Rate by frame size", name, drawing));
        let blocks = plot.into_iter().chain([table.block(), Block::text(text)]);
        Block::section("Rate by frame size", blocks.collect())
    }

    /// Plots rate against frame size, with intervals, and the line rate if it is known and near.
    fn draw(&self, quantity: &str, caption: &str) -> Drawing {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let mut bytes: Vec<u16> = points().filter_map(|point| point.frame_size.one()).collect();
        bytes.sort_unstable();
        bytes.dedup();
        let at = |series: &[SizePoint], size: u16, of: &dyn Fn(&SizePoint) -> Option<Point>| {
            of(series.iter().find(|point| point.frame_size.one() == Some(size))?)
        };
        let line = |series: &[SizePoint], of: &dyn Fn(&SizePoint) -> Option<Point>| {
            bytes.iter().map(|&size| at(series, size, of)).collect::<Vec<Option<Point>>>()
        };
        let measured = |point: &SizePoint| {
            let (min_pps, max_pps) = point.interval.unwrap_or((point.rate, point.rate));
            Some(Point { median_pps: point.rate, min_pps, max_pps })
        };
        let greatest = points().map(|point| point.rate).fold(0.0, f64::max);
        let most = |point: &SizePoint| {
            // A distant line would compress the scale of the rates.
            let pps = point.line_pps.filter(|pps| *pps <= LINE_IN_RANGE * greatest)?;
            Some(Point { median_pps: pps, min_pps: pps, max_pps: pps })
        };
        let mut series: Vec<Series> = self
            .series
            .iter()
            .map(|one| Series {
                name: one.name.clone(),
                points: line(&one.points, &measured),
                fit: None,
            })
            .collect();
        let all: Vec<SizePoint> = points().cloned().collect();
        if all.iter().any(|point| most(point).is_some()) {
            series.iter_mut().filter(|one| one.name.is_empty()).for_each(|one| {
                one.name = "found".to_owned();
            });
            let points = line(&all, &most);
            series.push(Series { name: "line rate".to_owned(), points, fit: None });
        }
        let intervals = match all.iter().any(|point| point.interval.is_some()) {
            true => format!("with {} % intervals (three runs and more)", self.confidence),
            false => "without intervals, for which there are too few".to_owned(),
        };
        let what = format!("Geometric means of the runs {intervals}; per run: {quantity}.");
        let footnote = match caption.trim_end_matches('.') {
            "" => what,
            caption => format!("{caption}. {what}"),
        };
        let levels = bytes.iter().map(|size| (f64::from(*size), size.to_string()));
        Chart {
            title: "Rate by frame size".to_owned(),
            x_label: "frame size with FCS (bytes)".to_owned(),
            x: XAxis::Numbers(levels.collect()),
            series,
            middle: "geometric mean",
            y: Quantity::Rate,
            right: None,
            ceiling_pps: None,
            footnote: Some(footnote),
        }
        .drawing()
    }
}
