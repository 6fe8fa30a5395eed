//! Overview of a store for lists of many stores, without reading its runs.

use super::{Store, StoreError};
use rusqlite::OptionalExtension;
use serde::Serialize;

/// Overview of one store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Title of the experiment.
    pub title: String,
    /// Number of variants in the plan.
    pub variants: u32,
    /// Number of runs in the plan.
    pub runs_planned: u32,
    /// Number of recorded runs.
    pub runs_recorded: u32,
    /// Number of recorded runs with a warning.
    pub runs_in_doubt: u32,
    /// Testbed of the last invocation; empty if there was none.
    pub testbed: String,
    /// Wall-clock start of the first run, RFC 3339; empty if unknown.
    pub started_at: String,
}

impl Store {
    /// Returns the overview; its cost hardly depends on the store's size.
    ///
    /// # Errors
    /// [`StoreError::NoPlan`] if the store is still empty, or another error if it can't be read.
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
