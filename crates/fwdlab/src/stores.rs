//! The stores of a path, one or all below a directory, and their catalogue.

use crate::experiment::STORE;
use fwdlab_results::catalogue::{Catalogue, Entry};
use fwdlab_results::facts::Filter;
use std::fs;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Name of the event file next to a store ([`crate::serve`] follows it).
pub(crate) const LIVE: &str = "live.jsonl";

/// Wall clock, RFC 3339, UTC.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The store at `path`: the file, or the one in the directory.
pub(crate) fn store_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(STORE) } else { path.to_path_buf() }
}

/// Title of a page over the stores below a directory; names the directory even if it is `.`.
pub(crate) fn title_of(directory: &Path) -> String {
    let absolute = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
    let name = absolute.file_name().unwrap_or(absolute.as_os_str());
    format!("Experiments in {}", name.display())
}

/// The store at `path`, or the stores below a directory that contains none itself, sorted. For a
/// directory without any, returns the missing store, so that opening it reports the error.
pub(crate) fn stores_at(path: &Path) -> Vec<PathBuf> {
    let direct = store_at(path);
    if !path.is_dir() || direct.exists() {
        return vec![direct];
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
    if stores.is_empty() { vec![direct] } else { stores }
}

/// Catalogue of the stores that `filter` admits and that contain every word.
pub(crate) fn catalogue(paths: &[PathBuf], root: &Path, filter: &Filter, words: &str) -> Catalogue {
    let read = in_parallel(paths, |path| Entry::of_store(path, root));
    Catalogue::of(read, filter, words)
}

/// Applies `work` to each item, on as many threads as there are CPUs. Results are in the order of
/// the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let mut made: Vec<(usize, R)> = std::thread::scope(|scope| {
        let worker = || {
            let mut made = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(at) else { return made };
                made.push((at, work(item)));
            }
        };
        let workers: Vec<_> = (0..threads.min(items.len())).map(|_| scope.spawn(worker)).collect();
        let all = workers.into_iter().map(|worker| worker.join());
        all.flat_map(|made| made.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_at_finds_the_stores_below_a_directory() {
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

    #[test]
    fn in_parallel_keeps_the_order() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(in_parallel(&items, |item| item * 2), (0..200).step_by(2).collect::<Vec<_>>());
        assert!(in_parallel(&[] as &[usize], |item| *item).is_empty());
    }
}
