//! Rate limits by peer: one peer's packets do not use up another's limit.

use super::limit::{Rate, TokenBucket};
use std::collections::HashMap;

/// Maximum number of peers known at a time.
const PEERS_MAX: usize = 1024;

/// A peer: addresses, as numbers.
pub(super) type Peer = [u128; 2];

/// Token buckets of peers.
///
/// A full table is emptied, so that every peer has a full bucket again: a flood from invented
/// addresses lifts limits for a moment, and locks out no one.
#[derive(Debug)]
pub(super) struct PeerLimits {
    rate: Rate,
    buckets: HashMap<Peer, TokenBucket>,
}

impl PeerLimits {
    /// A limit that each peer has for itself.
    pub(super) fn new(rate: Rate) -> PeerLimits {
        PeerLimits { rate, buckets: HashMap::new() }
    }

    /// Takes a token of a peer; returns true if a packet may be sent to it at this time.
    pub(super) fn take(&mut self, peer: Peer, now_ns: u64) -> bool {
        if self.buckets.len() >= PEERS_MAX && !self.buckets.contains_key(&peer) {
            self.buckets.clear();
        }
        let new = || TokenBucket::new(self.rate);
        self.buckets.entry(peer).or_insert_with(new).take(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_have_separate_limits_in_bounded_memory() {
        let mut limits = PeerLimits::new(Rate { per_second: 10, burst: 3 });
        let mut taken = |peer, tries| (0..tries).filter(|_| limits.take([peer, 7], 5)).count();
        assert_eq!((taken(0, 9), taken(0, 9), taken(1, 9)), (3, 0, 3));
        let others: usize = (2..10 * PEERS_MAX as u128).map(|peer| taken(peer, 1)).sum();
        assert_eq!(others, 10 * PEERS_MAX - 2, "no one is locked out");
        assert!(limits.buckets.len() <= PEERS_MAX);
    }
}
