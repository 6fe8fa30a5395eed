//! An array of which runs of places are taken and given back.

use super::table::Array;
use std::ops::{Index, IndexMut};

/// The array, and its free runs.
#[derive(Clone, Debug)]
pub(crate) struct Pool<T> {
    places: Array<T>,
    /// Places of free runs, by their length.
    free: Vec<Vec<u32>>,
}

impl<T: Copy + Default> Pool<T> {
    /// No places; runs are no longer than `longest`.
    pub(crate) fn new(longest: usize) -> Pool<T> {
        Pool { places: Array::new(), free: vec![Vec::new(); longest + 1] }
    }

    /// The place of a run; one longer than the longest can't be given back. It holds what it held before.
    pub(crate) fn allocate(&mut self, length: usize) -> u32 {
        if length == 0 {
            return 0;
        }
        if let Some(place) = self.free.get_mut(length).and_then(Vec::pop) {
            return place;
        }
        // A longer run is divided before the array grows.
        let mut longer = length + 1..self.free.len();
        if let Some((long, place)) = longer.find_map(|long| Some((long, self.free[long].pop()?))) {
            self.free[long - length].push(place + length as u32);
            return place;
        }
        let place = self.places.len();
        self.places.extend(length, T::default());
        place as u32
    }

    /// Writes a run, or a part of one.
    pub(crate) fn write(&mut self, place: u32, values: &[T]) {
        let place = place as usize;
        self.places[place..place + values.len()].copy_from_slice(values);
    }

    /// Gives a run back, whole.
    pub(crate) fn release(&mut self, place: u32, length: usize) {
        if length > 0 {
            self.free[length].push(place);
        }
    }

    /// Places, those that are free among them.
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
    fn what_is_given_back_is_used_again() {
        let mut pool: Pool<u32> = Pool::new(64);
        let run = pool.allocate(10);
        pool.release(run, 10);
        assert_eq!(pool.allocate(4), run, "divided");
        assert_eq!(pool.allocate(6), run + 4, "the rest of it");
        assert_eq!(pool.allocate(1), run + 10, "nothing free: the array grows");
    }
}
