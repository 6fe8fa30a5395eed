//! A multi-bit trie for IPv6: 24 bits in one step, then steps of the required width, then a search
//! within one cache line.
//!
//! Srinivasan, Varghese, "Fast Address Lookups Using Controlled Prefix Expansion", ACM TOCS 17 (1),
//! 1999, with steps of variable width. Where few routes are left, tables of further bits would be
//! nearly empty, and each lookup would wait for a separate cache line; so the next hops of up to
//! eight ranges of addresses share one line, as in Lampson, Srinivasan, Varghese, "IP Lookups Using
//! Multiway and Multicolumn Search", IEEE/ACM ToN 7 (3), 1999.
//!
//! Nearly all lookups end after at most two further tables. Those are read whether needed or not: a
//! branch around them would be mispredicted, and the CPU would not read ahead for the following
//! lookups. Routes longer than 64 bits and next hops with high numbers do not fit on a line and get
//! further tables.

mod build;

use super::expansion::dirty;
use super::line::{Line, high};
use super::pool::Pool;
use super::table::{DEEPER, Root};
use super::{Address, Batch, Fib, NextHop, Prefix, Rib, V6};
use fwdlab_netio::popcount::with_popcount;
use fwdlab_netio::prefetch::prefetch;
use std::hint::select_unpredictable;

/// Bits that index the first table.
const ROOT_BITS: u8 = 24;
/// Minimum and maximum number of bits that index a further table.
const STRIDES: std::ops::RangeInclusive<u8> = 3..=12;
/// Tables below the first that every lookup reads, needed or not.
const STEPS: usize = 2;
/// Addresses that descend the trie in parallel.
const LANES: usize = 16;

/// A first table of 64 MB, further tables, and lines.
#[derive(Clone, Debug)]
pub struct Multibit {
    rib: Rib<V6>,
    root: Root<{ 1 << ROOT_BITS }>,
    /// Entries of all further tables. The first table is unused.
    entries: Pool<u32>,
    /// The first line is unused.
    lines: Pool<Line>,
}

/// Set, with [`DEEPER`], in an entry that points to a table instead of a line. Below it are four
/// bits for the width of the table's index, and 26 for its position in units of [`UNIT`].
const TABLE: u32 = DEEPER | 1 << 30;
/// Entries of the smallest table: all tables begin at multiples of it.
const UNIT: u32 = 1 << *STRIDES.start();

/// True if `entry` points to a table.
#[inline(always)]
fn is_table(entry: u32) -> bool {
    entry >= TABLE
}

/// Bits that index the table of `entry`.
#[inline(always)]
fn stride(entry: u32) -> u8 {
    (entry >> 26) as u8 % 16
}

/// Position of the table of `entry`.
#[inline(always)]
fn place(entry: u32) -> u32 {
    entry % (1 << 26) * UNIT
}

/// An address during the descent: an entry, and the first bits not yet used.
#[derive(Clone, Copy)]
struct Way {
    entry: u32,
    rest: u64,
}

impl Multibit {
    /// An empty table.
    pub fn new() -> Multibit {
        let (mut entries, mut lines) = (Pool::new(1 << STRIDES.end()), Pool::new(1));
        entries.allocate(UNIT as usize);
        lines.allocate(1);
        Multibit { rib: Rib::new(), root: Root::new(), entries, lines }
    }

    /// Builds the table from these routes.
    pub fn of(rib: Rib<V6>) -> Multibit {
        let mut fib = Multibit { rib, ..Multibit::new() };
        fib.compile(Prefix::all());
        fib.entries.settle();
        fib.lines.settle();
        fib
    }

    /// Starts the descent below the first table.
    #[inline(always)]
    fn enter(&self, address: V6) -> Way {
        Way { entry: self.root[slot(address)], rest: high(address) << ROOT_BITS }
    }

    /// Takes a step down; an entry that points to no table is unchanged.
    #[inline(always)]
    fn step(&self, Way { entry, rest }: Way) -> Way {
        let stride = stride(entry);
        let at = place(entry) + (rest >> 1 >> (63 - stride)) as u32;
        // The first table is a dummy that is read and ignored.
        let next = self.entries[select_unpredictable(is_table(entry), at, 0)];
        let entry = select_unpredictable(is_table(entry), next, entry);
        Way { entry, rest: rest << stride }
    }

    /// Entry below all tables.
    #[inline(always)]
    fn last(&self, Way { entry, .. }: Way, address: V6) -> u32 {
        if is_table(entry) { self.tables(address) } else { entry }
    }

    #[cold]
    #[inline(never)]
    fn tables(&self, address: V6) -> u32 {
        let (mut entry, mut at) = (self.root[slot(address)], ROOT_BITS);
        while is_table(entry) {
            let stride = stride(entry);
            entry = self.entries[place(entry) + address.slice(at, stride) as u32];
            at += stride;
        }
        entry
    }

    /// Next hop of an entry that points to no table.
    #[inline(always)]
    fn next_hop(&self, entry: u32, high: u64) -> Option<NextHop> {
        let on_line = entry >= DEEPER;
        let line = &self.lines[select_unpredictable(on_line, entry & !DEEPER, 0)];
        NextHop::unpack(select_unpredictable(on_line, line.find(high), entry))
    }
}

#[inline(always)]
fn slot(address: V6) -> usize {
    (high(address) >> (64 - ROOT_BITS)) as usize
}

impl Fib<V6> for Multibit {
    #[inline]
    fn lookup(&self, address: V6) -> Option<NextHop> {
        let mut path = self.enter(address);
        for _ in 0..STEPS {
            path = self.step(path);
        }
        self.next_hop(self.last(path, address), high(address))
    }

    fn lookup_batch(&self, addresses: &[V6], next_hops: &mut [Option<NextHop>]) {
        assert_eq!(addresses.len(), next_hops.len(), "one next hop for each address");
        with_popcount(
            #[inline(always)]
            || {
                let (addresses, addresses_rest) = addresses.as_chunks::<LANES>();
                let (next_hops, next_hops_rest) = next_hops.as_chunks_mut::<LANES>();
                for (addresses, next_hops) in addresses.iter().zip(next_hops) {
                    // Explicit loops: adapters that pass arrays by value copy them.
                    let mut paths = [Way { entry: 0, rest: 0 }; LANES];
                    for (path, &address) in paths.iter_mut().zip(addresses) {
                        *path = self.enter(address);
                    }
                    for _ in 0..STEPS {
                        for path in &mut paths {
                            *path = self.step(*path);
                        }
                    }
                    for lane in 0..LANES {
                        let entry = self.last(paths[lane], addresses[lane]);
                        next_hops[lane] = self.next_hop(entry, high(addresses[lane]));
                    }
                }
                for (address, next_hop) in addresses_rest.iter().zip(next_hops_rest) {
                    *next_hop = self.lookup(*address);
                }
            },
        );
    }

    fn prefetch(&self, addresses: &[V6]) {
        for &address in addresses {
            prefetch(&raw const self.root[slot(address)] as usize);
        }
    }

    fn apply(&mut self, batch: &Batch<V6>) {
        self.rib.apply(batch);
        for prefix in dirty(batch, ROOT_BITS) {
            self.compile(prefix);
        }
    }

    fn get(&self, prefix: Prefix<V6>) -> Option<NextHop> {
        self.rib.get(prefix)
    }

    fn len(&self) -> usize {
        self.rib.len()
    }

    fn memory_bytes(&self) -> usize {
        let below = self.entries.memory_bytes() + self.lines.memory_bytes();
        size_of_val(&*self.root) + below + self.rib.memory_bytes()
    }
}

impl Default for Multibit {
    fn default() -> Multibit {
        Multibit::new()
    }
}
