//! Results of a history, independent of the output format.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A history: all series, and changes that several have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// Stores that were read.
    pub stores: usize,
    /// Smaller changes are counted and not listed, as a ratio (0.01 = 1 %).
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
    /// Series.
    pub series: usize,
    /// Series with too few points to look for changes.
    pub too_short: usize,
    /// Series with too much scatter for "no change" to be conclusive.
    pub cant_tell: usize,
    /// Changes listed.
    pub changes: usize,
    /// Those after which more is forwarded.
    pub better: usize,
    /// Those after which less is forwarded.
    pub worse: usize,
    /// Changes found and not listed, because they are too small to matter.
    pub suppressed: usize,
    /// Points that lie apart from their neighbours.
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
    /// The factors other than the revision: label of the level by name.
    pub settings: BTreeMap<String, String>,
    /// Metric of a run.
    pub figure: &'static str,
    /// Every point in the order of revisions, patched ones after their base.
    pub points: Vec<PointResult>,
    /// Whether changes were looked for.
    pub detection: Detection,
    /// The levels between changes, those that are too small to list included;
    /// one for a series without any, none where changes were not looked for.
    pub segments: Vec<Segment>,
    /// The changes of at least [`History::threshold`], in their order.
    pub changes: Vec<Change>,
    /// Smaller changes, not listed.
    pub suppressed: usize,
    /// Points that lie apart from their neighbours: one point is no level, so
    /// changes are looked for without them.
    pub apart: Vec<Apart>,
    /// Warnings about the series.
    pub warnings: Vec<String>,
}

/// One variant at one revision; rates in packets per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointResult {
    /// The revision.
    pub revision: String,
    /// Distinguishes points of the same revision: date or store; none for the only
    /// point of a revision.
    pub told_apart_by: Option<String>,
    /// True when something was laid over the revision: listed, but no part of
    /// the line in which changes are looked for.
    pub patched: bool,
    /// One figure per run.
    pub values: Vec<f64>,
    /// Median of the runs.
    pub median: f64,
    /// The slowest run.
    pub min: f64,
    /// The fastest run.
    pub max: f64,
    /// Runs.
    pub n: usize,
    /// When it was measured, RFC 3339; none when unknown.
    pub date: Option<String>,
    /// Day of its source (about, between the releases around it) or of its build, RFC 3339;
    /// none when unknown.
    pub made: Option<String>,
    /// The latest known day of it and of the points before it, days since 1970: what it is
    /// sorted by among the points of other series.
    #[serde(skip)]
    pub recent: i64,
    /// The store.
    pub store: PathBuf,
}

/// Whether changes were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// Yes.
    Done {
        /// Points on the main line.
        points: usize,
        /// Noise between points as a ratio (0.01 = 1 %), from the differences of
        /// neighbours.
        noise: f64,
        /// Penalty of a change in units of the squared noise.
        penalty: f64,
        /// Correlation of neighbouring points that was allowed for; 0 for none.
        correlation: f64,
        /// The smallest step halfway that the series would have shown nine times in ten, as
        /// a ratio (0.03 = 3 %).
        detectable: f64,
        /// False if that is too large for "no change" to be conclusive.
        can_tell: bool,
    },
    /// There are too few points.
    TooShort {
        /// Points on the main line.
        points: usize,
        /// How many it takes.
        need: usize,
    },
    /// A point has no logarithm: at some revision nothing was forwarded.
    NothingForwarded,
}

/// A stretch of points on one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Index of its first point in [`SeriesResult::points`].
    pub first: usize,
    /// Index of its last point.
    pub last: usize,
    /// Name of its first point.
    pub first_point: String,
    /// Name of its last point.
    pub last_point: String,
    /// Points on it, patched ones and those that lie apart not counted.
    pub n: usize,
    /// Geometric mean of the points' medians, packets per second.
    pub level: f64,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Index of the first point after it in [`SeriesResult::points`].
    pub at: usize,
    /// Name of the last point before it: its revision, with what tells it from
    /// others of that revision.
    pub before: String,
    /// Name of the first point after it.
    pub after: String,
    /// True when both are of one revision: something else has changed.
    pub same_revision: bool,
    /// Level after it over the level before it.
    pub ratio: f64,
    /// Lower end of the ratio's interval. The unit is the point; the place was
    /// chosen after looking, for which the interval makes no allowance.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Points of the segment before it.
    pub n_before: usize,
    /// Points of the segment after it.
    pub n_after: usize,
    /// For better or worse.
    pub direction: Direction,
    /// True if it is also found at a level that holds for all series of the history together.
    pub holds_among_all: bool,
    /// Always true: a change point is chosen after looking, so that only new
    /// runs say whether it is there.
    pub confirmation_needed: bool,
    /// The two points to run again, in one experiment.
    pub run_again: [String; 2],
    /// The whole in one line.
    pub sentence: String,
}

/// A point that lies apart from those around it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Apart {
    /// Its index in [`SeriesResult::points`].
    pub at: usize,
    /// Its name, to be run again.
    pub point: String,
    /// Its median over the level around it.
    pub ratio: f64,
    /// For better or worse.
    pub direction: Direction,
    /// True for the last point of the line: it may be the first after a change.
    pub is_latest: bool,
}

/// For better or worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// More is forwarded.
    Better,
    /// Less is forwarded.
    Worse,
}

/// A place at which several machines change in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Last point known to be before it, on any of them.
    pub before: String,
    /// First point known to be after it, on any of them.
    pub after: String,
    /// The direction.
    pub direction: Direction,
    /// The machines.
    pub machines: Vec<String>,
    /// Titles of the series.
    pub series: Vec<String>,
}

impl PointResult {
    /// The day on which it was measured, else about the one of its source.
    pub fn day(&self) -> Option<String> {
        let measured = self.date.as_deref().and_then(|date| date.get(..10)).map(str::to_owned);
        measured.or(self.made.as_ref().map(|made| format!("~{made}")))
    }

    /// How the point is called: its revision, with what tells it from others of
    /// that revision.
    pub fn name(&self) -> String {
        match &self.told_apart_by {
            Some(apart) => format!("{} ({apart})", self.revision),
            None => self.revision.clone(),
        }
    }
}

impl Counts {
    /// Totals over these series.
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
    /// Leaves out changes that were measured before `day` (`2024-01-31`), and series without a
    /// point since. Points before it stay: they are what a change is held against. What has no
    /// date is left out, which a note says.
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
        let titles: BTreeSet<&String> = self.series.iter().map(|series| &series.title).collect();
        self.agreements
            .retain(|agreement| agreement.series.iter().all(|title| titles.contains(title)));
        self.counts = Counts::of(&self.series);
        let (fewer, less) = (series - self.series.len(), changes - self.counts.changes);
        if fewer + less > 0 {
            self.notes.push(format!(
                "{fewer} series and {less} changes are of before {day}, or of an unknown day, and \
                 are not shown"
            ));
        }
    }

    /// The last change of each series that has one which holds among all series.
    pub fn latest_changes(&self) -> impl Iterator<Item = &Change> {
        self.series.iter().filter_map(SeriesResult::latest_change)
    }
}

impl SeriesResult {
    /// The last change that holds among all series; `None` if there is none.
    pub(super) fn latest_change(&self) -> Option<&Change> {
        self.changes.iter().rfind(|change| change.holds_among_all)
    }
}
