//! Writing: each function is one transaction, and rolls back completely if it fails.

use super::lists::{Entry, bits};
use super::read::named;
use super::{Invocation, Store, StoreError, checkpoint};
use crate::plans::changes;
use fwdlab_model::plan::Stop;
use fwdlab_model::record::{Calibration, RunRecord};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, Warning};
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns true if the stored plan equals `plan`, whatever its recorded hash.
fn is_same(stored: &str, plan: &Plan) -> bool {
    serde_json::from_str(stored).is_ok_and(|stored: Plan| stored.sealed().hash == plan.hash)
}

/// Returns true if `plan` extends the stored one by blocks and is allowed to: its stopping rule is
/// valid at any time, or it compares counts, which have no randomness.
fn is_extension(stored: &str, plan: &Plan) -> bool {
    let Ok(stored) = serde_json::from_str::<Plan>(stored) else { return false };
    let is_extendable = plan.design.stop == Some(Stop::Open) || !plan.metric().is_rate();
    let mut shorter = plan.clone();
    shorter.design.blocks = stored.design.blocks;
    shorter.runs.truncate(stored.runs.len());
    is_extendable
        && plan.design.blocks > stored.design.blocks
        && shorter.sealed().hash == stored.sealed().hash
}

impl Store {
    /// Stores `plan`, or checks that the store contains it. `experiment` is the text of the
    /// experiment file. A plan that only adds blocks replaces the stored one if that preserves the
    /// error rates.
    ///
    /// # Errors
    /// [`StoreError::OtherPlan`] if the store contains a plan with another hash.
    pub fn adopt_plan(&mut self, plan: &Plan, experiment: &str) -> Result<(), StoreError> {
        let json = self.to_json("the plan", plan)?;
        let path = self.path.clone();
        self.transaction(|tx| {
            let stored: Option<(String, String, String)> = tx
                .query_row("SELECT title, hash, json FROM plan", [], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()?;
            match stored {
                Some((_, hash, _)) if hash == plan.hash => Ok(Ok(())),
                // An older version hashed more fields.
                Some((.., stored)) if is_same(&stored, plan) => Ok(Ok(())),
                Some((.., stored)) if is_extension(&stored, plan) => {
                    tx.execute("UPDATE plan SET hash = ?, json = ?", params![plan.hash, json])?;
                    Ok(Ok(()))
                }
                Some((stored_title, stored_hash, stored)) => Ok(Err(StoreError::OtherPlan {
                    path,
                    stored_title: stored_title.into(),
                    stored_hash: stored_hash.into(),
                    title: plan.title.as_str().into(),
                    hash: plan.hash.as_str().into(),
                    // The plan of an older version may no longer parse.
                    differences: serde_json::from_str(&stored)
                        .map(|stored: Plan| changes(&stored, plan).into())
                        .unwrap_or_default(),
                })),
                None => {
                    tx.execute(
                        "INSERT INTO plan (id, hash, title, json, experiment) VALUES (1, ?, ?, ?, ?)",
                        params![plan.hash, plan.title, json, experiment],
                    )?;
                    Ok(Ok(()))
                }
            }
        })?
    }

    /// Begins an invocation, to which the following runs belong, and returns its ID.
    ///
    /// # Errors
    /// [`StoreError::OtherTestbed`] if the store contains runs of another kind of testbed, which
    /// could not be compared.
    pub fn begin_invocation(&mut self, invocation: &Invocation) -> Result<i64, StoreError> {
        let environment = self.to_json("the environment", &invocation.environment)?;
        let path = self.path.clone();
        let id = self.transaction(|tx| {
            let other: Option<TestbedKind> = tx
                .query_row(
                    "SELECT testbed FROM invocation WHERE (testbed, simulated) <> (?, ?)
                     AND id IN (SELECT invocation FROM run) LIMIT 1",
                    params![invocation.testbed.name(), invocation.simulated],
                    |row| named(row, "testbed"),
                )
                .optional()?;
            if let Some(stored) = other {
                let testbed = invocation.testbed;
                return Ok(Err(StoreError::OtherTestbed { path, stored, testbed }));
            }
            tx.execute(
                "INSERT INTO invocation (started_at, fwdlab_version, testbed, testbed_reason,
                 simulated, environment, bed) VALUES (?, ?, ?, ?, ?, ?, ?)",
                params![
                    invocation.started_at,
                    invocation.fwdlab_version,
                    invocation.testbed.name(),
                    invocation.testbed_reason,
                    invocation.simulated,
                    environment,
                    invocation.bed,
                ],
            )?;
            Ok(Ok(tx.last_insert_rowid()))
        })??;
        // A store under construction has no lock; its builder flushes it once, at the end.
        if invocation.simulated && self.lock.is_some() {
            let lighter = self.connection.pragma_update(None, "synchronous", "NORMAL");
            lighter.map_err(|source| self.failed(source))?;
        }
        self.invocation = Some(id);
        Ok(id)
    }

    /// Records a run of the current invocation atomically, and removes its checkpoints.
    ///
    /// # Errors
    /// [`StoreError::DuplicateRun`] if the run is already recorded, [`StoreError::NotPlanned`] if
    /// the plan has no such run, [`StoreError::NoInvocation`] if none was begun,
    /// [`StoreError::Full`] if the disk is full.
    pub fn insert_run(&mut self, record: &RunRecord) -> Result<(), StoreError> {
        let path = self.path.clone();
        let invocation =
            self.invocation.ok_or_else(|| StoreError::NoInvocation { path: path.clone() })?;
        if !self.is_planned(record)? {
            let RunRecord { run, block, variants, .. } = record;
            let (run, block, variants) = (*run, *block, variants.clone());
            return Err(StoreError::NotPlanned { path, run, block, variants });
        }
        let texts = Texts::of(self, record)?;
        self.transaction(|tx| {
            let mut select = tx.prepare_cached("SELECT started_at FROM run WHERE run = ?")?;
            let stored: Option<String> =
                select.query_row([record.run], |row| row.get(0)).optional()?;
            if let Some(started_at) = stored {
                return Ok(Err(StoreError::DuplicateRun { path, run: record.run, started_at }));
            }
            insert_run(tx, record, invocation, &texts)?;
            checkpoint::remove(tx, record.run)?;
            Ok(Ok(()))
        })?
    }

    /// Returns true if the plan contains this run. Caches the plan's runs, which never change.
    fn is_planned(&mut self, record: &RunRecord) -> Result<bool, StoreError> {
        if self.planned.is_none() {
            let runs = self.plan()?.runs;
            let planned = runs.into_iter().map(|run| (run.index, (run.block, run.variants)));
            self.planned = Some(planned.collect());
        }
        let planned = self.planned.as_ref().and_then(|runs| runs.get(&record.run));
        Ok(planned.is_some_and(|(block, variants)| {
            (*block, variants) == (record.block, &record.variants)
        }))
    }

    /// Records all runs of an import in one transaction. Doesn't check them against the plan,
    /// because the caller created both.
    pub(super) fn insert_runs(&mut self, records: &[RunRecord]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let invocation = self.invocation.ok_or(StoreError::NoInvocation { path })?;
        let mut texts = Vec::with_capacity(records.len());
        for record in records {
            texts.push(Texts::of(self, record)?);
        }
        self.transaction(|tx| {
            for (record, texts) in records.iter().zip(&texts) {
                insert_run(tx, record, invocation, texts)?;
            }
            Ok(())
        })
    }

    /// Records the ceiling: the rates that sender and receiver reach without a DUT.
    ///
    /// # Errors
    /// If the store can't be written.
    pub fn insert_calibration(&mut self, calibration: &Calibration) -> Result<(), StoreError> {
        let frame_size = calibration.frame_size;
        let mix = match frame_size.is_mix() {
            true => Some(self.to_json("the frame sizes of a ceiling", &frame_size)?),
            false => None,
        };
        self.transaction(|tx| {
            tx.execute(
                "INSERT INTO calibration (testbed, family, frame_size, mix, measured_at)
                 VALUES (?, ?, ?, ?, ?)",
                params![
                    calibration.testbed,
                    calibration.family,
                    frame_size.most(),
                    mix,
                    calibration.measured_at
                ],
            )?;
            let id = tx.last_insert_rowid();
            let mut insert = tx.prepare(
                "INSERT INTO calibration_trial (calibration, position, rate_pps) VALUES (?, ?, ?)",
            )?;
            for (position, rate_pps) in calibration.rates_pps.iter().enumerate() {
                insert.execute(params![id, position as i64, rate_pps])?;
            }
            Ok(())
        })
    }

    /// Runs `work` in one transaction that takes the write lock immediately (`BEGIN IMMEDIATE`), so
    /// that it can't fail half-way on a lock. Rolls back on any error.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let path = &self.path;
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|tx| {
                let value = work(&tx)?;
                tx.commit()?;
                Ok(value)
            })
            .map_err(|source| StoreError::of(path, source))
    }

    /// Serializes a list of integers and names, which always read back.
    fn list<T: Entry>(&self, what: &str, entries: &[T]) -> Result<String, StoreError> {
        let columns: Vec<T::Columns> = entries.iter().map(T::columns).collect();
        serde_json::to_string(&columns).map_err(|source| self.unwritable(what, source))
    }

    fn unwritable(&self, what: &str, source: serde_json::Error) -> StoreError {
        StoreError::Value { path: self.path.clone(), what: what.to_owned(), source }
    }

    /// Serializes `value` to JSON and checks that it reads back: JSON has no NaN and no infinity,
    /// and unreadable values must not be written.
    pub(super) fn to_json<T: Serialize + DeserializeOwned>(
        &self,
        what: &str,
        value: &T,
    ) -> Result<String, StoreError> {
        serde_json::to_string(value)
            .and_then(|text| serde_json::from_str::<T>(&text).map(|_| text))
            .map_err(|source| self.unwritable(what, source))
    }
}

/// The fields of a record that are stored as JSON.
struct Texts {
    variants: String,
    facts: String,
    arrivals: String,
    device: String,
    opening: String,
    executed: Option<String>,
    method: Option<String>,
    lists: [String; 4],
    warnings: Vec<String>,
}

impl Texts {
    fn of(store: &Store, record: &RunRecord) -> Result<Texts, StoreError> {
        let warnings = record.warnings.iter();
        let trial = &record.trial;
        Ok(Texts {
            variants: store.to_json("the run's variants", &record.variants)?,
            facts: store.to_json("the run's facts", &record.facts)?,
            arrivals: store.to_json("the run's arrivals", &record.trial.arrivals)?,
            device: store.to_json("the device's time", &record.trial.device)?,
            opening: store.to_json("the opening of the window", &record.trial.opening)?,
            executed: match &record.trial.executed {
                Some(executed) => Some(store.to_json("what was executed", executed)?),
                None => None,
            },
            method: match &record.method {
                Some(method) => Some(store.to_json("the trials of a method", method)?),
                None => None,
            },
            lists: [
                store.list("the run's samples", &trial.samples)?,
                store.list("the run's counters", &trial.counters)?,
                store.list("the run's CPUs", &trial.cpus)?,
                store.list("the run's overhead", &record.overhead_ns)?,
            ],
            warnings: warnings
                .map(|warning| store.to_json("a warning", warning))
                .collect::<Result<_, StoreError>>()?,
        })
    }
}

fn insert_run(
    tx: &Transaction<'_>,
    record: &RunRecord,
    invocation: i64,
    texts: &Texts,
) -> rusqlite::Result<()> {
    insert_scalars(tx, record, invocation, texts)?;
    insert_warnings(tx, record, &texts.warnings)
}

fn insert_scalars(
    tx: &Transaction<'_>,
    record: &RunRecord,
    invocation: i64,
    texts: &Texts,
) -> rusqlite::Result<()> {
    let trial = &record.trial;
    let [samples, counters, cpus, overhead] = &texts.lists;
    tx.prepare_cached(
        "INSERT INTO run (run, invocation, block, variants, run_id, started_at, window_ns, intended,
         window_offered, window_forwarded, total_offered, total_forwarded, foreign_packets,
         unstamped, flows_seen, drain_ns, facts, arrivals, device, opening, executed, method,
         samples, counters, cpus, overhead)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
            record.run,
            invocation,
            record.block,
            texts.variants,
            record.run_id,
            record.started_at,
            bits(trial.window_ns),
            trial.intended.map(bits),
            bits(trial.window.offered),
            bits(trial.window.forwarded),
            bits(trial.total.offered),
            bits(trial.total.forwarded),
            bits(trial.foreign),
            bits(trial.unstamped),
            trial.flows_seen,
            bits(trial.drain_ns),
            texts.facts,
            texts.arrivals,
            texts.device,
            texts.opening,
            texts.executed,
            texts.method,
            samples,
            counters,
            cpus,
            overhead,
        ])?;
    Ok(())
}

fn insert_warnings(
    tx: &Transaction<'_>,
    record: &RunRecord,
    json: &[String],
) -> rusqlite::Result<()> {
    let mut insert =
        tx.prepare_cached("INSERT INTO warning (run, position, kind, json) VALUES (?, ?, ?, ?)")?;
    for (position, (warning, json)) in record.warnings.iter().zip(json).enumerate() {
        insert.execute(params![record.run, position as i64, kind_of(warning), json])?;
    }
    Ok(())
}

/// Returns the warning's kind, as in its JSON.
pub fn kind_of(warning: &Warning) -> String {
    serde_json::to_value(warning)
        .ok()
        .and_then(|value| value.get("kind")?.as_str().map(str::to_owned))
        .unwrap_or_default()
}
