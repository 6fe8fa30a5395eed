//! Removes all states while workers forward or rest.

use super::{Filter, SharedFirewall};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{Duration, Instant};

impl SharedFirewall {
    /// Removes all states. Returns false if a worker did not follow within `patience` because it
    /// neither forwards nor rests. When this returns true, workers' own tables and caches are empty
    /// as well.
    pub fn forget(&self, patience: Duration) -> bool {
        let number = self.forgotten.fetch_add(1, AcqRel) + 1;
        self.states.clear_shared();
        self.have_followed(number, patience)
    }

    /// True if all workers have discarded their own states and caches this number of times.
    pub(super) fn have_followed(&self, number: u64, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if workers.iter().all(|worker| worker.forgotten.load(Acquire) >= number) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::yield_now();
        }
    }
}

impl Filter {
    /// Discards the worker's own tables and caches of removed states.
    #[cold]
    pub(super) fn follow(&mut self) {
        self.forgotten = self.shared.forgotten.load(Acquire);
        if self.flows.is_some() {
            self.flows = self.shared.states.flows();
        }
        if let Some(own) = &mut self.own
            && let Some(empty) = self.shared.states.own()
        {
            self.shared.states.give_up(&std::mem::replace(own, empty));
        }
        self.counts.forgotten.store(self.forgotten, Release);
    }
}
