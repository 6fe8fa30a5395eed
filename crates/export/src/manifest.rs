//! Contents of one generation of the tables: the stores, their state when they were read, and the
//! files with their rows.

use crate::tables::TABLES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Name of the manifest file.
pub(crate) const NAME: &str = "manifest.json";

/// A file that changed more recently than this may change again without a later timestamp, because
/// file systems have coarse clocks.
const SETTLED: Duration = Duration::from_secs(2);

/// Manifest of a generation.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Manifest {
    /// Writer of the rows: version of the tables, of the program, and the columns. Rows of
    /// different authors are never mixed.
    pub author: String,
    /// Length of the periods.
    pub period: Period,
    /// Stores, sorted by name.
    pub stores: Vec<Known>,
    /// Files with their rows.
    pub packs: Vec<PackEntry>,
}

/// A store in the tables.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Known {
    /// Path of its file.
    pub path: PathBuf,
    /// The exported directory.
    pub root: PathBuf,
    /// Its name in the tables.
    pub store: String,
    /// State of the file when it was read; `None` if later changes might be undetectable.
    pub seen: Option<FileState>,
    /// Day of its last run; `None` if unknown.
    pub newest: Option<String>,
    /// Number of runs.
    pub runs: usize,
    /// False if the store was too old and has no rows.
    pub has_rows: bool,
}

/// Rows of some stores: one file per table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PackEntry {
    /// Bed.
    pub bed: String,
    /// Period.
    pub period: String,
    /// Name of the files, the same for all tables.
    pub file: String,
    /// Rows of all tables together.
    pub rows: usize,
    /// Names of the stores.
    pub stores: BTreeSet<String>,
}

/// Length of a period: the shortest one that does not create too many files.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Period {
    #[default]
    Month,
    Year,
    All,
}

impl Period {
    /// Returns the next longer period.
    pub(crate) fn longer(self) -> Option<Period> {
        match self {
            Period::Month => Some(Period::Year),
            Period::Year => Some(Period::All),
            Period::All => None,
        }
    }

    /// Returns the period of a day, or of a shorter period.
    pub(crate) fn of(self, day: &str) -> String {
        let length = match self {
            Period::All => return "all".to_owned(),
            Period::Month => 7,
            Period::Year => 4,
        };
        let is_date = day.starts_with(|c: char| c.is_ascii_digit());
        let day = if is_date { day.get(..length).unwrap_or(day) } else { day };
        day.to_owned()
    }
}

impl Manifest {
    /// Returns a manifest without stores, written by this program.
    pub(crate) fn new() -> Manifest {
        Manifest { author: author(), ..Manifest::default() }
    }

    /// Reads the manifest of a generation; `None` if it is missing or unreadable.
    pub(crate) fn read(generation: &Path) -> Option<Manifest> {
        let text = fs::read(generation.join(NAME)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Returns true if this program would write the same rows.
    pub(crate) fn is_ours(&self) -> bool {
        self.author == author()
    }
}

fn author() -> String {
    let columns = TABLES.iter().flat_map(|table| {
        let columns = table.columns.iter();
        columns.map(|column| format!("{} {} {:?}\n", table.name, column.name, column.kind))
    });
    // FNV-1a, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>).
    let sum = columns.flat_map(String::into_bytes).fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("tables {}, fwdlab {}, columns {sum:016x}", crate::VERSION, env!("CARGO_PKG_VERSION"))
}

/// State of a store's file and its SQLite log: size in bytes and time of the last change (ns).
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct FileState([(u64, u64); 2]);

impl FileState {
    /// Returns the current state; `None` if the file is missing or changed very recently.
    pub(crate) fn of(store: &Path) -> Option<FileState> {
        let mut log = store.as_os_str().to_owned();
        log.push("-wal");
        let file = facts(store, true)?;
        Some(FileState([file, facts(Path::new(&log), false)?]))
    }
}

fn facts(path: &Path, is_required: bool) -> Option<(u64, u64)> {
    let Ok(found) = fs::metadata(path) else { return (!is_required).then_some((0, 0)) };
    if found.len() == 0 && !is_required {
        return Some((0, 0)); // an empty log equals an absent one
    }
    let changed = found.modified().ok()?;
    if SystemTime::now().duration_since(changed).is_ok_and(|age| age < SETTLED) {
        return None;
    }
    let since_1970 = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some((found.len(), u64::try_from(since_1970.as_nanos()).ok()?))
}
