//! DIR-24-8: at most two memory reads, usually one. IPv4 only.
//!
//! The first table has an entry for each value of the first 24 bits; for longer prefixes the entry
//! points to a table for the other 8 bits. Entries have 32 bits.
//!
//! Gupta, Lin, McKeown, "Routing Lookups in Hardware at Memory Access Speeds", IEEE INFOCOM 1998.

use super::expansion::{Node, below, dirty};
use super::rib::Route;
use super::table::{DEEPER, Groups, Root};
use super::{Batch, Fib, NextHop, Prefix, Rib, V4};
use fwdlab_netio::prefetch::prefetch;

/// Bits that index the first table.
const ROOT_BITS: u8 = 24;

/// A table of 64 MB, and 1 kB for each /24 that contains longer prefixes.
#[derive(Clone, Debug)]
pub struct Dir24_8 {
    rib: Rib<V4>,
    root: Root<{ 1 << ROOT_BITS }>,
    groups: Groups,
}

impl Dir24_8 {
    /// An empty table.
    pub fn new() -> Dir24_8 {
        Dir24_8 { rib: Rib::new(), root: Root::new(), groups: Groups::new() }
    }

    /// Builds the table from these routes.
    pub fn of(rib: Rib<V4>) -> Dir24_8 {
        let mut fib = Dir24_8 { rib, ..Dir24_8::new() };
        fib.compile(Prefix::all());
        fib.groups.settle();
        fib
    }

    /// Recompiles everything within `prefix`, of at most 24 bits.
    fn compile(&mut self, prefix: Prefix<V4>) {
        let slots = slot(prefix.address())..=slot(prefix.last());
        let Dir24_8 { rib, root, groups } = self;
        let slots = &mut root[slots];
        for entry in slots.iter().filter(|&&entry| entry & DEEPER != 0) {
            groups.release(*entry);
        }
        let (inherited, routes) = below(rib, prefix);
        slots.fill(inherited);
        let node = Node { address: prefix.address(), at: 0, stride: ROOT_BITS };
        node.expand(&routes, slots, |slot, address, routes: &[Route<V4>]| {
            *slot = groups.allocate(*slot);
            let node = Node { address, at: ROOT_BITS, stride: 8 };
            // These are the last bits of an address: no route is longer.
            node.expand(routes, groups.table_mut(*slot), |_, _, _| {});
        });
    }

    #[inline(always)]
    fn resolve(&self, entry: u32, address: V4) -> Option<NextHop> {
        if entry & DEEPER == 0 {
            NextHop::unpack(entry)
        } else {
            NextHop::unpack(self.groups.table(entry)[(address.0 & 0xff) as usize])
        }
    }
}

#[inline(always)]
fn slot(address: V4) -> usize {
    (address.0 >> (32 - ROOT_BITS)) as usize
}

impl Fib<V4> for Dir24_8 {
    #[inline]
    fn lookup(&self, address: V4) -> Option<NextHop> {
        self.resolve(self.root[slot(address)], address)
    }

    fn lookup_batch(&self, addresses: &[V4], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        // The reads are independent: the CPU itself overlaps many of them.
        for (address, next_hop) in addresses.iter().zip(next_hops) {
            *next_hop = self.resolve(self.root[slot(*address)], *address);
        }
    }

    fn prefetch(&self, addresses: &[V4]) {
        for &address in addresses {
            prefetch(&raw const self.root[slot(address)] as usize);
        }
    }

    fn apply(&mut self, batch: &Batch<V4>) {
        self.rib.apply(batch);
        for prefix in dirty(batch, ROOT_BITS) {
            self.compile(prefix);
        }
    }

    fn get(&self, prefix: Prefix<V4>) -> Option<NextHop> {
        self.rib.get(prefix)
    }

    fn len(&self) -> usize {
        self.rib.len()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.root) + self.groups.memory_bytes() + self.rib.memory_bytes()
    }
}

impl Default for Dir24_8 {
    fn default() -> Dir24_8 {
        Dir24_8::new()
    }
}
