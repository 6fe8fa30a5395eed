//! Overview of a store for lists of many stores, without reading its runs.

use super::{Store, StoreError};
use rusqlite::OptionalExtension;
use serde::Serialize;

/// One store in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Title of the experiment.
    pub title: String,
    /// Variants of the plan.
    pub variants: u32,
    /// Runs that the plan asks for.
    pub runs_planned: u32,
    /// Runs that are recorded.
    pub runs_recorded: u32,
    /// Recorded runs with a warning.
    pub runs_in_doubt: u32,
    /// Testbed of the last invocation; empty when there was none.
    pub testbed: String,
    /// Wall clock of the first run, RFC 3339; empty when unknown.
    pub started_at: String,
}

impl Store {
    /// The store in a few words and counts; what it costs hardly depends on its size.
    ///
    /// # Errors
    /// [`StoreError::NoPlan`] when the store is still empty, or when it can't be read.
    pub fn overview(&self) -> Result<Overview, StoreError> {
        let sql = "SELECT title, json_array_length(json, '$.variants'), \
                   json_array_length(json, '$.runs'), \
                   (SELECT count(*) FROM run), \
                   (SELECT count(DISTINCT run) FROM warning), \
                   coalesce((SELECT testbed FROM invocation ORDER BY id DESC LIMIT 1), ''), \
                   coalesce((SELECT started_at FROM run ORDER BY run LIMIT 1), '') FROM plan";
        let row = self.connection.query_row(sql, [], |row| {
            Ok(Overview {
                title: row.get(0)?,
                variants: row.get(1)?,
                runs_planned: row.get(2)?,
                runs_recorded: row.get(3)?,
                runs_in_doubt: row.get(4)?,
                testbed: row.get(5)?,
                started_at: row.get(6)?,
            })
        });
        let found = row.optional().map_err(|e| self.failed(e))?;
        found.ok_or_else(|| StoreError::NoPlan { path: self.path.clone() })
    }
}
