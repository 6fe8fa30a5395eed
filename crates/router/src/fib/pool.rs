//! An array from which runs of elements are allocated and released.

use super::table::Array;
use std::ops::{Index, IndexMut};

/// The array, and its free runs.
#[derive(Clone, Debug)]
pub(crate) struct Pool<T> {
    places: Array<T>,
    /// Positions of free runs, by length.
    free: Vec<Vec<u32>>,
}

impl<T: Copy + Default> Pool<T> {
    /// Creates an empty pool; released runs are no longer than `longest`.
    pub(crate) fn new(longest: usize) -> Pool<T> {
        Pool { places: Array::new(), free: vec![Vec::new(); longest + 1] }
    }

    /// Allocates a run and returns its position; one longer than the pool's maximum can't be
    /// released. Its contents are unspecified.
    pub(crate) fn allocate(&mut self, length: usize) -> u32 {
        if length == 0 {
            return 0;
        }
        if let Some(place) = self.free.get_mut(length).and_then(Vec::pop) {
            return place;
        }
        // Split a longer run before growing the array.
        let mut longer = length + 1..self.free.len();
        if let Some((long, place)) = longer.find_map(|long| Some((long, self.free[long].pop()?))) {
            self.free[long - length].push(place + length as u32);
            return place;
        }
        let place = self.places.len();
        self.places.extend(length, T::default());
        place as u32
    }

    /// Writes all or part of a run.
    pub(crate) fn write(&mut self, place: u32, values: &[T]) {
        let place = place as usize;
        self.places[place..place + values.len()].copy_from_slice(values);
    }

    /// Releases an entire run.
    pub(crate) fn release(&mut self, place: u32, length: usize) {
        if length > 0 {
            self.free[length].push(place);
        }
    }

    /// Number of elements, including free ones.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// As [`Array::settle`].
    pub(crate) fn settle(&self) {
        self.places.settle();
    }

    /// Memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        self.places.memory_bytes() + free * size_of::<u32>()
    }
}

impl<T> Index<u32> for Pool<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, place: u32) -> &T {
        &self.places[place as usize]
    }
}

impl<T> IndexMut<u32> for Pool<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.places[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_runs_are_reused() {
        let mut pool: Pool<u32> = Pool::new(64);
        let run = pool.allocate(10);
        pool.release(run, 10);
        assert_eq!(pool.allocate(4), run, "divided");
        assert_eq!(pool.allocate(6), run + 4, "the rest of it");
        assert_eq!(pool.allocate(1), run + 10, "nothing free: the array grows");
    }
}
