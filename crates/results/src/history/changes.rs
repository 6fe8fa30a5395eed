//! Change points of one series.

use super::ordered::Ordered;
use super::results::{Change, Detection, Direction, Outlier, PointResult, Segment};
use crate::format::{percent, signed_percent};
use crate::quantity::Quantity;
use crate::stats::change_points::{
    Division, DivisionError, MIN_POINTS, Noise, change_points, change_points_among,
};
use crate::stats::summary::{mean, t_quantile};

/// Smaller changes are counted, not listed: a different layout of the same code has an effect of
/// this size.
pub(super) const THRESHOLD: f64 = 0.01;
/// Normal quantile of 90 %.
const NINE_IN_TEN: f64 = 1.281_551_565_544_6;
/// Confidence of the intervals in percent.
pub(super) const CONFIDENCE: f64 = 95.0;

/// If the smallest detectable step exceeds this, "no change" is not conclusive.
pub(super) const CANT_TELL: f64 = 0.10;
/// Scatter that grows or shrinks by this factor is reported.
const UNEVEN: f64 = 1.5;
/// Change points at most this far apart are one change, located with more or less evidence.
const NEAR: usize = 2;
/// Two points of one segment that differ by more than this many standard deviations of their
/// difference are not on one level.
const APART: f64 = 4.0;

/// Divides the main line of a series, one of `family` series, and stores the changes in the series.
pub(super) fn find(series: &mut Ordered, family: usize) {
    let series = &mut series.result;
    let (points, quantity) = (&series.points, &series.quantity);
    let mut line: Vec<usize> = (0..points.len()).filter(|&i| !points[i].patched).collect();
    let latest = line.last().copied();
    let mut division = loop {
        let logs = logs(points, &line);
        let division = match change_points(&logs) {
            Ok(division) => division,
            Err(DivisionError::TooShort { have }) => {
                series.detection = Detection::TooShort { points: have, need: MIN_POINTS };
                return;
            }
            // Of finite rates, only 0 has no finite logarithm.
            Err(DivisionError::NotFinite { .. }) => {
                series.detection = Detection::NothingForwarded;
                return;
            }
        };
        match find_outlier(&division) {
            Some((odd, level)) if line.len() > MIN_POINTS => {
                let at = line.remove(odd);
                series.apart.push(outlier_at((points, quantity), at, level, latest));
            }
            _ => break division,
        }
    };
    let (judged_points, detectable) = (line.len(), division.detectable());
    series.warnings.extend(unsteadiness(&division.noise));
    // Lone points are excluded from the segmentation, and so from the levels.
    while let Some(lone) = division.lone.pop().filter(|_| line.len() > MIN_POINTS) {
        let level = division.values.remove(lone);
        division.noise.points.remove(lone);
        let at = line.remove(lone);
        series.apart.push(outlier_at((points, quantity), at, level, latest));
        for start in &mut division.change_points {
            *start -= usize::from(*start > lone);
        }
    }
    let n = line.len();
    division.change_points.retain(|&start| start > 0 && start < n);
    division.change_points.dedup();
    series.apart.sort_by_key(|apart| apart.at);
    let logs = logs(points, &line);
    // A change must be detected, and also large enough to be listed.
    let error = 2.0 * division.spread / (judged_points as f64).sqrt();
    let listed = THRESHOLD.ln_1p() + NINE_IN_TEN * error;
    let smallest = detectable.max(listed).exp_m1();
    series.detection = Detection::Done {
        points: judged_points,
        noise: division.scale.exp_m1(),
        penalty: division.penalty,
        correlation: division.correlation,
        wander: division.noise.walk.exp_m1(),
        detectable: smallest,
        can_tell: smallest <= CANT_TELL,
    };
    series.segments = segments_from(points, &line, &logs, &division.change_points);
    let sizes = sizes(&logs, &division.noise, &division.change_points);
    let among_all = change_points_among(&logs, &division.noise, family).unwrap_or_default();
    let holds = |start: usize| among_all.iter().any(|other| other.abs_diff(start) <= NEAR);
    let places = division.change_points.iter().map(|&start| holds(start));
    for ((pair, size), holds_among_all) in series.segments.windows(2).zip(sizes).zip(places) {
        if size.effect.abs() < THRESHOLD.ln_1p() {
            series.suppressed += 1;
        } else {
            let change = change((points, quantity), &pair[0], &pair[1], size);
            series.changes.push(Change { holds_among_all, ..change });
        }
    }
}

/// Remarks on a level that wanders, and on scatter that grows or shrinks along the series.
fn unsteadiness(noise: &Noise) -> Vec<String> {
    let mut found = Vec::new();
    if noise.walk > 0.0 {
        let step = percent(noise.walk.exp_m1(), 1);
        found.push(format!(
            "the level wanders by {step} from point to point: only abrupt changes count"
        ));
    }
    if let (Some(first), Some(last)) = (noise.points.first(), noise.points.last()) {
        let (trend, times) = match last > first {
            true => ("grows", last / first),
            false => ("shrinks", first / last),
        };
        if times >= UNEVEN {
            found.push(format!("the scatter of the points {trend}, about {times:.1}-fold"));
        }
    }
    found
}

/// Logarithms of the medians of the points in `line`.
fn logs(points: &[PointResult], line: &[usize]) -> Vec<f64> {
    line.iter().map(|&i| points[i].median.ln()).collect()
}

/// The outlier at `at`, relative to the `level` (a logarithm) around it.
fn outlier_at(
    (points, quantity): (&[PointResult], &Quantity),
    at: usize,
    level: f64,
    latest: Option<usize>,
) -> Outlier {
    let ratio = points[at].median / level.exp();
    Outlier {
        at,
        point: points[at].name(),
        ratio,
        direction: direction(ratio, quantity),
        is_latest: Some(at) == latest,
    }
}

/// Returns an outlier that forms a level only because segments have at least two points (the other
/// point is on the level of the neighbours), and the neighbours' level. If kept, it would blame the
/// neighbouring revision.
fn find_outlier(division: &Division) -> Option<(usize, f64)> {
    let logs = &division.values;
    let segments: Vec<(usize, usize)> = parts(logs.len(), &division.change_points).collect();
    let level = |&(from, to): &(usize, usize)| mean(&logs[from..to]);
    for (i, &(from, to)) in segments.iter().enumerate() {
        let limit = APART * std::f64::consts::SQRT_2 * division.scale;
        if to - from != 2 || segments.len() == 1 || (logs[from] - logs[from + 1]).abs() <= limit {
            continue;
        }
        let before = i.checked_sub(1).and_then(|i| segments.get(i));
        let neighbours: Vec<f64> =
            before.into_iter().chain(segments.get(i + 1)).map(level).collect();
        let nearest = |at: usize| {
            let distance = |level: &f64| (logs[at] - level).abs();
            neighbours.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)))
        };
        let (first, second) = (nearest(from)?, nearest(from + 1)?);
        let odd = if (logs[from] - first).abs() > (logs[from + 1] - second).abs() {
            (from, first)
        } else {
            (from + 1, second)
        };
        return Some(odd);
    }
    None
}

fn direction(ratio: f64, quantity: &Quantity) -> Direction {
    match (ratio > 1.0) == quantity.is_smaller_better() {
        true => Direction::Worse,
        false => Direction::Better,
    }
}

/// Segments of the main line, starting at 0 and at each of `starts`.
fn segments_from(
    points: &[PointResult],
    line: &[usize],
    logs: &[f64],
    starts: &[usize],
) -> Vec<Segment> {
    parts(logs.len(), starts)
        .map(|(from, to)| {
            let (first, last) = (line[from], line[to - 1]);
            Segment {
                first,
                last,
                first_point: points[first].name(),
                last_point: points[last].name(),
                n: to - from,
                level: mean(&logs[from..to]).exp(),
            }
        })
        .collect()
}

/// Start and end of each part of `0..n`.
fn parts(n: usize, starts: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let begins = std::iter::once(0).chain(starts.iter().copied());
    let ends = starts.iter().copied().chain([n]);
    begins.zip(ends).filter(|(from, to)| from < to)
}

/// Difference of two levels in logarithms, and half the width of its interval.
#[derive(Clone, Copy)]
struct Size {
    effect: f64,
    half: f64,
}

/// Size of the change at each of `starts`. The scatter, relative to each point's noise, is pooled
/// over all segments, as in the detector: a segment of two points cannot estimate its own scatter.
/// The wander of a level between the two means adds to their error.
fn sizes(logs: &[f64], noise: &Noise, starts: &[usize]) -> Vec<Size> {
    let typical = noise.points.iter().copied().fold(f64::INFINITY, f64::min);
    let relative = |i: usize| if typical > 0.0 { (noise.points[i] / typical).powi(2) } else { 1.0 };
    let segments: Vec<(usize, usize)> = parts(logs.len(), starts).collect();
    let squares = |&(from, to): &(usize, usize)| {
        let level = mean(&logs[from..to]);
        (from..to).map(|i| (logs[i] - level).powi(2) / relative(i)).sum::<f64>()
    };
    let squares: f64 = segments.iter().map(squares).sum();
    let df = logs.len() as f64 - segments.len() as f64;
    let quantile = t_quantile(CONFIDENCE, df).unwrap_or(f64::INFINITY);
    // Squared error of a level, in units of the typical variance.
    let each = |(from, to): (usize, usize)| {
        let n = (to - from) as f64;
        (from..to).map(relative).sum::<f64>() / (n * n)
    };
    // Share of each step of the level, from the far end of a segment on, in the difference.
    let wander = |(from, to): (usize, usize)| {
        let n = (to - from) as f64;
        (1..to - from).map(|steps| (steps as f64 / n).powi(2)).sum::<f64>()
    };
    segments
        .windows(2)
        .map(|pair| {
            let of_walk = noise.walk.powi(2) * (1.0 + wander(pair[0]) + wander(pair[1]));
            let of_points = squares / df * (each(pair[0]) + each(pair[1]));
            let se = (of_points + of_walk).sqrt();
            let level = |(from, to): (usize, usize)| mean(&logs[from..to]);
            Size { effect: level(pair[1]) - level(pair[0]), half: quantile * se }
        })
        .collect()
}

fn change(
    (points, quantity): (&[PointResult], &Quantity),
    before: &Segment,
    after: &Segment,
    size: Size,
) -> Change {
    let [ratio, low, high] =
        [size.effect, size.effect - size.half, size.effect + size.half].map(f64::exp);
    let change = Change {
        at: after.first,
        before: before.last_point.clone(),
        after: after.first_point.clone(),
        same_revision: points[before.last].revision == points[after.first].revision,
        ratio,
        low,
        high,
        n_before: before.n,
        n_after: after.n,
        direction: direction(ratio, quantity),
        holds_among_all: true,
        confirmation_needed: true,
        run_again: [before.last_point.clone(), after.first_point.clone()],
        sentence: String::new(),
    };
    Change { sentence: sentence(&change), ..change }
}

/// The size of a change: `-4.9 % [-6.1 %, -3.7 %]`.
pub(super) fn effect(change: &Change) -> String {
    let [ratio, low, high] =
        [change.ratio, change.low, change.high].map(|end| signed_percent(end - 1.0, 1));
    format!("{ratio} [{low}, {high}]")
}

fn sentence(change: &Change) -> String {
    let direction = match change.direction {
        Direction::Better => "better",
        Direction::Worse => "worse",
    };
    let cause = if change.same_revision {
        "; both points are of one revision: something else has changed"
    } else {
        ""
    };
    let doubt = if change.low <= 1.0 && change.high >= 1.0 {
        ", though the interval does not exclude no change"
    } else {
        ""
    };
    format!(
        "{} at {}, {} + {} points: {direction}{doubt}{cause}",
        effect(change),
        percent(CONFIDENCE / 100.0, 0),
        change.n_before,
        change.n_after,
    )
}
