//! Making nodes, and keeping the places of those that are gone.

use super::{DEEPER, Node, Poptrie, ROOT_BITS, STRIDE, below, slot};
use crate::fib::expansion;
use crate::fib::rib::Route;
use crate::fib::table::Array;
use crate::fib::{Address, Prefix};
use std::ops::Index;

/// Slots of a node.
const SLOTS: usize = 1 << STRIDE;

impl<A: Address> Poptrie<A> {
    /// Compiles again what lies within `prefix`, of at most 18 bits.
    pub(super) fn compile(&mut self, prefix: Prefix<A>) {
        let slots = slot(prefix.address())..=slot(prefix.last());
        let Poptrie { rib, root, nodes, leaves } = self;
        let slots = &mut root[slots];
        let mut below_here = Below { nodes, leaves };
        for entry in slots.iter().filter(|&&entry| entry & DEEPER != 0) {
            below_here.release(entry & !DEEPER);
            below_here.nodes.release(entry & !DEEPER, 1);
        }
        let (inherited, routes) = below(rib, prefix);
        slots.fill(inherited);
        let node = expansion::Node { address: prefix.address(), at: 0, stride: ROOT_BITS };
        node.expand(&routes, slots, |slot, address, routes| {
            let node = below_here.build(*slot, address, ROOT_BITS, routes);
            let place = below_here.nodes.allocate(1);
            below_here.nodes.write(place, &[node]);
            *slot = place | DEEPER;
        });
    }
}

/// What lies below the first table.
struct Below<'a> {
    nodes: &'a mut Pool<Node>,
    leaves: &'a mut Pool<u32>,
}

impl Below<'_> {
    /// Makes the node of the bits from `at` on, and all below it. Where the node
    /// itself comes to lie is left to its parent.
    fn build<A: Address>(
        &mut self,
        inherited: u32,
        address: A,
        at: u8,
        routes: &[Route<A>],
    ) -> Node {
        let expanded = expansion::Node { address, at, stride: STRIDE };
        let mut slots = [inherited; SLOTS];
        let mut children: Vec<Node> = Vec::new();
        expanded.expand(routes, &mut slots, |slot, address, routes| {
            children.push(self.build(*slot, address, at + STRIDE, routes));
            *slot = DEEPER;
        });
        let mut node = Node::default();
        let mut runs = [0; SLOTS];
        let mut count = 0;
        for (slot, &raw) in slots.iter().enumerate() {
            if raw == DEEPER {
                node.children |= 1 << slot;
            } else if count == 0 || runs[count - 1] != raw {
                node.runs |= 1 << slot;
                runs[count] = raw;
                count += 1;
            }
        }
        node.child = self.nodes.allocate(children.len());
        self.nodes.write(node.child, &children);
        node.leaf = self.leaves.allocate(count);
        self.leaves.write(node.leaf, &runs[..count]);
        node
    }

    /// Gives everything below the node at `place` back, and not the node itself.
    fn release(&mut self, place: u32) {
        let node = self.nodes[place];
        let count = node.children.count_ones();
        for child in node.child..node.child + count {
            self.release(child);
        }
        self.nodes.release(node.child, count as usize);
        self.leaves.release(node.leaf, node.runs.count_ones() as usize);
    }
}

/// An array of which runs of up to 64 places are taken and given back.
#[derive(Clone, Debug)]
pub(super) struct Pool<T> {
    places: Array<T>,
    /// Places of free runs, by their length.
    free: Vec<Vec<u32>>,
}

impl<T: Copy + Default> Pool<T> {
    pub(super) fn new() -> Pool<T> {
        Pool { places: Array::new(), free: vec![Vec::new(); SLOTS + 1] }
    }

    /// The place of a run; it holds what it held before.
    fn allocate(&mut self, length: usize) -> u32 {
        if length == 0 {
            return 0;
        }
        if let Some(place) = self.free[length].pop() {
            return place;
        }
        // A longer run is divided before the array grows.
        let longer = (length + 1..=SLOTS).find_map(|long| Some((long, self.free[long].pop()?)));
        if let Some((long, place)) = longer {
            self.free[long - length].push(place + length as u32);
            return place;
        }
        let place = self.places.len();
        self.places.extend(length, T::default());
        place as u32
    }

    fn write(&mut self, place: u32, values: &[T]) {
        let place = place as usize;
        self.places[place..place + values.len()].copy_from_slice(values);
    }

    fn release(&mut self, place: u32, length: usize) {
        if length > 0 {
            self.free[length].push(place);
        }
    }

    /// As [`Array::settle`].
    pub(super) fn settle(&self) {
        self.places.settle();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        self.places.memory_bytes() + free * size_of::<u32>()
    }
}

impl<T> Index<u32> for Pool<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, place: u32) -> &T {
        &self.places[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::{Batch, Fib, NextHop, V4};

    #[test]
    fn what_is_given_back_is_used_again() {
        let mut pool: Pool<u32> = Pool::new();
        let run = pool.allocate(10);
        pool.release(run, 10);
        assert_eq!(pool.allocate(4), run, "divided");
        assert_eq!(pool.allocate(6), run + 4, "the rest of it");
        assert_eq!(pool.allocate(1), run + 10, "nothing free: the array grows");
    }

    #[test]
    fn a_table_that_changes_back_and_forth_does_not_grow() {
        let mut fib = Poptrie::<V4>::new();
        let routes: Vec<(Prefix<V4>, NextHop)> = (0..4096_u32)
            .filter_map(|n| Some((Prefix::containing(V4(n << 12), 30), NextHop::new(n % 7)?)))
            .collect();
        let gone: Batch<V4> =
            routes.iter().map(|&(prefix, _)| crate::fib::Change::Remove(prefix)).collect();
        fib.apply(&routes.iter().copied().collect());
        fib.apply(&gone);
        let places = (fib.nodes.places.len(), fib.leaves.places.len());
        for _ in 0..3 {
            fib.apply(&routes.iter().copied().collect());
            fib.apply(&gone);
        }
        assert_eq!(places, (fib.nodes.places.len(), fib.leaves.places.len()));
    }
}
