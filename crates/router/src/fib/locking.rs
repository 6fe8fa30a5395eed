//! Locking of forwarding tables: mutex and read-write lock as in older kernels, to compare
//! with lock-free reading.
//!
//! With locks there is one table, changed in place, and each packet takes and releases the
//! lock for its lookup: as in those kernels, locks are not taken per batch. Each table has
//! one lock for all workers. A lock for both families, like a kernel's giant lock, would
//! make no difference to traffic of one family, which is what is measured.

use super::{Address, Batch, Fib, NextHop, Shared};
use fwdlab_packet::forwarding::Locking;
use std::sync::{Mutex, PoisonError, RwLock};

/// A table that workers read while another thread changes it, with one kind of locking.
#[derive(Debug)]
pub struct Locked<A: Address, F>(Kept<A, F>);

#[derive(Debug)]
enum Kept<A: Address, F> {
    Global(Mutex<F>),
    Rwlock(RwLock<F>),
    Lockless(Shared<A, F>),
}

impl<A: Address, F: Fib<A> + Clone> Locked<A, F> {
    /// A table with this kind of locking.
    pub fn new(fib: F, locking: Locking) -> Locked<A, F> {
        Locked(match locking {
            Locking::Global => Kept::Global(Mutex::new(fib)),
            Locking::Rwlock => Kept::Rwlock(RwLock::new(fib)),
            Locking::Lockless => Kept::Lockless(Shared::new(fib)),
        })
    }

    /// The kind of locking.
    pub fn locking(&self) -> Locking {
        match &self.0 {
            Kept::Global(_) => Locking::Global,
            Kept::Rwlock(_) => Locking::Rwlock,
            Kept::Lockless(_) => Locking::Lockless,
        }
    }

    /// Applies all changes of `batch` atomically for each packet. For a batch of packets they
    /// are atomic only if the table is [`Locking::Lockless`].
    pub fn update(&self, batch: &Batch<A>) {
        // After a panic of the writer the table may be partly changed; a kernel would also continue
        // to read it.
        match &self.0 {
            Kept::Global(fib) => fib.lock().unwrap_or_else(PoisonError::into_inner).apply(batch),
            Kept::Rwlock(fib) => fib.write().unwrap_or_else(PoisonError::into_inner).apply(batch),
            Kept::Lockless(fib) => {
                fib.update(batch);
            }
        }
    }

    /// As [`Fib::lookup_batch`], taking the lock, if there is one, for each address.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        let pairs = addresses.iter().zip(&mut *next_hops);
        match &self.0 {
            Kept::Global(fib) => {
                for (address, next_hop) in pairs {
                    let fib = fib.lock().unwrap_or_else(PoisonError::into_inner);
                    *next_hop = fib.lookup(*address);
                }
            }
            Kept::Rwlock(fib) => {
                for (address, next_hop) in pairs {
                    let fib = fib.read().unwrap_or_else(PoisonError::into_inner);
                    *next_hop = fib.lookup(*address);
                }
            }
            Kept::Lockless(fib) => fib.read().lookup_batch(addresses, next_hops),
        }
    }

    /// As [`Fib::prefetch`], unless that needs a lock.
    pub fn prefetch(&self, addresses: &[A]) {
        if let Kept::Lockless(fib) = &self.0 {
            fib.read().prefetch(addresses);
        }
    }

    /// Memory of the table, or of both tables, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Kept::Global(fib) => fib.lock().unwrap_or_else(PoisonError::into_inner).memory_bytes(),
            Kept::Rwlock(fib) => fib.read().unwrap_or_else(PoisonError::into_inner).memory_bytes(),
            Kept::Lockless(fib) => fib.memory_bytes(),
        }
    }
}
