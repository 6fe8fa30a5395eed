//! Plots of methods with several trials per run.

use super::LatencyResult;
use super::{Method, MethodPoint, MethodRun};
use crate::format::percent;
use crate::plot::{Curve, Draw, LossCurve, LossPoint, Losses, Percentiles, Quantity, Span, Strip};
use crate::report::safe_name;
use crate::report::sections::Plots;
use crate::stats::summary::median;
use fwdlab_model::design::MethodKind;
use fwdlab_search::Goal;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the plot of loss against load.
pub(super) const CURVES: &str = "curve.svg";
/// Number of intervals of time in which tables are compared over runs.
const INTERVALS: f64 = 20.0;

impl Method {
    /// Draws the plots: names in the report and SVG. Loss against load has one plot for all
    /// variants; other methods have one per variant, such as the progress of a search or loss over
    /// time.
    pub(in crate::report) fn plots(&self) -> Plots {
        plots(self)
    }
}

fn plots(method: &Method) -> Plots {
    if !method.parts.is_empty() {
        return method.parts.iter().flat_map(plots).collect();
    }
    if method.kind == MethodKind::Latency {
        return delays(&method.timed, method.confidence);
    }
    let mut variants: Vec<(usize, &str)> =
        method.runs.iter().map(|run| (run.variant, run.label.as_str())).collect();
    variants.sort_unstable();
    variants.dedup();
    let of_variant = |variant: usize| -> Vec<&MethodRun> {
        method.runs.iter().filter(|run| run.variant == variant).collect()
    };
    if method.kind == MethodKind::LossCurve {
        let curves = variants.iter().map(|&(variant, label)| curve(&of_variant(variant), label));
        return vec![(CURVES.to_owned(), curves_of(curves.collect()).drawing())];
    }
    let of = |&(variant, label): &(usize, &str)| {
        let runs = of_variant(variant);
        let (stem, strip) = match method.kind {
            MethodKind::Soak => ("soak", soak(&runs, label)),
            MethodKind::Flood => ("flood", flood(&runs, label)),
            MethodKind::BackToBack => ("bursts", bursts(&runs, label)),
            MethodKind::Mlrsearch => ("search", progress(&method.goals, &runs, label)),
            MethodKind::EstablishmentRate => {
                ("establishment", progress(&method.goals, &runs, label))
            }
            MethodKind::TearDownRate => ("filled", filling(&runs, label)),
            MethodKind::TableCapacity => ("connections", filling(&runs, label)),
            _ => return None,
        };
        Some((format!("{stem}-{}.svg", safe_name(label)), strip.drawing()))
    };
    variants.iter().filter_map(of).collect()
}

/// Draws delays by percentile, one plot per variant.
fn delays(timed: &[LatencyResult], confidence: f64) -> Plots {
    let of_variant = |rows: &[LatencyResult]| {
        let label = rows[0].label.as_str();
        let shares = rows.iter().map(|row| Curve {
            name: format!("{} of the rate found", percent(row.share, 0)),
            points: row.curve.clone(),
            intervals: intervals(row),
            is_floor: false,
        });
        // At the highest load, where the instrument is busiest.
        let floor = rows.last().filter(|row| !row.floor_curve.is_empty()).map(|row| Curve {
            name: "instrument alone, at the greatest load".to_owned(),
            points: row.floor_curve.clone(),
            intervals: Vec::new(),
            is_floor: true,
        });
        let title = format!("{label}: one-way delay by percentile");
        let curves: Vec<Curve> = shares.chain(floor).collect();
        let footnote = match curves.iter().all(|curve| curve.intervals.is_empty()) {
            true => "Curves: packets of all runs. Fewer than three runs: no intervals.".to_owned(),
            false => format!(
                "Curves: packets of all runs. Bars: {confidence:.0} % intervals over the runs, those \
                 of the table."
            ),
        };
        let figure = Percentiles { title, curves, footnote: Some(footnote) };
        (format!("latency-{}.svg", safe_name(label)), figure.drawing())
    };
    timed.chunk_by(|one, next| one.variant == next.variant).map(of_variant).collect()
}

/// Returns the table's intervals of percentiles: share of the packets, and both ends in seconds.
fn intervals(row: &LatencyResult) -> Vec<(f64, f64, f64)> {
    let of_percentiles = row.figures.iter().filter_map(|figure| {
        let percent: f64 = figure.name.strip_prefix('p')?.parse().ok()?;
        let (low, high) = figure.interval?;
        Some((percent / 100.0, low, high))
    });
    of_percentiles.collect()
}

/// One observation of a run at a place on the plot.
struct Seen {
    run: u32,
    /// Identifies the same place in other runs: a step, a trial, an interval of time.
    place: u64,
    series: usize,
    x: f64,
    y: f64,
}

/// Observations at a place by run: coordinates on both axes.
type OfRuns = BTreeMap<u32, Vec<(f64, f64)>>;

/// Returns bars over runs at each place with two or more runs; each run has equal weight, however
/// many observations it has there.
fn spans(seen: impl IntoIterator<Item = Seen>) -> Vec<Span> {
    let mut places: BTreeMap<(usize, u64), OfRuns> = BTreeMap::new();
    for Seen { run, place, series, x, y } in seen {
        places.entry((series, place)).or_default().entry(run).or_default().push((x, y));
    }
    let of = |((series, _), runs): ((usize, u64), OfRuns)| {
        let mean = |get: fn(&(f64, f64)) -> f64| -> Vec<f64> {
            let each = runs.values();
            each.map(|points| points.iter().map(get).sum::<f64>() / points.len() as f64).collect()
        };
        Span::of(median(&mean(|at| at.0))?, &mean(|at| at.1), series)
    };
    places.into_iter().filter_map(of).collect()
}

/// Adds the bars with a footnote that explains them or their absence.
fn with_spans(strip: Strip, spans: Vec<Span>, at: &str) -> Strip {
    let footnote = match spans.is_empty() {
        true => "No place has two runs: no interval over runs is drawn.".to_owned(),
        false => format!("Bars: least to most over the runs at {at}; their wide dash: the median."),
    };
    Strip { spans, footnote: Some(footnote), ..strip }
}

/// Plots load against time, coloured by each trial's result for the goals.
fn progress(goals: &[Goal], runs: &[&MethodRun], label: &str) -> Strip {
    let strictest = goals.iter().map(|goal| goal.loss_ratio).fold(1.0, f64::min);
    let mildest = goals.iter().map(|goal| goal.loss_ratio).fold(0.0, f64::max);
    // In the palette's order: blue, red, green, yellow.
    let within = |loss: f64| match loss {
        0.0 => "nothing lost".to_owned(),
        loss => format!("at most {} lost", percent(loss, 2)),
    };
    let beyond = match mildest {
        0.0 => "something lost".to_owned(),
        ratio => format!("more than {} lost", percent(ratio, 2)),
    };
    let mut verdicts = vec![within(strictest), beyond];
    verdicts.extend((mildest > strictest).then(|| within(mildest)));
    verdicts.push("says nothing of the device".to_owned());
    let verdict = |point: &MethodPoint| match point.loss_ratio {
        None => verdicts.len() - 1,
        Some(loss) if loss <= strictest => 0,
        Some(loss) if loss <= mildest => 2,
        Some(_) => 1,
    };
    let points = runs.iter().flat_map(|run| &run.points);
    let marks: Vec<(f64, usize, f64)> =
        points.map(|point| (point.at_s, verdict(point), point.load as f64)).collect();
    let title = format!("{label}: trials of the searches in their order");
    Strip {
        y: Quantity::Load,
        x_label: "seconds since the search began".to_owned(),
        ..Strip::of_stream(&title, verdicts, &marks)
    }
}

/// Plots loss against load of one variant: at each step the median over its runs, whose loads may
/// differ but decrease by the same steps.
fn curve(runs: &[&MethodRun], label: &str) -> LossCurve {
    let step = |run: &MethodRun, trial_load: u64| {
        let above = run.points.iter().map(|point| point.load).filter(|load| *load > trial_load);
        above.collect::<BTreeSet<u64>>().len()
    };
    // By decreasing load: offered load, and the minimum and maximum loss in percent.
    let mut steps: BTreeMap<usize, Vec<[f64; 3]>> = BTreeMap::new();
    for run in runs {
        for point in &run.points {
            if let (Some(lost), Some(at_most)) = (point.loss_ratio, point.loss_at_most) {
                let seen = [point.offered_pps, 100.0 * lost, 100.0 * at_most];
                steps.entry(step(run, point.load)).or_default().push(seen);
            }
        }
    }
    let point = |seen: &Vec<[f64; 3]>| {
        let of = |at: usize| seen.iter().map(|values| values[at]).collect::<Vec<f64>>();
        let lost = of(1);
        Some(LossPoint {
            load_pps: median(&of(0))?,
            lost: median(&lost)?,
            least: lost.iter().copied().fold(f64::INFINITY, f64::min),
            most: lost.iter().copied().fold(0.0, f64::max),
            at_most: median(&of(2))?,
        })
    };
    LossCurve { name: label.to_owned(), points: steps.values().rev().filter_map(point).collect() }
}

/// Combines the curves of all variants in one plot.
fn curves_of(curves: Vec<LossCurve>) -> Losses {
    let has = |is: fn(&LossPoint) -> bool| curves.iter().flat_map(|curve| &curve.points).any(is);
    let runs = match has(|point| point.most > point.least) {
        true => "Medians over the runs at each step of the load; bars: least to most.",
        false => "Medians over the runs at each step of the load.",
    };
    let others = match has(|point| point.at_most > point.lost) {
        true => " Dotted: up to what may have been lost while other programs had the device's CPU.",
        false => "",
    };
    let title = "Frame loss rate against offered load".to_owned();
    Losses { title, curves, footnote: Some(format!("{runs}{others}")) }
}

/// Plots the loss of the traffic and of the flood against the flood.
fn flood(runs: &[&MethodRun], label: &str) -> Strip {
    let points = runs.iter().flat_map(|run| run.points.iter().map(|point| (run.run, point)));
    let points = points.filter(|(_, point)| point.invalid.is_none());
    let seen = points.flat_map(|(run, point)| {
        let flood = point.flood.as_ref();
        let place = flood.map_or(0, |flood| flood.load);
        let x = flood.map_or(0.0, |flood| flood.pps.0 / 1e3);
        let flood_loss = flood.filter(|flood| flood.packets.0 > 0).map(|flood| {
            let (offered, forwarded) = flood.packets;
            100.0 * (1.0 - forwarded as f64 / offered as f64)
        });
        let traffic = point.loss_ratio.map(|ratio| 100.0 * ratio);
        let losses = [traffic, flood_loss].into_iter().enumerate();
        losses.filter_map(move |(series, y)| Some(Seen { run, place, series, x, y: y? }))
    });
    let seen: Vec<Seen> = seen.collect();
    let marks: Vec<(f64, usize, f64)> = seen.iter().map(|s| (s.x, s.series, s.y)).collect();
    let series = ["of the traffic, by the device", "of the flood"].map(str::to_owned).into();
    let strip = Strip {
        y: Quantity::Loss,
        x_label: "flood, offered (thousand new flows a second)".to_owned(),
        ..Strip::of_stream(&format!("{label}: packets lost beside a flood"), series, &marks)
    };
    with_spans(strip, spans(seen), "each flood")
}

/// Plots connections in the table against time, coloured by the trial's result.
fn filling(runs: &[&MethodRun], label: &str) -> Strip {
    let points = runs.iter().flat_map(|run| run.points.iter().map(|point| (run.run, point)));
    let observations = points.flat_map(|(run, point)| {
        let series = match (&point.invalid, Some(point.forwarded) == point.connections) {
            (Some(_), _) => 2,
            (None, true) => 0,
            (None, false) => 1,
        };
        point.states.iter().map(move |&(at_s, states)| (run, at_s, series, states as f64))
    });
    let observations: Vec<(u32, f64, usize, f64)> = observations.collect();
    let marks: Vec<(f64, usize, f64)> =
        observations.iter().map(|&(_, x, s, y)| (x, s, y)).collect();
    let longest = marks.iter().map(|(x, ..)| *x).fold(f64::MIN_POSITIVE, f64::max);
    let seen = observations.into_iter().map(|(run, x, series, y)| {
        let place = (x / longest * INTERVALS).min(INTERVALS - 1.0) as u64;
        Seen { run, place, series, x, y }
    });
    let series = ["all were held in the end", "not all were held", "says nothing of the device"];
    let title = format!("{label}: connections in the table while they are opened");
    let strip = Strip {
        y: Quantity::Connections,
        x_label: "seconds since the first packet of a trial".to_owned(),
        ..Strip::of_stream(&title, series.map(str::to_owned).into(), &marks)
    };
    with_spans(strip, spans(seen), "each twentieth of the time (means of their looks)")
}

/// Plots the length of bursts in order, coloured by their result.
fn bursts(runs: &[&MethodRun], label: &str) -> Strip {
    let points = runs.iter().flat_map(|run| &run.points).filter_map(|point| {
        let series = match (&point.invalid, point.offered == point.forwarded) {
            (Some(_), _) => 2,
            (None, true) => 0,
            (None, false) => 1,
        };
        Some((point.at_s, series, point.burst? as f64))
    });
    let marks: Vec<(f64, usize, f64)> = points.collect();
    let series = ["arrived whole", "something was lost", "says nothing of the device"];
    let longest = runs.iter().map(|run| {
        let frames = run.bursts.iter().map(|burst| burst.frames as f64);
        frames.sum::<f64>() / run.bursts.len() as f64
    });
    let longest: Vec<f64> = longest.filter(|frames| frames.is_finite()).collect();
    let bands: Vec<Span> = Span::of(0.0, &longest, 0).into_iter().collect();
    let footnote = match bands.is_empty() {
        true => "Fewer than two runs: no interval over runs is drawn.".to_owned(),
        false => format!(
            "Band: the longest burst that lost nothing, least to most of the means of {} runs; \
             dashes: their median.",
            longest.len()
        ),
    };
    Strip {
        y: Quantity::Frames,
        x_label: "seconds since the first burst".to_owned(),
        bands,
        footnote: Some(footnote),
        ..Strip::of_stream(&format!("{label}: bursts"), series.map(str::to_owned).into(), &marks)
    }
}

/// Plots loss over time: each trial's certain loss, and its maximum including loss while other
/// programs used the device's CPU. Trials with the same number form one interval over runs.
fn soak(runs: &[&MethodRun], label: &str) -> Strip {
    let title = format!("{label}: packets lost, trial by trial");
    let seen = runs.iter().flat_map(|run| {
        run.points.iter().enumerate().filter_map(|(number, point)| {
            let (x, y) = (point.at_s, 100.0 * point.loss_ratio?);
            Some(Seen { run: run.run, place: number as u64, series: 0, x, y })
        })
    });
    let spans = spans(seen);
    let percent = |loss: Option<f64>| loss.map(|ratio| 100.0 * ratio);
    let marks = runs.iter().flat_map(|run| &run.points).flat_map(|point| {
        let (least, most) = (percent(point.loss_ratio), percent(point.loss_at_most));
        let doubt = most.filter(|most| Some(*most) != least).map(|most| (point.at_s, 1, most));
        [least.map(|least| (point.at_s, 0, least)), doubt].into_iter().flatten()
    });
    let marks: Vec<(f64, usize, f64)> = marks.collect();
    let mut series = vec!["lost by the device".to_owned()];
    if marks.iter().any(|(_, series, _)| *series == 1) {
        series.push("and while others had its CPU".to_owned());
    }
    let strip = Strip {
        y: Quantity::Loss,
        x_label: "seconds since the first trial began".to_owned(),
        ..Strip::of_stream(&title, series, &marks)
    };
    with_spans(strip, spans, "the trials of one number")
}
