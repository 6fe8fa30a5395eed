//! Builds nodes, and releases those no longer used.

use super::{DEEPER, Node, Poptrie, ROOT_BITS, STRIDE, below, slot};
use crate::fib::expansion;
use crate::fib::pool::Pool;
use crate::fib::rib::Route;
use crate::fib::{Address, Prefix};

/// Slots of a node.
pub(super) const SLOTS: usize = 1 << STRIDE;

impl<A: Address> Poptrie<A> {
    /// Recompiles everything within `prefix`, of at most 18 bits.
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

/// Nodes and next hops below the first table.
struct Below<'a> {
    nodes: &'a mut Pool<Node>,
    leaves: &'a mut Pool<u32>,
}

impl Below<'_> {
    /// Builds the node of the bits from `at` on, and everything below it. The parent decides where
    /// the node itself is stored.
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

    /// Releases everything below the node at `place`, but not the node itself.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::{Batch, Fib, NextHop, V4};

    #[test]
    fn repeated_changes_do_not_grow_the_table() {
        let mut fib = Poptrie::<V4>::new();
        let routes: Vec<(Prefix<V4>, NextHop)> = (0..4096_u32)
            .filter_map(|n| Some((Prefix::containing(V4(n << 12), 30), NextHop::new(n % 7)?)))
            .collect();
        let gone: Batch<V4> =
            routes.iter().map(|&(prefix, _)| crate::fib::Change::Remove(prefix)).collect();
        fib.apply(&routes.iter().copied().collect());
        fib.apply(&gone);
        let places = (fib.nodes.len(), fib.leaves.len());
        for _ in 0..3 {
            fib.apply(&routes.iter().copied().collect());
            fib.apply(&gone);
        }
        assert_eq!(places, (fib.nodes.len(), fib.leaves.len()));
    }
}
