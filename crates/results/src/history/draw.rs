//! Figure of a series.

use super::results::{PointResult, SeriesResult};
use crate::format::percent;
use crate::plot::{ChangeMark, Draw, Drawing, Level, RevisionPoint, Revisions};

/// Draws the series over its revisions.
pub(super) fn drawing(series: &SeriesResult, threshold: f64) -> Drawing {
    let mut notes: Vec<String> = Vec::new();
    if !series.caption.is_empty() {
        notes.push(format!("{}.", series.caption));
    }
    if series.suppressed > 0 {
        notes.push(format!("Changes below {} are not marked.", percent(threshold, 1)));
    }
    let figure = Revisions {
        title: series.title.clone(),
        points: series
            .points
            .iter()
            .map(|point| RevisionPoint {
                label: label(point),
                median: point.median,
                least: point.min,
                most: point.max,
                patched: point.patched,
            })
            .collect(),
        levels: series
            .segments
            .iter()
            .map(|segment| Level { first: segment.first, last: segment.last, value: segment.level })
            .collect(),
        changes: series
            .changes
            .iter()
            .map(|change| ChangeMark { at: change.at, effect: change.ratio - 1.0 })
            .collect(),
        quantity: series.quantity.plotted(),
        footnote: (!notes.is_empty()).then(|| notes.join(" ")),
    };
    figure.drawing()
}

/// Label below a point. The text that distinguishes it from other points of its revision comes
/// first, because the end of a long label is cut.
fn label(point: &PointResult) -> String {
    match &point.told_apart_by {
        Some(apart) => format!("{apart}, {}", point.revision),
        None => point.revision.clone(),
    }
}
