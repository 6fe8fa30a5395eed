//! Rate limits of the slow path.

/// A rate and a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Packets per second in the long run; 0 for none after the burst.
    pub per_second: u32,
    /// Maximum number of packets in a burst after silence.
    pub burst: u32,
}

/// Defaults like a kernel's: 1000 messages per second, bursts of 50.
impl Default for Rate {
    fn default() -> Rate {
        Rate { per_second: 1000, burst: 50 }
    }
}

/// Credit for one packet: one nanosecond at a rate of one per second.
const PACKET: u64 = 1_000_000_000;

/// A token bucket; the caller provides the time.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct TokenBucket {
    rate: Rate,
    credit: u64,
    last_ns: u64,
}

impl TokenBucket {
    /// A full bucket.
    pub(in super::super) fn new(rate: Rate) -> TokenBucket {
        TokenBucket { rate, credit: u64::from(rate.burst) * PACKET, last_ns: 0 }
    }

    /// Takes a token; returns true if a packet may be sent at this time.
    pub(in super::super) fn take(&mut self, now_ns: u64) -> bool {
        let passed = now_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now_ns);
        let earned = passed.saturating_mul(self.rate.per_second.into());
        let full = u64::from(self.rate.burst) * PACKET;
        self.credit = self.credit.saturating_add(earned).min(full);
        let enough = self.credit >= PACKET;
        if enough {
            self.credit -= PACKET;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bucket_allows_a_burst_then_the_rate() {
        let mut bucket = TokenBucket::new(Rate { per_second: 10, burst: 3 });
        let mut taken = |now_ns, tries| (0..tries).filter(|_| bucket.take(now_ns)).count();
        assert_eq!(taken(5, 10), 3);
        assert_eq!(taken(99_999_999, 10), 0);
        assert_eq!(taken(100_000_005, 10), 1);
        assert_eq!(taken(300_000_005, 10), 2);
        // Time that goes backwards earns nothing, and silence earns at most the burst.
        assert_eq!(taken(0, 10), 0);
        assert_eq!(taken(300_000_005, 10), 0);
        assert_eq!(taken(u64::MAX, 10), 3);
    }
}
