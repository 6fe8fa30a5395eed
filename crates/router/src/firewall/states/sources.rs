//! Number of connections that each source has begun, to limit its share.
//!
//! A secret hash maps sources to counters, of which there are as many as ports: sources with the
//! same counter share one count. An IPv6 source is its /64, as a host with one address there can
//! use any.

use super::key::{Key, Seed};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Number of counters: a power of two.
const PLACES: usize = 1 << 16;

/// Connections by source.
#[derive(Debug)]
pub(in crate::firewall) struct Sources {
    counts: Box<[AtomicU32]>,
    multiplier: u64,
    limit: u32,
}

impl Sources {
    /// `None` if there is no limit.
    pub(super) fn new(limit: u32, seed: &Seed) -> Option<Sources> {
        (limit > 0).then(|| Sources {
            counts: (0..PLACES).map(|_| AtomicU32::new(0)).collect(),
            multiplier: seed.multiplier(),
            limit,
        })
    }

    fn count<const N: usize>(&self, key: &Key<N>) -> &AtomicU32 {
        let spread = (key.source() ^ self.multiplier >> 32).wrapping_mul(self.multiplier);
        &self.counts[(spread >> 48) as usize % PLACES]
    }

    /// True if the source of this key may begin another connection.
    pub(super) fn have_room<const N: usize>(&self, key: &Key<N>) -> bool {
        self.count(key).load(Relaxed) < self.limit
    }

    pub(super) fn enter<const N: usize>(&self, key: &Key<N>) {
        self.count(key).fetch_add(1, Relaxed);
    }

    pub(super) fn leave<const N: usize>(&self, key: &Key<N>) {
        self.count(key).fetch_sub(1, Relaxed);
    }
}
