//! The algorithm that suits family and size, changed when the size does.
//!
//! | routes | IPv4 | IPv6 |
//! |---|---|---|
//! | up to 16 | binary search | binary search |
//! | up to 128 | poptrie | binary search |
//! | more | poptrie | poptrie |
//!
//! README.md holds the measurements that this rests on: in batches the two are
//! equally fast near these sizes. DIR-24-8 is faster in a loop that does nothing
//! but look up; it is left out because its 64 MB take every cache line from the
//! packets, and an update of it touches up to all of them. Name it where a machine
//! has the memory and does little else.

use super::{Address, BSearch, Batch, Fib, NextHop, Poptrie, Prefix, Rib, V4};

/// Routes up to which binary search is taken.
pub const fn small_max<A: Address>() -> usize {
    if A::BITS == V4::BITS { 16 } else { 128 }
}

/// The algorithm of the moment.
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

    /// The table of these routes.
    pub fn of(rib: Rib<A>) -> Auto<A> {
        let chosen = match rib.len() > small_max::<A>() {
            false => Chosen::Small(BSearch::of(rib)),
            true => Chosen::Large(Poptrie::of(rib)),
        };
        Auto { chosen }
    }

    /// The name of the algorithm in use.
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
                // Without building ranges that may be thrown away at once.
                let mut rib = fib.take_rib();
                rib.apply(batch);
                *self = Auto::of(rib);
            }
            Chosen::Large(fib) => {
                fib.apply(batch);
                // Far enough away that one route coming and going builds no tables.
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
    fn the_size_decides_and_a_single_route_does_not_make_it_waver() {
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
