//! Tables of the routers that are measured, each built once.

use super::{RouteError, Variant};
use crate::bench::Algorithm;
use crate::fib::{
    Address, Auto, BSearch, Dir24_8, Fib, Locked, Locking, Multibit, NextHop, Poptrie, Prefix,
    Radix, RadixLockless, Rib, V4, V6,
};
use crate::path::Lookup;
use crate::routes::synthesis::{Synthesis, synthesise};
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, routed_prefix};
use std::str::FromStr;
use std::sync::Arc;

/// Number of the next hop beyond the router, where all synthesised routes lead, too.
pub(super) const RECEIVER: u32 = 0;
/// Number of the next hop where packets come from.
pub(super) const SENDER: u32 = 1;

/// Tables by what makes them.
#[derive(Default)]
pub struct Tables {
    seed: u64,
    inet: Vec<(Key, Arc<dyn Lookup<V4>>)>,
    inet6: Vec<(Key, Arc<dyn Lookup<V6>>)>,
}

type Key = (usize, Algorithm, Locking);
/// Tables of both families.
pub(super) type Pair = (Arc<dyn Lookup<V4>>, Arc<dyn Lookup<V6>>);

impl Tables {
    /// None yet; routes will be of this seed.
    pub fn new(seed: u64) -> Tables {
        Tables { seed, ..Tables::default() }
    }

    /// The variant's tables of both families: that of the other is empty.
    pub(super) fn of(&mut self, variant: &Variant) -> Result<Pair, RouteError> {
        let key = (variant.routes, variant.fib, variant.locking);
        let unknown = RouteError::Algorithm(variant.fib.name());
        match variant.family {
            Family::Inet => {
                let seed = self.seed;
                let inet = known(&mut self.inet, key, || inet(key, seed)).ok_or(unknown)?;
                Ok((inet, Arc::new(Radix::new())))
            }
            Family::Inet6 => {
                let seed = self.seed;
                let inet6 = known(&mut self.inet6, key, || inet6(key, seed)).ok_or(unknown)?;
                Ok((Arc::new(Radix::new()), inet6))
            }
        }
    }
}

fn known<T: Clone>(
    tables: &mut Vec<(Key, T)>,
    key: Key,
    build: impl FnOnce() -> Option<T>,
) -> Option<T> {
    if let Some((_, table)) = tables.iter().find(|(known, _)| *known == key) {
        return Some(table.clone());
    }
    let built = build()?;
    tables.push((key, built.clone()));
    Some(built)
}

fn inet((routes, algorithm, locking): Key, seed: u64) -> Option<Arc<dyn Lookup<V4>>> {
    let count = routes.saturating_sub(2);
    let made = || synthesise(&Synthesis { inet: count, inet6: 0, next_hops: 1, seed }).inet;
    match algorithm {
        Algorithm::Dir24_8 => {
            Some(Arc::new(Locked::new(Dir24_8::of(rib(made(), Family::Inet)), locking)))
        }
        Algorithm::Multibit => None,
        other => common(other, locking, rib(made(), Family::Inet)),
    }
}

fn inet6((routes, algorithm, locking): Key, seed: u64) -> Option<Arc<dyn Lookup<V6>>> {
    let count = routes.saturating_sub(2);
    let made = || synthesise(&Synthesis { inet: 0, inet6: count, next_hops: 1, seed }).inet6;
    match algorithm {
        Algorithm::Multibit => {
            Some(Arc::new(Locked::new(Multibit::of(rib(made(), Family::Inet6)), locking)))
        }
        Algorithm::Dir24_8 => None,
        other => common(other, locking, rib(made(), Family::Inet6)),
    }
}

/// The routes to both sides, and those that were made.
fn rib<A: Address>(made: Vec<(Prefix<A>, NextHop)>, family: Family) -> Rib<A>
where
    Prefix<A>: FromStr,
{
    let sides = [(Side::Receiver, RECEIVER), (Side::Sender, SENDER)];
    let own = sides.into_iter().filter_map(|(side, number)| {
        Some((routed_prefix(family, side).parse().ok()?, NextHop::new(number)?))
    });
    let mut rib = Rib::new();
    rib.apply(&made.into_iter().chain(own).collect());
    rib
}

fn common<A: Address>(
    algorithm: Algorithm,
    locking: Locking,
    rib: Rib<A>,
) -> Option<Arc<dyn Lookup<A>>>
where
    Locked<A, Radix<A>>: Lookup<A>,
    Locked<A, RadixLockless<A>>: Lookup<A>,
    Locked<A, BSearch<A>>: Lookup<A>,
    Locked<A, Poptrie<A>>: Lookup<A>,
    Locked<A, Auto<A>>: Lookup<A>,
{
    Some(match algorithm {
        Algorithm::Radix => {
            let mut radix = Radix::new();
            radix.apply(&rib.iter().collect());
            Arc::new(Locked::new(radix, locking))
        }
        Algorithm::RadixLockless => Arc::new(Locked::new(RadixLockless::of(rib), locking)),
        Algorithm::BSearch => Arc::new(Locked::new(BSearch::of(rib), locking)),
        Algorithm::Poptrie => Arc::new(Locked::new(Poptrie::of(rib), locking)),
        Algorithm::Auto => Arc::new(Locked::new(Auto::of(rib), locking)),
        Algorithm::Dir24_8 | Algorithm::Multibit => return None,
    })
}
