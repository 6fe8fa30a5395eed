//! A table that is read by many and changed by one, while packets are forwarded.
//!
//! Two tables exist. Readers use one; a batch of changes is applied to the other,
//! then the two change places in one atomic step. So a reader sees all changes of a
//! batch or none, takes no lock, and is never waited for: should one keep the table
//! that is to be changed next, the writer takes a copy instead. The price is twice
//! the memory, and applying each change twice.
//!
//! [Left-right](https://hal.science/hal-01207881) is the same arrangement with
//! waiting writers.

use super::{Address, Batch, Fib};
use arc_swap::{ArcSwap, Guard};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A table with lock-free readers.
#[derive(Debug)]
pub struct Shared<A: Address, F> {
    current: ArcSwap<F>,
    writer: Mutex<Writer<A, F>>,
}

/// The table that nobody new begins to read, and what it lacks against the other.
#[derive(Debug)]
struct Writer<A, F> {
    spare: Arc<F>,
    lacking: Batch<A>,
}

/// How an update found the table that it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updated {
    /// It had no readers left and was changed in place.
    InPlace,
    /// It still had readers: a copy was made.
    Copied,
}

impl<A: Address, F: Fib<A> + Clone> Shared<A, F> {
    /// Shares `fib`. A second one is made right away.
    pub fn new(fib: F) -> Shared<A, F> {
        let spare = Arc::new(fib.clone());
        let writer = Writer { spare, lacking: Batch::new() };
        Shared { current: ArcSwap::from_pointee(fib), writer: Mutex::new(writer) }
    }

    /// The table as it is now, and as it stays for as long as the guard is kept.
    ///
    /// Take it once for a batch of packets. Keeping it longer means working on old
    /// routes, and costs the next but one update a copy of the table.
    #[inline]
    pub fn read(&self) -> Guard<Arc<F>> {
        self.current.load()
    }

    /// Makes all changes of `batch` visible at once.
    pub fn update(&self, batch: &Batch<A>) -> Updated {
        let mut writer = self.lock();
        let Writer { spare, lacking } = &mut *writer;
        let updated = match Arc::get_mut(spare) {
            Some(fib) => {
                fib.apply(lacking);
                fib.apply(batch);
                Updated::InPlace
            }
            None => {
                // The other table has what this one lacks.
                let mut fib = F::clone(&self.current.load());
                fib.apply(batch);
                *spare = Arc::new(fib);
                Updated::Copied
            }
        };
        *lacking = batch.clone();
        *spare = self.current.swap(Arc::clone(spare));
        updated
    }

    /// Memory of both tables, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.read().memory_bytes() + self.lock().spare.memory_bytes()
    }

    fn lock(&self) -> MutexGuard<'_, Writer<A, F>> {
        // A writer that panicked has left the spare table aside, at worst half
        // changed, and that is seen by nobody: but nor can it be trusted.
        self.writer.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            self.writer.clear_poison();
            let mut writer = poisoned.into_inner();
            *writer = Writer { spare: self.current.load_full(), lacking: Batch::new() };
            writer
        })
    }
}
