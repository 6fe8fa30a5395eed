//! The history for terminals, documents and programs.

mod files;
mod markdown;
mod text;

pub use files::files;
pub use markdown::markdown;
pub use text::text;

use super::results::History;
use crate::report::rounded;
use serde_json::Value;

/// Version of the shape of [`json`]; raised when something that was there is
/// named otherwise or means something else.
const VERSION: u32 = 1;

/// The history for programs: the fields of [`History`], and `version`.
///
/// # Errors
/// Never for a history that was made by this crate.
pub fn json(history: &History) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(history)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("version".to_owned(), VERSION.into());
    }
    Ok(rounded(value))
}

/// What has to be said beside every change.
const CAUTION: &str = "A change was found by looking for it: before anyone is alarmed, run both \
                       revisions again in one experiment. The unit is the point (one build).";

/// Totals in one sentence.
fn totals(history: &History) -> String {
    let counts = history.counts;
    let plural =
        |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let mut parts = vec![
        plural(history.stores, "store", "stores"),
        plural(counts.series, "series", "series"),
        match counts.changes {
            0 => "no changes found".to_owned(),
            n => format!(
                "{} ({} better, {} worse)",
                plural(n, "change", "changes"),
                counts.better,
                counts.worse
            ),
        },
    ];
    if counts.suppressed > 0 {
        let size = crate::report::format::percent(history.threshold, 1);
        parts.push(format!("{} below {size} not listed", counts.suppressed));
    }
    if counts.apart > 0 {
        parts.push(plural(counts.apart, "point lies apart", "points lie apart"));
    }
    if counts.cant_tell > 0 {
        parts.push(format!("{} series scatter too widely to tell", counts.cant_tell));
    }
    if counts.too_short > 0 {
        parts.push(format!("{} series too short to look for changes", counts.too_short));
    }
    parts.join("; ")
}
