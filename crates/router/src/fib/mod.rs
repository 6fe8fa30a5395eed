//! Forwarding tables (FIB): longest-prefix match from an address to its next hop.
//!
//! One algorithm per file, all behind [`Fib`]; README.md in this directory describes the idea,
//! source, cost and measured rates of each. Tests compare the results of each with those of the
//! simplest possible one.
//!
//! A table returns the number of a next hop; interface, address and link-layer header are kept
//! elsewhere. There are no metrics and no multiple routes to one prefix: the route inserted last
//! replaces earlier ones.

pub mod auto;
mod batch;
pub mod bsearch;
pub mod dir24_8;
mod expansion;
mod level_compressed;
mod line;
mod locking;
pub mod multibit;
mod pool;
pub mod poptrie;
mod prefix;
pub mod radix;
pub mod radix_lockless;
mod rib;
mod shared;
mod table;

pub use auto::Auto;
pub use batch::{Batch, Change};
pub use bsearch::BSearch;
pub use dir24_8::Dir24_8;
pub use fwdlab_packet::forwarding::Locking;
pub use locking::Locked;
pub use multibit::Multibit;
pub use poptrie::Poptrie;
pub use prefix::{Address, Prefix, PrefixError, V4, V6};
pub use radix::Radix;
pub use radix_lockless::RadixLockless;
pub use rib::Rib;
pub use shared::{Shared, Updated};

use std::num::NonZeroU32;

/// Number of a next hop, from 0 to [`NextHop::MAX`].
///
/// An `Option<NextHop>` also has 32 bits, of which the highest is never set: tables store it in
/// this form and use that bit themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHop(NonZeroU32);

const _: () = assert!(size_of::<Option<NextHop>>() == 4);

impl NextHop {
    /// The highest number.
    pub const MAX: u32 = (1 << 31) - 2;

    /// The next hop of this number, if it is at most [`NextHop::MAX`].
    #[inline]
    pub const fn new(number: u32) -> Option<NextHop> {
        if number > NextHop::MAX {
            return None;
        }
        match NonZeroU32::new(number + 1) {
            Some(raw) => Some(NextHop(raw)),
            None => None,
        }
    }

    /// The number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0.get() - 1
    }

    /// Representation in tables: 0 for `None`; the highest bit is never set.
    #[inline(always)]
    pub(crate) fn pack(next_hop: Option<NextHop>) -> u32 {
        next_hop.map_or(0, |next_hop| next_hop.0.get())
    }

    /// Inverse of [`NextHop::pack`].
    #[inline(always)]
    pub(crate) fn unpack(raw: u32) -> Option<NextHop> {
        NonZeroU32::new(raw).map(NextHop)
    }
}

/// A forwarding table of one family.
pub trait Fib<A: Address>: Send + Sync {
    /// The next hop of the longest prefix that contains `address`.
    fn lookup(&self, address: A) -> Option<NextHop>;

    /// Next hops of all `addresses`: `next_hops[i]` belongs to `addresses[i]`. Tables overlap the
    /// memory reads of several addresses, so this is faster than separate lookups.
    ///
    /// # Panics
    /// If the two slices differ in length.
    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        for (address, next_hop) in addresses.iter().zip(next_hops) {
            *next_hop = self.lookup(*address);
        }
    }

    /// Prefetches the memory that lookups of these addresses read first, if the table is too large
    /// for caches, so that a caller with other work to do first need not wait for it later.
    fn prefetch(&self, _addresses: &[A]) {}

    /// Applies all changes in order.
    fn apply(&mut self, batch: &Batch<A>);

    /// The next hop of exactly this prefix.
    fn get(&self, prefix: Prefix<A>) -> Option<NextHop>;

    /// Routes in the table.
    fn len(&self) -> usize;

    /// True if no address has a next hop.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory of the table and of the routes it is built from, in bytes. Estimated for the standard
    /// library's maps.
    fn memory_bytes(&self) -> usize;

    /// Adds a route, or changes its next hop; returns the previous one.
    fn insert(&mut self, prefix: Prefix<A>, next_hop: NextHop) -> Option<NextHop> {
        let before = self.get(prefix);
        self.apply(&Batch::from_iter([Change::Insert(prefix, next_hop)]));
        before
    }

    /// Removes a route; returns its next hop.
    fn remove(&mut self, prefix: Prefix<A>) -> Option<NextHop> {
        let before = self.get(prefix);
        if before.is_some() {
            self.apply(&Batch::from_iter([Change::Remove(prefix)]));
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_hop_numbers_stay_below_the_highest_bit() {
        assert_eq!(NextHop::new(0).map(NextHop::number), Some(0));
        let last = NextHop::new(NextHop::MAX);
        assert_eq!(last.map(NextHop::number), Some(NextHop::MAX));
        assert_eq!(NextHop::pack(last) >> 31, 0);
        assert_eq!(NextHop::new(NextHop::MAX + 1), None);
        assert_eq!(NextHop::new(u32::MAX), None);
        assert_eq!(NextHop::unpack(NextHop::pack(None)), None);
        assert_eq!(NextHop::unpack(NextHop::pack(last)), last);
    }
}
