//! A radix tree under a lock, as the BSD kernels had it for thirty years.
//!
//! A node decides on one bit; chains of nodes without a choice are omitted (Patricia). Each lookup
//! takes the lock for reading. Unlike the kernels' tree, this one compares prefixes on the way
//! down, so there is no way back up.
//!
//! Sklower, "A Tree-Based Packet Routing Table for Berkeley Unix", USENIX Winter 1991; Morrison,
//! "PATRICIA", JACM 15 (4), 1968.

use super::table::Array;
use super::{Address, Batch, Change, Fib, NextHop, Prefix};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The tree with its own lock: [`Radix::update`] needs no `&mut`, so a shared reference is enough.
#[derive(Debug)]
pub struct Radix<A> {
    tree: RwLock<Tree<A>>,
}

impl<A: Address> Radix<A> {
    /// An empty tree.
    pub fn new() -> Radix<A> {
        Radix { tree: RwLock::new(Tree::new()) }
    }

    /// Applies all changes in order, while no reader is in the tree.
    pub fn update(&self, batch: &Batch<A>) {
        // A panic while writing would be a bug in the code below; the tree stays a tree.
        self.tree.write().unwrap_or_else(PoisonError::into_inner).apply(batch);
    }

    #[inline]
    fn read(&self) -> RwLockReadGuard<'_, Tree<A>> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A: Address> Clone for Radix<A> {
    fn clone(&self) -> Radix<A> {
        Radix { tree: RwLock::new(self.read().clone()) }
    }
}

impl<A: Address> Fib<A> for Radix<A> {
    #[inline]
    fn lookup(&self, address: A) -> Option<NextHop> {
        NextHop::unpack(self.read().lookup(address))
    }

    fn apply(&mut self, batch: &Batch<A>) {
        self.tree.get_mut().unwrap_or_else(PoisonError::into_inner).apply(batch);
    }

    fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        self.read().get(prefix)
    }

    fn len(&self) -> usize {
        self.read().routes
    }

    fn memory_bytes(&self) -> usize {
        let tree = self.read();
        tree.nodes.memory_bytes() + tree.free.capacity() * size_of::<u32>()
    }
}

impl<A: Address> Default for Radix<A> {
    fn default() -> Radix<A> {
        Radix::new()
    }
}

/// The tree itself. Node 0 is its root, of length 0, and never a child: as a child, 0 means none.
#[derive(Clone, Debug)]
struct Tree<A> {
    nodes: Array<Node<A>>,
    free: Vec<u32>,
    routes: usize,
}

/// A prefix that has a route, or at which two parts of the tree diverge.
#[derive(Clone, Copy, Debug)]
struct Node<A> {
    address: A,
    /// Next hop, packed.
    raw: u32,
    /// Children by the bit after the prefix.
    children: [u32; 2],
    length: u8,
}

impl<A: Address> Node<A> {
    fn new(prefix: Prefix<A>, raw: u32) -> Node<A> {
        Node { address: prefix.address(), raw, children: [0; 2], length: prefix.length() }
    }

    fn prefix(&self) -> Prefix<A> {
        Prefix::containing(self.address, self.length)
    }

    /// True for a node that neither has a route nor joins two subtrees.
    fn is_superfluous(&self) -> bool {
        self.raw == 0 && self.children.contains(&0)
    }
}

/// The bit after the first `length`.
#[inline(always)]
fn bit<A: Address>(address: A, length: u8) -> usize {
    address.slice(length, 1) & 1
}

impl<A: Address> Tree<A> {
    fn new() -> Tree<A> {
        Tree { nodes: vec![Node::new(Prefix::all(), 0)].into(), free: Vec::new(), routes: 0 }
    }

    #[inline]
    fn lookup(&self, address: A) -> u32 {
        let mut best = 0;
        let mut at = 0;
        loop {
            let node = &self.nodes[at as usize];
            if !address.shares(node.address, node.length) {
                return best;
            }
            if node.raw != 0 {
                best = node.raw;
            }
            at = node.children[bit(address, node.length)];
            if at == 0 {
                return best;
            }
        }
    }

    fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        let mut at = 0;
        loop {
            let node = &self.nodes[at as usize];
            if node.length >= prefix.length() {
                let raw = if node.prefix() == prefix { node.raw } else { 0 };
                return NextHop::unpack(raw);
            }
            at = node.children[bit(prefix.address(), node.length)];
            if at == 0 {
                return None;
            }
        }
    }

    fn apply(&mut self, batch: &Batch<A>) {
        let before = self.nodes.len();
        for change in batch.changes() {
            match *change {
                Change::Insert(prefix, next_hop) => {
                    self.insert(prefix, NextHop::pack(Some(next_hop)));
                }
                Change::Remove(prefix) => self.remove(prefix),
            }
        }
        if self.nodes.len() > 2 * before {
            self.nodes.settle();
        }
    }

    fn insert(&mut self, prefix: Prefix<A>, raw: u32) {
        let mut parent = 0_u32;
        loop {
            let node = &mut self.nodes[parent as usize];
            if node.length == prefix.length() {
                // Each step stayed at prefixes that contain this one: it is the same prefix.
                self.routes += usize::from(node.raw == 0);
                node.raw = raw;
                return;
            }
            let side = bit(prefix.address(), node.length);
            let child = node.children[side];
            let below = self.nodes[child as usize].prefix();
            if child != 0 && below.covers(prefix) {
                parent = child;
                continue;
            }
            let new = self.allocate(Node::new(prefix, raw));
            self.routes += 1;
            let linked = if child == 0 {
                new
            } else if prefix.covers(below) {
                self.nodes[new as usize].children[bit(below.address(), prefix.length())] = child;
                new
            } else {
                let length = prefix.address().common(below.address());
                let mut fork = Node::new(Prefix::containing(prefix.address(), length), 0);
                fork.children[bit(prefix.address(), length)] = new;
                fork.children[bit(below.address(), length)] = child;
                self.allocate(fork)
            };
            self.nodes[parent as usize].children[side] = linked;
            return;
        }
    }

    fn remove(&mut self, prefix: Prefix<A>) {
        // Nodes on the way down: the last is the node itself, the others are its ancestors.
        let mut path = vec![0_u32];
        loop {
            let at = path[path.len() - 1];
            let node = &mut self.nodes[at as usize];
            if node.length >= prefix.length() {
                if node.prefix() != prefix || node.raw == 0 {
                    return;
                }
                node.raw = 0;
                self.routes -= 1;
                break;
            }
            match node.children[bit(prefix.address(), node.length)] {
                0 => return,
                child => path.push(child),
            }
        }
        // Remove the node unless it joins two subtrees; then its parent may become superfluous as
        // well.
        while let [.., parent, at] = path[..]
            && self.nodes[at as usize].is_superfluous()
        {
            let [left, right] = self.nodes[at as usize].children;
            let parent = &mut self.nodes[parent as usize];
            let side = usize::from(parent.children[1] == at);
            parent.children[side] = left.max(right);
            self.free.push(at);
            path.pop();
        }
    }

    fn allocate(&mut self, node: Node<A>) -> u32 {
        if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            return at;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::V4;

    #[test]
    fn removing_all_routes_frees_all_nodes() {
        let mut tree = Tree::<V4>::new();
        let prefixes: Vec<Prefix<V4>> = (0..1000_u32)
            .map(|n| Prefix::containing(V4(n.wrapping_mul(0x9e37_79b9)), (n % 33) as u8))
            .collect();
        for &prefix in &prefixes {
            tree.insert(prefix, 1);
        }
        for &prefix in &prefixes {
            tree.remove(prefix);
        }
        assert_eq!(tree.routes, 0);
        assert_eq!(tree.nodes[0].children, [0; 2]);
        assert_eq!(tree.free.len(), tree.nodes.len() - 1);
    }
}
