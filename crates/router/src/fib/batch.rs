//! Changes that belong together.

use super::{Address, NextHop, Prefix};

/// Changes that readers see all together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch<A> {
    changes: Vec<Change<A>>,
}

/// One change of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<A> {
    /// A route, new or with another next hop.
    Insert(Prefix<A>, NextHop),
    /// Removes a route; no effect if it is absent.
    Remove(Prefix<A>),
}

impl<A: Address> Batch<A> {
    /// No changes.
    pub fn new() -> Batch<A> {
        Batch { changes: Vec::new() }
    }

    /// Adds a route, or changes its next hop.
    pub fn insert(&mut self, prefix: Prefix<A>, next_hop: NextHop) -> &mut Batch<A> {
        self.changes.push(Change::Insert(prefix, next_hop));
        self
    }

    /// Removes a route.
    pub fn remove(&mut self, prefix: Prefix<A>) -> &mut Batch<A> {
        self.changes.push(Change::Remove(prefix));
        self
    }

    /// The changes in their order.
    pub fn changes(&self) -> &[Change<A>] {
        &self.changes
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if there are no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl<A> Change<A> {
    /// The prefix that changes.
    pub fn prefix(&self) -> Prefix<A>
    where
        A: Address,
    {
        match *self {
            Change::Insert(prefix, _) | Change::Remove(prefix) => prefix,
        }
    }
}

impl<A: Address> FromIterator<Change<A>> for Batch<A> {
    fn from_iter<I: IntoIterator<Item = Change<A>>>(changes: I) -> Batch<A> {
        Batch { changes: changes.into_iter().collect() }
    }
}

/// Batch that adds these routes.
impl<A: Address> FromIterator<(Prefix<A>, NextHop)> for Batch<A> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, NextHop)>>(routes: I) -> Batch<A> {
        routes.into_iter().map(|(prefix, next_hop)| Change::Insert(prefix, next_hop)).collect()
    }
}
