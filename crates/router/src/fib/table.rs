//! Arrays of entries that multi-bit tables consist of.

use fwdlab_port::memory::prefer_huge_pages;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Set in an entry that leads to a further table; the other bits say which.
pub(crate) const DEEPER: u32 = 1 << 31;

/// The first table: one entry for each value of an address's first bits. Its size
/// is a constant, so an index of that many bits needs no bounds check.
pub(crate) struct Root<const N: usize>(Box<[u32; N]>);

impl<const N: usize> Root<N> {
    /// All entries 0, in huge pages where possible.
    pub(crate) fn new() -> Root<N> {
        let entries = vec![0; N].into_boxed_slice();
        prefer_huge_pages(&entries);
        match entries.try_into() {
            Ok(entries) => Root(entries),
            Err(_) => unreachable!("made of N entries"),
        }
    }
}

impl<const N: usize> Clone for Root<N> {
    fn clone(&self) -> Root<N> {
        let mut copy = Root::new();
        copy.copy_from_slice(&**self);
        copy
    }
}

impl<const N: usize> Deref for Root<N> {
    type Target = [u32; N];

    #[inline(always)]
    fn deref(&self) -> &[u32; N] {
        &self.0
    }
}

impl<const N: usize> DerefMut for Root<N> {
    fn deref_mut(&mut self) -> &mut [u32; N] {
        &mut self.0
    }
}

impl<const N: usize> fmt::Debug for Root<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root({N} entries)")
    }
}

/// Tables of 256 entries, for eight more bits each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    tables: Vec<[u32; 256]>,
    free: Vec<u32>,
}

impl Groups {
    /// A table with all entries `raw`; returns the entry that leads there.
    pub(crate) fn allocate(&mut self, raw: u32) -> u32 {
        let group = match self.free.pop() {
            Some(group) => group,
            None => {
                self.tables.push([0; 256]);
                (self.tables.len() - 1) as u32
            }
        };
        self.tables[group as usize] = [raw; 256];
        group | DEEPER
    }

    /// Gives the table back that `entry` leads to.
    pub(crate) fn release(&mut self, entry: u32) {
        self.free.push(entry & !DEEPER);
    }

    /// The table that `entry` leads to.
    #[inline(always)]
    pub(crate) fn table(&self, entry: u32) -> &[u32; 256] {
        &self.tables[(entry & !DEEPER) as usize]
    }

    /// The same, to be changed.
    pub(crate) fn table_mut(&mut self, entry: u32) -> &mut [u32; 256] {
        &mut self.tables[(entry & !DEEPER) as usize]
    }

    /// Memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.tables.capacity() * size_of::<[u32; 256]>() + self.free.capacity() * size_of::<u32>()
    }
}
