//! The stores that a path stands for: one, or all below a directory.

use crate::experiment::STORE;
use std::fs;
use std::path::{Path, PathBuf};

/// The store that the user means: the file, or the one in the directory.
pub(crate) fn store_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(STORE) } else { path.to_path_buf() }
}

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
}
