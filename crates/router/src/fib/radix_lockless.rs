//! The radix tree as a copy that never changes, so that nobody needs a lock.
//!
//! Any change makes a new copy from all routes. As nothing is ever inserted, nodes
//! can lie where a way down finds them: a node, its children and grandchildren side
//! by side, then the same for each great-grandchild. For the same reason the first
//! levels can be leapt over: a table says for each value of an address's first bits
//! which node comes next, and the best next hop until there.

use super::lanes::{LANES, in_turn};
use super::rib::Route;
use super::table::Array;
use super::{Address, Batch, Fib, NextHop, Prefix, Rib};
use fwdlab_port::popcount::with_popcount;
use std::collections::VecDeque;
use std::hint::select_unpredictable;

/// Levels of the tree that lie together.
const LEVELS: usize = 3;

/// The copy, and the routes that the next one is made from.
#[derive(Clone, Debug)]
pub struct RadixLockless<A> {
    rib: Rib<A>,
    /// The root comes first, and is nobody's child: as a child, 0 means none.
    nodes: Array<Node<A>>,
    /// Where the way down begins, by an address's first bits.
    leaps: Array<Leap>,
    leap_bits: u8,
}

/// A place on the way down.
#[derive(Clone, Copy, Debug)]
struct Leap {
    /// The next node; 0 for none, as the root is always leapt over.
    node: u32,
    /// Best next hop before it, packed.
    raw: u32,
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
        let nodes = laid_out(&grown);
        let leap_bits = leap_bits::<A>(rib.len());
        let leaps = leaps(&nodes, leap_bits);
        RadixLockless { rib, nodes, leaps, leap_bits }
    }

    /// Where the way down begins.
    #[inline(always)]
    fn leap(&self, address: A) -> Leap {
        self.leaps[address.slice(0, self.leap_bits)]
    }

    /// Looks up to [`LANES`] addresses up, a step of each in turn.
    #[inline(always)]
    fn lanes(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]) {
        let leaps: [Leap; LANES] = std::array::from_fn(|lane| match addresses.get(lane) {
            Some(&address) => self.leap(address),
            None => Leap { node: 0, raw: 0 },
        });
        let (mut at, mut best) = (leaps.map(|leap| leap.node), leaps.map(|leap| leap.raw));
        in_turn(
            addresses.len(),
            |lane| leaps[lane].node != 0,
            |lane| {
                let (address, node) = (addresses[lane], &self.nodes[at[lane] as usize]);
                let within = address.shares(node.address, node.length);
                best[lane] = select_unpredictable(within & (node.raw != 0), node.raw, best[lane]);
                at[lane] = node.children[bit(address, node.length)];
                within & (at[lane] != 0)
            },
        );
        for (next_hop, raw) in next_hops.iter_mut().zip(best) {
            *next_hop = NextHop::unpack(raw);
        }
    }
}

/// As many bits as leave few nodes to pass, without a table that is much larger than
/// they are. All IPv6 addresses in use begin alike, so more of theirs are taken.
fn leap_bits<A: Address>(routes: usize) -> u8 {
    let bits = routes.max(2).ilog2() as u8;
    match A::BITS {
        128 => (bits + 4).min(20),
        _ => bits.min(16),
    }
}

/// Follows the tree as far as it decides on the first `bits`, for each of their
/// values.
fn leaps<A: Address>(nodes: &[Node<A>], bits: u8) -> Array<Leap> {
    let mut leaps = Array::with_capacity(1 << bits);
    for value in 0..1_u128 << bits {
        let address = A::from_bits(value << (A::BITS - bits));
        let mut leap = Leap { node: 0, raw: 0 };
        while let Some(node) = nodes.get(leap.node as usize)
            && node.length < bits
        {
            let child = match address.shares(node.address, node.length) {
                true => {
                    leap.raw = if node.raw == 0 { leap.raw } else { node.raw };
                    node.children[bit(address, node.length)]
                }
                false => 0,
            };
            leap.node = child;
            if child == 0 {
                break;
            }
        }
        leaps.push(leap);
    }
    leaps.settle();
    leaps
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
fn laid_out<A: Address>(grown: &[Node<A>]) -> Array<Node<A>> {
    let mut nodes: Array<Node<A>> = Array::with_capacity(grown.len());
    nodes.push(grown[0]);
    // Roots of parts that are yet to be laid, by their new place. Depth first: the
    // newest part is the next.
    let mut parts = vec![0_u32];
    while let Some(part) = parts.pop() {
        let mut row = VecDeque::from([(part, 1)]);
        while let Some((at, level)) = row.pop_front() {
            if level == LEVELS {
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
    }
    nodes.settle();
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
        let Leap { node: mut at, raw: mut best } = self.leap(address);
        while at != 0 {
            let node = &self.nodes[at as usize];
            if !address.shares(node.address, node.length) {
                break;
            }
            best = select_unpredictable(node.raw != 0, node.raw, best);
            at = node.children[bit(address, node.length)];
        }
        NextHop::unpack(best)
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        with_popcount(
            #[inline(always)]
            || {
                for (addresses, next_hops) in
                    addresses.chunks(LANES).zip(next_hops.chunks_mut(LANES))
                {
                    self.lanes(addresses, next_hops);
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
        self.nodes.memory_bytes() + self.leaps.memory_bytes() + self.rib.memory_bytes()
    }
}

impl<A: Address> Default for RadixLockless<A> {
    fn default() -> RadixLockless<A> {
        RadixLockless::new()
    }
}
