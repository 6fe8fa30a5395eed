//! The stores that a path stands for: one, or all below a directory.

use super::store_at;
use crate::experiment::STORE;
use crate::terminal::{HEADING, cut, styled};
use fwdlab_results::store::{Overview, Store};
use std::fs;
use std::path::{Path, PathBuf};

/// The store that the user means, or those below a directory that holds none
/// itself, sorted. A directory without any stands for the store that it lacks, so
/// that opening it says what is wrong.
pub(crate) fn stores_at(path: &Path) -> Vec<PathBuf> {
    let own = store_at(path);
    if !path.is_dir() || own.exists() {
        return vec![own];
    }
    let mut stores = Vec::new();
    let mut todo = vec![path.to_path_buf()];
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            // Links are not followed: a loop would have no end.
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_dir() && !name.as_encoded_bytes().starts_with(b".") {
                todo.push(entry.path());
            } else if kind.is_file() && name == STORE {
                stores.push(entry.path());
            }
        }
    }
    stores.sort();
    if stores.is_empty() { vec![own] } else { stores }
}

/// A store of a list.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// The store.
    pub(super) path: PathBuf,
    /// Its directory below the one that was named.
    place: String,
    overview: Overview,
}

/// The stores whose place or title holds every word of `filter`, and for each that can't
/// be read why.
pub(super) fn list(
    paths: &[PathBuf],
    root: &Path,
    filter: Option<&str>,
) -> (Vec<Listed>, Vec<String>) {
    let words: Vec<String> =
        filter.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let (mut listed, mut unreadable) = (Vec::new(), Vec::new());
    for path in paths {
        let directory = path.parent().unwrap_or(path);
        let place = directory.strip_prefix(root).unwrap_or(directory).display().to_string();
        match Store::open_read_only(path).and_then(|store| store.overview()) {
            Err(error) => unreadable.push(error.to_string()),
            Ok(overview) => {
                let text = format!("{place} {}", overview.title).to_lowercase();
                if words.iter().all(|word| text.contains(word)) {
                    listed.push(Listed { path: path.clone(), place, overview });
                }
            }
        }
    }
    (listed, unreadable)
}

/// Columns of the table that every terminal has room for.
const NUMBERS: usize = 8 + 2 + 9 + 2 + 6 + 2 + 10 + 2;
/// The least that is shown of a place.
const PLACE_MIN: usize = 16;

/// A line per store, at most `width` columns wide: testbed, runs, those with a warning,
/// variants, where it is and, where there is room, its title.
pub(super) fn table(stores: &[Listed], of: usize, width: usize) -> String {
    let room = width.saturating_sub(NUMBERS).max(PLACE_MIN);
    let longest = stores.iter().map(|store| store.place.chars().count()).max().unwrap_or(0);
    let place_width = longest.max(PLACE_MIN).min(room);
    let title_width = room.saturating_sub(place_width + 2);
    let row = |[testbed, runs, doubts, variants, place, title]: [&str; 6]| {
        let start = format!("{testbed:8}  {runs:>9}  {doubts:>6}  {variants:>8}");
        let line = match title_width {
            PLACE_MIN.. => format!(
                "{start}  {:place_width$}  {}",
                cut_front(place, place_width),
                cut(title, title_width)
            ),
            _ => format!("{start}  {}", cut_front(place, room)),
        };
        line.trim_end().to_owned()
    };
    let heading = row(["testbed", "runs", "doubts", "variants", "store", "title"]);
    let mut lines = vec![styled(&heading, HEADING)];
    for Listed { place, overview, .. } in stores {
        let runs = match overview.runs_recorded {
            all if all == overview.runs_planned => all.to_string(),
            some => format!("{some}/{}", overview.runs_planned),
        };
        let doubts = match overview.runs_in_doubt {
            0 => "-".to_owned(),
            some => some.to_string(),
        };
        let variants = overview.variants.to_string();
        let (testbed, title) = (overview.testbed.as_str(), overview.title.as_str());
        lines.push(row([testbed, &runs, &doubts, &variants, place, title]));
    }
    lines.push(match of == stores.len() {
        true => format!("{of} stores"),
        false => format!("{} of {of} stores", stores.len()),
    });
    lines.join("\n")
}

/// The end of a text that is longer than `width`: places differ at their ends.
fn cut_front(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(count + 1 - width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_the_stores_below_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        assert_eq!(stores_at(root), [root.join(STORE)]);
        for folder in ["b", "a/c", ".hidden"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join(STORE), "").unwrap();
        }
        assert_eq!(stores_at(root), [root.join("a/c").join(STORE), root.join("b").join(STORE)]);
        assert_eq!(stores_at(&root.join("b")), [root.join("b").join(STORE)]);
        fs::write(root.join(STORE), "").unwrap();
        assert_eq!(stores_at(root), [root.join(STORE)]);
    }

    fn listed(place: &str, recorded: u32) -> Listed {
        let overview = Overview {
            title: "Impact of a firewall on forwarding performance".into(),
            variants: 3,
            runs_planned: 30,
            runs_recorded: recorded,
            runs_in_doubt: 30 - recorded,
            testbed: "archive".into(),
            started_at: String::new(),
        };
        Listed { path: Path::new(place).join(STORE), place: place.into(), overview }
    }

    #[test]
    fn a_table_fits_its_width() {
        let stores = [listed("Xeon_E5/Chelsio_T5/firewalls/fbsd13", 30), listed("b", 7)];
        for width in [40, 60, 80, 100, 160] {
            let table = anstream::adapter::strip_str(&table(&stores, 5, width)).to_string();
            let widest = table.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.max(NUMBERS + PLACE_MIN), "{width}: {widest}\n{table}");
            assert!(table.contains("7/30") && table.ends_with("2 of 5 stores"), "{table}");
            assert!(table.contains("fbsd13"), "{table}");
        }
        assert_eq!(cut_front("abcdef", 4), "…def");
    }
}
