//! Batch lookups of the path.

use crate::fib::{Address, Fib, Locked, NextHop, Shared, V4, V6};
use fwdlab_netio::frame::BATCH;
use std::sync::Arc;

/// A forwarding table for lookups: a plain [`Fib`], or one that another thread updates
/// ([`Shared`] without locks, or [`Locked`]).
pub trait Lookup<A>: Send + Sync {
    /// As [`Fib::lookup_batch`].
    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]);

    /// As [`Fib::prefetch`].
    fn prefetch(&self, addresses: &[A]);
}

macro_rules! lookup {
    ($address:ty) => {
        impl<F: Fib<$address>> Lookup<$address> for F {
            fn lookup_batch(&self, addresses: &[$address], next_hops: &mut [Option<NextHop>]) {
                Fib::lookup_batch(self, addresses, next_hops);
            }

            fn prefetch(&self, addresses: &[$address]) {
                Fib::prefetch(self, addresses);
            }
        }

        impl<F: Fib<$address> + Clone> Lookup<$address> for Shared<$address, F> {
            fn lookup_batch(&self, addresses: &[$address], next_hops: &mut [Option<NextHop>]) {
                self.read().lookup_batch(addresses, next_hops);
            }

            fn prefetch(&self, addresses: &[$address]) {
                self.read().prefetch(addresses);
            }
        }

        impl<F: Fib<$address> + Clone> Lookup<$address> for Locked<$address, F> {
            fn lookup_batch(&self, addresses: &[$address], next_hops: &mut [Option<NextHop>]) {
                Locked::lookup_batch(self, addresses, next_hops);
            }

            fn prefetch(&self, addresses: &[$address]) {
                Locked::prefetch(self, addresses);
            }
        }
    };
}

// Not a blanket impl for every `Address`: another crate's address type could make the two overlap.
lookup!(V4);
lookup!(V6);

/// Packets whose lookups are prepared together while the following ones are checked: enough to
/// amortise dynamic dispatch, and about as many cache lines as a CPU fetches in parallel.
pub(super) const AHEAD: usize = 16;

/// The packets of one family in a batch.
pub(super) struct Lane<A> {
    pub(super) fib: Arc<dyn Lookup<A>>,
    pub(super) count: usize,
    addresses: [A; BATCH],
    /// Place of each packet in the batch.
    places: [u8; BATCH],
    next_hops: [Option<NextHop>; BATCH],
}

impl<A: Address> Lane<A> {
    pub(super) fn new(fib: Arc<dyn Lookup<A>>) -> Lane<A> {
        let (addresses, places) = ([A::default(); BATCH], [0; BATCH]);
        Lane { fib, count: 0, addresses, places, next_hops: [None; BATCH] }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, place: usize, address: A) {
        self.addresses[self.count] = address;
        self.places[self.count] = place as u8;
        self.count += 1;
        if self.count.is_multiple_of(AHEAD) {
            self.fib.prefetch(&self.addresses[self.count - AHEAD..self.count]);
        }
    }

    /// Keeps the packets at these places.
    #[cold]
    pub(super) fn retain(&mut self, places: u64) {
        let mut kept = 0;
        for at in 0..self.count {
            if places >> self.places[at] & 1 != 0 {
                self.places[kept] = self.places[at];
                self.addresses[kept] = self.addresses[at];
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Place and next hop of each packet.
    #[inline(always)]
    pub(super) fn lookup(&mut self) -> impl Iterator<Item = (usize, Option<NextHop>)> {
        let count = self.count;
        let next_hops = &mut self.next_hops[..count];
        if count > 0 {
            self.fib.lookup_batch(&self.addresses[..count], next_hops);
        }
        let places = self.places[..count].iter().map(|&place| usize::from(place));
        places.zip(next_hops.iter().copied())
    }
}
