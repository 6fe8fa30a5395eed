//! Builds cells from routes.

use super::{BRANCH_MAX, Cell, Cells, HALF, LINE, NODE, OTHER, PLACES, SECOND_HALF, SKIP_MAX};
use crate::fib::Address;
use crate::fib::expansion::Node;
use crate::fib::line::{Line, RANGES, bounds, ranges};
use crate::fib::rib::Route;

/// Inverse of the minimum share of a node's cells that have their own route. IPv4 routes are
/// distributed so evenly that lines hold the rest; IPv6 routes would need more steps.
fn fill<A: Address>() -> usize {
    if A::BITS > HALF { 6 } else { 2 }
}

/// Position of a cell in the trie.
#[derive(Clone, Copy)]
struct Standing {
    /// Bits of the address above the cell.
    at: u8,
    /// Next hop, packed, of the longest route that covers the whole cell.
    inherited: u32,
}

impl Cells {
    /// No cells.
    pub(crate) fn new() -> Cells {
        Cells { cells: vec![Cell(0)].into(), lines: vec![Line::default()].into() }
    }

    /// Builds the cell of `routes`, in order, and the cells below it. The first node decides on
    /// `branch` bits (up to 24), or on all bits that are left if there are fewer.
    pub(crate) fn root<A: Address>(&mut self, branch: u8, routes: &[Route<A>]) -> Cell {
        let standing = Standing { at: 0, inherited: 0 };
        self.cell(standing, &needed(0, routes), Some(branch))
    }

    /// Adds `count` cells; returns the index of the first.
    fn add(&mut self, count: usize) -> u32 {
        let place = self.cells.len();
        assert!(place + count <= PLACES as usize, "too many cells");
        self.cells.extend(count, Cell(0));
        place as u32
    }

    /// Builds the cell of a line, if there are two or more routes and they fit on one.
    fn line<A: Address>(&mut self, standing: Standing, routes: &[Route<A>]) -> Option<Cell> {
        let Standing { at, inherited } = standing;
        let [first, _, ..] = routes else { return None };
        // All addresses of a line share the first 16 bits.
        if at < 16 || routes.len() > RANGES {
            return None;
        }
        let (first, last) = bounds(first.address.masked(at), at);
        let ranges = ranges((first, last), inherited, routes)?;
        if ranges.len() > RANGES {
            return None;
        }
        let place = self.lines.len() as u64;
        assert!(place < u64::from(PLACES), "too many lines");
        self.lines.push(Line::of(&ranges));
        Some(Cell(LINE | place))
    }

    /// Builds the cell of routes of which none repeats the inherited next hop.
    fn cell<A: Address>(
        &mut self,
        Standing { at, mut inherited }: Standing,
        mut routes: &[Route<A>],
        branch: Option<u8>,
    ) -> Cell {
        while let [route, rest @ ..] = routes
            && route.length <= at
        {
            (inherited, routes) = (route.raw, rest);
        }
        match routes {
            [] => Cell::leaf(inherited),
            [first, ..] => self.way_to(Standing { at, inherited }, first, routes, branch),
        }
    }

    /// Builds the cell that leads to `routes`, of which `first` is the first; all are longer than
    /// the bits above the cell.
    fn way_to<A: Address>(
        &mut self,
        Standing { at, inherited }: Standing,
        first: &Route<A>,
        routes: &[Route<A>],
        branch: Option<u8>,
    ) -> Cell {
        if let Some(cell) = self.line(Standing { at, inherited }, routes) {
            return cell;
        }
        let end = if at < HALF { A::BITS.min(HALF) } else { A::BITS };
        let common = common(routes).min(end);
        let until = common.min(at + SKIP_MAX);
        let skipped = Skipped::of(first.address, at, until);
        let (inner, routes) = match first.length == until {
            true => (first.raw, &routes[1..]),
            false => (inherited, routes),
        };
        if routes.is_empty()
            && let Some(cell) = skipped.either(inner, inherited)
        {
            return cell;
        }
        let branch = match branch {
            _ if until < common || until == end => 0,
            Some(bits) => bits.min(end - until),
            None => branching(until, end, routes),
        };
        let before = usize::from(skipped.bits > 0);
        let count = 1 << branch;
        let place = self.add(before + count);
        if before > 0 {
            self.cells[place as usize] = Cell::leaf(inherited);
        }
        let place = place + before as u32;
        self.children(place, Standing { at: until, inherited: inner }, branch, routes);
        skipped.node(branch, place)
    }

    /// Writes the cells of a node from `place` on.
    fn children<A: Address>(
        &mut self,
        place: u32,
        Standing { at, inherited }: Standing,
        branch: u8,
        routes: &[Route<A>],
    ) {
        if branch == 0 {
            self.cells[place as usize] = self.below(Standing { at, inherited }, routes);
            return;
        }
        let mut slots = vec![inherited; 1 << branch];
        let address = routes.first().map_or(A::default(), |route| route.address.masked(at));
        let mut deeper = Vec::new();
        Node { address, at, stride: branch }.expand(routes, &mut slots, |slot, address, routes| {
            deeper.push((address.slice(at, branch) as u32, *slot, routes));
        });
        for (slot, raw) in (place..).zip(slots) {
            self.cells[slot as usize] = Cell::leaf(raw);
        }
        for (slot, inherited, routes) in deeper {
            self.cells[(place + slot) as usize] =
                self.below(Standing { at: at + branch, inherited }, routes);
        }
    }

    /// Builds a cell below another one: the first cell of the second half is stored separately.
    fn below<A: Address>(&mut self, standing: Standing, routes: &[Route<A>]) -> Cell {
        let longer = routes.last().is_some_and(|route| route.length > HALF);
        if standing.at != HALF || !longer {
            return self.cell(standing, routes, None);
        }
        let place = self.add(1);
        self.cells[place as usize] = self.cell(standing, routes, None);
        Cell(OTHER | SECOND_HALF | u64::from(place))
    }

    /// Call this when most cells have been built.
    pub(crate) fn settle(&self) {
        self.cells.settle();
        self.lines.settle();
    }

    /// Memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.cells.memory_bytes() + self.lines.memory_bytes()
    }
}

/// Bits that a cell skips, right-aligned.
struct Skipped {
    bits: u8,
    value: u64,
}

impl Skipped {
    /// The bits of an address from `at` to `until`.
    fn of<A: Address>(address: A, at: u8, until: u8) -> Skipped {
        let bits = until - at;
        Skipped { bits, value: if bits == 0 { 0 } else { address.slice(at, bits) as u64 } }
    }

    fn cell(&self) -> u64 {
        (u64::from(self.bits) << 57) | (self.value << (57 - self.bits))
    }

    fn node(&self, branch: u8, place: u32) -> Cell {
        Cell(NODE | self.cell() | (u64::from(branch) << 28) | u64::from(place))
    }

    /// Cell of two next hops, if both are small.
    fn either(&self, inner: u32, inherited: u32) -> Option<Cell> {
        let small = |raw| u16::try_from(raw).ok().map(u64::from);
        Some(Cell(self.cell() | (small(inner)? << 16) | small(inherited)?))
    }
}

impl Cell {
    /// Cell of one next hop, packed.
    pub(crate) fn leaf(raw: u32) -> Cell {
        match (Skipped { bits: 0, value: 0 }).either(raw, raw) {
            Some(cell) => cell,
            None => Cell(OTHER | u64::from(raw)),
        }
    }
}

/// Number of leading bits that all routes have and share.
fn common<A: Address>(routes: &[Route<A>]) -> u8 {
    match routes {
        [] => 0,
        // A route that covers all others comes first.
        [first, .., last] => first.address.common(last.address).min(first.length),
        [only] => only.length,
    }
}

/// Number of bits from `at` to at most `end` on which a node should decide: the most that leave few
/// of its cells without the beginning of a route. 0 if all routes follow the same branch.
fn branching<A: Address>(at: u8, end: u8, routes: &[Route<A>]) -> u8 {
    let most = BRANCH_MAX.min(end - at);
    // Number of routes whose first difference from the preceding route is in each bit.
    let mut differing = [0; BRANCH_MAX as usize];
    for pair in routes.windows(2) {
        let bit = pair[0].address.common(pair[1].address).saturating_sub(at);
        if bit < most {
            differing[usize::from(bit)] += 1;
        }
    }
    let mut ways = 1;
    let mut branch = 0;
    for bits in 1..=most {
        ways += differing[usize::from(bits) - 1];
        if ways > 1 && ways * fill::<A>() >= 1 << bits {
            branch = bits;
        }
    }
    branch
}

/// Routes that do not repeat the next hop of the route around them.
fn needed<A: Address>(inherited: u32, routes: &[Route<A>]) -> Vec<Route<A>> {
    let mut needed = Vec::with_capacity(routes.len());
    let mut around: Vec<Route<A>> = Vec::new();
    for route in routes {
        while around.pop_if(|it| !it.address.shares(route.address, it.length)).is_some() {}
        if around.last().map_or(inherited, |it| it.raw) != route.raw {
            needed.push(*route);
            around.push(*route);
        }
    }
    needed
}
