//! Results of a history, independent of the output format.

use crate::quantity::Quantity;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A history: all series, and the changes they share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// Number of stores read.
    pub stores: usize,
    /// Number of files of other tools read.
    pub files: usize,
    /// Threshold below which changes are counted but not listed, as a ratio (0.01 = 1 %).
    pub threshold: f64,
    /// Confidence of the intervals in percent.
    pub confidence: f64,
    /// The series, by title.
    pub series: Vec<SeriesResult>,
    /// Revisions at which several machines change.
    pub agreements: Vec<Agreement>,
    /// Totals.
    pub counts: Counts,
    /// Remarks on the whole.
    pub notes: Vec<String>,
}

/// Totals over all series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of series.
    pub series: usize,
    /// Series with too few points to look for changes.
    pub too_short: usize,
    /// Series with too much scatter for "no change" to be conclusive.
    pub cant_tell: usize,
    /// Changes listed.
    pub changes: usize,
    /// Changes for the better.
    pub better: usize,
    /// Changes for the worse.
    pub worse: usize,
    /// Changes found but not listed, because they are below the threshold.
    pub suppressed: usize,
    /// Outliers.
    pub apart: usize,
}

/// One machine and configuration over the revisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesResult {
    /// Machine and configuration in one line; different for every series.
    pub title: String,
    /// The machine.
    pub machine: String,
    /// Kind of the testbed.
    pub testbed: String,
    /// Caveat to print with every number; empty for hardware.
    pub caption: String,
    /// Factors other than the revision: level label by factor name.
    pub settings: BTreeMap<String, String>,
    /// Metric of a run.
    pub figure: String,
    /// Unit of all values, and direction of improvement.
    #[serde(rename = "unit")]
    pub(crate) quantity: Quantity,
    /// All points in the order of revisions, patched ones after their base.
    pub points: Vec<PointResult>,
    /// Outcome of the search for changes.
    pub detection: Detection,
    /// Levels between changes, including changes too small to list. One for a series without
    /// changes; empty if no search was made.
    pub segments: Vec<Segment>,
    /// Changes of at least [`History::threshold`], in order.
    pub changes: Vec<Change>,
    /// Number of smaller changes, not listed.
    pub suppressed: usize,
    /// Outliers. The search excludes them, because one point is not a level.
    pub apart: Vec<Outlier>,
    /// Warnings about the series.
    pub warnings: Vec<String>,
}

/// One variant at one revision; values in the unit of the series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointResult {
    /// The revision.
    pub revision: String,
    /// Date or store that distinguishes points of the same revision. `None` for the only point of a
    /// revision.
    pub told_apart_by: Option<String>,
    /// True if the revision has a patch: the point is listed, but excluded from the search for
    /// changes.
    pub patched: bool,
    /// One value per run.
    pub values: Vec<f64>,
    /// Median of the runs.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of runs.
    pub n: usize,
    /// Time of the measurement, RFC 3339. `None` if unknown.
    pub date: Option<String>,
    /// Day of the source (interpolated between the surrounding releases) or of the build, RFC 3339.
    /// `None` if unknown.
    pub made: Option<String>,
    /// Latest known day of this point and the points before it, days since 1970. Sorts the point
    /// among points of other series.
    #[serde(skip)]
    pub recent: i64,
    /// The store or file.
    pub store: PathBuf,
}

/// Outcome of the search for changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// The search was made.
    Done {
        /// Points on the main line.
        points: usize,
        /// Noise between points as a ratio (0.01 = 1 %), estimated from the differences of
        /// neighbours.
        noise: f64,
        /// Penalty of a change in units of the squared noise.
        penalty: f64,
        /// Correlation of neighbouring points that the search allows for; 0 if there is none.
        correlation: f64,
        /// Standard deviation of the step of a wandering level from one point to the next, as a
        /// ratio; 0 for levels that are constant between changes.
        wander: f64,
        /// Smallest step halfway through the series that the search detects nine times in ten, as a
        /// ratio (0.03 = 3 %).
        detectable: f64,
        /// False if `detectable` is too large for "no change" to be
        /// conclusive.
        can_tell: bool,
    },
    /// The series has too few points.
    TooShort {
        /// Points on the main line.
        points: usize,
        /// Required number of points.
        need: usize,
    },
    /// A point has no logarithm: nothing was forwarded at some revision.
    NothingForwarded,
}

/// Consecutive points on one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Index of the first point in [`SeriesResult::points`].
    pub first: usize,
    /// Index of the last point.
    pub last: usize,
    /// Name of the first point.
    pub first_point: String,
    /// Name of the last point.
    pub last_point: String,
    /// Number of points, without patched ones and outliers.
    pub n: usize,
    /// Geometric mean of the points' medians, in the unit of the series.
    pub level: f64,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Index of the first point after it in [`SeriesResult::points`].
    pub at: usize,
    /// Name of the last point before it: its revision, with what distinguishes it from other points
    /// of that revision.
    pub before: String,
    /// Name of the first point after it.
    pub after: String,
    /// True if both points are of one revision, so something else has changed.
    pub same_revision: bool,
    /// Level after it over the level before it.
    pub ratio: f64,
    /// Lower end of the ratio's interval. The unit is the point. The interval does not allow for
    /// the place having been chosen from the data.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of points in the segment before it.
    pub n_before: usize,
    /// Number of points in the segment after it.
    pub n_after: usize,
    /// Direction of the change.
    pub direction: Direction,
    /// True if the change is also found at a level that holds for all series of the history
    /// together.
    pub holds_among_all: bool,
    /// Always true: a change point is chosen from the data, so only new runs can confirm it.
    pub confirmation_needed: bool,
    /// The two points to run again, in one experiment.
    pub run_again: [String; 2],
    /// Summary in one line.
    pub sentence: String,
}

/// An outlier among the points of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// Index in [`SeriesResult::points`].
    pub at: usize,
    /// Name of the point, to be run again.
    pub point: String,
    /// Median of the point over the level around it.
    pub ratio: f64,
    /// Direction of the difference.
    pub direction: Direction,
    /// True for the last point of the line, which may be the first one after a change.
    pub is_latest: bool,
}

/// Direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The rate rises, or the time falls.
    Better,
    /// The rate falls, or the time rises.
    Worse,
}

/// A place at which several machines change in the same direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Last point known to be before the change, on any of the machines.
    pub before: String,
    /// First point known to be after the change, on any of the machines.
    pub after: String,
    /// Common direction.
    pub direction: Direction,
    /// The machines.
    pub machines: Vec<String>,
    /// Titles of the machines' series.
    pub series: Vec<String>,
    /// [`Change::at`] of the change in each of [`Agreement::series`].
    #[serde(skip)]
    pub(super) places: Vec<usize>,
}

impl PointResult {
    /// Day of the measurement, or the approximate day of the source (with `~`).
    pub fn day(&self) -> Option<String> {
        let measured = self.date.as_deref().and_then(|date| date.get(..10)).map(str::to_owned);
        measured.or(self.made.as_ref().map(|made| format!("~{made}")))
    }

    /// Name of the point: its revision, with what distinguishes it from other points of that
    /// revision.
    pub fn name(&self) -> String {
        match &self.told_apart_by {
            Some(apart) => format!("{} ({apart})", self.revision),
            None => self.revision.clone(),
        }
    }
}

impl Counts {
    /// Counts totals over `series`.
    pub(super) fn of(series: &[SeriesResult]) -> Counts {
        let changes = || series.iter().flat_map(|one| &one.changes);
        let of = |direction| changes().filter(|change| change.direction == direction).count();
        let is_short = |one: &&SeriesResult| matches!(one.detection, Detection::TooShort { .. });
        let cannot = |one: &&SeriesResult| {
            one.changes.is_empty()
                && matches!(one.detection, Detection::Done { can_tell: false, .. })
        };
        Counts {
            series: series.len(),
            cant_tell: series.iter().filter(cannot).count(),
            too_short: series.iter().filter(is_short).count(),
            changes: changes().count(),
            better: of(Direction::Better),
            worse: of(Direction::Worse),
            suppressed: series.iter().map(|one| one.suppressed).sum(),
            apart: series.iter().map(|one| one.apart.len()).sum(),
        }
    }
}

impl History {
    /// Removes changes measured before `day` (`2024-01-31`) with their agreements, and series
    /// without a point since then. Earlier points stay, because changes are compared with them.
    /// Undated changes are also removed; a note reports the counts.
    pub fn keep_since(&mut self, day: &str) {
        let is_since = |point: &PointResult| match &point.date {
            Some(date) => date.as_str() >= day,
            None => false,
        };
        let (series, changes) = (self.series.len(), self.counts.changes);
        self.series.retain(|series| series.points.iter().any(is_since));
        for series in &mut self.series {
            let SeriesResult { changes, points, .. } = series;
            changes.retain(|change| points.get(change.at).is_some_and(is_since));
        }
        let changes_of = |series: &'_ SeriesResult| {
            let title = series.title.clone();
            series.changes.iter().map(move |change| (title.clone(), change.at)).collect::<Vec<_>>()
        };
        let kept: BTreeSet<(String, usize)> = self.series.iter().flat_map(changes_of).collect();
        self.agreements.retain(|agreement| {
            let mut changes =
                agreement.series.iter().cloned().zip(agreement.places.iter().copied());
            changes.all(|change| kept.contains(&change))
        });
        self.counts = Counts::of(&self.series);
        let (fewer, less) = (series - self.series.len(), changes - self.counts.changes);
        if fewer + less > 0 {
            self.notes.push(format!(
                "{fewer} series and {less} changes are of before {day}, or of an unknown day, and \
                 are not shown"
            ));
        }
    }

    /// Last change of each series that holds among all series.
    pub fn latest_changes(&self) -> impl Iterator<Item = &Change> {
        self.series.iter().filter_map(SeriesResult::latest_change)
    }
}

impl SeriesResult {
    /// Last change that holds among all series. `None` if there is none.
    pub(super) fn latest_change(&self) -> Option<&Change> {
        self.changes.iter().rfind(|change| change.holds_among_all)
    }
}
