//! A trie with variable steps, compressed in both directions.
//!
//! Level compression: a node decides on as many bits in one step as its routes fill. Path
//! compression: bits that all routes of a node share are not decided on; they are skipped, and
//! compared on the way down. Nilsson, Karlsson, "IP-Address Lookup Using LC-Tries", IEEE JSAC 17
//! (6), 1999. Written from the paper. Differences: a cell contains the bits that it skips, and
//! points to the next hop of addresses that differ in them, so one descent is enough and nothing is
//! read twice; the last cell of a path contains next hops itself, or points to a line of a few
//! ranges ([`super::line`]).
//!
//! Each step reads one cell of 8 bytes. For the first steps the choice of cells is data to the CPU,
//! not a branch, so it reads ahead for the following lookups.

mod build;

use super::line::{Line, high};
use super::table::Array;
use super::{Address, NextHop};
use std::hint::select_unpredictable;

/// Maximum number of bits that one cell skips.
const SKIP_MAX: u8 = 24;
/// Maximum number of bits that a node decides on, except a root.
const BRANCH_MAX: u8 = 12;
/// An address is processed in halves of this many bits; no step spans both.
const HALF: u8 = 64;

/// A step of the descent in 64 bits: the bits it skips, and what follows.
///
/// | bits | a node | a line | next hops | other |
/// |---|---|---|---|---|
/// | 63 to 62 | 11 | 10 | 00 | 01 |
/// | 61 to 57 | number of skipped bits | 0 | as in a node | 0: a high next hop, 1: the second half |
/// | 56 to 33 | their values, left-aligned | | as in a node | |
/// | 32 to 28 | bits to decide on | | | |
/// | 27 to 0 | index of the first cell | of the line | | of a cell; or a next hop, packed, in 31 bits |
/// | 31 to 16 | | | of addresses with the skipped bits, packed | |
/// | 15 to 0 | | | of the others, packed | |
///
/// The cell before the first cell of a node that skips bits is for addresses that differ in them.
/// The cell of no next hop is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell(u64);

const OTHER: u64 = 1 << 62;
const LINE: u64 = 2 << 62;
const NODE: u64 = 3 << 62;
const SECOND_HALF: u64 = 1 << 57;
const PLACES: u32 = 1 << 28;

impl Cell {
    /// True if further cells follow.
    #[inline(always)]
    pub(crate) fn is_node(self) -> bool {
        self.0 >= NODE
    }

    #[inline(always)]
    fn skip(self) -> u8 {
        (self.0 >> 57) as u8 & 31
    }

    #[inline(always)]
    fn branch(self) -> u8 {
        (self.0 >> 28) as u8 & 31
    }

    #[inline(always)]
    fn place(self) -> u32 {
        self.0 as u32 & (PLACES - 1)
    }

    /// True if `rest` begins with the skipped bits.
    #[inline(always)]
    fn matches(self, rest: u64) -> bool {
        (rest ^ (self.0 << 7)) >> 1 >> (63 - self.skip()) == 0
    }
}

/// An address during the descent: a cell, and the remaining bits of a half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    pub(crate) cell: Cell,
    pub(crate) rest: u64,
}

impl Way {
    /// Index of the next cell, if this one is a node, and the bits that remain after it.
    #[inline(always)]
    fn next(self) -> (u32, u64) {
        let Way { cell, rest } = self;
        let within = rest << cell.skip();
        let slot = (within >> 1 >> (63 - cell.branch())) as u32;
        let slot = select_unpredictable(cell.matches(rest), slot, u32::MAX);
        (cell.place().wrapping_add(slot), within << cell.branch())
    }
}

/// Steps below the root that suffice for nearly all paths in large tables.
#[inline(always)]
fn steps<A: Address>() -> usize {
    if A::BITS > HALF { 2 } else { 1 }
}

/// Cells of all nodes.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// The first one is unused.
    cells: Array<Cell>,
    /// The first one is unused.
    lines: Array<Line>,
}

impl Cells {
    /// Starts the descent of `address` below the root. The root is the same for all addresses: this
    /// branch is always predicted.
    #[inline(always)]
    pub(crate) fn enter<A: Address>(&self, root: Cell, address: A) -> Way {
        let way = Way { cell: root, rest: high(address) };
        if !root.is_node() {
            return way;
        }
        let (place, rest) = way.next();
        Way { cell: self.cells[place as usize], rest }
    }

    /// Takes a step down; a path without further cells is unchanged.
    #[inline(always)]
    pub(crate) fn step(&self, way: Way) -> Way {
        let Way { cell, rest } = way;
        let (place, within) = way.next();
        // The first cell is a dummy that is read and ignored.
        let next = self.cells[select_unpredictable(cell.is_node(), place, 0) as usize];
        Way {
            cell: Cell(select_unpredictable(cell.is_node(), next.0, cell.0)),
            rest: select_unpredictable(cell.is_node(), within, rest),
        }
    }

    /// Next hop, packed, at the end of a path, where [`Cell::is_node`] is false.
    #[inline(always)]
    pub(crate) fn end<A: Address>(&self, way: Way, address: A) -> u32 {
        let Way { cell, rest } = way;
        if cell.0 >> 62 == OTHER >> 62 {
            return self.other(cell, address);
        }
        let on_line = cell.0 >= LINE;
        let line = &self.lines[select_unpredictable(on_line, cell.place(), 0) as usize];
        let pair = cell.0 as u32;
        let either = select_unpredictable(cell.matches(rest), pair >> 16, pair & 0xffff);
        select_unpredictable(on_line, line.find(high(address)), either)
    }

    /// As [`Cells::end`] for a cell that does not contain two next hops.
    #[cold]
    #[inline(never)]
    fn other<A: Address>(&self, cell: Cell, address: A) -> u32 {
        if cell.0 & SECOND_HALF == 0 {
            return cell.0 as u32;
        }
        let mut way =
            Way { cell: self.cells[cell.place() as usize], rest: address.to_bits() as u64 };
        while way.cell.is_node() {
            way = self.step(way);
        }
        self.end(way, address)
    }

    /// Completes the descent: some steps whether needed or not, then the rest.
    #[inline(always)]
    pub(crate) fn lookup<A: Address>(&self, mut way: Way, address: A) -> Option<NextHop> {
        for _ in 0..steps::<A>() {
            way = self.step(way);
        }
        while way.cell.is_node() {
            way = self.step(way);
        }
        NextHop::unpack(self.end(way, address))
    }

    /// Descends for several addresses in parallel.
    #[inline(always)]
    pub(crate) fn lookups<A: Address, const LANES: usize>(
        &self,
        ways: &mut [Way; LANES],
        addresses: &[A; LANES],
        next_hops: &mut [Option<NextHop>; LANES],
    ) {
        for _ in 0..steps::<A>() {
            for way in &mut *ways {
                *way = self.step(*way);
            }
        }
        while ways.iter().any(|way| way.cell.is_node()) {
            for way in &mut *ways {
                *way = self.step(*way);
            }
        }
        for lane in 0..LANES {
            next_hops[lane] = NextHop::unpack(self.end(ways[lane], addresses[lane]));
        }
    }
}
