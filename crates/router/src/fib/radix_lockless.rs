//! The radix tree as a copy that never changes, so that nobody needs a lock.
//!
//! Any change makes a new copy from all routes. As nothing is ever inserted, nodes
//! can lie where a way down finds them: a node, its children and grandchildren side
//! by side, then the same for each great-grandchild.

use super::rib::Route;
use super::{Address, Batch, Fib, NextHop, Prefix, Rib};
use fwdlab_port::memory::prefer_huge_pages;
use std::collections::VecDeque;

/// Levels of the tree that lie together.
const LEVELS: usize = 3;
/// Levels from the root on that lie together: they stay in the second cache.
const LEVELS_TOP: usize = 12;
/// Addresses that go down the tree beside each other.
const LANES: usize = 16;

/// The copy, and the routes that the next one is made from.
#[derive(Clone, Debug)]
pub struct RadixLockless<A> {
    rib: Rib<A>,
    /// The root comes first, and is nobody's child: as a child, 0 means none.
    nodes: Vec<Node<A>>,
}

/// A prefix that has a route, or at which two parts of the tree divide.
#[derive(Clone, Copy, Debug)]
struct Node<A> {
    address: A,
    /// Next hop, packed.
    raw: u32,
    /// By the bit after the prefix.
    children: [u32; 2],
    length: u8,
}

impl<A: Address> RadixLockless<A> {
    /// An empty tree.
    pub fn new() -> RadixLockless<A> {
        RadixLockless::of(Rib::new())
    }

    /// The tree of these routes.
    pub fn of(rib: Rib<A>) -> RadixLockless<A> {
        let routes = rib.all();
        let mut grown = Vec::with_capacity(2 * routes.len() + 1);
        let (root, below) = match routes.as_slice() {
            [all, below @ ..] if all.length == 0 => (all.raw, below),
            below => (0, below),
        };
        let root = Node { address: A::default(), raw: root, children: [0; 2], length: 0 };
        grown.push(root);
        grown[0].children = grow(&mut grown, 0, below);
        RadixLockless { rib, nodes: laid_out(&grown) }
    }
}

/// Grows the tree of routes that share their first `length` bits and are longer;
/// returns where its two sides begin.
fn grow<A: Address>(nodes: &mut Vec<Node<A>>, length: u8, routes: &[Route<A>]) -> [u32; 2] {
    let zeros = routes.partition_point(|route| bit(route.address, length) == 0);
    let (zeros, ones) = routes.split_at(zeros);
    [zeros, ones].map(|routes| {
        let [first, .., last] = routes else {
            let [only] = routes else { return 0 };
            return push(nodes, only.address, only.length, only.raw);
        };
        let common = first.address.common(last.address);
        let (length, raw, below) = match first.length <= common {
            true => (first.length, first.raw, &routes[1..]),
            false => (common, 0, routes),
        };
        let at = push(nodes, first.address, length, raw);
        nodes[at as usize].children = grow(nodes, length, below);
        at
    })
}

fn push<A: Address>(nodes: &mut Vec<Node<A>>, address: A, length: u8, raw: u32) -> u32 {
    nodes.push(Node { address: address.masked(length), raw, children: [0; 2], length });
    (nodes.len() - 1) as u32
}

/// The same tree with the nodes in the order of [`LEVELS`].
fn laid_out<A: Address>(grown: &[Node<A>]) -> Vec<Node<A>> {
    let mut nodes: Vec<Node<A>> = Vec::with_capacity(grown.len());
    prefer_huge_pages(nodes.spare_capacity_mut());
    nodes.push(grown[0]);
    // Roots of parts that are yet to be laid, by their new place. Depth first: the
    // newest part is the next.
    let mut parts = vec![0_u32];
    let mut levels = LEVELS_TOP;
    while let Some(part) = parts.pop() {
        let mut row = VecDeque::from([(part, 1)]);
        while let Some((at, level)) = row.pop_front() {
            if level == levels {
                parts.push(at);
                continue;
            }
            for side in 0..2 {
                let child = nodes[at as usize].children[side];
                if child != 0 {
                    let place = nodes.len() as u32;
                    nodes.push(grown[child as usize]);
                    nodes[at as usize].children[side] = place;
                    row.push_back((place, level + 1));
                }
            }
        }
        levels = LEVELS;
    }
    nodes
}

/// The bit after the first `length`.
#[inline(always)]
fn bit<A: Address>(address: A, length: u8) -> usize {
    address.slice(length, 1) & 1
}

impl<A: Address> Fib<A> for RadixLockless<A> {
    #[inline]
    fn lookup(&self, address: A) -> Option<NextHop> {
        let (mut at, mut best) = (0, 0);
        loop {
            let node = &self.nodes[at as usize];
            if !address.shares(node.address, node.length) {
                return NextHop::unpack(best);
            }
            if node.raw != 0 {
                best = node.raw;
            }
            at = node.children[bit(address, node.length)];
            if at == 0 {
                return NextHop::unpack(best);
            }
        }
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        for (addresses, next_hops) in addresses.chunks(LANES).zip(next_hops.chunks_mut(LANES)) {
            let mut best = [0; LANES];
            // Where each way down stands, and the lanes that are still on their way.
            let mut at = [0_u32; LANES];
            let mut lanes: [u8; LANES] = std::array::from_fn(|lane| lane as u8);
            let mut open = addresses.len();
            while open > 0 {
                let mut kept = 0;
                for on_its_way in 0..open {
                    let lane = lanes[on_its_way % LANES] as usize % LANES;
                    let (address, node) = (addresses[lane], &self.nodes[at[lane] as usize]);
                    let within = address.shares(node.address, node.length);
                    if within && node.raw != 0 {
                        best[lane] = node.raw;
                    }
                    let child = node.children[bit(address, node.length)];
                    at[lane] = child;
                    lanes[kept % LANES] = lane as u8;
                    kept += usize::from(within && child != 0);
                }
                open = kept;
            }
            for (next_hop, raw) in next_hops.iter_mut().zip(best) {
                *next_hop = NextHop::unpack(raw);
            }
        }
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
        self.nodes.capacity() * size_of::<Node<A>>() + self.rib.memory_bytes()
    }
}

impl<A: Address> Default for RadixLockless<A> {
    fn default() -> RadixLockless<A> {
        RadixLockless::new()
    }
}
