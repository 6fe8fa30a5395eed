//! Controlled prefix expansion: a node of a multi-bit trie from the routes below it.
//!
//! Srinivasan, Varghese, "Fast Address Lookups Using Controlled Prefix Expansion",
//! ACM TOCS 17 (1), 1999. Used by all tables that take several bits at a step.

use super::rib::Route;
use super::{Address, Batch, Prefix, Rib};

/// A node: bits `at..at + stride` of an address choose one of its slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<A> {
    /// The address of the first slot.
    pub(crate) address: A,
    /// Bits before the node.
    pub(crate) at: u8,
    /// Bits that choose a slot.
    pub(crate) stride: u8,
}

impl<A: Address> Node<A> {
    /// Writes the next hops of routes that end within this node to their slots, and
    /// calls `deeper` for each slot that longer routes go through: with the slot, its
    /// first address, and those routes.
    ///
    /// `routes` are in order, and all within the node; slots hold what is inherited.
    pub(crate) fn expand<'a>(
        &self,
        mut routes: &'a [Route<A>],
        slots: &mut [u32],
        mut deeper: impl FnMut(&mut u32, A, &'a [Route<A>]),
    ) {
        let end = self.at + self.stride;
        while let [route, rest @ ..] = routes {
            // The slots may be those of a part of the node only.
            let first = self.slot(route.address);
            if route.length <= end {
                // Wider routes come first, narrower ones are painted over them.
                let count = 1 << (end - route.length);
                slots[first..first + count].fill(route.raw);
                routes = rest;
                continue;
            }
            let address = route.address.masked(end);
            let count = routes.partition_point(|other| other.address.shares(address, end));
            let (below, others) = routes.split_at(count);
            deeper(&mut slots[first], address, below);
            routes = others;
        }
    }

    /// The slot of an address, from that of the node's own address on.
    fn slot(&self, address: A) -> usize {
        let of = |address: A| address.slice(self.at, self.stride);
        of(address) - of(self.address)
    }
}

/// From so many places on, compiling everything is quicker than one by one.
const PLACES_MAX: usize = 1 << 15;

/// What has to be compiled again after `batch`: prefixes of at most `root` bits,
/// none within another.
pub(crate) fn dirty<A: Address>(batch: &Batch<A>, root: u8) -> Vec<Prefix<A>> {
    let clip = |prefix: Prefix<A>| Prefix::containing(prefix.address(), prefix.length().min(root));
    let mut dirty: Vec<Prefix<A>> =
        batch.changes().iter().map(|change| clip(change.prefix())).collect();
    dirty.sort_unstable();
    dirty.dedup_by(|later, earlier| earlier.covers(*later));
    if dirty.len() > PLACES_MAX { vec![Prefix::all()] } else { dirty }
}

/// What an address of `prefix` has without the routes within it, packed; and those
/// routes, in order.
pub(crate) fn below<A: Address>(rib: &Rib<A>, prefix: Prefix<A>) -> (u32, Vec<Route<A>>) {
    let shorter = prefix.length().checked_sub(1);
    let inherited = shorter.and_then(|length| rib.longest(prefix.address(), length));
    let raw = super::NextHop::pack(inherited.map(|(_, next_hop)| next_hop));
    (raw, rib.within(prefix))
}
