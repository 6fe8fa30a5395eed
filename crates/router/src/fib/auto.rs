//! The algorithm that suits family and size, exchanged when the size changes.
//!
//! | routes | IPv4 | IPv6 |
//! |---|---|---|
//! | up to 16 | binary search | binary search |
//! | up to 128 | poptrie | binary search |
//! | more | poptrie | poptrie |
//!
//! README.md contains the measurements behind these limits: in batches the two are equally fast
//! near these sizes. DIR-24-8 is faster in a loop that only looks up; it is never chosen because
//! its 64 MB evict the packets from the caches, and one update touches up to all of them. Select it
//! by name if a machine has the memory and does little else.

use super::{Address, BSearch, Batch, Fib, NextHop, Poptrie, Prefix, Rib, V4};

/// Maximum number of routes for binary search.
pub const fn small_max<A: Address>() -> usize {
    if A::BITS == V4::BITS { 16 } else { 128 }
}

/// The current algorithm.
#[derive(Clone, Debug)]
pub struct Auto<A> {
    chosen: Chosen<A>,
}

#[derive(Clone, Debug)]
enum Chosen<A> {
    Small(BSearch<A>),
    Large(Poptrie<A>),
}

impl<A: Address> Auto<A> {
    /// An empty table.
    pub fn new() -> Auto<A> {
        Auto::of(Rib::new())
    }

    /// Builds the table from these routes.
    pub fn of(rib: Rib<A>) -> Auto<A> {
        let chosen = match rib.len() > small_max::<A>() {
            false => Chosen::Small(BSearch::of(rib)),
            true => Chosen::Large(Poptrie::of(rib)),
        };
        Auto { chosen }
    }

    /// Name of the algorithm in use.
    pub fn algorithm(&self) -> &'static str {
        match self.chosen {
            Chosen::Small(_) => "bsearch",
            Chosen::Large(_) => "poptrie",
        }
    }

    #[inline]
    fn fib(&self) -> &dyn Fib<A> {
        match &self.chosen {
            Chosen::Small(fib) => fib,
            Chosen::Large(fib) => fib,
        }
    }
}

impl<A: Address> Fib<A> for Auto<A> {
    #[inline]
    fn lookup(&self, address: A) -> Option<NextHop> {
        match &self.chosen {
            Chosen::Small(fib) => fib.lookup(address),
            Chosen::Large(fib) => fib.lookup(address),
        }
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]) {
        self.fib().lookup_batch(addresses, next_hops);
    }

    fn prefetch(&self, addresses: &[A]) {
        self.fib().prefetch(addresses);
    }

    fn apply(&mut self, batch: &Batch<A>) {
        match &mut self.chosen {
            Chosen::Small(fib) => {
                // Do not build ranges that may be discarded right away.
                let mut rib = fib.take_rib();
                rib.apply(batch);
                *self = Auto::of(rib);
            }
            Chosen::Large(fib) => {
                fib.apply(batch);
                // The gap keeps one route that comes and goes from rebuilding tables.
                if fib.len() < small_max::<A>() / 2 {
                    *self = Auto::of(fib.take_rib());
                }
            }
        }
    }

    fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        self.fib().get(prefix)
    }

    fn len(&self) -> usize {
        self.fib().len()
    }

    fn memory_bytes(&self) -> usize {
        self.fib().memory_bytes()
    }
}

impl<A: Address> Default for Auto<A> {
    fn default() -> Auto<A> {
        Auto::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::Change;

    #[test]
    fn algorithm_follows_size_with_hysteresis() {
        let mut fib = Auto::<V4>::new();
        let mut names = Vec::new();
        let prefix = |n: usize| Prefix::containing(V4((n as u32) << 12), 24);
        let most = small_max::<V4>();
        for n in 0..=most {
            assert_eq!(fib.algorithm(), "bsearch");
            fib.insert(prefix(n), NextHop::new(7).expect("a number"));
        }
        names.push(fib.algorithm());
        fib.remove(prefix(0));
        names.push(fib.algorithm());
        fib.apply(&(0..most - 3).map(|n| Change::Remove(prefix(n))).collect());
        names.push(fib.algorithm());
        assert_eq!(names, ["poptrie", "poptrie", "bsearch"]);
        assert_eq!(fib.len(), 4);
        assert_eq!(fib.lookup(V4(16 << 12)).map(NextHop::number), Some(7));
    }
}
