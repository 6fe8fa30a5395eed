//! Builds and releases tables and lines.

use super::{DEEPER, Multibit, ROOT_BITS, STRIDES, TABLE, UNIT, is_table, place, slot, stride};
use crate::fib::expansion::{Node, below};
use crate::fib::line::{Line, RANGES, Range, bounds, ranges};
use crate::fib::pool::Pool;
use crate::fib::rib::Route;
use crate::fib::{Prefix, V6};

impl Multibit {
    /// Recompiles everything within `prefix`, of at most 24 bits.
    pub(super) fn compile(&mut self, prefix: Prefix<V6>) {
        let slots = slot(prefix.address())..=slot(prefix.last());
        let Multibit { rib, root, entries, lines } = self;
        let slots = &mut root[slots];
        let mut further = Further { entries, lines };
        for entry in slots.iter() {
            further.release(*entry);
        }
        let (inherited, routes) = below(rib, prefix);
        slots.fill(inherited);
        let node = Node { address: prefix.address(), at: 0, stride: ROOT_BITS };
        node.expand(&routes, slots, |slot, address, routes| {
            *slot = further.build(Place { address, at: ROOT_BITS, inherited: *slot }, routes);
        });
    }
}

/// Addresses that an entry covers.
#[derive(Clone, Copy)]
struct Place {
    /// First address.
    address: V6,
    /// Bits that all of these addresses share.
    at: u8,
    /// Next hop of these addresses without the routes within, packed.
    inherited: u32,
}

impl Place {
    /// Ranges of these addresses, if a line can represent them.
    fn ranges(&self, routes: &[Route<V6>]) -> Option<Vec<Range>> {
        ranges(bounds(self.address, self.at), self.inherited, routes)
    }
}

/// Tables and lines below the first table.
struct Further<'a> {
    entries: &'a mut Pool<u32>,
    lines: &'a mut Pool<Line>,
}

impl Further<'_> {
    /// Builds the line or the table of `routes`, all within `place` and longer than it; returns the
    /// entry that points to it.
    fn build(&mut self, place: Place, routes: &[Route<V6>]) -> u32 {
        match place.ranges(routes) {
            Some(ranges) if ranges.len() == 1 => ranges[0].raw.into(),
            Some(ranges) if ranges.len() <= RANGES => self.line(&ranges),
            Some(ranges) => self.table(place, stride_for(place.at, &ranges), routes),
            None => self.table(place, 8, routes),
        }
    }

    fn line(&mut self, ranges: &[Range]) -> u32 {
        let place = self.lines.allocate(1);
        assert!(place < TABLE ^ DEEPER, "too many lines");
        self.lines.write(place, &[Line::of(ranges)]);
        place | DEEPER
    }

    fn table(&mut self, place: Place, stride: u8, routes: &[Route<V6>]) -> u32 {
        let Place { address, at, inherited } = place;
        let table = self.entries.allocate(1 << stride);
        assert!(table / UNIT < 1 << 26, "too many tables");
        let mut slots = vec![inherited; 1 << stride];
        let mut shared = Shared::default();
        let at = at + stride;
        let node = Node { address, at: place.at, stride };
        node.expand(routes, &mut slots, |slot, address, routes| {
            let place = Place { address, at, inherited: *slot };
            match place.ranges(routes) {
                Some(ranges) if ranges.len() <= RANGES => {
                    *slot = match ranges.as_slice() {
                        [only] => only.raw.into(),
                        ranges => shared.line(self, ranges),
                    };
                }
                _ => *slot = self.build(place, routes),
            }
        });
        self.entries.write(table, &slots);
        TABLE | (u32::from(stride) << 26) | (table / UNIT)
    }

    /// Releases everything that `entry` points to.
    fn release(&mut self, entry: u32) {
        if is_table(entry) {
            let count = 1 << stride(entry);
            let mut line = 0;
            for at in place(entry)..place(entry) + count {
                let entry = self.entries[at];
                // Slots that share a line need not be adjacent.
                if entry != line {
                    self.release(entry);
                }
                line = if is_line(entry) { entry } else { line };
            }
            self.entries.release(place(entry), count as usize);
        } else if is_line(entry) {
            self.lines.release(entry & !DEEPER, 1);
        }
    }
}

/// True if `entry` points to a line.
fn is_line(entry: u32) -> bool {
    entry & TABLE == DEEPER
}

/// The line that slots of one table share until it is full.
#[derive(Default)]
struct Shared {
    ranges: Vec<Range>,
    entry: u32,
}

impl Shared {
    /// Returns the entry of the line that contains the ranges of the next slot.
    fn line(&mut self, further: &mut Further<'_>, ranges: &[Range]) -> u32 {
        if self.ranges.is_empty() || self.ranges.len() + ranges.len() > RANGES {
            self.ranges.clear();
            self.entry = further.line(ranges);
        }
        self.ranges.extend(ranges);
        further.lines.write(self.entry & !DEEPER, &[Line::of(&self.ranges)]);
        self.entry
    }
}

/// Maximum number of a table's entries for each range in it.
const SPARSE: usize = 32;

/// The smallest number of bits after the first `at` that leaves hardly any slot with more ranges
/// than fit on a line, limited so that the table is not mostly empty.
fn stride_for(at: u8, ranges: &[Range]) -> u8 {
    let fits = |stride: &u8| {
        let slot = |range: &Range| range.first << at >> (64 - stride);
        let slots = ranges.chunk_by(|a, b| slot(a) == slot(b));
        // One more range, which begins before the slot.
        let beyond: usize = slots.map(<[Range]>::len).filter(|&len| len >= RANGES).sum();
        beyond * 32 < ranges.len()
    };
    let most = ((ranges.len() * SPARSE).ilog2() as u8).min(*STRIDES.end());
    (*STRIDES.start()..most).find(fits).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::{Batch, Change, Fib, NextHop};

    /// A table that changes back and forth does not grow.
    #[test]
    fn released_memory_is_reused() {
        let mut fib = Multibit::new();
        let routes: Vec<(Prefix<V6>, NextHop)> = (0..4096_u32)
            .filter_map(|n| {
                let address = V6(0x2001 << 112 | u128::from(n * n) << 76);
                let length = 40 + (n % 50) as u8;
                Some((Prefix::containing(address, length), NextHop::new(n % 7)?))
            })
            .collect();
        let gone: Batch<V6> = routes.iter().map(|&(prefix, _)| Change::Remove(prefix)).collect();
        fib.apply(&routes.iter().copied().collect());
        fib.apply(&gone);
        let places = (fib.entries.len(), fib.lines.len());
        assert!(places.0 > 1000 && places.1 > 100, "{places:?}");
        for _ in 0..3 {
            fib.apply(&routes.iter().copied().collect());
            fib.apply(&gone);
        }
        assert_eq!(places, (fib.entries.len(), fib.lines.len()));
    }
}
