//! Controlled prefix expansion: builds a node of a multi-bit trie from the routes below it.
//!
//! Srinivasan, Varghese, "Fast Address Lookups Using Controlled Prefix Expansion", ACM TOCS 17 (1),
//! 1999. Used by all tables that consume several bits in one step.

use super::rib::Route;
use super::{Address, Batch, Prefix, Rib};

/// A node: bits `at..at + stride` of an address select one of its slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<A> {
    /// Address of the first slot.
    pub(crate) address: A,
    /// Bits above the node.
    pub(crate) at: u8,
    /// Bits that select a slot.
    pub(crate) stride: u8,
}

impl<A: Address> Node<A> {
    /// Writes the next hops of routes that end within this node to their slots, and calls `deeper`
    /// for each slot that longer routes pass through, with the slot, its first address, and those
    /// routes.
    ///
    /// `routes` are in order and all within the node; slots contain the inherited next hops.
    pub(crate) fn expand<'a>(
        &self,
        mut routes: &'a [Route<A>],
        slots: &mut [u32],
        mut deeper: impl FnMut(&mut u32, A, &'a [Route<A>]),
    ) {
        let end = self.at + self.stride;
        while let [route, rest @ ..] = routes {
            // `slots` may cover only a part of the node.
            let first = self.slot(route.address);
            if route.length <= end {
                // Wider routes come first, narrower ones overwrite them.
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

    /// Slot of an address, relative to the node's own address.
    fn slot(&self, address: A) -> usize {
        let of = |address: A| address.slice(self.at, self.stride);
        of(address) - of(self.address)
    }
}

/// Number of places from which compiling everything is faster than one by one.
const PLACES_MAX: usize = 1 << 15;

/// Prefixes to recompile after `batch`: of at most `root` bits, none within another.
pub(crate) fn dirty<A: Address>(batch: &Batch<A>, root: u8) -> Vec<Prefix<A>> {
    let clip = |prefix: Prefix<A>| Prefix::containing(prefix.address(), prefix.length().min(root));
    let mut dirty: Vec<Prefix<A>> =
        batch.changes().iter().map(|change| clip(change.prefix())).collect();
    dirty.sort_unstable();
    dirty.dedup_by(|later, earlier| earlier.covers(*later));
    if dirty.len() > PLACES_MAX { vec![Prefix::all()] } else { dirty }
}

/// Next hop, packed, that addresses of `prefix` have without the routes within it; and those
/// routes, in order.
pub(crate) fn below<A: Address>(rib: &Rib<A>, prefix: Prefix<A>) -> (u32, Vec<Route<A>>) {
    let shorter = prefix.length().checked_sub(1);
    let inherited = shorter.and_then(|length| rib.longest(prefix.address(), length));
    let raw = super::NextHop::pack(inherited.map(|(_, next_hop)| next_hop));
    (raw, rib.within(prefix))
}
