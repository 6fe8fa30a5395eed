//! Checkpoints: finished trials of an unfinished run. Storing the run removes them.

use super::{Store, StoreError};
use fwdlab_model::record::Checkpoint;
use rusqlite::{Transaction, params};

impl Store {
    /// Records one trial of the run in progress; `number` counts from 0. Removes later checkpoints
    /// of the run.
    ///
    /// # Errors
    /// If the store can't be written.
    pub fn insert_checkpoint(
        &mut self,
        run: u32,
        number: u32,
        checkpoint: &Checkpoint,
    ) -> Result<(), StoreError> {
        let json = self.to_json("a trial of an unfinished run", checkpoint)?;
        self.transaction(|tx| {
            tx.prepare_cached("DELETE FROM checkpoint WHERE run = ? AND position >= ?")?
                .execute([run, number])?;
            tx.prepare_cached("INSERT INTO checkpoint (run, position, json) VALUES (?, ?, ?)")?
                .execute(params![run, number, json])?;
            Ok(())
        })
    }

    /// Returns the checkpoints of a run in trial order. Stops at the first one that another version
    /// of the program wrote in another format: it and the later trials are measured again.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn checkpoints(&self, run: u32) -> Result<Vec<Checkpoint>, StoreError> {
        let read = || {
            let mut select = self
                .connection
                .prepare("SELECT position, json FROM checkpoint WHERE run = ? ORDER BY position")?;
            let rows = select.query_map([run], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<(u32, String)>>>()
        };
        let rows = read().map_err(|source| self.failed(source))?;
        let in_order = (0..).zip(&rows).take_while(|(at, (position, _))| at == position);
        Ok(in_order.map_while(|(_, (_, json))| serde_json::from_str(json).ok()).collect())
    }

    /// Returns the number of checkpoints of all runs.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn unfinished_trials(&self) -> Result<u64, StoreError> {
        let count = "SELECT count(*) FROM checkpoint";
        let counted = self.connection.query_row(count, [], |row| row.get::<_, i64>(0));
        counted.map(|count| count.max(0) as u64).map_err(|source| self.failed(source))
    }
}

/// Removes the checkpoints of a run within the transaction that stores it.
pub(super) fn remove(tx: &Transaction<'_>, run: u32) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM checkpoint WHERE run = ?")?.execute([run]).map(drop)
}
