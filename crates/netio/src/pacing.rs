//! Pacing of user-space senders: due times of packets.

/// Packets in the smallest ring on a testbed's path: veth's (`VETH_RING_SIZE` in
/// drivers/net/veth.c). Network cards have 512 and more.
const SMALLEST_RING: usize = 256;
/// Maximum burst with which one late sender catches up.
const BURST_MAX: usize = 64;

/// Maximum burst with which each of `senders` may catch up after a delay: all of them
/// together never exceed the smallest ring on the path. Further packets are given up and
/// counted as missed. A limit in time would overflow the ring at high rates, and the loss
/// would be attributed to the DUT.
pub fn burst(senders: usize) -> u32 {
    (SMALLEST_RING / senders.max(1)).clamp(1, BURST_MAX) as u32
}

/// A constant schedule: the first packet is due an interval after the start.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    interval_ns: f64,
    start_ns: u64,
    burst: u64,
    due: u64,
    missed: u64,
}

impl Pacer {
    /// Creates a schedule. `burst`: maximum number of packets in one go, see [`burst`].
    pub(crate) fn new(rate_pps: f64, start_ns: u64, burst: u32) -> Pacer {
        let burst = u64::from(burst.max(1));
        Pacer { interval_ns: 1e9 / rate_pps, start_ns, burst, due: 0, missed: 0 }
    }

    /// Returns the number of packets to send now, at most `most`.
    pub(crate) fn due(&mut self, now_ns: u64, most: usize) -> usize {
        let elapsed = now_ns.saturating_sub(self.start_ns) as f64;
        let target = (elapsed / self.interval_ns) as u64;
        let behind = target.saturating_sub(self.due);
        if behind > self.burst {
            let skip = behind - self.burst;
            self.missed += skip;
            self.due += skip;
        }
        (target.saturating_sub(self.due) as usize).min(most)
    }

    /// Returns the due times of the next packets.
    pub(crate) fn times(&self) -> Times {
        let first_ns = self.start_ns as f64 + (self.due + 1) as f64 * self.interval_ns;
        Times { next_ns: first_ns, interval_ns: self.interval_ns }
    }

    /// Changes the rate from `now_ns` on; packets that were due before and not sent are not made up
    /// for.
    pub(crate) fn set_rate(&mut self, rate_pps: f64, now_ns: u64) {
        (self.interval_ns, self.start_ns, self.due) = (1e9 / rate_pps, now_ns, 0);
    }

    /// Records that `count` packets were sent.
    pub(crate) fn sent(&mut self, count: usize) {
        self.due += count as u64;
    }

    /// Returns the number of packets given up so far.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }
}

/// Sending times of packets that are handed over together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    next_ns: f64,
    interval_ns: f64,
}

impl Times {
    /// Returns equal times, for packets without a schedule.
    pub(crate) fn all(now_ns: u64) -> Times {
        Times { next_ns: now_ns as f64, interval_ns: 0.0 }
    }

    /// Returns the time of the next packet, nanoseconds modulo 2^32. It is the due time, so that a
    /// late sender's packets show their delay.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        let time_ns = self.next_ns as u64 as u32;
        self.next_ns += self.interval_ns;
        time_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacer_spreads_constant_rate_evenly() {
        let mut pacer = Pacer::new(1e6, 1000, 64);
        let mut sent = 0;
        for now in (1000..10_001_000).step_by(700) {
            let due = pacer.due(now, 64);
            assert!(due <= 2, "{due} packets at once");
            pacer.sent(due);
            sent += due;
        }
        assert!((9_998..=10_000).contains(&sent), "{sent}");
        assert_eq!(pacer.missed(), 0);
    }

    #[test]
    fn pacer_limits_burst_after_stall() {
        // At any rate: with a limit in time, a stall of 200 us would release 2000 packets at 10
        // Mpps.
        for rate in [1e3, 1e6, 10e6] {
            let mut pacer = Pacer::new(rate, 0, 64);
            let due = pacer.due(1_000_000_000, 100_000_000);
            assert_eq!(due, 64);
            assert_eq!(pacer.missed(), rate as u64 - 64);
        }
    }

    #[test]
    fn late_sender_keeps_scheduled_times() {
        let mut pacer = Pacer::new(1e6, 5000, 64);
        let mut expected = 6000;
        for now in [6000, 6900, 9100, 30_000] {
            let mut times = pacer.times();
            let due = pacer.due(now, 64);
            for _ in 0..due {
                assert_eq!(times.next(), expected);
                assert!(u64::from(expected) <= now, "not before it is due");
                expected += 1000;
            }
            pacer.sent(due);
        }
        assert_eq!(expected, 31_000, "all that were due");
        // Skipped packets have no time: the others keep theirs.
        assert_eq!(pacer.due(1_000_000, 100), 64);
        assert_eq!(pacer.times().next(), 1_000_000 - 63 * 1000);
    }

    #[test]
    fn set_rate_takes_effect_immediately() {
        let mut pacer = Pacer::new(1e6, 0, 64);
        let count = |pacer: &mut Pacer, from: u64, to: u64| {
            let mut sent = 0;
            for now in (from..to).step_by(1000) {
                let due = pacer.due(now, 64);
                pacer.sent(due);
                sent += due;
            }
            sent
        };
        assert!((998..=1000).contains(&count(&mut pacer, 0, 1_000_000)));
        pacer.set_rate(1e5, 1_000_000);
        assert!((98..=100).contains(&count(&mut pacer, 1_000_000, 2_000_000)));
        assert_eq!(pacer.missed(), 0);
    }

    #[test]
    fn total_burst_fits_smallest_ring() {
        for senders in 1..=16 {
            let most = senders * burst(senders) as usize;
            assert!(most <= SMALLEST_RING, "{senders} senders: {most}");
        }
        assert_eq!((burst(1), burst(4), burst(16), burst(0)), (64, 64, 16, 64));
    }
}
