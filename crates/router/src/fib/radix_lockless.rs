//! The radix tree as an immutable copy, read without locks.
//!
//! Any change builds a new copy from all routes. As nothing is ever inserted, the tree can be
//! compressed: one node replaces all levels that are full enough (the first decides on up to 20
//! bits, by the number of routes), and bits that all routes below share need no nodes
//! (`level_compressed`). Nilsson, Karlsson, "IP-Address Lookup Using LC-Tries", IEEE JSAC 17 (6),
//! 1999.

use super::level_compressed::{Cell, Cells, Way};
use super::{Address, Batch, Fib, NextHop, Prefix, Rib};
use fwdlab_netio::popcount::with_popcount;

/// Lookups in parallel.
const LANES: usize = 16;

/// The copy, and the routes from which the next one is built.
#[derive(Clone, Debug)]
pub struct RadixLockless<A> {
    rib: Rib<A>,
    root: Cell,
    cells: Cells,
}

impl<A: Address> RadixLockless<A> {
    /// An empty tree.
    pub fn new() -> RadixLockless<A> {
        RadixLockless::of(Rib::new())
    }

    /// Builds the tree from these routes.
    pub fn of(rib: Rib<A>) -> RadixLockless<A> {
        let mut cells = Cells::new();
        let root = cells.root(first_bits::<A>(rib.len()), &rib.all());
        cells.settle();
        RadixLockless { rib, root, cells }
    }
}

/// The number of bits that leaves few steps, without a first node that is much larger than all
/// others. IPv6 addresses in use are close together, so IPv6 uses more bits.
fn first_bits<A: Address>(routes: usize) -> u8 {
    let bits = routes.max(2).ilog2() as u8;
    (bits + if A::BITS == 128 { 4 } else { 1 }).min(20)
}

impl<A: Address> Fib<A> for RadixLockless<A> {
    #[inline]
    fn lookup(&self, address: A) -> Option<NextHop> {
        self.cells.lookup(self.cells.enter(self.root, address), address)
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        with_popcount(
            #[inline(always)]
            || {
                let (addresses, addresses_rest) = addresses.as_chunks::<LANES>();
                let (next_hops, next_hops_rest) = next_hops.as_chunks_mut::<LANES>();
                for (addresses, next_hops) in addresses.iter().zip(next_hops) {
                    // Explicit loops: adapters that pass arrays by value copy them.
                    let mut paths = [Way::default(); LANES];
                    for (path, &address) in paths.iter_mut().zip(addresses) {
                        *path = self.cells.enter(self.root, address);
                    }
                    self.cells.lookups(&mut paths, addresses, next_hops);
                }
                for (&address, next_hop) in addresses_rest.iter().zip(next_hops_rest) {
                    *next_hop = self.lookup(address);
                }
            },
        );
    }

    fn apply(&mut self, batch: &Batch<A>) {
        let mut rib = std::mem::take(&mut self.rib);
        rib.apply(batch);
        *self = RadixLockless::of(rib);
    }

    fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        self.rib.get(prefix)
    }

    fn len(&self) -> usize {
        self.rib.len()
    }

    fn memory_bytes(&self) -> usize {
        self.cells.memory_bytes() + self.rib.memory_bytes()
    }
}

impl<A: Address> Default for RadixLockless<A> {
    fn default() -> RadixLockless<A> {
        RadixLockless::new()
    }
}
