//! The changes of one series.

use super::collect::Ordered;
use super::results::{Change, Detection, Direction, PointResult, Segment};
use crate::report::format::{percent, signed_percent};
use crate::stats::change_points::{Indivisible, MIN_POINTS, change_points};
use crate::stats::summary::{mean, sum_of_squares, t_quantile};

/// Changes below it are counted, not listed: they are the size of what another
/// layout of the same code does.
pub(super) const THRESHOLD: f64 = 0.01;
/// Confidence of the intervals in percent.
pub(super) const CONFIDENCE: f64 = 95.0;

/// Divides the main line of a series and describes what was found.
pub(super) fn find(series: &mut Ordered) {
    let points = &series.result.points;
    let line: Vec<usize> = (0..points.len()).filter(|&i| !points[i].patched).collect();
    let logs: Vec<f64> = line.iter().map(|&i| points[i].median.ln()).collect();
    let (detection, starts) = match change_points(&logs) {
        Ok(division) => {
            let noise = division.scale.exp_m1();
            let done = Detection::Done { points: logs.len(), noise, penalty: division.penalty };
            (done, division.change_points)
        }
        Err(Indivisible::TooShort { have }) => {
            (Detection::TooShort { points: have, need: MIN_POINTS }, Vec::new())
        }
        // Of finite figures only 0 has no finite logarithm.
        Err(Indivisible::NotFinite { .. }) => {
            series.result.detection = Detection::NothingForwarded;
            return;
        }
    };
    let is_finite = logs.iter().all(|log| log.is_finite());
    let segments = if is_finite { divided(points, &line, &logs, &starts) } else { Vec::new() };
    let sizes = sizes(&logs, &starts);
    let mut changes = Vec::new();
    let mut suppressed = 0;
    for (pair, size) in segments.windows(2).zip(sizes) {
        if size.effect.abs() < THRESHOLD.ln_1p() {
            suppressed += 1;
        } else {
            changes.push(change(&pair[0], &pair[1], size));
        }
    }
    series.result.detection = detection;
    series.result.segments = segments;
    series.result.changes = changes;
    series.result.suppressed = suppressed;
}

/// The segments that begin at 0 and at each of `starts` on the main line.
fn divided(points: &[PointResult], line: &[usize], logs: &[f64], starts: &[usize]) -> Vec<Segment> {
    parts(logs.len(), starts)
        .map(|(from, to)| {
            let (first, last) = (line[from], line[to - 1]);
            Segment {
                first,
                last,
                first_revision: points[first].revision.clone(),
                last_revision: points[last].revision.clone(),
                n: to - from,
                level: mean(&logs[from..to]).exp(),
            }
        })
        .collect()
}

/// Begin and end of each part of `0..n`.
fn parts(n: usize, starts: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let begins = std::iter::once(0).chain(starts.iter().copied());
    let ends = starts.iter().copied().chain([n]);
    begins.zip(ends).filter(|(from, to)| from < to)
}

/// Difference of two levels on the scale of logarithms, and half its interval.
#[derive(Clone, Copy)]
struct Size {
    effect: f64,
    half: f64,
}

/// How large the change at each of `starts` is. The points scatter alike in all
/// segments, as the detector takes for granted too: a segment of two points
/// could not tell its own scatter.
fn sizes(logs: &[f64], starts: &[usize]) -> Vec<Size> {
    let segments: Vec<&[f64]> = parts(logs.len(), starts).map(|(a, b)| &logs[a..b]).collect();
    let squares: f64 = segments.iter().map(|part| sum_of_squares(part, mean(part))).sum();
    let df = logs.len() as f64 - segments.len() as f64;
    let quantile = t_quantile(CONFIDENCE, df).unwrap_or(f64::INFINITY);
    segments
        .windows(2)
        .map(|pair| {
            let each = |part: &[f64]| 1.0 / part.len() as f64;
            let se = (squares.max(0.0) / df * (each(pair[0]) + each(pair[1]))).sqrt();
            Size { effect: mean(pair[1]) - mean(pair[0]), half: quantile * se }
        })
        .collect()
}

fn change(before: &Segment, after: &Segment, size: Size) -> Change {
    let [ratio, low, high] =
        [size.effect, size.effect - size.half, size.effect + size.half].map(f64::exp);
    let direction = if ratio > 1.0 { Direction::Better } else { Direction::Worse };
    let change = Change {
        at: after.first,
        before: before.last_revision.clone(),
        after: after.first_revision.clone(),
        ratio,
        low,
        high,
        n_before: before.n,
        n_after: after.n,
        direction,
        confirmation_needed: true,
        run_again: [before.last_revision.clone(), after.first_revision.clone()],
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
    let doubt = if change.low <= 1.0 && change.high >= 1.0 {
        ", though the interval does not exclude no change"
    } else {
        ""
    };
    format!(
        "{} at {}, {} + {} points: {direction}{doubt}",
        effect(change),
        percent(CONFIDENCE / 100.0, 0),
        change.n_before,
        change.n_after,
    )
}
