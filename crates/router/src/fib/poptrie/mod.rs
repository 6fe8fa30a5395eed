//! Poptrie: a multi-bit trie compressed by counting bits.
//!
//! A node covers 6 bits. One word marks which of its 64 slots lead to further nodes, another one
//! where a run of equal next hops begins; children and next hops are stored contiguously in two
//! arrays, and the number of ones up to a slot gives the index. The first 18 bits index a plain
//! table ("direct pointing"). A full Internet table thus takes a few megabytes and stays in the
//! caches.
//!
//! Asai, Ohara, "Poptrie: A Compressed Trie with Population Count for Fast and Scalable Software IP
//! Routing Table Lookup", ACM SIGCOMM 2015. Written from the paper. Differences: next hops have 32
//! bits, not 16; a change rebuilds the nodes below one entry of the first table, and freed runs are
//! kept by size instead of in a buddy allocator.

mod build;

use super::expansion::{below, dirty};
use super::pool::Pool;
use super::table::{DEEPER, Root};
use super::{Address, Batch, Fib, NextHop, Prefix, Rib};
use build::SLOTS;
use fwdlab_netio::popcount::with_popcount;

/// Bits that index the first table. With 18 and then steps of 6, the frequent /24 and /48 end
/// exactly at a node.
const ROOT_BITS: u8 = 18;
/// Bits that a node decides on.
const STRIDE: u8 = 6;
/// Addresses that descend the trie in parallel.
const LANES: usize = 16;

/// A node: 24 bytes for up to 64 slots.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Bit n is set if slot n leads to a node.
    children: u64,
    /// Bit n is set if slot n has no child, and its next hop differs from the next hop of the
    /// previous slot without child.
    runs: u64,
    /// Index of the first child.
    child: u32,
    /// Index of the first next hop.
    leaf: u32,
}

const _: () = assert!(size_of::<Node>() == 24);

/// A first table of 1 MB, and nodes.
#[derive(Clone, Debug)]
pub struct Poptrie<A> {
    rib: Rib<A>,
    /// Next hops, or indices of nodes ([`DEEPER`]).
    root: Root<{ 1 << ROOT_BITS }>,
    nodes: Pool<Node>,
    leaves: Pool<u32>,
}

impl<A: Address> Poptrie<A> {
    /// An empty table.
    pub fn new() -> Poptrie<A> {
        let (nodes, leaves) = (Pool::new(SLOTS), Pool::new(SLOTS));
        Poptrie { rib: Rib::new(), root: Root::new(), nodes, leaves }
    }

    /// Builds the table from these routes.
    pub fn of(rib: Rib<A>) -> Poptrie<A> {
        let mut fib = Poptrie { rib, ..Poptrie::new() };
        fib.compile(Prefix::all());
        fib.nodes.settle();
        fib.leaves.settle();
        fib
    }

    /// Returns the routes, for another algorithm; the table is unusable afterwards.
    pub(crate) fn take_rib(&mut self) -> Rib<A> {
        std::mem::take(&mut self.rib)
    }

    /// Descends from an entry of the first table to the next hop.
    #[inline(always)]
    fn descend(&self, entry: u32, address: A) -> u32 {
        if entry & DEEPER == 0 {
            return entry;
        }
        let mut node = &self.nodes[entry & !DEEPER];
        let mut at = ROOT_BITS;
        loop {
            let slot = address.slice(at, STRIDE);
            if node.children >> slot & 1 == 0 {
                return self.leaves[node.leaf_at(slot)];
            }
            node = &self.nodes[node.child_at(slot)];
            at += STRIDE;
        }
    }
}

impl Node {
    /// Index of the child that `slot` leads to.
    #[inline(always)]
    fn child_at(&self, slot: usize) -> u32 {
        self.child + up_to(self.children, slot) - 1
    }

    /// Index of the next hop of `slot`.
    #[inline(always)]
    fn leaf_at(&self, slot: usize) -> u32 {
        self.leaf + up_to(self.runs, slot) - 1
    }
}

/// Number of ones among the bits 0 to `slot`.
#[inline(always)]
fn up_to(bits: u64, slot: usize) -> u32 {
    (bits << (63 - slot)).count_ones()
}

#[inline(always)]
fn slot<A: Address>(address: A) -> usize {
    address.slice(0, ROOT_BITS)
}

impl<A: Address> Fib<A> for Poptrie<A> {
    #[inline]
    fn lookup(&self, address: A) -> Option<NextHop> {
        let entry = self.root[slot(address)];
        NextHop::unpack(with_popcount(
            #[inline(always)]
            || self.descend(entry, address),
        ))
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        with_popcount(
            #[inline(always)]
            || {
                let (addresses, addresses_rest) = addresses.as_chunks::<LANES>();
                let (next_hops, next_hops_rest) = next_hops.as_chunks_mut::<LANES>();
                for (addresses, next_hops) in addresses.iter().zip(next_hops) {
                    let entries = addresses.map(|address| self.root[slot(address)]);
                    for lane in 0..LANES {
                        let raw = self.descend(entries[lane], addresses[lane]);
                        next_hops[lane] = NextHop::unpack(raw);
                    }
                }
                for (&address, next_hop) in addresses_rest.iter().zip(next_hops_rest) {
                    let raw = self.descend(self.root[slot(address)], address);
                    *next_hop = NextHop::unpack(raw);
                }
            },
        );
    }

    fn apply(&mut self, batch: &Batch<A>) {
        self.rib.apply(batch);
        for prefix in dirty(batch, ROOT_BITS) {
            self.compile(prefix);
        }
    }

    fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        self.rib.get(prefix)
    }

    fn len(&self) -> usize {
        self.rib.len()
    }

    fn memory_bytes(&self) -> usize {
        let trie = self.nodes.memory_bytes() + self.leaves.memory_bytes();
        size_of_val(&*self.root) + trie + self.rib.memory_bytes()
    }
}

impl<A: Address> Default for Poptrie<A> {
    fn default() -> Poptrie<A> {
        Poptrie::new()
    }
}
