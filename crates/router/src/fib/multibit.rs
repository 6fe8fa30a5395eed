//! A multi-bit trie for IPv6: 24 bits at once, then 8 at a step.
//!
//! As DIR-24-8 continued downwards; a /48 ends after four reads, a /32 after two.
//! Fast and wasteful: each table of 256 entries takes 1 kB, however few routes it
//! was made for.

use super::expansion::{Node, below, dirty};
use super::rib::Route;
use super::table::{DEEPER, Groups, Root};
use super::{Address, Batch, Fib, NextHop, Prefix, Rib, V6};

/// Bits that the first table decides on.
const ROOT_BITS: u8 = 24;
/// Addresses that go down the trie beside each other.
const LANES: usize = 16;

/// A first table of 64 MB, and tables of 1 kB below it.
#[derive(Clone, Debug)]
pub struct Multibit {
    rib: Rib<V6>,
    root: Root<{ 1 << ROOT_BITS }>,
    groups: Groups,
}

impl Multibit {
    /// An empty table.
    pub fn new() -> Multibit {
        Multibit { rib: Rib::new(), root: Root::new(), groups: Groups::new() }
    }

    /// The table of these routes.
    pub fn of(rib: Rib<V6>) -> Multibit {
        let mut fib = Multibit { rib, ..Multibit::new() };
        fib.compile(Prefix::all());
        fib.groups.settle();
        fib
    }

    /// Compiles again what lies within `prefix`, of at most 24 bits.
    fn compile(&mut self, prefix: Prefix<V6>) {
        let slots = slot(prefix.address())..=slot(prefix.last());
        let Multibit { rib, root, groups } = self;
        let slots = &mut root[slots];
        for entry in slots.iter() {
            release(groups, *entry);
        }
        let (inherited, routes) = below(rib, prefix);
        slots.fill(inherited);
        let node = Node { address: prefix.address(), at: 0, stride: ROOT_BITS };
        node.expand(&routes, slots, |slot, address, routes| {
            *slot = deepen(groups, *slot, Node { address, at: ROOT_BITS, stride: 8 }, routes);
        });
    }
}

#[inline(always)]
fn slot(address: V6) -> usize {
    (address.0 >> (128 - ROOT_BITS)) as usize
}

/// Makes the table of `node` and all below it; returns the entry that leads there.
fn deepen(groups: &mut Groups, inherited: u32, node: Node<V6>, routes: &[Route<V6>]) -> u32 {
    let mut slots = [inherited; 256];
    let at = node.at + node.stride;
    node.expand(routes, &mut slots, |slot, address, routes| {
        *slot = deepen(groups, *slot, Node { address, at, stride: 8 }, routes);
    });
    let entry = groups.allocate(0);
    *groups.table_mut(entry) = slots;
    entry
}

/// Gives the tables below an entry back.
fn release(groups: &mut Groups, entry: u32) {
    if entry & DEEPER != 0 {
        for entry in *groups.table(entry) {
            release(groups, entry);
        }
        groups.release(entry);
    }
}

impl Fib<V6> for Multibit {
    #[inline]
    fn lookup(&self, address: V6) -> Option<NextHop> {
        let mut entry = self.root[slot(address)];
        let mut at = ROOT_BITS;
        while entry & DEEPER != 0 {
            entry = self.groups.table(entry)[address.slice(at, 8) & 0xff];
            at += 8;
        }
        NextHop::unpack(entry)
    }

    fn lookup_batch(&self, addresses: &[V6], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        let (addresses, addresses_rest) = addresses.as_chunks::<LANES>();
        let (next_hops, next_hops_rest) = next_hops.as_chunks_mut::<LANES>();
        for (addresses, next_hops) in addresses.iter().zip(next_hops) {
            let mut entries = addresses.map(|address| self.root[slot(address)]);
            let mut at = ROOT_BITS;
            while entries.iter().fold(0, |all, entry| all | entry) & DEEPER != 0 {
                for (entry, address) in entries.iter_mut().zip(addresses) {
                    if *entry & DEEPER != 0 {
                        *entry = self.groups.table(*entry)[address.slice(at, 8) & 0xff];
                    }
                }
                at += 8;
            }
            *next_hops = entries.map(NextHop::unpack);
        }
        for (address, next_hop) in addresses_rest.iter().zip(next_hops_rest) {
            *next_hop = self.lookup(*address);
        }
    }

    fn apply(&mut self, batch: &Batch<V6>) {
        self.rib.apply(batch);
        for prefix in dirty(batch, ROOT_BITS) {
            self.compile(prefix);
        }
    }

    fn get(&self, prefix: Prefix<V6>) -> Option<NextHop> {
        self.rib.get(prefix)
    }

    fn len(&self) -> usize {
        self.rib.len()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.root) + self.groups.memory_bytes() + self.rib.memory_bytes()
    }
}

impl Default for Multibit {
    fn default() -> Multibit {
        Multibit::new()
    }
}
