//! What one generation of the tables holds: which stores, as they were when they were read, and
//! in which files their rows are.

use crate::tables::TABLES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Name of its file.
pub(crate) const NAME: &str = "manifest.json";

/// What changed less long ago than this may change once more without a later time: clocks of
/// file systems are coarse.
const SETTLED: Duration = Duration::from_secs(2);

/// The whole.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Manifest {
    /// Who wrote it: version of the tables, of the program, and the columns. Rows of another
    /// author are not mixed with ours.
    pub author: String,
    /// How long the periods are.
    pub period: Period,
    /// Stores, in the order of their names.
    pub stores: Vec<Known>,
    /// Where their rows are.
    pub packs: Vec<Packed>,
}

/// A store.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Known {
    /// Its file.
    pub path: PathBuf,
    /// The directory that was exported.
    pub root: PathBuf,
    /// Its name in the tables.
    pub store: String,
    /// The file when it was read; none where it may have changed since without a trace.
    pub seen: Option<Seen>,
    /// Day of its last run; none when unknown.
    pub newest: Option<String>,
    /// Its runs.
    pub runs: usize,
    /// False: it was too old, and has no rows.
    pub has_rows: bool,
}

/// Rows of some stores: one file a table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Packed {
    /// Bed.
    pub bed: String,
    /// Period.
    pub period: String,
    /// Name of the files.
    pub file: String,
    /// Rows of all tables.
    pub rows: usize,
    /// Names of the stores.
    pub stores: BTreeSet<String>,
}

/// How long a period is: as short as can be without too many files.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Period {
    #[default]
    Month,
    Year,
    All,
}

impl Period {
    /// The next longer one.
    pub(crate) fn longer(self) -> Option<Period> {
        match self {
            Period::Month => Some(Period::Year),
            Period::Year => Some(Period::All),
            Period::All => None,
        }
    }

    /// That of a day, or of a shorter period.
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
    /// One without stores, written by this program.
    pub(crate) fn new() -> Manifest {
        Manifest { author: author(), ..Manifest::default() }
    }

    /// That of a generation; none where there is none, or it can't be read.
    pub(crate) fn read(generation: &Path) -> Option<Manifest> {
        let text = fs::read(generation.join(NAME)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// True where its rows are as this program would write them.
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

/// A store's file and SQLite's log beside it: bytes and time of the last change (ns).
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Seen([(u64, u64); 2]);

impl Seen {
    /// As it is now; none where there is no file, or it changed only just.
    pub(crate) fn of(store: &Path) -> Option<Seen> {
        let mut log = store.as_os_str().to_owned();
        log.push("-wal");
        let file = facts(store, true)?;
        Some(Seen([file, facts(Path::new(&log), false)?]))
    }
}

fn facts(path: &Path, must_be: bool) -> Option<(u64, u64)> {
    let Ok(found) = fs::metadata(path) else { return (!must_be).then_some((0, 0)) };
    if found.len() == 0 && !must_be {
        return Some((0, 0)); // an empty log says as much as none
    }
    let changed = found.modified().ok()?;
    if SystemTime::now().duration_since(changed).is_ok_and(|age| age < SETTLED) {
        return None;
    }
    let since_1970 = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some((found.len(), u64::try_from(since_1970.as_nanos()).ok()?))
}
