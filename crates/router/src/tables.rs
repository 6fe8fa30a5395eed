//! Forwarding tables by the name of their algorithm, behind one trait.
//!
//! The lookups are compiled here, so that users of a router don't compile the algorithms again.

use crate::fib::{
    Address, Auto, BSearch, Batch, Dir24_8, Fib, Locked, Multibit, Poptrie, Radix, RadixLockless,
    V4, V6,
};
use crate::path::Lookup;
use fwdlab_packet::forwarding::{FibAlgorithm, Locking};
use std::sync::Arc;

/// A forwarding table that can change while packets are forwarded.
pub trait Table<A>: Lookup<A> {
    /// Applies all changes of a batch, as [`Locked::update`].
    fn update(&self, batch: &Batch<A>);
}

impl<A: Address, F: Fib<A> + Clone> Table<A> for Locked<A, F>
where
    Locked<A, F>: Lookup<A>,
{
    fn update(&self, batch: &Batch<A>) {
        Locked::update(self, batch);
    }
}

/// A table and its properties after building.
pub struct Built<A> {
    /// The table.
    pub table: Arc<dyn Table<A>>,
    /// The algorithm that [`FibAlgorithm::Auto`] chose; `None` if one was specified.
    pub chosen: Option<&'static str>,
    /// Number of routes.
    pub routes: usize,
    /// Memory in bytes.
    pub bytes: usize,
}

macro_rules! by_name {
    ($(#[$doc:meta])* $name:ident, $address:ty, $dir24_8:ident) => {
        $(#[$doc])*
        pub fn $name(
            algorithm: FibAlgorithm,
            locking: Locking,
            routes: &Batch<$address>,
        ) -> Built<$address> {
            match algorithm {
                FibAlgorithm::Auto => {
                    let auto = filled(Auto::new(), routes);
                    let chosen = Some(auto.algorithm());
                    Built { chosen, ..shared(auto, locking) }
                }
                FibAlgorithm::Radix => shared(filled(Radix::new(), routes), locking),
                FibAlgorithm::RadixLockless => shared(filled(RadixLockless::new(), routes), locking),
                FibAlgorithm::BSearch => shared(filled(BSearch::new(), routes), locking),
                FibAlgorithm::Dir24_8 => shared(filled($dir24_8::new(), routes), locking),
                FibAlgorithm::Poptrie => shared(filled(Poptrie::new(), routes), locking),
            }
        }
    };
}
by_name!(
    /// Builds a table of IPv4 routes.
    inet, V4, Dir24_8
);
by_name!(
    /// Builds a table of IPv6 routes. The counterpart of IPv4's dir24_8 is the multi-bit trie.
    inet6, V6, Multibit
);

fn filled<A: Address, F: Fib<A>>(mut fib: F, routes: &Batch<A>) -> F {
    fib.apply(routes);
    fib
}

fn shared<A: Address, F>(fib: F, locking: Locking) -> Built<A>
where
    F: Fib<A> + Clone + 'static,
    Locked<A, F>: Lookup<A>,
{
    let (routes, bytes) = (fib.len(), fib.memory_bytes());
    Built { table: Arc::new(Locked::new(fib, locking)), chosen: None, routes, bytes }
}
