//! How a table is kept from readers while it changes: the locks of older kernels, to be
//! compared with none.
//!
//! With locks there is one table, changed in place, and each packet takes the lock for
//! its lookup and gives it back: nothing is saved by batches, as nothing was. Each
//! table has a lock of its own, for all workers. One for both families, as a kernel's
//! giant lock, would tie together tables that share nothing, and make no difference to
//! traffic of one family, which is what is measured.

use super::{Address, Batch, Fib, NextHop, Shared};
use fwdlab_packet::forwarding::Locking;
use std::sync::{Mutex, PoisonError, RwLock};

/// A table that workers read while another thread changes it, in one of these ways.
#[derive(Debug)]
pub struct Locked<A: Address, F>(Kept<A, F>);

#[derive(Debug)]
enum Kept<A: Address, F> {
    Global(Mutex<F>),
    Rwlock(RwLock<F>),
    Lockless(Shared<A, F>),
}

impl<A: Address, F: Fib<A> + Clone> Locked<A, F> {
    /// Keeps `fib` in this way.
    pub fn new(fib: F, locking: Locking) -> Locked<A, F> {
        Locked(match locking {
            Locking::Global => Kept::Global(Mutex::new(fib)),
            Locking::Rwlock => Kept::Rwlock(RwLock::new(fib)),
            Locking::Lockless => Kept::Lockless(Shared::new(fib)),
        })
    }

    /// The way.
    pub fn locking(&self) -> Locking {
        match &self.0 {
            Kept::Global(_) => Locking::Global,
            Kept::Rwlock(_) => Locking::Rwlock,
            Kept::Lockless(_) => Locking::Lockless,
        }
    }

    /// Makes all changes of `batch`. A packet sees all of them or none; those of a
    /// batch of packets may differ in that, unless the table is [`Locking::Lockless`].
    pub fn update(&self, batch: &Batch<A>) {
        // Who panicked while writing may have left the table half changed; reading it
        // on is what a kernel would do, too.
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
    /// When the two slices differ in length.
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

    /// Memory of the table, or of both, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Kept::Global(fib) => fib.lock().unwrap_or_else(PoisonError::into_inner).memory_bytes(),
            Kept::Rwlock(fib) => fib.read().unwrap_or_else(PoisonError::into_inner).memory_bytes(),
            Kept::Lockless(fib) => fib.memory_bytes(),
        }
    }
}
