//! Reading: everything that a report needs, exactly as written.

use super::lists::Entry;
use super::{Failure, Import, Invocation, Store, StoreError, StoredProfile};
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::{
    Calibration, Counter, Counts, Environment, RunRecord, Sample, TrialRecord,
};
use fwdlab_model::units::FrameSize;
use fwdlab_model::{Plan, Warning};
use fwdlab_stats::log_rule::Rule;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the unnamed bed in a list with named ones.
pub const UNNAMED: &str = "unnamed";

/// Everything in a store, from one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// The plan.
    pub plan: Plan,
    /// Text of the experiment file.
    pub experiment: String,
    /// The invocations, in order.
    pub invocations: Vec<StoredInvocation>,
    /// The runs, by index.
    pub runs: Vec<RunRecord>,
    /// The invocation ID of each of [`Contents::runs`].
    pub run_invocations: Vec<i64>,
    /// The calibrations, in order of insertion.
    pub calibrations: Vec<Calibration>,
    /// The import; `None` for runs that fwdlab measured itself.
    pub import: Option<Import>,
    /// The profiles, by variant.
    pub profiles: Vec<StoredProfile>,
}

impl Contents {
    /// Returns the bed of each run; `None` if it has no name. If all named runs are of one bed, the
    /// unnamed runs belong to it as well: an experiment that continues under a name did not use two
    /// machines.
    pub fn run_beds(&self) -> Vec<Option<&str>> {
        let bed = |stored: &StoredInvocation| stored.invocation.bed.is_some();
        if !self.invocations.iter().any(bed) {
            return vec![None; self.run_invocations.len()];
        }
        let named = self.invocations.iter().map(|s| (s.id, s.invocation.bed.as_deref()));
        let named: BTreeMap<i64, Option<&str>> = named.collect();
        let of_runs = self.run_invocations.iter().map(|id| named.get(id).copied().flatten());
        let names: BTreeSet<&str> = of_runs.clone().flatten().collect();
        let only = names.first().copied().filter(|_| names.len() == 1);
        of_runs.map(|bed| bed.or(only)).collect()
    }

    /// Returns the distinct beds of the runs, sorted; `None` represents runs without a name next to
    /// several named beds, or all runs. Two or more beds are several machines.
    pub fn beds(&self) -> Vec<Option<&str>> {
        let beds: BTreeSet<Option<&str>> = self.run_beds().into_iter().collect();
        beds.into_iter().collect()
    }

    /// Returns the names of the distinct beds, sorted.
    pub fn bed_names(&self) -> impl Iterator<Item = &str> {
        self.beds().into_iter().flatten()
    }

    /// Evaluates imported runs by another rule. Has no effect on searches or on runs that fwdlab
    /// measured itself.
    #[must_use]
    pub fn by_rule(mut self, rule: Rule) -> Contents {
        if let Some(import) = &self.import
            && self.plan.compare.figure != Some(RunMetric::Mean)
        {
            self.plan.compare.figure = Some(rule.metric(import.about.upper_median));
        }
        self
    }
}

/// An invocation and its ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredInvocation {
    /// ID, from 1.
    pub id: i64,
    /// Its data.
    pub invocation: Invocation,
}

impl Store {
    /// Reads everything in one transaction, so a concurrent writer's next run is either included
    /// completely or not at all.
    ///
    /// # Errors
    /// [`StoreError::NoPlan`] if the store is still empty, or another error if it can't be read.
    pub fn contents(&self) -> Result<Contents, StoreError> {
        let snapshot = self.connection.unchecked_transaction().map_err(|e| self.failed(e))?;
        let (plan, experiment) = self.plan_and_text()?;
        let contents = Contents {
            plan,
            experiment,
            invocations: self.invocations()?,
            runs: self.runs()?,
            run_invocations: self.run_invocations()?,
            calibrations: self.calibrations()?,
            import: self.import()?,
            profiles: self.profiles()?,
        };
        snapshot.finish().map_err(|e| self.failed(e))?;
        Ok(contents)
    }

    /// Reads only the data for the runs' results: calibrations, runs without facts and overhead,
    /// invocations without their environment, no text of the experiment. Reads samples and counters
    /// only if `needs_samples` returns true for the plan.
    ///
    /// # Errors
    /// As for [`Store::contents`].
    pub fn figures_only(
        &self,
        needs_samples: impl Fn(&Plan) -> bool,
    ) -> Result<Contents, StoreError> {
        let snapshot = self.connection.unchecked_transaction().map_err(|e| self.failed(e))?;
        let (plan, _) = self.plan_and_text()?;
        let invocations = self.rows("SELECT * FROM invocation ORDER BY id", invocation)?;
        let run_invocations = self.run_invocations()?;
        let calibrations = self.calibrations()?;
        let samples = needs_samples(&plan);
        let runs = read_figures(&self.connection, self, samples)
            .map_err(|failure| failure.at(&self.path))?;
        snapshot.finish().map_err(|e| self.failed(e))?;
        Ok(Contents {
            plan,
            experiment: String::new(),
            invocations,
            runs,
            run_invocations,
            calibrations,
            import: None,
            profiles: Vec::new(),
        })
    }

    /// Returns the plan.
    ///
    /// # Errors
    /// [`StoreError::NoPlan`] if the store has none yet.
    pub fn plan(&self) -> Result<Plan, StoreError> {
        self.plan_and_text().map(|(plan, _)| plan)
    }

    /// Returns the plan's hash without reading the plan.
    ///
    /// # Errors
    /// [`StoreError::NoPlan`] if the store has no plan yet.
    pub fn plan_hash(&self) -> Result<String, StoreError> {
        let hash = self.connection.query_row("SELECT hash FROM plan", [], |row| row.get(0));
        let hash = hash.optional().map_err(|e| self.failed(e))?;
        hash.ok_or_else(|| StoreError::NoPlan { path: self.path.clone() })
    }

    /// Returns the unchanged text of the experiment file.
    ///
    /// # Errors
    /// [`StoreError::NoPlan`] if the store has no plan yet.
    pub fn experiment(&self) -> Result<String, StoreError> {
        self.plan_and_text().map(|(_, experiment)| experiment)
    }

    /// Returns all runs with all their observations, by index.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn runs(&self) -> Result<Vec<RunRecord>, StoreError> {
        read_runs(&self.connection, self).map_err(|failure| failure.at(&self.path))
    }

    /// Returns the indices of the recorded runs.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn recorded_runs(&self) -> Result<BTreeSet<u32>, StoreError> {
        self.rows("SELECT run FROM run ORDER BY run", |row| row.get(0))
            .map(|runs| runs.into_iter().collect())
    }

    /// Returns the calibrations in order of insertion.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn calibrations(&self) -> Result<Vec<Calibration>, StoreError> {
        let mut rates = self.groups(
            "SELECT calibration, rate_pps FROM calibration_trial ORDER BY calibration, position",
            |row| row.get(1),
        )?;
        self.rows("SELECT * FROM calibration ORDER BY id", |row| {
            let mix: Option<String> = row.get("mix")?;
            let mix = mix.and_then(|json| serde_json::from_str(&json).ok());
            let bytes: u16 = row.get("frame_size")?;
            Ok(Calibration {
                testbed: row.get("testbed")?,
                family: row.get("family")?,
                frame_size: mix.unwrap_or(FrameSize::of(bytes)),
                rates_pps: rates.remove(&row.get("id")?).unwrap_or_default(),
                measured_at: row.get("measured_at")?,
            })
        })
    }

    /// Returns the invocations in order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn invocations(&self) -> Result<Vec<StoredInvocation>, StoreError> {
        let rows = self.rows("SELECT * FROM invocation ORDER BY id", |row| {
            Ok((invocation(row)?, row.get::<_, String>("environment")?))
        })?;
        rows.into_iter()
            .map(|(mut stored, json)| {
                stored.invocation.environment = self.parse_json("an environment", &json)?;
                Ok(stored)
            })
            .collect()
    }

    /// Returns the environment of each invocation, in order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn environments(&self) -> Result<Vec<Environment>, StoreError> {
        let invocations = self.invocations()?;
        Ok(invocations.into_iter().map(|stored| stored.invocation.environment).collect())
    }

    /// Returns the invocation ID of each run, by run index.
    pub(super) fn run_invocations(&self) -> Result<Vec<i64>, StoreError> {
        self.rows("SELECT invocation FROM run ORDER BY run", |row| row.get(0))
    }

    fn plan_and_text(&self) -> Result<(Plan, String), StoreError> {
        let stored: Option<(String, String)> = self
            .connection
            .query_row("SELECT json, experiment FROM plan", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(|e| self.failed(e))?;
        let (json, experiment) =
            stored.ok_or_else(|| StoreError::NoPlan { path: self.path.clone() })?;
        Ok((self.parse_json("the plan", &json)?, experiment))
    }

    pub(super) fn rows<T>(
        &self,
        sql: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let all = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare(sql)?.query_map([], read)?.collect()
        };
        all().map_err(|e| self.failed(e))
    }

    /// Reads rows of a detail table, grouped by the number in their first column.
    pub(super) fn groups<T>(
        &self,
        sql: &str,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<BTreeMap<i64, Vec<T>>, StoreError> {
        let mut groups: BTreeMap<i64, Vec<T>> = BTreeMap::new();
        for (owner, value) in self.rows(sql, |row| Ok((row.get(0)?, read(row)?)))? {
            groups.entry(owner).or_default().push(value);
        }
        Ok(groups)
    }

    pub(super) fn parse_json<T: DeserializeOwned>(
        &self,
        what: &str,
        json: &str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(json).map_err(|source| StoreError::Value {
            path: self.path.clone(),
            what: what.to_owned(),
            source,
        })
    }
}

/// Reads an invocation, without its environment.
pub(super) fn invocation(row: &Row<'_>) -> rusqlite::Result<StoredInvocation> {
    let invocation = Invocation {
        started_at: row.get("started_at")?,
        fwdlab_version: row.get("fwdlab_version")?,
        testbed: named(row, "testbed")?,
        testbed_reason: row.get("testbed_reason")?,
        simulated: row.get("simulated")?,
        environment: Environment::default(),
        bed: row.get("bed")?,
    };
    Ok(StoredInvocation { id: row.get("id")?, invocation })
}

/// Parses a value from its name.
pub(super) fn named<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let name: String = row.get(column)?;
    name.parse().map_err(|error: T::Err| {
        let column = row.as_ref().column_index(column).unwrap_or_default();
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    })
}

/// Reads an unsigned counter that was stored as a signed integer.
fn bits(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get(column).map(i64::cast_unsigned)
}

fn read_runs(connection: &Connection, store: &Store) -> Result<Vec<RunRecord>, Failure> {
    let mut warnings = warnings(store)?;

    let mut statement = connection.prepare("SELECT * FROM run ORDER BY run")?;
    let mut rows = statement.query([])?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        let owner: i64 = row.get("run")?;
        runs.push(RunRecord {
            run: row.get("run")?,
            block: row.get("block")?,
            variants: store.parse_json("a run's variants", &row.get::<_, String>("variants")?)?,
            run_id: row.get("run_id")?,
            started_at: row.get("started_at")?,
            trial: TrialRecord {
                samples: list(store, row, "samples")?,
                counters: list(store, row, "counters")?,
                cpus: list(store, row, "cpus")?,
                arrivals: optional_json(store, row, "arrivals")?,
                device: optional_json(store, row, "device")?,
                opening: optional_json(store, row, "opening")?,
                executed: optional_json(store, row, "executed")?,
                ..scalars(row)?
            },
            method: optional_json(store, row, "method")?,
            facts: store.parse_json("a run's facts", &row.get::<_, String>("facts")?)?,
            warnings: warnings.remove(&owner).unwrap_or_default(),
            overhead_ns: list(store, row, "overhead")?,
        });
    }
    Ok(runs)
}

/// Reads the warnings of each run, in order.
fn warnings(store: &Store) -> Result<BTreeMap<i64, Vec<Warning>>, StoreError> {
    let texts = store.groups("SELECT run, json FROM warning ORDER BY run, position", |row| {
        row.get::<_, String>("json")
    })?;
    let parse = |json: &String| store.parse_json("a warning", json);
    texts
        .into_iter()
        .map(|(run, texts)| Ok((run, texts.iter().map(parse).collect::<Result<_, _>>()?)))
        .collect()
}

/// Reads the runs with only the data for their results: columns by number and rows in the order of
/// their tables' keys, because there may be millions of samples.
fn read_figures(
    connection: &Connection,
    store: &Store,
    with_samples: bool,
) -> Result<Vec<RunRecord>, Failure> {
    let mut warnings = warnings(store)?;
    let lists = if with_samples { ", samples, counters" } else { "" };
    let mut statement = connection.prepare(&format!(
        "SELECT run, block, variants, window_ns, intended, window_offered, window_forwarded, \
         total_offered, total_forwarded, foreign_packets, unstamped, flows_seen, drain_ns, cpus, \
         executed, method{lists} FROM run ORDER BY run",
    ))?;
    let mut rows = statement.query([])?;
    let mut runs: Vec<RunRecord> = Vec::new();
    while let Some(row) = rows.next()? {
        let owner: i64 = row.get("run")?;
        let (mut samples, counters): (Vec<Sample>, Vec<Counter>) = match with_samples {
            true => (list(store, row, "samples")?, list(store, row, "counters")?),
            false => (Vec::new(), Vec::new()),
        };
        samples.retain(|sample| sample.valid);
        runs.push(RunRecord {
            run: row.get("run")?,
            block: row.get("block")?,
            variants: store.parse_json("a run's variants", &row.get::<_, String>("variants")?)?,
            trial: TrialRecord {
                cpus: list(store, row, "cpus")?,
                samples,
                counters,
                executed: optional_json(store, row, "executed")?,
                ..scalars(row)?
            },
            method: optional_json(store, row, "method")?,
            warnings: warnings.remove(&owner).unwrap_or_default(),
            ..RunRecord::default()
        });
    }
    Ok(runs)
}

/// Reads the trial's numbers in table `run`.
fn scalars(row: &Row<'_>) -> rusqlite::Result<TrialRecord> {
    Ok(TrialRecord {
        window_ns: bits(row, "window_ns")?,
        intended: row.get::<_, Option<i64>>("intended")?.map(i64::cast_unsigned),
        window: Counts {
            offered: bits(row, "window_offered")?,
            forwarded: bits(row, "window_forwarded")?,
        },
        total: Counts {
            offered: bits(row, "total_offered")?,
            forwarded: bits(row, "total_forwarded")?,
        },
        foreign: bits(row, "foreign_packets")?,
        unstamped: bits(row, "unstamped")?,
        flows_seen: row.get("flows_seen")?,
        drain_ns: bits(row, "drain_ns")?,
        ..TrialRecord::default()
    })
}

/// Reads a JSON column that may be NULL.
fn optional_json<T: DeserializeOwned + Default>(
    store: &Store,
    row: &Row<'_>,
    column: &str,
) -> Result<T, Failure> {
    let Some(json) = row.get::<_, Option<String>>(column)? else { return Ok(T::default()) };
    Ok(store.parse_json(&format!("a run's {column}"), &json)?)
}

/// Reads a list in the run's row.
fn list<T: Entry>(store: &Store, row: &Row<'_>, column: &str) -> Result<Vec<T>, Failure> {
    let text = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    let entries: Vec<T::Columns> = store.parse_json(&format!("a run's {column}"), text)?;
    Ok(entries.into_iter().map(T::of).collect())
}
