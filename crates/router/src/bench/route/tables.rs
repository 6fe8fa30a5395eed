//! Tables of the measured routers, each built once.

use super::{RouteError, Variant};
use crate::bench::Algorithm;
use crate::fib::{
    Address, Auto, BSearch, Dir24_8, Fib, Locked, Locking, Multibit, NextHop, Poptrie, Prefix,
    Radix, RadixLockless, Rib, V4, V6,
};
use crate::path::{Lookup, is_martian};
use crate::routes::synthesis::{ROUTES_MAX, Synthesis, inside, synthesise};
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, routed_prefix};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

/// Number of the next hop beyond the router, to which all synthetic routes lead as well.
pub(super) const RECEIVER: u32 = 0;
/// Number of the next hop towards the sender.
pub(super) const SENDER: u32 = 1;

/// Routes that every table contains.
const SIDES: usize = 2;

/// Tables by their parameters.
#[derive(Default)]
pub struct Tables {
    seed: u64,
    inet: Vec<(Key, Arc<dyn Lookup<V4>>)>,
    inet6: Vec<(Key, Arc<dyn Lookup<V6>>)>,
}

/// Routes, their algorithm and lock, and whether packets use all routes.
type Key = (usize, Algorithm, Locking, bool);
/// Tables of both families.
pub(super) type Pair = (Arc<dyn Lookup<V4>>, Arc<dyn Lookup<V6>>);

impl Tables {
    /// No tables; routes are generated from this seed.
    pub fn new(seed: u64) -> Tables {
        Tables { seed, ..Tables::default() }
    }

    /// Tables of both families for the variant: the table of the other family is empty.
    pub(super) fn of(&mut self, variant: &Variant) -> Result<Pair, RouteError> {
        let key = (variant.routes, variant.fib, variant.locking, variant.destinations.is_some());
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

/// `count` addresses, each within a route drawn from the largest table of this seed, so that tables
/// of any size get the same addresses.
pub(super) fn destinations(family: Family, count: u32, seed: u64) -> Vec<IpAddr> {
    let mut random = Xoshiro256StarStar::seed_from_u64(seed);
    let routes = ROUTES_MAX - SIDES;
    match family {
        // Short routes include addresses that no router forwards to.
        Family::Inet => {
            drawn(&inet_routes(routes, seed), count, &mut random, |&to| !is_martian(to))
        }
        Family::Inet6 => drawn(&inet6_routes(routes, seed), count, &mut random, |_| true),
    }
}

fn drawn<A: Address>(
    routes: &[(Prefix<A>, NextHop)],
    count: u32,
    random: &mut Xoshiro256StarStar,
    is_forwarded: impl Fn(&A) -> bool,
) -> Vec<IpAddr> {
    let drawn = std::iter::repeat_with(|| {
        let (prefix, _) = routes[random.next_u64() as usize % routes.len()];
        inside(prefix, random)
    });
    drawn.filter(is_forwarded).take(count as usize).map(Address::to_ip).collect()
}

fn inet_routes(count: usize, seed: u64) -> Vec<(Prefix<V4>, NextHop)> {
    synthesise(&Synthesis { inet: count, inet6: 0, next_hops: 1, seed }).inet
}

fn inet6_routes(count: usize, seed: u64) -> Vec<(Prefix<V6>, NextHop)> {
    synthesise(&Synthesis { inet: 0, inet6: count, next_hops: 1, seed }).inet6
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

fn inet((routes, algorithm, locking, all): Key, seed: u64) -> Option<Arc<dyn Lookup<V4>>> {
    let rib = || rib(inet_routes(routes.saturating_sub(SIDES), seed), Family::Inet, all);
    match algorithm {
        Algorithm::Dir24_8 => Some(Arc::new(Locked::new(Dir24_8::of(rib()), locking))),
        Algorithm::Multibit => None,
        other => common(other, locking, rib()),
    }
}

fn inet6((routes, algorithm, locking, all): Key, seed: u64) -> Option<Arc<dyn Lookup<V6>>> {
    let rib = || rib(inet6_routes(routes.saturating_sub(SIDES), seed), Family::Inet6, all);
    match algorithm {
        Algorithm::Multibit => Some(Arc::new(Locked::new(Multibit::of(rib()), locking))),
        Algorithm::Dir24_8 => None,
        other => common(other, locking, rib()),
    }
}

/// The synthetic routes, all to the receiver, and two more: to both sides, or if packets use `all`
/// routes, to both halves of the address space.
fn rib<A: Address>(made: Vec<(Prefix<A>, NextHop)>, family: Family, all: bool) -> Rib<A>
where
    Prefix<A>: FromStr,
{
    let sides: [(String, u32); SIDES] = match (all, family) {
        (false, _) => [(Side::Receiver, RECEIVER), (Side::Sender, SENDER)]
            .map(|(side, number)| (routed_prefix(family, side).into(), number)),
        (true, Family::Inet) => ["0.0.0.0/1", "128.0.0.0/1"].map(|half| (half.into(), RECEIVER)),
        (true, Family::Inet6) => ["2000::/4", "3000::/4"].map(|half| (half.into(), RECEIVER)),
    };
    let side_routes = sides
        .iter()
        .filter_map(|(prefix, number)| Some((prefix.parse().ok()?, NextHop::new(*number)?)));
    let made = made.into_iter().map(|(prefix, _)| prefix);
    let made = made.filter_map(|prefix| Some((prefix, NextHop::new(RECEIVER)?)));
    let mut rib = Rib::new();
    rib.apply(&made.chain(side_routes).collect());
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
