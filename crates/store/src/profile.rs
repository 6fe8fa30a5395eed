//! Profiles: CPU time by stack, from measured runs and extra profiling runs.

use super::{Store, StoreError};
use fwdlab_model::record::ProfileRecord;
use rusqlite::params;

/// Position of the samples outside all windows.
const OUTSIDE: i64 = -1;

/// Fact of a profile that contains its request.
pub const ASKED: &str = "asked";

/// A profile of one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredProfile {
    /// Metadata of the samples.
    pub record: ProfileRecord,
    /// Unit of the samples: `ns` of CPU time, `cycles` ...
    pub unit: String,
    /// Units per sample.
    pub per_sample: f64,
    /// Samples of each of [`ProfileRecord::windows`] as folded stacks, one per line: frames from
    /// the root, separated by `;`, and a count.
    pub windows: Vec<String>,
    /// Samples outside all windows, in the same format.
    pub outside: String,
}

impl Store {
    /// Records a profile. Replaces the samples of the same measured run, or of an extra run with
    /// the same variant and start. Also removes extra runs of the variant with other settings.
    ///
    /// # Errors
    /// If the store can't be written.
    pub fn insert_profile(&mut self, profile: &StoredProfile) -> Result<(), StoreError> {
        let json = self.to_json("a profile", &profile.record)?;
        let record = &profile.record;
        let variant = record.variant as i64;
        let is_replaced = |old: &ProfileRecord| match (old.run, record.run) {
            (None, None) => {
                old.start == record.start || old.facts.get(ASKED) != record.facts.get(ASKED)
            }
            (old, new) => old == new,
        };
        let stored = self.rows("SELECT id, record FROM profile ORDER BY id", |row| {
            Ok((row.get::<_, i64>("id")?, row.get::<_, String>("record")?))
        })?;
        let mut replaced = Vec::new();
        for (id, json) in stored {
            let old: ProfileRecord = self.parse_json("a profile", &json)?;
            if old.variant == record.variant && is_replaced(&old) {
                replaced.push(id);
            }
        }
        self.transaction(|tx| {
            for id in replaced {
                tx.execute("DELETE FROM profile_stacks WHERE profile = ?", [id])?;
                tx.execute("DELETE FROM profile WHERE id = ?", [id])?;
            }
            tx.execute(
                "INSERT INTO profile (variant, unit, per_sample, record) VALUES (?, ?, ?, ?)",
                params![variant, profile.unit, profile.per_sample, json],
            )?;
            let id = tx.last_insert_rowid();
            let mut insert = tx.prepare(
                "INSERT INTO profile_stacks (profile, position, folded) VALUES (?, ?, ?)",
            )?;
            insert.execute(params![id, OUTSIDE, profile.outside])?;
            for (position, folded) in profile.windows.iter().enumerate() {
                insert.execute(params![id, position as i64, folded])?;
            }
            Ok(())
        })
    }

    /// Returns the profiles by variant: its extra runs by start, then its measured runs.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn profiles(&self) -> Result<Vec<StoredProfile>, StoreError> {
        let mut stacks = self.groups(
            "SELECT profile, position, folded FROM profile_stacks ORDER BY profile, position",
            |row| Ok((row.get::<_, i64>("position")?, row.get::<_, String>("folded")?)),
        )?;
        let rows = self.rows("SELECT * FROM profile ORDER BY variant", |row| {
            let unit: (String, f64) = (row.get("unit")?, row.get("per_sample")?);
            Ok((row.get::<_, i64>("id")?, unit, row.get::<_, String>("record")?))
        })?;
        let mut profiles = rows
            .into_iter()
            .map(|(id, (unit, per_sample), json)| {
                let all = stacks.remove(&id).unwrap_or_default();
                let (outside, windows): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|(position, _)| *position == OUTSIDE);
                Ok(StoredProfile {
                    unit,
                    per_sample,
                    record: self.parse_json("a profile", &json)?,
                    windows: windows.into_iter().map(|(_, folded)| folded).collect(),
                    outside: outside.into_iter().map(|(_, folded)| folded).collect(),
                })
            })
            .collect::<Result<Vec<StoredProfile>, StoreError>>()?;
        profiles
            .sort_by_key(|StoredProfile { record, .. }| (record.variant, record.run, record.start));
        Ok(profiles)
    }
}
