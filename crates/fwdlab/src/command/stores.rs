//! Many stores at once.

use fwdlab_results::catalogue::{Catalogue, Entry};
use fwdlab_results::facts::Filter;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What these stores are in short, those that `filter` admits and that hold every word.
pub(super) fn catalogue(paths: &[PathBuf], root: &Path, filter: &Filter, words: &str) -> Catalogue {
    let read = in_parallel(paths, |path| Entry::of_store(path, root));
    Catalogue::of(read, filter, words)
}

/// What `work` makes of each item, in their order, on as many threads as there are CPUs.
pub(super) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
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
    fn threads_keep_the_order() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(in_parallel(&items, |item| item * 2), (0..200).step_by(2).collect::<Vec<_>>());
        assert!(in_parallel(&[] as &[usize], |item| *item).is_empty());
    }
}
