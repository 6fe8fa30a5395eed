//! The stores below the served directory, by their relative paths. Only stores found by walking are
//! opened: no address leads out of the directory.

use crate::stores::{LIVE, stores_at};
use std::path::{Path, PathBuf};

/// A store.
#[derive(Clone, Debug)]
pub(super) struct ServedStore {
    /// Its directory relative to the served one; `.` for that one itself.
    pub(super) place: String,
    /// Its file.
    pub(super) path: PathBuf,
}

impl ServedStore {
    /// The event file next to it.
    pub(super) fn live(&self) -> PathBuf {
        self.path.with_file_name(LIVE)
    }
}

/// All stores below `root`, sorted by place.
pub(super) fn all(root: &Path) -> Vec<ServedStore> {
    let stores = stores_at(root).into_iter().filter(|path| path.is_file());
    stores.map(|path| ServedStore { place: place(root, &path), path }).collect()
}

/// The store at a place.
pub(super) fn at(root: &Path, place: &str) -> Option<ServedStore> {
    all(root).into_iter().find(|found| found.place == place)
}

fn place(root: &Path, store: &Path) -> String {
    let directory = store.parent().unwrap_or(store);
    let below = directory.strip_prefix(root).unwrap_or(Path::new("")).display().to_string();
    if below.is_empty() { ".".to_owned() } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        for directory in [root.path().join("a/b"), outside.path().to_path_buf()] {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("run.sqlite"), "").unwrap();
        }
        std::os::unix::fs::symlink(outside.path(), root.path().join("out")).unwrap();
        let places: Vec<String> = all(root.path()).into_iter().map(|found| found.place).collect();
        assert_eq!(places, ["a/b"]);
        assert!(at(root.path(), "a/b").is_some());
        for wrong in ["..", "../a/b", "a/b/..", "out", "", outside.path().to_str().unwrap()] {
            assert!(at(root.path(), wrong).is_none(), "{wrong}");
        }
        assert_eq!(all(&root.path().join("a/b"))[0].place, ".");
    }
}
