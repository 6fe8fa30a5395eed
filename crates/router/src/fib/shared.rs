//! A forwarding table with many readers and one writer, updated while packets are forwarded.
//!
//! There are two tables. Readers use one; a batch of changes is applied to the other, then the two
//! are swapped atomically. A reader therefore sees all changes of a batch or none and takes no
//! lock, and the writer never waits: if a reader still holds the table to change next, the writer
//! copies it instead. The cost is twice the memory, and each change is applied twice.
//!
//! [Left-right](https://hal.science/hal-01207881) is the same scheme with waiting writers.

use super::{Address, Batch, Fib};
use arc_swap::{ArcSwap, Guard};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A table with lock-free readers.
#[derive(Debug)]
pub struct Shared<A: Address, F> {
    current: ArcSwap<F>,
    writer: Mutex<Writer<A, F>>,
}

/// The spare table, which no new reader uses, and the changes that it does not contain yet.
#[derive(Debug)]
struct Writer<A, F> {
    spare: Arc<F>,
    lacking: Batch<A>,
}

/// Method by which an update was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updated {
    /// The spare table had no readers left and was changed in place.
    InPlace,
    /// The spare table still had readers and was copied.
    Copied,
}

impl<A: Address, F: Fib<A> + Clone> Shared<A, F> {
    /// Shares `fib`, and copies it immediately for the second table.
    pub fn new(fib: F) -> Shared<A, F> {
        let spare = Arc::new(fib.clone());
        let writer = Writer { spare, lacking: Batch::new() };
        Shared { current: ArcSwap::from_pointee(fib), writer: Mutex::new(writer) }
    }

    /// The current table, unchanged for as long as the guard is kept.
    ///
    /// Take it once for a batch of packets. Keeping it longer means working on old routes, and
    /// makes the next update but one copy the table.
    #[inline]
    pub fn read(&self) -> Guard<Arc<F>> {
        self.current.load()
    }

    /// Makes all changes of `batch` visible atomically.
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
                // The other table contains the changes that this one lacks.
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
        // After a panic of a writer the spare table may be partly changed. No reader sees it, but
        // the next writer must not use it.
        self.writer.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            self.writer.clear_poison();
            let mut writer = poisoned.into_inner();
            *writer = Writer { spare: self.current.load_full(), lacking: Batch::new() };
            writer
        })
    }
}
