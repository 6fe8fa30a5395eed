//! A forwarding table with many readers and one writer, updated while packets are forwarded.
//!
//! There are two tables. Readers use one; a batch of changes is applied to the other,
//! then the two are swapped atomically. So a reader sees all changes of a batch or none
//! and takes no lock, and the writer never waits: if a reader still holds the table that
//! is to be changed next, the writer copies it instead. The cost is twice the memory, and
//! applying each change twice.
//!
//! [Left-right](https://hal.science/hal-01207881) is the same scheme with writers that
//! wait.

use super::{Address, Batch, Fib};
use arc_swap::{ArcSwap, Guard};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A table with lock-free readers.
#[derive(Debug)]
pub struct Shared<A: Address, F> {
    current: ArcSwap<F>,
    writer: Mutex<Writer<A, F>>,
}

/// The spare table, which no new reader uses, and the changes that it still lacks.
#[derive(Debug)]
struct Writer<A, F> {
    spare: Arc<F>,
    lacking: Batch<A>,
}

/// How an update was applied.
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
