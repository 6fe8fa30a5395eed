//! Packets of a batch grouped by the lock of their states.

use fwdlab_netio::frame::BATCH;

/// Maximum number of lists: a power of two.
pub(in crate::firewall) const LISTS: usize = 16;

/// Places in a batch, in order within each list. Adding one has no branch.
#[derive(Debug)]
pub(in crate::firewall) struct Lists {
    /// The place after each place, and from [`BATCH`] on, the first place of each list.
    next: [u8; 2 * BATCH],
    /// The last place of each list, or the index of its first if it is empty.
    last: [u8; LISTS],
}

const _: () = assert!(LISTS <= BATCH && 2 * BATCH <= 256);

impl Lists {
    /// Empty lists.
    pub(in crate::firewall) fn new() -> Lists {
        let last = std::array::from_fn(|list| (BATCH + list) as u8);
        Lists { next: [0; 2 * BATCH], last }
    }

    /// Empties all lists.
    pub(in crate::firewall) fn clear(&mut self) {
        self.last = Lists::new().last;
    }

    /// Adds a place to a list.
    #[inline(always)]
    pub(in crate::firewall) fn push(&mut self, list: usize, place: usize) {
        let last = &mut self.last[list % LISTS];
        self.next[usize::from(*last) % (2 * BATCH)] = place as u8;
        *last = place as u8;
    }

    /// Places in a list.
    #[inline(always)]
    pub(in crate::firewall) fn iter(&self, list: usize) -> impl Iterator<Item = usize> {
        let last = self.last[list % LISTS];
        let mut at = (BATCH + list % LISTS) as u8;
        std::iter::from_fn(move || {
            if at == last {
                return None;
            }
            at = self.next[usize::from(at) % (2 * BATCH)];
            Some(usize::from(at))
        })
    }

    /// True if a list is empty.
    #[inline(always)]
    pub(in crate::firewall) fn is_empty(&self, list: usize) -> bool {
        usize::from(self.last[list % LISTS]) >= BATCH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_insertion_order() {
        let mut lists = Lists::new();
        for _ in 0..2 {
            for place in 0..BATCH {
                lists.push(place * place % 5, place);
            }
            for list in 0..LISTS {
                let expected: Vec<usize> = (0..BATCH).filter(|p| p * p % 5 == list).collect();
                assert_eq!(lists.iter(list).collect::<Vec<_>>(), expected);
                assert_eq!(lists.is_empty(list), expected.is_empty());
            }
            lists.clear();
            assert!((0..LISTS).all(|list| lists.is_empty(list)));
        }
    }
}
