//! The report's graph of all variants.

use super::ReportError;
use super::analysis::{SummaryResult, VariantResult};
use super::results::Analysis;
use super::sections::{Scaling, ScalingOutcome};
use crate::format::percent;
use crate::plot::{
    Chart, CurvePoint, Draw, Drawing, Fit, Point, Quantity, RightAxis, Series, XAxis, png,
};
use crate::stats::Scalability;
use fwdlab_model::plan::RunMetric;
use fwdlab_search::Goal;

/// Pixels of `graph.png` per unit of the SVG: sharp on high-density screens, and about as wide as
/// the archive's pictures.
const PNG_SCALE: f32 = 2.0;
/// Maximum number of variants for which the bars are grouped by goal.
const GROUPED: usize = 6;
/// Name of the forwarding rate at the maximum offered load.
const FRMOL: &str = "FRMOL, maximum load";
/// Explanation of the rates in the chart of a search.
const SEARCHED: &str = "the rate forwarded at the greatest load at which the goal holds (RFC 9971); \
                        FRMOL: at the maximum offered load (RFC 2285), where packets are lost";
/// Points of a fitted curve.
const CURVE_POINTS: u32 = 97;

/// Draws the graph: one factor on the x axis (the first sweep, otherwise the first numeric factor,
/// otherwise the first), a series per combination of the others, with the fitted law.
pub(super) fn graph(analysis: &Analysis) -> Drawing {
    let scaling = analysis.scaling.first();
    let numeric = analysis.core.factors.iter().position(|factor| factor.numbers.is_some());
    let axis = scaling.map(|scaling| scaling.factor).or(numeric).unwrap_or(0);
    if let (None, None, Some(chart)) = (scaling, numeric, goals(analysis)) {
        return chart.drawing();
    }
    let Some(factor) = analysis.core.factors.get(axis) else {
        let members = analysis.core.variants.iter().map(Some).collect();
        let series = vec![series("", members, None)];
        let labels = analysis.core.variants.iter().map(|variant| variant.label.clone()).collect();
        let what = analysis.core.figure.description();
        return chart(analysis, "", XAxis::Categories(labels), series, what).drawing();
    };
    let x = match &factor.numbers {
        Some(numbers) => {
            XAxis::Numbers(numbers.iter().copied().zip(factor.levels.iter().cloned()).collect())
        }
        None => XAxis::Categories(factor.levels.clone()),
    };
    let mut rest: Vec<Vec<usize>> = Vec::new();
    for variant in &analysis.core.variants {
        let others = others(variant, axis);
        if !rest.contains(&others) {
            rest.push(others);
        }
    }
    let all_series = rest
        .iter()
        .map(|levels| {
            let at = |level: usize| {
                let mut variants = analysis.core.variants.iter();
                variants.find(|v| v.levels[axis] == level && others(v, axis) == *levels)
            };
            let members = (0..factor.levels.len()).map(at).collect();
            series(&name(analysis, axis, levels), members, scaling)
        })
        .collect();
    chart(analysis, &factor.shown, x, all_series, analysis.core.figure.description()).drawing()
}

/// Draws the rates that a search found for each goal, next to the rates at the maximum offered
/// load: grouped by goal, or by variant if there are many. `None` if the runs' metric is not a
/// search result.
fn goals(analysis: &Analysis) -> Option<Chart> {
    let search = analysis.method.as_ref().filter(|_| analysis.core.figure == RunMetric::Throughput);
    let search = search?.search()?;
    let row = |variant: usize, goal: &str| {
        search.searched.iter().find(|row| row.variant == variant && row.goal == goal)
    };
    let variants = || analysis.core.variants.iter().map(|variant| variant.index);
    let of_goal = |goal: &Goal| -> (String, Vec<Option<Point>>) {
        let rates = variants().map(|variant| row(variant, &goal.name)?.throughput.map(point));
        let lost = match goal.loss_ratio {
            0.0 => "nothing lost".to_owned(),
            ratio => format!("at most {} lost", percent(ratio, 2)),
        };
        (format!("{}, {lost}", goal.name), rates.collect())
    };
    let first = search.goals.first()?;
    let at_maximum = variants().map(|variant| row(variant, &first.name)?.frmol_of_runs.map(point));
    let mut rates: Vec<(String, Vec<Option<Point>>)> = search.goals.iter().map(of_goal).collect();
    rates.push((FRMOL.to_owned(), at_maximum.collect()));
    rates.retain(|(_, points)| points.iter().any(Option::is_some));
    let labels: Vec<String> = analysis.core.variants.iter().map(|v| v.label.clone()).collect();
    let named = |(name, points)| Series { name, points, fit: None };
    let (x, series) = match labels.len() <= GROUPED {
        true => {
            let of_variant = |(at, name): (usize, String)| {
                named((name, rates.iter().map(|(_, points)| points[at]).collect()))
            };
            let series = labels.into_iter().enumerate().map(of_variant).collect();
            (rates.iter().map(|(name, _)| name.clone()).collect(), series)
        }
        false => (labels, rates.into_iter().map(named).collect()),
    };
    Some(chart(analysis, "", XAxis::Categories(x), series, SEARCHED))
}

/// Renders the graph as PNG, as large as the limit permits.
pub(super) fn png(svg: &str) -> Result<Vec<u8>, ReportError> {
    png::render_at_most(svg, PNG_SCALE).map_err(|error| ReportError::Picture(error.to_string()))
}

/// Returns the right axis: as published, otherwise the L2 rate of the frames sent.
fn right_axis(analysis: &Analysis) -> Option<RightAxis> {
    let is_imix = analysis.archive.as_ref().is_some_and(|archive| archive.imix_axis);
    if is_imix {
        return Some(RightAxis::Imix);
    }
    // Packets of a mix have no bit rate, because a device may lose more frames of one size than of
    // another.
    analysis.core.frame_size.filter(|size| !size.is_mix()).map(RightAxis::L2Rate)
}

/// Creates a chart of medians; `what` describes the metric of a run.
fn chart(analysis: &Analysis, x_label: &str, x: XAxis, series: Vec<Series>, what: &str) -> Chart {
    let ends = match quantity(analysis) {
        Quantity::Rate | Quantity::Load => "the slowest and the fastest",
        _ => "the least and the most",
    };
    let what = format!("Medians of the runs with {ends}; per run: {what}.");
    let footnote = match analysis.core.testbed.caption.trim_end_matches('.') {
        "" => what,
        caption => format!("{caption}. {what}"),
    };
    Chart {
        middle: "median",
        title: analysis.core.title.clone(),
        x_label: x_label.to_owned(),
        x,
        series,
        y: quantity(analysis),
        right: right_axis(analysis).filter(|_| analysis.core.figure.is_rate()),
        ceiling_pps: analysis.ceiling.ceiling_pps,
        footnote: Some(footnote),
    }
}

fn quantity(analysis: &Analysis) -> Quantity {
    if analysis.core.figure.is_rate() { Quantity::Rate } else { Quantity::Instructions }
}

/// Creates the series of `members`, one per level of the axis; `None` if a combination was not
/// measured.
fn series(name: &str, members: Vec<Option<&VariantResult>>, scaling: Option<&Scaling>) -> Series {
    let of = |first: &&VariantResult| fit(scaling?, first.index);
    Series {
        name: name.to_owned(),
        fit: members.iter().flatten().next().and_then(of),
        points: members.into_iter().map(|member| member?.summary.map(point)).collect(),
    }
}

/// Creates a point from the median, minimum and maximum of runs.
fn point(runs: SummaryResult) -> Point {
    Point { median_pps: runs.median, min_pps: runs.min, max_pps: runs.max }
}

/// Returns the fitted law of the series of `variant`, if there is one.
fn fit(scaling: &Scaling, variant: usize) -> Option<Fit> {
    let series = scaling.series.iter().find(|series| series.variants.contains(&variant))?;
    let ScalingOutcome::Fitted(fitted) = &series.outcome else { return None };
    let law = &fitted.law;
    let best = (!law.best_is_open()).then_some((f64::from(law.best.level), law.best.pps));
    Some(Fit { curve: curve(law)?, best, confidence: law.confidence, holds: fitted.holds })
}

/// Samples the law between its smallest and largest level, in steps of equal ratio: fine enough on
/// a linear and on a logarithmic axis.
fn curve(law: &Scalability) -> Option<Vec<CurvePoint>> {
    let (first, last) = (f64::from(*law.levels.first()?), f64::from(*law.levels.last()?));
    let steps = f64::from(CURVE_POINTS - 1);
    let point = |i: u32| {
        // Rounding must not move the last point beyond the axis.
        let x = (first * (last / first).powf(f64::from(i) / steps)).clamp(first, last);
        let (pps, interval) = law.predict(x);
        CurvePoint { x, pps, low_pps: interval.low, high_pps: interval.high }
    };
    Some((0..CURVE_POINTS).map(point).collect())
}

/// Returns the levels of a variant's factors, except the factor on the axis.
fn others(variant: &VariantResult, axis: usize) -> Vec<usize> {
    let all = variant.levels.iter().enumerate();
    all.filter(|(factor, _)| *factor != axis).map(|(_, &level)| level).collect()
}

fn name(analysis: &Analysis, axis: usize, levels: &[usize]) -> String {
    let factors = analysis.core.factors.iter().enumerate().filter(|(factor, _)| *factor != axis);
    let labels: Vec<&str> =
        factors.zip(levels).map(|((_, f), &level)| f.levels[level].as_str()).collect();
    labels.join(", ")
}
