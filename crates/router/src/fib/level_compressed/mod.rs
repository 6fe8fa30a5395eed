//! A trie of variable steps, pressed together in both directions.
//!
//! Level compression: a node decides on as many bits at once as its routes fill.
//! Path compression: bits that all routes of a node share are not decided on; they
//! are skipped, and compared on the way. Nilsson, Karlsson, "IP-Address Lookup Using
//! LC-Tries", IEEE JSAC 17 (6), 1999. Written from the paper. Different here: a cell
//! holds the bits that it skips, and leads to what an address has that differs in
//! them, so one way down answers, and nothing is looked at twice; the last cell of a
//! way holds next hops itself, or leads to a line of a few ranges ([`super::line`]).
//!
//! One cell of 8 bytes is read for each step. Which cells a way has is data to the
//! CPU, not a branch, for the first steps: it reads ahead for the lookups to come.

mod build;

use super::line::{Line, high};
use super::table::Array;
use super::{Address, NextHop};
use std::hint::select_unpredictable;

/// Most bits that one cell skips.
const SKIP_MAX: u8 = 24;
/// Most bits that a node decides on, but for a root.
const BRANCH_MAX: u8 = 12;
/// An address is worked on in halves of so many bits; no step lies in both.
const HALF: u8 = 64;

/// What is found on the way down, in 64 bits: what it skips, and what comes next.
///
/// | bits | a node | a line | next hops | other |
/// |---|---|---|---|---|
/// | 63 to 62 | 11 | 10 | 00 | 01 |
/// | 61 to 57 | bits that are skipped | 0 | as in a node | 0: a high next hop, 1: the second half |
/// | 56 to 33 | what they are, from the left | | as in a node | |
/// | 32 to 28 | bits to decide on | | | |
/// | 27 to 0 | place of the first cell | of the line | | of a cell; or a next hop, packed, in 31 bits |
/// | 31 to 16 | | | of addresses with the skipped bits, packed | |
/// | 15 to 0 | | | of the others, packed | |
///
/// Before the first cell of a node that skips bits lies the one for addresses that
/// differ in them. The cell of no next hop is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell(u64);

const OTHER: u64 = 1 << 62;
const LINE: u64 = 2 << 62;
const NODE: u64 = 3 << 62;
const SECOND_HALF: u64 = 1 << 57;
const PLACES: u32 = 1 << 28;

impl Cell {
    /// True when further cells follow.
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

    /// True when `rest` begins with the bits that are skipped.
    #[inline(always)]
    fn matches(self, rest: u64) -> bool {
        (rest ^ (self.0 << 7)) >> 1 >> (63 - self.skip()) == 0
    }
}

/// An address on its way down: a cell, and the bits that are left of a half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    pub(crate) cell: Cell,
    pub(crate) rest: u64,
}

impl Way {
    /// Where the next cell is, if this one is a node, and what is left after it.
    #[inline(always)]
    fn next(self) -> (u32, u64) {
        let Way { cell, rest } = self;
        let within = rest << cell.skip();
        let slot = (within >> 1 >> (63 - cell.branch())) as u32;
        let slot = select_unpredictable(cell.matches(rest), slot, u32::MAX);
        (cell.place().wrapping_add(slot), within << cell.branch())
    }
}

/// Steps below the root that nearly all ways in large tables have at most.
#[inline(always)]
fn steps<A: Address>() -> usize {
    if A::BITS > HALF { 2 } else { 1 }
}

/// The cells of all nodes.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// The first one is nobody's.
    cells: Array<Cell>,
    /// The first one is nobody's.
    lines: Array<Line>,
}

impl Cells {
    /// The way of `address` below the root, which is the same for all: the one branch
    /// that is always predicted.
    #[inline(always)]
    pub(crate) fn enter<A: Address>(&self, root: Cell, address: A) -> Way {
        let way = Way { cell: root, rest: high(address) };
        if !root.is_node() {
            return way;
        }
        let (place, rest) = way.next();
        Way { cell: self.cells[place as usize], rest }
    }

    /// A step down, if the way goes on; what has no further cells stays as it is.
    #[inline(always)]
    pub(crate) fn step(&self, way: Way) -> Way {
        let Way { cell, rest } = way;
        let (place, within) = way.next();
        // The first cell is a dummy: read and ignored.
        let next = self.cells[select_unpredictable(cell.is_node(), place, 0) as usize];
        Way {
            cell: Cell(select_unpredictable(cell.is_node(), next.0, cell.0)),
            rest: select_unpredictable(cell.is_node(), within, rest),
        }
    }

    /// The next hop, packed, at the end of a way: where [`Cell::is_node`] is false.
    #[inline(always)]
    pub(crate) fn end<A: Address>(&self, way: Way, address: A) -> u32 {
        let Way { cell, rest } = way;
        if cell.0 >> 62 == OTHER >> 62 {
            return self.other(cell, address);
        }
        let on_line = cell.0 >= LINE;
        let line = &self.lines[select_unpredictable(on_line, cell.place(), 0) as usize];
        let both = cell.0 as u32;
        let either = select_unpredictable(cell.matches(rest), both >> 16, both & 0xffff);
        select_unpredictable(on_line, line.find(high(address)), either)
    }

    /// The same where the cell says neither of two next hops.
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

    /// The whole way: some steps whether needed or not, then what is left.
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

    /// The ways of several addresses beside each other.
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
