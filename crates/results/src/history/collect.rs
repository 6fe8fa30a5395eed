//! Collects points from stores, and groups them into series.

mod peers;
mod titles;

use super::agreement;
use super::changes;
use super::date::{day_of, day_of_build, iso, rfc3339};
use super::ordered::Ordered;
use super::place::Place;
use super::read::{HistoryInput, own_revision};
use super::releases;
use super::results::{Counts, Detection, History, PointResult, SeriesResult};
use super::revision::{Revision, minute};
use crate::facts::{ARCHIVE, Facts, Filter, named};
use crate::label::MeasuredOn;
use crate::quantity::Quantity;
use crate::report::analysis::{Figures, RunResult, SummaryResult};
use crate::store::{Contents, Invocation, StoreError};
use fwdlab_model::plan::Trial;
use fwdlab_model::record::Environment;
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, Variant};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use titles::titles;

/// Name of the factor whose levels are revisions.
const REVISION: &str = "revision";
/// Maximum number of fwdlab versions listed in a warning.
const VERSIONS: usize = 3;
/// Reads stores one by one and keeps their points.
#[derive(Debug, Default)]
pub struct Collector {
    stores: usize,
    files: usize,
    series: BTreeMap<Key, SeriesBuilder>,
    notes: Vec<String>,
}

/// Key of a series: everything but the revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Machine, and the other names of the series.
    name: Vec<String>,
    testbed: String,
    figure: String,
    /// Factors other than the revision, each with its level.
    levels: Vec<(String, String)>,
    /// Settings of the base with the changes of the levels; empty for the archive, whose settings
    /// are read from logs if there are any.
    settings: BTreeMap<String, String>,
}

/// A series being gathered.
#[derive(Debug)]
struct SeriesBuilder {
    facts: Facts,
    machine: String,
    caption: String,
    description: String,
    quantity: Quantity,
    points: Vec<Found>,
}

/// A point and its position.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) place: Place,
    /// Day of the source or the build. `None` if unknown.
    made: Option<i64>,
    /// Day of the runs. `None` if unknown.
    measured: Option<i64>,
    pub(super) point: PointResult,
    version: String,
    /// `None` for files of other tools.
    trial: Option<Trial>,
    /// Traffic settings as text by name.
    traffic: BTreeMap<String, String>,
}

impl Found {
    fn duration_ns(&self) -> Option<u64> {
        self.trial.map(|trial| trial.duration_ns)
    }
}

impl Collector {
    /// Creates an empty collector.
    pub fn new() -> Collector {
        Collector::default()
    }

    /// Adds the points of the store at `path`, reading only the data they need. A store without a
    /// plan or without runs adds a remark instead.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn add_store(&mut self, path: &Path) -> Result<(), StoreError> {
        self.add_read(path, HistoryInput::of(path))
    }

    /// Adds the points of a store that has been read already, possibly in parallel with others.
    ///
    /// # Errors
    /// Returns the error of `read`, unless the store has no plan.
    pub fn add_read(
        &mut self,
        path: &Path,
        read: Result<HistoryInput, StoreError>,
    ) -> Result<(), StoreError> {
        match read {
            Ok(HistoryInput { contents, figures }) => self.add_figures(path, &contents, &figures),
            Err(StoreError::NoPlan { .. }) => self.note(path, "holds no plan and is left out"),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Adds the points of a store's contents.
    pub fn add(&mut self, path: &Path, contents: &Contents) {
        self.add_figures(path, contents, &Figures::of(contents));
    }

    fn add_figures(&mut self, path: &Path, contents: &Contents, figures: &Figures) {
        // The invocation of the first run: other invocations may have recorded no run.
        let used = contents.run_invocations.first();
        let stored = contents.invocations.iter().find(|stored| Some(&stored.id) == used);
        let Some(first) = stored.map(|stored| &stored.invocation) else {
            return self.note(path, "holds no runs and is left out");
        };
        self.stores += 1;
        if !figures.figure.is_rate() {
            let reason = "its figures are instructions per packet, which are no rates: left out; \
                        compare its variants with fwdlab compare";
            return self.note(path, reason);
        }
        let mut warnings = contents.runs.iter().flat_map(|run| &run.warnings);
        if let Some(fatal) = warnings.find(|warning| warning.is_fatal()) {
            let reason = format!("not to be trusted, it is left out: {}", fatal.sentence());
            return self.note(path, &reason);
        }
        let left_out = figures.runs.iter().filter(|run| run.left_out.is_some()).count();
        if left_out > 0 {
            let runs = if left_out == 1 { "run is" } else { "runs are" };
            self.note(path, &format!("{left_out} {runs} left out, as in its report"));
        }
        if figures.runs.iter().all(|run| run.value_pps.is_none() || run.left_out.is_some()) {
            return self.note(path, "none of its runs has a figure, it is left out");
        }
        // Each machine has its own history.
        let beds: BTreeSet<Option<&str>> =
            figures.runs.iter().map(|run| run.bed.as_deref()).collect();
        for bed in beds {
            let mut used = contents.invocations.iter().map(|stored| &stored.invocation);
            let of_bed = used.find(|invocation| bed.is_some() && invocation.bed.as_deref() == bed);
            self.add_bed(path, contents, figures, of_bed.unwrap_or(first));
        }
    }

    /// Adds the runs of one bed: the bed of `invocation`.
    fn add_bed(
        &mut self,
        path: &Path,
        contents: &Contents,
        figures: &Figures,
        invocation: &Invocation,
    ) {
        let (plan, bed) = (&contents.plan, &invocation.bed);
        let has_kernel = !matches!(invocation.testbed, TestbedKind::Sim | TestbedKind::Memory);
        let store_revision =
            own_revision(&invocation.environment, &invocation.started_at, has_kernel);
        let (machine, mut name) = names(&invocation.environment, plan);
        name.extend(bed.iter().map(|bed| format!("bed {bed}")));
        let is_archive = invocation.environment.0.contains_key(ARCHIVE);
        // The date of an imported set is the start of its runs, not of the import.
        let date = match is_archive {
            true => named(&invocation.environment, ARCHIVE, "started").map(rfc3339),
            false => Some(invocation.started_at.clone()).filter(|date| !date.is_empty()),
        };
        let built = named(&invocation.environment, ARCHIVE, "uname").and_then(day_of_build);
        for variant in &plan.variants {
            let is_of_bed = |run: &&RunResult| {
                run.variant == variant.index && run.bed == *bed && run.left_out.is_none()
            };
            let runs = figures.runs.iter().filter(is_of_bed);
            let values: Vec<f64> = runs.filter_map(|run| run.value_pps).collect();
            // No runs, or an invalid value.
            let Some(summary) = SummaryResult::of(&values) else { continue };
            let level = revision_level(plan, variant);
            // The uname describes one revision of the store only.
            let built = built.filter(|_| level.is_none());
            let revision = level.unwrap_or_else(|| store_revision.clone());
            let key = Key {
                name: name.clone(),
                testbed: MeasuredOn::of(figures.testbed.kind, &figures.testbed.caption).to_string(),
                figure: figures.figure.short().to_owned(),
                levels: other_levels(plan, variant),
                settings: if is_archive { BTreeMap::new() } else { settings(plan, variant) },
            };
            let gathered = self.series.entry(key).or_insert_with(|| SeriesBuilder {
                facts: Facts::of(&invocation.environment, plan, &[variant]),
                machine: machine.clone(),
                caption: figures.testbed.caption.clone(),
                description: figures.figure.description().to_owned(),
                quantity: Quantity::PACKET_RATE,
                points: Vec::new(),
            });
            gathered.points.push(Found {
                made: releases::day_of(&revision.place).or(built),
                measured: date.as_deref().and_then(day_of),
                place: revision.place,
                point: PointResult {
                    revision: revision.label,
                    told_apart_by: None,
                    patched: revision.patched,
                    median: summary.median,
                    min: summary.min,
                    max: summary.max,
                    n: summary.n,
                    values,
                    date: date.clone(),
                    made: None,
                    recent: i64::MIN,
                    store: path.to_path_buf(),
                },
                version: invocation.fwdlab_version.clone(),
                trial: Some(plan.trial),
                traffic: traffic(variant),
            });
        }
    }

    /// Adds a remark that a store is left out; the error names the store.
    pub fn leave_out(&mut self, why: &StoreError) {
        self.notes.push(format!("left out: {why}"));
    }

    /// Builds the history of all stores added.
    pub fn finish(self) -> History {
        let titles = titles(self.series.keys());
        let mut series: Vec<Ordered> = self
            .series
            .into_iter()
            .zip(titles)
            .map(|((key, gathered), title)| order_series(key, gathered, title))
            .collect();
        series.sort_by(|a, b| a.result.title.cmp(&b.result.title));
        let family = series.len();
        for one in &mut series {
            changes::find(one, family);
        }
        let agreements = agreement::agreements(&series);
        let series: Vec<SeriesResult> = series.into_iter().map(|one| one.result).collect();
        History {
            stores: self.stores,
            files: self.files,
            threshold: changes::THRESHOLD,
            confidence: changes::CONFIDENCE,
            counts: Counts::of(&series),
            series,
            agreements,
            notes: self.notes,
        }
    }

    /// Titles of the series so far, all different.
    pub fn titles(&self) -> Vec<String> {
        titles(self.series.keys())
    }

    /// Keeps only series whose title contains `text`, ignoring case.
    pub fn keep_titles_with(&mut self, text: &str) {
        let text = text.to_lowercase();
        let mut titles = self.titles().into_iter();
        self.series
            .retain(|_, _| titles.next().is_some_and(|title| title.to_lowercase().contains(&text)));
    }

    /// Keeps only series that `filter` admits.
    pub fn keep_admitted(&mut self, filter: &Filter) {
        self.series.retain(|_, gathered| filter.admits(&gathered.facts));
    }

    fn note(&mut self, path: &Path, what: &str) {
        self.notes.push(format!("{}: {what}", path.display()));
    }
}

/// The machine, and the names of the series in addition to its factors.
fn names(environment: &Environment, plan: &Plan) -> (String, Vec<String>) {
    let machine = named(environment, ARCHIVE, "machine").or(named(environment, "cpu", "model"));
    let machine = machine.unwrap_or("unknown machine").to_owned();
    let mut names = vec![machine.clone()];
    if environment.0.contains_key(ARCHIVE) {
        let more = ["interface", "topic"].map(|name| named(environment, ARCHIVE, name));
        names.extend(more.into_iter().flatten().map(str::to_owned));
    } else {
        names.push(plan.name.clone());
    }
    (machine, names)
}

/// The revision of a variant. `None` unless the plan has a factor `revision`.
fn revision_level(plan: &Plan, variant: &Variant) -> Option<Revision> {
    let factor = plan.factors.iter().position(|factor| factor.name == REVISION)?;
    let level = plan.factors[factor].levels.get(*variant.levels.get(factor)?)?;
    Some(Revision::of(&level.label))
}

/// Name and level label of each factor except the revision.
fn other_levels(plan: &Plan, variant: &Variant) -> Vec<(String, String)> {
    plan.factors
        .iter()
        .zip(&variant.levels)
        .filter(|(factor, _)| factor.name != REVISION)
        .filter_map(|(factor, &level)| {
            Some((factor.name.clone(), factor.levels.get(level)?.label.clone()))
        })
        .collect()
}

/// Settings of the base with the changes of all levels except the revision's, as text by name. The
/// capabilities of a simulated device are excluded: they are the subject of the test, not a
/// condition of it.
fn settings(plan: &Plan, variant: &Variant) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut base = serde_json::to_value(&plan.base).unwrap_or_default();
    if let Some(testbed) = base.get_mut("testbed").and_then(Value::as_object_mut) {
        testbed.remove("sim");
        // The requested kind, such as "auto"; the actual kind is part of the key.
        testbed.remove("kind");
    }
    flatten("", &base, &mut settings);
    let factors = plan.factors.iter().zip(&variant.levels);
    for (factor, &level) in factors.filter(|(factor, _)| factor.name != REVISION) {
        for change in factor.levels.get(level).into_iter().flat_map(|level| &level.changes) {
            settings.insert(change.setting.clone(), change.value.clone());
        }
    }
    settings
}

/// Traffic settings of a variant, as text by name.
fn traffic(variant: &Variant) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let traffic = serde_json::to_value(&variant.settings.traffic).unwrap_or_default();
    flatten("traffic", &traffic, &mut settings);
    settings
}

/// Flattens a tree into values by path.
fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{name}"), value, into);
            }
        }
        Value::String(text) => drop(into.insert(path.to_owned(), text.clone())),
        other => drop(into.insert(path.to_owned(), other.to_string())),
    }
}

/// A series with its points in the order of revisions, patched ones after their base, points of one
/// revision by date and store. If revisions are numbered in several ways, or counted per branch,
/// points are ordered by day.
fn order_series(key: Key, mut gathered: SeriesBuilder, title: String) -> Ordered {
    let days = days(&gathered.points).unwrap_or_default();
    gathered.points.sort_by(|a, b| {
        let order = |found: &Found| (found.point.patched, found.point.date.clone());
        let day = |found: &Found| days.get(&found.place);
        day(a)
            .cmp(&day(b))
            .then_with(|| a.place.cmp(&b.place))
            .then_with(|| order(a).cmp(&order(b)))
            .then_with(|| a.point.store.cmp(&b.point.store))
    });
    let warnings = warnings(&gathered.points);
    let mut recent = i64::MIN;
    for Found { point, made, measured, .. } in &mut gathered.points {
        recent = measured.or(*made).map_or(recent, |day| recent.max(day));
        point.recent = recent;
        point.made = made.map(iso);
    }
    let (places, mut points): (Vec<Place>, Vec<PointResult>) =
        gathered.points.into_iter().map(|found| (found.place, found.point)).unzip();
    tell_apart(&mut points);
    let result = SeriesResult {
        title,
        machine: gathered.machine,
        testbed: key.testbed,
        caption: gathered.caption,
        settings: key.levels.into_iter().collect(),
        figure: gathered.description,
        quantity: gathered.quantity,
        points,
        detection: Detection::NothingForwarded,
        segments: Vec::new(),
        changes: Vec::new(),
        suppressed: 0,
        apart: Vec::new(),
        warnings,
    };
    Ordered { places, result }
}

/// Days of the revisions. `None` unless numbers alone do not determine the order and every point
/// has a day: of the source or build, or of the runs if the numbers are not comparable at all. A
/// revision has one place, the first of its days.
fn days(points: &[Found]) -> Option<BTreeMap<Place, i64>> {
    let first = &points.first()?.place;
    if points.iter().all(|found| first.is_of_one_numbering(&found.place)) {
        return None;
    }
    let are_comparable = points.iter().all(|found| first.is_comparable(&found.place));
    let mut days = BTreeMap::new();
    for found in points {
        let day = found.made.or(found.measured.filter(|_| !are_comparable))?;
        let known = days.entry(found.place.clone()).or_insert(day);
        *known = day.min(*known);
    }
    Some(days)
}

/// Gives points of one revision distinct names: the minute of the start, the full start if minutes
/// are equal, else the store.
fn tell_apart(points: &mut [PointResult]) {
    let mut of_revision: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, point) in points.iter().enumerate() {
        of_revision.entry(point.revision.clone()).or_default().push(i);
    }
    for namesakes in of_revision.into_values().filter(|points| points.len() > 1) {
        let date = |i: usize| points[i].date.clone().unwrap_or_default();
        let minutes: Vec<String> = namesakes.iter().map(|&i| minute(&date(i))).collect();
        let starts: Vec<String> = namesakes.iter().map(|&i| date(i)).collect();
        let stores = namesakes.iter().map(|&i| points[i].store.display().to_string()).collect();
        // The store's directory, if directories are distinct.
        let folder = |i: usize| points[i].store.parent()?.file_name()?.to_str().map(str::to_owned);
        let folders = namesakes.iter().map(|&i| folder(i).unwrap_or_default()).collect();
        let distinguishes = |names: &Vec<String>| {
            names.iter().collect::<BTreeSet<_>>().len() == names.len()
                && names.iter().all(|name| !name.is_empty())
        };
        let names = [minutes, starts, folders].into_iter().find(distinguishes).unwrap_or(stores);
        for (i, name) in namesakes.into_iter().zip(names) {
            points[i].told_apart_by = Some(name);
        }
    }
}

/// Differences between points that should differ only in their revision.
fn warnings(points: &[Found]) -> Vec<String> {
    let distinct = |of: fn(&Found) -> &str| points.iter().map(of).collect::<BTreeSet<&str>>();
    let mut warnings = Vec::new();
    let versions = distinct(|found| &found.version);
    if versions.len() > 1 {
        let some: Vec<&str> = versions.iter().copied().take(VERSIONS).collect();
        let more = if versions.len() > VERSIONS { " ..." } else { "" };
        let n = versions.len();
        warnings.push(format!("measured with {n} versions of fwdlab: {}{more}", some.join(", ")));
    }
    if points.windows(2).any(|w| w[0].duration_ns() != w[1].duration_ns()) {
        warnings.push("measured with trials of different length".to_owned());
    }
    for name in points.first().iter().flat_map(|first| first.traffic.keys()) {
        let of = |found: &Found| found.traffic.get(name).cloned().unwrap_or_default();
        let values: BTreeSet<String> = points.iter().map(of).collect();
        if values.len() > 1 {
            let values: Vec<String> = values.into_iter().collect();
            warnings.push(format!("measured with different {name}: {}", values.join(", ")));
        }
    }
    let kinds = points.windows(2).filter(|w| !w[0].place.is_comparable(&w[1].place)).count();
    if kinds > 0 {
        let how = match days(points).is_some() {
            true => "in the order of their days (of the source, the build, else the runs)",
            false => "sorted by kind, not by date, which not all have",
        };
        warnings.push(format!("revisions are numbered in different ways: {how}"));
    }
    warnings
}
