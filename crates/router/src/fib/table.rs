//! Arrays of entries that make up multi-bit tables.

use fwdlab_netio::memory::{move_to_huge_pages, prefer_huge_pages};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Entries per chunk that a copy checks for contents.
const PART: usize = 1 << 10;

/// Set in an entry that points to a further table; the other bits are its index.
pub(crate) const DEEPER: u32 = 1 << 31;

/// The first table: one entry for each value of an address's first bits. Its size
/// is a constant, so an index of that many bits needs no bounds check.
pub(crate) struct Root<const N: usize>(Box<[u32; N]>);

impl<const N: usize> Root<N> {
    /// Creates a table with all entries 0, in huge pages if possible.
    pub(crate) fn new() -> Root<N> {
        // Do not move existing pages: much of the table may never be written.
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
        // Nor touch pages by copying zeros.
        for (to, from) in copy.chunks_mut(PART).zip(self.chunks(PART)) {
            if from.iter().any(|&entry| entry != 0) {
                to.copy_from_slice(from);
            }
        }
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

/// An array that can be moved to huge pages: a lookup at random positions in megabytes of small
/// pages spends more time on address translation than on reading.
#[derive(Debug)]
pub(crate) struct Array<T>(Vec<T>);

impl<T: Clone> Array<T> {
    /// Creates an empty array.
    pub(crate) fn new() -> Array<T> {
        Array(Vec::new())
    }

    /// Appends one element.
    pub(crate) fn push(&mut self, value: T) {
        self.0.push(value);
    }

    /// Appends `count` copies of `value`.
    pub(crate) fn extend(&mut self, count: usize, value: T) {
        self.0.resize(self.0.len() + count, value);
    }

    /// Call this when most of the array has been written. Elements appended later may stay in small
    /// pages.
    pub(crate) fn settle(&self) {
        move_to_huge_pages(&self.0);
    }

    /// Memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<T>()
    }
}

impl<T: Clone> Clone for Array<T> {
    fn clone(&self) -> Array<T> {
        Array::from(self.0.clone())
    }
}

impl<T: Clone> From<Vec<T>> for Array<T> {
    fn from(values: Vec<T>) -> Array<T> {
        let array = Array(values);
        array.settle();
        array
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// Tables of 256 entries, for eight further bits each.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    tables: Array<[u32; 256]>,
    free: Vec<u32>,
}

impl Groups {
    /// No tables.
    pub(crate) fn new() -> Groups {
        Groups { tables: Array::new(), free: Vec::new() }
    }

    /// Adds a table with all entries `raw`; returns the entry that points to it.
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

    /// Releases the table that `entry` points to.
    pub(crate) fn release(&mut self, entry: u32) {
        self.free.push(entry & !DEEPER);
    }

    /// Table that `entry` points to.
    #[inline(always)]
    pub(crate) fn table(&self, entry: u32) -> &[u32; 256] {
        &self.tables[(entry & !DEEPER) as usize]
    }

    /// Mutable table that `entry` points to.
    pub(crate) fn table_mut(&mut self, entry: u32) -> &mut [u32; 256] {
        &mut self.tables[(entry & !DEEPER) as usize]
    }

    /// As [`Array::settle`].
    pub(crate) fn settle(&self) {
        self.tables.settle();
    }

    /// Memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.tables.memory_bytes() + self.free.capacity() * size_of::<u32>()
    }
}
