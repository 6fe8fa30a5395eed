//! Benchmark: lookups per second of each algorithm.
//!
//! The design follows the benchmark that the authors of FreeBSD's `fib_algo` published with it: a
//! table, random destinations, one core. All tables are built first and must give the same answers,
//! or there is no result; then the algorithms take turns, round by round, so that noise of the
//! machine affects all of them.
//!
//! Destinations are addresses of routes: a route is drawn, then an address within it. (Of uniformly
//! drawn addresses almost none would have an IPv6 route.) Accesses to a table are random to the
//! caches; accesses to the list of destinations are not.

use crate::fib::{
    Address, Auto, BSearch, Dir24_8, Fib, Multibit, NextHop, Poptrie, Prefix, Radix, RadixLockless,
    Rib, V4, V6,
};
use crate::routes::synthesis::{Synthesis, inside, synthesise};
use fwdlab_packet::{Family, named};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Destinations of the published rates, looked up repeatedly.
pub const DESTINATIONS: usize = 2048 << 10;
/// Addresses per call of [`Fib::lookup_batch`].
pub const BATCH: usize = 64;
/// Lookups between two readings of the clock.
const BETWEEN_CLOCKS: usize = 1 << 14;
/// Next hops of the routes.
const NEXT_HOPS: u16 = 16;

/// Request for a measurement.
#[derive(Clone, Debug)]
pub struct Question {
    /// Tables.
    pub tables: Vec<Table>,
    /// Algorithms; those that do not support a table's family are skipped.
    pub algorithms: Vec<Algorithm>,
    /// Destinations; 0 counts as 1. A number whose table entries fit in the caches shows the cost
    /// of a lookup without memory latency.
    pub destinations: usize,
    /// Time for each algorithm, table and pattern, over all rounds.
    pub time: Duration,
    /// Rounds, one rate each; 0 counts as 1.
    pub rounds: u32,
    /// Seed of routes and destinations.
    pub seed: u64,
}

/// A table to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Address family.
    pub family: Family,
    /// Number of routes, up to [`crate::routes::synthesis::ROUTES_MAX`].
    pub routes: usize,
}

named! {
    /// The algorithms of [`crate::fib`].
    pub enum Algorithm {
        /// Radix tree with a lock.
        Radix = "radix",
        /// Radix tree as an immutable copy without a lock.
        RadixLockless = "radix_lockless",
        /// Binary search over ranges.
        BSearch = "bsearch",
        /// Two tables of 24 and 8 bits (IPv4).
        Dir24_8 = "dir24_8",
        /// Tables of 24, then 8 bits at a step (IPv6).
        Multibit = "multibit",
        /// Trie compressed by counting bits.
        Poptrie = "poptrie",
        /// The algorithm chosen by family and size.
        Auto = "auto",
    }
}

impl Algorithm {
    /// Returns true if the algorithm supports `family`.
    pub fn knows(self, family: Family) -> bool {
        match self {
            Algorithm::Dir24_8 => family == Family::Inet,
            Algorithm::Multibit => family == Family::Inet6,
            _ => true,
        }
    }
}

/// Dependency between successive lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One by one and independent, as in the published rates.
    Single,
    /// In batches of [`BATCH`], as a router looks them up.
    Batch,
    /// Each address depends on the previous answer: the latency of a lookup.
    Keyed,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Pattern; 3] = [Pattern::Single, Pattern::Batch, Pattern::Keyed];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Single => "single",
            Pattern::Batch => "batch",
            Pattern::Keyed => "keyed",
        }
    }
}

/// Result of one algorithm with one table and one pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct FibFigure {
    /// The table.
    pub table: Table,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Dependency between lookups.
    pub pattern: Pattern,
    /// Lookups per second, one rate for each round.
    pub rates_per_second: Vec<f64>,
    /// Memory of the table.
    pub memory_bytes: usize,
    /// Time to build the table from its routes, once.
    pub build: Duration,
}

/// Published rate of the algorithm's counterpart in FreeBSD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The counterpart's name.
    pub name: &'static str,
    /// Lookups per second.
    pub rate_per_second: f64,
}

impl FibFigure {
    /// The rate that FreeBSD's commit f5baf8bb12f3 (2020) reports for the counterpart and a table
    /// of this size: Intel i7-7660U, one core, 2048k destinations, one by one. The CPU differs, so
    /// the ratio does not compare the programs alone.
    pub fn published(&self) -> Option<Published> {
        use Algorithm::{BSearch, Dir24_8, Multibit, Radix, RadixLockless};
        let (name, millions) = match (self.table.family, self.table.routes, self.algorithm) {
            (Family::Inet, 8, Radix) => ("radix4", 20.0),
            (Family::Inet, 8, RadixLockless) => ("radix4_lockless", 24.8),
            (Family::Inet, 8, BSearch) => ("bsearch4", 69.0),
            (Family::Inet, 8, Dir24_8) => ("dpdk_lpm4", 67.0),
            (Family::Inet, 700_000, RadixLockless) => ("radix4_lockless", 3.3),
            (Family::Inet, 700_000, Dir24_8) => ("dpdk_lpm4", 46.0),
            (Family::Inet6, 8, RadixLockless) => ("radix6_lockless", 20.0),
            (Family::Inet6, 8, Multibit) => ("dpdk_lpm6", 70.0),
            (Family::Inet6, 100_000, RadixLockless) => ("radix6_lockless", 13.9),
            (Family::Inet6, 100_000, Multibit) => ("dpdk_lpm6", 57.0),
            _ => return None,
        };
        Some(Published { name, rate_per_second: millions * 1e6 })
    }
}

/// Tables of the published rates.
pub const PUBLISHED_TABLES: [Table; 4] = [
    Table { family: Family::Inet, routes: 8 },
    Table { family: Family::Inet, routes: 700_000 },
    Table { family: Family::Inet6, routes: 8 },
    Table { family: Family::Inet6, routes: 100_000 },
];

/// Measures on the CPU that the calling thread runs on: pin it before.
///
/// # Panics
/// If two algorithms give different answers.
pub fn fib(question: &Question) -> Vec<FibFigure> {
    let of = |table: &Table| match table.family {
        Family::Inet => family::<V4>(question, *table),
        Family::Inet6 => family::<V6>(question, *table),
    };
    question.tables.iter().flat_map(of).collect()
}

/// Tables that a family supports.
trait Measured: Address {
    fn routes(routes: usize, seed: u64) -> Vec<(Prefix<Self>, NextHop)>;
    fn built(algorithm: Algorithm, rib: Rib<Self>) -> Option<Box<dyn Measurable<Self>>>;
}

impl Measured for V4 {
    fn routes(routes: usize, seed: u64) -> Vec<(Prefix<V4>, NextHop)> {
        synthesise(&Synthesis { inet: routes, inet6: 0, next_hops: NEXT_HOPS, seed }).inet
    }

    fn built(algorithm: Algorithm, rib: Rib<V4>) -> Option<Box<dyn Measurable<V4>>> {
        match algorithm {
            Algorithm::Dir24_8 => Some(Box::new(Dir24_8::of(rib))),
            other => common(other, rib),
        }
    }
}

impl Measured for V6 {
    fn routes(routes: usize, seed: u64) -> Vec<(Prefix<V6>, NextHop)> {
        synthesise(&Synthesis { inet: 0, inet6: routes, next_hops: NEXT_HOPS, seed }).inet6
    }

    fn built(algorithm: Algorithm, rib: Rib<V6>) -> Option<Box<dyn Measurable<V6>>> {
        match algorithm {
            Algorithm::Multibit => Some(Box::new(Multibit::of(rib))),
            other => common(other, rib),
        }
    }
}

fn common<A: Address>(algorithm: Algorithm, rib: Rib<A>) -> Option<Box<dyn Measurable<A>>> {
    Some(match algorithm {
        Algorithm::Radix => {
            let mut radix = Radix::new();
            radix.apply(&rib.iter().collect());
            Box::new(radix)
        }
        Algorithm::RadixLockless => Box::new(RadixLockless::of(rib)),
        Algorithm::BSearch => Box::new(BSearch::of(rib)),
        Algorithm::Poptrie => Box::new(Poptrie::of(rib)),
        Algorithm::Auto => Box::new(Auto::of(rib)),
        Algorithm::Dir24_8 | Algorithm::Multibit => return None,
    })
}

fn family<A: Measured>(question: &Question, table: Table) -> Vec<FibFigure> {
    let routes = A::routes(table.routes, question.seed);
    let destinations = destinations(&routes, question.destinations.max(1), question.seed);
    let rib = {
        let mut rib = Rib::new();
        rib.apply(&routes.iter().copied().collect());
        rib
    };
    let rounds = question.rounds.max(1);
    let mut fibs: Vec<Box<dyn Measurable<A>>> = Vec::new();
    let mut figures: Vec<FibFigure> = Vec::new();
    let mut answers = None;
    for &algorithm in &question.algorithms {
        let rib = rib.clone();
        let began = Instant::now();
        let Some(fib) = A::built(algorithm, rib) else { continue };
        let build = began.elapsed();
        let sums = Pattern::ALL.map(|pattern| fib.pass(&destinations, pattern));
        let expected = *answers.get_or_insert(sums[0]);
        assert_eq!(sums, [expected; 3], "{} answers otherwise", algorithm.name());
        let memory_bytes = fib.memory_bytes();
        let rates_per_second = Vec::new();
        figures.extend(Pattern::ALL.map(|pattern| FibFigure {
            table,
            algorithm,
            pattern,
            rates_per_second: rates_per_second.clone(),
            memory_bytes,
            build,
        }));
        fibs.push(fib);
    }
    for _ in 0..rounds {
        for (fib, figures) in fibs.iter().zip(figures.chunks_mut(Pattern::ALL.len())) {
            for figure in figures {
                let time = question.time / rounds;
                let rate = rate(fib.as_ref(), &destinations, figure.pattern, time);
                figure.rates_per_second.push(rate);
            }
        }
    }
    figures
}

/// Addresses of random routes.
fn destinations<A: Address>(routes: &[(Prefix<A>, NextHop)], count: usize, seed: u64) -> Vec<A> {
    // Different from the sequence that draws the routes.
    let mut random = Xoshiro256StarStar::seed_from_u64(!seed);
    let all = (Prefix::all(), NextHop::new(0));
    let mut address = || {
        let drawn = random.next_u64() as usize;
        let prefix = drawn.checked_rem(routes.len()).map_or(all.0, |at| routes[at].0);
        inside(prefix, &mut random)
    };
    let few: Vec<A> = (0..count).map(|_| address()).collect();
    // Repeat them if there are few: a call for only eight addresses would measure the call.
    few.iter().copied().cycle().take(count.max(BETWEEN_CLOCKS)).collect()
}

fn rate<A>(fib: &dyn Measurable<A>, destinations: &[A], pattern: Pattern, time: Duration) -> f64 {
    let mut lookups = 0;
    let began = Instant::now();
    loop {
        for part in destinations.chunks(BETWEEN_CLOCKS) {
            black_box(fib.pass(part, pattern));
            lookups += part.len();
            let elapsed = began.elapsed();
            if elapsed >= time {
                return lookups as f64 / elapsed.as_secs_f64();
            }
        }
    }
}

/// A table whose lookups are compiled into the loop that measures them: one dynamic call for many
/// lookups instead of one for each.
trait Measurable<A> {
    /// Looks up all addresses; returns the sum of the results.
    fn pass(&self, addresses: &[A], pattern: Pattern) -> u64;
    fn memory_bytes(&self) -> usize;
}

impl<A: Address, F: Fib<A>> Measurable<A> for F {
    fn pass(&self, addresses: &[A], pattern: Pattern) -> u64 {
        match pattern {
            Pattern::Single => addresses.iter().map(|&address| worth(self.lookup(address))).sum(),
            Pattern::Batch => {
                let mut next_hops = [None; BATCH];
                let mut sum = 0;
                for addresses in addresses.chunks(BATCH) {
                    let next_hops = &mut next_hops[..addresses.len()];
                    self.lookup_batch(addresses, next_hops);
                    sum += next_hops.iter().map(|&next_hop| worth(next_hop)).sum::<u64>();
                }
                sum
            }
            Pattern::Keyed => {
                let (mut sum, mut key) = (0, 0);
                for &address in addresses {
                    // The key is always 0, but the compiler cannot know that: there are few next
                    // hops. It changes the first bits, because not all tables read the others.
                    let found = worth(self.lookup(A::from_bits(address.to_bits() ^ key)));
                    key = u128::from(found >> 20) << (A::BITS - 12);
                    sum += found;
                }
                sum
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        Fib::memory_bytes(self)
    }
}

fn worth(next_hop: Option<NextHop>) -> u64 {
    NextHop::pack(next_hop).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_algorithms_of_a_family_agree_and_report_rates() {
        let tables = [Family::Inet, Family::Inet6].map(|family| Table { family, routes: 8 });
        let question = Question {
            tables: tables.to_vec(),
            algorithms: Algorithm::ALL.to_vec(),
            destinations: 1000,
            time: Duration::ZERO,
            rounds: 2,
            seed: 1,
        };
        let figures = fib(&question);
        assert_eq!(figures.len(), 2 * 6 * Pattern::ALL.len());
        assert!(figures.iter().all(|figure| figure.rates_per_second.len() == 2));
        assert!(figures.iter().flat_map(|figure| &figure.rates_per_second).all(|&rate| rate > 0.0));
        let published = figures.iter().filter(|figure| figure.published().is_some()).count();
        assert_eq!(published, (4 + 2) * Pattern::ALL.len());
    }
}
