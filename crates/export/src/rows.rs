//! The rows of one store.

use crate::bed;
use crate::tables::{TABLES, Table};
use fwdlab_model::record::{MethodRecord, MethodTrial};
use fwdlab_results::catalogue::Entry;
use fwdlab_results::report::analysis::{Compared, Outcome, RunResult, rated};
use fwdlab_results::store::{Contents, kind_of};
use serde_json::Value as Json;

/// A cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Unknown.
    #[default]
    Null,
    /// An integer.
    Integer(i64),
    /// A number.
    Number(f64),
    /// True or false.
    Truth(bool),
    /// Text.
    Text(String),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Truth(truth)
    }
}

impl From<f64> for Value {
    /// NaN becomes null, as in SQL.
    fn from(number: f64) -> Value {
        if number.is_nan() { Value::Null } else { Value::Number(number) }
    }
}

impl From<u64> for Value {
    /// Values above 2^63 - 1 become negative, as in the store.
    fn from(integer: u64) -> Value {
        Value::Integer(integer.cast_signed())
    }
}

impl From<u32> for Value {
    fn from(integer: u32) -> Value {
        Value::Integer(integer.into())
    }
}

impl From<usize> for Value {
    fn from(integer: usize) -> Value {
        Value::from(integer as u64)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(option: Option<T>) -> Value {
        option.map_or(Value::Null, Into::into)
    }
}

/// Name of the table of verdicts.
pub(crate) const VERDICTS: &str = "verdicts";

/// A row: a cell for each column of its table.
pub type Row = Vec<Value>;

macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$(Value::from($cell)),*] };
}

/// Position of a store in the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePosition {
    /// The bed.
    pub bed: String,
    /// The day on which the experiment began (`2026-01-31`), otherwise the day of the measured
    /// software; `None` if unknown.
    pub day: Option<String>,
    /// Its directory below the exported one; `.` for the exported directory itself.
    pub store: String,
}

impl StorePosition {
    /// Returns the place of a store.
    pub fn of(entry: &Entry, contents: &Contents) -> StorePosition {
        let day = |date: &Option<String>| Some(date.as_deref()?.get(..10)?.to_owned());
        let day = day(&entry.date).or(day(&entry.made));
        let store = if entry.place.is_empty() { "." } else { &entry.place };
        let bed = contents.bed_names().next();
        let bed = bed::name(&contents.plan, &entry.facts, bed);
        StorePosition { bed, day, store: store.to_owned() }
    }
}

/// Returns all rows of a store, table by table.
pub fn of(
    entry: &Entry,
    place: &StorePosition,
    contents: &Contents,
) -> Vec<(&'static Table, Vec<Row>)> {
    let (runs, compared) = rated(contents);
    let all = [
        vec![experiment(entry, place, contents)],
        runs.iter().map(|run| run_row(place, run)).collect(),
        samples(place, contents),
        trials(place, contents),
        counters(place, contents),
        settings(place, contents),
        compared.iter().map(|compared| verdict(place, compared)).collect(),
        warnings(place, contents),
    ];
    TABLES.iter().zip(all).collect()
}

/// Returns the rows that concern several beds together: the verdicts.
pub fn of_all_beds(
    place: &StorePosition,
    contents: &Contents,
) -> (StorePosition, Vec<(&'static Table, Vec<Row>)>) {
    let (_, compared) = rated(contents);
    let rows = TABLES.iter().map(|table| match table.name {
        VERDICTS => (table, compared.iter().map(|compared| verdict(place, compared)).collect()),
        _ => (table, Vec::new()),
    });
    (StorePosition { bed: bed::ALL.to_owned(), ..place.clone() }, rows.collect())
}

/// Splits a store that several beds measured into one part per bed.
pub fn by_bed(contents: &Contents) -> Vec<Contents> {
    let run_beds = contents.run_beds();
    let part = |bed: Option<&str>| {
        let is_of_bed = |place: usize| run_beds[place] == bed;
        let places: Vec<usize> =
            (0..contents.runs.len()).filter(|&place| is_of_bed(place)).collect();
        let invocations = contents.invocations.iter();
        Contents {
            runs: places.iter().map(|&place| contents.runs[place].clone()).collect(),
            run_invocations: places.iter().map(|&place| contents.run_invocations[place]).collect(),
            invocations: invocations
                .filter(|stored| stored.invocation.bed.as_deref() == bed)
                .cloned()
                .collect(),
            ..contents.clone()
        }
    };
    contents.beds().into_iter().map(part).collect()
}

/// Returns `None` for an empty text.
fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn experiment(entry: &Entry, place: &StorePosition, contents: &Contents) -> Row {
    let facts = &entry.facts;
    let is_real = contents.invocations.iter().all(|stored| !stored.invocation.simulated);
    row![
        place.store.as_str(),
        place.day.as_deref(),
        crate::VERSION,
        entry.title.as_str(),
        contents.plan.hash.as_str(),
        non_empty(&facts.machine),
        non_empty(&facts.interface),
        non_empty(&facts.topic),
        entry.testbed.as_str(),
        is_real,
        contents.import.is_some(),
        entry.date.as_deref(),
        contents.plan.metric().name(),
        entry.runs_planned,
        entry.runs_recorded,
        entry.runs_in_doubt,
    ]
}

fn run_row(place: &StorePosition, run: &RunResult) -> Row {
    row![
        place.store.as_str(),
        place.day.as_deref(),
        run.run,
        run.block,
        run.variant,
        run.label.as_str(),
        non_empty(&run.started_at),
        run.value_pps,
        run.counted.as_ref().map(|counted| counted.instructions),
        run.mean_pps,
        run.offered_pps,
        run.intended_pps,
        run.offered,
        run.forwarded,
        run.taken,
        run.warnings,
        run.left_out.as_deref(),
        run.disturbed,
        run.generator_limited,
    ]
}

fn samples(place: &StorePosition, contents: &Contents) -> Vec<Row> {
    let runs = contents.runs.iter().flat_map(|run| {
        run.trial.samples.iter().enumerate().map(move |(position, sample)| (run, position, sample))
    });
    let rows = runs.map(|(run, position, sample)| {
        row![
            place.store.as_str(),
            place.day.as_deref(),
            run.run,
            position,
            sample.at_ns,
            sample.duration_ns,
            sample.offered,
            sample.forwarded,
            sample.stolen_ns,
            sample.variant,
            sample.valid,
        ]
    });
    rows.collect()
}

fn trials(place: &StorePosition, contents: &Contents) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in &contents.runs {
        let Some(method) = &run.method else { continue };
        let mut add = |part: Option<usize>, record: &MethodRecord| {
            let trials = record.trials.iter().enumerate();
            rows.extend(trials.map(|(position, t)| trial(place, run.run, part, position, t)));
        };
        add(None, method);
        for (part, record) in method.parts.iter().enumerate() {
            add(Some(part), record);
        }
    }
    rows
}

fn trial(
    place: &StorePosition,
    run: u32,
    part: Option<usize>,
    position: usize,
    t: &MethodTrial,
) -> Row {
    row![
        place.store.as_str(),
        place.day.as_deref(),
        run,
        part,
        position,
        t.load,
        t.duration_ns,
        t.at_ns,
        t.offered,
        t.forwarded,
        t.loss_ratio(),
        t.burst,
        t.taken_ns,
        t.invalid.as_deref(),
    ]
}

fn counters(place: &StorePosition, contents: &Contents) -> Vec<Row> {
    let runs = contents.runs.iter();
    let counters = runs.flat_map(|run| run.trial.counters.iter().map(move |c| (run.run, c)));
    let (store, day) = (place.store.as_str(), place.day.as_deref());
    let rows =
        counters.map(|(run, c)| row![store, day, run, c.name.as_str(), c.delta(), c.expected]);
    rows.collect()
}

fn settings(place: &StorePosition, contents: &Contents) -> Vec<Row> {
    let mut rows = Vec::new();
    for variant in &contents.plan.variants {
        let mut add = |name: String, value: String| {
            let label = variant.label.as_str();
            let (store, day) = (place.store.as_str(), place.day.as_deref());
            rows.push(row![store, day, variant.index, label, name, value]);
        };
        for (factor, level) in contents.plan.factors.iter().zip(&variant.levels) {
            if let Some(level) = factor.levels.get(*level) {
                add(format!("factor.{}", factor.name), level.label.clone());
            }
        }
        // Serialising plain values cannot fail.
        let value = serde_json::to_value(&variant.settings).unwrap_or_default();
        flatten("", &value, &mut add);
    }
    rows
}

/// Adds each value with its path; lists count as values.
fn flatten(path: &str, value: &Json, add: &mut impl FnMut(String, String)) {
    match value {
        Json::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, add);
            }
        }
        Json::Null => {}
        Json::String(text) => add(path.to_owned(), text.clone()),
        other => add(path.to_owned(), other.to_string()),
    }
}

fn verdict(place: &StorePosition, compared: &Compared) -> Row {
    let mut row = row![
        place.store.as_str(),
        place.day.as_deref(),
        compared.variant,
        compared.label.as_str(),
        compared.baseline,
        compared.baseline_label.as_str(),
        compared.goal.as_deref(),
    ];
    row.extend(match &compared.outcome {
        Outcome::Compared(answer) => {
            let c = &answer.comparison;
            let verdict = answer.verdict.to_string();
            row![verdict, c.ratio, c.low, c.high, c.p_adjusted, c.mde, c.n_a, c.n_b, None::<&str>]
        }
        Outcome::Counted(exact) => {
            let over = |difference: f64| 1.0 + difference / exact.baseline;
            let verdict = exact.verdict.name();
            let (low, high) = (over(exact.low), over(exact.high));
            let (ratio, none) = (over(exact.total_difference), None::<f64>);
            row![verdict, ratio, low, high, none, none, exact.n_a, exact.n_b, None::<&str>]
        }
        Outcome::Unanswerable { reason } => {
            let mut row = vec![Value::Null; 8];
            row.push(reason.as_str().into());
            row
        }
    });
    row
}

fn warnings(place: &StorePosition, contents: &Contents) -> Vec<Row> {
    let runs = contents.runs.iter();
    let warnings = runs.flat_map(|run| run.warnings.iter().map(move |w| (run.run, w)));
    let (store, day) = (place.store.as_str(), place.day.as_deref());
    let rows =
        warnings.map(|(run, warning)| row![store, day, run, kind_of(warning), warning.sentence()]);
    rows.collect()
}
